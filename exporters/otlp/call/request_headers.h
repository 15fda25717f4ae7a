/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/call/request_headers.h - headers that one attempt has beside the constant ones:
 * those of the program's callback, and grpc-timeout. What the public otel_otlp_request_headers is.
 *
 * Threads:  one thread at a time. Memory is kept from attempt to attempt. */
#ifndef OTELI_REQUEST_HEADERS_H
#define OTELI_REQUEST_HEADERS_H

#include <otel/otlp.h>

struct otel_otlp_request_headers {
    otel_otlp_header *list; /* each name and value in one allocation, the name's */
    size_t count;
    size_t room;
};

/* Forget all of them, for the next attempt. */
void oteli_headers_clear(struct otel_otlp_request_headers *headers);
void oteli_headers_fini(struct otel_otlp_request_headers *headers);

/* Put one, in the place of one of the same name if there is any, without a check. false: no
 * memory. */
bool oteli_headers_put(struct otel_otlp_request_headers *headers, const char *name,
                       const char *value);

/* Whether a header can stand in a request: its name is a token, its value has no line
 * break or other control character. */
bool oteli_otlp_header_is_valid(const char *name, const char *value);

/* Whether a header says how requests are framed, which is the exporter's to say. */
bool oteli_header_is_reserved(const char *name);

#endif
