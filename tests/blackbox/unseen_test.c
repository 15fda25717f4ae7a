/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that block the profiler's signal: their processor time is counted and said once, and a
 * stop leaves no signal behind for them. */
#include "blackbox.h"
#include <otel/profiler.h>
#include <signal.h>
#include <time.h>

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

static otel_profiler *start_profiler(unsigned frequency_hz)
{
    static int state;
    const otel_profiler_options options = {
        .size = sizeof options,
        .source = OTEL_PROFILER_SIGNAL,
        .frequency_hz = frequency_hz,
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

static void block(bool blocks)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPROF);
    pthread_sigmask(blocks ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* Until this thread has used so much more of its processor's time. */
static void *work(void *is_blocking)
{
    block(is_blocking != NULL);
    for (const int64_t end_ns = used_ns() + WORK_NS; used_ns() < end_ns;)
        for (volatile int i = 0; i < 20000; i++)
            ;
    return NULL;
}

static void test_time_of_workers_that_block_the_signal_is_counted_and_said(void **state)
{
    (void)state;
    otel_profiler *profiler = start_profiler(99);

    run_in_thread(work, &warnings);

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
    otel_profiler *profiler = start_profiler(99);

    (void)work(NULL);

    const otel_profiler_stats stats = stats_of(profiler);
    assert_true(stats.processor_ns >= WORK_NS);
    assert_int_equal(otel_profiler_stop(profiler, TIMEOUT_MS), OTEL_OK);
    assert_int_equal(warnings, 0);
}

/* Threads that block the signal once they have a timer: it stays pending for them, and as the
 * program has no handler it would end the program when they let it through. */
enum { WORKERS = 3, STOPS = 20, TURN_NS = 20000000 };
static pthread_barrier_t barrier;
static unsigned pending_before, pending_after, is_over;

static bool is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPROF) == 1;
}

static void work_until_pending(void)
{
    for (const int64_t end_ns = used_ns() + TURN_NS; used_ns() < end_ns && !is_pending();)
        ;
    if (is_pending())
        __atomic_add_fetch(&pending_before, 1, __ATOMIC_RELAXED);
}

static void *block_and_let_through(void *unused)
{
    for (;;) {
        pthread_barrier_wait(&barrier); /* the profiler is started */
        if (is_over)
            return unused;
        block(true);
        work_until_pending();
        pthread_barrier_wait(&barrier); /* it is stopped */
        pthread_barrier_wait(&barrier);
        if (is_pending())
            __atomic_add_fetch(&pending_after, 1, __ATOMIC_RELAXED);
        block(false);
        pthread_barrier_wait(&barrier);
    }
}

static void test_a_stop_leaves_no_signal_pending(void **state)
{
    (void)state;
    pthread_t threads[WORKERS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, WORKERS + 1), 0);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, block_and_let_through, NULL), 0);
    for (unsigned stops = 0; stops < STOPS;) {
        const unsigned before = __atomic_load_n(&pending_before, __ATOMIC_RELAXED);
        otel_profiler *profiler = start_profiler(1000);
        pthread_barrier_wait(&barrier);
        block(true);
        work_until_pending();
        pthread_barrier_wait(&barrier);
        assert_int_equal(otel_profiler_stop(profiler, TIMEOUT_MS), OTEL_OK);
        pthread_barrier_wait(&barrier);
        assert_false(is_pending());
        block(false);
        pthread_barrier_wait(&barrier);
        stops += __atomic_load_n(&pending_before, __ATOMIC_RELAXED) != before;
    }
    assert_int_equal(pending_after, 0);
    is_over = 1;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_of_workers_that_block_the_signal_is_counted_and_said),
        cmocka_unit_test(test_time_that_is_seen_is_no_cause_for_a_warning),
        cmocka_unit_test(test_a_stop_leaves_no_signal_pending),
    };
    otel_log_set_handler(listen, NULL);
    return cmocka_run_group_tests_name("unseen", tests, NULL, NULL);
}
