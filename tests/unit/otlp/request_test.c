/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever the protocol and the compression: what is sent can be opened again, and then it is the
 * spans; the limit counts before compression; and the steady state allocates nothing. */
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/encode/request.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/batch_double.h"
#include "tests/support/fault_peer_inside.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NO_LIMIT = 64 * 1024 * 1024, PROTOCOLS = 3, COMPRESSIONS = 3 };

static const otel_scope_view scopes[] = {
    {.name = {"a", 1},
     .otlp = {"\x0a\x01"
              "a",
              3}},
    {.name = {"b", 1},
     .otlp = {"\x0a\x01"
              "b",
              3}},
    {.otlp = {"", 0}},
};

/* A span that is named by its number, padded to some length. */
static void add_span(struct batch_double *batch, size_t scope, size_t name_length)
{
    Opentelemetry__Proto__Trace__V1__Span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    uint8_t trace_id[16] = {1};
    uint8_t id[8] = {1, 2, 3, 4, 5, 6, (uint8_t)(batch->size >> 8), (uint8_t)batch->size};
    char *name = malloc(name_length + 16);
    snprintf(name, name_length + 16, "%zu-%0*d", batch->size, (int)name_length, 0);
    span.name = name;
    span.trace_id = (ProtobufCBinaryData){sizeof trace_id, trace_id};
    span.span_id = (ProtobufCBinaryData){sizeof id, id};
    uint8_t *bytes = malloc(name_length + 100);
    const size_t length = opentelemetry__proto__trace__v1__span__pack(&span, bytes);
    batch_double_add(batch, &scopes[scope], bytes, length);
    free(bytes);
    free(name);
}

static struct batch_double make_batch(size_t count, size_t name_length)
{
    struct batch_double batch = {0};
    for (size_t i = 0; i < count; i++)
        add_span(&batch, i / 3 % 3, name_length);
    return batch;
}

/* The request is one of these spans, in whatever order, as it is sent and as it is kept: it is
 * opened as a receiver would. */
static void assert_holds(const struct oteli_request *request, otel_otlp_protocol protocol,
                         otel_otlp_compression compression, size_t first, size_t count)
{
    static const enum fault_format formats[] = {[OTEL_OTLP_HTTP_PROTOBUF] = FAULT_PROTOBUF,
                                                [OTEL_OTLP_HTTP_JSON] = FAULT_JSON,
                                                [OTEL_OTLP_GRPC] = FAULT_GRPC};
    static const char *const encodings[] = {[OTEL_OTLP_COMPRESSION_NONE] = "identity",
                                            [OTEL_OTLP_COMPRESSION_GZIP] = "gzip",
                                            [OTEL_OTLP_COMPRESSION_ZSTD] = "zstd"};
    struct fault_peer_request opened = {.body = request->bytes,
                                        .body_length = request->length,
                                        .format = formats[protocol],
                                        .encoding = encodings[compression]};
    struct fault_bytes ids = {0};
    if (protocol == OTEL_OTLP_GRPC)
        assert_int_equal(opened.body[0], compression != OTEL_OTLP_COMPRESSION_NONE);
    fault_uncover(&opened);
    assert_string_equal(opened.problem != NULL ? opened.problem : "", "");
    assert_int_equal(opened.plain_length, request->plain_length);
    assert_memory_equal(opened.plain, request->plain, opened.plain_length);
    fault_examine(&opened, &ids); /* which finds twins */
    assert_string_equal(opened.problem != NULL ? opened.problem : "", "");
    assert_int_equal(opened.spans, count);
    assert_int_equal(request->spans, count);
    for (const uint8_t *id = ids.data; id < ids.data + ids.length; id += 8)
        assert_in_range(id[6] << 8 | id[7], first, first + count - 1);
    fault_clear(&ids);
    free((void *)(uintptr_t)opened.plain);
}

