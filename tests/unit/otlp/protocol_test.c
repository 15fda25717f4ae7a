/* SPDX-License-Identifier: Apache-2.0 */
/* What every answer means, in each protocol. The tables here were written from the specification,
 * and know nothing of those in the code. */
#include "common/text/utf8.h"
#include "exporters/otlp/call/retry.h"
#include "exporters/otlp/protocol/protocol.h"
#include "exporters/otlp/transport/transport.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/unit.h"

#include <string.h>

enum { NOW = 784111777 }; /* Sun, 06 Nov 1994 08:49:37 GMT */

enum {
    DELIVERED = OTELI_VERDICT_DELIVERED,
    RETRY = OTELI_VERDICT_RETRY,
    TOO_LARGE = OTELI_VERDICT_TOO_LARGE,
    HOPELESS = OTELI_VERDICT_HOPELESS,
    FINAL = OTELI_VERDICT_FINAL
};

static struct oteli_outcome read_answer(otel_otlp_protocol protocol,
                                        struct oteli_transport_response answer)
{
    struct oteli_outcome outcome;
    memset(&outcome, 0xa5, sizeof outcome);
    oteli_protocol_read(protocol, &answer, &outcome);
    oteli_retry_read(&outcome, NOW);
    assert_int_equal(outcome.verdict == OTELI_VERDICT_DELIVERED, outcome.problem[0] == '\0');
    return outcome;
}

static struct oteli_response_body text_body(const char *text)
{
    return (struct oteli_response_body){(const uint8_t *)text, strlen(text), false};
}

static enum oteli_verdict http_verdict(int status, const char *body)
{
    return read_answer(OTEL_OTLP_HTTP_PROTOBUF,
                       (struct oteli_transport_response){.status = status, .body = text_body(body)})
        .verdict;
}

static struct oteli_outcome grpc_outcome(const char *status, const char *message,
                                         const char *details)
{
    return read_answer(OTEL_OTLP_GRPC,
                       (struct oteli_transport_response){.status = 200,
                                                         .content_type = "application/grpc",
                                                         .grpc_status = status,
                                                         .grpc_message = message,
                                                         .grpc_details = details});
}

/* R31: what cannot succeed is not sent again. */
/* spec: X8 otlp#failures-1 MUST stable */
/* spec: X8 protocol/otlp.md#failures MUST stable */
TEST(every_grpc_code_does_what_this_table_says)
{
    static const struct {
        const char *status;
        const char *problem;
        int verdict;
    } table[] = {
        {"0", "", DELIVERED},
        {"1", "gRPC status 1 (CANCELLED)", RETRY},
        {"2", "gRPC status 2 (UNKNOWN)", FINAL},
        {"3", "gRPC status 3 (INVALID_ARGUMENT)", FINAL},
        {"4", "gRPC status 4 (DEADLINE_EXCEEDED)", RETRY},
        {"5", "gRPC status 5 (NOT_FOUND)", FINAL},
        {"6", "gRPC status 6 (ALREADY_EXISTS)", FINAL},
        {"7", "gRPC status 7 (PERMISSION_DENIED)", FINAL},
        {"8", "gRPC status 8 (RESOURCE_EXHAUSTED)", FINAL},
        {"9", "gRPC status 9 (FAILED_PRECONDITION)", FINAL},
        {"10", "gRPC status 10 (ABORTED)", RETRY},
        {"11", "gRPC status 11 (OUT_OF_RANGE)", RETRY},
        {"12", "gRPC status 12 (UNIMPLEMENTED)", FINAL},
        {"13", "gRPC status 13 (INTERNAL)", FINAL},
        {"14", "gRPC status 14 (UNAVAILABLE)", RETRY},
        {"15", "gRPC status 15 (DATA_LOSS)", RETRY},
        {"16", "gRPC status 16 (UNAUTHENTICATED)", FINAL},
        /* What is none is UNKNOWN. */
        {"17", "gRPC status 2 (UNKNOWN)", FINAL},
        {"99", "gRPC status 2 (UNKNOWN)", FINAL},
        {"4294967310", "gRPC status 2 (UNKNOWN)", FINAL},
        {"-1", "gRPC status 2 (UNKNOWN)", FINAL},
        {"14 ", "gRPC status 2 (UNKNOWN)", FINAL},
        {"", "gRPC status 2 (UNKNOWN)", FINAL},
        {"UNAVAILABLE", "gRPC status 2 (UNKNOWN)", FINAL},
    };
    for (size_t row = 0; row < sizeof table / sizeof *table; row++) {
        const struct oteli_outcome outcome = grpc_outcome(table[row].status, NULL, NULL);
        assert_int_equal(outcome.verdict, table[row].verdict);
        assert_string_equal(outcome.problem, table[row].problem);
        assert_false(outcome.may_have_arrived);
    }
}

