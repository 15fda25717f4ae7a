/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/otlp_bytes.h - open what was sent as a receiver would (fault_peer.h), and say which spans are in it. Spans are named by a number, with
 * a dash and anything behind it.
 *
 * The test fails, here, when the bytes are not what they have to be. Test thread. */
#ifndef OTELI_TESTS_OTLP_BYTES_H
#define OTELI_TESTS_OTLP_BYTES_H

#include <otel/otlp.h>

struct otlp_bytes {
    uint8_t *data; /* owned */
    size_t length;
};

/* Take off frame and compression. */
struct otlp_bytes otlp_bytes_open(otel_otlp_protocol protocol, otel_otlp_compression compression,
                                  const void *bytes, size_t length);
void otlp_bytes_close(struct otlp_bytes *bytes);

enum { OTLP_BYTES_SPANS = 1024 };
struct otlp_bytes_spans {
    size_t count;
    unsigned char times[OTLP_BYTES_SPANS]; /* by number */
};

struct otlp_bytes_spans otlp_bytes_read(otel_otlp_protocol protocol,
                                        const struct otlp_bytes *plain);

/* Whether the span of this number is there, once. */
static inline bool otlp_bytes_has(const struct otlp_bytes_spans *spans, size_t number)
{
    return number < OTLP_BYTES_SPANS && spans->times[number] == 1;
}

#endif
