/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/sampler_composite_test.c - specification of CompositeSampler and of the composable
 * samplers, but for the conditions of rules. */
#include "tests/support/leaks.h"
#include "tests/support/sampling.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

static otel_sampler composite(otel_composable root)
{
    otel_sampler sampler;
    assert_int_equal(otel_sampler_composite(root, &sampler), OTEL_OK);
    return sampler;
}

static otel_composable probability(double ratio)
{
    otel_composable composable;
    assert_int_equal(otel_composable_probability(ratio, &composable), OTEL_OK);
    return composable;
}

static otel_composable parent_threshold(otel_composable root)
{
    otel_composable composable;
    assert_int_equal(otel_composable_parent_threshold(root, &composable), OTEL_OK);
    return composable;
}

/* Decision and tracestate: "+ot=th:c" is sampled, "-" dropped without a tracestate. */
static const char *outcome(const otel_sampler *sampler, const struct question *question)
{
    static char text[OTEL_TRACESTATE_SIZE + 1];
    const otel_sampling_result result = answer_of(sampler, question);
    snprintf(text, sizeof text, "%c%s",
             result.decision == OTEL_SAMPLING_RECORD_AND_SAMPLE ? '+' : '-',
             result.has_tracestate ? result.tracestate : question->query.parent_tracestate);
    return text;
}

static void assert_outcome(otel_sampler sampler, unsigned parent, const char *tracestate,
                           uint64_t low, const char *expected)
{
    struct question question;
    ask(&question, parent, tracestate, low);
    assert_string_equal(outcome(&sampler, &question), expected);
}

/* spec: S10 trace/sdk.md#composablealwayson MUST development */
TEST(S10_composable_always_on_samples_with_threshold_zero)
{
    otel_sampler sampler = composite(otel_composable_always_on());
    assert_outcome(sampler, NO_PARENT, "", 0, "+ot=th:0");
    assert_outcome(sampler, REMOTE, "a=b,ot=th:c", 0, "+ot=th:0,a=b");
    assert_string_equal(description_of(&sampler), "CompositeSampler{ComposableAlwaysOn}");
    free_sampler(&sampler);
}

/* spec: S10 trace/sdk.md#composablealwaysoff MUST development */
TEST(S10_composable_always_off_drops_and_erases_the_threshold)
{
    otel_sampler sampler = composite(otel_composable_always_off());
    assert_outcome(sampler, NO_PARENT, "", UINT64_MAX, "-");
    assert_outcome(sampler, REMOTE | SAMPLED, "a=b,ot=th:0;rv:ffffffffffff00", 1,
                   "-ot=rv:ffffffffffff00,a=b");
    assert_string_equal(description_of(&sampler), "CompositeSampler{ComposableAlwaysOff}");
    free_sampler(&sampler);
}

/* spec: S10 trace/sdk.md#composableprobability MUST development */
TEST(S10_composable_probability_decides_as_probability_sampler)
{
    static const char *const tracestates[] = {"", "ot=th:8", "a=b,ot=rv:c0000000000000;xy:1"};
    static const double ratios[] = {1, 0.5, 0.3, 0.01, 0};
    for (size_t r = 0; r < sizeof ratios / sizeof ratios[0]; r++) {
        otel_sampler alone;
        assert_int_equal(otel_sampler_probability(ratios[r], &alone), OTEL_OK);
        otel_sampler sampler = composite(probability(ratios[r]));
        for (unsigned i = 0; i < 300; i++) {
            struct question question;
            char expected[OTEL_TRACESTATE_SIZE + 1];
            ask(&question, RANDOM | (i % 2 ? REMOTE : NO_PARENT), tracestates[i % 3],
                i * UINT64_C(0x123456789abcd));
            snprintf(expected, sizeof expected, "%s", outcome(&alone, &question));
            assert_string_equal(outcome(&sampler, &question), expected);
        }
        free_sampler(&alone);
        free_sampler(&sampler);
    }
}

/* spec: S10 trace/sdk.md#composableprobability SHOULD development */
TEST(S10_a_probability_of_zero_is_always_off)
{
    otel_sampler sampler = composite(probability(0));
    assert_string_equal(description_of(&sampler), "CompositeSampler{ComposableAlwaysOff}");
    free_sampler(&sampler);
}

