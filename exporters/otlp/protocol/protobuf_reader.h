/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/protobuf_reader.h - walk over the fields of a protobuf message that somebody else sent.
 *
 * Such bytes may be cut, broken or hostile: every length is checked, nothing is allocated, and
 * there is no depth to exhaust. (Our own bytes are read with common/wire.h, which trusts them.)
 *
 *     struct oteli_walk walk = {bytes, bytes + length};
 *     struct oteli_field field;
 *     enum oteli_walk_step step;
 *     while ((step = oteli_walk_next(&walk, &field)) == OTELI_WALK_FIELD)
 *         ...
 *     if (step != OTELI_WALK_END) ... it was no message, or not the whole of one
 *
 * Threads:  any thread; no state. What is found points into the message.
 * Source:   protobuf encoding, protobuf.dev/programming-guides/encoding. */
#ifndef OTELI_PROTOBUF_READER_H
#define OTELI_PROTOBUF_READER_H

#include "common/wire.h"

#include <otel/exporter.h>

enum oteli_walk_step {
    OTELI_WALK_FIELD,
    OTELI_WALK_END,
    OTELI_WALK_CUT, /* the message goes on behind the end of the bytes */
    OTELI_WALK_BROKEN
};

struct oteli_walk {
    const uint8_t *at;
    const uint8_t *end;
};

/* The next field. At OTELI_WALK_CUT the field goes on behind the end: its number and type are
 * known when `field->number` is not 0, and bytes of it that are there are in the field. */
enum oteli_walk_step oteli_walk_next(struct oteli_walk *walk, struct oteli_field *field);

/* A field of bytes, as a walk over the message in it and as text. */
static inline struct oteli_walk oteli_walk_into(const struct oteli_field *field)
{
    return (struct oteli_walk){field->bytes, field->bytes + field->length};
}

static inline otel_slice oteli_field_text(const struct oteli_field *field)
{
    return (otel_slice){.data = (const char *)field->bytes, .length = field->length};
}

#endif