TEST(a_receiver_that_lacks_the_service_is_told_from_others)
{
    const struct oteli_transport_response missing = {.status = 404};
    const struct oteli_transport_response bad = {.status = 400};
    for (int protocol = 0; protocol <= OTEL_OTLP_GRPC; protocol++) {
        assert_true(read_answer((otel_otlp_protocol)protocol, missing).has_no_service);
        assert_false(read_answer((otel_otlp_protocol)protocol, bad).has_no_service);
    }
    assert_true(grpc_outcome("12", NULL, NULL).has_no_service);
    assert_false(grpc_outcome("5", NULL, NULL).has_no_service);
}

/* grpc-status counts whatever the HTTP status is; without it, HTTP's is translated. */
TEST(every_http_status_of_grpc_does_what_this_table_says)
{
    static const struct {
        int first, last;
        int verdict;
        const char *name;
    } table[] = {
        {100, 199, FINAL, "(UNKNOWN)"},       {201, 399, FINAL, "(UNKNOWN)"},
        {400, 400, FINAL, "(INTERNAL)"},      {401, 401, FINAL, "(UNAUTHENTICATED)"},
        {402, 402, FINAL, "(UNKNOWN)"},       {403, 403, FINAL, "(PERMISSION_DENIED)"},
        {404, 404, FINAL, "(UNIMPLEMENTED)"}, {405, 412, FINAL, "(UNKNOWN)"},
        {413, 413, TOO_LARGE, "(UNKNOWN)"},   {414, 428, FINAL, "(UNKNOWN)"},
        {429, 429, RETRY, "(UNAVAILABLE)"},   {430, 501, FINAL, "(UNKNOWN)"},
        {502, 504, RETRY, "(UNAVAILABLE)"},   {505, 599, FINAL, "(UNKNOWN)"},
    };
    for (size_t row = 0; row < sizeof table / sizeof *table; row++) {
        for (int status = table[row].first; status <= table[row].last; status++) {
            struct oteli_transport_response answer = {.status = status};
            const struct oteli_outcome outcome = read_answer(OTEL_OTLP_GRPC, answer);
            assert_int_equal(outcome.verdict, table[row].verdict);
            assert_non_null(strstr(outcome.problem, table[row].name));

            answer.grpc_status = "0";
            assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).verdict, DELIVERED);
            answer.grpc_status = "14";
            assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).verdict, RETRY);
        }
    }
}

/* The connection broke between the headers and the trailers. */
TEST(grpc_without_a_status_may_have_arrived)
{
    const struct oteli_transport_response answer = {.status = 200,
                                                    .content_type = "application/grpc+proto"};
    const struct oteli_outcome outcome = read_answer(OTEL_OTLP_GRPC, answer);
    assert_int_equal(outcome.verdict, RETRY);
    assert_true(outcome.may_have_arrived);
}

/* A server that stops says GOAWAY, and libcurl loses the trailers that come with it. A message is
 * sent only with OK. */
