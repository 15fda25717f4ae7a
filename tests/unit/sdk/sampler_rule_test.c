/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/sampler_rule_test.c - specification of the conditions of ComposableRuleBased's rules,
 * and of their patterns. */
#include "sdk/samplers/pattern.h"
#include "sdk/samplers/rule.h"
#include "sdk/samplers/words.h"

#include "tests/support/leaks.h"
#include "tests/support/sampling.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>

static bool is_like(const char *pattern, const char *text)
{
    return oteli_pattern_matches(pattern, text, strlen(text));
}

TEST(a_pattern_stands_for_the_whole_text)
{
    static const struct {
        const char *pattern;
        const char *text;
        bool matches;
    } cases[] = {{"", "", true},
                 {"", "a", false},
                 {"a", "a", true},
                 {"a", "ab", false},
                 {"A", "a", false},
                 {"*", "", true},
                 {"*", "anything", true},
                 {"?", "", false},
                 {"?", "a", true},
                 {"?", "\xc3\xa4", true}, /* one character, two bytes */
                 {"?", "\xf0\x9f\x98\x80", true},
                 {"?", "\xf0\x9f", false}, /* two that are none */
                 {"??", "\xf0\x9f", true},
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
                 {"/api/*/users/?", "/api/v1/users/77", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(is_like(cases[i].pattern, cases[i].text), cases[i].matches);
}

/* Quadratic and no worse: with backtracking into every star this would not come back. */
TEST(a_pattern_of_many_stars_comes_to_an_end)
{
    char text[2001];
    memset(text, 'a', 2000);
    text[2000] = '\0';
    assert_false(is_like("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", text));
}

static bool matches(const otel_sampling_rule *rule, const struct question *question)
{
    otel_sampling_rule owned;
    oteli_leaks_begin();
    assert_int_equal(oteli_rule_init(&owned, rule), OTEL_OK);
    const bool matched = oteli_rule_matches(&owned, &question->query);
    oteli_rule_fini(&owned);
    oteli_leaks_check();
    return matched;
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_a_rule_without_conditions_matches_everything)
{
    struct question question;
    ask(&question, REMOTE, "", 1);
    assert_true(matches(&(otel_sampling_rule){.kinds = 0}, &question));
}

/* spec: S10 trace/sdk.md#composablerulebased MUST development */
TEST(S10_a_rule_can_ask_for_kind_parent_and_name)
{
    struct question question;
    ask(&question, NO_PARENT, "", 1);
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
    assert_true(value_matches(otel_value_string("text"), "text"));
    assert_false(value_matches(otel_value_string("text"), "tex"));
    assert_true(value_matches(otel_value_int(404), "404"));
    assert_false(value_matches(otel_value_int(404), "40"));
    assert_true(value_matches(otel_value_int(INT64_MIN), "-9223372036854775808"));
    assert_true(value_matches(otel_value_bool(false), "false"));
    assert_true(value_matches(otel_value_double(0.1), "0.1"));
    assert_true(value_matches(otel_value_double(-2), "-2"));
    assert_true(value_matches(otel_value_string_array(strings, 3), "b"));
    assert_false(value_matches(otel_value_string_array(strings, 3), "c"));
    assert_true(value_matches(otel_value_int_array(integers, 2), "-2"));
    assert_true(value_matches(otel_value_bool_array(booleans, 1), "true"));
    assert_true(value_matches(otel_value_double_array(reals, 2), "1e+21"));
    assert_true(value_matches(otel_value_empty(), ""));
    assert_false(value_matches(otel_value_int_array(NULL, 0), ""));
}

/* As everywhere: what points nowhere is empty, whatever its length says. */
TEST(nothing_is_read_where_nothing_is)
{
    assert_true(value_matches(otel_value_string_n(NULL, 8), ""));
    assert_true(value_matches(otel_value_bytes(NULL, 8), ""));
    assert_false(value_matches(otel_value_string_array(NULL, 2), ""));
    assert_false(value_matches(otel_value_bool_array(NULL, 2), "false"));
    assert_false(value_matches(otel_value_int_array(NULL, 2), "0"));
    assert_false(value_matches(otel_value_double_array(NULL, 2), "0"));
    assert_false(value_matches(otel_value_array(NULL, 2), ""));
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
    for (size_t nth = 1;; nth++) {
        otel_sampling_rule owned;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status status = oteli_rule_init(&owned, &rule);
        const bool all_tried = !oteli_leaks_failed();
        assert_int_equal(status, all_tried ? OTEL_OK : OTEL_ERROR_NO_MEMORY);
        if (status == OTEL_OK)
            oteli_rule_fini(&owned);
        oteli_leaks_check();
        if (all_tried)
            break;
    }
}

TEST(numbers_are_written_as_short_as_they_can_be)
{
    static const struct {
        double number;
        const char *text;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {-1.5, "-1.5"},
                 {123456, "123456"},
                 {1e20, "100000000000000000000"},
                 {1e21, "1e+21"},
                 {1e-6, "0.000001"},
                 {1e-7, "1e-7"},
                 {0.1 + 0.2, "0.30000000000000004"},
                 {1.5e300, "1.5e+300"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        struct oteli_words words = oteli_words_begin(text, sizeof text);
        oteli_words_put_double(&words, cases[i].number);
        assert_string_equal(text, cases[i].text);
    }
    assert_true(value_matches(otel_value_double((double)NAN), "NaN"));
    assert_true(value_matches(otel_value_double(-(double)INFINITY), "-Infinity"));
}
