/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/fibre_test.c - specification of stacks for fibres: api/thread/fibre.c,
 * stack_switch.c. A fibre is a struct here whose steps are called one by one, which is all that the
 * library sees of one. */
#include "api/baggage/baggage_pool.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"
#include <otel/fibre.h>
#include <otel/thread_context.h>

#include <pthread.h>
#include <string.h>

enum { SPAN_PARENT = 4, SPAN_ATTRIBUTES = 9 };

static otel_span enter(const char *name)
{
    return otel_span_enter(NULL, name, NULL);
}

static bool is_current(otel_span span)
{
    return otel_current_span().opaque[2] == span.opaque[2];
}

static bool nothing_is_current(void)
{
    const otel_context current = otel_current_context();
    return current.span.opaque[2] == 0 && current.values == NULL && current.baggage == 0;
}

/* The span id of a recorded span's parent; 0: a root. */
static uint64_t parent_of(size_t index)
{
    uint64_t id = 0;
    if (recorder_has_field(index, SPAN_PARENT))
        memcpy(&id, recorder_field(index, SPAN_PARENT).bytes, sizeof id);
    return id;
}

AROUND_EACH(recorder_setup, recorder_teardown);

/* spec: C4 context/README.md#overview MAY stable */
TEST_FAST_TOO(C4_each_stack_has_its_own_current_context)
{
    otel_stack *one = otel_stack_new();
    otel_stack *two = otel_stack_new();
    int value;
    otel_context_value place;
    const otel_context_key key = otel_context_create_key("k");
    const otel_span of_thread = enter("thread");

    assert_null(otel_stack_switch(one));
    assert_true(nothing_is_current());
    const otel_context with_value =
        otel_context_with_value((otel_context){.baggage = 0}, key, &value, &place);
    const otel_context_token token = otel_context_attach(with_value);
    const otel_span of_one = enter("one");
    assert_ptr_equal(otel_stack_switch(two), one);
    assert_true(nothing_is_current());
    const otel_span of_two = enter("two");
    assert_ptr_equal(otel_stack_switch(one), two);
    assert_ptr_equal(otel_stack_switch(one), one);
    assert_true(is_current(of_one));
    const otel_context current = otel_current_context();
    assert_ptr_equal(otel_context_get_value(&current, key), &value);
    otel_span_end(enter("child"));
    assert_true(parent_of(0) == of_one.opaque[2]);
    otel_span_end(of_one);
    assert_true(otel_context_detach(token));
    assert_true(nothing_is_current());
    otel_stack_switch(two);
    assert_true(is_current(of_two));
    otel_span_end(of_two);
    assert_ptr_equal(otel_stack_switch(NULL), two);
    assert_true(is_current(of_thread));
    otel_span_end(of_thread);
    assert_int_equal(recorder.count, 4);
    otel_stack_free(one);
    otel_stack_free(two);
}

TEST(handles_and_tokens_mean_nothing_on_another_stack)
{
    otel_stack *stack = otel_stack_new();
    const otel_span span = enter("thread");
    const otel_context_token token = otel_context_attach((otel_context){.baggage = 0});
    otel_stack_switch(stack);
    const otel_span other = enter("fibre");
    otel_span_set_int(span, "k", 1);
    otel_span_end(span);
    assert_false(otel_context_detach(token));
    assert_int_equal(recorder.count, 0);
    otel_span_end(other);
    otel_stack_switch(NULL);
    assert_true(otel_context_detach(token));
    assert_true(is_current(span));
    otel_span_end(span);
    assert_int_equal(recorder.count, 2);
    assert_false(recorder_has_field(1, SPAN_ATTRIBUTES));
    otel_stack_free(stack);
}

struct fibre {
    otel_stack *stack;
    otel_span span;
    unsigned step;
};

static otel_stack *inside_switched;

static void switch_inside(void)
{
    inside_switched = otel_stack_switch(NULL);
}

static void *try_there(void *stack)
{
    assert_null(otel_stack_switch(stack));
    assert_null(otel_stack_current());
    otel_stack_free(stack);
    return NULL;
}

