/* SPDX-License-Identifier: Apache-2.0 */
/* proto/json.c - print any OTLP message as OTLP/JSON.
 *
 * Runs on the caller's thread; owns nothing. A message is walked with a stack of its own,
 * because how deep it goes is the sender's choice:
 *
 *     frame: message, the field we are at, the element of that field we are at */
#include "proto/json.h"

#include "common/text/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct frame {
    const ProtobufCMessage *message;
    unsigned field;
    size_t element;
    bool is_first; /* nothing printed in this object yet */
};

static void put(ProtobufCBuffer *out, const char *data, size_t length)
{
    if (length != 0)
        out->append(out, length, (const uint8_t *)data);
}

static void put_string(ProtobufCBuffer *out, const char *string)
{
    put(out, string, strlen(string));
}

/* ---- where protobuf-c keeps things ---------------------------------------------------- */

static const void *member(const ProtobufCMessage *message, unsigned offset)
{
    return (const uint8_t *)message + offset;
}

static size_t repeated_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    size_t count;
    memcpy(&count, member(message, field->quantifier_offset), sizeof count);
    return count;
}

static size_t element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

static const void *value_at(const struct frame *frame, const ProtobufCFieldDescriptor *field)
{
    const void *value = member(frame->message, field->offset);
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        return value;
    const uint8_t *elements;
    memcpy(&elements, value, sizeof elements);
    return elements + frame->element * element_size(field->type);
}

static const void *pointer_in(const void *value)
{
    const void *pointer;
    memcpy(&pointer, value, sizeof pointer);
    return pointer;
}

static bool is_default(const ProtobufCFieldDescriptor *field, const void *value)
{
    static const uint8_t zeros[sizeof(uint64_t)];
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *string = pointer_in(value);
        return string == NULL || *string == '\0';
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return ((const ProtobufCBinaryData *)value)->len == 0;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return pointer_in(value) == NULL;
    return memcmp(value, zeros, element_size(field->type)) == 0;
}

/* How many values of the field are to be printed; one for what is not repeated. */
static size_t printed_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return repeated_count(message, field);
    const void *value = member(message, field->offset);
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        uint32_t chosen;
        memcpy(&chosen, member(message, field->quantifier_offset), sizeof chosen);
        const bool is_null = field->type == PROTOBUF_C_TYPE_MESSAGE && pointer_in(value) == NULL;
        return chosen == field->id && !is_null;
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return pointer_in(value) != NULL;
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL && field->quantifier_offset != 0) {
        protobuf_c_boolean has;
        memcpy(&has, member(message, field->quantifier_offset), sizeof has);
        return has != 0;
    }
    return !is_default(field, value);
}

/* ---- values --------------------------------------------------------------------------- */

static void put_text(ProtobufCBuffer *out, const char *text)
{
    static const char plain_escapes[] = "\b\t\n\f\r\"\\";
    static const char letters[] = "btnfr\"\\";
    const size_t length = text != NULL ? strlen(text) : 0;
    const size_t valid = length != 0 ? oteli_utf8_valid_prefix(text, length) : 0;
    size_t next_bad = valid;
    size_t from = 0; /* what is before has been put */
    put(out, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        const uint8_t byte = (uint8_t)text[i];
        const bool is_bad = i == next_bad;
        if (byte >= 0x20 && byte != '"' && byte != '\\' && !is_bad)
            continue;
        put(out, text + from, i - from);
        from = i + 1;
        char escape[8];
        const char *plain = strchr(plain_escapes, byte);
        if (is_bad) {
            put_string(out, "\\ufffd");
            next_bad =
                from + (from < length ? oteli_utf8_valid_prefix(text + from, length - from) : 0);
        } else if (plain != NULL && byte != 0) {
            put(out, "\\", 1);
            put(out, letters + (plain - plain_escapes), 1);
        } else {
            put(out, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", byte));
        }
    }
    put(out, text + from, length - from);
    put(out, "\"", 1);
}

static void put_hex(ProtobufCBuffer *out, const ProtobufCBinaryData *bytes)
{
    static const char digits[] = "0123456789abcdef";
    put(out, "\"", 1);
    for (size_t i = 0; i < bytes->len; i++) {
        const char pair[2] = {digits[bytes->data[i] >> 4], digits[bytes->data[i] & 15]};
        put(out, pair, sizeof pair);
    }
    put(out, "\"", 1);
}

static void put_base64(ProtobufCBuffer *out, const ProtobufCBinaryData *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    put(out, "\"", 1);
    for (size_t i = 0; i < bytes->len; i += 3) {
        const size_t left = bytes->len - i;
        const uint32_t bits = (uint32_t)bytes->data[i] << 16 |
                              (left > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0) |
                              (left > 2 ? bytes->data[i + 2] : 0);
        const char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                              left > 1 ? digits[bits >> 6 & 63] : '=',
                              left > 2 ? digits[bits & 63] : '='};
        put(out, four, sizeof four);
    }
    put(out, "\"", 1);
}