/* spec: S10 trace/sdk.md#composableparentthreshold MUST development */
TEST(S10_parent_threshold_does_as_the_parent_and_its_root_as_without)
{
    otel_sampler sampler = composite(parent_threshold(probability(0.5)));
    const uint64_t high = 0xe0000000000000;
    assert_outcome(sampler, NO_PARENT, "", high, "+ot=th:8");
    assert_outcome(sampler, NO_PARENT, "", 0, "-");
    assert_outcome(sampler, REMOTE | SAMPLED, "ot=th:c,a=b", high, "+ot=th:c,a=b");
    assert_outcome(sampler, LOCAL | SAMPLED, "ot=th:c;rv:ffffffffffff00", 0,
                   "+ot=th:c;rv:ffffffffffff00");
    /* Without a threshold the flag says what the parent did, and nothing says how likely. */
    assert_outcome(sampler, REMOTE | SAMPLED, "a=b", 0, "+a=b");
    assert_outcome(sampler, REMOTE, "a=b", high, "-a=b");
    assert_string_equal(description_of(&sampler), "CompositeSampler{ComposableParentThreshold{"
                                                  "root:ComposableProbability{0.500000}}}");
    free_sampler(&sampler);
}

/* spec: S10 trace/tracestate-probability-sampling.md#parent-based-threshold SHOULD development */
TEST(S10_a_threshold_that_the_flag_contradicts_is_erased)
{
    otel_sampler sampler = composite(parent_threshold(otel_composable_always_off()));
    assert_outcome(sampler, REMOTE | SAMPLED, "ot=th:c;xy:1", 0, "+ot=xy:1");
    assert_outcome(sampler, REMOTE, "ot=th:c", 0xe0000000000000, "-");
    assert_outcome(sampler, REMOTE, "ot=th:c", 0, "-");
    free_sampler(&sampler);
}

static otel_composable annotating(otel_composable inner, const char *key, int64_t value)
{
    const otel_attribute attribute = otel_attribute_of(key, otel_value_int(value));
    otel_composable composable;
    assert_int_equal(otel_composable_annotating(inner, &attribute, 1, &composable), OTEL_OK);
    return composable;
}

/* spec: S10 trace/sdk.md#composableannotating MUST development */
TEST(S10_annotating_adds_attributes_to_what_is_sampled)
{
    oteli_leaks_begin();
    otel_sampler sampler = composite(
        annotating(annotating(annotating(otel_composable_always_on(), "a", 1), "b", 2), "c", 3));
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    /* In place: attributes may stand in the result itself. */
    otel_sampling_result result;
    memset(&result, 0, sizeof result);
    sampler.sample(sampler.state, &question.query, &result);
    assert_int_equal(result.attribute_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(result.attributes[i].key[0], "abc"[i]);
        assert_int_equal(result.attributes[i].value.as.integer, i + 1);
    }
    free_sampler(&sampler);

    sampler = composite(annotating(otel_composable_always_off(), "a", 1));
    assert_int_equal(answer_of(&sampler, &question).attribute_count, 0);
    assert_string_equal(description_of(&sampler),
                        "CompositeSampler{ComposableAnnotating{ComposableAlwaysOff,attributes:a}}");
    free_sampler(&sampler);
    oteli_leaks_check();
}

TEST(annotations_are_copies_of_every_type)
{
    char text[] = "text";
    const char *strings[] = {text, NULL};
    const bool booleans[] = {true};
    const int64_t integers[] = {1, 2};
    const double reals[] = {0.5};
    const otel_attribute attributes[] = {
        otel_attribute_of("string", otel_value_string(text)),
        otel_attribute_of("strings", otel_value_string_array(strings, 2)),
        otel_attribute_of("booleans", otel_value_bool_array(booleans, 1)),
        otel_attribute_of("integers", otel_value_int_array(integers, 2)),
        otel_attribute_of("reals", otel_value_double_array(reals, 1)),
        otel_attribute_of("bytes", otel_value_bytes(text, 2)),
        otel_attribute_of("bool", otel_value_bool(true)),
        otel_attribute_of("double", otel_value_double(0.25)),
        otel_attribute_of("empty", otel_value_empty())};
    enum { COUNT = sizeof attributes / sizeof attributes[0] };
    for (size_t nth = 1;; nth++) {
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        otel_composable composable;
        const otel_status status =
            otel_composable_annotating(otel_composable_always_on(), attributes, COUNT, &composable);
        const bool all_tried = !oteli_leaks_failed();
        assert_int_equal(status, all_tried ? OTEL_OK : OTEL_ERROR_NO_MEMORY);
        if (status == OTEL_OK) {
            oteli_leaks_fail_at(0);
            text[0] = '#';
            otel_sampler sampler = composite(composable);
            struct question question;
            ask(&question, NO_PARENT, "", 1);
            const otel_sampling_result result = answer_of(&sampler, &question);
            assert_int_equal(result.attribute_count, COUNT);
            assert_memory_equal(result.attributes[0].value.as.string, "text", 4);
            assert_string_equal(result.attributes[1].value.as.strings[0], "text");
            assert_null(result.attributes[1].value.as.strings[1]);
            assert_int_equal(result.attributes[3].value.as.integers[1], 2);
            free_sampler(&sampler);
        }
        oteli_leaks_check();
        if (all_tried)
            break;
    }
}

