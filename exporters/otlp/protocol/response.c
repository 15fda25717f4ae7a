/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/response.c - the contracts are in response.h. Any thread; owns
 * nothing. */
#include "exporters/otlp/protocol/response.h"

#include "common/text/utf8.h"
#include "exporters/otlp/protocol/protobuf_reader.h"

enum {
    RESPONSE_PARTIAL_SUCCESS = 1,
    PARTIAL_SUCCESS_REJECTED_SPANS = 1,
    PARTIAL_SUCCESS_ERROR_MESSAGE = 2,
    STATUS_MESSAGE = 2
};

/* Whether a walk that ended like this is to be believed. */
static bool is_sound(enum oteli_protobuf_step last, bool is_cut)
{
    return last == OTELI_PROTOBUF_END || (last == OTELI_PROTOBUF_CUT && is_cut);
}

static bool read_partial_success(const struct oteli_field *message, bool is_cut,
                                 struct oteli_partial_success *partial)
{
    struct oteli_protobuf_reader walk = oteli_protobuf_into(message);
    struct oteli_field field;
    enum oteli_protobuf_step step;
    while ((step = oteli_protobuf_next(&walk, &field)) == OTELI_PROTOBUF_FIELD ||
           field.number != 0) {
        if (field.number == PARTIAL_SUCCESS_REJECTED_SPANS &&
            field.wire_type == OTELI_WIRE_VARINT && step == OTELI_PROTOBUF_FIELD)
            partial->rejected_spans = field.value <= INT64_MAX ? field.value : 0;
        if (field.number == PARTIAL_SUCCESS_ERROR_MESSAGE && field.wire_type == OTELI_WIRE_BYTES)
            partial->message = oteli_field_text(&field);
        if (step != OTELI_PROTOBUF_FIELD)
            break;
    }
    return is_sound(step, is_cut);
}

struct oteli_partial_success oteli_response_partial_success(const struct oteli_response_body *body)
{
    struct oteli_partial_success partial = {0};
    struct oteli_protobuf_reader walk = {body->bytes, body->bytes + body->length};
    struct oteli_field field;
    enum oteli_protobuf_step step;
    bool sound = true;
    while (sound && ((step = oteli_protobuf_next(&walk, &field)) == OTELI_PROTOBUF_FIELD ||
                     field.number != 0)) {
        if (field.number == RESPONSE_PARTIAL_SUCCESS && field.wire_type == OTELI_WIRE_BYTES)
            sound = read_partial_success(&field, step == OTELI_PROTOBUF_CUT, &partial);
        if (step != OTELI_PROTOBUF_FIELD)
            break;
    }
    if (!sound || !is_sound(step, body->is_cut))
        return (struct oteli_partial_success){0};
    return partial;
}

otel_slice oteli_response_status_message(const struct oteli_response_body *body)
{
    otel_slice message = {0};
    struct oteli_protobuf_reader walk = {body->bytes, body->bytes + body->length};
    struct oteli_field field;
    enum oteli_protobuf_step step;
    while ((step = oteli_protobuf_next(&walk, &field)) == OTELI_PROTOBUF_FIELD ||
           field.number != 0) {
        if (field.number == STATUS_MESSAGE && field.wire_type == OTELI_WIRE_BYTES)
            message = oteli_field_text(&field);
        if (step != OTELI_PROTOBUF_FIELD)
            break;
    }
    return is_sound(step, body->is_cut) ? message : (otel_slice){0};
}

const char *oteli_response_printable(otel_slice message, char *out, size_t size)
{
    size_t length = message.length < size - 1 ? message.length : size - 1;
    length = oteli_utf8_valid_prefix(message.data, length);
    for (size_t i = 0; i < length; i++) {
        const unsigned char c = (unsigned char)message.data[i];
        out[i] = c < 0x20 || c == 0x7f ? ' ' : message.data[i];
        /* U+0080 to U+009F, which terminals obey as well. */
        if (i != 0 && (unsigned char)out[i - 1] == 0xc2 && c < 0xa0)
            out[i - 1] = out[i] = ' ';
    }
    out[length] = '\0';
    return out;
}