TEST(a_whole_message_is_as_good_as_a_status)
{
    static const uint8_t body[] = {0, 0, 0, 0, 4, 0x0a, 0x02, 0x08, 0x03};
    struct oteli_transport_response answer = {
        .status = 200, .content_type = "application/grpc", .body = {body, sizeof body, false}};
    assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).verdict, DELIVERED);
    assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).rejected, 3);

    answer.body.is_cut = true;
    assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).verdict, RETRY);
    answer.body = (struct oteli_response_body){body, sizeof body - 1, false};
    assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).verdict, RETRY);
    answer.body = (struct oteli_response_body){body, 0, false};
    assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).verdict, RETRY);
    static const uint8_t empty[5] = {0};
    answer.body = (struct oteli_response_body){empty, sizeof empty, false};
    assert_int_equal(read_answer(OTEL_OTLP_GRPC, answer).verdict, DELIVERED);
}

TEST(what_is_no_grpc_is_not_tried_again)
{
    const struct oteli_transport_response answer = {
        .status = 200, .content_type = "text/html", .body = text_body("<html>welcome</html>")};
    const struct oteli_outcome outcome = read_answer(OTEL_OTLP_GRPC, answer);
    assert_int_equal(outcome.verdict, FINAL);
    assert_string_equal(outcome.problem, "HTTP status 200 without a gRPC status (UNKNOWN): "
                                         "<html>welcome</html>");
}

/* spec: X13 protocol/exporter.md#response-limits MUST stable */
TEST(an_endless_answer_is_final)
{
    for (int status = 100; status < 600; status++) {
        const struct oteli_transport_response answer = {
            .status = status, .is_too_long = true, .retry_after = "1"};
        const enum oteli_verdict grpc = read_answer(OTEL_OTLP_GRPC, answer).verdict;
        const struct oteli_outcome http = read_answer(OTEL_OTLP_HTTP_JSON, answer);
        assert_int_not_equal(http.verdict, RETRY);
        assert_false(http.is_throttled);
        assert_int_not_equal(grpc, RETRY);
    }
    assert_int_equal(read_answer(OTEL_OTLP_GRPC,
                                 (struct oteli_transport_response){
                                     .status = 200, .is_too_long = true, .grpc_status = "0"})
                         .verdict,
                     DELIVERED);
}

/* ---- when to come again -------------------------------------------------------------------- */

/* spec: X9 otlp#otlphttp-throttling SHOULD stable */
TEST(retry_after_counts_with_429_and_503)
{
    for (int protocol = 0; protocol <= OTEL_OTLP_GRPC; protocol++) {
        for (int status = 100; status < 600; status++) {
            const struct oteli_outcome outcome = read_answer(
                (otel_otlp_protocol)protocol,
                (struct oteli_transport_response){.status = status, .retry_after = "7"});
            const bool counts = status == 429 || status == 503;
            assert_int_equal(outcome.is_throttled, counts);
            assert_int_equal(outcome.asked_ms, counts ? 7000 : 0);
        }
    }
}

/* google.rpc.Status {code: 8, details: [{type.googleapis.com/google.rpc.RetryInfo,
 * {retry_delay: {seconds: 2, nanos: 1000001}}}]} */
#define RETRY_INFO                                                             \
    "CAgaNAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIICgYIAhDB" \
    "hD0="

/* spec: X8 otlp#otlpgrpc-throttling SHOULD stable */
TEST(retry_info_says_when_to_come_again)
{
    static const struct {
        const char *code;
        bool counts;
    } codes[] = {{"8", true},  {"14", true},  {"11", true}, {"1", true},
                 {"3", false}, {"13", false}, {"2", false}, {"16", false}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const struct oteli_outcome outcome = grpc_outcome(codes[i].code, "too large", RETRY_INFO);
        assert_int_equal(outcome.is_throttled, codes[i].counts);
        assert_int_equal(outcome.asked_ms, codes[i].counts ? 2002 : 0);
        assert_int_equal(outcome.verdict, codes[i].counts ? RETRY : FINAL);
    }
}

