/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/sampler_test.c - specification of the samplers that are built in, of those that
 * settings name (sdk/sampling/builtin_sampler.h), and of the member `ot` of tracestates
 * (sdk/sampling/ot_tracestate.h). */
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "sdk/sampling/ot_tracestate.h"

#include "tests/support/sampling.h"
#include "tests/support/unit.h"

#include <locale.h>
#include <math.h>
#include <otel/otel.h>
#include <stdio.h>

static const otel_sampler *with_ratio(double ratio)
{
    otel_sampler *sampler = next_sampler();
    assert_int_equal(otel_sampler_trace_id_ratio(ratio, sampler), OTEL_OK);
    return sampler;
}

static const otel_sampler *with_probability(double ratio)
{
    otel_sampler *sampler = next_sampler();
    assert_int_equal(otel_sampler_probability(ratio, sampler), OTEL_OK);
    return sampler;
}

static bool samples(const otel_sampler *sampler, const struct question *question)
{
    const otel_sampling_decision decision = answer_of(sampler, question).decision;
    assert_true(decision == OTEL_SAMPLING_DROP || decision == OTEL_SAMPLING_RECORD_AND_SAMPLE);
    return decision != OTEL_SAMPLING_DROP;
}

AROUND_EACH(sampling_begin, sampling_end);

/* spec: S6 trace/sdk.md#alwayson MUST stable */
/* spec: S6 trace/sdk.md#alwaysoff MUST stable */
TEST(S6_always_on_and_always_off_do_so_and_say_their_names)
{
    const otel_sampler on = otel_sampler_always_on();
    const otel_sampler off = otel_sampler_always_off();
    struct question question;
    for (unsigned parent = 0; parent < 8; parent++) {
        ask(&question, parent, "a=b", parent % 2 ? UINT64_MAX : 1);
        assert_true(samples(&on, &question));
        assert_false(samples(&off, &question));
        assert_false(answer_of(&on, &question).has_tracestate);
    }
    assert_string_equal(description_of(&on), "AlwaysOnSampler");
    assert_string_equal(description_of(&off), "AlwaysOffSampler");
}

/* spec: S7 trace/sdk.md#requirements-for-traceidratiobased-sampler-algorithm MUST stable */
TEST(S7_a_larger_ratio_samples_all_that_a_smaller_one_does)
{
    static const double ratios[] = {0, 1e-9, 0.0001, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 1};
    enum { RATIOS = sizeof ratios / sizeof ratios[0] };
    otel_sampler samplers[RATIOS];
    for (unsigned i = 0; i < RATIOS; i++)
        assert_int_equal(otel_sampler_trace_id_ratio(ratios[i], &samplers[i]), OTEL_OK);
    struct question question;
    uint64_t low = 88172645463325252;
    for (unsigned id = 0; id < 2000; id++) {
        low ^= low << 13, low ^= low >> 7, low ^= low << 17;
        ask(&question, NO_PARENT, "", low);
        question.trace_id[8] = (uint8_t)(low >> 56);
        bool smaller = false;
        for (unsigned i = 0; i < RATIOS; i++) {
            const bool sampled = samples(&samplers[i], &question);
            assert_true(sampled || !smaller);
            assert_int_equal(samples(&samplers[i], &question), sampled);
            smaller = sampled;
        }
        assert_true(smaller);
    }
    for (unsigned i = 0; i < RATIOS; i++)
        free_sampler(&samplers[i]);
}

static bool ratio_samples(const otel_sampler *sampler, unsigned parent, uint64_t low)
{
    struct question question;
    ask(&question, parent, "", low);
    question.trace_id[8] = (uint8_t)(low >> 56);
    return samples(sampler, &question);
}

/* spec: S7 trace/sdk.md#traceidratiobased MUST stable */
TEST(S7_the_threshold_is_exact_and_the_parents_flag_changes_nothing)
{
    static const struct {
        double ratio;
        uint64_t most; /* of the low half of a trace id that is sampled */
    } rows[] = {{1, UINT64_MAX}, {0.5, (UINT64_C(1) << 63) - 1}, {0.25, (UINT64_C(1) << 62) - 1}};
    for (unsigned parent = 0; parent < 8; parent++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const otel_sampler *sampler = with_ratio(rows[i].ratio);
            assert_true(ratio_samples(sampler, parent, 0));
            assert_true(ratio_samples(sampler, parent, rows[i].most));
            assert_int_equal(ratio_samples(sampler, parent, rows[i].most + 1), i == 0);
        }
    assert_false(ratio_samples(with_ratio(0), NO_PARENT, 0));
    assert_true(ratio_samples(with_ratio(1e-18), NO_PARENT, 17));
    assert_false(ratio_samples(with_ratio(1e-18), NO_PARENT, 19));
}

