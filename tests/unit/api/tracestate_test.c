/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/tracestate_test.c - specification of api/context/tracestate_pool.h: what a valid
 * tracestate is, what goes when it is too long, and how long one is kept; and of
 * otel/tracestate.h. */
#include "api/context/tracestate_pool.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <otel/tracestate.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { PLACES = 4096, THREADS = 4, ROUNDS = 20000 };

static const uint8_t trace_id[16] = {1};
static const uint8_t other_id[16] = {2};

static uint32_t make(const char *text)
{
    return oteli_tracestate_make(text, strlen(text), trace_id);
}

static size_t copy(uint32_t reference, char *text, size_t size)
{
    return oteli_tracestate_copy(reference, trace_id, text, size);
}

/* The clean form of a text in memory of just its length. */
static const char *clean(const char *text)
{
    static char out[OTELI_TRACESTATE_BYTES + 1];
    const size_t length = oteli_tracestate_clean(text, strlen(text), out);
    assert_true(length <= OTELI_TRACESTATE_BYTES);
    out[length] = '\0';
    return out;
}

static const struct {
    const char *given;
    const char *clean;
} rows[] = {
    {"a=1", "a=1"},
    {"0a=1", "0a=1"},
    {"a_-*/@9=1", "a_-*/@9=1"},
    {"tenant@system=x", "tenant@system=x"},
    {"a= 1", "a= 1"},
    {"a=1 ", "a=1"},
    {"\ta=1\t, b=2 ", "a=1,b=2"},
    {",,a=1,,b=2,,", "a=1,b=2"},
    {"a=1,a=2,b=3", "a=1,b=3"},
    {"ab=1,a=2", "ab=1,a=2"},
    {"a=!\"#$%&'()*+-./:;<>?@[\\]^_`{|}~", "a=!\"#$%&'()*+-./:;<>?@[\\]^_`{|}~"},
    {"a=1;b", "a=1;b"},
};
/* Not valid, or nothing in it. */
static const char *const bad_rows[] = {
    "",       " ",      ",",       "a",     "a=",    "a= ",  "=1",          "=",
    "a=1=2",  "A=1",    "_a=1",    "@a=1",  "a b=1", "a =1", "a\xc3\xa4=1", "a=\xc3\xa4",
    "a=\x7f", "a=1\t2", "a=1;b=2", "a=1,b", "a=1\n"};

AROUND_EACH(recorder_setup_without_sdk, recorder_teardown);

/* spec: C10 https://www.w3.org/TR/trace-context-2/#tracestate-header MUST stable */
TEST_WITH(NULL, NULL, tracestates_good_and_bad)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(clean(rows[i].given), rows[i].clean) != 0)
            fail_msg("\"%s\" became \"%s\"", rows[i].given, clean(rows[i].given));
    for (size_t i = 0; i < sizeof bad_rows / sizeof bad_rows[0]; i++)
        if (*clean(bad_rows[i]) != '\0')
            fail_msg("\"%s\" became \"%s\"", bad_rows[i], clean(bad_rows[i]));
    char out[OTELI_TRACESTATE_BYTES];
    assert_int_equal(oteli_tracestate_clean(NULL, 0, out), 0);
    assert_int_equal(oteli_tracestate_clean("a=\0b", 4, out), 0);
}

/* A member of this length whose key is `key`. */
static size_t put_member(char *at, const char *key, size_t length)
{
    const size_t key_length = strlen(key);
    memset(at, 'v', length);
    memcpy(at, key, key_length);
    at[key_length] = '=';
    at[length] = '\0';
    return length;
}

