/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/thread_test.c - specification of api/thread/thread_state.h and
 * api/thread/sdk_slot.h: states that threads hand on, and an SDK that comes, goes, sleeps, and is
 * left behind by a fork. */
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300 };

static otel_tracer *tracer(void)
{
    return otel_tracer_get("thread", NULL);
}

static size_t states(void)
{
    size_t count = 0;
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        count++;
    return count;
}

static void *one_span(void *argument)
{
    otel_tracer *const scope = argument;
    otel_span_end(otel_span_enter(scope, "span", NULL));
    return NULL;
}

AROUND_EACH(recorder_setup_queued, recorder_teardown);

TEST(a_thread_that_does_nothing_has_no_state)
{
    otel_span_end((otel_span){{0}});
    assert_false(otel_context_detach((otel_context_token){.opaque = 0}));
    (void)otel_current_context();
    assert_int_equal(states(), 0);
    assert_ptr_equal(oteli_self, &oteli_empty_thread);
}

TEST_QUEUED_FAST_TOO(a_new_thread_takes_over_the_state_of_one_that_ended)
{
    for (int i = 0; i < 5; i++) {
        recorder_on_thread(one_span, tracer());
        assert_int_equal(oteli_threads_alive(), 0);
    }
    assert_int_equal(states(), 1);
    assert_int_equal(recorder_counts().recorded, 5);
    assert_int_equal(recorder_counts().ended, 5);
    recorder_collect();
    assert_int_equal(recorder.count, 5);
    assert_int_equal(recorder.lots_taken, 1);
}

static otel_span for_another;

static void *leave_each_kind_open(void *argument)
{
    const otel_span first = otel_span_enter(argument, "ended out of order", NULL);
    (void)otel_span_enter(argument, "left", NULL);
    (void)otel_span_enter(argument, "left", NULL);
    const otel_context_token token = otel_context_attach(otel_current_context());
    (void)otel_span_enter(argument, "left in a context", NULL);
    assert_true(otel_context_detach(token));
    for_another = otel_span_start(argument, "left to another thread", NULL);
    otel_span_end(first);
    return NULL;
}

TEST(what_is_abandoned_takes_nothing_from_the_quota)
{
    recorder.quota = 3;
    recorder_on_thread(leave_each_kind_open, tracer());
    for (int i = 0; i < 2; i++)
        recorder_on_thread(one_span, tracer());
    assert_int_equal(recorder.lots_taken, 1);
    recorder_on_thread(one_span, tracer());
    assert_int_equal(recorder.lots_taken, 2);
    otel_span_end(for_another);
}

static void leave_the_thread(void)
{
    recorder.inside = NULL;
    pthread_exit(NULL);
}

TEST_QUEUED_FAST_TOO(a_thread_that_ends_inside_the_sdk_leaves_a_usable_state)
{
    recorder.inside = leave_the_thread;
    recorder_on_thread(one_span, tracer());
    assert_true(oteli_sdk_wait_until_left(0));
    recorder_on_thread(one_span, tracer());
    recorder_collect();

    assert_int_equal(states(), 1);
    assert_int_equal(recorder.count, 1);
    assert_int_equal(recorder_counts().dropped[OTEL_DROP_REENTRANT], 0);
}

static pthread_key_t late_key;

static void trace_late(void *argument)
{
    otel_span_end(otel_span_enter(argument, "from a destructor", NULL));
}

static void *trace_when_ending(void *argument)
{
    otel_span_end(otel_span_enter(argument, "span", NULL));
    pthread_setspecific(late_key, argument);
    return NULL;
}

TEST(destructors_of_a_thread_may_trace)
{
    assert_int_equal(pthread_key_create(&late_key, trace_late), 0);
    recorder_on_thread(trace_when_ending, tracer());
    recorder_on_thread(trace_when_ending, tracer());
    pthread_key_delete(late_key);
    recorder_collect();

    assert_int_equal(recorder.count, 4);
    assert_int_equal(oteli_threads_alive(), 0);
    assert_int_equal(states(), 1);
}

