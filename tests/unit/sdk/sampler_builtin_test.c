/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/sampler_builtin_test.c - specification of AlwaysOn, AlwaysOff, AlwaysRecord,
 * TraceIdRatioBased and ParentBased. */
#include "tests/support/leaks.h"
#include "tests/support/sampling.h"
#include "tests/support/unit.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static otel_sampler ratio_sampler(double ratio)
{
    otel_sampler sampler;
    assert_int_equal(otel_sampler_trace_id_ratio(ratio, &sampler), OTEL_OK);
    return sampler;
}

/* spec: S6 trace/sdk.md#alwayson MUST stable */
TEST(S6_always_on_samples_always_and_says_its_name)
{
    const otel_sampler sampler = otel_sampler_always_on();
    struct question question;
    for (unsigned parent = 0; parent < 8; parent++) {
        ask(&question, parent, "a=b", 1);
        const otel_sampling_result result = answer_of(&sampler, &question);
        assert_int_equal(result.decision, OTEL_SAMPLING_RECORD_AND_SAMPLE);
        assert_false(result.has_tracestate);
    }
    assert_string_equal(description_of(&sampler), "AlwaysOnSampler");
}

/* spec: S6 trace/sdk.md#alwaysoff MUST stable */
TEST(S6_always_off_drops_always_and_says_its_name)
{
    const otel_sampler sampler = otel_sampler_always_off();
    struct question question;
    for (unsigned parent = 0; parent < 8; parent++) {
        ask(&question, parent, "a=b", UINT64_MAX);
        assert_int_equal(answer_of(&sampler, &question).decision, OTEL_SAMPLING_DROP);
    }
    assert_string_equal(description_of(&sampler), "AlwaysOffSampler");
}

/* spec: S7 trace/sdk.md#requirements-for-traceidratiobased-sampler-algorithm MUST stable */
TEST(S7_a_larger_ratio_samples_all_that_a_smaller_one_does)
{
    static const double ratios[] = {0, 1e-9, 0.0001, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 1};
    enum { RATIOS = sizeof ratios / sizeof ratios[0] };
    otel_sampler samplers[RATIOS];
    for (unsigned i = 0; i < RATIOS; i++)
        samplers[i] = ratio_sampler(ratios[i]);
    struct question question;
    uint64_t low = 88172645463325252;
    for (unsigned id = 0; id < 2000; id++) {
        low ^= low << 13, low ^= low >> 7, low ^= low << 17;
        ask(&question, NO_PARENT, "", low);
        question.trace_id[8] = (uint8_t)(low >> 56);
        bool smaller = false;
        for (unsigned i = 0; i < RATIOS; i++) {
            const bool sampled = answer_of(&samplers[i], &question).decision != OTEL_SAMPLING_DROP;
            assert_true(sampled || !smaller);
            assert_int_equal(answer_of(&samplers[i], &question).decision != OTEL_SAMPLING_DROP,
                             sampled);
            smaller = sampled;
        }
        assert_true(smaller);
    }
    for (unsigned i = 0; i < RATIOS; i++)
        free_sampler(&samplers[i]);
}

/* spec: S7 trace/sdk.md#traceidratiobased MUST stable */
TEST(S7_the_parents_flag_changes_nothing)
{
    otel_sampler sampler = ratio_sampler(0.5);
    otel_log_set_handler(keep_line, &(struct lines){.count = 0});
    struct question question;
    for (unsigned parent = 0; parent < 8; parent++) {
        ask(&question, parent, "", 0);
        question.trace_id[8] = 0x7f;
        assert_int_equal(answer_of(&sampler, &question).decision, OTEL_SAMPLING_RECORD_AND_SAMPLE);
        question.trace_id[8] = 0x80;
        assert_int_equal(answer_of(&sampler, &question).decision, OTEL_SAMPLING_DROP);
    }
    otel_log_set_handler(NULL, NULL);
    free_sampler(&sampler);
}