/* Call for each protocol with each compression that there is. */
static void for_each(void (*check)(otel_otlp_protocol protocol, otel_otlp_compression compression))
{
    for (int protocol = 0; protocol < PROTOCOLS; protocol++) {
        for (int compression = 0; compression < COMPRESSIONS; compression++) {
            if (oteli_compression_is_known((otel_otlp_compression)compression))
                check((otel_otlp_protocol)protocol, (otel_otlp_compression)compression);
        }
    }
}

#define TEST_EACH(name)                                                               \
    static void name(otel_otlp_protocol protocol, otel_otlp_compression compression); \
    TEST(name)                                                                        \
    {                                                                                 \
        for_each(name);                                                               \
    }                                                                                 \
    static void name(otel_otlp_protocol protocol, otel_otlp_compression compression)

/* spec: X2 otlp#otlphttp-request MAY stable */
/* spec: X6 protocol/exporter.md#configuration-options MUST stable */
TEST_EACH(what_is_sent_are_the_spans)
{
    struct batch_double batch = make_batch(100, 30);
    struct oteli_request request;
    oteli_leaks_begin();
    assert_true(oteli_request_init(&request, protocol, compression, NO_LIMIT));

    assert_int_equal(oteli_request_make(&request, batch_double_view(&batch), 0, SIZE_MAX),
                     OTELI_ENCODE_OK);
    assert_holds(&request, protocol, compression, 0, 100);
    assert_int_equal(oteli_request_make(&request, batch_double_view(&batch), 40, 7),
                     OTELI_ENCODE_OK);
    assert_holds(&request, protocol, compression, 40, 7);

    oteli_request_fini(&request);
    oteli_leaks_check();
    batch_double_fini(&batch);
}

TEST_EACH(what_was_kept_is_sent_as_if_it_were_new)
{
    struct batch_double batch = make_batch(100, 30);
    struct oteli_request made, wrapped;
    assert_true(oteli_request_init(&made, protocol, OTEL_OTLP_COMPRESSION_NONE, NO_LIMIT));
    assert_int_equal(oteli_request_make(&made, batch_double_view(&batch), 0, SIZE_MAX),
                     OTELI_ENCODE_OK);
    oteli_leaks_begin();
    assert_true(oteli_request_init(&wrapped, protocol, compression, NO_LIMIT));

    assert_true(oteli_request_wrap(&wrapped, made.plain, made.plain_length, made.spans));
    assert_holds(&wrapped, protocol, compression, 0, 100);

    oteli_request_fini(&wrapped);
    oteli_leaks_check();
    oteli_request_fini(&made);
    batch_double_fini(&batch);
}

/* How long the plain bytes of these spans are. */
static size_t plain_length_of(const struct batch_double *batch, otel_otlp_protocol protocol,
                              size_t first, size_t count)
{
    struct oteli_request request;
    assert_true(oteli_request_init(&request, protocol, OTEL_OTLP_COMPRESSION_NONE, NO_LIMIT));
    assert_int_equal(oteli_request_make(&request, batch_double_view(batch), first, count),
                     OTELI_ENCODE_OK);
    const size_t length = request.plain_length;
    oteli_request_fini(&request);
    return length;
}

/* Every request is within the limit and holds as many spans as fit, and none is skipped unless it
 * alone does not fit. */