/* spec: S7 trace/sdk.md#traceidratiobased MUST stable */
TEST(S7_the_description_has_the_ratio_as_a_decimal_number_in_every_locale)
{
    static const struct {
        double ratio;
        const char *text;
    } rows[] = {{0.0001, "{0.000100}"},
                {1, "{1.000000}"},
                {0, "{0.000000}"},
                {0.25, "{0.250000}"},
                {0.9, "{0.900000}"},
                {1e-9, "{0.000000001}"},
                {1.0 / 3, "{0.3333333333333333}"},
                {0.1, "{0.100000}"},
                {0.25000000000000006, "{0.25000000000000006}"}}; /* the next after 0.25 */
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    char before[64];
    snprintf(before, sizeof before, "%s", setlocale(LC_NUMERIC, NULL));
    for (size_t i = 0; i < sizeof locales / sizeof locales[0]; i++) {
        oteli_leaks_check(); /* what the C library keeps of a locale is its own */
        const char *locale = setlocale(LC_NUMERIC, locales[i]);
        oteli_leaks_begin();
        for (size_t k = 0; locale != NULL && k < sizeof rows / sizeof rows[0]; k++) {
            char expected[64];
            snprintf(expected, sizeof expected, "TraceIdRatioBased%s", rows[k].text);
            assert_string_equal(description_of(with_ratio(rows[k].ratio)), expected);
        }
        next_sampler();
    }
    assert_string_equal(description_of(with_probability(0.0001)), "ProbabilitySampler{0.000100}");
    setlocale(LC_NUMERIC, before);
}

/* spec: S7 trace/sdk.md#compatibility-warnings-for-traceidratiobased-sampler SHOULD development */
TEST(S7_a_sampler_that_decides_below_a_parent_warns_once)
{
    const otel_sampler *sampler = with_ratio(0.5);
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    answer_of(sampler, &question);
    assert_int_equal(sampling.lines.count, 0);
    ask(&question, REMOTE, "ot=th:8", 1);
    answer_of(sampler, &question);
    answer_of(sampler, &question);
    assert_int_equal(sampling.lines.count, 1);
    assert_non_null(strstr(sampling.lines.last, "TraceIdRatioBased"));
    assert_non_null(strstr(sampling.lines.last, "sampled by ProbabilitySampler"));
}