/* ---- too large ------------------------------------------------------------------------- */

/* spec: X13 protocol/exporter.md#request-limits SHOULD stable */
TEST(a_400_that_says_too_large_is_halved)
{
    static const char *const too_large[] = {
        "http: request body too large\n",
        "Request Entity Too Large",
        "request payload size exceeds the limit: 4194304 bytes",
        "{\"code\":3,\"message\":\"http: request body too large\"}",
        "\x08\x03\x12\x1chttp: request body too large",
    };
    static const char *const others[] = {
        "",
        "no such tenant",
        "{\"message\":\"attribute value too large\"}",
        "body: unexpected EOF",
        "request has a span that is too long",
    };
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        assert_int_equal(http_verdict(400, too_large[i]), TOO_LARGE);
        assert_int_equal(http_verdict(500, too_large[i]), FINAL);
        assert_int_equal(http_verdict(503, too_large[i]), RETRY);
        assert_int_equal(http_verdict(200, too_large[i]), DELIVERED);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(http_verdict(400, others[i]), FINAL);
}

/* What the libraries of several languages say. */
TEST(a_grpc_message_that_is_too_large_is_halved)
{
    static const char *const too_large[] = {
        "grpc: received message larger than max (6291461 vs. 4194304)",
        "grpc: received message after decompression larger than max (5 vs. 4)",
        "Received message larger than max (6291461 vs. 4194304)",
        "gRPC message exceeds maximum size 4194304: 6291461",
        "Error, decoded message length too large: found 6291461 bytes, the limit is: 4194304 bytes",
        "Received message exceeds the maximum configured message size.",
        "grpc%3A received message larger than max (6 vs%2E 4)",
    };
    for (size_t i = 0; i < sizeof too_large / sizeof *too_large; i++) {
        assert_int_equal(grpc_outcome("8", too_large[i], NULL).verdict, TOO_LARGE);
        assert_int_equal(grpc_outcome("11", too_large[i], NULL).verdict, TOO_LARGE);
        assert_int_equal(grpc_outcome("3", too_large[i], NULL).verdict, FINAL);
        assert_int_equal(grpc_outcome("8", too_large[i], RETRY_INFO).verdict, RETRY);
    }
    assert_int_equal(grpc_outcome("8", "quota of the tenant", NULL).verdict, FINAL);
    assert_int_equal(grpc_outcome("11", "the seek was too far", NULL).verdict, RETRY);
}

/* ---- partial success ------------------------------------------------------------------- */

static void assert_partial(const struct oteli_outcome *outcome, uint64_t rejected,
                           const char *message)
{
    assert_int_equal(outcome->verdict, DELIVERED);
    assert_int_equal(outcome->rejected, rejected);
    assert_string_equal(outcome->message, message);
}

/* The Content-Type of the answer wins where it is one of ours. */
TEST(the_answer_says_how_it_is_encoded)
{
    struct oteli_transport_response answer = {.status = 200,
                                              .body = text_body("\x0a\x07\x08\x03\x12\x03o\nd")};
    answer.content_type = "application/x-protobuf";
    struct oteli_outcome outcome = read_answer(OTEL_OTLP_HTTP_JSON, answer);
    assert_partial(&outcome, 3, "o d");
    answer.content_type = "text/html";
    outcome = read_answer(OTEL_OTLP_HTTP_PROTOBUF, answer);
    assert_partial(&outcome, 3, "o d");

    answer.body = text_body("{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"old\"}}");
    answer.content_type = "Application/JSON; charset=utf-8";
    outcome = read_answer(OTEL_OTLP_HTTP_PROTOBUF, answer);
    assert_partial(&outcome, 3, "old");
    answer.content_type = "application/x-protobuf";
    outcome = read_answer(OTEL_OTLP_HTTP_JSON, answer);
    assert_partial(&outcome, 0, "");
}

/* Servers compress as the request was compressed. R25: what comes out is read as far as a small
 * buffer goes. */
