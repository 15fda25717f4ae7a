/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_shop.h - the service whose CPU time benchmarks/processor_system.c measures:
 * pages of a shop, each of ten requests to the service of service_shop.h, with a span
 * around the page and one around each request.
 *
 * Threads:  a shop belongs to one thread at a time. */
#ifndef OTELI_BENCH_PROCESSOR_SHOP_H
#define OTELI_BENCH_PROCESSOR_SHOP_H

#include "benchmarks/processor.h"

enum { PROCESSOR_SHOP_REQUESTS = 10, PROCESSOR_SHOP_SPANS = PROCESSOR_SHOP_REQUESTS + 1 };

void processor_shops_open(unsigned count);
void processor_shops_close(void);

/* Answer so many pages, in the place of `burst` in a design: with spans of otel-c's API, or
 * with those of the rivals, which processor_shop_use has named. */
void processor_shop_serve_otel(struct processor_thread *thread, unsigned pages);
void processor_shop_serve_rival(struct processor_thread *thread, unsigned pages);
void processor_shop_use(const struct processor_design *rival);

#endif
