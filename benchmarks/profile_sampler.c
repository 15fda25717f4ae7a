/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/profile_sampler.c - how much more processor time a busy program needs while it is
 * sampled.
 *
 * The program does a fixed amount of work, 30 functions deep and under a label, in turns with and
 * without the profiler. What counts is the time of the whole process: of the interrupts, which the
 * worker's clock has in it, and of the profiler's own thread, which is also given apart. Each pair
 * of turns gives one figure, so that slow times of the machine meet both alike.
 *
 * A profiler's first interval is over before its turn begins: it finds out what is mapped where,
 * some milliseconds once. What an export takes, once in 10 seconds, is not in it either. */
#include "benchmarks/profile_sampler.h"

#include <otel/profile.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 15, QUICK_ROUNDS = 1, MOST_ROUNDS = 200, DEPTH = 30, FIRST_PART = 10 };
#define TURN_NS UINT64_C(500000000)
#define QUICK_NS UINT64_C(30000000)

struct job {
    uint64_t steps;
    uint64_t sum;
};

struct turn {
    double process_ns;
    double thread_ns;
};

struct figures {
    double more[MOST_ROUNDS];     /* all of it, in percent of the work without */
    double profiler[MOST_ROUNDS]; /* of that, the profiler's thread */
    double without[MOST_ROUNDS];
    double with[MOST_ROUNDS];
};

/* --- The program --- */

__attribute__((noinline)) static void spend(struct job *job)
{
    uint64_t sum = job->sum;
    for (uint64_t i = 0; i < job->steps; i++) {
        sum = sum * UINT64_C(6364136223846793005) + i;
        __asm__ volatile("" : "+r"(sum));
    }
    job->sum = sum;
}

/* Not a tail call: each of them has a frame. */
__attribute__((noinline)) static void descend(struct job *job, unsigned depth)
{
    if (depth == 0)
        spend(job);
    else
        descend(job, depth - 1);
    __asm__ volatile("" ::: "memory");
}

static void *work(void *job)
{
    descend(job, DEPTH);
    return NULL;
}

static struct turn take_turn(uint64_t steps)
{
    struct job job = {steps, 1};
    const otel_profile_kv kv = {"query", "busy"};
    otel_profile_label label = otel_profile_label_acquire(&kv, 1);
    const uint64_t process_ns = bench_process_cpu_ns();
    const uint64_t thread_ns = bench_thread_cpu_ns();
    otel_profile_apply(&label, work, &job);
    const struct turn turn = {(double)(bench_process_cpu_ns() - process_ns),
                              (double)(bench_thread_cpu_ns() - thread_ns)};
    otel_profile_label_release(&label);
    return turn;
}

/* --- The profiler, and an exporter that has nothing to do --- */

static otel_status accept_and_forget(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    (void)state;
    (void)profile;
    (void)timeout_ms;
    return OTEL_OK;
}

static void do_nothing(void *state)
{
    (void)state;
}

otel_profiler *bench_sampler_start(uint32_t hz)
{
    static char something;
    otel_profiler *profiler = NULL;
    const otel_profiler_options options = {.size = sizeof options,
                                           .frequency_hz = hz,
                                           .exporter = {.state = &something,
                                                        .export_profile = accept_and_forget,
                                                        .wake = do_nothing,
                                                        .free = do_nothing}};
    bench_expect_ok(otel_profiler_start(&options, &profiler), "otel_profiler_start");
    return profiler;
}

static struct turn take_sampled_turn(uint32_t hz, uint64_t steps, otel_profiler_stats *stats)
{
    otel_profiler *profiler = bench_sampler_start(hz);
    otel_profiler_stats first = {.size = sizeof first};
    (void)take_turn(steps / FIRST_PART);
    bench_expect_ok(otel_profiler_flush(profiler, 5000), "otel_profiler_flush");
    bench_expect_ok(otel_profiler_get_stats(profiler, &first), "otel_profiler_get_stats");
    const struct turn turn = take_turn(steps);
    bench_expect_ok(otel_profiler_flush(profiler, 5000), "otel_profiler_flush");
    bench_expect_ok(otel_profiler_get_stats(profiler, stats), "otel_profiler_get_stats");
    stats->samples -= first.samples;
    bench_expect_ok(otel_profiler_stop(profiler, 5000), "otel_profiler_stop");
    return turn;
}

/* How many steps take that long here. */
static uint64_t calibrate(uint64_t ns)
{
    const uint64_t steps = 1000000;
    double least = 1e18;
    for (unsigned i = 0; i < 5; i++) {
        const struct turn turn = take_turn(steps);
        least = turn.thread_ns < least ? turn.thread_ns : least;
    }
    return (uint64_t)((double)steps * (double)ns / least);
}

static void print(uint32_t hz, struct figures *figures, unsigned rounds, double samples,
                  const otel_profiler_stats *stats)
{
    char name[32];
    snprintf(name, sizeof name, "sampler_%uhz", hz);
    bench_sort(figures->more, rounds);
    bench_sort(figures->profiler, rounds);
    bench_sort(figures->without, rounds);
    bench_sort(figures->with, rounds);
    bench_line_begin("profile", name);
    bench_figure("cpu_percent", 100 * (figures->with[0] / figures->without[0] - 1), 2);
    bench_figure("median_cpu_percent", bench_median(figures->more, rounds), 2);
    bench_figure("own_thread_cpu_percent", bench_median(figures->profiler, rounds), 2);
    bench_figure("samples_per_cpu_second", samples, 0);
    bench_text("source", stats->source == OTEL_PROFILER_PERF ? "perf" : "signal");
    bench_line_end();
}

static void measure(uint32_t hz, uint64_t steps, unsigned rounds)
{
    static struct figures figures;
    otel_profiler_stats stats = {.size = sizeof stats};
    double samples = 0;
    double all_ns = 0;
    for (unsigned i = 0; i < rounds; i++) {
        struct turn turns[2] = {{0}};
        for (unsigned j = 0; j < 2; j++) { /* who is first changes */
            const bool is_sampled = (i + j) % 2 == 1;
            turns[is_sampled] =
                is_sampled ? take_sampled_turn(hz, steps, &stats) : take_turn(steps);
        }
        samples += (double)stats.samples;
        all_ns += turns[1].process_ns;
        figures.without[i] = turns[0].process_ns;
        figures.with[i] = turns[1].process_ns;
        figures.more[i] = 100 * (turns[1].process_ns / turns[0].process_ns - 1);
        figures.profiler[i] =
            100 * (turns[1].process_ns - turns[1].thread_ns) / turns[0].process_ns;
    }
    print(hz, &figures, rounds, samples * 1e9 / all_ns, &stats);
}

void bench_sampler_measure(const struct bench_options *options)
{
    unsigned rounds = options->rounds;
    if (rounds == 0)
        rounds = options->quick ? QUICK_ROUNDS : ROUNDS;
    if (rounds > MOST_ROUNDS)
        bench_fail("at most %d rounds", (int)MOST_ROUNDS);
    const uint64_t steps = calibrate(options->quick ? QUICK_NS : TURN_NS);
    measure(99, steps, rounds);
    measure(1000, steps, rounds);
}
