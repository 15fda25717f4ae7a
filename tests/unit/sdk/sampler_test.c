/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/sampler_test.c - specification of sdk/sampler.h. */
#include "sdk/sampler.h"

#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <stdlib.h>
#include <string.h>

static struct oteli_sampler sampler_of(const char *name, const char *argument)
{
    struct oteli_config config = {.traces_sampler = strdup(name),
                                  .traces_sampler_arg = argument ? strdup(argument) : NULL};
    struct oteli_sampler sampler = {.decide = {0}};
    oteli_sampler_init(&sampler, &config);
    free(config.traces_sampler);
    free(config.traces_sampler_arg);
    return sampler;
}

/* What each sampler says to no parent; local unsampled, sampled; remote unsampled, sampled. */
static const struct {
    const char *name;
    const char *decisions; /* -: drop, +: sample, ?: ask */
} table[] = {
    {"always_on", "+++++"},
    {"always_off", "-----"},
    {"traceidratio", "?????"},
    {"parentbased_always_on", "+-+-+"},
    {"parentbased_always_off", "--+-+"},
    {"parentbased_traceidratio", "?-+-+"},
};
enum { SAMPLERS = sizeof table / sizeof table[0] };

TEST(each_sampler_decides_by_the_kind_of_parent)
{
    for (unsigned i = 0; i < SAMPLERS; i++) {
        const struct oteli_sampler sampler = sampler_of(table[i].name, NULL);
        for (unsigned k = 0; k < OTELI_PARENT_KINDS; k++)
            assert_int_equal("-+?"[sampler.decide[k]], table[i].decisions[k]);
    }
}

/* The parent of that kind; enum oteli_parent. */
static otel_context parent_of(unsigned kind)
{
    static const uint8_t trace_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff, 1};
    static const uint8_t span_id[8] = {9};
    const bool is_sampled =
        kind == OTELI_PARENT_LOCAL_SAMPLED || kind == OTELI_PARENT_REMOTE_SAMPLED;
    const bool is_remote = kind >= OTELI_PARENT_REMOTE_UNSAMPLED;
    const otel_span_context context =
        otel_span_context_make(trace_id, span_id, is_sampled, is_remote, NULL);
    const otel_context none = {{{0}}, NULL, 0};
    return kind == OTELI_PARENT_NONE ? none
                                     : otel_context_with_span(none, otel_span_wrap(&context));
}

TEST(spans_are_sampled_as_the_sampler_says)
{
    for (unsigned i = 0; i < SAMPLERS; i++) {
        struct hand_engine hand;
        oteli_leaks_begin();
        /* A ratio of 0: whoever asks gets a no. */
        hand_start(&hand, OTEL_SDK_OPTIONS(.traces_sampler = table[i].name,
                                           .traces_sampler_arg = "0", .clock = "fake"));
        for (unsigned k = 0; k < OTELI_PARENT_KINDS; k++) {
            const otel_context parent = parent_of(k);
            const otel_span span =
                otel_span_start(hand.tracer, "a", OTEL_SPAN_OPTIONS(.parent = &parent));
            const otel_span_context context = otel_span_get_context(span);
            const bool expected = table[i].decisions[k] == '+';
            assert_int_equal(otel_span_is_recording(span), expected);
            assert_int_equal(context.flags & OTEL_TRACE_FLAG_SAMPLED, expected);
            otel_span_end(span);
        }
        hand_stop(&hand);
        oteli_leaks_check();
    }
}

static unsigned warnings_of_ratio;

static void count_warnings(void *state, otel_log_level level, const char *message)
{
    (void)state;
    warnings_of_ratio += level == OTEL_LOG_WARN && strstr(message, "TraceIdRatioBased") != NULL;
}

