/* SPDX-License-Identifier: Apache-2.0 */
/* Times of spans where the clocks are read late, and waits where the wall clock is set back. */
#include "blackbox.h"
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 20, TOLERANCE_NS = 200000 };
#define NS_PER_S INT64_C(1000000000)

/* A thread that has read CLOCK_BOOTTIME is preempted before it reads CLOCK_MONOTONIC. */
static int is_preempted;
static _Thread_local clockid_t last_read;

/* The wall clock is set back by an hour right after it has been read. */
static int is_set_back;

/* Threads that were sent to other cores. */
static int sent;

int sched_setaffinity(pid_t thread, size_t size, const cpu_set_t *cores)
{
    __atomic_add_fetch(&sent, 1, __ATOMIC_RELAXED);
    return (int)syscall(SYS_sched_setaffinity, thread, size, cores);
}

static int64_t real_ns(clockid_t clock)
{
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const struct timespec away = {0, 4000000};
    if (__atomic_load_n(&is_preempted, __ATOMIC_RELAXED) && clock == CLOCK_MONOTONIC &&
        last_read == CLOCK_BOOTTIME)
        nanosleep(&away, NULL);
    last_read = clock;
    const int answer = (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && __atomic_load_n(&is_set_back, __ATOMIC_RELAXED))
        now->tv_sec += 3600;
    return answer;
}

/* An exporter that keeps the times of the last span. */
static int64_t lasted_ns;

static otel_export_result keep_times(void *state, otel_export *call)
{
    otel_span_view span;
    (void)state;
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_batch_span(call->batch, i, &span);
        lasted_ns = (int64_t)(span.end_ns - span.start_ns);
    }
    return OTEL_EXPORT_DONE;
}

static void a_preemption_is_not_taken_for_a_suspend(void **state)
{
    (void)state;
    const otel_exporter exporter = OTEL_EXPORTER(.name = "times", .export_batch = keep_times);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .clock = "monotonic")),
                     OTEL_OK);
    otel_tracer *tracer = otel_tracer_get("blackbox", NULL);
    for (int i = 0; i < ROUNDS; i++) {
        const struct timespec work = {0, 2000000};
        __atomic_store_n(&is_preempted, i % 2, __ATOMIC_RELAXED);
        const int64_t before = real_ns(CLOCK_MONOTONIC);
        otel_span span = otel_span_enter(tracer, "work", NULL);
        const int64_t started = real_ns(CLOCK_MONOTONIC);
        otel_span inner = otel_span_enter(tracer, "inner", NULL);
        otel_span_end(inner);
        assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
        __atomic_store_n(&is_preempted, 1 - i % 2, __ATOMIC_RELAXED);
        nanosleep(&work, NULL);
        const int64_t ending = real_ns(CLOCK_MONOTONIC);
        otel_span_end(span);
        const int64_t after = real_ns(CLOCK_MONOTONIC);
        assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
        assert_in_range(lasted_ns, ending - started - TOLERANCE_NS, after - before + TOLERANCE_NS);
    }
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
}

/* An export that goes on until it is let go, or for ten seconds. */
static int is_let_go, is_inside;

static otel_export_result stay_inside(void *state, otel_export *call)
{
    const struct timespec pause = {0, 1000000};
    const int64_t last_ns = real_ns(CLOCK_MONOTONIC) + 10 * NS_PER_S;
    (void)state;
    (void)call;
    __atomic_store_n(&is_inside, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&is_let_go, __ATOMIC_ACQUIRE) && real_ns(CLOCK_MONOTONIC) < last_ns)
        nanosleep(&pause, NULL);
    return OTEL_EXPORT_DONE;
}

static void *end_a_span(void *unused)
{
    otel_span_end(otel_span_enter(otel_tracer_get("blackbox", NULL), "work", NULL));
    return unused;
}

static void a_clock_that_is_set_back_prolongs_no_wait(void **state)
{
    (void)state;
    const otel_exporter exporter = OTEL_EXPORTER(.name = "inside", .export_batch = stay_inside);
    pthread_t ending;
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .simple = true)),
                     OTEL_OK);
    assert_int_equal(pthread_create(&ending, NULL, end_a_span, NULL), 0);
    while (!__atomic_load_n(&is_inside, __ATOMIC_ACQUIRE))
        sched_yield();

    __atomic_store_n(&is_set_back, 1, __ATOMIC_RELAXED);
    assert_int_equal(otel_flush(20), OTEL_ERROR_TIMEOUT);
    assert_int_equal(otel_shutdown(20), OTEL_ERROR_TIMEOUT);

    __atomic_store_n(&is_set_back, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&is_let_go, 1, __ATOMIC_RELEASE);
    pthread_join(ending, NULL);
}

static void a_short_program_does_not_wait_for_a_comparison_of_cores(void **state)
{
    (void)state;
    const otel_exporter exporter = OTEL_EXPORTER(.name = "times", .export_batch = keep_times);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1)),
                     OTEL_OK);
    end_a_span(NULL);
    assert_int_equal(otel_flush(PATIENCE_MS), OTEL_OK);
    assert_int_equal(otel_shutdown(PATIENCE_MS), OTEL_OK);
    assert_int_equal(sent, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_program_does_not_wait_for_a_comparison_of_cores),
        cmocka_unit_test(a_preemption_is_not_taken_for_a_suspend),
        cmocka_unit_test(a_clock_that_is_set_back_prolongs_no_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
