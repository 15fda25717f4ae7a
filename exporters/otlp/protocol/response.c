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

/* Whether a message that was read to its end is to be believed. */
static bool is_sound(const struct oteli_protobuf_reader *reader, bool is_cut)
{
    return reader->fault == OTELI_PROTOBUF_GOOD || (reader->fault == OTELI_PROTOBUF_CUT && is_cut);
}

static struct oteli_protobuf_reader reader_of(const struct oteli_response_body *body)
{
    return (struct oteli_protobuf_reader){.at = body->bytes, .end = body->bytes + body->length};
}

static bool read_partial_success(const struct oteli_field *message, bool is_cut,
                                 struct oteli_partial_success *partial)
{
    struct oteli_protobuf_reader reader = oteli_protobuf_into(message);
    struct oteli_field field;
    while (oteli_protobuf_next(&reader, &field)) {
        if (field.number == PARTIAL_SUCCESS_REJECTED_SPANS && field.wire_type == OTELI_WIRE_VARINT)
            partial->rejected_spans = field.value <= INT64_MAX ? field.value : 0;
        if (field.number == PARTIAL_SUCCESS_ERROR_MESSAGE && field.wire_type == OTELI_WIRE_BYTES)
            partial->message = oteli_field_text(&field);
    }
    return is_sound(&reader, is_cut);
}

struct oteli_partial_success oteli_response_partial_success(const struct oteli_response_body *body)
{
    struct oteli_partial_success partial = {0};
    struct oteli_protobuf_reader reader = reader_of(body);
    struct oteli_field field;
    bool is_good = true;
    while (is_good && oteli_protobuf_next(&reader, &field)) {
        if (field.number == RESPONSE_PARTIAL_SUCCESS && field.wire_type == OTELI_WIRE_BYTES)
            is_good = read_partial_success(&field, reader.fault == OTELI_PROTOBUF_CUT, &partial);
    }
    return is_good && is_sound(&reader, body->is_cut) ? partial : (struct oteli_partial_success){0};
}

otel_slice oteli_response_status_message(const struct oteli_response_body *body)
{
    otel_slice message = {0};
    struct oteli_protobuf_reader reader = reader_of(body);
    struct oteli_field field;
    while (oteli_protobuf_next(&reader, &field)) {
        if (field.number == STATUS_MESSAGE && field.wire_type == OTELI_WIRE_BYTES)
            message = oteli_field_text(&field);
    }
    return is_sound(&reader, body->is_cut) ? message : (otel_slice){0};
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