/* spec: C10 https://www.w3.org/TR/trace-context-2/#tracestate-header MUST stable */
TEST_WITH(NULL, NULL, long_members_go_first_and_then_the_last)
{
    static const struct {
        size_t lengths[8];
        const char *kept;
    } cases[] = {
        {{128, 128, 128, 125}, "abcd"},      {{128, 128, 128, 126}, "abc"},
        {{100, 200, 100, 100}, "abcd"},      {{100, 210, 100, 100}, "acd"},
        {{129, 100, 200, 100, 100}, "abde"}, {{250, 250, 100, 100, 100}, "cde"},
        {{128, 128, 128, 128, 128}, "abc"},  {{258, 258}, "a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[2000];
        size_t used = 0;
        for (size_t k = 0; k < 8 && cases[i].lengths[k] != 0; k++) {
            const char key[2] = {(char)('a' + k), '\0'};
            used += put_member(text + used, key, cases[i].lengths[k]);
            text[used++] = ',';
        }
        text[used] = '\0';
        const char *kept = clean(text);
        char keys[9] = "";
        size_t count = 0;
        for (const char *at = kept; *at != '\0'; at++)
            if (at == kept || at[-1] == ',')
                keys[count++] = *at;
        assert_string_equal(keys, cases[i].kept);
    }
}

TEST(a_tracestate_is_found_by_its_reference_and_trace)
{
    char text[32];
    const uint32_t one = make("a=1");
    const uint32_t two = make("b=2");

    assert_true(one != 0 && two != 0 && one != two);
    assert_true(one < 1u << 24 && two < 1u << 24);
    assert_int_equal(copy(one, text, sizeof text), 3);
    assert_string_equal(text, "a=1");
    assert_int_equal(copy(two, text, sizeof text), 3);
    assert_string_equal(text, "b=2");
    assert_int_equal(oteli_tracestate_copy(one, other_id, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(copy(0, text, sizeof text), 0);
    assert_int_equal(copy(0xffffff, text, sizeof text), 0);
    assert_int_equal(copy(0x001000 | 3000, text, sizeof text), 0);
    assert_int_equal(make("not valid"), 0);
}

TEST(the_oldest_place_is_taken_again)
{
    char text[32];
    const uint32_t first = make("first=1");
    for (int i = 0; i < PLACES - 1; i++)
        assert_true(make("filler=1") != 0);
    assert_int_equal(copy(first, text, sizeof text), 7);
    assert_true(make("filler=1") != 0);
    assert_int_equal(copy(first, text, sizeof text), 0);
    assert_int_equal(oteli_tracestate_retain(first), 0);
}

TEST(what_a_span_holds_is_kept)
{
    char text[32];
    const uint32_t held = make("held=1");
    assert_int_equal(oteli_tracestate_retain(held), held);
    assert_int_equal(oteli_tracestate_retain(held), held);
    for (int i = 0; i < 3 * PLACES; i++)
        assert_true(make("filler=1") != 0);
    assert_int_equal(copy(held, text, sizeof text), 6);
    oteli_tracestate_release(held);
    for (int i = 0; i < PLACES; i++)
        make("filler=1");
    assert_int_equal(copy(held, text, sizeof text), 6);
    oteli_tracestate_release(held);
    oteli_tracestate_release(0);
    for (int i = 0; i < PLACES; i++)
        make("filler=1");
    assert_int_equal(copy(held, text, sizeof text), 0);
}

TEST(when_everything_is_held_there_is_no_place)
{
    static uint32_t held[PLACES];
    for (size_t i = 0; i < PLACES; i++)
        held[i] = oteli_tracestate_retain(make("held=1"));
    assert_int_equal(make("one=more"), 0);
    for (size_t i = 0; i < PLACES; i++)
        oteli_tracestate_release(held[i]);
    assert_true(make("one=more") != 0);
}

TEST(a_reference_never_comes_back_as_zero)
{
    char text[32];
    for (int i = 0; i < 15; i++) {
        const uint32_t reference = make("a=1");
        assert_true(reference != 0);
        assert_int_equal(copy(reference, text, sizeof text), 3);
        for (int k = 0; k < PLACES - 1; k++)
            make("a=1");
    }
}

TEST(without_memory_there_is_no_tracestate)
{
    oteli_leaks_fail_at(1);
    errno = EPIPE;
    assert_int_equal(make("a=1"), 0);
    assert_int_equal(errno, EPIPE);
    assert_true(make("a=1") != 0);
}

TEST(the_ring_is_bounded)
{
    for (int i = 0; i < 3 * PLACES; i++)
        make("a=1");
    assert_int_equal(oteli_leaks_live(), 16);
}

TEST_WITH(recorder_setup, recorder_teardown, open_spans_hold_their_tracestate_until_they_end)
{
    const otel_span_context remote =
        otel_span_context_make(trace_id, (const uint8_t[8]){1}, 1, true, "held=1");
    const otel_context parent = {.span = otel_span_wrap(&remote)};
    otel_tracer *const tracer = otel_tracer_get("t", NULL);
    const otel_span_options *options = OTEL_SPAN_OPTIONS(.parent = &parent);
    const otel_span entered = otel_span_enter(tracer, "entered", options);
    const otel_span started = otel_span_start(tracer, "started", options);
    for (int i = 0; i < 2 * PLACES; i++)
        make("filler=1");
    const otel_span child = otel_span_enter(tracer, "child", NULL);
    otel_span_end(child);
    otel_span_end(started);
    otel_span_end(entered);
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(recorder_field(i, 3).bytes, "held=1", 6);

    for (int i = 0; i < 2 * PLACES; i++)
        make("filler=1");
    otel_span_end(otel_span_start(tracer, "too late", options));
    assert_false(recorder_has_field(3, 3));
}

/* Make, copy and hold: whatever is found is whole, and of the right trace. */
static void *use_tracestates(void *number)
{
    const uint8_t id[16] = {*(uint8_t *)number};
    char own[200];
    put_member(own, "k", 150);
    memset(own + 2, 'a' + id[0], 148);
    for (int i = 0; i < ROUNDS; i++) {
        char text[OTELI_TRACESTATE_BYTES + 1];
        const uint32_t reference = oteli_tracestate_make(own, 150, id);
        const uint32_t held = oteli_tracestate_retain(reference);
        const size_t length = oteli_tracestate_copy(reference, id, text, sizeof text);
        if (held != 0)
            assert_int_equal(length, 150);
        if (length != 0)
            assert_string_equal(text, own);
        oteli_tracestate_release(held);
    }
    return NULL;
}

TEST(threads_share_the_ring)
{
    pthread_t threads[THREADS];
    uint8_t numbers[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        numbers[i] = (uint8_t)(i + 1);
        assert_int_equal(pthread_create(&threads[i], NULL, use_tracestates, &numbers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* --- as the program sees them --- */

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
    assert_int_equal(recorder.logs, 0);
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
    assert_int_equal(recorder.logs, 1); /* the log does not repeat itself */
    key[256] = value[256] = '\0';
    assert_int_equal(strlen(set("", "a", value)), 258);
    assert_int_equal(strlen(set("", key, "1")), 258);
    assert_string_equal(set("b=2", key, value), "b=2"); /* 513 bytes fit nowhere */
    char text[620];
    snprintf(text, sizeof text, "b=%.299s,c=%.299s", value, value);
    const char *cut = set(text, "A", "1"); /* what is too long goes all the same */
    text[258] = '\0';
    assert_string_equal(cut, text);
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
    snprintf(text, sizeof text, "b=%.100s,c=%.100s,d=%.100s,e=%.100s", value, value, value, value);
    kept = set(text, "new", value); /* alone is long, and stays */
    assert_memory_equal(kept, "new=000", 7);
    assert_non_null(strstr(kept, ",c=00"));
    assert_null(strstr(kept, ",d=00"));
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
