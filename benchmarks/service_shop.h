/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/service_shop.h - the service that benchmarks/service.c measures: it takes the
 * text of an HTTP request, works, and makes the text of the response.
 *
 * There are two functions for that, made from one source file. One is a program with
 * tracing in it; from the other the compiler was shown no line of that.
 *
 * Threads:  one thread. */
#ifndef OTELI_BENCH_SERVICE_SHOP_H
#define OTELI_BENCH_SERVICE_SHOP_H

#include "benchmarks/service_store.h"

#include <stddef.h>

enum { SERVICE_SPANS = 8, SERVICE_ATTRIBUTES = 2 }; /* a request; a span */
enum { SERVICE_BODY_BYTES = 2816, SERVICE_RESPONSE_BYTES = 3072 };

/* Answer it; returns the length of the response. */
typedef size_t service_handle(struct service_store *store, const char *request,
                              char response[SERVICE_RESPONSE_BYTES]);
service_handle service_handle_bare;
service_handle service_handle_traced;

#endif