TEST(a_stack_is_current_on_one_thread_at_a_time)
{
    otel_stack *stack = otel_stack_new();
    otel_stack_switch(stack);
    const otel_span span = enter("fibre");
    recorder_on_thread(try_there, stack);
    assert_int_equal(recorder.logs, 1);
    assert_true(is_current(span));
    recorder.inside = switch_inside;
    otel_span_end(span);
    recorder.inside = NULL;
    assert_ptr_equal(inside_switched, stack);
    assert_ptr_equal(otel_stack_current(), stack);
    otel_stack_free(stack);
    assert_null(otel_stack_current());
}

static void *end_if_long(void *fibre)
{
    const struct fibre *moved = fibre;
    otel_span_end(enter("this thread's"));
    otel_stack_switch(moved->stack);
    otel_span_end_unless_shorter(moved->span, UINT64_C(1000000000));
    otel_stack_switch(NULL);
    return NULL;
}

/* Each thread has started one span when the fibre's begins there, or ends. */
TEST(a_span_with_children_is_not_too_short_on_another_thread)
{
    struct fibre moved = {.stack = otel_stack_new()};
    otel_stack_switch(moved.stack);
    moved.span = otel_span_enter_address(NULL, (const void *)(uintptr_t)enter);
    otel_span_end(enter("child"));
    otel_stack_switch(NULL);
    recorder_on_thread(end_if_long, &moved);
    assert_int_equal(recorder.count, 3);
    otel_stack_free(moved.stack);
}

TEST(what_is_open_on_a_freed_stack_is_abandoned)
{
    otel_stack *waiting = otel_stack_new();
    otel_stack *running = otel_stack_new();
    const otel_span of_thread = enter("thread");
    otel_stack_switch(waiting);
    const otel_span lost = enter("waiting");
    enter("waiting's child");
    otel_stack_switch(running);
    enter("running");
    otel_stack_free(waiting);
    assert_int_equal(recorder_counts().dropped[OTEL_DROP_ABANDONED], 2);
    otel_stack_free(running);
    assert_int_equal(recorder_counts().dropped[OTEL_DROP_ABANDONED], 3);
    otel_stack_free(NULL);
    otel_span_end(lost);
    assert_true(is_current(of_thread));
    otel_span_end(of_thread);
    assert_int_equal(recorder.count, 1);
}

static void *end_with_a_stack(void *stack)
{
    enter("the thread's, abandoned");
    otel_stack_switch(stack);
    return NULL;
}

TEST(a_thread_that_ends_leaves_the_fibre_it_ran)
{
    otel_stack *stack = otel_stack_new();
    otel_stack_switch(stack);
    const otel_span span = enter("fibre");
    otel_stack_switch(NULL);
    recorder_on_thread(end_with_a_stack, stack);
    assert_int_equal(recorder_counts().dropped[OTEL_DROP_ABANDONED], 1);
    assert_null(otel_stack_switch(stack));
    assert_true(is_current(span));
    otel_span_end(span);
    assert_int_equal(recorder.count, 1);
    otel_stack_free(stack);
}

TEST(a_span_of_a_former_sdk_records_no_more)
{
    otel_stack *stack = otel_stack_new();
    otel_stack_switch(stack);
    const otel_span span = enter("fibre");
    otel_stack_switch(NULL);
    recorder_stop();
    recorder_start();
    otel_stack_switch(stack);
    assert_true(is_current(span));
    assert_false(otel_span_is_recording(otel_current_span()));
    otel_span_end(enter("child"));
    otel_span_end(span);
    assert_true(nothing_is_current());
    assert_int_equal(recorder.count, 1);
    assert_true(parent_of(0) == span.opaque[2]);
    otel_stack_free(stack);
}

TEST_WITH(recorder_setup_without_sdk, recorder_teardown, baggage_stays_with_a_stack_that_waits)
{
    const otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "k", "v", NULL);
    otel_stack *stack = otel_stack_new();
    otel_stack_switch(stack);
    (void)otel_context_attach((otel_context){.baggage = baggage.opaque});
    otel_stack_switch(NULL);
    for (unsigned i = 0; i < 2 * 8192; i++)
        (void)otel_baggage_set(otel_baggage_none(), "other", i % 2 != 0 ? "a" : "b", NULL);
    assert_int_equal(otel_baggage_count(baggage), 1);
    otel_stack_free(stack);
    for (unsigned i = 0; i < 8192; i++)
        (void)otel_baggage_set(otel_baggage_none(), "other", "c", NULL);
    assert_int_equal(otel_baggage_count(baggage), 0);
}

