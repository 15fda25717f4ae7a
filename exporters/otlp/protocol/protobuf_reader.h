/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/protobuf_reader.h - walk over the fields of a protobuf message from
 * the network.
 *
 * Such bytes may be cut, broken or hostile: every length is checked, nothing is allocated, and
 * there is no depth to exhaust. (Our own bytes are read with common/wire.h, which trusts them.)
 *
 *     struct oteli_protobuf_reader walk = {bytes, bytes + length};
 *     struct oteli_field field;
 *     enum oteli_protobuf_step step;
 *     while ((step = oteli_protobuf_next(&walk, &field)) == OTELI_PROTOBUF_FIELD)
 *         ...
 *     if (step != OTELI_PROTOBUF_END) ... it was no message, or not the whole of one
 *
 * Threads:  any thread; no state. What is found points into the message.
 * Source:   protobuf encoding, protobuf.dev/programming-guides/encoding. */
#ifndef OTELI_PROTOBUF_READER_H
#define OTELI_PROTOBUF_READER_H

#include "common/wire.h"

#include <otel/exporter.h>

enum oteli_protobuf_step {
    OTELI_PROTOBUF_FIELD,
    OTELI_PROTOBUF_END,
    OTELI_PROTOBUF_CUT, /* the message goes on behind the end of the bytes */
    OTELI_PROTOBUF_BROKEN
};

struct oteli_protobuf_reader {
    const uint8_t *at;
    const uint8_t *end;
};

/* The next field. At OTELI_PROTOBUF_CUT the field goes on behind the end: its number and type are
 * known when `field->number` is not 0, and bytes of it that are there are in the field. */
enum oteli_protobuf_step oteli_protobuf_next(struct oteli_protobuf_reader *walk,
                                             struct oteli_field *field);

/* A field of bytes, as a walk over the message in it and as text. */
static inline struct oteli_protobuf_reader oteli_protobuf_into(const struct oteli_field *field)
{
    return (struct oteli_protobuf_reader){field->bytes, field->bytes + field->length};
}

static inline otel_slice oteli_field_text(const struct oteli_field *field)
{
    return (otel_slice){.data = (const char *)field->bytes, .length = field->length};
}

#endif
