/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/sampler_composite_test.c - specification of CompositeSampler, of the composable
 * samplers, and of the conditions and patterns of rules. */
#include "common/text/pattern.h"
#include "sdk/composable/rule.h"

#include "tests/support/sampling.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

AROUND_EACH(sampling_begin, sampling_end);

/* The tests below are about this one. */
static void use(otel_composable root)
{
    assert_int_equal(otel_sampler_composite(root, next_sampler()), OTEL_OK);
}

static void assert_description(const char *expected)
{
    char text[300];
    snprintf(text, sizeof text, "CompositeSampler{%s}", expected);
    assert_string_equal(description_of(&sampling.sampler), text);
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

static void assert_outcome(unsigned parent, const char *tracestate, uint64_t low,
                           const char *expected)
{
    struct question question;
    ask(&question, parent, tracestate, low);
    assert_string_equal(outcome(&sampling.sampler, &question), expected);
}

/* spec: S10 trace/sdk.md#composablealwayson MUST development */
TEST(S10_composable_always_on_samples_with_threshold_zero)
{
    use(otel_composable_always_on());
    assert_outcome(NO_PARENT, "", 0, "+ot=th:0");
    assert_outcome(REMOTE, "a=b , ot=th:c", 0, "+ot=th:0,a=b");
    char others[OTEL_TRACESTATE_SIZE] = "";
    for (int key = 'a'; key < 'f'; key++)
        snprintf(others + strlen(others), sizeof others - strlen(others), "%s%c=%098d",
                 key == 'a' ? "" : ",", key, 0);
    char expected[OTEL_TRACESTATE_SIZE + 20] = "+ot=th:0,";
    strcat(expected, others); /* 512 bytes */
    assert_outcome(REMOTE, others, 0, expected);
    memcpy(others + strlen(others), ",f=1", 5);
    assert_outcome(REMOTE, others, 0, expected); /* without the last */
    assert_description("ComposableAlwaysOn");
}

/* spec: S10 trace/sdk.md#composablealwaysoff MUST development */
/* spec: S10 trace/sdk.md#composableprobability SHOULD development */
TEST(S10_composable_always_off_drops_and_erases_the_threshold_and_so_does_a_probability_of_zero)
{
    for (unsigned i = 0; i < 2; i++) {
        use(i == 0 ? otel_composable_always_off() : probability(0));
        assert_outcome(NO_PARENT, "", UINT64_MAX, "-");
        assert_outcome(REMOTE | SAMPLED, "a=b,ot=th:0;rv:ffffffffffff00", 1,
                       "-ot=rv:ffffffffffff00,a=b");
        assert_description("ComposableAlwaysOff");
    }
}

/* spec: S10 trace/sdk.md#composableprobability MUST development */
TEST(S10_composable_probability_decides_as_probability_sampler)
{
    static const char *const tracestates[] = {"", "ot=th:8", "a=b,ot=rv:c0000000000000;xy:1"};
    static const double ratios[] = {1, 0.5, 0.3, 0.01, 0};
    for (size_t r = 0; r < sizeof ratios / sizeof ratios[0]; r++) {
        otel_sampler alone;
        assert_int_equal(otel_sampler_probability(ratios[r], &alone), OTEL_OK);
        use(probability(ratios[r]));
        for (unsigned i = 0; i < 300; i++) {
            struct question question;
            char expected[OTEL_TRACESTATE_SIZE + 1];
            ask(&question, RANDOM | (i % 2 ? REMOTE : NO_PARENT), tracestates[i % 3],
                i * UINT64_C(0x123456789abcd));
            snprintf(expected, sizeof expected, "%s", outcome(&alone, &question));
            assert_string_equal(outcome(&sampling.sampler, &question), expected);
        }
        free_sampler(&alone);
    }
}

/* spec: S10 trace/sdk.md#composableparentthreshold MUST development */
TEST(S10_parent_threshold_does_as_the_parent_and_its_root_as_without)
{
    use(parent_threshold(probability(0.5)));
    const uint64_t high = 0xe0000000000000;
    assert_outcome(NO_PARENT, "", high, "+ot=th:8");
    assert_outcome(NO_PARENT, "", 0, "-");
    assert_outcome(REMOTE | SAMPLED, "ot=th:c,a=b", high, "+ot=th:c,a=b");
    assert_outcome(LOCAL | SAMPLED, "ot=th:c;rv:ffffffffffff00", 0, "+ot=th:c;rv:ffffffffffff00");
    /* Without a threshold the flag says what the parent did, and nothing says how likely. */
    assert_outcome(REMOTE | SAMPLED, "a=b", 0, "+a=b");
    assert_outcome(REMOTE, "a=b", high, "-a=b");
    assert_description("ComposableParentThreshold{"
                       "root:ComposableProbability{0.500000}}");
}

/* spec: S10 trace/tracestate-probability-sampling.md#parent-based-threshold SHOULD development */
TEST(S10_a_threshold_that_the_flag_contradicts_is_erased)
{
    use(parent_threshold(otel_composable_always_off()));
    assert_outcome(REMOTE | SAMPLED, "ot=th:c;xy:1", 0, "+ot=xy:1");
    assert_outcome(REMOTE, "ot=th:c", 0xe0000000000000, "-");
    assert_outcome(REMOTE, "ot=th:c", 0, "-");
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
    use(annotating(annotating(annotating(otel_composable_always_on(), "a", 1), "b", 2), "c", 3));
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    /* In place: attributes may stand in the result itself. */
    otel_sampling_result result;
    memset(&result, 0, sizeof result);
    sampling.sampler.sample(sampling.sampler.state, &question.query, &result);
    assert_int_equal(result.attribute_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(result.attributes[i].key[0], "abc"[i]);
        assert_int_equal(result.attributes[i].value.as.integer, i + 1);
    }

    use(annotating(otel_composable_always_off(), "a", 1));
    assert_int_equal(answer_of(&sampling.sampler, &question).attribute_count, 0);
    assert_description("ComposableAnnotating{ComposableAlwaysOff,attributes:a}");
}

TEST(keys_of_annotations_end_where_their_lengths_say)
{
    char keys[] = "methodstatus";
    const otel_attribute attributes[] = {otel_attribute_n(keys, 6, otel_value_string("GET")),
                                         otel_attribute_n(keys + 6, 6, otel_value_int(204))};
    otel_composable composable;
    assert_int_equal(
        otel_composable_annotating(otel_composable_always_on(), attributes, 2, &composable),
        OTEL_OK);
    use(composable);
    assert_description("ComposableAnnotating{ComposableAlwaysOn,attributes:method;status}");
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
        otel_attribute_of("empty", otel_value_empty()),
        /* and those that point nowhere, which are empty */
        otel_attribute_of("string", otel_value_string_n(NULL, 8)),
        otel_attribute_of("strings", otel_value_string_array(NULL, 8)),
        otel_attribute_of("booleans", otel_value_bool_array(NULL, 8)),
        otel_attribute_of("integers", otel_value_int_array(NULL, 8)),
        otel_attribute_of("reals", otel_value_double_array(NULL, 8)),
        otel_attribute_of("bytes", otel_value_bytes(NULL, SIZE_MAX))};
    enum { COUNT = sizeof attributes / sizeof attributes[0] };
    otel_composable composable;
    otel_status status = OTEL_ERROR_NO_MEMORY;
    for (size_t nth = 1; status != OTEL_OK; nth++) {
        oteli_leaks_check();
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        status =
            otel_composable_annotating(otel_composable_always_on(), attributes, COUNT, &composable);
        assert_int_equal(status, oteli_leaks_failed() ? OTEL_ERROR_NO_MEMORY : OTEL_OK);
    }
    text[0] = '#';
    use(composable);
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    const otel_sampling_result result = answer_of(&sampling.sampler, &question);
    assert_int_equal(result.attribute_count, COUNT);
    assert_memory_equal(result.attributes[0].value.as.string, "text", 4);
    assert_string_equal(result.attributes[1].value.as.strings[0], "text");
    assert_null(result.attributes[1].value.as.strings[1]);
    assert_int_equal(result.attributes[3].value.as.integers[1], 2);
    for (size_t i = 9; i < COUNT; i++) {
        assert_int_equal(result.attributes[i].value.type, attributes[i].value.type);
        assert_int_equal(result.attributes[i].value.length, 0);
    }
}

