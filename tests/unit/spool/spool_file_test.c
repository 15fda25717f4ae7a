/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/spool/spool_file_test.c - specification of exporters/otlp/spool/spool_file.c and
 * spool_part.c: nothing that was cut or changed passes for a request; parts of a request have its
 * spans, once each, with their resources and scopes, as protobuf-c reads them. */
#include "exporters/otlp/encode/request_split.h"
#include "exporters/otlp/spool/spool_file.h"

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 100, SIZE = OTELI_SPOOL_HEAD + LENGTH };

static const struct oteli_spool_file known = {.written_unix_ns = UINT64_C(1700000000123456789),
                                              .id = UINT64_C(0xfedcba9876543210),
                                              .spans = 512,
                                              .length = LENGTH};
static const char known_name[] = "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp";

static void make(uint8_t content[SIZE], otel_otlp_protocol format)
{
    for (size_t i = 0; i < LENGTH; i++)
        content[OTELI_SPOOL_HEAD + i] = (uint8_t)(i * 37);
    oteli_spool_head_write(&known, format, content + OTELI_SPOOL_HEAD, content);
}

static enum oteli_spool_content check(const void *content, size_t size)
{
    return oteli_spool_content_check(&known, OTEL_OTLP_HTTP_PROTOBUF, content, size);
}

TEST(a_name_says_what_is_in_the_file)
{
    char name[OTELI_SPOOL_NAME];
    struct oteli_spool_file file;

    oteli_spool_name_write(&known, OTELI_SPOOL_WHOLE, name);
    assert_string_equal(name, known_name);
    assert_int_equal(oteli_spool_name_read(name, &file), OTELI_SPOOL_WHOLE);

    assert_memory_equal(&file, &known, sizeof file);
}

TEST(names_sort_by_time)
{
    static const struct oteli_spool_file files[] = {
        {.written_unix_ns = 9, .id = UINT64_MAX},
        {.written_unix_ns = 10, .id = 1},
        {.written_unix_ns = 10, .id = 2, .spans = 1},
        {.written_unix_ns = 10, .id = 2, .spans = 2, .length = 1},
        {.written_unix_ns = 10, .id = 2, .spans = 2, .length = 2},
        {.written_unix_ns = UINT64_C(1) << 63, .id = 0}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
            char one[OTELI_SPOOL_NAME];
            char other[OTELI_SPOOL_NAME];
            oteli_spool_name_write(&files[i], OTELI_SPOOL_WHOLE, one);
            oteli_spool_name_write(&files[k], OTELI_SPOOL_WHOLE, other);

            const int by_name = strcmp(one, other);
            const int by_file = oteli_spool_file_compare(&files[i], &files[k]);

            assert_int_equal((by_name > 0) - (by_name < 0), by_file);
        }
}

TEST(other_names_are_not_ours)
{
    static const char *const names[] = {
        "",
        "lock",
        ".otlp",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp ",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlpx",
        "17979cfe3d85cd15-fedcba9876543210-00000200-00000064.tmp2",
        "17979CFE3D85CD15-fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd1-fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd15_fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd15-fedcba9876543210-00000200-0000006g.otlp",
        " 7979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp",
        "17979cfe3d85cd15-",
        "../979cfe3d85cd15-fedcba9876543210-00000200-00000064.otlp"};
    struct oteli_spool_file file;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(oteli_spool_name_read(names[i], &file), OTELI_SPOOL_OTHER);
}

TEST(a_file_that_is_torn_anywhere_is_noticed)
{
    uint8_t content[SIZE + 1] = {0};
    make(content, OTEL_OTLP_HTTP_PROTOBUF);

    for (size_t size = 0; size < SIZE; size++)
        assert_int_equal(check(content, size), OTELI_SPOOL_TORN);
    assert_int_equal(check(content, SIZE + 1), OTELI_SPOOL_TORN);
    for (size_t from = 0; from < SIZE; from++) { /* zeros, where a disk did not get to */
        make(content, OTEL_OTLP_HTTP_PROTOBUF);
        memset(content + from, 0, SIZE - from);
        assert_int_equal(check(content, SIZE), OTELI_SPOOL_TORN);
    }
}

