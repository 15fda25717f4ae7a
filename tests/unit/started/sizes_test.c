/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/sizes_test.c - programs that were built with another version of the headers:
 * of the structs that begin with `size` a shorter one is not read or written behind its end, and
 * of a longer one what we do not know does not matter. docs/ABI.md has the rules. */
#include "tests/support/guarded.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <otel/file.h>
#include <otel/http.h>
#include <otel/jaeger_remote.h>
#include <otel/lines.h>
#include <otel/metrics.h>
#include <otel/otlp.h>
#include <otel/otlp_encode.h>
#include <otel/record.h>
#include <otel/sampler.h>
#include <otel/spool.h>
#include <string.h>

enum { MORE = 64, LARGEST = 2048, CANARY = 0xA5 };

AROUND_EACH(traced_setup, traced_teardown);

static size_t exported(void)
{
    assert_int_equal(otel_flush(60000), OTEL_OK);
    return otel_memory_count(traced.memory);
}

/* --- options: what each call makes of a valid one --- */

static bool use_tracer(const void *options)
{
    const otel_tracer_options known = {.size = sizeof known, .schema_url = "http://s"};
    return otel_tracer_get_with("a", NULL, options) == otel_tracer_get_with("a", NULL, &known);
}

static bool use_span(const void *options)
{
    const size_t before = exported();
    otel_span_end(otel_span_enter(traced.tracer, "span", options));
    otel_span_end(otel_span_start(traced.tracer, "span", options));
    return exported() == before + 2;
}

static bool use_http(const void *options)
{
    const size_t before = exported();
    otel_http_server_end(otel_http_server_enter(traced.tracer, "GET", "/", options), 200, NULL);
    otel_http_client_end(otel_http_client_start(traced.tracer, "GET", "/", options), 200, NULL);
    return exported() == before + 2;
}

static bool use_finished(const void *span)
{
    const size_t before = exported();
    otel_span_record(traced.tracer, span);
    return exported() == before + 1;
}

static bool use_mount(const void *options)
{
    const size_t before = exported();
    const otel_span parent = otel_span_start(traced.tracer, "parent", NULL);
    otel_lines_begin();
    traced_touch("collected");
    otel_lines *lines = otel_lines_end();
    otel_lines_mount(lines, &parent, 1, options);
    otel_lines_free(lines);
    otel_span_end(parent);
    return exported() == before + 2;
}

static bool use_sdk(const void *options)
{
    traced_stop();
    const bool is_started = otel_start(options) == OTEL_OK;
    (void)!otel_shutdown(60000);
    traced_start(&(otel_sdk_options){.size = sizeof(otel_sdk_options), .simple = true});
    return is_started;
}

static bool free_sampler(otel_status status, const otel_sampler *sampler)
{
    if (status == OTEL_OK && sampler->free != NULL)
        sampler->free(sampler->state);
    return status == OTEL_OK;
}

static bool use_parent_based(const void *options)
{
    otel_sampler sampler;
    return free_sampler(otel_sampler_parent_based(options, &sampler), &sampler);
}

static bool use_jaeger(const void *options)
{
    otel_sampler sampler;
    return free_sampler(otel_sampler_jaeger_remote(options, &sampler), &sampler);
}

static bool use_file(const void *options)
{
    otel_exporter exporter;
    if (otel_file_exporter_new(options, &exporter) != OTEL_OK)
        return false;
    exporter.free(exporter.state);
    return true;
}

static bool use_otlp(const void *options)
{
    otel_exporter exporter;
    otel_otlp_encoder *encoder;
    if (otel_otlp_exporter_new(options, &exporter) != OTEL_OK)
        return false;
    exporter.free(exporter.state);
    if (otel_otlp_encoder_new(options, &encoder) != OTEL_OK)
        return false;
    otel_otlp_encoder_free(encoder);
    return true;
}

static bool use_response(const void *response)
{
    otel_otlp_answer answer = {.size = sizeof answer};
    otel_otlp_read_answer(OTEL_OTLP_HTTP_PROTOBUF, response, &answer);
    return answer.verdict == OTEL_OTLP_DELIVERED;
}

/* Of each struct one that is valid; the older one ends where `older` says. */
#define OPTIONS(type, first_left_out, function, ...)                                  \
    {                                                                                 \
        .name = #type, .size = sizeof(type), .older = offsetof(type, first_left_out), \
        .use = function, .whole = &(const type)                                       \
        {                                                                             \
            .size = sizeof(type), __VA_ARGS__                                         \
        }                                                                             \
    }
