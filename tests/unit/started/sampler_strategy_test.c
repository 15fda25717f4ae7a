/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/sampler_strategy_test.c - specification of
 * exporters/jaeger_sampler/strategy.h, jaeger_url.h and json_reader.h. */
#include "exporters/jaeger_sampler/jaeger_url.h"
#include "exporters/jaeger_sampler/strategy.h"
#include "exporters/otlp/protocol/json_reader.h"

#include "common/text/text.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define RATE(rate) "{\"strategyType\":1,\"rateLimitingSampling\":{\"maxTracesPerSecond\":" rate "}}"

static struct oteli_strategy *parse(const char *json)
{
    return oteli_strategy_parse(json, strlen(json));
}

static bool samples(struct oteli_strategy *strategy, const char *operation, uint8_t high,
                    uint64_t now_ns)
{
    uint8_t trace_id[16] = {1};
    trace_id[8] = high;
    return oteli_strategy_samples(strategy, oteli_slice_of(operation), trace_id, now_ns);
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_a_probability_decides_by_the_trace_id)
{
    static const char *const answers[] = {
        "{\"strategyType\":\"PROBABILISTIC\",\"probabilisticSampling\":{\"samplingRate\":0.5}}",
        ("{\"probabilisticSampling\":{\"samplingRate\":5e-1,\"new\":[{}]},\"rateLimitingSampling\":"
         "null,\"operationSampling\":null}"),
        "{\"strategyType\":0,\"probabilisticSampling\":{\"samplingRate\":0.5}}"};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        oteli_leaks_begin();
        struct oteli_strategy *strategy = parse(answers[i]);
        assert_non_null(strategy);
        assert_true(samples(strategy, "a", 0x7f, SECOND));
        assert_false(samples(strategy, "a", 0x80, SECOND));
        oteli_strategy_free(strategy);
        oteli_leaks_check();
    }
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_a_rate_lets_so_many_traces_through)
{
    struct oteli_strategy *strategy = parse(
        "{\"strategyType\":\"RATE_LIMITING\",\"rateLimitingSampling\":{\"maxTracesPerSecond\":2}}");
    assert_non_null(strategy);
    uint64_t now_ns = 1000 * SECOND;
    assert_true(samples(strategy, "a", 0xff, now_ns));
    assert_true(samples(strategy, "b", 0xff, now_ns));
    assert_false(samples(strategy, "c", 0, now_ns));
    now_ns += SECOND / 2;
    assert_true(samples(strategy, "a", 0xff, now_ns));
    assert_false(samples(strategy, "a", 0xff, now_ns));
    /* A pause saves up one second's worth, and time that goes back nothing. */
    now_ns += 3600 * SECOND;
    unsigned sampled = 0;
    for (unsigned i = 0; i < 100; i++)
        sampled += samples(strategy, "a", 0xff, now_ns - i);
    assert_int_equal(sampled, 2);
    oteli_strategy_free(strategy);
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_operations_have_probabilities_of_their_own)
{
    oteli_leaks_begin();
    struct oteli_strategy *strategy =
        parse("{\"strategyType\":\"PROBABILISTIC\",\"probabilisticSampling\":{\"samplingRate\":0},"
              "\"operationSampling\":{\"defaultSamplingProbability\":0.5,"
              "\"defaultLowerBoundTracesPerSecond\":0,\"perOperationStrategies\":["
              "{\"operation\":\"GET /metrics\",\"probabilisticSampling\":{\"samplingRate\":0}},"
              "{\"operation\":\"GET /admin\",\"probabilisticSampling\":{\"samplingRate\":1}},"
              "{\"operation\":\"GET /\\u00e4\",\"probabilisticSampling\":{\"samplingRate\":0.25}}"
              "]}}");
    assert_non_null(strategy);
    assert_false(samples(strategy, "GET /metrics", 0, SECOND));
    assert_true(samples(strategy, "GET /admin", 0xff, SECOND));
    assert_true(samples(strategy, "GET /\xc3\xa4", 0x3f, SECOND));
    assert_false(samples(strategy, "GET /\xc3\xa4", 0x40, SECOND));
    assert_true(samples(strategy, "GET /other", 0x7f, SECOND));
    assert_false(samples(strategy, "GET /other", 0x80, SECOND));
    assert_false(samples(strategy, "GET /admin2", 0x80, SECOND));
    assert_false(samples(strategy, "", 0x80, SECOND));
    oteli_strategy_free(strategy);
    oteli_leaks_check();
}