/* spec: S7 trace/sdk.md#traceidratiobased MUST stable */
TEST(S7_the_description_has_the_ratio_as_a_decimal_number)
{
    static const struct {
        double ratio;
        const char *text;
    } cases[] = {{0.0001, "TraceIdRatioBased{0.000100}"},
                 {1, "TraceIdRatioBased{1.000000}"},
                 {0, "TraceIdRatioBased{0.000000}"},
                 {0.25, "TraceIdRatioBased{0.250000}"},
                 {1e-9, "TraceIdRatioBased{0.000000001}"},
                 {1.0 / 3, "TraceIdRatioBased{0.3333333333333333}"},
                 {0.1, "TraceIdRatioBased{0.100000}"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        otel_sampler sampler = ratio_sampler(cases[i].ratio);
        assert_string_equal(description_of(&sampler), cases[i].text);
        free_sampler(&sampler);
    }
    otel_sampler almost = ratio_sampler(nextafter(0.25, 1));
    assert_string_equal(description_of(&almost), "TraceIdRatioBased{0.25000000000000006}");
    free_sampler(&almost);
}

/* spec: S7 trace/sdk.md#traceidratiobased MUST stable */
TEST(S7_the_description_is_the_same_in_every_locale)
{
    char before[64];
    snprintf(before, sizeof before, "%s", setlocale(LC_NUMERIC, NULL));
    static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    for (size_t i = 0; i < sizeof commas / sizeof commas[0]; i++) {
        if (setlocale(LC_NUMERIC, commas[i]) == NULL)
            continue;
        otel_sampler sampler = ratio_sampler(0.0625);
        assert_string_equal(description_of(&sampler), "TraceIdRatioBased{0.062500}");
        free_sampler(&sampler);
    }
    setlocale(LC_NUMERIC, before);
}

/* spec: S7 trace/sdk.md#compatibility-warnings-for-traceidratiobased-sampler SHOULD development */
TEST(S7_a_sampler_that_decides_below_a_parent_warns_once)
{
    struct lines lines = {.count = 0};
    otel_log_set_handler(keep_line, &lines);
    otel_sampler sampler = ratio_sampler(0.5);
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    answer_of(&sampler, &question);
    assert_int_equal(lines.count, 0);
    ask(&question, REMOTE, "ot=th:8", 1);
    answer_of(&sampler, &question);
    answer_of(&sampler, &question);
    otel_log_set_handler(NULL, NULL);
    assert_int_equal(lines.count, 1);
    assert_non_null(strstr(lines.last, "TraceIdRatioBased"));
    assert_non_null(strstr(lines.last, "sampled by ProbabilitySampler"));
    free_sampler(&sampler);
}

TEST(a_ratio_that_is_none_is_refused)
{
    otel_sampler sampler;
    assert_int_equal(otel_sampler_trace_id_ratio(-0.1, &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_sampler_trace_id_ratio(1.1, &sampler), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_sampler_trace_id_ratio((double)NAN, &sampler),
                     OTEL_ERROR_INVALID_ARGUMENT);
}

/* spec: S8 trace/sdk.md#parentbased MUST stable */
TEST(S8_each_kind_of_parent_has_its_delegate)
{
    struct counted counted[5] = {{0, 0}};
    otel_sampler sampler;
    oteli_leaks_begin();
    const otel_parent_based_options options = {
        .size = sizeof options,
        .root = counted_sampler(&counted[0]),
        .remote_parent_sampled = counted_sampler(&counted[1]),
        .remote_parent_not_sampled = counted_sampler(&counted[2]),
        .local_parent_sampled = counted_sampler(&counted[3]),
        .local_parent_not_sampled = counted_sampler(&counted[4])};
    assert_int_equal(otel_sampler_parent_based(&options, &sampler), OTEL_OK);
    static const unsigned parents[5] = {NO_PARENT, REMOTE | SAMPLED, REMOTE, LOCAL | SAMPLED,
                                        LOCAL};
    struct question question;
    for (unsigned i = 0; i < 5; i++) {
        ask(&question, parents[i], "", 1);
        answer_of(&sampler, &question);
        for (unsigned k = 0; k < 5; k++)
            assert_int_equal(counted[k].asked, k <= i);
    }
    free_sampler(&sampler);
    for (unsigned k = 0; k < 5; k++)
        assert_int_equal(counted[k].freed, 1);
    oteli_leaks_check();
}

/* spec: S8 trace/sdk.md#parentbased MUST stable */
TEST(S8_delegates_that_are_not_given_do_as_the_parent_did)
{
    otel_sampler sampler;
    const otel_parent_based_options options = {.size = sizeof options,
                                               .root = otel_sampler_always_off()};
    assert_int_equal(otel_sampler_parent_based(&options, &sampler), OTEL_OK);
    struct question question;
    for (unsigned parent = LOCAL; parent < 8; parent++) {
        if ((parent & (LOCAL | REMOTE)) == 0)
            continue;
        ask(&question, parent, "", 1);
        assert_int_equal(answer_of(&sampler, &question).decision,
                         (parent & SAMPLED) != 0 ? OTEL_SAMPLING_RECORD_AND_SAMPLE
                                                 : OTEL_SAMPLING_DROP);
    }
    assert_string_equal(description_of(&sampler),
                        "ParentBased{root:AlwaysOffSampler,remoteParentSampled:AlwaysOnSampler,"
                        "remoteParentNotSampled:AlwaysOffSampler,localParentSampled:"
                        "AlwaysOnSampler,localParentNotSampled:AlwaysOffSampler}");
    free_sampler(&sampler);
}

/* spec: S8 trace/sdk.md#parentbased MUST stable */
TEST(S8_a_parent_that_is_not_valid_makes_a_root)
{
    struct counted root = {0, 0};
    otel_sampler sampler;
    const otel_parent_based_options options = {.size = sizeof options,
                                               .root = counted_sampler(&root)};
    assert_int_equal(otel_sampler_parent_based(&options, &sampler), OTEL_OK);
    struct question question;
    ask(&question, REMOTE | SAMPLED, "", 1);
    memset(question.parent.span_id, 0, sizeof question.parent.span_id);
    answer_of(&sampler, &question);
    assert_int_equal(root.asked, 1);
    free_sampler(&sampler);
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
    oteli_leaks_begin();
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_parent_based(&options, &sampler), OTEL_ERROR_NO_MEMORY);
    assert_int_equal(counted.freed, 2);
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_always_record(counted_sampler(&counted), &sampler),
                     OTEL_ERROR_NO_MEMORY);
    assert_int_equal(counted.freed, 3);
    oteli_leaks_check();
}

