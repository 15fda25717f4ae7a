/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/signal_stop_test.c - specification of profiling/signal_source.h: a stop while a handler is
 * under way. The walk of a stack and the wait of a stop come here first (--wrap), so that a handler
 * stays where it is until it is let go. This thread is the profiler's. */
#include "profiling/frame_walk.h"
#include "profiling/signal_source.h"
#include "common/atomic.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const struct oteli_source_options options = {
    .period_ns = 1000000, .ring_bytes = 1 << 16, .signal_number = SIGPROF};

size_t __wrap_oteli_frame_walk(const struct oteli_registers *registers,
                               struct oteli_stack_view *view, size_t most, uint64_t *frames);
size_t __real_oteli_frame_walk(const struct oteli_registers *registers,
                               struct oteli_stack_view *view, size_t most, uint64_t *frames);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

/* All atomic. */
static uint32_t is_held;    /* handlers stay */
static uint32_t inside;     /* handlers that do */
static uint32_t waits;      /* of a stop */
static uint32_t lets_go_at; /* so many of them */
static uint32_t forks_at;   /* likewise */
static uint32_t turns;      /* of the thread that is interrupted */
static uint32_t is_over;

size_t __wrap_oteli_frame_walk(const struct oteli_registers *registers,
                               struct oteli_stack_view *view, size_t most, uint64_t *frames)
{
    oteli_add_full_32(&inside, 1);
    while (oteli_load_acquire_32(&is_held) != 0)
        sched_yield();
    oteli_add_full_32(&inside, UINT32_MAX);
    return __real_oteli_frame_walk(registers, view, most, frames);
}

/* Until its thread goes on. */
static void let_handler_go(void)
{
    const uint32_t before = oteli_load_relaxed_32(&turns);
    oteli_store_release_32(&is_held, 0);
    while (oteli_load_relaxed_32(&turns) == before)
        sched_yield();
}

static int child_status;

/* In a child, which has none of the threads that are sampled. Gives how often its stop has waited. */
static uint32_t start_and_stop(void)
{
    void *source = NULL;
    waits = 0;
    lets_go_at = UINT32_MAX; /* nobody would go */
    if (oteli_signal_source.start(&options, &source) != 0)
        return UINT32_MAX;
    oteli_signal_source.stop(source);
    return waits;
}

static void have_a_child(void)
{
    forks_at = UINT32_MAX; /* it has none itself */
    const pid_t child = fork();
    if (child == 0)
        _exit(start_and_stop() != 0);
    assert_int_equal(waitpid(child, &child_status, 0), child);
}

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
    (void)wanted;
    (void)left;
    const uint32_t now = oteli_add_full_32(&waits, 1) + 1;
    if (now == forks_at)
        have_a_child();
    if (now == oteli_load_relaxed_32(&lets_go_at))
        let_handler_go();
    return 0;
}

static void *work(void *unused)
{
    while (oteli_load_relaxed_32(&is_over) == 0) {
        oteli_add_full_32(&turns, 1);
        sched_yield();
    }
    return unused;
}

static pthread_t worker;

/* A thread that is new blocks all signals for a moment. */
static int begin(void **state)
{
    (void)state;
    is_held = 0;
    inside = 0;
    waits = 0;
    forks_at = UINT32_MAX;
    turns = 0;
    is_over = 0;
    const int error = pthread_create(&worker, NULL, work, NULL);
    while (error == 0 && oteli_load_relaxed_32(&turns) == 0)
        sched_yield();
    return error;
}

static void end_worker(void)
{
    if (is_over != 0)
        return;
    oteli_store_release_32(&is_held, 0);
    oteli_store_relaxed_32(&is_over, 1);
    pthread_join(worker, NULL);
}

static int end(void **state)
{
    (void)state;
    end_worker();
    return 0;
}

static void *start_source(void)
{
    void *source = NULL;
    assert_int_equal(oteli_signal_source.start(&options, &source), 0);
    return source;
}

/* With a handler that stays. */
static void *start_and_hold(void)
{
    oteli_store_release_32(&is_held, 1);
    void *source = start_source();
    while (oteli_load_acquire_32(&inside) == 0)
        sched_yield();
    return source;
}

AROUND_EACH(begin, end);

TEST(a_stop_waits_for_the_handler_and_frees_all)
{
    oteli_leaks_begin();
    lets_go_at = 3;
    oteli_signal_source.stop(start_and_hold());
    assert_int_equal(waits, 3);
    oteli_leaks_check();
}

TEST(a_handler_that_stays_keeps_the_memory_until_the_next_start)
{
    oteli_leaks_begin();
    lets_go_at = UINT32_MAX;
    oteli_signal_source.stop(start_and_hold());
    assert_true(waits > 3 && waits < 10000);
    assert_true(oteli_leaks_live() != 0);
    oteli_signal_source.stop(start_source());
    assert_true(oteli_leaks_live() != 0);

    end_worker();
    oteli_signal_source.stop(start_source());
    oteli_leaks_check();
}

TEST(a_child_that_is_forked_meanwhile_waits_for_nobody)
{
    oteli_leaks_begin();
    child_status = -1;
    forks_at = 2;
    lets_go_at = 3;
    oteli_signal_source.stop(start_and_hold());
    assert_int_equal(child_status, 0);
    oteli_leaks_check();
}
