/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/bench.c - options, clocks, statistics and output: bench.h has the contracts. */
#include "benchmarks/bench.h"

#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FLUSH_MS = 60000, MOST_ROUNDS = 10000 };

struct bench_options bench_options_read(int count, char **arguments)
{
    struct bench_options options = {0};
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--quick") == 0) {
            options.quick = true;
        } else if (strcmp(arguments[i], "--rounds") == 0 && i + 1 < count) {
            char *end;
            const unsigned long rounds = strtoul(arguments[++i], &end, 10);
            if (*end != '\0' || rounds == 0 || rounds > MOST_ROUNDS) {
                fprintf(stderr, "--rounds wants a number from 1 to %d\n", MOST_ROUNDS);
                exit(2);
            }
            options.rounds = (unsigned)rounds;
        } else {
            fprintf(stderr, "usage: %s [--quick] [--rounds N]\n", arguments[0]);
            exit(2);
        }
    }
    return options;
}

unsigned bench_rounds(const struct bench_options *options, unsigned usual, unsigned quick)
{
    if (options->rounds != 0)
        return options->rounds;
    return options->quick ? quick : usual;
}

void bench_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("benchmark failed: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    /* Not exit: other threads may be anywhere, and a child must not run its parent's
     * handlers. */
    fflush(stdout);
    _exit(1);
}

void bench_expect_ok(otel_status status, const char *what)
{
    if (status != OTEL_OK)
        bench_fail("%s: %s", what, otel_status_string(status));
}

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t bench_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t bench_thread_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t bench_process_cpu_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

void bench_sort(double *figures, size_t count)
{
    qsort(figures, count, sizeof *figures, compare);
}

double bench_percentile(const double *sorted, size_t count, double percent)
{
    if (count == 0)
        return NAN;
    /* The smallest figure that at least so many percent are not above. */
    const double rank = ceil(percent / 100 * (double)count);
    const size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return sorted[index < count ? index : count - 1];
}

void bench_line_begin(const char *bench, const char *name)
{
    printf("{\"bench\":\"%s\",\"case\":\"%s\"", bench, name);
}

void bench_figure(const char *name, double value, unsigned decimals)
{
    if (isfinite(value))
        printf(",\"%s\":%.*f", name, (int)decimals, value);
    else
        bench_null(name);
}

void bench_count(const char *name, uint64_t value)
{
    printf(",\"%s\":%llu", name, (unsigned long long)value);
}

void bench_text(const char *name, const char *text)
{
    printf(",\"%s\":\"%s\"", name, text);
}

void bench_null(const char *name)
{
    printf(",\"%s\":null", name);
}

void bench_line_end(void)
{
    puts("}");
    fflush(stdout);
}

int bench_instructions_open(void)
{
    struct perf_event_attr about;
    memset(&about, 0, sizeof about);
    about.type = PERF_TYPE_HARDWARE;
    about.size = sizeof about;
    about.config = PERF_COUNT_HW_INSTRUCTIONS;
    about.exclude_kernel = 1;
    about.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &about, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

uint64_t bench_instructions_read(int counter)
{
    uint64_t count = 0;
    if (counter < 0 || read(counter, &count, sizeof count) != (ssize_t)sizeof count)
        return 0;
    return count;
}

void bench_gate_set(struct bench_gate *gate, bool closed)
{
    pthread_mutex_lock(&gate->mutex);
    gate->is_closed = closed;
    if (!closed)
        pthread_cond_broadcast(&gate->opened);
    pthread_mutex_unlock(&gate->mutex);
}

void bench_gate_pass(struct bench_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    while (gate->is_closed)
        pthread_cond_wait(&gate->opened, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

void bench_expect_delivered(uint64_t spans)
{
    const otel_status flushed = otel_flush(FLUSH_MS);
    otel_stats stats = {.size = sizeof stats};
    bench_expect_ok(otel_stats_read(0, &stats), "otel_stats_read");
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        if (stats.dropped[i] != 0)
            bench_fail("%llu spans were dropped: %s", (unsigned long long)stats.dropped[i],
                       otel_drop_reason_string((otel_drop_reason)i));
    bench_expect_ok(flushed, "otel_flush");
    if (stats.ended != spans || stats.delivered != spans)
        bench_fail("%llu spans were made, but %llu ended and %llu were delivered",
                   (unsigned long long)spans, (unsigned long long)stats.ended,
                   (unsigned long long)stats.delivered);
}