TEST(a_rate_may_be_written_in_many_ways)
{
    char zeros[41];
    char answers[3][512];
    memset(zeros, '0', sizeof zeros - 1);
    zeros[sizeof zeros - 1] = '\0';
    snprintf(answers[0], sizeof answers[0], RATE("2.%.40s"), zeros);
    snprintf(answers[1], sizeof answers[1], RATE("0.02e%.10s2"), zeros);
    snprintf(answers[2], sizeof answers[2], RATE("2%.16se-16"), zeros);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct oteli_strategy *strategy = parse(answers[i]);
        assert_non_null(strategy);
        assert_true(strategy->rate.per_second > 1.999 && strategy->rate.per_second < 2.001);
        oteli_strategy_free(strategy);
    }
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_an_operation_has_its_lower_bound_against_chance)
{
    struct oteli_strategy *strategy =
        parse("{\"operationSampling\":{\"defaultLowerBoundTracesPerSecond\":0.5,"
              "\"perOperationStrategies\":["
              "{\"operation\":\"a\",\"probabilisticSampling\":{\"samplingRate\":0}},"
              "{\"operation\":\"b\",\"probabilisticSampling\":{}}]}}");
    assert_non_null(strategy);
    static const char *const names[] = {"a", "b", "other"};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(samples(strategy, names[i], 0xff, SECOND));
        assert_false(samples(strategy, names[i], 0xff, SECOND));
        assert_false(samples(strategy, names[i], 0xff, 2 * SECOND));
        assert_true(samples(strategy, names[i], 0xff, 3 * SECOND));
    }
    oteli_strategy_free(strategy);
}

TEST(what_is_no_strategy_is_refused_whole)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"strategyType\":\"PROBABILISTIC\"}",
        "{\"strategyType\":\"RATE_LIMITING\",\"probabilisticSampling\":{\"samplingRate\":1}}",
        "{\"strategyType\":\"OTHER\",\"probabilisticSampling\":{\"samplingRate\":1}}",
        "{\"strategyType\":2,\"probabilisticSampling\":{\"samplingRate\":1}}",
        "{\"probabilisticSampling\":{\"samplingRate\":1.5}}",
        "{\"probabilisticSampling\":{\"samplingRate\":-1}}",
        "{\"probabilisticSampling\":{\"samplingRate\":\"1\"}}",
        "{\"probabilisticSampling\":{\"samplingRate\":1}",
        "{\"probabilisticSampling\":{\"samplingRate\":1}} x",
        "{\"strategyType\":1,\"rateLimitingSampling\":{\"maxTracesPerSecond\":-1}}",
        "{\"operationSampling\":{\"defaultSamplingProbability\":-0.1}}",
        "{\"operationSampling\":{\"perOperationStrategies\":[{\"operation\":\"a\"}]}}",
        "{\"operationSampling\":{\"perOperationStrategies\":[{\"probabilisticSampling\":{}}]}}",
        ("{\"operationSampling\":{\"perOperationStrategies\":[{\"operation\":\"\\u0000\","
         "\"probabilisticSampling\":{}}]}}"),
        "{\"operationSampling\":{\"perOperationStrategies\":[1]}}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        oteli_leaks_begin();
        assert_null(parse(bad[i]));
        oteli_leaks_check();
    }
}

TEST(no_memory_is_no_strategy_and_no_leak)
{
    for (size_t nth = 1;; nth++) {
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        struct oteli_strategy *strategy =
            parse("{\"operationSampling\":{\"perOperationStrategies\":[{\"operation\":\"a\","
                  "\"probabilisticSampling\":{}},{\"operation\":\"b\",\"probabilisticSampling\":"
                  "{}}]}}");
        const bool all_tried = !oteli_leaks_failed();
        assert_int_equal(strategy != NULL, all_tried);
        oteli_strategy_free(strategy);
        oteli_leaks_check();
        if (all_tried)
            break;
    }
}

static void assert_url(const char *endpoint, const char *service, const char *expected)
{
    char *url = oteli_jaeger_url(endpoint, service);
    assert_string_equal(url, expected);
    free(url);
}

/* spec: S12 trace/sdk.md#jaegerremotesampler SHOULD stable */
TEST(S12_the_question_names_the_service)
{
    assert_url(NULL, "shop", "http://localhost:5778/sampling?service=shop");
    assert_url(NULL, NULL, "http://localhost:5778/sampling?service=unknown_service");
    assert_url("http://h:1", "a b&c=\xc3\xa4", "http://h:1/sampling?service=a%20b%26c%3D%C3%A4");
    assert_url("http://h:1/", "s", "http://h:1/sampling?service=s");
    assert_url("https://h/own/path", "s", "https://h/own/path?service=s");
    assert_url("http://h/p?x=1", "s", "http://h/p?x=1&service=s");
    assert_url("http://h?x=1#part", "s", "http://h/sampling?x=1&service=s");
}

