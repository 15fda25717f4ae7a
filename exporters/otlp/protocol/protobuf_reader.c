/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/protobuf_reader.c - the contracts are in protobuf_reader.h. Any thread;
 * owns nothing. */
#include "exporters/otlp/protocol/protobuf_reader.h"

static enum oteli_protobuf_step next_varint(struct oteli_protobuf_reader *walk, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (walk->at == walk->end)
            return OTELI_PROTOBUF_CUT;
        const uint8_t byte = *walk->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return OTELI_PROTOBUF_FIELD;
    }
    return OTELI_PROTOBUF_BROKEN;
}

static enum oteli_protobuf_step skip(struct oteli_protobuf_reader *walk, size_t bytes)
{
    if ((size_t)(walk->end - walk->at) < bytes)
        return OTELI_PROTOBUF_CUT;
    walk->at += bytes;
    return OTELI_PROTOBUF_FIELD;
}

enum oteli_protobuf_step oteli_protobuf_next(struct oteli_protobuf_reader *walk,
                                             struct oteli_field *field)
{
    *field = (struct oteli_field){.start = walk->at};
    if (walk->at == walk->end)
        return OTELI_PROTOBUF_END;
    uint64_t tag;
    enum oteli_protobuf_step step = next_varint(walk, &tag);
    if (step != OTELI_PROTOBUF_FIELD)
        return step;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return OTELI_PROTOBUF_BROKEN;
    field->wire_type = (uint32_t)(tag & 7);
    uint64_t length;
    switch (field->wire_type) {
    case OTELI_WIRE_VARINT:
        step = next_varint(walk, &field->value);
        break;
    case OTELI_WIRE_FIXED64:
        step = skip(walk, 8);
        break;
    case OTELI_WIRE_FIXED32:
        step = skip(walk, 4);
        break;
    case OTELI_WIRE_BYTES:
        step = next_varint(walk, &length);
        if (step != OTELI_PROTOBUF_FIELD)
            return step;
        field->bytes = walk->at;
        field->length = (size_t)(walk->end - walk->at);
        if (length > field->length) {
            step = OTELI_PROTOBUF_CUT;
        } else {
            field->length = (size_t)length;
            walk->at += length;
        }
        break;
    default:
        return OTELI_PROTOBUF_BROKEN; /* groups are of proto2 */
    }
    field->number = (uint32_t)(tag >> 3);
    return step;
}