TEST(attributes_beyond_the_room_are_left_out)
{
    otel_attribute ten[10];
    for (size_t i = 0; i < 10; i++)
        ten[i] = otel_attribute_of("k", otel_value_int((int64_t)i));
    otel_composable inner;
    otel_composable outer;
    assert_int_equal(otel_composable_annotating(otel_composable_always_on(), ten, 10, &inner),
                     OTEL_OK);
    assert_int_equal(otel_composable_annotating(inner, ten, 10, &outer), OTEL_OK);
    use(outer);
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    assert_int_equal(answer_of(&sampling.sampler, &question).attribute_count, OTEL_SAMPLING_ROOM);
    assert_int_equal(sampling.lines.count, 1);
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
    const otel_sampling_rule rules[] = {
        {.predicate = never, .predicate_state = &asked, .sampler = otel_composable_always_on()},
        {.name_pattern = "POST*", .sampler = otel_composable_always_on()},
        {.name_pattern = "GET*", .sampler = probability(0.25)},
        {.sampler = otel_composable_always_on()}};
    otel_composable based;
    assert_int_equal(otel_composable_rule_based(rules, 4, &based), OTEL_OK);
    use(based);
    assert_outcome(NO_PARENT, "", 0xc0000000000000, "+ot=th:c");
    assert_outcome(NO_PARENT, "", 1, "-");
    assert_int_equal(asked, 2);
    assert_description("ComposableRuleBased{ComposableAlwaysOn,"
                       "ComposableAlwaysOn,ComposableProbability{0.250000},ComposableAlwaysOn}");
    for (size_t count = 0; count < 2; count++) { /* without one that matches nothing is sampled */
        assert_int_equal(otel_composable_rule_based(rules + 1, count, &based), OTEL_OK);
        use(based);
        assert_outcome(REMOTE | SAMPLED, "ot=th:0", 1, "-");
    }
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
    use(own_composable(&own));
    assert_outcome(REMOTE, "ot=th:8;xy:1", 0, "+ot=xy:1");
    /* It is compared with chance, and not with the randomness of the trace. */
    own.threshold = INT64_C(1) << 55;
    unsigned sampled = 0;
    struct question question;
    ask(&question, REMOTE, "ot=rv:00000000000000", 0);
    for (unsigned i = 0; i < 200; i++)
        sampled += answer_of(&sampling.sampler, &question).decision != OTEL_SAMPLING_DROP;
    assert_in_range(sampled, 1, 199);
    next_sampler();
    assert_int_equal(own.freed, 1);
}

