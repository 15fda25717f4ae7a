/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/context_test.c - specification of span contexts, contexts, and what is current. */
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <string.h>

static const uint8_t trace_id[16] = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
                                     0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c};
static const uint8_t span_id[8] = {0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31};

/* The trace ids differ in their second halves only. */
static otel_context context_of(uint8_t number)
{
    const otel_span_context span = {{[8] = number}, {number}, 1, false, {0}, 0};
    return (otel_context){.span = otel_span_wrap(&span)};
}

static uint8_t current_number(void)
{
    return otel_span_get_context(otel_current_span()).trace_id[8];
}

AROUND_EACH(recorder_setup_without_sdk, recorder_teardown);

static void *detach_quietly(void *token)
{
    (void)otel_context_detach(*(otel_context_token *)token);
    return NULL;
}

/* The first of this file, because each line is said once in ten seconds. */
TEST(a_token_of_another_thread_and_a_wrong_order_are_told_apart)
{
    assert_false(otel_context_detach((otel_context_token){0}));
    assert_string_equal(recorder.last_log, "");

    otel_context_token one = otel_context_attach(context_of(1));
    const otel_context_token two = otel_context_attach(context_of(2));
    recorder_on_thread(detach_quietly, &one);
    assert_non_null(strstr(recorder.last_log, "is not attached on this thread"));

    (void)otel_context_detach(one);
    assert_string_equal(recorder.last_log, "contexts are detached in another order than attached");

    assert_true(otel_context_detach(two));
}

/* spec: A26 trace/api.md#isvalid MUST stable */
TEST(a_context_needs_both_ids)
{
    static const uint8_t zeros[16];
    const otel_span_context all = otel_span_context_make(trace_id, span_id, 1, false, NULL);
    const otel_span_context no_trace = otel_span_context_make(zeros, span_id, 1, false, NULL);
    const otel_span_context no_span = otel_span_context_make(trace_id, zeros, 1, false, NULL);
    const otel_span_context none = {{0}, {0}, 0, false, {0}, 0};

    assert_true(otel_span_context_is_valid(&all));
    assert_false(otel_span_context_is_valid(&no_trace));
    assert_false(otel_span_context_is_valid(&no_span));
    assert_false(otel_span_context_is_valid(&none));
    const otel_span wrapped = otel_span_wrap(&no_span);
    const otel_span_context back = otel_span_get_context(wrapped);
    assert_memory_equal(&back, &none, sizeof none);
    const otel_span of_null = otel_span_wrap(NULL);
    assert_true((of_null.opaque[0] | of_null.opaque[1] | of_null.opaque[2]) == 0);
}