TEST_QUEUED_FAST_TOO(each_sdk_counts_from_zero_and_is_taken_up_once)
{
    one_span(tracer());
    one_span(tracer());
    assert_int_equal(recorder.sdk.threads, 1);
    recorder_stop();
    assert_int_equal(recorder_counts().recorded, 2);
    recorder_start_queued();
    assert_int_equal(recorder_counts().recorded, 0);
    one_span(tracer());
    assert_int_equal(recorder_counts().recorded, 1);
    assert_int_equal(recorder.sdk.threads, 1);
}

TEST(marking_asleep_is_for_the_sdk_that_runs)
{
    struct oteli_sdk other = recorder.sdk;
    other.generation += 100;
    assert_false(oteli_sdk_set_asleep(&other, true));
    assert_true(oteli_sdk_set_asleep(&recorder.sdk, true));
    assert_false(oteli_sdk_set_asleep(&recorder.sdk, true));
    assert_true(oteli_sdk_set_asleep(&recorder.sdk, false));
    assert_false(oteli_sdk_set_asleep(&recorder.sdk, false));
    recorder_stop();
    assert_false(oteli_sdk_set_asleep(&recorder.sdk, true));
}

TEST(an_sdk_is_borrowed_while_a_thread_is_inside)
{
    struct oteli_thread *thread = oteli_thread_own();
    assert_ptr_equal(oteli_sdk_borrow(thread), &recorder.sdk);
    assert_false(oteli_sdk_wait_until_left(0));
    oteli_sdk_uninstall();
    assert_false(oteli_sdk_wait_until_left(0));
    oteli_sdk_return(thread);
    assert_true(oteli_sdk_wait_until_left(0));
    assert_null(oteli_sdk_borrow(thread));
    oteli_sdk_return(thread);
}

static int child_writes_ids(const void *ends)
{
    recorder_start();
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    const ssize_t size = sizeof span.opaque;
    return write(((const int *)ends)[1], span.opaque, (size_t)size) == size ? 0 : 1;
}

TEST(parent_and_children_have_different_ids)
{
    int ends[2];
    otel_span spans[3];
    assert_int_equal(pipe(ends), 0);
    otel_span_end(otel_span_enter(tracer(), "seeds this thread", NULL));
    for (size_t i = 0; i < 2; i++) {
        recorder_in_child(child_writes_ids, ends);
        assert_int_equal(read(ends[0], spans[i].opaque, sizeof spans[i]), sizeof spans[i]);
    }
    spans[2] = otel_span_enter(tracer(), "span", NULL);
    otel_span_end(spans[2]);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(spans[i].opaque[0] != spans[k].opaque[0] &&
                        spans[i].opaque[2] != spans[k].opaque[2]);
    close(ends[0]);
    close(ends[1]);
}

static int status_of_child;

static void all_is_well(void *argument)
{
    (void)argument;
    _exit(0);
}

static void *fork_and_end_the_thread(void *argument)
{
    otel_span_end(otel_span_start(argument, "in the pool", NULL));
    const pid_t pid = fork();
    if (pid == 0) {
        pthread_key_create(&late_key, all_is_well); /* later than the API's */
        pthread_setspecific(late_key, &late_key);
        pthread_exit(NULL);
    }
    waitpid(pid, &status_of_child, 0);
    return NULL;
}

TEST(the_thread_of_a_forked_child_may_end)
{
#ifdef OTELI_TSAN
    skip(); /* its runtime cannot end the only thread of a forked child */
#endif
    status_of_child = -1;
    recorder_on_thread(fork_and_end_the_thread, tracer());
    assert_int_equal(status_of_child, 0);
}

static void *get_a_tracer(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++)
        tracer();
    return NULL;
}

static int child_gets_a_tracer(const void *unused)
{
    (void)unused;
    alarm(60);
    return otel_tracer_get("thread", NULL) == NULL;
}

TEST(a_child_forked_while_others_ask_for_tracers)
{
#ifdef OTELI_TSAN
    skip(); /* its runtime misses the other thread in the child */
#endif
    pthread_t thread;
    tracer();
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pthread_create(&thread, NULL, get_a_tracer, NULL), 0);
        recorder_in_child(child_gets_a_tracer, NULL);
        pthread_join(thread, NULL);
    }
}