/* spec: S11 trace/sdk.md#alwaysrecord MUST stable */
TEST(S11_always_record_records_what_its_root_drops)
{
    static const struct {
        otel_sampler (*root)(void);
        otel_sampling_decision decision;
    } cases[] = {{otel_sampler_always_off, OTEL_SAMPLING_RECORD_ONLY},
                 {otel_sampler_always_on, OTEL_SAMPLING_RECORD_AND_SAMPLE}};
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    for (size_t i = 0; i < 2; i++) {
        otel_sampler sampler;
        assert_int_equal(otel_sampler_always_record(cases[i].root(), &sampler), OTEL_OK);
        assert_int_equal(answer_of(&sampler, &question).decision, cases[i].decision);
        free_sampler(&sampler);
    }
    struct counted counted = {0, 0};
    otel_sampler sampler;
    assert_int_equal(otel_sampler_always_record(counted_sampler(&counted), &sampler), OTEL_OK);
    assert_int_equal(answer_of(&sampler, &question).decision, OTEL_SAMPLING_RECORD_ONLY);
    assert_string_equal(description_of(&sampler), "AlwaysRecord{custom}");
    free_sampler(&sampler);
    assert_int_equal(counted.freed, 1);
}

/* spec: S5 trace/sdk.md#getdescription MUST stable */
TEST(S5_a_description_is_cut_to_the_room_and_measured_whole)
{
    otel_sampler inner = ratio_sampler(0.5);
    otel_sampler sampler;
    assert_int_equal(otel_sampler_always_record(inner, &sampler), OTEL_OK);
    const char *whole = "AlwaysRecord{TraceIdRatioBased{0.500000}}";
    char text[64];
    for (size_t size = 0; size <= strlen(whole) + 1; size++) {
        memset(text, '#', sizeof text);
        assert_int_equal(sampler.describe(sampler.state, size != 0 ? text : NULL, size),
                         strlen(whole));
        if (size != 0) {
            assert_int_equal(strlen(text), size - 1);
            assert_memory_equal(text, whole, size - 1);
        }
        assert_int_equal(text[size], '#');
    }
    free_sampler(&sampler);
}
