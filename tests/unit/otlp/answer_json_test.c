/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in JSON are read as those in protobuf are, and bytes that are no answer do no harm. */
#include "exporters/otlp/answer_json.h"
#include "tests/support/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE = 32 };

/* Reads a copy of exactly the length, so that a sanitizer sees a read behind the end. */
static uint64_t read_partial(const char *text, bool is_cut, char message[MESSAGE])
{
    const size_t length = strlen(text);
    uint8_t *copy = malloc(length);
    if (length != 0)
        memcpy(copy, text, length);
    const struct oteli_answer_body body = {copy, length, is_cut};
    memset(message, 'x', MESSAGE);
    const uint64_t rejected = oteli_answer_json_partial_success(&body, message, MESSAGE);
    free(copy);
    return rejected;
}

static void assert_partial(const char *text, uint64_t rejected, const char *expected)
{
    char message[MESSAGE];
    assert_int_equal(read_partial(text, false, message), rejected);
    assert_string_equal(message, expected);
}

/* spec: X10 otlp#partial-success-1 MUST stable */
TEST(partial_success_is_read)
{
    assert_partial("{}", 0, "");
    assert_partial("{\"partialSuccess\":{}}", 0, "");
    assert_partial("{\"partialSuccess\":null}", 0, "");
    assert_partial("{\"partialSuccess\":{\"rejectedSpans\":\"12\"}}", 12, "");
    assert_partial("{\"partialSuccess\":{\"rejectedSpans\":12}}", 12, "");
    assert_partial(
        " { \"partialSuccess\" : { \"errorMessage\" : \"old\" , \"rejectedSpans\" : 1 } } ", 1,
        "old");
    assert_partial("{\"partial_success\":{\"rejected_spans\":\"7\",\"error_message\":\"m\"}}", 7,
                   "m");
    assert_partial("{\"other\":[{\"a\":1}],\"partialSuccess\":{\"x\":{},\"rejectedSpans\":2}}", 2,
                   "");
    assert_partial("{\"partialSuccess\":{\"rejectedSpans\":\"9223372036854775807\"}}", INT64_MAX,
                   "");
}

TEST(a_message_is_unescaped_and_printable)
{
    assert_partial(
        "{\"partialSuccess\":{\"errorMessage\":\"a\\n\\u001b\\\"\\u00e4\\ud83d\\ude00\"}}", 0,
        "a  \"\xc3\xa4\xf0\x9f\x98\x80");
    assert_partial("{\"partialSuccess\":{\"errorMessage\":\"nul\\u0000 and more\"}}", 0, "nul");
    assert_partial("{\"partialSuccess\":{\"errorMessage\":"
                   "\"012345678901234567890123456789\\u00e4\\u00e4\"}}",
                   0, "012345678901234567890123456789");
}

TEST(counts_that_are_none_are_zero)
{
    static const char *const texts[] = {
        "{\"partialSuccess\":{\"rejectedSpans\":-5}}",
        "{\"partialSuccess\":{\"rejectedSpans\":\"-5\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":\"9223372036854775808\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":99999999999999999999999999}}",
        "{\"partialSuccess\":{\"rejectedSpans\":\"many\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":1.5}}",
        "{\"partialSuccess\":{\"rejectedSpans\":true}}",
        "{\"partialSuccess\":{\"rejectedSpans\":{\"a\":3}}}",
        "{\"partialSuccess\":[3]}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_partial(texts[i], 0, "");
}

TEST(garbage_is_full_success)
{
    static const char *const texts[] = {
        "",
        "garbage",
        "[]",
        "{\"partialSuccess\":{\"rejectedSpans\":3}",
        "{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"m\"}}x",
        "{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"\xff\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_partial(texts[i], 0, "");
}

TEST(the_beginning_of_a_cut_body_counts)
{
    char message[MESSAGE];
    assert_int_equal(
        read_partial("{\"partialSuccess\":{\"rejectedSpans\":\"4\",\"errorMessage\":\"so lo", true,
                     message),
        4);
    assert_string_equal(message, "");
    assert_int_equal(
        read_partial("{\"partialSuccess\":{\"rejectedSpans\":\"4\",\"errorMessage\":\"m\",\"", true,
                     message),
        4);
    assert_string_equal(message, "m");
}

static bool read_status(const char *text, char message[MESSAGE])
{
    const struct oteli_answer_body body = {(const uint8_t *)text, strlen(text), false};
    return oteli_answer_json_status_message(&body, message, MESSAGE);
}

/* spec: X11 otlp#failures-2 SHOULD stable */
TEST(the_message_of_a_status_is_read)
{
    char message[MESSAGE];
    assert_true(read_status("{\"code\":3,\"message\":\"bad\\tdata\",\"details\":[{}]}", message));
    assert_string_equal(message, "bad data");
    assert_false(read_status("{\"code\":3}", message));
    assert_false(read_status("{\"message\":{\"a\":\"b\"}}", message));
    assert_false(read_status("{\"message\":\"m\"", message));
    assert_false(read_status("message", message));
    assert_string_equal(message, "");
}
