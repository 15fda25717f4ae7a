/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_check.c - is a request what it should be, before anything decodes it?
 *
 * Runs on otel-view's only thread; owns nothing.
 * Source: protobuf.dev/programming-guides/encoding; opentelemetry-proto trace.proto. */
#include "tools/view/view_check.h"

#include "common/text/utf8.h"
#include "common/wire.h"
#include <stdio.h>

struct walk {
    const uint8_t *at;
    const ProtobufCMessageDescriptor *types[VIEW_CHECK_DEPTH_MAX];
    const uint8_t *ends[VIEW_CHECK_DEPTH_MAX];
    size_t depth;
    size_t values;
    char *why;
    size_t why_size;
};

static bool complain(struct walk *walk, const char *field, const char *what)
{
    const char *type = walk->types[walk->depth - 1]->short_name;
    snprintf(walk->why, walk->why_size, "%s%s%s: %s", type, field != NULL ? "." : "",
             field != NULL ? field : "", what);
    return false;
}

/* Unlike common/wire.h's reader, for bytes that may end anywhere. */
static bool read_varint(struct walk *walk, uint64_t *value)
{
    const uint8_t *end = walk->ends[walk->depth - 1];
    *value = 0;
    for (unsigned shift = 0; shift < 70 && walk->at < end; shift += 7) {
        const uint8_t byte = *walk->at++;
        if (shift < 64)
            *value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return complain(walk, NULL, "a number does not end");
}

static bool has_length(size_t length, const uint8_t *bytes, size_t wanted, bool may_be_empty)
{
    uint8_t any = 0;
    for (size_t i = 0; i < length; i++)
        any |= bytes[i];
    return (length == 0 && may_be_empty) || (length == wanted && (any != 0 || may_be_empty));
}

static bool check_bytes(struct walk *walk, const ProtobufCFieldDescriptor *field, size_t length)
{
    if (strcmp(field->name, "trace_id") == 0 && !has_length(length, walk->at, 16, false))
        return complain(walk, field->name, "is not 16 bytes with one that is not zero");
    if (strcmp(field->name, "span_id") == 0 && !has_length(length, walk->at, 8, false))
        return complain(walk, field->name, "is not 8 bytes with one that is not zero");
    if (strcmp(field->name, "parent_span_id") == 0 && !has_length(length, walk->at, 8, true))
        return complain(walk, field->name, "is neither empty nor 8 bytes");
    walk->at += length;
    return true;
}

static bool check_delimited(struct walk *walk, const ProtobufCFieldDescriptor *field)
{
    uint64_t length;
    if (!read_varint(walk, &length))
        return false;
    if (length > (uint64_t)(walk->ends[walk->depth - 1] - walk->at))
        return complain(walk, field != NULL ? field->name : NULL, "is longer than what is there");
    if (field != NULL && ++walk->values > VIEW_CHECK_VALUES_MAX)
        return complain(walk, field->name, "too many values in one request");
    if (field != NULL && field->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (walk->depth == VIEW_CHECK_DEPTH_MAX)
            return complain(walk, field->name, "is nested too deeply");
        walk->types[walk->depth] = field->descriptor;
        walk->ends[walk->depth] = walk->at + length;
        walk->depth++;
        return true;
    }
    if (field != NULL && field->type == PROTOBUF_C_TYPE_STRING &&
        !oteli_utf8_is_valid((const char *)walk->at, (size_t)length))
        return complain(walk, field->name, "is not valid UTF-8");
    if (field != NULL && field->type == PROTOBUF_C_TYPE_BYTES)
        return check_bytes(walk, field, (size_t)length);
    walk->at += length;
    return true;
}

static bool skip_fixed(struct walk *walk, size_t size)
{
    if (size > (size_t)(walk->ends[walk->depth - 1] - walk->at))
        return complain(walk, NULL, "ends inside a number");
    walk->at += size;
    return true;
}

static uint32_t wire_type_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return OTELI_WIRE_FIXED64;
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
        return OTELI_WIRE_FIXED32;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return OTELI_WIRE_BYTES;
    default:
        return OTELI_WIRE_VARINT;
    }
}

static bool check_field(struct walk *walk)
{
    uint64_t tag, value;
    if (!read_varint(walk, &tag))
        return false;
    if (tag >> 3 == 0 || tag >> 32 != 0)
        return complain(walk, NULL, "has a field of an impossible number");
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(walk->types[walk->depth - 1], (unsigned)(tag >> 3));
    if (field != NULL && (tag & 7) != wire_type_of(field))
        return complain(walk, field->name, "has another type on the wire");
    switch (tag & 7) {
    case OTELI_WIRE_VARINT:
        return read_varint(walk, &value);
    case OTELI_WIRE_FIXED64:
        return skip_fixed(walk, 8);
    case OTELI_WIRE_FIXED32:
        return skip_fixed(walk, 4);
    case OTELI_WIRE_BYTES:
        return check_delimited(walk, field);
    default:
        return complain(walk, NULL, "has a field of an unknown wire type");
    }
}

bool view_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t length,
                char *why, size_t why_size)
{
    struct walk walk = {.at = bytes, .depth = 1, .why = why, .why_size = why_size};
    walk.types[0] = type;
    walk.ends[0] = bytes + length;
    while (walk.depth > 0) {
        if (walk.at == walk.ends[walk.depth - 1])
            walk.depth--;
        else if (!check_field(&walk))
            return false;
    }
    return true;
}