static const struct options_case {
    const char *name;
    size_t size;
    size_t older;
    bool (*use)(const void *options);
    const void *whole;
} options_cases[] = {
    OPTIONS(otel_tracer_options, attributes, use_tracer, .schema_url = "http://s"),
    OPTIONS(otel_span_options, hold, use_span, .kind = OTEL_SPAN_KIND_SERVER),
    OPTIONS(otel_http_options, known_methods, use_http, .start_ns = 1),
    OPTIONS(otel_finished_span, status, use_finished, .flags = 1, .name = "n", .end_ns = 2),
    OPTIONS(otel_mount_options, linked, use_mount, .linked = NULL),
    OPTIONS(otel_sdk_options, simple, use_sdk, .traces_exporter = "none"),
    OPTIONS(otel_parent_based_options, remote_parent_sampled, use_parent_based,
            .root = {.size = sizeof(otel_sampler), .sample = NULL}),
    OPTIONS(otel_jaeger_remote_options, polling_interval_ms, use_jaeger, .service_name = "s"),
    OPTIONS(otel_file_options, max_bytes, use_file, .path = NULL),
    OPTIONS(otel_otlp_options, headers, use_otlp, .endpoint = "http://localhost:1/v1/traces"),
    OPTIONS(otel_otlp_response, content_type, use_response, .http_status = 200),
};

/* Copies of a valid struct with another size, and with nothing, or anything, behind it. */
static void use_both(const struct options_case *row, const void *whole)
{
    char longer[LARGEST];
    const size_t longer_size = row->size + MORE;
    assert_true(longer_size <= sizeof longer);
    memset(longer, CANARY, sizeof longer);
    memcpy(longer, whole, row->size);
    memcpy(longer, &longer_size, sizeof longer_size);
    char *shorter = guarded_copy(whole, row->older);
    memcpy(shorter, &row->older, sizeof row->older);
    print_message("%s\n", row->name);
    assert_true(row->use(whole));
    assert_true(row->use(shorter));
    assert_true(row->use(longer));
}

TEST(shorter_and_longer_options_work)
{
    for (size_t i = 0; i < sizeof options_cases / sizeof options_cases[0]; i++) {
        char whole[LARGEST];
        memcpy(whole, options_cases[i].whole, options_cases[i].size);
        if (options_cases[i].use == use_parent_based)
            ((otel_parent_based_options *)(void *)whole)->root = otel_sampler_always_on();
        use_both(&options_cases[i], whole);
    }
}

TEST(constructors_refuse_options_without_a_size)
{
    static bool (*const refusing[])(const void *) = {use_sdk, use_parent_based, use_jaeger,
                                                     use_file, use_otlp};
    static const char nothing[LARGEST];
    for (size_t i = 0; i < sizeof refusing / sizeof refusing[0]; i++)
        assert_false(refusing[i](nothing));
}

/* --- results --- */

static bool read_stats(void *result)
{
    return otel_stats_read(0, result) == OTEL_OK;
}

static bool read_metric(void *result)
{
    size_t cursor = 0;
    return otel_metric_next(&cursor, result);
}

static bool read_spool(void *result)
{
    return otel_spool_stats_read(result) == OTEL_OK;
}

static bool read_answer(void *result)
{
    const otel_otlp_response response = {.size = sizeof response, .http_status = 200};
    otel_otlp_read_answer(OTEL_OTLP_HTTP_PROTOBUF, &response, result);
    return true;
}

#define RESULT(type, first_left_out, function)                        \
    {                                                                 \
#type, sizeof(type), offsetof(type, first_left_out), function \
    }
static const struct result_case {
    const char *name;
    size_t size;
    size_t older;
    bool (*read)(void *result);
} result_cases[] = {
    RESULT(otel_stats, withheld, read_stats),
    RESULT(otel_metric, sum, read_metric),
    RESULT(otel_spool_stats, expired, read_spool),
    RESULT(otel_otlp_answer, rejected, read_answer),
};

TEST(nothing_is_written_behind_the_size_of_a_result)
{
    for (size_t i = 0; i < sizeof result_cases / sizeof result_cases[0]; i++) {
        const struct result_case *row = &result_cases[i];
        const size_t longer_size = row->size + MORE;
        char whole[LARGEST], longer[LARGEST];
        memset(longer, CANARY, sizeof longer);
        memset(whole, CANARY, sizeof whole);
        memcpy(longer, &longer_size, sizeof longer_size);
        memcpy(whole, &row->size, sizeof row->size);
        char *shorter = guarded_copy(whole, row->older);
        memcpy(shorter, &row->older, sizeof row->older);
        print_message("%s\n", row->name);

        assert_true(row->read(whole));
        assert_true(row->read(shorter));
        assert_true(row->read(longer));

        assert_memory_equal(shorter + sizeof(size_t), whole + sizeof(size_t),
                            row->older - sizeof(size_t));
        assert_memory_equal(longer + sizeof(size_t), whole + sizeof(size_t),
                            row->size - sizeof(size_t));
        for (size_t k = row->size; k < longer_size; k++)
            assert_int_equal((uint8_t)longer[k], CANARY);
    }
}

TEST(a_result_without_a_size_is_refused)
{
    char nothing[LARGEST] = {0};
    assert_false(read_stats(nothing));
    assert_false(read_metric(nothing));
    assert_false(read_spool(nothing));
    read_answer(nothing);
    for (size_t i = 0; i < sizeof nothing; i++)
        assert_int_equal(nothing[i], 0);
}
