/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/protobuf_reader.c - the contracts are in protobuf_reader.h. Any thread;
 * owns nothing. */
#include "exporters/otlp/protocol/protobuf_reader.h"

static bool fail(struct oteli_protobuf_reader *reader, enum oteli_protobuf_fault fault)
{
    reader->fault = fault;
    return false;
}

static bool next_varint(struct oteli_protobuf_reader *reader, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (reader->at == reader->end)
            return fail(reader, OTELI_PROTOBUF_CUT);
        const uint8_t byte = *reader->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return fail(reader, OTELI_PROTOBUF_BROKEN);
}

static bool skip(struct oteli_protobuf_reader *reader, size_t bytes)
{
    if ((size_t)(reader->end - reader->at) < bytes)
        return fail(reader, OTELI_PROTOBUF_CUT);
    reader->at += bytes;
    return true;
}

static bool next_bytes(struct oteli_protobuf_reader *reader, struct oteli_field *field)
{
    uint64_t length;
    if (!next_varint(reader, &length))
        return false;
    const size_t left = (size_t)(reader->end - reader->at);
    if (length > left)
        reader->fault = OTELI_PROTOBUF_CUT;
    field->bytes = reader->at;
    field->length = length > left ? left : (size_t)length;
    reader->at += field->length;
    return true;
}

bool oteli_protobuf_next(struct oteli_protobuf_reader *reader, struct oteli_field *field)
{
    uint64_t tag;
    *field = (struct oteli_field){.start = reader->at};
    if (reader->at == reader->end || reader->fault != OTELI_PROTOBUF_GOOD ||
        !next_varint(reader, &tag))
        return false;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return fail(reader, OTELI_PROTOBUF_BROKEN);
    field->number = (uint32_t)(tag >> 3);
    field->wire_type = (uint32_t)(tag & 7);
    switch (field->wire_type) {
    case OTELI_WIRE_VARINT:
        return next_varint(reader, &field->value);
    case OTELI_WIRE_FIXED64:
        return skip(reader, 8);
    case OTELI_WIRE_FIXED32:
        return skip(reader, 4);
    case OTELI_WIRE_BYTES:
        return next_bytes(reader, field);
    default:
        return fail(reader, OTELI_PROTOBUF_BROKEN); /* groups are of proto2 */
    }
}
