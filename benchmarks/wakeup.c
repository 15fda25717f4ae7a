/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/wakeup.c - what one wake-up of an exporter thread costs, without any queue: to the
 * thread that wakes up, and to whoever wakes it. The least that any design of the queue study
 * with so many wake-ups can cost.
 *
 *     signal  a thread of the program wakes it, every 8 ms, in the middle of its own work
 *     timer   it sleeps for 8 ms and wakes by itself
 *
 * Beside it are threads like those of the study: each works for 20 us every millisecond. A
 * thread that wakes up has to load its memory into the caches of a core first. Where another
 * thread wakes it, that core is at work for the same program at that moment; its own timer finds
 * one that sleeps, and in a virtual machine perhaps one that was somebody else's meanwhile. */
#include "benchmarks/bench.h"
#include "common/base/atomic.h"

#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, QUICK_ROUNDS = 1, MOST_ROUNDS = 100, MOST_THREADS = 10 };
enum { PERIOD_NS = 1000000, WORK_NS = 20000, PERIODS_A_WAKEUP = 8 };
#define ROUND_NS UINT64_C(1000000000)
#define QUICK_NS UINT64_C(50000000)
#define NEVER_NS UINT64_C(5000000000)

struct sleeper {
    uint32_t word; /* of the futex */
    uint32_t is_over;
    bool has_timer;
    uint64_t wakeups;
    uint64_t cpu_ns;
};

struct worker {
    struct sleeper *sleeper;
    uint64_t offset_ns;
    bool wakes;
    uint64_t signals;
    uint64_t signals_ns;
    pthread_t id;
};

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static void wake(struct sleeper *sleeper)
{
    oteli_add_full_32(&sleeper->word, 1);
    syscall(SYS_futex, &sleeper->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *sleep_and_wake(void *argument)
{
    struct sleeper *sleeper = argument;
    const uint64_t before_ns = bench_thread_cpu_ns();
    while (oteli_load_acquire_32(&sleeper->is_over) == 0) {
        const uint32_t heard = oteli_load_acquire_32(&sleeper->word);
        const uint64_t timer_ns = (uint64_t)PERIODS_A_WAKEUP * PERIOD_NS;
        const struct timespec until =
            timespec_of(bench_now_ns() + (sleeper->has_timer ? timer_ns : NEVER_NS));
        syscall(SYS_futex, &sleeper->word, FUTEX_WAIT_BITSET_PRIVATE, heard, &until, NULL,
                FUTEX_BITSET_MATCH_ANY);
        sleeper->wakeups++;
    }
    sleeper->cpu_ns = bench_thread_cpu_ns() - before_ns;
    return NULL;
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    uint64_t next_ns = bench_now_ns() + worker->offset_ns;
    for (unsigned i = 1; oteli_load_acquire_32(&worker->sleeper->is_over) == 0; i++) {
        const struct timespec next = timespec_of(next_ns += PERIOD_NS);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        const uint64_t begun_ns = bench_now_ns();
        while (bench_now_ns() - begun_ns < WORK_NS)
            oteli_stall();
        if (!worker->wakes || i % PERIODS_A_WAKEUP != 0)
            continue;
        const uint64_t before_ns = bench_thread_cpu_ns();
        wake(worker->sleeper);
        worker->signals_ns += bench_thread_cpu_ns() - before_ns;
        worker->signals++;
    }
    return NULL;
}

static void measure(unsigned threads, bool has_timer, uint64_t round_ns, double *sleeper_us,
                    double *waker_us)
{
    struct sleeper sleeper = {.has_timer = has_timer};
    struct worker workers[MOST_THREADS] = {0};
    pthread_t id;
    if (pthread_create(&id, NULL, sleep_and_wake, &sleeper) != 0)
        bench_fail("no thread");
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (struct worker){.sleeper = &sleeper,
                                     .offset_ns = (uint64_t)PERIOD_NS * i / threads,
                                     .wakes = i == 0 && !has_timer};
        if (pthread_create(&workers[i].id, NULL, work, &workers[i]) != 0)
            bench_fail("no thread");
    }
    const struct timespec round = timespec_of(round_ns);
    clock_nanosleep(CLOCK_MONOTONIC, 0, &round, NULL);
    oteli_store_release_32(&sleeper.is_over, 1);
    wake(&sleeper);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].id, NULL);
    pthread_join(id, NULL);
    *sleeper_us = (double)sleeper.cpu_ns / 1000 / (double)sleeper.wakeups;
    *waker_us = has_timer || workers[0].signals == 0
                    ? 0
                    : (double)workers[0].signals_ns / 1000 / (double)workers[0].signals;
}

static void compare(unsigned threads, unsigned rounds, uint64_t round_ns)
{
    static double sleeper_us[2][MOST_ROUNDS];
    static double waker_us[2][MOST_ROUNDS];
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned mode = 0; mode < 2; mode++)
            measure(threads, mode != 0, round_ns, &sleeper_us[mode][round], &waker_us[mode][round]);
    for (unsigned mode = 0; mode < 2; mode++) {
        bench_sort(sleeper_us[mode], rounds);
        bench_sort(waker_us[mode], rounds);
        bench_line_begin("wakeup", mode != 0 ? "timer" : "signal");
        bench_count("threads", threads);
        bench_figure("sleeper_cpu_us", bench_median(sleeper_us[mode], rounds), 2);
        bench_figure("least_sleeper_cpu_us", sleeper_us[mode][0], 2);
        bench_figure("waker_cpu_us", bench_median(waker_us[mode], rounds), 2);
        bench_line_end();
    }
}

int main(int count, char **arguments)
{
    static const unsigned threads[] = {1, 5, MOST_THREADS};
    const struct bench_options options = bench_options_read(count, arguments);
    unsigned rounds = bench_rounds(&options, ROUNDS, QUICK_ROUNDS);
    if (rounds > MOST_ROUNDS)
        rounds = MOST_ROUNDS;
    for (unsigned i = 0; i < sizeof threads / sizeof threads[0]; i++)
        compare(threads[i], rounds, options.quick ? QUICK_NS : ROUND_NS);
    return 0;
}
