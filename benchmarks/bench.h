/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/bench.h - what the benchmarks share: options, clocks, statistics, JSON lines.
 *
 * A benchmark prints one JSON object a line on stdout and nothing else:
 *
 *     {"bench":"span","case":"enter_end","min_ns":41.2,"median_ns":43.0}
 *
 * The unit of a figure is in its name. What goes wrong is said on stderr and ends the
 * program with status 1: a figure that is not to be trusted is not printed.
 *
 * Threads:  one thread at a time, except where a function says otherwise. */
#ifndef OTELI_BENCH_H
#define OTELI_BENCH_H

#include <otel/otel.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_options {
    bool quick;      /* --quick: does it run at all? Its figures mean little */
    unsigned rounds; /* --rounds N: how often each case is measured; 0: the benchmark's own */
};

/* Read the command line; ends the program with status 2 when it makes no sense. */
struct bench_options bench_options_read(int count, char **arguments);

/* How many rounds were asked for; otherwise as usual, or as --quick has them. */
unsigned bench_rounds(const struct bench_options *options, unsigned usual, unsigned quick);

/* Say what is wrong on stderr, and end the program. Any thread. */
__attribute__((format(printf, 1, 2), noreturn)) void bench_fail(const char *format, ...);

/* End the program if an otel call did not answer OTEL_OK. */
void bench_expect_ok(otel_status status, const char *what);

/* Any thread. */
uint64_t bench_now_ns(void);
uint64_t bench_thread_cpu_ns(void);
uint64_t bench_process_cpu_ns(void);

/* Sort figures upwards; then the smallest is the first, and these are the others. */
void bench_sort(double *figures, size_t count);
double bench_percentile(const double *sorted, size_t count, double percent);
static inline double bench_median(const double *sorted, size_t count)
{
    return bench_percentile(sorted, count, 50);
}

/* One line of output: begin, any number of figures, end. */
void bench_line_begin(const char *bench, const char *name);
void bench_figure(const char *name, double value, unsigned decimals);
void bench_count(const char *name, uint64_t value);
void bench_text(const char *name, const char *text); /* which has nothing to escape */
void bench_null(const char *name);                   /* cannot be measured here */
void bench_line_end(void);

/* Count this thread's instructions in user mode, where the machine lets us; -1: it does
 * not. Closed by the end of the process. */
int bench_instructions_open(void);
uint64_t bench_instructions_read(int counter);

/* Calls of malloc, calloc, realloc and the aligned ones by the calling thread since it
 * began. In programs that are linked with allocations.c. */
uint64_t bench_allocations(void);

/* Holds an exporter up while it is closed, so that spans pile up behind it. Any thread. */
struct bench_gate {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool is_closed;
};
#define BENCH_GATE_OPEN                                            \
    {                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false \
    }
void bench_gate_set(struct bench_gate *gate, bool closed);
void bench_gate_pass(struct bench_gate *gate); /* waits while it is closed */

/* Flush, and fail unless this many spans have ended and been delivered since the start. */
void bench_expect_delivered(uint64_t spans);

/* The five attributes of every case whose name has "5attr" in it. */
static inline void bench_set_5_attributes(otel_span span)
{
    otel_span_set_string(span, "http.request.method", "GET");
    otel_span_set_string(span, "url.path", "/api/users/12345");
    otel_span_set_string(span, "server.address", "example.com");
    otel_span_set_int(span, "http.response.status_code", 200);
    otel_span_set_int(span, "server.port", 8080);
}

#endif
