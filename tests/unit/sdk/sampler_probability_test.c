/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/sampler_probability_test.c - specification of ProbabilitySampler and of the member
 * `ot` of tracestates (sdk/samplers/ot.h). */
#include "sdk/engine.h"
#include "sdk/samplers/ot.h"

#include "tests/support/leaks.h"
#include "tests/support/sampling.h"
#include "tests/support/unit.h"

#include <math.h>
#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>

static otel_sampler probability(double ratio)
{
    otel_sampler sampler;
    assert_int_equal(otel_sampler_probability(ratio, &sampler), OTEL_OK);
    return sampler;
}

/* spec: S9 trace/tracestate-probability-sampling.md#converting-floating-point-probability-to-threshold-value SHOULD development */
TEST(S9_thresholds_are_those_of_the_specifications_table)
{
    static const struct {
        double ratio;
        const char *th; /* with a precision of 4 */
    } table[] = {{1, "0"},
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
                 {0.000001, "ffffef39"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char th[OTELI_TH_SIZE];
        oteli_threshold_text(oteli_threshold_of(table[i].ratio), th);
        assert_string_equal(th, table[i].th);
    }
}

TEST(the_smallest_probabilities_keep_something)
{
    char th[OTELI_TH_SIZE];
    oteli_threshold_text(oteli_threshold_of(ldexp(1, -56)), th);
    assert_string_equal(th, "ffffffffffffff");
    oteli_threshold_text(oteli_threshold_of(nextafter(1, 0)), th);
    assert_string_equal(th, "0");
    oteli_threshold_text(1, th);
    assert_string_equal(th, "00000000000001");
}

static void assert_decides(double ratio, const char *tracestate, uint64_t low, bool sampled)
{
    otel_sampler sampler = probability(ratio);
    struct question question;
    ask(&question, REMOTE | RANDOM, tracestate, low);
    const otel_sampling_result result = answer_of(&sampler, &question);
    assert_int_equal(result.decision,
                     sampled ? OTEL_SAMPLING_RECORD_AND_SAMPLE : OTEL_SAMPLING_DROP);
    free_sampler(&sampler);
}

/* spec: S9 trace/sdk.md#probabilitysampler-sampler-algorithm SHOULD development */
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
    assert_decides(0.25, "ot=rv:c00000000000000", 0, false);
    assert_decides(0.25, "ot=rvx:c0000000000000", 0, false);
    assert_decides(0.25, "xot=rv:c0000000000000", 0, false);
}

static void assert_tracestate(double ratio, unsigned parent, const char *before, const char *after)
{
    otel_sampler sampler = probability(ratio);
    struct question question;
    ask(&question, parent | RANDOM, before, 0xfffffffffffffe);
    const otel_sampling_result result = answer_of(&sampler, &question);
    assert_string_equal(result.has_tracestate ? result.tracestate : before, after);
    free_sampler(&sampler);
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
    struct lines lines = {.count = 0};
    otel_log_set_handler(keep_line, &lines);
    memset(rest, 'x', 256);
    memcpy(rest, "xx:", 3);
    rest[252] = '\0'; /* "th:8;" goes before it: 257 */
    snprintf(before, sizeof before, "ot=%s", rest);
    assert_tracestate(0.5, REMOTE, before, before);
    assert_int_equal(lines.count, 1);
    char after[512];
    rest[251] = '\0';
    snprintf(before, sizeof before, "ot=%s", rest);
    snprintf(after, sizeof after, "ot=th:8;%s", rest);
    assert_tracestate(0.5, REMOTE, before, after);
    otel_log_set_handler(NULL, NULL);
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

    char many[512] = "";
    for (unsigned i = 0; i < 32; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%sk%u=v", i ? "," : "", i);
    snprintf(after, sizeof after, "ot=th:8,%.*s", (int)(strlen(many) - strlen(",k31=v")), many);
    assert_tracestate(0.5, REMOTE, many, after);
}

/* spec: S13 trace/sdk.md#compatibility-warnings-for-probabilitysampler SHOULD development */
TEST(S13_a_presumption_of_randomness_warns_once)
{
    struct lines lines = {.count = 0};
    otel_log_set_handler(keep_line, &lines);
    otel_sampler sampler = probability(0.5);
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
        answer_of(&sampler, &question);
        assert_int_equal(lines.count, cases[i].lines);
    }
    assert_non_null(strstr(lines.last, "random flag"));
    otel_log_set_handler(NULL, NULL);
    free_sampler(&sampler);
}

/* spec: S9 trace/sdk.md#probabilitysampler MUST development */
TEST(S9_the_parents_flag_changes_nothing)
{
    otel_sampler sampler = probability(0.5);
    struct question question;
    for (unsigned parent = 0; parent < 8; parent++) {
        ask(&question, parent | RANDOM, "", 0x80000000000000);
        assert_int_equal(answer_of(&sampler, &question).decision, OTEL_SAMPLING_RECORD_AND_SAMPLE);
        ask(&question, parent | RANDOM, "", 0x7fffffffffffff);
        assert_int_equal(answer_of(&sampler, &question).decision, OTEL_SAMPLING_DROP);
    }
    free_sampler(&sampler);
}

/* spec: S9 trace/sdk.md#probabilitysampler-sampler-configuration MUST development */
TEST(S9_ratios_outside_are_refused)
{
    static const double bad[] = {-0.5, 1.5, 1e-17};
    otel_sampler sampler;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(otel_sampler_probability(bad[i], &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_sampler_probability((double)NAN, &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    oteli_leaks_begin();
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_probability(0.5, &sampler), OTEL_ERROR_NO_MEMORY);
    oteli_leaks_check();
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
    const otel_sampler sampler = probability(0.5);
    char text[OTEL_TRACESTATE_SIZE];
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.sampler = &sampler)), OTEL_OK);
    const otel_span span =
        otel_span_start(otel_tracer_get("test", NULL), "a", OTEL_SPAN_OPTIONS(.parent = &context));
    const otel_span_context own = otel_span_get_context(span);
    otel_span_context_tracestate(&own, text, sizeof text);
    assert_int_equal(own.flags & OTEL_TRACE_FLAG_SAMPLED, OTEL_TRACE_FLAG_SAMPLED);
    assert_string_equal(text, "ot=th:8;rv:80000000000000,a=b");
    otel_span_end(span);
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    oteli_lifecycle_reset();
    oteli_api_reset();
}

TEST(the_description_has_the_ratio)
{
    otel_sampler sampler = probability(0.0001);
    assert_string_equal(description_of(&sampler), "ProbabilitySampler{0.000100}");
    free_sampler(&sampler);
}
