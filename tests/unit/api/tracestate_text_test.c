/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/tracestate_text_test.c - specification of otel/tracestate.h. */
#include "tests/support/unit.h"

#include <otel/otel.h>

#include <stdio.h>
#include <string.h>

static size_t complaints;

static void note(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)message;
    complaints += level == OTEL_LOG_WARN;
}

static int begin(void **state)
{
    (void)state;
    complaints = 0;
    otel_log_set_handler(note, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    otel_log_set_handler(NULL, NULL);
    return 0;
}

static const char *set(const char *tracestate, const char *key, const char *value)
{
    static char result[OTEL_TRACESTATE_SIZE];
    memset(result, '#', sizeof result);
    const size_t length = otel_tracestate_set(tracestate, key, value, result, sizeof result);
    assert_int_equal(strlen(result), length);
    return result;
}

static const char *without(const char *tracestate, const char *key)
{
    static char result[OTEL_TRACESTATE_SIZE];
    memset(result, '#', sizeof result);
    const size_t length = otel_tracestate_remove(tracestate, key, result, sizeof result);
    assert_int_equal(strlen(result), length);
    return result;
}

AROUND_EACH(begin, end);

/* spec: A27 trace/api.md#tracestate MUST stable */
TEST(A27_get_gives_the_value_of_a_key)
{
    char value[8];
    assert_int_equal(otel_tracestate_get("a=1,b=two", "b", value, sizeof value), 3);
    assert_string_equal(value, "two");
    assert_int_equal(otel_tracestate_get("a=1, b= 2 ,a=3", "b", value, sizeof value), 2);
    assert_string_equal(value, " 2");
    assert_int_equal(otel_tracestate_get("a=1,b=0123456789", "b", value, sizeof value), 10);
    assert_string_equal(value, "0123456");
    assert_int_equal(otel_tracestate_get("a=1", "a", NULL, 0), 1);
    static const struct {
        const char *tracestate;
        const char *key;
    } nothing[] = {{"a=1", "b"},  {"a=1", "a="}, {"ab=1", "a"}, {"a=1", "ab"},   {"a=1", ""},
                   {"a=1", NULL}, {"", "a"},     {NULL, "a"},   {"a=1,bad", "a"}};
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        assert_true(otel_tracestate_get(nothing[i].tracestate, nothing[i].key, value,
                                        sizeof value) == SIZE_MAX);
        assert_string_equal(value, "");
    }
}

/* spec: A27 trace/api.md#tracestate MUST stable */
TEST(A27_what_is_added_or_updated_comes_first_and_once)
{
    assert_string_equal(set(NULL, "a", "1"), "a=1");
    assert_string_equal(set("", "a", "1"), "a=1");
    assert_string_equal(set("b=2,c=3", "a", "1"), "a=1,b=2,c=3");
    assert_string_equal(set("b=2,a=3,c=4", "a", "1"), "a=1,b=2,c=4");
    assert_string_equal(set(" b=2 ,,\tc=3,b=4", "c", " x"), "c= x,b=2");
    assert_string_equal(set("not valid", "a", "1"), "a=1");
    assert_string_equal(set("aa=2", "a", "1"), "a=1,aa=2");
    assert_string_equal(set("a=1", "0a_-*/@", "~"), "0a_-*/@=~,a=1");
    assert_int_equal(complaints, 0);
}

/* spec: A27 trace/api.md#tracestate MUST stable */
TEST(A27_what_is_deleted_is_gone_and_the_rest_stays_in_order)
{
    assert_string_equal(without("a=1,b=2,c=3", "b"), "a=1,c=3");
    assert_string_equal(without("a=1", "a"), "");
    assert_string_equal(without("a=1,b=2", "c"), "a=1,b=2");
    assert_string_equal(without("a=1,b=2", NULL), "a=1,b=2");
    assert_string_equal(without("a=1,bad", "c"), "");
    assert_string_equal(without(NULL, "a"), "");
}