TEST(annotations_that_point_nowhere_are_empty)
{
    const otel_attribute attributes[] = {
        otel_attribute_of("string", otel_value_string_n(NULL, 8)),
        otel_attribute_of("strings", otel_value_string_array(NULL, 8)),
        otel_attribute_of("booleans", otel_value_bool_array(NULL, 8)),
        otel_attribute_of("integers", otel_value_int_array(NULL, 8)),
        otel_attribute_of("reals", otel_value_double_array(NULL, 8)),
        otel_attribute_of("bytes", otel_value_bytes(NULL, SIZE_MAX))};
    enum { COUNT = sizeof attributes / sizeof attributes[0] };
    otel_composable composable;
    assert_int_equal(
        otel_composable_annotating(otel_composable_always_on(), attributes, COUNT, &composable),
        OTEL_OK);
    otel_sampler sampler = composite(composable);
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    const otel_sampling_result result = answer_of(&sampler, &question);
    assert_int_equal(result.attribute_count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(result.attributes[i].value.type, attributes[i].value.type);
        assert_int_equal(result.attributes[i].value.length, 0);
    }
    free_sampler(&sampler);
}

TEST(attributes_beyond_the_room_are_left_out)
{
    struct lines lines = {.count = 0};
    otel_log_set_handler(keep_line, &lines);
    otel_attribute ten[10];
    for (size_t i = 0; i < 10; i++)
        ten[i] = otel_attribute_of("k", otel_value_int((int64_t)i));
    otel_composable inner;
    otel_composable outer;
    assert_int_equal(otel_composable_annotating(otel_composable_always_on(), ten, 10, &inner),
                     OTEL_OK);
    assert_int_equal(otel_composable_annotating(inner, ten, 10, &outer), OTEL_OK);
    otel_sampler sampler = composite(outer);
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    assert_int_equal(answer_of(&sampler, &question).attribute_count, OTEL_SAMPLING_ROOM);
    assert_int_equal(lines.count, 1);
    otel_log_set_handler(NULL, NULL);
    free_sampler(&sampler);
}

static bool never(void *state, const otel_sampling_query *query)
{
    (void)query;
    ++*(unsigned *)state;
    return false;
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_the_first_rule_that_matches_decides)
{
    unsigned asked = 0;
    oteli_leaks_begin();
    const otel_sampling_rule rules[] = {
        {.predicate = never, .predicate_state = &asked, .sampler = otel_composable_always_on()},
        {.name_pattern = "POST*", .sampler = otel_composable_always_on()},
        {.name_pattern = "GET*", .sampler = probability(0.25)},
        {.sampler = otel_composable_always_on()}};
    otel_composable based;
    assert_int_equal(otel_composable_rule_based(rules, 4, &based), OTEL_OK);
    otel_sampler sampler = composite(based);
    assert_outcome(sampler, NO_PARENT, "", 0xc0000000000000, "+ot=th:c");
    assert_outcome(sampler, NO_PARENT, "", 1, "-");
    assert_int_equal(asked, 2);
    assert_string_equal(description_of(&sampler),
                        "CompositeSampler{ComposableRuleBased{ComposableAlwaysOn,"
                        "ComposableAlwaysOn,ComposableProbability{0.250000},ComposableAlwaysOn}}");
    free_sampler(&sampler);
    oteli_leaks_check();
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_without_a_rule_that_matches_nothing_is_sampled)
{
    const otel_sampling_rule rule = {.name_pattern = "POST*",
                                     .sampler = otel_composable_always_on()};
    otel_composable based;
    assert_int_equal(otel_composable_rule_based(&rule, 1, &based), OTEL_OK);
    otel_sampler sampler = composite(based);
    assert_outcome(sampler, REMOTE | SAMPLED, "ot=th:0", 1, "-");
    free_sampler(&sampler);
    assert_int_equal(otel_composable_rule_based(NULL, 0, &based), OTEL_OK);
    sampler = composite(based);
    assert_outcome(sampler, NO_PARENT, "", 1, "-");
    free_sampler(&sampler);
}