/* spec: S10 trace/sdk.md#getsamplingintent MUST development */
TEST(S10_a_provider_of_tracestates_cannot_change_ot)
{
    struct own own = {.threshold = 0, .is_reliable = true, .edits = true};
    use(own_composable(&own));
    assert_outcome(REMOTE, "a=b,ot=th:8;rv:ffffffffffff00", 0, "+ot=th:0;rv:ffffffffffff00,mine=2");
    static const int64_t none[] = {OTEL_NEVER_SAMPLE, INT64_MIN, INT64_C(1) << 56};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        own.threshold = none[i];
        assert_outcome(REMOTE, "a=b,ot=th:8", UINT64_MAX, "-mine=0");
    }
    next_sampler();
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
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_sampler_composite(own_composable(&own), &sampler), OTEL_ERROR_NO_MEMORY);
    oteli_leaks_fail_at(1);
    assert_int_equal(otel_composable_parent_threshold(own_composable(&own), &composable),
                     OTEL_ERROR_NO_MEMORY);
    oteli_leaks_fail_at(2);
    assert_int_equal(otel_composable_rule_based(rules, 1, &composable), OTEL_ERROR_NO_MEMORY);
    assert_int_equal(own.freed, 4);
}

/* ---- rules
 * ---------------------------------------------------------------------------------------- */

