/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/carrier_text.h - what the propagators of this directory have in common: headers
 * one after the other, ids as hexadecimal text, and which spans are written into headers.
 *
 * Threads:  any thread; no state. */
#ifndef OTELI_CARRIER_TEXT_H
#define OTELI_CARRIER_TEXT_H

#include "api/context/handle.h"
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

/* What there is to write for the span of a context. False: nothing: it is none, or it was
 * collected and has ids of no trace that others could know. */
bool oteli_span_to_send(const otel_context *context, otel_span_context *span);

/* The headers of a name, one after the other, without the blanks around their values, which are no
 * part of them (RFC 9110, section 5.5). */
struct oteli_headers {
    const otel_carrier_reader *reader;
    const char *name;
    size_t index;  /* of the next one */
    size_t length; /* of the last one, … */
    uint64_t hash; /* … and what it was */
};

/* The next one; NULL: there is none. One that repeats the one before it says nothing new and is
 * passed over, and so many of them are the end: a getter may give the same header for every
 * index. */
const char *oteli_headers_next(struct oteli_headers *headers, size_t *length);

/* The only one, or the first. */
const char *oteli_header(const otel_carrier_reader *reader, const char *name, size_t *length);

/* Cut the text at its next `mark`: the part before it, without it; the text goes on behind
 * it. The last part ends with the text. False: the text had ended before. */
bool oteli_part_next(const char **text, const char *end, char mark, const char **part,
                     size_t *length);

#endif
