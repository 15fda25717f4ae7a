/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_check.c - is a request what it should be, before anything decodes it?
 *
 * Runs on otel-view's only thread; owns nothing.
 * Source: protobuf.dev/programming-guides/encoding; opentelemetry-proto trace.proto. */
#include "tools/view/view_check.h"

#include "common/text/utf8.h"
#include "exporters/otlp/protocol/protobuf_reader.h"
#include <stdio.h>

struct open_message {
    struct oteli_protobuf_reader reader;
    const ProtobufCMessageDescriptor *type;
    bool has_trace_id;
    bool has_span_id;
};

struct walk {
    struct open_message levels[VIEW_CHECK_DEPTH_MAX];
    size_t depth;
    size_t values;
    char *why;
    size_t why_size;
};

static bool complain(struct walk *walk, const char *field, const char *what)
{
    const char *type = walk->levels[walk->depth - 1].type->short_name;
    snprintf(walk->why, walk->why_size, "%s%s%s: %s", type, field != NULL ? "." : "",
             field != NULL ? field : "", what);
    return false;
}

static bool has_length(const struct oteli_field *bytes, size_t wanted, bool may_be_empty)
{
    uint8_t any = 0;
    for (size_t i = 0; i < bytes->length; i++)
        any |= bytes->bytes[i];
    return (bytes->length == 0 && may_be_empty) ||
           (bytes->length == wanted && (any != 0 || may_be_empty));
}

static bool check_bytes(struct walk *walk, const char *name, const struct oteli_field *bytes)
{
    struct open_message *level = &walk->levels[walk->depth - 1];
    if (strcmp(name, "trace_id") == 0) {
        level->has_trace_id = true;
        return has_length(bytes, 16, false) ||
               complain(walk, name, "is not 16 bytes with one that is not zero");
    }
    if (strcmp(name, "span_id") == 0) {
        level->has_span_id = true;
        return has_length(bytes, 8, false) ||
               complain(walk, name, "is not 8 bytes with one that is not zero");
    }
    return strcmp(name, "parent_span_id") != 0 || has_length(bytes, 8, true) ||
           complain(walk, name, "is neither empty nor 8 bytes");
}

static bool check_delimited(struct walk *walk, const ProtobufCFieldDescriptor *field,
                            const struct oteli_field *bytes)
{
    if (++walk->values > VIEW_CHECK_VALUES_MAX)
        return complain(walk, field->name, "too many values in one request");
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return check_bytes(walk, field->name, bytes);
    if (field->type == PROTOBUF_C_TYPE_STRING)
        return oteli_utf8_is_valid((const char *)bytes->bytes, bytes->length) ||
               complain(walk, field->name, "is not valid UTF-8");
    if (walk->depth == VIEW_CHECK_DEPTH_MAX)
        return complain(walk, field->name, "is nested too deeply");
    walk->levels[walk->depth++] =
        (struct open_message){.reader = oteli_protobuf_into(bytes), .type = field->descriptor};
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

/* What comes next in the message that is walked through. */
static bool check_next(struct walk *walk)
{
    struct open_message *level = &walk->levels[walk->depth - 1];
    struct oteli_field found;
    const bool is_there = oteli_protobuf_next(&level->reader, &found);
    switch (level->reader.fault) {
    case OTELI_PROTOBUF_GOOD:
        if (is_there)
            break;
        if (strcmp(level->type->short_name, "Span") == 0 &&
            (!level->has_trace_id || !level->has_span_id))
            return complain(walk, NULL, "has no trace_id or no span_id");
        walk->depth--;
        return true;
    case OTELI_PROTOBUF_CUT:
        return complain(walk, NULL, "ends inside a field");
    case OTELI_PROTOBUF_BROKEN:
        return complain(walk, NULL,
                        found.wire_type > OTELI_WIRE_BYTES && found.wire_type != OTELI_WIRE_FIXED32
                            ? "has a field of an unknown wire type"
                            : "has a number that cannot be");
    }
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(level->type, found.number);
    if (field == NULL)
        return true;
    if (found.wire_type != wire_type_of(field))
        return complain(walk, field->name, "has another type on the wire");
    return found.wire_type != OTELI_WIRE_BYTES || check_delimited(walk, field, &found);
}

bool view_check(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t length,
                char *why, size_t why_size)
{
    struct walk walk = {.depth = 1, .why = why, .why_size = why_size};
    walk.levels[0] =
        (struct open_message){.reader = {.at = bytes, .end = bytes + length}, .type = type};
    while (walk.depth > 0)
        if (!check_next(&walk))
            return false;
    return true;
}