TEST(a_pattern_stands_for_the_whole_text)
{
    static const struct {
        const char *pattern, *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "a", true},
        {"a", "ab", false},
        {"A", "a", false},
        {"*", "", true},
        {"*", "anything", true},
        {"?", "", false},
        {"?", "a", true},
        {"?", "\xc3\xa4", true},
        {"?", "\xf0\x9f\x98\x80", true}, /* one character */
        {"?", "\xf0\x9f", false},
        {"??", "\xf0\x9f", true}, /* two that are none */
        {"a*c", "abc", true},
        {"a*c", "ac", true},
        {"a*c", "abcd", false},
        {"*.com", "a.b.com", true},
        {"*.com", "a.com.org", false},
        {"a*b*c", "a-b-b-c", true},
        {"a*b*c", "a-c-b", false},
        {"4??", "404", true},
        {"**a**", "bab", true},
        {"/api/*/users/?", "/api/v1/users/7", true},
        {"/api/*/users/?", "/api/v1/users/77", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(
            oteli_pattern_matches(cases[i].pattern, cases[i].text, strlen(cases[i].text)),
            cases[i].matches);
    assert_false(oteli_pattern_matches("ab*", "abc", 1));
    /* Quadratic and no worse: with backtracking into every star this would not come back. */
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(oteli_pattern_matches("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text, 2000));
}

static bool matches(const otel_sampling_rule *rule, const struct question *question)
{
    otel_sampling_rule owned;
    struct oteli_pool pool = {.blocks = NULL};
    assert_true(oteli_rule_init(&owned, &pool, rule));
    const bool matched = oteli_rule_matches(&owned, &question->query);
    oteli_pool_fini(&pool);
    return matched;
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_a_rule_can_ask_for_kind_parent_and_name)
{
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    assert_true(matches(&(otel_sampling_rule){.kinds = 0}, &question));
    assert_true(matches(
        &(otel_sampling_rule){.kinds = 1U << OTEL_SPAN_KIND_SERVER | 1U << OTEL_SPAN_KIND_CLIENT},
        &question));
    assert_false(matches(&(otel_sampling_rule){.kinds = 1U << OTEL_SPAN_KIND_CLIENT}, &question));
    assert_true(matches(&(otel_sampling_rule){.name_pattern = "GET *"}, &question));
    assert_false(matches(&(otel_sampling_rule){.name_pattern = "GET"}, &question));
    static const unsigned parents[] = {NO_PARENT, LOCAL, REMOTE};
    static const unsigned wanted[] = {OTEL_RULE_PARENT_NONE, OTEL_RULE_PARENT_LOCAL,
                                      OTEL_RULE_PARENT_REMOTE};
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 3; k++) {
            ask(&question, parents[i], "", 1);
            assert_int_equal(matches(&(otel_sampling_rule){.parents = wanted[k]}, &question),
                             i == k);
        }
}

static bool value_matches(otel_value value, const char *text)
{
    const otel_attribute attributes[] = {otel_attribute_of("other", otel_value_string(text)),
                                         otel_attribute_of("key", value)};
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    question.query.attributes = attributes;
    question.query.attribute_count = 2;
    const otel_sampling_rule rule = {
        .attribute_key = "key", .attribute_values = &text, .attribute_value_count = 1};
    return matches(&rule, &question);
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_values_are_compared_by_their_text)
{
    static const char *const strings[] = {"a", NULL, "b"};
    static const int64_t integers[] = {1, -2};
    static const bool booleans[] = {true};
    static const double reals[] = {0.5, 1e21};
    const struct {
        otel_value value;
        const char *text;
        bool matches;
    } cases[] = {
        {otel_value_string("text"), "text", true},
        {otel_value_string("text"), "tex", false},
        {otel_value_int(404), "404", true},
        {otel_value_int(404), "40", false},
        {otel_value_int(INT64_MIN), "-9223372036854775808", true},
        {otel_value_bool(false), "false", true},
        {otel_value_double(0.1), "0.1", true},
        {otel_value_double(-2), "-2", true},
        {otel_value_double(1e20), "1e+20", true},
        {otel_value_double(1e-6), "1e-06", true},
        {otel_value_double(1e-7), "1e-07", true},
        {otel_value_double(1.5e300), "1.5e+300", true},
        {otel_value_double(0.1 + 0.2), "0.30000000000000004", true},
        {otel_value_double((double)NAN), "NaN", true},
        {otel_value_double(-(double)INFINITY), "-Infinity", true},
        {otel_value_string_array(strings, 3), "b", true},
        {otel_value_string_array(strings, 3), "c", false},
        {otel_value_int_array(integers, 2), "-2", true},
        {otel_value_bool_array(booleans, 1), "true", true},
        {otel_value_double_array(reals, 2), "1e+21", true},
        {otel_value_empty(), "", true},
        {otel_value_int_array(NULL, 0), "", false},
        /* as everywhere: what points nowhere is empty, whatever its length says */
        {otel_value_string_n(NULL, 8), "", true},
        {otel_value_bytes(NULL, 8), "", true},
        {otel_value_string_array(NULL, 2), "", false},
        {otel_value_bool_array(NULL, 2), "false", false},
        {otel_value_int_array(NULL, 2), "0", false},
        {otel_value_double_array(NULL, 2), "0", false},
        {otel_value_array(NULL, 2), "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(value_matches(cases[i].value, cases[i].text), cases[i].matches);
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_patterns_include_and_exclude_values)
{
    static const char *const included[] = {"/api/*", "/v1/*"};
    static const char *const excluded[] = {"*/health"};
    const otel_sampling_rule rule = {.pattern_key = "path",
                                     .included = included,
                                     .included_count = 2,
                                     .excluded = excluded,
                                     .excluded_count = 1};
    static const struct {
        const char *path;
        bool matches;
    } cases[] = {{"/api/users", true}, {"/v1/x", true}, {"/api/health", false}, {"/other", false}};
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    assert_false(matches(&rule, &question)); /* there is no such attribute */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const otel_attribute path = otel_attribute_of("path", otel_value_string(cases[i].path));
        question.query.attributes = &path;
        question.query.attribute_count = 1;
        assert_int_equal(matches(&rule, &question), cases[i].matches);
    }
}

TEST(a_rule_looks_at_keys_that_end_where_their_lengths_say)
{
    static const char keys[] = "methodstatus";
    const otel_attribute attributes[] = {otel_attribute_n(keys, 6, otel_value_string("GET")),
                                         otel_attribute_n(keys + 6, 6, otel_value_int(204))};
    static const char *const get[] = {"GET"};
    const otel_sampling_rule rule = {
        .attribute_key = "method", .attribute_values = get, .attribute_value_count = 1};
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    question.query.attributes = attributes;
    question.query.attribute_count = 2;
    assert_true(matches(&rule, &question));
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_all_conditions_have_to_hold)
{
    static const char *const get[] = {"GET"};
    static const char *const success[] = {"2??"};
    const otel_attribute attributes[] = {
        otel_attribute_of("method", otel_value_string("GET")),
        otel_attribute_of("status", otel_value_int(404)),
        otel_attribute_of("status", otel_value_int(204)), /* the last counts, as on a span */
    };
    struct question question;
    ask(&question, NO_PARENT, "", 1);
    question.query.attributes = attributes;
    question.query.attribute_count = 3;
    otel_sampling_rule rule = {.attribute_key = "method",
                               .attribute_values = get,
                               .attribute_value_count = 1,
                               .pattern_key = "status",
                               .included = success,
                               .included_count = 1};
    assert_true(matches(&rule, &question));
    rule.name_pattern = "POST";
    assert_false(matches(&rule, &question));
    rule.name_pattern = NULL;
    question.query.attribute_count = 2;
    assert_false(matches(&rule, &question));
}

TEST(no_memory_is_an_error_and_no_leak)
{
    static const char *const list[] = {"a", "b"};
    const otel_sampling_rule rule = {.name_pattern = "n",
                                     .attribute_key = "k",
                                     .attribute_values = list,
                                     .attribute_value_count = 2,
                                     .pattern_key = "p",
                                     .excluded = list,
                                     .excluded_count = 2};
    bool is_made = false;
    for (size_t nth = 1; !is_made; nth++) {
        otel_sampling_rule owned;
        struct oteli_pool pool = {.blocks = NULL};
        oteli_leaks_check();
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        is_made = oteli_rule_init(&owned, &pool, &rule);
        assert_int_equal(is_made, !oteli_leaks_failed());
        oteli_pool_fini(&pool);
    }
}
