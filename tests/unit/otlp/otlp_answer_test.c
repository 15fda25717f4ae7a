/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in protobuf are read as protobuf-c reads them, those in JSON and of gRPC (frames,
 * percent- encoded messages, details) likewise, and bytes that are no answer do no harm. What a
 * code means is in protocol_test.c. */
#include "exporters/otlp/protocol/grpc.h"
#include "exporters/otlp/protocol/response.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse pb_response;
typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTracePartialSuccess pb_partial;

static size_t pack_response(int64_t rejected, const char *message, uint8_t *out)
{
    char text[4096];
    snprintf(text, sizeof text, "%s", message);
    pb_partial partial =
        OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_PARTIAL_SUCCESS__INIT;
    pb_response response =
        OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_RESPONSE__INIT;
    partial.rejected_spans = rejected;
    partial.error_message = text;
    response.partial_success = &partial;
    return opentelemetry__proto__collector__trace__v1__export_trace_service_response__pack(
        &response, out);
}

/* Reads a copy of exactly the length, so that a sanitizer sees a read behind the end. What
 * is returned is good until the next call. */
static struct oteli_partial_success read_partial(const void *bytes, size_t length, bool is_cut)
{
    static uint8_t *copy;
    free(copy);
    copy = malloc(length);
    if (length != 0)
        memcpy(copy, bytes, length);
    const struct oteli_response_body body = {copy, length, is_cut};
    return oteli_response_partial_success(&body);
}

static void assert_slice(otel_slice slice, const char *text)
{
    assert_int_equal(slice.length, strlen(text));
    assert_memory_equal(slice.data, text, slice.length);
}

TEST(partial_success_is_read)
{
    static const int64_t counts[] = {0, 1, 127, 128, 300, INT64_MAX, -5};
    uint8_t bytes[8192];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const size_t length = pack_response(counts[i], "two were too old", bytes);
        const struct oteli_partial_success partial = read_partial(bytes, length, false);
        assert_true(partial.rejected_spans == (uint64_t)(counts[i] > 0 ? counts[i] : 0));
        assert_slice(partial.message, "two were too old");
    }
}

