/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_system.c - what a queue costs a whole service: CPU time of the process at
 * a fixed load, with the exporter off, and with designs of the queue study.
 *
 * The service is a shop with its database in SQLite, eight threads, each of which answers a page
 * of ten requests every 4 ms, 200 to 340 us of work, with 11 spans. That is 2,000 pages and
 * 22,000 spans a second, and half a core or more. The exporter forgets what it gets, as in
 * the study: what is compared is the way to it.
 *
 *     off           the program with its tracing, and no SDK
 *     mutex_signal  the exporter thread is woken for every span that finds it asleep
 *     mpsc_batched  the winner of DoorDash's study
 *     lines         otel-c
 *
 * One short slice of each after the other, many rounds; printed are medians. */
#include "benchmarks/processor.h"
#include "benchmarks/processor_shop.h"

#include <math.h>

enum { ROUNDS = 15, QUICK_ROUNDS = 1, THREADS = 8, MODES = 4, MOST_ROUNDS = 1000 };
enum { PERIOD_NS = 4000000, WARM_UP_NS = 150000000, WINDOW_NS = 1000000000, QUICK_NS = 20000000 };

struct mode {
    struct processor_design design;
    double figures[PROCESSOR_FIGURES][MOST_ROUNDS];
};

static void prepare_modes(struct mode modes[MODES])
{
    modes[0].design = processor_control; /* no queue and no thread: the API has no SDK */
    modes[0].design.name = "off";
    modes[1].design = processor_mutex_signal;
    modes[2].design = processor_mpsc_batched;
    modes[3].design = processor_lines;
    for (unsigned i = 0; i < MODES; i++)
        modes[i].design.burst =
            i == 0 || i == MODES - 1 ? processor_shop_serve_otel : processor_shop_serve_rival;
}

static void run_slice(struct mode *mode, unsigned round, bool is_quick)
{
    const struct processor_setting setting = {.threads = THREADS,
                                              .is_steady = true,
                                              .warm_up_ns = is_quick ? QUICK_NS : WARM_UP_NS,
                                              .window_ns = is_quick ? 2 * QUICK_NS : WINDOW_NS,
                                              .period_ns = PERIOD_NS,
                                              .burst = 1};
    double figures[PROCESSOR_FIGURES];
    processor_shop_use(&mode->design);
    processor_measure(&mode->design, &setting, figures);
    for (unsigned i = 0; i < PROCESSOR_FIGURES; i++)
        mode->figures[i][round] = figures[i];
}

static double median(const struct mode *mode, enum processor_figure figure, unsigned rounds)
{
    return bench_median(mode->figures[figure], rounds);
}

static void report(const struct mode *mode, const struct mode *off, unsigned rounds)
{
    const double *cpu = mode->figures[PROCESSOR_PROCESS_CPU];
    const double more =
        median(mode, PROCESSOR_PROCESS_CPU, rounds) - median(off, PROCESSOR_PROCESS_CPU, rounds);
    bench_line_begin("processor_system", mode->design.name);
    bench_figure("pages_per_s", median(mode, PROCESSOR_OFFERED, rounds) / PROCESSOR_SHOP_SPANS, 0);
    bench_figure("spans_per_s", median(mode, PROCESSOR_OFFERED, rounds), 0);
    bench_figure("process_cpu_percent", median(mode, PROCESSOR_PROCESS_CPU, rounds), 2);
    bench_figure("q1_process_cpu_percent", bench_percentile(cpu, rounds, 25), 2);
    bench_figure("q3_process_cpu_percent", bench_percentile(cpu, rounds, 75), 2);
    bench_figure("cpu_us_per_page",
                 median(mode, PROCESSOR_PROCESS_CPU, rounds) * 1e4 * PROCESSOR_SHOP_SPANS /
                     median(mode, PROCESSOR_OFFERED, rounds),
                 1);
    bench_figure("more_than_off_percent", more, 2);
    bench_figure("more_than_off_us_per_span", more * 1e4 / median(mode, PROCESSOR_OFFERED, rounds),
                 3);
    bench_figure("exporter_cpu_percent", median(mode, PROCESSOR_WORKER_CPU, rounds), 3);
    bench_figure("exporter_wakeups_per_s", median(mode, PROCESSOR_WAKEUPS, rounds), 1);
    bench_figure("dropped_percent", median(mode, PROCESSOR_DROPPED, rounds), 3);
    bench_figure("page_p50_us", median(mode, PROCESSOR_END_P50, rounds), 1);
    bench_figure("page_p999_us", median(mode, PROCESSOR_END_P999, rounds), 1);
    bench_count("rounds", rounds);
    bench_line_end();
}

int main(int count, char **arguments)
{
    static struct mode modes[MODES];
    const struct bench_options options = bench_options_read(count, arguments);
    unsigned rounds = bench_rounds(&options, ROUNDS, QUICK_ROUNDS);
    if (rounds > MOST_ROUNDS)
        rounds = MOST_ROUNDS;
    prepare_modes(modes);
    processor_shops_open(THREADS);
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < MODES; i++)
            run_slice(&modes[(i + round) % MODES], round, options.quick);
    processor_shops_close();
    for (unsigned i = 0; i < MODES; i++)
        for (unsigned figure = 0; figure < PROCESSOR_FIGURES; figure++)
            bench_sort(modes[i].figures[figure], rounds);
    for (unsigned i = 0; i < MODES; i++)
        report(&modes[i], &modes[0], rounds);
    return 0;
}