/* spec: S7 trace/sdk.md#compatibility-warnings-for-traceidratiobased-sampler SHOULD development */
TEST(S7_a_ratio_from_the_environment_warns_below_a_parent)
{
    static const struct {
        const char *sampler;
        unsigned warnings;
    } cases[] = {{"traceidratio", 1}, {"parentbased_traceidratio", 0}};
    for (unsigned i = 0; i < 2; i++) {
        struct hand_engine hand;
        warnings_of_ratio = 0;
        otel_log_set_handler(count_warnings, NULL);
        hand_start(&hand, OTEL_SDK_OPTIONS(.traces_sampler = cases[i].sampler, .clock = "fake"));
        for (unsigned k = 0; k < OTELI_PARENT_KINDS; k++) {
            const otel_context parent = parent_of(k);
            otel_span_end(otel_span_start(hand.tracer, "a", OTEL_SPAN_OPTIONS(.parent = &parent)));
            assert_int_equal(warnings_of_ratio, k == OTELI_PARENT_NONE ? 0 : cases[i].warnings);
        }
        hand_stop(&hand);
        otel_log_set_handler(NULL, NULL);
    }
}

static void put_low(uint8_t trace_id[16], uint64_t low)
{
    memset(trace_id, 0xab, 16);
    for (unsigned i = 15; i >= 8; i--, low >>= 8)
        trace_id[i] = (uint8_t)low;
}

static bool samples(const char *ratio, uint64_t low)
{
    const struct oteli_sampler sampler = sampler_of("traceidratio", ratio);
    uint8_t trace_id[16];
    put_low(trace_id, low);
    return oteli_sampler_ratio(&sampler, trace_id);
}

TEST(the_threshold_is_exact)
{
    const uint64_t half = UINT64_C(1) << 63;
    assert_true(samples("0.5", half - 1));
    assert_false(samples("0.5", half));
    assert_true(samples("0.25", half / 2 - 1));
    assert_false(samples("0.25", half / 2));
    assert_true(samples("1", UINT64_MAX));
    assert_true(samples("1", 0));
    assert_false(samples("0", 0));
    assert_true(samples("1e-18", 17));
    assert_false(samples("1e-18", 19));
}

TEST(without_an_argument_everything_is_sampled)
{
    assert_true(samples(NULL, UINT64_MAX));
}

static size_t warnings;

static void count_warning(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)message;
    warnings += level == OTEL_LOG_WARN;
}

TEST(a_bad_argument_is_a_warning_and_everything_is_sampled)
{
    static const char *const bad[] = {"", "x", "-0.1", "1.1", "nan", "inf", "0,5", "0.5x"};
    otel_log_set_handler(count_warning, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        warnings = 0;
        assert_true(samples(bad[i], UINT64_MAX));
        assert_int_equal(warnings, 1);
    }
    otel_log_set_handler(NULL, NULL);
}

TEST(an_argument_that_no_ratio_reads_is_not_looked_at)
{
    otel_log_set_handler(count_warning, NULL);
    warnings = 0;

    sampler_of("parentbased_always_on", "endpoint=http://localhost");

    assert_int_equal(warnings, 0);
    otel_log_set_handler(NULL, NULL);
}

/* 100,000 ids of a fixed sequence: the share may be off by four standard deviations. */
TEST(the_ratio_of_many_traces_is_sampled)
{
    struct oteli_random random = {0};
    memset(&random, 0x5a, sizeof random);
    const struct oteli_sampler sampler = sampler_of("traceidratio", "0.1");
    unsigned sampled = 0;
    for (unsigned i = 0; i < 100000; i++) {
        uint8_t trace_id[16];
        put_low(trace_id, oteli_random_id(&random));
        sampled += oteli_sampler_ratio(&sampler, trace_id);
    }
    assert_in_range(sampled, 10000 - 380, 10000 + 380);
}

TEST(a_larger_ratio_samples_all_that_a_smaller_one_does)
{
    struct oteli_random random = {0};
    memset(&random, 0x11, sizeof random);
    const struct oteli_sampler small = sampler_of("traceidratio", "0.1");
    const struct oteli_sampler large = sampler_of("traceidratio", "0.3");
    for (unsigned i = 0; i < 10000; i++) {
        uint8_t trace_id[16];
        put_low(trace_id, oteli_random_id(&random));
        assert_true(!oteli_sampler_ratio(&small, trace_id) ||
                    oteli_sampler_ratio(&large, trace_id));
    }
}