TEST(garbage_is_full_success)
{
    static const struct {
        const char *bytes;
        size_t length;
    } bodies[] = {
        {"", 0},
        {"{\"partialSuccess\":{}}", 21},
        {"<html>hello</html>", 18},
        {"404 page not found\n", 19},
        {"\x0a", 1},
        {"\x0a\x05\x08\x03", 4}, /* cut short */
        {"\x0a\x03\x08\x03", 4},
        {"\x0a\x02\x08", 3},                                      /* cut in the inner message */
        {"\x0a\x02\x08\x83", 4},                                  /* varint leaves its message */
        {"\x0a\x02\x08\x03\xff", 5},                              /* good, then bad */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x08", 12}, /* length 2^64 - 1 */
        {"\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 13}, /* varint of 10+ bytes */
        {"\x00\x00", 2},                                              /* field number 0 */
        {"\x0b\x0c", 2},                                              /* a group */
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const struct oteli_partial_success partial =
            read_partial(bodies[i].bytes, bodies[i].length, false);
        assert_int_equal(partial.rejected_spans, 0);
        assert_int_equal(partial.message.length, 0);
    }
}

TEST(unknown_fields_are_skipped)
{
    /* fixed64 number 5, partial_success {varint 9 = 1, rejected = 3, fixed32 1}, varint 2 */
    static const char bytes[] = "\x29"
                                "12345678"
                                "\x0a\x09\x48\x01\x08\x03\x0d"
                                "abcd"
                                "\x10\x07";
    assert_int_equal(read_partial(bytes, sizeof bytes - 1, false).rejected_spans, 3);
}

TEST(the_beginning_of_a_cut_body_counts)
{
    uint8_t bytes[8192];
    const size_t length = pack_response(4, "a message that is so long that it is cut", bytes);

    const struct oteli_partial_success partial = read_partial(bytes, length - 20, true);

    assert_int_equal(partial.rejected_spans, 4);
    assert_slice(partial.message, "a message that is so");
    assert_int_equal(read_partial(bytes, length - 20, false).rejected_spans, 0);
}

/* Mutations of good answers: wherever protobuf-c reads a message, ours is the same one.
 * (It takes a field of a wrong wire type for an error, ours for an unknown field.) */
TEST(mutations_agree_with_protobuf_c)
{
    uint64_t random = 88172645463325252u;
    size_t read_by_both = 0;
    for (size_t round = 0; round < 200000; round++) {
        uint8_t bytes[256];
        size_t length = pack_response((int64_t)(round % 300), "message", bytes);
        for (size_t i = 0; i < round % 4; i++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            bytes[(random >> 8) % length] = (uint8_t)random;
        }
        if (round % 5 == 0)
            length -= (random >> 20) % length;
        (void)read_partial(bytes, length, true);
        const struct oteli_partial_success ours = read_partial(bytes, length, false);
        const struct oteli_response_body body = {bytes, length, (round & 1) != 0};
        (void)oteli_response_status_message(&body);
        pb_response *theirs =
            opentelemetry__proto__collector__trace__v1__export_trace_service_response__unpack(
                NULL, length, bytes);
        if (theirs == NULL)
            continue;
        const pb_partial *partial = theirs->partial_success;
        const int64_t rejected = partial != NULL ? partial->rejected_spans : 0;
        const char *message = partial != NULL ? partial->error_message : "";
        assert_true(ours.rejected_spans == (uint64_t)(rejected > 0 ? rejected : 0));
        assert_true(strlen(message) <= ours.message.length); /* theirs ends at a NUL */
        assert_memory_equal(message, ours.message.data ? ours.message.data : "", strlen(message));
        read_by_both++;
        opentelemetry__proto__collector__trace__v1__export_trace_service_response__free_unpacked(
            theirs, NULL);
    }
    assert_true(read_by_both > 10000);
}

/* ---- in JSON ---- */

enum { MESSAGE = 32 };

/* Reads a copy of exactly the length, so that a sanitizer sees a read behind the end. */
static uint64_t read_json(const char *text, bool is_cut, char message[MESSAGE])
{
    const size_t length = strlen(text);
    uint8_t *copy = malloc(length);
    if (length != 0)
        memcpy(copy, text, length);
    const struct oteli_response_body body = {copy, length, is_cut};
    memset(message, 'x', MESSAGE);
    const uint64_t rejected = oteli_response_json_partial_success(&body, message, MESSAGE);
    free(copy);
    return rejected;
}

static void assert_json(const char *text, uint64_t rejected, const char *expected)
{
    char message[MESSAGE];
    assert_int_equal(read_json(text, false, message), rejected);
    assert_string_equal(message, expected);
}

/* spec: X10 otlp#partial-success-1 MUST stable */
TEST(partial_success_is_read_from_json)
{
    assert_json("{}", 0, "");
    assert_json("{\"partialSuccess\":{}}", 0, "");
    assert_json("{\"partialSuccess\":null}", 0, "");
    assert_json("{\"partialSuccess\":{\"rejectedSpans\":\"12\"}}", 12, "");
    assert_json("{\"partialSuccess\":{\"rejectedSpans\":12}}", 12, "");
    assert_json(" { \"partialSuccess\" : { \"errorMessage\" : \"old\" , \"rejectedSpans\" : 1 } } ",
                1, "old");
    assert_json("{\"partial_success\":{\"rejected_spans\":\"7\",\"error_message\":\"m\"}}", 7, "m");
    assert_json("{\"other\":[{\"a\":1}],\"partialSuccess\":{\"x\":{},\"rejectedSpans\":2}}", 2, "");
    assert_json("{\"partialSuccess\":{\"rejectedSpans\":\"9223372036854775807\"}}", INT64_MAX, "");
}

TEST(a_message_is_unescaped_and_printable)
{
    assert_json("{\"partialSuccess\":{\"errorMessage\":\"a\\n\\u001b\\\"\\u00e4\\ud83d\\ude00\"}}",
                0, "a  \"\xc3\xa4\xf0\x9f\x98\x80");
    assert_json("{\"partialSuccess\":{\"errorMessage\":\"nul\\u0000 and more\"}}", 0, "nul");
    assert_json("{\"partialSuccess\":{\"errorMessage\":"
                "\"012345678901234567890123456789\\u00e4\\u00e4\"}}",
                0, "012345678901234567890123456789");
}

TEST(garbage_and_counts_that_are_none_in_json_are_full_success)
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
        "",
        "garbage",
        "[]",
        "{\"partialSuccess\":{\"rejectedSpans\":3}",
        "{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"m\"}}x",
        "{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"\xff\"}}",
        "{\"partialSuccess\":{\"rejectedSpans\":",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_json(texts[i], 0, "");
}

TEST(the_beginning_of_cut_json_counts)
{
    char message[MESSAGE];
    assert_int_equal(
        read_json("{\"partialSuccess\":{\"rejectedSpans\":\"4\",\"errorMessage\":\"so lo", true,
                  message),
        4);
    assert_string_equal(message, "");
    assert_int_equal(
        read_json("{\"partialSuccess\":{\"rejectedSpans\":\"4\",\"errorMessage\":\"m\",\"", true,
                  message),
        4);
    assert_string_equal(message, "m");
}

/* ---- of gRPC ---- */

static void assert_message(const char *bytes, size_t length, bool is_cut, const char *expected,
                           bool expected_cut)
{
    /* A copy of exactly the length, so that a sanitizer sees a read behind the end. */
    uint8_t *copy = malloc(length);
    if (length != 0)
        memcpy(copy, bytes, length);
    const struct oteli_response_body body = {copy, length, is_cut};
    bool is_compressed;
    const struct oteli_response_body message = oteli_grpc_message(&body, &is_compressed);
    assert_int_equal(message.length, strlen(expected));
    assert_memory_equal(message.bytes, expected, message.length);
    assert_int_equal(message.is_cut, expected_cut);
    assert_int_equal(is_compressed, message.length != 0 && bytes[0] == 1);
    free(copy);
}

