/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/response_json.c - the contracts are in response.h. Any thread; owns
 * nothing. */
#include "exporters/otlp/protocol/response.h"

#include "exporters/otlp/protocol/json_reader.h"

static struct oteli_json begin(const struct oteli_response_body *body)
{
    return oteli_json_begin((const char *)body->bytes, body->length);
}

/* Whether what was read counts. */
static bool is_sound(struct oteli_json *json, const struct oteli_response_body *body)
{
    return oteli_json_end(json) || body->is_cut;
}

/* Where a value is not what is expected here, it is as if it were not there. */
static void read_message(struct oteli_json *json, char *message, size_t size)
{
    otel_slice string;
    if (oteli_json_next(json) != '"') {
        oteli_json_skip(json);
    } else if (oteli_json_string(json, &string)) {
        const size_t length = oteli_json_copy(string, message, size);
        oteli_response_printable((otel_slice){message, length}, message, size);
    }
}

/* A 64-bit integer is a string of digits, or a number. One that no int64 can hold is none. */
static uint64_t read_count(struct oteli_json *json)
{
    otel_slice digits;
    const char next = oteli_json_next(json);
    if (next != '"' && next != '-' && (next < '0' || next > '9')) {
        oteli_json_skip(json);
        return 0;
    }
    if (next == '"' ? !oteli_json_string(json, &digits) : !oteli_json_number(json, &digits))
        return 0;
    uint64_t count = 0;
    for (size_t i = 0; i < digits.length; i++) {
        const char c = digits.data[i];
        if (c < '0' || c > '9' || count > (INT64_MAX - (uint64_t)(c - '0')) / 10)
            return 0;
        count = count * 10 + (uint64_t)(c - '0');
    }
    return count;
}

static uint64_t read_partial_success(struct oteli_json *json, char *message, size_t size)
{
    uint64_t rejected = 0;
    otel_slice key;
    for (bool first = oteli_json_object(json); oteli_json_member(json, &first, &key);) {
        if (oteli_json_is(key, "rejectedSpans") || oteli_json_is(key, "rejected_spans"))
            rejected = read_count(json);
        else if (oteli_json_is(key, "errorMessage") || oteli_json_is(key, "error_message"))
            read_message(json, message, size);
        else
            oteli_json_skip(json);
    }
    return rejected;
}

uint64_t oteli_response_json_partial_success(const struct oteli_response_body *body, char *message,
                                             size_t size)
{
    struct oteli_json json = begin(body);
    uint64_t rejected = 0;
    otel_slice key;
    message[0] = '\0';
    for (bool first = oteli_json_object(&json); oteli_json_member(&json, &first, &key);) {
        const bool is_it =
            oteli_json_is(key, "partialSuccess") || oteli_json_is(key, "partial_success");
        if (is_it && oteli_json_next(&json) == '{')
            rejected = read_partial_success(&json, message, size);
        else
            oteli_json_skip(&json);
    }
    if (is_sound(&json, body))
        return rejected;
    message[0] = '\0';
    return 0;
}

bool oteli_response_json_status_message(const struct oteli_response_body *body, char *message,
                                        size_t size)
{
    struct oteli_json json = begin(body);
    otel_slice key;
    message[0] = '\0';
    for (bool first = oteli_json_object(&json); oteli_json_member(&json, &first, &key);) {
        if (oteli_json_is(key, "message"))
            read_message(&json, message, size);
        else
            oteli_json_skip(&json);
    }
    if (!is_sound(&json, body))
        message[0] = '\0';
    return message[0] != '\0';
}
