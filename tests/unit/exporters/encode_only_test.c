/* SPDX-License-Identifier: Apache-2.0 */
/* A program that does its own I/O gets the bytes that the exporter sends, and reads answers as the
 * exporter does. */
#include <otel/otlp_encode.h>

#include "exporters/otlp/encode/compress.h"
#include "tests/support/batch_double.h"
#include "tests/support/fault_peer.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include "tests/support/wire_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const otel_scope_view scope = {.name = {"s", 1}, .otlp = {"\x0a\x01s", 3}};

/* A span that is named by its number, padded to some length. */
static void add_span(struct batch_double *batch, int name_length)
{
    const otel_slice span =
        wire_text("2x01020304%08zx 5'%zu-%0*d'", batch->size, batch->size, name_length, 0);
    batch_double_add(batch, &scope, span.data, span.length);
}

static otel_otlp_encoder *new_encoder(otel_otlp_protocol protocol,
                                      otel_otlp_compression compression, size_t max_request_bytes)
{
    otel_otlp_encoder *encoder;
    assert_int_equal(
        otel_otlp_encoder_new(OTEL_OTLP_OPTIONS(.protocol = protocol, .compression = compression,
                                                .max_request_bytes = max_request_bytes),
                              &encoder),
        OTEL_OK);
    return encoder;
}

static void deliver(const struct batch_double *batch, const otel_otlp_options *options)
{
    otel_exporter exporter;
    struct export_double call = export_double_of(batch, UINT64_MAX);
    assert_int_equal(otel_otlp_exporter_new(options, &exporter), OTEL_OK);
    otel_export_result result = exporter.export_batch(exporter.state, &call.export);
    while (result == OTEL_EXPORT_PENDING)
        result = exporter.poll(exporter.state, &call.export, 1000, false);
    assert_int_equal(export_double_lost(&call), 0);
    exporter.free(exporter.state);
}

/* The headers are sent as well, whatever else there is. */
static void assert_same_headers(const otel_otlp_encoder *encoder,
                                const struct fault_peer_request *request)
{
    size_t count;
    char value[100];
    const otel_otlp_header *headers = otel_otlp_encoder_headers(encoder, &count);
    assert_true(count >= 1);
    assert_string_equal(headers[0].name, "Content-Type");
    for (size_t i = 0; i < count; i++)
        assert_string_equal(fault_request_header(request, headers[i].name, value, sizeof value),
                            headers[i].value);
}

static void assert_same_bytes(const struct batch_double *batch, otel_otlp_protocol protocol,
                              otel_otlp_compression compression)
{
    struct fault_peer *peer = fault_peer_start(NULL);
    const bool is_grpc = protocol == OTEL_OTLP_GRPC;
    deliver(batch,
            OTEL_OTLP_OPTIONS(.endpoint = is_grpc ? fault_peer_origin(peer) : fault_peer_url(peer),
                              .protocol = protocol, .compression = compression, .proxy = ""));
    const struct fault_peer_request *request = fault_peer_request(peer, 0);
    assert_non_null(request);
    otel_otlp_encoder *encoder = new_encoder(protocol, compression, 0);
    size_t count;
    otel_slice bytes;
    assert_int_equal(
        otel_otlp_encode(encoder, batch_double_view(batch), 0, SIZE_MAX, &count, &bytes), OTEL_OK);
    assert_int_equal(count, batch->size);
    assert_int_equal(bytes.length, request->body_length);
    assert_memory_equal(bytes.data, request->body, bytes.length);
    assert_same_headers(encoder, request);
    assert_non_null(strstr(request->head, is_grpc ? OTEL_OTLP_GRPC_PATH : "/v1/traces"));
    otel_otlp_encoder_free(encoder);
    fault_peer_stop(peer);
}

/* spec: X26 */
TEST(X26_the_bytes_are_those_that_the_exporter_sends)
{
    struct batch_double batch = {0};
    for (int i = 0; i < 20; i++)
        add_span(&batch, i);
    for (int protocol = 0; protocol <= OTEL_OTLP_GRPC; protocol++) {
        for (int compression = 0; compression <= OTEL_OTLP_COMPRESSION_ZSTD; compression++) {
            if (oteli_compression_is_known((otel_otlp_compression)compression))
                assert_same_bytes(&batch, (otel_otlp_protocol)protocol,
                                  (otel_otlp_compression)compression);
        }
    }
    batch_double_fini(&batch);
}

