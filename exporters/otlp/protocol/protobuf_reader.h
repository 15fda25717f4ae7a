/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/protobuf_reader.h - read the fields of a protobuf message from the
 * network.
 *
 * Such bytes may be cut, broken or hostile: every length is checked, nothing is allocated, and
 * there is no depth to exhaust. (Our own bytes are read with common/wire.h, which trusts them.)
 *
 *     struct oteli_protobuf_reader reader = {bytes, bytes + length};
 *     struct oteli_field field;
 *     while (oteli_protobuf_next(&reader, &field))
 *         ...
 *     if (reader.fault != OTELI_PROTOBUF_GOOD) ... it was no message, or not the whole of one
 *
 * Threads:  any thread; no state. What is found points into the message.
 * Source:   protobuf encoding, protobuf.dev/programming-guides/encoding. */
#ifndef OTELI_PROTOBUF_READER_H
#define OTELI_PROTOBUF_READER_H

#include "common/wire.h"

#include <otel/exporter.h>

enum oteli_protobuf_fault {
    OTELI_PROTOBUF_GOOD, /* so far */
    OTELI_PROTOBUF_CUT,  /* the message goes on behind the end of the bytes */
    OTELI_PROTOBUF_BROKEN
};

struct oteli_protobuf_reader {
    const uint8_t *at;
    const uint8_t *end;
    enum oteli_protobuf_fault fault;
};

/* The next field; false: there is none. Of a field of bytes that is cut, what is there is in the
 * field; it is the last one. */
bool oteli_protobuf_next(struct oteli_protobuf_reader *reader, struct oteli_field *field);

/* A field of bytes, as a reader of the message in it and as text. */
static inline struct oteli_protobuf_reader oteli_protobuf_into(const struct oteli_field *field)
{
    return (struct oteli_protobuf_reader){.at = field->bytes, .end = field->bytes + field->length};
}

static inline otel_slice oteli_field_text(const struct oteli_field *field)
{
    return (otel_slice){.data = (const char *)field->bytes, .length = field->length};
}

#endif