/* spec: A26 trace/api.md#retrieving-the-traceid-and-spanid MUST stable */
TEST(ids_as_text)
{
    const otel_span_context context = otel_span_context_make(trace_id, span_id, 1, false, NULL);
    char trace[33];
    char span[17];
    otel_trace_id_hex(&context, trace);
    otel_span_id_hex(&context, span);
    assert_string_equal(trace, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(span, "b7ad6b7169203331");
}

TEST(the_tracestate_of_a_context_is_cut_to_what_fits)
{
    const otel_span_context context =
        otel_span_context_make(trace_id, span_id, 1, false, " a=1 , b=2 ");
    const otel_span_context bad = otel_span_context_make(trace_id, span_id, 1, false, "A=1");
    char text[16];
    memset(text, 'x', sizeof text);

    assert_int_equal(otel_span_context_tracestate(&context, text, sizeof text), 7);
    assert_string_equal(text, "a=1,b=2");
    assert_int_equal(otel_span_context_tracestate(&context, text, 8), 7);
    assert_string_equal(text, "a=1,b=2");
    assert_int_equal(otel_span_context_tracestate(&context, text, 4), 7);
    assert_string_equal(text, "a=1");
    assert_int_equal(otel_span_context_tracestate(&context, text, 1), 7);
    assert_string_equal(text, "");
    assert_int_equal(otel_span_context_tracestate(&context, NULL, 0), 7);
    assert_int_equal(bad.tracestate, 0);
    text[0] = 'x';
    assert_int_equal(otel_span_context_tracestate(&bad, text, sizeof text), 0);
    assert_string_equal(text, "");
}

TEST(an_old_token_detaches_nothing)
{
    const otel_context_token old = otel_context_attach(context_of(1));
    assert_true(otel_context_detach(old));
    const otel_context_token now = otel_context_attach(context_of(2));
    assert_false(otel_context_detach(old));
    assert_false(otel_context_detach((otel_context_token){.opaque = 0}));
    assert_int_equal(current_number(), 2);
    assert_true(otel_context_detach(now));
    assert_int_equal(current_number(), 0);
}

static void *detach_there(void *token)
{
    assert_false(otel_context_detach(*(otel_context_token *)token));
    assert_int_equal(current_number(), 0);
    return NULL;
}

/* Its own context is the first of this thread, as the token's was of the other. */
static void *detach_there_after_attaching(void *token)
{
    const otel_context_token own = otel_context_attach(context_of(7));
    assert_false(otel_context_detach(*(otel_context_token *)token));
    assert_int_equal(current_number(), 7);
    assert_true(otel_context_detach(own));
    assert_int_equal(current_number(), 0);
    return NULL;
}

TEST(a_token_is_for_the_thread_that_attached)
{
    otel_context_token token = otel_context_attach(context_of(1));
    for (int i = 0; i < 3; i++) { /* the second takes over the state of the first */
        recorder_on_thread(detach_there, &token);
        recorder_on_thread(detach_there_after_attaching, &token);
    }
    assert_int_equal(current_number(), 1);
    assert_true(otel_context_detach(token));
}

static void *attach_and_end(void *token)
{
    *(otel_context_token *)token = otel_context_attach(context_of(1));
    return NULL;
}

TEST(a_token_does_not_outlive_its_thread)
{
    otel_context_token token;
    recorder_on_thread(attach_and_end, &token);
    recorder_on_thread(detach_there_after_attaching, &token);
    assert_false(otel_context_detach(token));
}

TEST(without_memory_nothing_is_attached)
{
    oteli_leaks_fail_at(1);
    const otel_context_token token = otel_context_attach(context_of(1));
    assert_int_equal(current_number(), 0);
    assert_false(otel_context_detach(token));
    assert_int_equal(current_number(), 0);
}

enum { MOST_ATTACHED = 1024 };

TEST(contexts_that_are_never_detached_do_not_pile_up)
{
    static otel_context_token tokens[MOST_ATTACHED + 100];
    for (size_t i = 0; i < MOST_ATTACHED + 100; i++) {
        tokens[i] = otel_context_attach(context_of((uint8_t)(1 + i % 250)));
        assert_int_equal(current_number(), 1 + i % 250);
    }
    const size_t before = oteli_leaks_count();
    for (size_t i = 0; i < 100000; i++)
        tokens[MOST_ATTACHED + 99] = otel_context_attach(context_of(255));
    assert_int_equal(oteli_leaks_count(), before);
    assert_int_equal(current_number(), 255);
    assert_int_equal(recorder.logs, 1);

    /* Those whose place was used again are gone; all others can be detached. */
    for (size_t i = MOST_ATTACHED - 1; i < MOST_ATTACHED + 99; i++)
        assert_false(otel_context_detach(tokens[i]));
    assert_int_equal(current_number(), 255);
    assert_true(otel_context_detach(tokens[MOST_ATTACHED + 99]));
    for (size_t i = MOST_ATTACHED - 1; i-- > 0;) {
        assert_int_equal(current_number(), 1 + i % 250);
        assert_true(otel_context_detach(tokens[i]));
    }
    assert_int_equal(current_number(), 0);
}

TEST_FAST_TOO(attaching_in_pairs_with_spans_has_no_limit_of_its_own)
{
    static otel_context_token tokens[2 * MOST_ATTACHED];
    static otel_span spans[2 * MOST_ATTACHED];
    for (size_t i = 0; i < 2 * MOST_ATTACHED; i++) {
        tokens[i] = otel_context_attach(context_of((uint8_t)(1 + i % 250)));
        spans[i] = otel_span_enter(otel_tracer_get("c", NULL), "span", NULL);
    }
    for (size_t i = 2 * MOST_ATTACHED; i-- > 0;) {
        assert_int_equal(current_number(), 1 + i % 250);
        otel_span_end(spans[i]);
        assert_int_equal(current_number(), 1 + i % 250);
        assert_true(otel_context_detach(tokens[i]));
    }
    assert_int_equal(current_number(), 0);
    assert_int_equal(recorder.logs, 0);
}

static otel_span enter(void)
{
    return otel_span_enter(otel_tracer_get("c", NULL), "span", NULL);
}

static bool is_current(otel_span span)
{
    return otel_current_span().opaque[2] == span.opaque[2];
}

static otel_span enter_under(otel_context parent)
{
    return otel_span_enter(otel_tracer_get("c", NULL), "span",
                           OTEL_SPAN_OPTIONS(.parent = &parent));
}

TEST_FAST_TOO(a_span_of_another_trace_is_current_again_when_all_above_has_ended_or_its_parent_has)
{
    const otel_span outer = enter_under(context_of(2));
    const otel_span other = enter_under(context_of(1));
    const otel_span inner = enter_under((otel_context){.span = outer});
    otel_span_end(outer);
    assert_true(is_current(other));
    otel_span_end(inner);
    assert_true(is_current(other));
    otel_span_end(other);
    assert_true(oteli_self->top == oteli_self->stack);
}

TEST_WITH(recorder_setup, recorder_teardown, values_are_those_of_the_newest_attached_context)
{
    otel_context_value place;
    int value = 1;
    const otel_context_key key = otel_context_create_key("k");
    const otel_context_token one =
        otel_context_attach(otel_context_with_value(context_of(1), key, &value, &place));
    const otel_context_token two = otel_context_attach(context_of(2));
    otel_context current = otel_current_context();
    assert_null(otel_context_get_value(&current, key));
    const otel_span inner = enter();
    assert_true(otel_context_detach(two));
    current = otel_current_context();
    assert_ptr_equal(otel_context_get_value(&current, key), &value);
    otel_span_end(inner);
    assert_true(otel_context_detach(one));
    assert_null(otel_current_context().values);
}

TEST_WITH(recorder_setup, recorder_teardown,
          without_memory_a_detached_context_is_detached_all_the_same)
{
    otel_span spans[40];
    size_t count = 0;
    const otel_context_token token = otel_context_attach(context_of(1));
    while (oteli_self->top != oteli_self->last)
        spans[count++] = enter();
    oteli_leaks_fail_at(1);
    assert_true(otel_context_detach(token));
    assert_true(oteli_leaks_failed());
    while (count > 0)
        otel_span_end(spans[--count]);
    assert_int_equal(current_number(), 0);
}
