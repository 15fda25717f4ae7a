/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/strict.h - a receiver that forgives nothing, and what a value must become.
 *
 * Neither uses code of otel-c: not its encoder, not its idea of UTF-8.
 *
 * Threads:  any. */
#ifndef OTELI_TESTS_STRICT_H
#define OTELI_TESTS_STRICT_H

#include <otel/value.h>
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* What is wrong with a message, or NULL: fields that it does not have or that have another
 * type, lengths beyond its end, single fields that come twice, strings that are no UTF-8,
 * and lists of KeyValue in which a key is there twice. */
const char *strict_problem(const ProtobufCMessageDescriptor *type, const uint8_t *bytes,
                           size_t length);

struct strict_bytes {
    uint8_t *data; /* free() it */
    size_t length;
};

/* The AnyValue message that a value becomes under these limits; depth 0 is below the limit. */
struct strict_bytes strict_value(const otel_value *value, size_t length_limit, unsigned depth);

/* The key that a key becomes: every byte that is not part of UTF-8 is U+FFFD. */
struct strict_bytes strict_text(const char *text, size_t length);

#endif
