/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time that the profiler's signal cannot see is counted, and said once. */
#include <otel/otel.h>
#include <otel/profiler.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { NS_PER_S = 1000000000, WORK_NS = 1200000000, TIMEOUT_MS = 60000 };

static unsigned warnings;

static void listen(void *state, otel_log_level level, const char *message)
{
    (void)state;
    if (level == OTEL_LOG_WARN && strstr(message, "of the processor time") != NULL)
        __atomic_add_fetch(&warnings, 1, __ATOMIC_RELAXED);
}

static otel_status keep_nothing(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    (void)state;
    (void)profile;
    (void)timeout_ms;
    return OTEL_OK;
}

static otel_profiler *start_profiler(void)
{
    static int state;
    const otel_profiler_options options = {
        .size = sizeof options,
        .source = OTEL_PROFILER_SIGNAL,
        .exporter = {.state = &state, .export_profile = keep_nothing}};
    otel_profiler *profiler = NULL;
    warnings = 0;
    assert_int_equal(otel_profiler_start(&options, &profiler), OTEL_OK);
    return profiler;
}

static otel_profiler_stats stats_of(otel_profiler *profiler)
{
    otel_profiler_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_profiler_flush(profiler, TIMEOUT_MS), OTEL_OK);
    assert_int_equal(otel_profiler_get_stats(profiler, &stats), OTEL_OK);
    return stats;
}

static int64_t used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * NS_PER_S + used.tv_nsec;
}

/* Until this thread has used so much more of its processor's time. */
static void *work(void *is_blocking)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    pthread_sigmask(is_blocking != NULL ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
    for (const int64_t end_ns = used_ns() + WORK_NS; used_ns() < end_ns;)
        for (volatile int i = 0; i < 20000; i++)
            ;
    return NULL;
}

static void run_worker(void *is_blocking)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, work, is_blocking), 0);
    pthread_join(thread, NULL);
}

static void test_time_of_workers_that_block_the_signal_is_counted_and_said(void **state)
{
    (void)state;
    otel_profiler *profiler = start_profiler();

    run_worker(&warnings);

    const otel_profiler_stats stats = stats_of(profiler);
    assert_true(stats.processor_ns >= WORK_NS);
    (void)stats_of(profiler);
    assert_int_equal(otel_profiler_stop(profiler, TIMEOUT_MS), OTEL_OK);
    assert_int_equal(warnings, 1);
}

/* The thread is there at the start, so it has a timer from then on. */
static void test_time_that_is_seen_is_no_cause_for_a_warning(void **state)
{
    (void)state;
    otel_profiler *profiler = start_profiler();

    (void)work(NULL);

    const otel_profiler_stats stats = stats_of(profiler);
    assert_true(stats.processor_ns >= WORK_NS);
    assert_int_equal(otel_profiler_stop(profiler, TIMEOUT_MS), OTEL_OK);
    assert_int_equal(warnings, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_of_workers_that_block_the_signal_is_counted_and_said),
        cmocka_unit_test(test_time_that_is_seen_is_no_cause_for_a_warning),
    };
    otel_log_set_handler(listen, NULL);
    return cmocka_run_group_tests_name("unseen", tests, NULL, NULL);
}