/* spec: X13 protocol/exporter.md#request-limits SHOULD stable */
TEST_EACH(the_limit_counts_before_compression)
{
    struct batch_double batch = make_batch(12, 20);
    add_span(&batch, 1, 500);
    for (size_t i = 0; i < 12; i++)
        add_span(&batch, i % 3, i * 7);
    oteli_leaks_begin();
    for (size_t limit = 20; limit < 3000; limit += 41) {
        struct oteli_request request;
        assert_true(oteli_request_init(&request, protocol, compression, limit));
        for (size_t first = 0; first < batch.size;) {
            const enum oteli_encode_result result =
                oteli_request_make(&request, batch_double_view(&batch), first, SIZE_MAX);
            assert_int_equal(result == OTELI_ENCODE_OK, request.bytes != NULL);
            if (result == OTELI_ENCODE_OK) {
                assert_true(request.plain_length <= limit);
                assert_holds(&request, protocol, compression, first, request.spans);
            } else {
                assert_int_equal(result, OTELI_ENCODE_TOO_LARGE);
                assert_int_equal(request.spans, 0);
            }
            const size_t left = batch.size - first;
            size_t more = request.spans + 1;
            if (protocol == OTEL_OTLP_HTTP_JSON && request.spans != 0) /* the number is halved */
                more = 2 * request.spans < left ? 2 * request.spans : left;
            if (request.spans < left)
                assert_true(plain_length_of(&batch, protocol, first, more) > limit);
            first += request.spans != 0 ? request.spans : 1;
        }
        oteli_request_fini(&request);
    }
    oteli_leaks_check();
    batch_double_fini(&batch);
}

TEST_EACH(the_steady_state_allocates_nothing)
{
    struct batch_double batch = make_batch(512, 100);
    struct oteli_request request;
    assert_true(oteli_request_init(&request, protocol, compression, NO_LIMIT));
    assert_int_equal(oteli_request_make(&request, batch_double_view(&batch), 0, SIZE_MAX),
                     OTELI_ENCODE_OK);
    struct oteli_request other;
    assert_true(oteli_request_init(&other, protocol, compression, NO_LIMIT));
    assert_true(oteli_request_wrap(&other, request.plain, request.plain_length, 512));

    oteli_leaks_begin();
    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(oteli_request_make(&request, batch_double_view(&batch), i, SIZE_MAX),
                         OTELI_ENCODE_OK);
        assert_true(oteli_request_wrap(&other, request.plain, request.plain_length, 512 - i));
    }

    assert_int_equal(oteli_leaks_count(), 0);
    oteli_leaks_check();
    oteli_request_fini(&request);
    oteli_request_fini(&other);
    batch_double_fini(&batch);
}

/* Many scopes, and names that can hardly be compressed: buffers and tables have to grow. */
TEST_EACH(no_memory_is_an_answer)
{
    static otel_scope_view many[100];
    struct batch_double batch = make_batch(50, 4000);
    uint32_t random = 1;
    for (size_t i = 0; i < 100; i++) {
        many[i] = scopes[0];
        struct batch_double_span *span = &batch.spans[i % 50];
        for (size_t k = 1; k < 4000; k++, random = random * 1664525 + 1013904223)
            span->bytes[span->length - k] = (uint8_t)('A' + (random >> 28));
        batch_double_add(&batch, &many[i], span->bytes, span->length);
    }
    struct oteli_request kept;
    assert_true(oteli_request_init(&kept, protocol, OTEL_OTLP_COMPRESSION_NONE, NO_LIMIT));
    assert_int_equal(oteli_request_make(&kept, batch_double_view(&batch), 0, SIZE_MAX),
                     OTELI_ENCODE_OK);
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        struct oteli_request request;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        bool is_done = oteli_request_init(&request, protocol, compression, NO_LIMIT);
        if (is_done) {
            const enum oteli_encode_result result =
                oteli_request_make(&request, batch_double_view(&batch), 0, SIZE_MAX);
            assert_true(result == OTELI_ENCODE_OK || result == OTELI_ENCODE_NO_MEMORY);
            assert_int_equal(result == OTELI_ENCODE_OK, request.bytes != NULL);
            is_done = result == OTELI_ENCODE_OK &&
                      oteli_request_wrap(&request, kept.plain, kept.plain_length, 50);
            oteli_request_fini(&request);
        }
        all_tried = !oteli_leaks_failed();
        assert_int_equal(is_done, all_tried);
        oteli_leaks_check();
    }
    oteli_request_fini(&kept);
    batch_double_fini(&batch);
}