/* spec: S12 configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(S12_the_argument_has_endpoint_interval_and_initial_rate)
{
    struct oteli_jaeger_argument argument;
    oteli_leaks_begin();
    assert_true(oteli_jaeger_argument_parse(
        "endpoint=http://localhost:14250, pollingIntervalMs=5000 ,initialSamplingRate=0.25",
        &argument));
    assert_string_equal(argument.endpoint, "http://localhost:14250");
    assert_int_equal(argument.polling_interval_ms, 5000);
    assert_true(argument.initial_ratio == 0.25);
    free(argument.endpoint);
    assert_true(oteli_jaeger_argument_parse(NULL, &argument));
    assert_null(argument.endpoint);
    assert_int_equal(argument.polling_interval_ms, 0);
    assert_true(argument.initial_ratio < 0);
    oteli_leaks_check();
}

/* spec: S12 configuration/sdk-environment-variables.md#general-sdk-configuration MUST stable */
TEST(S12_a_bad_argument_counts_as_none)
{
    static const char *const bad[] = {"0.5",
                                      "endpoint=localhost:14250",
                                      "endpoint=http://h,endpoint=http://i",
                                      "endpoint=http://h,pollingIntervalMs=soon",
                                      "endpoint=http://h,pollingIntervalMs=0",
                                      "endpoint=http://h,pollingIntervalMs=-5",
                                      "endpoint=http://h,initialSamplingRate=2",
                                      "endpoint=http://h,initialSamplingRate=0,5",
                                      "endpoint=http://h,other=1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct oteli_jaeger_argument argument;
        oteli_leaks_begin();
        assert_false(oteli_jaeger_argument_parse(bad[i], &argument));
        assert_null(argument.endpoint);
        assert_int_equal(argument.polling_interval_ms, 0);
        assert_true(argument.initial_ratio < 0);
        oteli_leaks_check();
    }
}

/* ---- JSON ---- */

static bool is_json(const char *text)
{
    struct oteli_json json = oteli_json_begin(text, strlen(text));
    oteli_json_skip(&json);
    return oteli_json_end(&json);
}

TEST(json_is_taken_and_nothing_else)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       "null",
                                       "true",
                                       "false",
                                       "0",
                                       "-0.5e+3",
                                       "\"\"",
                                       " { \"a\" : [ 1 , {} ] } ",
                                       "[[[]],[],{\"a\":{\"b\":[]}},1,\"x\",null]",
                                       "\"\\u00e4\\n\\\"\"",
                                       "[1,2,3]",
                                       "{\"a\":1,\"a\":2}"};
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      "{]",
                                      "[}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "[1,]",
                                      "[,1]",
                                      "{,}",
                                      "{a:1}",
                                      "01",
                                      "+1",
                                      ".5",
                                      "5.",
                                      "1e",
                                      "1e+",
                                      "-",
                                      "nul",
                                      "nullx",
                                      "True",
                                      "NaN",
                                      "Infinity",
                                      "\"",
                                      "\"\\\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\t\"",
                                      "\"\xff\"",
                                      "1 2",
                                      "{}{}",
                                      "[1 2]",
                                      "{\"a\":1 \"b\":2}",
                                      "'a'",
                                      "// c\n1",
                                      "[1]]"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(is_json(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (is_json(bad[i]))
            fail_msg("taken for JSON: %s", bad[i]);
}

TEST(nesting_has_a_limit)
{
    char text[2 * OTELI_JSON_DEPTH + 3] = "";
    memset(text, '[', OTELI_JSON_DEPTH);
    memset(text + OTELI_JSON_DEPTH, ']', OTELI_JSON_DEPTH);
    assert_true(is_json(text));
    memset(text, '[', OTELI_JSON_DEPTH + 1);
    memset(text + OTELI_JSON_DEPTH + 1, ']', OTELI_JSON_DEPTH + 1);
    assert_false(is_json(text));
}

TEST(texts_are_unescaped)
{
    static const struct {
        const char *json;
        const char *text; /* NULL: none */
    } cases[] = {{"\"plain\"", "plain"},
                 {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
                 {"\"\\u0041\\u00e4\\u20ac\"", "A\xc3\xa4\xe2\x82\xac"},
                 {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
                 {"\"\\uD83D\\uDE00!\"", "\xf0\x9f\x98\x80!"},
                 {"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
                 {"\"\\u0000\"", NULL},
                 {"\"\\ud83d\"", NULL},
                 {"\"\\ud83dxxxxxx\"", NULL},
                 {"\"\\ud83d\\u0041\"", NULL},
                 {"\"\\ude00\"", NULL},
                 {"1", NULL}};
    oteli_leaks_begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct oteli_json json = oteli_json_begin(cases[i].json, strlen(cases[i].json));
        char *text;
        assert_int_equal(oteli_json_text(&json, &text), cases[i].text != NULL);
        assert_int_equal(oteli_json_end(&json), cases[i].text != NULL);
        if (cases[i].text != NULL)
            assert_string_equal(text, cases[i].text);
        free(text);
    }
    oteli_leaks_check();
}