/* spec: X26 */
TEST(X26_a_batch_is_split_as_the_program_wants_it)
{
    struct batch_double batch = {0};
    for (int i = 0; i < 10; i++)
        add_span(&batch, i == 4 ? 3000 : 10);
    otel_otlp_encoder *encoder = new_encoder(OTEL_OTLP_GRPC, OTEL_OTLP_COMPRESSION_NONE, 1000);
    size_t count;
    otel_slice bytes;
    const otel_batch *view = batch_double_view(&batch);

    assert_int_equal(otel_otlp_encode(encoder, view, 0, 3, &count, &bytes), OTEL_OK);
    assert_int_equal(count, 3);
    assert_int_equal(otel_otlp_encode(encoder, view, 3, SIZE_MAX, &count, &bytes), OTEL_OK);
    assert_int_equal(count, 1);
    assert_true(bytes.length > 5);
    /* The one that is too large is left to the program. */
    assert_int_equal(otel_otlp_encode(encoder, view, 4, SIZE_MAX, &count, &bytes), OTEL_OK);
    assert_int_equal(count, 1);
    assert_int_equal(bytes.length, 0);
    assert_int_equal(otel_otlp_encode(encoder, view, 5, SIZE_MAX, &count, &bytes), OTEL_OK);
    assert_int_equal(count, 5);
    assert_int_equal(otel_otlp_encode(encoder, view, 10, 1, &count, &bytes),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(count, 0);
    otel_otlp_encoder_free(encoder);
    batch_double_fini(&batch);
}

TEST(no_memory_is_an_answer_and_what_cannot_be_another)
{
    struct batch_double batch = {0};
    otel_otlp_encoder *none;
    assert_int_equal(
        otel_otlp_encoder_new(OTEL_OTLP_OPTIONS(.compression = (otel_otlp_compression)3), &none),
        OTEL_ERROR_INVALID_ARGUMENT);
    assert_null(none);
    otel_otlp_encoder_free(none);
    add_span(&batch, 10);
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        otel_otlp_encoder *encoder;
        size_t count = 1;
        otel_slice bytes;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        otel_status status = otel_otlp_encoder_new(
            OTEL_OTLP_OPTIONS(.compression = OTEL_OTLP_COMPRESSION_GZIP), &encoder);
        if (status == OTEL_OK)
            status = otel_otlp_encode(encoder, batch_double_view(&batch), 0, 1, &count, &bytes);
        all_tried = !oteli_leaks_failed();
        assert_int_equal(status, all_tried ? OTEL_OK : OTEL_ERROR_NO_MEMORY);
        otel_otlp_encoder_free(encoder);
        oteli_leaks_check();
    }
    batch_double_fini(&batch);
}

/* ---- answers ---------------------------------------------------------------------------- */

static otel_otlp_answer read_answer(otel_otlp_protocol protocol, const otel_otlp_response *response)
{
    otel_otlp_answer answer = {.size = sizeof answer};
    otel_otlp_read_answer(protocol, response, &answer);
    assert_int_equal(answer.size, sizeof answer);
    return answer;
}

/* spec: X26 */
TEST(X26_answers_are_read_as_the_exporter_reads_them)
{
    otel_otlp_answer answer =
        read_answer(OTEL_OTLP_HTTP_PROTOBUF, OTEL_OTLP_RESPONSE(.http_status = 200));
    assert_int_equal(answer.verdict, OTEL_OTLP_DELIVERED);
    assert_string_equal(answer.text, "");

    static const char json[] =
        "{\"partialSuccess\":{\"rejectedSpans\":3,\"errorMessage\":\"old\"}}";
    answer = read_answer(OTEL_OTLP_HTTP_JSON,
                         OTEL_OTLP_RESPONSE(.http_status = 200, .body = {json, sizeof json - 1}));
    assert_int_equal(answer.verdict, OTEL_OTLP_DELIVERED);
    assert_int_equal(answer.rejected, 3);
    assert_string_equal(answer.text, "old");

    answer = read_answer(OTEL_OTLP_HTTP_JSON,
                         OTEL_OTLP_RESPONSE(.http_status = 429, .retry_after = "2"));
    assert_int_equal(answer.verdict, OTEL_OTLP_RETRY);
    assert_int_equal(answer.retry_after_ms, 2000);
    assert_false(answer.may_have_arrived);

    answer = read_answer(OTEL_OTLP_HTTP_JSON, OTEL_OTLP_RESPONSE(.may_have_arrived = true));
    assert_int_equal(answer.verdict, OTEL_OTLP_RETRY);
    assert_true(answer.may_have_arrived);
    assert_string_equal(answer.text, "no answer");

    answer = read_answer(OTEL_OTLP_HTTP_PROTOBUF, OTEL_OTLP_RESPONSE(.http_status = 413));
    assert_int_equal(answer.verdict, OTEL_OTLP_TOO_LARGE);

    answer = read_answer(OTEL_OTLP_GRPC, OTEL_OTLP_RESPONSE(.http_status = 200, .grpc_status = "16",
                                                            .grpc_message = "no%20token"));
    assert_int_equal(answer.verdict, OTEL_OTLP_REFUSED);
    assert_string_equal(answer.text, "gRPC status 16 (UNAUTHENTICATED): no token");
}

/* A program that was compiled with a shorter struct gets no more than that. */
TEST(an_answer_is_as_long_as_the_program_knows_it)
{
    struct {
        otel_otlp_answer answer;
        char behind[8];
    } given;
    memset(&given, 'x', sizeof given);
    given.answer.size = offsetof(otel_otlp_answer, text) + 8;
    otel_otlp_read_answer(OTEL_OTLP_HTTP_PROTOBUF, OTEL_OTLP_RESPONSE(.http_status = 404),
                          &given.answer);
    assert_memory_equal(given.answer.text, "HTTP sta", 8);
    assert_int_equal(given.answer.text[8], 'x');
}
