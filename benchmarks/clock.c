/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/clock.c - what reading each clock costs, and how far the wall time that spans
 * get is from CLOCK_REALTIME.
 *
 * Costs are means of short runs of readings, each run one sample. Errors are differences
 * between the wall clock and the ticks around its reading, converted like a span's: in
 * batches that are converted when the clock has been renewed, as the exporter thread does;
 * all of the first two seconds in one batch; and each at once. */
#include "common/clock/clock.h"
#include "benchmarks/bench.h"

#include <stdlib.h>
#include <time.h>

enum { RUNS = 20000, QUICK_RUNS = 500, READS = 100 };
enum { ERRORS = 20000, QUICK_ERRORS = 1000, WINDOW_TOLERANCE = 2, LOOKS = 8 };
enum { BATCHES = 10, ONCE = 50, PAUSE_NS = 50000 };

static volatile uint64_t sink;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void read_ticks(void)
{
    for (int i = 0; i < READS; i++)
        sink = oteli_ticks();
}

static void read_monotonic(void)
{
    for (int i = 0; i < READS; i++)
        sink = read_clock(CLOCK_MONOTONIC);
}

static void read_coarse(void)
{
    for (int i = 0; i < READS; i++)
        sink = read_clock(CLOCK_MONOTONIC_COARSE);
}

static void read_realtime(void)
{
    for (int i = 0; i < READS; i++)
        sink = read_clock(CLOCK_REALTIME);
}

static void report(const char *name, double *figures, size_t count)
{
    bench_sort(figures, count);
    bench_line_begin("clock", name);
    bench_figure("min_ns", figures[0], 2);
    bench_figure("p50_ns", bench_percentile(figures, count, 50), 2);
    bench_figure("p99_ns", bench_percentile(figures, count, 99), 2);
    bench_figure("max_ns", figures[count - 1], 2);
    bench_count("samples", count);
    bench_line_end();
}

static void measure_cost(const char *name, void (*read_many)(void), double *figures, size_t count)
{
    read_many();
    for (size_t i = 0; i < count; i++) {
        const uint64_t start_ns = bench_now_ns();
        read_many();
        figures[i] = (double)(bench_now_ns() - start_ns) / READS;
    }
    report(name, figures, count);
}

/* Ticks before and after a reading of the wall clock. */
struct window {
    uint64_t before;
    uint64_t wall_ns;
    uint64_t after;
};

static struct window look(void)
{
    struct window window;
    window.before = oteli_ticks();
    window.wall_ns = read_clock(CLOCK_REALTIME);
    window.after = oteli_ticks();
    return window;
}

static uint64_t width(const struct window *window)
{
    return window->after - window->before;
}

/* The narrowest of some looks: the first after a pause always is a slow one. */
static struct window look_well(void)
{
    struct window best = look();
    for (int i = 1; i < LOOKS; i++) {
        const struct window window = look();
        if (width(&window) < width(&best))
            best = window;
    }
    return best;
}

/* What a span at this moment would get, less what the wall clock said. */
static double error_ns(const struct window *window, uint32_t epoch)
{
    const uint64_t middle = window->before + width(window) / 2;
    const uint64_t converted_ns = oteli_clock_to_ns(middle | OTELI_TICKS_BIT, epoch);
    const int64_t error = (int64_t)(converted_ns - window->wall_ns);
    return (double)(error < 0 ? -error : error);
}

static void pause_shortly(void)
{
    const struct timespec pause = {0, PAUSE_NS};
    nanosleep(&pause, NULL);
}

/* What interrupted looks say does not count. */
static struct window look_in_peace(void)
{
    static uint64_t narrowest = UINT64_MAX;
    for (;;) {
        const struct window window = look_well();
        if (width(&window) < narrowest)
            narrowest = width(&window);
        if (width(&window) <= narrowest * WINDOW_TOLERANCE)
            return window;
        pause_shortly();
    }
}

/* Look often, and do what the exporter thread does: every `batch` looks, renew the clock
 * and then convert them. A batch of 0: convert each at once, as a program does that takes
 * its spans in process. */
static void measure_error(const char *name, size_t batch, double *figures, size_t count)
{
    struct window *windows = calloc(batch + 1, sizeof *windows);
    if (windows == NULL)
        bench_fail("no memory");
    (void)oteli_clock_start("auto");
    const uint32_t epoch = oteli_clock_epoch();
    size_t waiting = 0;
    for (size_t taken = 0; taken < count;) {
        windows[waiting++] = look_in_peace();
        pause_shortly();
        if (waiting < batch && taken + waiting < count)
            continue;
        if (batch != 0)
            oteli_clock_renew();
        for (size_t i = 0; i < waiting; i++)
            figures[taken++] = error_ns(&windows[i], epoch);
        waiting = 0;
    }
    free(windows);
    report(name, figures, count);
}

/* Ticks for conversion, none of which is newer than the last renewal. */
static uint64_t to_convert[READS];

static void convert_many(void)
{
    for (int i = 0; i < READS; i++)
        sink = oteli_clock_to_ns(to_convert[i], oteli_clock.epoch);
}

static void measure_conversion(double *figures, size_t count)
{
    for (int i = 0; i < READS; i++)
        to_convert[i] = oteli_ticks() | OTELI_TICKS_BIT;
    oteli_clock_renew();
    measure_cost("convert", convert_many, figures, count);
}

static void start(void)
{
    (void)oteli_clock_start("auto");
}

static void renew(void)
{
    (void)oteli_clock_renew();
}

static void measure_offsets(void)
{
    static const uint64_t never;
    (void)oteli_clock_measure_offsets(&never);
}

/* What is done once, each time a sample. */
static void measure_once(const char *name, void (*do_it)(void), double *figures, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t start_ns = bench_now_ns();
        do_it();
        figures[i] = (double)(bench_now_ns() - start_ns);
    }
    report(name, figures, count);
}

int main(int count, char **arguments)
{
    const struct bench_options options = bench_options_read(count, arguments);
    const size_t runs = options.quick ? QUICK_RUNS : RUNS;
    const size_t errors = options.quick ? QUICK_ERRORS : ERRORS;
    double *figures = calloc(runs > errors ? runs : errors, sizeof *figures);
    if (figures == NULL)
        bench_fail("no memory");

    (void)oteli_clock_start("auto");
    const bool counts = oteli_clock.source == OTELI_CLOCK_COUNTER;
    measure_cost(counts ? "ticks" : "ticks_are_monotonic", read_ticks, figures, runs);
    measure_cost("monotonic", read_monotonic, figures, runs);
    measure_cost("coarse", read_coarse, figures, runs);
    measure_cost("realtime", read_realtime, figures, runs);
    measure_conversion(figures, runs);
    measure_once("start", start, figures, ONCE);
    measure_once("renew", renew, figures, runs);
    measure_once("measure_offsets", measure_offsets, figures, ONCE);
    measure_error("ticks_to_wall", errors / BATCHES, figures, errors);
    measure_error("ticks_to_wall_first_anchor", errors, figures, errors);
    measure_error("ticks_to_wall_in_process", 0, figures, errors);
    free(figures);
    return 0;
}