/* spec: S9 trace/sdk.md#probabilitysampler-sampler-configuration MUST development */
TEST(S9_ratios_outside_are_refused)
{
    static const double bad[] = {-0.1, 1.1, (double)NAN};
    otel_sampler sampler;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(otel_sampler_trace_id_ratio(bad[i], &sampler),
                         OTEL_ERROR_INVALID_ARGUMENT);
        assert_int_equal(otel_sampler_probability(bad[i], &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    }
    assert_int_equal(otel_sampler_probability(1e-17, &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_probability(0.5, &sampler), OTEL_ERROR_NO_MEMORY);
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_trace_id_ratio(0.5, &sampler), OTEL_ERROR_NO_MEMORY);
}

/* spec: S8 trace/sdk.md#parentbased MUST stable */
TEST(S8_each_kind_of_parent_has_its_delegate)
{
    struct counted counted[5] = {{0, 0}};
    const otel_parent_based_options options = {
        .size = sizeof options,
        .root = counted_sampler(&counted[0]),
        .remote_parent_sampled = counted_sampler(&counted[1]),
        .remote_parent_not_sampled = counted_sampler(&counted[2]),
        .local_parent_sampled = counted_sampler(&counted[3]),
        .local_parent_not_sampled = counted_sampler(&counted[4])};
    assert_int_equal(otel_sampler_parent_based(&options, next_sampler()), OTEL_OK);
    static const unsigned parents[5] = {NO_PARENT, REMOTE | SAMPLED, REMOTE, LOCAL | SAMPLED,
                                        LOCAL};
    struct question question;
    for (unsigned i = 0; i < 5; i++) {
        ask(&question, parents[i], "", 1);
        answer_of(&sampling.sampler, &question);
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(counted[k].asked, k <= i);
    }
    next_sampler();
    for (unsigned k = 0; k < 5; k++)
        assert_int_equal(counted[k].freed, 1);
}

/* spec: S8 trace/sdk.md#parentbased MUST stable */
TEST(S8_a_parent_that_is_not_valid_makes_a_root)
{
    struct counted root = {0, 0};
    const otel_parent_based_options options = {.size = sizeof options,
                                               .root = counted_sampler(&root)};
    assert_int_equal(otel_sampler_parent_based(&options, next_sampler()), OTEL_OK);
    struct question question;
    ask(&question, REMOTE | SAMPLED, "", 1);
    memset(question.parent.span_id, 0, sizeof question.parent.span_id);
    answer_of(&sampling.sampler, &question);
    assert_int_equal(root.asked, 1);
    assert_string_equal(description_of(&sampling.sampler),
                        "ParentBased{root:custom,remoteParentSampled:AlwaysOnSampler,"
                        "remoteParentNotSampled:AlwaysOffSampler,localParentSampled:"
                        "AlwaysOnSampler,localParentNotSampled:AlwaysOffSampler}");
    next_sampler();
}

TEST(what_is_adopted_is_freed_when_nothing_comes_of_it)
{
    struct counted counted = {0, 0};
    otel_sampler sampler;
    const otel_parent_based_options rootless = {.size = sizeof rootless,
                                                .local_parent_sampled = counted_sampler(&counted)};
    assert_int_equal(otel_sampler_parent_based(&rootless, &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_sampler_parent_based(NULL, &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(counted.freed, 1);
    const otel_parent_based_options options = {.size = sizeof options,
                                               .root = counted_sampler(&counted)};
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_parent_based(&options, &sampler), OTEL_ERROR_NO_MEMORY);
    assert_int_equal(counted.freed, 2);
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_always_record(counted_sampler(&counted), &sampler),
                     OTEL_ERROR_NO_MEMORY);
    assert_int_equal(counted.freed, 3);
}

/* spec: S11 trace/sdk.md#alwaysrecord MUST stable */
TEST(S11_always_record_records_what_its_root_drops)
{
    struct counted counted = {0, 0};
    const struct {
        otel_sampler root;
        otel_sampling_decision decision;
        const char *description;
    } rows[] = {
        {otel_sampler_always_off(), OTEL_SAMPLING_RECORD_ONLY, "AlwaysRecord{AlwaysOffSampler}"},
        {otel_sampler_always_on(), OTEL_SAMPLING_RECORD_AND_SAMPLE,
         "AlwaysRecord{AlwaysOnSampler}"},
        {counted_sampler(&counted), OTEL_SAMPLING_RECORD_ONLY, "AlwaysRecord{custom}"}};
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(otel_sampler_always_record(rows[i].root, next_sampler()), OTEL_OK);
        assert_int_equal(answer_of(&sampling.sampler, &question).decision, rows[i].decision);
        assert_string_equal(description_of(&sampling.sampler), rows[i].description);
    }
    next_sampler();
    assert_int_equal(counted.freed, 1);
}

/* spec: S5 trace/sdk.md#getdescription MUST stable */
TEST(S5_a_description_is_cut_to_the_room_and_measured_whole)
{
    otel_sampler inner;
    const otel_sampler *const sampler = &sampling.sampler;
    assert_int_equal(otel_sampler_trace_id_ratio(0.5, &inner), OTEL_OK);
    assert_int_equal(otel_sampler_always_record(inner, next_sampler()), OTEL_OK);
    const char *whole = "AlwaysRecord{TraceIdRatioBased{0.500000}}";
    char text[64];
    for (size_t size = 0; size <= strlen(whole) + 1; size++) {
        memset(text, '#', sizeof text);
        assert_int_equal(sampler->describe(sampler->state, size != 0 ? text : NULL, size),
                         strlen(whole));
        if (size != 0) {
            assert_int_equal(strlen(text), size - 1);
            assert_memory_equal(text, whole, size - 1);
        }
        assert_int_equal(text[size], '#');
    }
}

/* ---- samplers that settings name
 * ------------------------------------------------------------------ */

static void start(otel_sdk_options *options)
{
    options->size = sizeof *options;
    options->log_level = "warn";
    options->threadless = true;
    assert_int_equal(otel_start_with(options), OTEL_OK);
}

static void stop(void)
{
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    oteli_lifecycle_reset();
    oteli_api_reset();
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

/* What each sampler says to no parent; local unsampled, sampled; remote unsampled, sampled. */
static const struct {
    const char *name;
    const char *decisions; /* -: drop, +: sample, ?: the ratio */
} table[] = {
    {"always_on", "+++++"},
    {"always_off", "-----"},
    {"traceidratio", "?????"},
    {"parentbased_always_on", "+-+-+"},
    {"parentbased_always_off", "--+-+"},
    {"parentbased_traceidratio", "?-+-+"},
};

/* spec: S6 trace/sdk.md#built-in-samplers MUST stable */
/* spec: S8 trace/sdk.md#parentbased MUST stable */
/* spec: S7 trace/sdk.md#compatibility-warnings-for-traceidratiobased-sampler SHOULD development */
TEST(S8_spans_are_sampled_as_the_sampler_says_and_a_ratio_below_a_parent_warns)
{
    for (unsigned i = 0; i < 2 * sizeof table / sizeof table[0]; i++) {
        const char *const decisions = table[i / 2].decisions;
        start(&(otel_sdk_options){.traces_sampler = table[i / 2].name,
                                  .traces_sampler_arg = i % 2 ? "1" : "0"});
        sampling.lines.count = 0;
        for (unsigned k = 0; k < OTELI_PARENT_KINDS; k++) {
            const otel_context parent = parent_of(k);
            const otel_span span = otel_span_start(otel_tracer_get("test", NULL), "a",
                                                   OTEL_SPAN_OPTIONS(.parent = &parent));
            const otel_span_context context = otel_span_get_context(span);
            const bool expected = decisions[k] == '+' || (decisions[k] == '?' && i % 2 != 0);
            assert_int_equal(otel_span_is_recording(span), expected);
            assert_int_equal(context.flags & OTEL_TRACE_FLAG_SAMPLED, expected);
            assert_int_equal(sampling.lines.count, k > 0 && decisions[1] == '?');
            otel_span_end(span);
        }
        stop();
    }
}

/* ---- ProbabilitySampler
 * ---------------------------------------------------------------------------- */

/* spec: S9
 * trace/tracestate-probability-sampling.md#converting-floating-point-probability-to-threshold-value
 * SHOULD development */
TEST(S9_thresholds_are_those_of_the_specifications_table)
{
    const struct {
        double ratio;
        const char *th; /* with a precision of 4 */
    } rows[] = {{1, "0"},
                {0.5, "8"},
                {1.0 / 3, "aaab"},
                {0.25, "c"},
                {0.2, "cccd"},
                {0.125, "e"},
                {0.1, "e666"},
                {0.0625, "f"},
                {0.01, "fd70a"},
                {0.001, "ffbe77"},
                {0.0001, "fff9724"},
                {0.00001, "ffff583a"},
                {0.000001, "ffffef39"},
                {ldexp(1, -56), "ffffffffffffff"},
                {nextafter(1, 0), "0"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char th[OTELI_TH_SIZE];
        oteli_threshold_text(oteli_threshold_of(rows[i].ratio), th);
        assert_string_equal(th, rows[i].th);
    }
}

static void assert_decides(double ratio, const char *tracestate, uint64_t low, bool sampled)
{
    struct question question;
    for (unsigned flag = 0; flag <= SAMPLED; flag += SAMPLED) { /* the parent's changes nothing */
        ask(&question, REMOTE | RANDOM | flag, tracestate, low);
        assert_int_equal(samples(with_probability(ratio), &question), sampled);
    }
}

/* spec: S9 trace/sdk.md#probabilitysampler-sampler-algorithm SHOULD development */
/* spec: S9 trace/sdk.md#probabilitysampler MUST development */
TEST(S9_probability_sampler_keeps_what_has_R_at_least_T)
{
    const uint64_t threshold = 0xc0000000000000;
    assert_decides(0.25, "", threshold, true);
    assert_decides(0.25, "", threshold - 1, false);
    assert_decides(0.25, "", UINT64_MAX, true);
    assert_decides(1, "", 0, true);
    assert_decides(0, "", UINT64_MAX, false);
    assert_decides(ldexp(1, -56), "", 0xffffffffffffff, true);
    assert_decides(ldexp(1, -56), "", 0xfffffffffffffe, false);
}

/* spec: S9 trace/sdk.md#explicit-randomness SHOULD development */
TEST(S9_explicit_randomness_beats_the_trace_id)
{
    assert_decides(0.25, "ot=rv:c0000000000000", 0, true);
    assert_decides(0.25, "ot=rv:bfffffffffffff", UINT64_MAX, false);
    assert_decides(0.25, "a=b,ot=xy:1;rv:c0000000000000;th:0,c=d", 0, true);
    /* What is no rv does not count. */
    assert_decides(0.25, "ot=rv:c000000000000", 0, false);
    assert_decides(0.25, "ot=rv:C0000000000000", 0, false);
    assert_decides(0.25, "ot=rv:g0000000000000", 0, false);
    assert_decides(0.25, "ot=rv:c00000000000000", 0, false);
    assert_decides(0.25, "ot=rvx:c0000000000000", 0, false);
    assert_decides(0.25, "xot=rv:c0000000000000", 0, false);
}

static void assert_tracestate(double ratio, unsigned parent, const char *before, const char *after)
{
    struct question question;
    ask(&question, parent | RANDOM, before, 0xfffffffffffffe);
    const otel_sampling_result result = answer_of(with_probability(ratio), &question);
    assert_string_equal(result.has_tracestate ? result.tracestate : before, after);
}

/* spec: S9 trace/tracestate-handling.md#sampling-threshold-value-th SHOULD development */
TEST(S9_what_was_sampled_says_its_threshold)
{
    assert_tracestate(0.25, NO_PARENT, "", "ot=th:c");
    assert_tracestate(1, NO_PARENT, "", "ot=th:0");
    assert_tracestate(0.01, NO_PARENT, "", "ot=th:fd70a");
    assert_tracestate(0.25, REMOTE, "a=b", "ot=th:c,a=b");
    assert_tracestate(0.25, REMOTE, "a=b,ot=th:8,c=d", "ot=th:c,a=b,c=d");
    assert_tracestate(0.25, REMOTE, "a=b,ot=th:c", "a=b,ot=th:c");
    assert_tracestate(0.25, REMOTE, "ot=th:Zz", "ot=th:c");
    assert_tracestate(0.25, REMOTE, "ot=xy:7;th:8;zz:", "ot=th:c;xy:7;zz:");
    assert_tracestate(0.25, REMOTE, "ot=;;no;XY:7;x y:1;ok:A.-_9; b:1", "ot=th:c;ok:A.-_9");
}

/* spec: S9 trace/tracestate-probability-sampling.md#general-requirements MUST development */
TEST(S9_what_was_dropped_says_no_threshold)
{
    const double never = ldexp(1, -56);
    assert_tracestate(never, REMOTE, "ot=th:8", "");
    assert_tracestate(never, REMOTE, "a=b,ot=th:8;xy:1", "ot=xy:1,a=b");
    assert_tracestate(0, REMOTE, "a=b,ot=th:8", "a=b");
    assert_tracestate(0, REMOTE, "a=b,ot=xy:1", "a=b,ot=xy:1");
}

/* spec: S14 trace/sdk.md#do-not-overwrite-explicit-randomness MUST development */
TEST(S14_explicit_randomness_is_never_overwritten)
{
    assert_tracestate(0.5, REMOTE, "ot=rv:ffffffffffff00", "ot=th:8;rv:ffffffffffff00");
    assert_tracestate(0.5, REMOTE, "a=b,ot=rv:00000000000000;th:8", "ot=rv:00000000000000,a=b");
    assert_tracestate(0.5, NO_PARENT, "ot=rv:ffffffffffff00", "ot=th:8;rv:ffffffffffff00");
    assert_tracestate(0, REMOTE, "ot=th:8;rv:ffffffffffff00", "ot=rv:ffffffffffff00");
    /* Nor is one that cannot be used. */
    assert_tracestate(0.5, REMOTE, "ot=rv:12", "ot=th:8;rv:12");
}

/* spec: S9 trace/tracestate-handling.md#setting-values MUST development */
TEST(S9_an_ot_without_room_stays_as_it_is)
{
    char before[512];
    char rest[257];
    memset(rest, 'x', 256);
    memcpy(rest, "xx:", 3);
    rest[252] = '\0'; /* "th:8;" goes before it: 257 */
    snprintf(before, sizeof before, "ot=%s", rest);
    assert_tracestate(0.5, REMOTE, before, before);
    assert_int_equal(sampling.lines.count, 1);
    char after[512];
    rest[251] = '\0';
    snprintf(before, sizeof before, "ot=%s", rest);
    snprintf(after, sizeof after, "ot=th:8;%s", rest);
    assert_tracestate(0.5, REMOTE, before, after);
}

/* Members of others make room, by W3C's rule: the long ones, then the last. */
TEST(a_tracestate_that_gets_too_long_loses_members_of_others)
{
    char before[OTEL_TRACESTATE_SIZE] = "a=";
    memset(before + 2, '1', 248);
    memcpy(before + 250, ",b=", 3);
    memset(before + 253, '2', 97);
    memcpy(before + 350, ",c=", 3);
    memset(before + 353, '3', 97);
    memcpy(before + 450, ",d=", 3);
    memset(before + 453, '4', 59); /* 512 in all */
    before[512] = '\0';
    char after[OTEL_TRACESTATE_SIZE];
    snprintf(after, sizeof after, "ot=th:8,%s", before + 251);
    assert_tracestate(0.5, REMOTE, before, after);

    char many[512] = ""; /* as many as may be: with `ot` one more */
    for (unsigned i = 0; i < 32; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sk%u=v", i ? "," : "", i);
    snprintf(after, sizeof after, "ot=th:8,%.*s", (int)(strlen(many) - strlen(",k31=v")), many);
    assert_tracestate(0.5, REMOTE, many, after);
}

/* spec: S13 trace/sdk.md#compatibility-warnings-for-probabilitysampler SHOULD development */
TEST(S13_a_presumption_of_randomness_warns_once)
{
    const otel_sampler *sampler = with_probability(0.5);
    static const struct {
        unsigned parent;
        const char *tracestate;
        unsigned lines;
    } cases[] = {{NO_PARENT, "", 0},
                 {REMOTE | RANDOM, "", 0},
                 {REMOTE, "ot=rv:ffffffffffff00", 0},
                 {REMOTE, "", 1},
                 {REMOTE | SAMPLED, "", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct question question;
        ask(&question, cases[i].parent, cases[i].tracestate, 1);
        answer_of(sampler, &question);
        assert_int_equal(sampling.lines.count, cases[i].lines);
    }
    assert_non_null(strstr(sampling.lines.last, "random flag"));
}

/* What the SDK makes of it: spans that say their threshold, also to their children. */
/* spec: S9 trace/sdk.md#probabilitysampler-sampler-algorithm SHOULD development */
TEST(S9_spans_carry_the_threshold_and_keep_the_randomness)
{
    static const uint8_t trace_id[16] = {1, [15] = 1};
    static const uint8_t span_id[8] = {2};
    const otel_span_context remote = otel_span_context_make(
        trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED, true, "a=b,ot=rv:80000000000000;th:4");
    const otel_context context =
        otel_context_with_span((otel_context){.values = NULL}, otel_span_wrap(&remote));
    otel_sampler sampler;
    assert_int_equal(otel_sampler_probability(0.5, &sampler), OTEL_OK);
    char text[OTEL_TRACESTATE_SIZE];
    start(&(otel_sdk_options){.sampler = &sampler});
    const otel_span span =
        otel_span_start(otel_tracer_get("test", NULL), "a", OTEL_SPAN_OPTIONS(.parent = &context));
    const otel_span_context own = otel_span_get_context(span);
    otel_span_context_tracestate(&own, text, sizeof text);
    assert_int_equal(own.flags & OTEL_TRACE_FLAG_SAMPLED, OTEL_TRACE_FLAG_SAMPLED);
    assert_string_equal(text, "ot=th:8;rv:80000000000000,a=b");
    otel_span_end(span);
    stop();
}
