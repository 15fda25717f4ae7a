/* SPDX-License-Identifier: Apache-2.0 */
/* Answers are read as protobuf-c reads them, and bytes that are no answer do no harm. */
#include "exporters/otlp/answer.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/unit.h"

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
    const struct oteli_answer_body body = {copy, length, is_cut};
    return oteli_answer_partial_success(&body);
}

static void assert_slice(otel_slice slice, const char *text)
{
    assert_int_equal(slice.length, strlen(text));
    assert_memory_equal(slice.data, text, slice.length);
}

TEST(partial_success_is_read)
{
    static const int64_t counts[] = {0, 1, 127, 128, 300, INT64_MAX};
    uint8_t bytes[8192];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const size_t length = pack_response(counts[i], "two were too old", bytes);
        const struct oteli_partial_success partial = read_partial(bytes, length, false);
        assert_true(partial.rejected_spans == (uint64_t)counts[i]);
        assert_slice(partial.message, "two were too old");
    }
}

TEST(an_empty_body_is_full_success)
{
    const struct oteli_partial_success partial = read_partial("", 0, false);
    assert_int_equal(partial.rejected_spans, 0);
    assert_int_equal(partial.message.length, 0);
}

TEST(a_negative_count_is_none)
{
    uint8_t bytes[64];
    const size_t length = pack_response(-5, "", bytes);
    assert_int_equal(read_partial(bytes, length, false).rejected_spans, 0);
}

TEST(garbage_is_full_success)
{
    static const struct {
        const char *bytes;
        size_t length;
    } bodies[] = {
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
    /* fixed64 number 5, partial_success {varint 9 = 1, rejected = 3, fixed32 7}, varint 2 */
    static const char bytes[] = "\x29"
                                "12345678"
                                "\x0a\x09\x48\x01\x08\x03\x3d"
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

TEST(status_message_is_read)
{
    /* google.rpc.Status {code = 3, message = "no such tenant", details {"any"}} */
    static const uint8_t bytes[] = "\x08\x03\x12\x0eno such tenant\x1a\x03"
                                   "any";
    const struct oteli_answer_body body = {bytes, sizeof bytes - 1, false};
    const struct oteli_answer_body short_body = {bytes, 10, false};
    const struct oteli_answer_body cut_body = {bytes, 10, true};
    const struct oteli_answer_body text = {(const uint8_t *)"{\"code\":3}", 10, false};
    const struct oteli_answer_body none = {bytes, 0, false};

    assert_slice(oteli_answer_status_message(&body), "no such tenant");
    assert_slice(oteli_answer_status_message(&short_body), "");
    assert_slice(oteli_answer_status_message(&cut_body), "no suc");
    assert_slice(oteli_answer_status_message(&text), "");
    assert_slice(oteli_answer_status_message(&none), "");
}

TEST(a_printable_message_fits_one_line)
{
    char out[12];
    assert_string_equal(oteli_answer_printable((otel_slice){"a\nb\t\x1b[1m", 8}, out, sizeof out),
                        "a b  [1m");
    assert_string_equal(
        oteli_answer_printable((otel_slice){"0123456789abcdef", 16}, out, sizeof out),
        "0123456789a");
    assert_string_equal(
        oteli_answer_printable((otel_slice){"0123456789\xc3\xa4", 12}, out, sizeof out),
        "0123456789");
    assert_string_equal(oteli_answer_printable((otel_slice){"ok\xff"
                                                            "bad",
                                                            6},
                                               out, sizeof out),
                        "ok");
    assert_string_equal(oteli_answer_printable((otel_slice){0}, out, sizeof out), "");
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
        const struct oteli_answer_body body = {bytes, length, (round & 1) != 0};
        (void)oteli_answer_status_message(&body);
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