TEST_FAST_TOO(attributes_of_a_context_are_for_its_stack)
{
    const otel_attribute attribute = otel_attribute_of("k", otel_value_string("v"));
    otel_context_attributes place;
    otel_stack *stack = otel_stack_new();
    otel_stack_switch(stack);
    const otel_context_token token = otel_context_attach(
        otel_context_with_attributes(otel_current_context(), &attribute, 1, &place));
    otel_stack_switch(NULL);
    otel_span_end(enter("thread"));
    otel_stack_switch(stack);
    otel_span_end(enter("fibre"));
    assert_true(otel_context_detach(token));
    otel_span_end(enter("fibre, detached"));
    assert_false(recorder_has_field(0, SPAN_ATTRIBUTES));
    assert_true(recorder_has_field(1, SPAN_ATTRIBUTES));
    assert_false(recorder_has_field(2, SPAN_ATTRIBUTES));
    otel_stack_free(stack);
}

struct forked {
    otel_stack *stack;
    otel_span of_fibre;
    otel_span of_thread;
    otel_baggage baggage;
};

static bool is_the_parents(otel_span span)
{
    return is_current(span) && !otel_span_is_recording(span);
}

static int look_in_child(const void *argument)
{
    const struct forked it = *(const struct forked *)argument;
    otel_stack_switch(it.stack);
    if (!is_the_parents(it.of_fibre))
        return 1;
    if (otel_current_context().baggage != it.baggage.opaque || otel_baggage_count(it.baggage) != 1)
        return 2;
    otel_span_end(it.of_fibre);
    otel_stack_switch(NULL);
    if (!is_the_parents(it.of_thread))
        return 3;
    otel_span_end(it.of_thread);
    if (recorder.count != 0 || !nothing_is_current())
        return 4;
    for (unsigned i = 0; i < 2 * 8192; i++)
        (void)otel_baggage_set(otel_baggage_none(), "other", i % 2 != 0 ? "a" : "b", NULL);
    if (otel_baggage_count(it.baggage) != 1)
        return 5;
    otel_stack_free(it.stack);
    return 0;
}

/* Forked by the fibre, and by its thread while the fibre waits. */
TEST(in_a_forked_child_what_is_open_is_the_parents)
{
    const otel_baggage baggage = otel_baggage_set(otel_baggage_none(), "k", "v", NULL);
    otel_stack *stack = otel_stack_new();
    const otel_span of_thread = enter("thread");
    otel_stack_switch(stack);
    const otel_context_token token = otel_context_attach((otel_context){.baggage = baggage.opaque});
    const otel_span of_fibre = enter("fibre");
    const struct forked forked = {stack, of_fibre, of_thread, baggage};
    recorder_in_child(look_in_child, &forked);
    otel_stack_switch(NULL);
    recorder_in_child(look_in_child, &forked);

    otel_span_end(of_thread);
    otel_stack_switch(stack);
    otel_span_end(of_fibre);
    assert_true(otel_context_detach(token));
    assert_int_equal(recorder.count, 2);
    otel_stack_free(stack);
}

TEST_WITH(recorder_setup_without_sdk, recorder_teardown, without_memory_nothing_is_exchanged)
{
    oteli_leaks_fail_at(1);
    assert_null(otel_stack_new());
    otel_stack *stack = otel_stack_new();
    oteli_leaks_fail_at(1); /* this thread's state */
    assert_null(otel_stack_switch(stack));
    assert_true(oteli_leaks_failed());
    assert_null(otel_stack_current());
    otel_stack_switch(stack);
    assert_ptr_equal(otel_stack_current(), stack);
    oteli_leaks_fail_at(1); /* the stack's first places */
    const otel_context_token token = otel_context_attach((otel_context){.baggage = 0});
    assert_false(otel_context_detach(token));
    otel_stack_free(stack);
}