TEST(a_compressed_answer_of_grpc_is_read)
{
    /* gzip of ExportTraceServiceResponse {partial_success {rejected_spans: 3}} */
    static const uint8_t body[] = {1,    0,    0,    0,    24,   0x1f, 0x8b, 0x08, 0x00, 0x00,
                                   0x00, 0x00, 0x00, 0x02, 0xff, 0xe3, 0x62, 0xe2, 0x60, 0x06,
                                   0x00, 0xa4, 0x30, 0xad, 0x1c, 0x04, 0x00, 0x00, 0x00};
    struct oteli_transport_response answer = {
        .status = 200, .grpc_status = "0", .body = {body, sizeof body, false}};
    struct oteli_outcome outcome = read_answer(OTEL_OTLP_GRPC, answer);
    assert_partial(&outcome, 3, "");

    static const uint8_t unknown[] = {1, 0, 0, 0, 4, 'l', 'z', '4', '!'};
    answer.body = (struct oteli_response_body){unknown, sizeof unknown, false};
    outcome = read_answer(OTEL_OTLP_GRPC, answer);
    assert_partial(&outcome, 0, "");
}

/* ---- what is said about it --------------------------------------------------------------- */

/* spec: X11 otlp#failures-2 SHOULD stable */
TEST(the_text_of_an_error_is_shown)
{
    static const struct {
        const char *body;
        const char *problem;
    } bodies[] = {
        {"", "HTTP status 403"},
        {"\x08\x07\x12\x0eno such tenant", "HTTP status 403: no such tenant"},
        {"{\"code\":7,\"message\":\"no \\\"such\\\" tenant\"}",
         "HTTP status 403: no \"such\" tenant"},
        {"{\"message\":{\"a\":3}}", "HTTP status 403: {\"message\":{\"a\":3}}"},
        {" {\"error\":\"denied\"}\n", "HTTP status 403: {\"error\":\"denied\"}"},
        {"\n\nForbidden\r\n", "HTTP status 403: Forbidden"},
        {"<html>\n<h1>403</h1></html>\n", "HTTP status 403: <html> <h1>403</h1></html>"},
        {"\x1b[2J\xc2\x9b\x31mred", "HTTP status 403: [2J  1mred"},
        {"\xff\xfe\x01", "HTTP status 403"},
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const struct oteli_outcome outcome = read_answer(
            OTEL_OTLP_HTTP_PROTOBUF,
            (struct oteli_transport_response){.status = 403, .body = text_body(bodies[i].body)});
        assert_string_equal(outcome.problem, bodies[i].problem);
    }
}

/* spec: X11 otlp#failures-1 SHOULD stable */
TEST(the_message_of_grpc_is_decoded_and_shown)
{
    const struct oteli_outcome outcome = grpc_outcome("7", "Gr%C3%BC%c3%9fe%0A100%25 %zz%4", NULL);
    assert_string_equal(outcome.problem, "gRPC status 7 (PERMISSION_DENIED): "
                                         "Gr\xc3\xbc\xc3\x9f"
                                         "e 100% %zz%4");
}

TEST(long_texts_are_cut_between_characters)
{
    char text[2000];
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa4", 3);
    for (size_t skipped = 0; skipped < 4; skipped += 2) {
        struct oteli_transport_response answer = {.status = 500, .body = text_body(text + skipped)};
        const struct oteli_outcome http = read_answer(OTEL_OTLP_HTTP_JSON, answer);
        const struct oteli_outcome grpc = grpc_outcome("13", text + skipped, NULL);
        assert_true(strlen(http.problem) >= sizeof http.problem - 3);
        assert_true(oteli_utf8_is_valid(http.problem, strlen(http.problem)));
        assert_true(strlen(grpc.problem) >= sizeof grpc.problem - 3);
        assert_true(oteli_utf8_is_valid(grpc.problem, strlen(grpc.problem)));
    }
}
