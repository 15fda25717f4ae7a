/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/answer.c - a bounds-checked walk over protobuf fields, and what two
 * messages make of it. Any thread; owns nothing. */
#include "exporters/otlp/answer.h"

#include "common/utf8.h"
#include "common/wire.h"

enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_SUCCESS_REJECTED_SPANS = 1,
    PARTIAL_SUCCESS_ERROR_MESSAGE = 2,
    STATUS_MESSAGE = 2
};

enum step { STEP_FIELD, STEP_END, STEP_CUT, STEP_BROKEN };

struct walk {
    const uint8_t *at;
    const uint8_t *end;
};

static enum step next_varint(struct walk *walk, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (walk->at == walk->end)
            return STEP_CUT;
        const uint8_t byte = *walk->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return STEP_FIELD;
    }
    return STEP_BROKEN;
}

static enum step skip(struct walk *walk, size_t bytes)
{
    if ((size_t)(walk->end - walk->at) < bytes)
        return STEP_CUT;
    walk->at += bytes;
    return STEP_FIELD;
}

/* The next field. At STEP_CUT the field goes on behind the end: its number and type are
 * known when `field->number` is not 0, and bytes of it that are there are in the field. */
static enum step next_field(struct walk *walk, struct oteli_field *field)
{
    *field = (struct oteli_field){.start = walk->at};
    if (walk->at == walk->end)
        return STEP_END;
    uint64_t tag;
    enum step step = next_varint(walk, &tag);
    if (step != STEP_FIELD)
        return step;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return STEP_BROKEN;
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
        if (step != STEP_FIELD)
            return step;
        field->bytes = walk->at;
        field->length = (size_t)(walk->end - walk->at);
        if (length > field->length) {
            step = STEP_CUT;
        } else {
            field->length = (size_t)length;
            walk->at += length;
        }
        break;
    default:
        return STEP_BROKEN; /* groups are of proto2 */
    }
    field->number = (uint32_t)(tag >> 3);
    return step;
}

static otel_slice text_of(const struct oteli_field *field)
{
    return (otel_slice){.data = (const char *)field->bytes, .length = field->length};
}

/* Whether a walk that ended like this is to be believed. */
static bool is_sound(enum step last, bool is_cut)
{
    return last == STEP_END || (last == STEP_CUT && is_cut);
}

static bool read_partial_success(const struct oteli_field *message, bool is_cut,
                                 struct oteli_partial_success *partial)
{
    struct walk walk = {message->bytes, message->bytes + message->length};
    struct oteli_field field;
    enum step step;
    while ((step = next_field(&walk, &field)) == STEP_FIELD || field.number != 0) {
        if (field.number == PARTIAL_SUCCESS_REJECTED_SPANS &&
            field.wire_type == OTELI_WIRE_VARINT && step == STEP_FIELD)
            partial->rejected_spans = field.value <= INT64_MAX ? field.value : 0;
        if (field.number == PARTIAL_SUCCESS_ERROR_MESSAGE && field.wire_type == OTELI_WIRE_BYTES)
            partial->message = text_of(&field);
        if (step != STEP_FIELD)
            break;
    }
    return is_sound(step, is_cut);
}

struct oteli_partial_success oteli_answer_partial_success(const struct oteli_answer_body *body)
{
    struct oteli_partial_success partial = {0};
    struct walk walk = {body->bytes, body->bytes + body->length};
    struct oteli_field field;
    enum step step;
    bool sound = true;
    while (sound && ((step = next_field(&walk, &field)) == STEP_FIELD || field.number != 0)) {
        if (field.number == RESPONSE_PARTIAL_SUCCESS && field.wire_type == OTELI_WIRE_BYTES)
            sound = read_partial_success(&field, step == STEP_CUT, &partial);
        if (step != STEP_FIELD)
            break;
    }
    if (!sound || !is_sound(step, body->is_cut))
        return (struct oteli_partial_success){0};
    return partial;
}

otel_slice oteli_answer_status_message(const struct oteli_answer_body *body)
{
    otel_slice message = {0};
    struct walk walk = {body->bytes, body->bytes + body->length};
    struct oteli_field field;
    enum step step;
    while ((step = next_field(&walk, &field)) == STEP_FIELD || field.number != 0) {
        if (field.number == STATUS_MESSAGE && field.wire_type == OTELI_WIRE_BYTES)
            message = text_of(&field);
        if (step != STEP_FIELD)
            break;
    }
    return is_sound(step, body->is_cut) ? message : (otel_slice){0};
}

const char *oteli_answer_printable(otel_slice message, char *out, size_t size)
{
    size_t length = message.length < size - 1 ? message.length : size - 1;
    length = oteli_utf8_valid_prefix(message.data, length);
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)message.data[i];
        out[i] = c < 0x20 || c == 0x7f ? ' ' : message.data[i];
    }
    out[length] = '\0';
    return out;
}