/* A composable sampler of a program. */
struct own {
    int64_t threshold;
    bool is_reliable;
    bool edits;
    unsigned freed;
};

static void edit(const void *state, const otel_sampling_query *query,
                 otel_sampling_decision decision, char tracestate[OTEL_TRACESTATE_SIZE])
{
    (void)state;
    (void)query;
    snprintf(tracestate, OTEL_TRACESTATE_SIZE, "ot=rv:00000000000000,mine=%d", (int)decision);
}

static void intend(const void *state, const otel_sampling_query *query,
                   otel_sampling_intent *intent)
{
    (void)query;
    const struct own *own = state;
    intent->threshold = own->threshold;
    intent->threshold_is_reliable = own->is_reliable;
    intent->edit_tracestate = own->edits ? edit : NULL;
}

static void free_own(void *state)
{
    ((struct own *)state)->freed++;
}

static otel_composable own_composable(struct own *own)
{
    return OTEL_COMPOSABLE(.state = own, .intend = intend, .free = free_own);
}

/* spec: S10 trace/sdk.md#compositesampler MUST development */
TEST(S10_an_unreliable_threshold_is_never_passed_on)
{
    struct own own = {.threshold = 0};
    otel_sampler sampler = composite(own_composable(&own));
    assert_outcome(sampler, REMOTE, "ot=th:8;xy:1", 0, "+ot=xy:1");
    /* It is compared with chance, and not with the randomness of the trace. */
    own.threshold = INT64_C(1) << 55;
    unsigned sampled = 0;
    struct question question;
    ask(&question, REMOTE, "ot=rv:00000000000000", 0);
    for (unsigned i = 0; i < 200; i++)
        sampled += answer_of(&sampler, &question).decision != OTEL_SAMPLING_DROP;
    assert_in_range(sampled, 1, 199);
    free_sampler(&sampler);
    assert_int_equal(own.freed, 1);
}

/* spec: S10 trace/sdk.md#getsamplingintent MUST development */
TEST(S10_a_provider_of_tracestates_cannot_change_ot)
{
    struct own own = {.threshold = 0, .is_reliable = true, .edits = true};
    otel_sampler sampler = composite(own_composable(&own));
    assert_outcome(sampler, REMOTE, "a=b,ot=th:8;rv:ffffffffffff00", 0,
                   "+ot=th:0;rv:ffffffffffff00,mine=2");
    own.threshold = OTEL_NEVER_SAMPLE;
    assert_outcome(sampler, REMOTE, "a=b,ot=th:8", 0, "-mine=0");
    free_sampler(&sampler);
}

TEST(a_threshold_that_is_none_drops)
{
    struct own own = {.threshold = INT64_MIN, .is_reliable = true};
    otel_sampler sampler = composite(own_composable(&own));
    assert_outcome(sampler, NO_PARENT, "", UINT64_MAX, "-");
    own.threshold = INT64_C(1) << 56;
    assert_outcome(sampler, NO_PARENT, "", UINT64_MAX, "-");
    free_sampler(&sampler);
}

TEST(what_is_adopted_is_freed_when_nothing_comes_of_it)
{
    struct own own = {.threshold = 0};
    otel_sampler sampler;
    otel_composable composable;
    const otel_sampling_rule rules[2] = {{.name_pattern = "a", .sampler = own_composable(&own)}};
    assert_int_equal(otel_composable_rule_based(rules, 2, &composable),
                     OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(own.freed, 1);
    oteli_leaks_begin();
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_composite(own_composable(&own), &sampler), OTEL_ERROR_NO_MEMORY);
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_composable_parent_threshold(own_composable(&own), &composable),
                     OTEL_ERROR_NO_MEMORY);
    oteli_leaks_fail_at(2);
    assert_int_equal(otel_composable_rule_based(rules, 1, &composable), OTEL_ERROR_NO_MEMORY);
    assert_int_equal(own.freed, 4);
    oteli_leaks_check();
}