/* --- a thousand of them on two threads --- */

enum { FIBRES = 1000, STEPS = 12, RUNNERS = 2 };

static struct fibre fibres[FIBRES];
static uint64_t ids[FIBRES][STEPS / 2]; /* of the spans a fibre has entered, outermost first */
static uint32_t busy[FIBRES];

/* Enters spans for half of its steps, and ends them again in the others. */
static void step(struct fibre *fibre, size_t number)
{
    static otel_span spans[FIBRES][STEPS / 2];
    otel_span *open = spans[number];
    if (fibre->step < STEPS / 2) {
        assert_true(fibre->step == 0 ? nothing_is_current() : is_current(open[fibre->step - 1]));
        open[fibre->step] = enter("step");
        ids[number][fibre->step] = open[fibre->step].opaque[2];
    } else {
        assert_true(is_current(open[STEPS - 1 - fibre->step]));
        otel_span_end(open[STEPS - 1 - fibre->step]);
    }
    fibre->step++;
}

static void *run(void *first)
{
    size_t left = 1;
    for (unsigned round = 0; left != 0; round++) {
        left = 0;
        for (size_t i = 0; i < FIBRES; i++) {
            const size_t number = (i * 7 + (uintptr_t)first * 501 + round) % FIBRES;
            if (oteli_exchange_full_32(&busy[number], 1) != 0) {
                left++;
                continue;
            }
            struct fibre *fibre = &fibres[number];
            if (fibre->step < STEPS) {
                otel_stack *before = otel_stack_switch(fibre->stack);
                step(fibre, number);
                otel_stack_switch(before);
                left++;
            }
            oteli_store_release_32(&busy[number], 0);
        }
    }
    return NULL;
}

static uint64_t expected_parent(uint64_t id)
{
    for (size_t number = 0; number < FIBRES; number++)
        for (size_t at = 0; at < STEPS / 2; at++)
            if (ids[number][at] == id)
                return at != 0 ? ids[number][at - 1] : 0;
    fail();
    return 0;
}

TEST_WITH(recorder_setup_queued_fast, recorder_teardown,
          spans_of_a_thousand_fibres_on_two_threads_have_their_parents)
{
    memset(fibres, 0, sizeof fibres);
    for (size_t i = 0; i < FIBRES; i++)
        fibres[i].stack = otel_stack_new();
    pthread_t threads[RUNNERS];
    for (size_t i = 0; i < RUNNERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (size_t i = 0; i < RUNNERS; i++)
        pthread_join(threads[i], NULL);
    recorder_collect();
    assert_int_equal(recorder.count, FIBRES * STEPS / 2);
    for (size_t i = 0; i < recorder.count; i++) {
        uint64_t id;
        memcpy(&id, recorder_field(i, 2).bytes, sizeof id);
        assert_true(parent_of(i) == expected_parent(id));
    }
    for (size_t i = 0; i < FIBRES; i++)
        otel_stack_free(fibres[i].stack);
}

TEST(a_stack_may_be_current_when_the_library_is_unloaded)
{
    otel_stack *stack = otel_stack_new();
    otel_span_end(enter("outside"));
    otel_stack_switch(stack);
    otel_span_end(enter("inside"));
    oteli_api_reset();
    otel_stack_free(stack);
}

static otel_stack *moved;
static otel_span on_moved;
static const otel_thread_context_record *shown_there;

static void *end_there(void *unused)
{
    otel_stack_switch(moved);
    otel_span_end(on_moved);
    shown_there = otel_thread_ctx_v1;
    otel_stack_switch(NULL);
    return unused;
}

TEST(what_others_have_published_stays_on_its_thread)
{
    static otel_thread_context_record theirs;
    moved = otel_stack_new();
    otel_stack_switch(moved);
    otel_thread_ctx_v1 = &theirs;
    on_moved = enter("a");
    otel_stack_switch(NULL);
    recorder_on_thread(end_there, NULL);
    otel_thread_ctx_v1 = NULL;
    assert_null(shown_there);
    otel_stack_free(moved);
}