/* A request is a copy of its spans, so large ones are made one after the other. */
TEST_EACH(large_spans_go_in_requests_of_a_mebibyte)
{
    struct batch_double batch = make_batch(60, 40000);
    add_span(&batch, 0, 3 * 1024 * 1024);
    struct oteli_request request;
    assert_true(oteli_request_init(&request, protocol, compression, NO_LIMIT));
    size_t requests = 0;
    for (size_t first = 0; first < batch.size; first += request.spans) {
        assert_int_equal(oteli_request_make(&request, batch_double_view(&batch), first, SIZE_MAX),
                         OTELI_ENCODE_OK);
        assert_true(request.plain_length <= 1024 * 1024 || request.spans == 1);
        requests++;
    }
    assert_true(requests <= (protocol == OTEL_OTLP_HTTP_JSON ? 7 : 5));
    oteli_request_fini(&request);
    batch_double_fini(&batch);
}

/* ---- compression alone ---- */

enum { ROOM_BEFORE = 5, MEBIBYTE = 1024 * 1024 };

static const otel_otlp_compression compressions[] = {OTEL_OTLP_COMPRESSION_GZIP,
                                                     OTEL_OTLP_COMPRESSION_ZSTD};

/* Bytes that can be compressed a little (of 16 values each), or not at all. */
static uint8_t *make_bytes(size_t length, bool is_noise)
{
    uint8_t *bytes = malloc(length + 1);
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < length; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        bytes[i] = (uint8_t)(is_noise ? random : random & 15);
    }
    return bytes;
}

static void assert_comes_back(struct oteli_compressor *compressor, const uint8_t *bytes,
                              size_t length)
{
    size_t compressed_length;
    bool is_whole;
    uint8_t *compressed =
        oteli_compress(compressor, bytes, length, ROOM_BEFORE, &compressed_length);
    assert_non_null(compressed);
    memset(compressed - ROOM_BEFORE, 0xff, ROOM_BEFORE);
    uint8_t *out = malloc(length + 1);
    assert_int_equal(oteli_decompress(compressed, compressed_length, out, length + 1, &is_whole),
                     length);
    assert_true(is_whole);
    assert_memory_equal(out, bytes, length);
    free(out);
}

TEST(what_was_compressed_comes_back)
{
    static const size_t lengths[] = {0, 1, 100, 8191, 65536, 300000, 3 * MEBIBYTE};
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        oteli_leaks_begin();
        struct oteli_compressor *compressor = oteli_compressor_new(compressions[c]);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            for (int is_noise = 0; is_noise < 2; is_noise++) {
                uint8_t *bytes = make_bytes(lengths[i], is_noise != 0);
                assert_comes_back(compressor, bytes, lengths[i]);
                free(bytes);
            }
        }
        oteli_compressor_free(compressor);
        oteli_leaks_check();
    }
}

TEST(broken_bytes_end_where_they_break)
{
    uint8_t *bytes = make_bytes(20000, false);
    uint8_t out[20000];
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        struct oteli_compressor *compressor = oteli_compressor_new(compressions[c]);
        size_t length;
        bool is_whole = true;
        const uint8_t *compressed = oteli_compress(compressor, bytes, 20000, 0, &length);
        for (size_t cut = 0; cut < length; cut += 97) {
            uint8_t *copy = malloc(cut + 1);
            memcpy(copy, compressed, cut);
            const size_t got = oteli_decompress(copy, cut, out, sizeof out, &is_whole);
            assert_false(is_whole);
            assert_true(got <= sizeof out);
            assert_memory_equal(out, bytes, got);
            free(copy);
        }
        assert_int_equal(oteli_decompress(compressed, length, out, 100, &is_whole), 100);
        assert_false(is_whole);
        assert_memory_equal(out, bytes, 100);
        oteli_compressor_free(compressor);
    }
    bool is_whole = true;
    assert_int_equal(oteli_decompress("spans", 5, out, sizeof out, &is_whole), 0);
    assert_false(is_whole);
    free(bytes);
}