/* As short as it reads back, and with a point whatever the locale says. */
static void put_real(ProtobufCBuffer *out, double value, int digits_min, int digits_max)
{
    if (isnan(value) || isinf(value)) {
        put_string(out, isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
        return;
    }
    char number[40];
    for (int digits = digits_min; digits <= digits_max; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        const double back = strtod(number, NULL);
        if (digits_max <= 9 ? (float)back == (float)value : back == value)
            break;
    }
    bool in_point = false;
    for (const char *at = number; *at != '\0'; at++) {
        const bool is_usual = strchr("0123456789+-e", *at) != NULL;
        if (is_usual)
            put(out, at, 1);
        else if (!in_point)
            put(out, ".", 1);
        in_point = !is_usual;
    }
}

static bool is_id(const char *name)
{
    return strcmp(name, "trace_id") == 0 || strcmp(name, "span_id") == 0 ||
           strcmp(name, "parent_span_id") == 0;
}

/* Everything but messages. */
static void put_value(ProtobufCBuffer *out, const ProtobufCFieldDescriptor *field,
                      const void *value)
{
    char number[32];
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        snprintf(number, sizeof number, "\"%" PRId64 "\"", *(const int64_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        snprintf(number, sizeof number, "\"%" PRIu64 "\"", *(const uint64_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        snprintf(number, sizeof number, "%" PRIu32, *(const uint32_t *)value);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        snprintf(number, sizeof number, "%s",
                 *(const protobuf_c_boolean *)value ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        put_real(out, *(const double *)value, 15, 17);
        return;
    case PROTOBUF_C_TYPE_FLOAT:
        put_real(out, (double)*(const float *)value, 6, 9);
        return;
    case PROTOBUF_C_TYPE_STRING:
        put_text(out, pointer_in(value));
        return;
    case PROTOBUF_C_TYPE_BYTES:
        if (is_id(field->name))
            put_hex(out, value);
        else
            put_base64(out, value);
        return;
    default: /* int32, sint32, sfixed32, enum */
        snprintf(number, sizeof number, "%" PRId32, *(const int32_t *)value);
        break;
    }
    put_string(out, number);
}

static void put_name(ProtobufCBuffer *out, const char *name)
{
    put(out, "\"", 1);
    for (const char *at = name; *at != '\0'; at++) {
        if (at[0] == '_' && at[1] >= 'a' && at[1] <= 'z') {
            const char upper = (char)(*++at - 'a' + 'A');
            put(out, &upper, 1);
        } else if (at[0] != '_') {
            put(out, at, 1);
        }
    }
    put(out, "\":", 2);
}

/* ---- the walk ------------------------------------------------------------------------- */

/* Go to the next field of the frame's message that has something to print. */
static const ProtobufCFieldDescriptor *next_field(struct frame *frame)
{
    const ProtobufCMessageDescriptor *type = frame->message->descriptor;
    while (frame->field < type->n_fields &&
           printed_count(frame->message, &type->fields[frame->field]) == 0)
        frame->field++;
    return frame->field < type->n_fields ? &type->fields[frame->field] : NULL;
}

/* What stands before an element: the field's name before the first, a comma before others. */
static void open_element(ProtobufCBuffer *out, struct frame *frame,
                         const ProtobufCFieldDescriptor *field)
{
    if (frame->element != 0) {
        put(out, ",", 1);
        return;
    }
    if (!frame->is_first)
        put(out, ",", 1);
    frame->is_first = false;
    put_name(out, field->name);
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        put(out, "[", 1);
}

/* Go behind the element, and behind the field when it was the last. */
static void close_element(ProtobufCBuffer *out, struct frame *frame,
                          const ProtobufCFieldDescriptor *field)
{
    if (++frame->element < printed_count(frame->message, field))
        return;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        put(out, "]", 1);
    frame->element = 0;
    frame->field++;
}

bool oteli_json_print(const ProtobufCMessage *message, ProtobufCBuffer *out)
{
    struct frame frames[OTELI_JSON_DEPTH_MAX];
    size_t depth = 1;
    frames[0] = (struct frame){.message = message, .is_first = true};
    put(out, "{", 1);
    for (;;) {
        struct frame *frame = &frames[depth - 1];
        const ProtobufCFieldDescriptor *field = next_field(frame);
        if (field == NULL) {
            put(out, "}", 1);
            if (--depth == 0)
                return true;
            frame = &frames[depth - 1];
            close_element(out, frame, &frame->message->descriptor->fields[frame->field]);
            continue;
        }
        open_element(out, frame, field);
        const void *value = value_at(frame, field);
        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            put_value(out, field, value);
            close_element(out, frame, field);
            continue;
        }
        if (depth == OTELI_JSON_DEPTH_MAX)
            return false;
        frames[depth++] = (struct frame){.message = pointer_in(value), .is_first = true};
        put(out, "{", 1);
    }
}