TEST(the_message_of_a_body_is_found)
{
    assert_message("\0\0\0\0\3abc", 8, false, "abc", false);
    assert_message("\1\0\0\0\3abc", 8, false, "abc", false);
    assert_message("\0\0\0\0\2abc", 8, false, "ab", false); /* what is behind is not looked at */
    assert_message("\0\0\0\0\0", 5, false, "", false);
    assert_message("\0\0\0\0\4abc", 8, true, "abc", true);
    assert_message("\0\0\0\0\4abc", 8, false, "", false);
    assert_message("\0\xff\xff\xff\xff"
                   "abc",
                   8, false, "", false);
    assert_message("\2\0\0\0\3abc", 8, false, "", false);
    assert_message("\0\0\0\0", 4, false, "", false);
    assert_message("", 0, false, "", false);
}

static void assert_text(const char *encoded, size_t size, const char *expected)
{
    char out[64];
    assert_string_equal(oteli_grpc_text(encoded, out, size), expected);
}

TEST(messages_are_percent_decoded)
{
    assert_text("", 64, "");
    assert_text("plain text", 64, "plain text");
    assert_text("a%20b%2525", 64, "a b%25");
    assert_text("%c3%A4", 64, "\xc3\xa4");
    assert_text("%", 64, "%");
    assert_text("%4", 64, "%4");
    assert_text("%4g%g4", 64, "%4g%g4");
    assert_text("a%0A%1b%7Fb", 64, "a   b");
    assert_text("a%00b", 64, "a b");
    assert_text("ok%ffbad", 64, "ok"); /* no UTF-8 */
    assert_text("abc%20def", 6, "abc d");
    assert_text("abc%c3%a4", 5, "abc"); /* half a character does not fit */
}

/* A google.rpc.Status with some other detail, and a RetryInfo with a Duration, in base64. */
TEST(the_delay_of_retry_info_is_found)
{
    static const struct {
        const char *details;
        uint64_t delay_ms;
    } cases[] = {
        /* empty */
        {"CAgSAXgaBQoDYS9iGi4KKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SAgoA"
         "",
         0},
        /* 5 s */
        {"CAgSAXgaBQoDYS9iGjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoC"
         "CAU=",
         5000},
        /* 7936 s, which have a plus */
        {"CAgSAXgaBQoDYS9iGjEKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBQoD"
         "CIA+",
         7936000},
        /* 1 ns: rounded up */
        {"CAgSAXgaBQoDYS9iGjAKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SBAoC"
         "EAE=",
         1},
        /* 1 s and 500,000,000 ns */
        {"CAgSAXgaBQoDYS9iGjYKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SCgoI"
         "CAEQgMq17gE=",
         1500},
        /* -1 s */
        {"CAgSAXgaBQoDYS9iGjkKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SDQoL"
         "CP///////////wE=",
         0},
        /* -1 ns */
        {"CAgSAXgaBQoDYS9iGjkKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SDQoL"
         "EP///////////wE=",
         0},
        /* 10^9 ns are none */
        {"CAgSAXgaBQoDYS9iGjQKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SCAoG"
         "EICU69wD",
         0},
        /* as long as can be */
        {"CAgSAXgaBQoDYS9iGjgKKHR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5SZXRyeUluZm8SDAoK"
         "CP//////////fw==",
         UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char details[200];
        uint64_t delay_ms = 1;
        assert_true(oteli_grpc_retry_ms(cases[i].details, &delay_ms));
        assert_int_equal(delay_ms, cases[i].delay_ms);
        delay_ms = 1;
        snprintf(details, sizeof details, "%.*s", (int)strcspn(cases[i].details, "="),
                 cases[i].details); /* without padding */
        assert_true(oteli_grpc_retry_ms(details, &delay_ms));
        assert_int_equal(delay_ms, cases[i].delay_ms);
    }
}

TEST(details_that_are_too_long_are_cut)
{
    static char details[10001];
    uint64_t delay_ms;
    memset(details, 'A', sizeof details - 1);
    assert_false(oteli_grpc_retry_ms(details, &delay_ms));
}

TEST(other_details_say_nothing)
{
    static const char *const others[] = {
        "", "=", "!!!", "CAg=", "CAgS//8=", "/////////////w==",
        /* google.rpc.QuotaFailure */
        "CAgSAXgaBQoDYS9iGiEKGXgvZ29vZ2xlLnJwYy5RdW90YUZhaWx1cmUSBAoCCAU="};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint64_t delay_ms = 1;
        assert_false(oteli_grpc_retry_ms(others[i], &delay_ms));
        assert_int_equal(delay_ms, 0);
    }
}
