/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/detached_test.c - specification of spans that any thread may use: the pool of
 * their records, and several threads on one span at once. */
#include "api/thread/detached_pool.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 2000, MANY = 1000, ROUNDS_OF_ENDS = 200 };

static otel_tracer *tracer(void)
{
    return otel_tracer_get("detached", NULL);
}

AROUND_EACH(recorder_setup, recorder_teardown);

TEST(a_thousand_open_spans_keep_apart)
{
    static otel_span spans[MANY];
    for (int i = 0; i < MANY; i++) {
        spans[i] = otel_span_start(tracer(), "span", NULL);
        otel_span_set_int(spans[i], "number", i);
    }
    for (size_t i = MANY; i-- > 0;)
        otel_span_end_at(spans[i], RECORDER_WALL_NS + i + 1);

    assert_int_equal(recorder.count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(recorder_field(i, 8).value - RECORDER_WALL_NS, MANY - i);
        assert_memory_equal(recorder_field(i, 2).bytes, &spans[MANY - 1 - i].opaque[2], 8);
        assert_int_equal(recorder_count(i, RECORDER_ATTRIBUTES), 1);
    }
}

TEST(no_record_is_lost_to_a_lack_of_memory)
{
    otel_tracer *const scope = tracer();
    otel_span_end(otel_span_enter(scope, "makes the thread's state", NULL));
    for (int i = 0; i < 300; i++) {
        oteli_leaks_fail_at(1);
        otel_span_end(otel_span_start(scope, "no memory", NULL));
        assert_true(oteli_leaks_failed());
    }
    const otel_span span = otel_span_start(scope, "memory again", NULL);
    assert_int_equal(oteli_ref_index(span.opaque[3]), 0);
    otel_span_end(span);
    assert_int_equal(recorder_counts().dropped[OTEL_DROP_NO_MEMORY], 300);
    assert_int_equal(recorder.count, 2);
}

struct work {
    otel_span span;
    int number;
};

static void *describe(void *argument)
{
    const struct work *work = argument;
    char key[32];
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "thread %d attribute %d", work->number, i);
        otel_span_set_int(work->span, key, i);
        otel_span_set_int(work->span, "shared", work->number);
        otel_span_add_event(work->span, "event", NULL, 0);
    }
    return NULL;
}

static void run(void *(*main_function)(void *), otel_span span)
{
    pthread_t threads[THREADS];
    struct work works[THREADS];
    for (int i = 0; i < THREADS; i++) {
        works[i] = (struct work){span, i};
        assert_int_equal(pthread_create(&threads[i], NULL, main_function, &works[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* spec: A25 trace/api.md#concurrency-requirements MUST stable */
TEST_FAST_TOO(what_several_threads_say_is_all_there)
{
    const otel_span span = otel_span_start(tracer(), "span", NULL);
    run(describe, span);
    otel_span_end(span);

    assert_int_equal(recorder.count, 1);
    assert_int_equal(recorder_count(0, RECORDER_ATTRIBUTES), THREADS * 20 + 1);
}

static void *describe_and_end(void *argument)
{
    const struct work *work = argument;
    otel_span_set_int(work->span, "k", work->number);
    otel_span_end(work->span);
    otel_span_set_int(work->span, "late", work->number);
    return NULL;
}

/* spec: A25 trace/api.md#concurrency-requirements MUST stable */
TEST_FAST_TOO(of_several_ends_one_counts)
{
    for (int i = 0; i < ROUNDS_OF_ENDS; i++)
        run(describe_and_end, otel_span_start(tracer(), "span", NULL));

    assert_int_equal(recorder.count, ROUNDS_OF_ENDS);
    assert_int_equal(recorder_counts().ended, ROUNDS_OF_ENDS);
    for (size_t i = 0; i < ROUNDS_OF_ENDS; i++)
        assert_int_equal(recorder_count(i, RECORDER_ATTRIBUTES), 1);
}

/* Start and end spans of one's own, and poke at an old handle all the while. */
static void *start_and_end(void *argument)
{
    const struct work *work = argument;
    otel_span old = work->span;
    for (int i = 0; i < ROUNDS; i++) {
        const otel_span span = otel_span_start(tracer(), "span", NULL);
        otel_span_set_int(span, "k", i);
        otel_span_set_int(old, "stale", i);
        otel_span_end(old);
        if (i % 3 == 0)
            otel_span_end(span);
        else
            old = span; /* the next round ends it */
    }
    otel_span_end(old);
    return NULL;
}

TEST_FAST_TOO(old_handles_of_other_threads_touch_nothing)
{
    const otel_span old = otel_span_start(tracer(), "old", NULL);
    otel_span_end(old);
    run(start_and_end, old);

    assert_int_equal(recorder.count, THREADS * ROUNDS + 1);
    for (size_t i = 0; i < recorder.count; i++)
        assert_true(recorder_count(i, RECORDER_ATTRIBUTES) <= 2);
}

TEST(a_child_has_the_epoch_of_its_started_parent)
{
    const otel_span parent = otel_span_start(tracer(), "parent", NULL);
    oteli_fake_clock.wall_ns += 5000000;
    oteli_clock_renew();
    const otel_context context = otel_context_with_span(otel_current_context(), parent);
    otel_span_end(otel_span_start(tracer(), "child", OTEL_SPAN_OPTIONS(.parent = &context)));
    const otel_span entered =
        otel_span_enter(tracer(), "in", OTEL_SPAN_OPTIONS(.parent = &context));
    otel_span_end(otel_span_enter(tracer(), "below", NULL));
    otel_span_end(entered);
    otel_span_end(otel_span_start(tracer(), "root", NULL));
    otel_span_end(parent);

    const uint32_t epoch = recorder_span(4).epoch;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(recorder_span(i).epoch, epoch);
    assert_int_equal(recorder_span(3).epoch, epoch + 1);
}

TEST_WITH(recorder_setup_fast, recorder_teardown, a_child_has_the_epoch_of_its_attached_parent)
{
    int value;
    otel_context_value place;
    const otel_span old = otel_span_start(tracer(), "old", NULL);
    const otel_context of_old = otel_context_with_span(otel_current_context(), old);
    otel_context_detach(otel_context_attach(of_old));
    oteli_fake_clock.wall_ns += 5000000;
    oteli_clock_renew();
    const otel_span young = otel_span_start(tracer(), "young", NULL);
    otel_context of_young = otel_context_with_span(otel_current_context(), young);
    of_young = otel_context_with_value(of_young, otel_context_create_key("k"), &value, &place);
    otel_context_detach(otel_context_attach(of_young)); /* the slow path */
    const otel_context_token token = otel_context_attach(of_old);
    otel_span_end(otel_span_enter(tracer(), "child", NULL));
    otel_context_detach(token);
    otel_span_end(old);
    otel_span_end(young);

    assert_int_equal(recorder_span(0).epoch, recorder_span(1).epoch);
    assert_int_equal(recorder_span(2).epoch, recorder_span(1).epoch + 1);
}

TEST(a_full_table_is_freed)
{
    for (size_t i = 0; i < (size_t)OTELI_DETACHED_PART * OTELI_DETACHED_PARTS; i++)
        otel_span_start(tracer(), "open", NULL);
    assert_false(otel_span_is_recording(otel_span_start(tracer(), "one more", NULL)));
}