TEST(a_file_with_any_bit_changed_is_noticed)
{
    uint8_t content[SIZE];
    make(content, OTEL_OTLP_HTTP_PROTOBUF);
    for (size_t bit = 0; bit < 8 * (size_t)SIZE; bit++) {
        content[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_not_equal(check(content, SIZE), OTELI_SPOOL_GOOD);
        content[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    assert_int_equal(check(content, SIZE), OTELI_SPOOL_GOOD);
}

TEST(a_good_file_under_another_name_is_noticed)
{
    uint8_t content[SIZE];
    make(content, OTEL_OTLP_HTTP_PROTOBUF);
    struct oteli_spool_file others[] = {known, known, known};
    others[0].id++;
    others[1].spans++;
    others[2].length--;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(
            oteli_spool_content_check(&others[i], OTEL_OTLP_HTTP_PROTOBUF, content, SIZE),
            OTELI_SPOOL_TORN);
}

/* The wall clock was set since it was written. */
TEST(a_file_may_get_another_time)
{
    uint8_t content[SIZE];
    make(content, OTEL_OTLP_HTTP_PROTOBUF);
    struct oteli_spool_file later = known;
    later.written_unix_ns++;

    assert_int_equal(oteli_spool_content_check(&later, OTEL_OTLP_HTTP_PROTOBUF, content, SIZE),
                     OTELI_SPOOL_GOOD);
}

TEST(the_other_format_is_somebody_elses)
{
    uint8_t content[SIZE];
    make(content, OTEL_OTLP_HTTP_JSON);
    assert_int_equal(check(content, SIZE), OTELI_SPOOL_FOREIGN);

    make(content, OTEL_OTLP_GRPC); /* whose requests are the same bytes */
    assert_int_equal(check(content, SIZE), OTELI_SPOOL_GOOD);
}

/* ---- parts ---- */

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request_pb;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans resource_spans_pb;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans scope_spans_pb;
typedef Opentelemetry__Proto__Trace__V1__Span span_pb;

enum { RESOURCES = 3, SCOPES = 2, SPANS = 4, ALL = RESOURCES * SCOPES * SPANS };

/* Spans are called 0, 1, …; schema URLs say whose they are. One scope has none. */
static uint8_t *make_request(size_t *length)
{
    static char names[ALL][24];
    static char urls[RESOURCES * SCOPES][24];
    static span_pb spans[ALL];
    static span_pb *span_at[ALL];
    static scope_spans_pb scopes[RESOURCES * SCOPES + 1];
    static scope_spans_pb *scope_at[RESOURCES * SCOPES + 1];
    static resource_spans_pb resources[RESOURCES];
    static resource_spans_pb *resource_at[RESOURCES];
    request_pb request;
    for (size_t i = 0; i < ALL; i++) {
        opentelemetry__proto__trace__v1__span__init(&spans[i]);
        snprintf(names[i], sizeof names[i], "%zu", i);
        spans[i].name = names[i];
        span_at[i] = &spans[i];
    }
    for (size_t i = 0; i <= RESOURCES * SCOPES; i++) {
        opentelemetry__proto__trace__v1__scope_spans__init(&scopes[i]);
        scope_at[i] = &scopes[i];
        if (i == RESOURCES * SCOPES)
            break;
        snprintf(urls[i], sizeof urls[i], "s%zu", i);
        scopes[i].schema_url = urls[i];
        scopes[i].spans = &span_at[i * SPANS];
        scopes[i].n_spans = SPANS;
    }
    for (size_t i = 0; i < RESOURCES; i++) {
        opentelemetry__proto__trace__v1__resource_spans__init(&resources[i]);
        resources[i].schema_url = urls[i * SCOPES];
        resources[i].scope_spans = &scope_at[i * SCOPES];
        resources[i].n_scope_spans = SCOPES + (i + 1 == RESOURCES);
        resource_at[i] = &resources[i];
    }
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__init(&request);
    request.resource_spans = resource_at;
    request.n_resource_spans = RESOURCES;
    uint8_t *bytes = malloc(
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__get_packed_size(
            &request));
    *length = opentelemetry__proto__collector__trace__v1__export_trace_service_request__pack(
        &request, bytes);
    return bytes;
}

static void check_scope(const scope_spans_pb *scope, const char *resource_url, size_t *next)
{
    assert_true(scope->n_spans != 0);
    for (size_t i = 0; i < scope->n_spans; i++, ++*next) {
        char wanted[24];
        snprintf(wanted, sizeof wanted, "%zu", *next);
        assert_string_equal(scope->spans[i]->name, wanted);
        snprintf(wanted, sizeof wanted, "s%zu", *next / SPANS);
        assert_string_equal(scope->schema_url, wanted);
        snprintf(wanted, sizeof wanted, "s%zu", *next / SPANS / SCOPES * SCOPES);
        assert_string_equal(resource_url, wanted);
    }
}

/* The part has spans `first` to `end`, and nothing that has none. */
static void check_part(const uint8_t *bytes, size_t length, size_t first, size_t end)
{
    uint8_t *part = malloc(length);
    const size_t size = oteli_request_part(bytes, length, first, end - first, part);
    assert_int_equal(size, oteli_request_part(bytes, length, first, end - first, NULL));
    assert_true(size <= length);
    request_pb *request =
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(NULL, size,
                                                                                         part);
    assert_non_null(request);
    for (size_t i = 0; i < request->n_resource_spans; i++) {
        const resource_spans_pb *resource = request->resource_spans[i];
        assert_true(resource->n_scope_spans != 0);
        for (size_t k = 0; k < resource->n_scope_spans; k++)
            check_scope(resource->scope_spans[k], resource->schema_url, &first);
    }
    assert_int_equal(first, end);
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__free_unpacked(request,
                                                                                            NULL);
    free(part);
}

TEST(any_part_has_its_spans_with_their_resources_and_scopes)
{
    size_t length;
    uint8_t *bytes = make_request(&length);
    assert_int_equal(oteli_request_spans(bytes, length), ALL);
    for (size_t first = 0; first < ALL; first++)
        for (size_t end = first + 1; end <= ALL; end++)
            check_part(bytes, length, first, end);
    free(bytes);
}

TEST(beyond_its_spans_there_is_no_part)
{
    size_t length;
    uint8_t *bytes = make_request(&length);
    assert_int_equal(oteli_request_part(bytes, length, ALL, 1, NULL), 0);
    assert_int_equal(oteli_request_part(bytes, length, 0, 0, NULL), 0);
    assert_int_equal(oteli_request_spans(bytes, 0), 0);
    free(bytes);
}

/* A cut between two resources leaves a request; any other leaves none. */
TEST(what_is_cut_short_has_no_parts)
{
    size_t length;
    uint8_t *bytes = make_request(&length);
    size_t requests = 0;
    for (size_t cut = 1; cut < length; cut++) {
        uint8_t *exact = malloc(cut);
        memcpy(exact, bytes, cut);
        requests += oteli_request_spans(exact, cut) != 0;
        free(exact);
    }
    assert_int_equal(requests, RESOURCES - 1);
    free(bytes);
}
