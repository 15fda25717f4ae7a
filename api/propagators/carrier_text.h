/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/carrier_text.h - what the propagators of this directory have in common: headers
 * one after the other, ids as hexadecimal text, and which spans are written into headers.
 *
 * Threads:  any thread; no state. */
#ifndef OTELI_CARRIER_TEXT_H
#define OTELI_CARRIER_TEXT_H

#include "api/context/handle.h"
#include "common/text/text.h"
#include <otel/propagate.h>

enum oteli_hex_case { OTELI_HEX_LOWER, OTELI_HEX_ANY };

/* Read 2 * `bytes` hexadecimal digits. False: there is something else among them. */
bool oteli_hex_read(const char *text, size_t bytes, enum oteli_hex_case digits, uint8_t *out);

/* A span of another process, with these ids and bits of opaque[3]. */
otel_span oteli_span_of_remote(const uint8_t trace_id[16], const uint8_t span_id[8], uint64_t bits);

/* The context with a span that was found in headers. Where another propagator has found the
 * same span before, it stays what only that one knew: `keep`, bits of opaque[3]. */
otel_context oteli_context_with_found(const otel_context *context, otel_span span, uint64_t keep);

/* What W3C does not say of a span, and what B3 and Jaeger do not. */
#define OTELI_KEPT_FROM_B3 (OTELI_REF_DEBUG | OTELI_REF_DEFERRED)
#define OTELI_KEPT_FROM_W3C (OTELI_REF_RANDOM | OTELI_REF_DEBUG | OTELI_REF_TRACESTATE)
#define OTELI_KEPT_FROM_BOTH (OTELI_KEPT_FROM_W3C | OTELI_REF_DEFERRED)

/* Whether there are ids to write for the span of a context: it has some, and was not collected,
 * which gives it ids of no trace that others could know. */
bool oteli_span_is_to_send(const otel_context *context);

/* Write its ids in hexadecimal digits, with `mark` between them. Returns what comes behind. */
enum { OTELI_TRACE_ID_TEXT = 32, OTELI_SPAN_ID_TEXT = 16, OTELI_IDS_TEXT = 32 + 1 + 16 };
char *oteli_ids_put(char *out, const otel_context *context, char mark);

/* The headers of a name, one after the other, without the blanks around their values, which are no
 * part of them (RFC 9110, section 5.5). */
struct oteli_headers {
    const otel_carrier_reader *reader;
    const char *name;
    size_t index;  /* of the next one */
    size_t length; /* of the last one, … */
    uint64_t hash; /* … and what it was */
};

/* The next one; false: there is none. One that repeats the one before it says nothing new and is
 * passed over, and so many of them are the end: a getter may give the same header for every
 * index. */
bool oteli_headers_next(struct oteli_headers *headers, otel_slice *value);

/* The only one, or the first; its data is NULL where there is none. */
otel_slice oteli_header(const otel_carrier_reader *reader, const char *name);

/* Split a text at each `mark`. Returns how many parts it has; the first `most` are in `parts`. */
size_t oteli_split(otel_slice text, char mark, otel_slice *parts, size_t most);

#endif
