/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/grpc.c - the contracts are in grpc.h. Any thread; owns nothing. */
#include "exporters/otlp/protocol/grpc.h"
#include "common/clock/time_units.h"
#include "common/text/text.h"
#include "exporters/otlp/encode/grpc_frame.h"
#include "exporters/otlp/protocol/protobuf_reader.h"

#include <string.h>

enum {
    DETAILS_MAX = 6 * 1024, /* bytes of a Status that are looked at */
    STATUS_DETAILS = 3,
    ANY_TYPE_URL = 1,
    ANY_VALUE = 2,
    RETRY_INFO_DELAY = 1,
    DURATION_SECONDS = 1,
    DURATION_NANOS = 2
};

static const struct {
    const char *name;
    bool is_retryable;
} codes[] = {
    {"OK", false},
    {"CANCELLED", true},
    {"UNKNOWN", false},
    {"INVALID_ARGUMENT", false},
    {"DEADLINE_EXCEEDED", true},
    {"NOT_FOUND", false},
    {"ALREADY_EXISTS", false},
    {"PERMISSION_DENIED", false},
    {"RESOURCE_EXHAUSTED", false}, /* unless it says when */
    {"FAILED_PRECONDITION", false},
    {"ABORTED", true},
    {"OUT_OF_RANGE", true},
    {"UNIMPLEMENTED", false},
    {"INTERNAL", false},
    {"UNAVAILABLE", true},
    {"DATA_LOSS", true},
    {"UNAUTHENTICATED", false},
};
enum { CODE_COUNT = sizeof codes / sizeof *codes };

struct oteli_response_body oteli_grpc_message(const struct oteli_response_body *body,
                                              bool *is_compressed)
{
    struct oteli_response_body message = {.bytes = body->bytes};
    *is_compressed = false;
    if (body->length < OTELI_GRPC_FRAME || body->bytes[0] > 1)
        return message;
    size_t length = 0;
    for (size_t i = 1; i < OTELI_GRPC_FRAME; i++)
        length = length << 8 | body->bytes[i];
    const size_t there = body->length - OTELI_GRPC_FRAME;
    message.is_cut = length > there;
    if (message.is_cut && !body->is_cut)
        return (struct oteli_response_body){.bytes = body->bytes};
    *is_compressed = body->bytes[0] != 0;
    message.bytes += OTELI_GRPC_FRAME;
    message.length = message.is_cut ? there : length;
    return message;
}

int oteli_grpc_code(const char *grpc_status)
{
    int code = 0;
    const char *at = grpc_status;
    for (; *at >= '0' && *at <= '9' && code < CODE_COUNT; at++)
        code = code * 10 + (*at - '0');
    return at != grpc_status && *at == '\0' && code < CODE_COUNT ? code : OTELI_GRPC_UNKNOWN;
}

int oteli_grpc_code_of_http(int status)
{
    switch (status) {
    case 400:
        return 13; /* INTERNAL */
    case 401:
        return 16; /* UNAUTHENTICATED */
    case 403:
        return 7; /* PERMISSION_DENIED */
    case 404:
        return 12; /* UNIMPLEMENTED */
    case 429:
    case 502:
    case 503:
    case 504:
        return 14; /* UNAVAILABLE */
    default:
        return OTELI_GRPC_UNKNOWN;
    }
}

const char *oteli_grpc_code_name(int code)
{
    return codes[code >= 0 && code < CODE_COUNT ? code : OTELI_GRPC_UNKNOWN].name;
}

bool oteli_grpc_code_is_retryable(int code)
{
    return code >= 0 && code < CODE_COUNT && codes[code].is_retryable;
}

const char *oteli_grpc_text(const char *grpc_message, char *out, size_t size)
{
    size_t length = 0;
    for (const char *at = grpc_message; *at != '\0' && length < size - 1; at++) {
        const int high = *at == '%' ? oteli_hex_digit(at[1]) : -1;
        const int low = high >= 0 ? oteli_hex_digit(at[2]) : -1;
        const int c = low < 0 ? *at : high << 4 | low;
        out[length++] = (char)c;
        at += low < 0 ? 0 : 2;
    }
    return oteli_response_printable((otel_slice){out, length}, out, size);
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decode with padding or without it, as far as there is room; ends at what is no digit. */
static size_t decode_base64(const char *text, uint8_t *out, size_t size)
{
    size_t length = 0;
    uint32_t bits = 0;
    unsigned count = 0;
    for (int digit; length < size && (digit = base64_digit(*text)) >= 0; text++) {
        bits = bits << 6 | (uint32_t)digit;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[length++] = (uint8_t)(bits >> count);
        }
    }
    return length;
}

/* Find the first field of this number and type; it has to be there as a whole. */
static bool find(struct oteli_protobuf_reader message, uint32_t number, uint32_t wire_type,
                 struct oteli_field *field)
{
    while (oteli_protobuf_next(&message, field)) {
        if (field->number == number && field->wire_type == wire_type)
            return message.fault == OTELI_PROTOBUF_GOOD;
    }
    return false;
}

/* A Duration in whole milliseconds, rounded up: a retry must not come before that time. */
static uint64_t duration_ms(struct oteli_protobuf_reader duration)
{
    struct oteli_field field;
    const int64_t seconds =
        find(duration, DURATION_SECONDS, OTELI_WIRE_VARINT, &field) ? (int64_t)field.value : 0;
    const int64_t nanos =
        find(duration, DURATION_NANOS, OTELI_WIRE_VARINT, &field) ? (int64_t)field.value : 0;
    if (seconds < 0 || nanos < 0 || nanos >= (int64_t)OTELI_NS_PER_S)
        return 0;
    const uint64_t ms = ((uint64_t)nanos + OTELI_NS_PER_MS - 1) / OTELI_NS_PER_MS;
    return (uint64_t)seconds < UINT64_MAX / 1000 - 1 ? (uint64_t)seconds * 1000 + ms : UINT64_MAX;
}

static bool is_retry_info(struct oteli_protobuf_reader any)
{
    static const char name[] = "/google.rpc.RetryInfo";
    const size_t length = sizeof name - 1;
    struct oteli_field url;
    return find(any, ANY_TYPE_URL, OTELI_WIRE_BYTES, &url) && url.length >= length &&
           memcmp(url.bytes + url.length - length, name, length) == 0;
}

bool oteli_grpc_retry_ms(const char *details, uint64_t *delay_ms)
{
    uint8_t bytes[DETAILS_MAX];
    struct oteli_protobuf_reader status = {
        .at = bytes, .end = bytes + decode_base64(details, bytes, sizeof bytes)};
    struct oteli_field field;
    *delay_ms = 0;
    while (find(status, STATUS_DETAILS, OTELI_WIRE_BYTES, &field)) {
        const struct oteli_protobuf_reader any = oteli_protobuf_into(&field);
        status.at = field.bytes + field.length;
        if (!is_retry_info(any))
            continue;
        if (find(any, ANY_VALUE, OTELI_WIRE_BYTES, &field) &&
            find(oteli_protobuf_into(&field), RETRY_INFO_DELAY, OTELI_WIRE_BYTES, &field))
            *delay_ms = duration_ms(oteli_protobuf_into(&field));
        return true;
    }
    return false;
}