/* spec: A27 trace/api.md#tracestate MUST stable */
TEST(A27_an_invalid_member_changes_nothing_and_is_reported)
{
    char key[300];
    char value[300];
    memset(key, 'k', sizeof key);
    memset(value, 'v', sizeof value);
    key[257] = value[257] = '\0';
    const struct {
        const char *key;
        const char *value;
    } bad[] = {{"", "1"},    {NULL, "1"},  {"A", "1"},    {"_a", "1"},        {"a b", "1"},
               {"a=", "1"},  {"a,b", "1"}, {"a\n", "1"},  {"a\xc3\xa4", "1"}, {key, "1"},
               {"a", ""},    {"a", NULL},  {"a", " "},    {"a", "1 "},        {"a", "1=2"},
               {"a", "1,2"}, {"a", "\t"},  {"a", "\xff"}, {"a", "1\n"},       {"a", value}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_string_equal(set("a=0,b=2", bad[i].key, bad[i].value), "a=0,b=2");
    assert_int_equal(complaints, 1); /* the log does not repeat itself */
    key[256] = value[256] = '\0';
    assert_int_equal(strlen(set("", "a", value)), 258);
    assert_int_equal(strlen(set("", key, "1")), 258);
    assert_string_equal(set("b=2", key, value), "b=2"); /* 513 bytes fit nowhere */
}

/* spec: A27 trace/api.md#tracestate MUST stable */
TEST(A27_the_33rd_member_falls_off_the_end)
{
    char text[400] = "k00=0";
    for (int i = 1; i < 32; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ",k%02d=0", i);
    const char *full = set(text, "new", "1");
    assert_memory_equal(full, "new=1,k00=0,", 12);
    assert_non_null(strstr(full, "k30=0"));
    assert_null(strstr(full, "k31=0"));
    const char *updated = set(text, "k31", "1");
    assert_memory_equal(updated, "k31=1,k00=0,", 12);
    assert_non_null(strstr(updated, "k30=0"));
}

TEST(what_is_too_long_goes_and_the_new_member_last)
{
    char value[250];
    char text[1200];
    memset(value, 'v', sizeof value);
    snprintf(text, sizeof text, "a=%.200s,b=%.100s,c=%.100s", value, value, value);
    const char *kept = set(text, "new", (snprintf(value, sizeof value, "%0200d", 0), value));
    assert_memory_equal(kept, "new=000", 7);
    assert_null(strstr(kept, "a=vv"));
    assert_non_null(strstr(kept, ",b=vv"));
    assert_non_null(strstr(kept, ",c=vv"));
}

TEST(a_result_is_whole_or_empty)
{
    char result[8];
    assert_int_equal(otel_tracestate_set("b=2", "a", "1", result, sizeof result), 7);
    assert_string_equal(result, "a=1,b=2");
    assert_int_equal(otel_tracestate_set("b=2", "a", "12", result, sizeof result), 8);
    assert_string_equal(result, "");
    assert_int_equal(otel_tracestate_set("b=2", "a", "12", NULL, 0), 8);
    assert_int_equal(otel_tracestate_remove("bb=2345,a=1", "a", result, 7), 7);
    assert_string_equal(result, "");
}

/* spec: A27 trace/api.md#tracestate MUST stable */
TEST(A27_the_text_that_was_given_stays_unless_it_is_the_result)
{
    char text[OTEL_TRACESTATE_SIZE] = "a=1,b=2";
    assert_string_equal(set(text, "b", "3"), "b=3,a=1");
    assert_string_equal(text, "a=1,b=2");
    otel_tracestate_set(text, "b", "3", text, sizeof text);
    assert_string_equal(text, "b=3,a=1");
    otel_tracestate_remove(text, "b", text, sizeof text);
    assert_string_equal(text, "a=1");

    const uint8_t id[16] = {1};
    otel_span_context context = otel_span_context_make(id, id, 1, true, text);
    otel_span_context_tracestate(&context, text, sizeof text);
    assert_string_equal(text, "a=1");

    assert_int_equal(otel_tracestate_get(text, "a", text, sizeof text), 1);
    assert_string_equal(text, "1");
    char cut[] = "a=1,b=23456";
    assert_int_equal(otel_tracestate_get(cut, "b", cut, 4), 5);
    assert_string_equal(cut, "234");
}
