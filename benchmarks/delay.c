/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/delay.c - how long spans wait until they are exported, with a queue that has room for
 * many batches.
 *
 * Threads end 11,000 spans a second together, each one span at a time. The exporter looks at the
 * oldest span of each whole batch: how long ago has it ended? Batches that the timer or a flush
 * has sent are not full, and do not count. */
#include "benchmarks/bench.h"

#include <stdlib.h>
#include <time.h>

enum { SPANS_PER_S = 11000, BATCH = 512, QUEUE = 65536, MOST_THREADS = 8 };
enum { SECONDS = 20, QUICK_SECONDS = 1, MOST_BATCHES = 2 * SECONDS * SPANS_PER_S / BATCH };

struct producer {
    pthread_t thread;
    unsigned threads;
    unsigned number;
    uint64_t spans;
};

static struct {
    double oldest_ms[MOST_BATCHES];
    size_t count;
} seen; /* of the exporter thread, until everything is flushed */

static otel_export_result look(void *state, otel_export *call)
{
    const otel_batch *batch = call->batch;
    uint64_t oldest_ns = UINT64_MAX;
    (void)state;
    for (size_t i = 0; i < otel_batch_size(batch); i++) {
        otel_span_view span = {.size = sizeof span};
        otel_batch_span(batch, i, &span);
        if (span.end_ns < oldest_ns)
            oldest_ns = span.end_ns;
    }
    if (otel_batch_size(batch) == BATCH && seen.count < MOST_BATCHES)
        seen.oldest_ms[seen.count++] = (double)(int64_t)(otel_now_ns() - oldest_ns) / 1e6;
    return OTEL_EXPORT_DONE;
}

static void *produce(void *argument)
{
    struct producer *self = argument;
    otel_tracer *tracer = otel_tracer_get("bench", NULL);
    const uint64_t between_ns = UINT64_C(1000000000) * self->threads / SPANS_PER_S;
    const uint64_t first_ns = bench_now_ns() + between_ns * self->number / self->threads;
    for (uint64_t i = 0; i < self->spans; i++) {
        const uint64_t at_ns = first_ns + i * between_ns;
        const struct timespec at = {(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        otel_span_end(otel_span_enter(tracer, "GET /users", NULL));
    }
    return NULL;
}

static void measure(unsigned threads, unsigned seconds)
{
    const otel_exporter exporter = OTEL_EXPORTER(.name = "look", .export_batch = look);
    struct producer producers[MOST_THREADS];
    const uint64_t spans = (uint64_t)SPANS_PER_S * seconds / threads;
    seen.count = 0;
    bench_expect_ok(
        otel_start_with(OTEL_SDK_OPTIONS(.service_name = "bench", .exporters = &exporter,
                                         .exporter_count = 1, .traces_sampler = "always_on",
                                         .bsp_max_queue_size = QUEUE,
                                         .bsp_max_export_batch_size = BATCH)),
        "otel_start_with");
    for (unsigned i = 0; i < threads; i++) {
        producers[i] = (struct producer){.threads = threads, .number = i, .spans = spans};
        if (pthread_create(&producers[i].thread, NULL, produce, &producers[i]) != 0)
            bench_fail("no thread");
    }
    for (unsigned i = 0; i < threads; i++)
        pthread_join(producers[i].thread, NULL);
    bench_expect_delivered(spans * threads);
    bench_expect_ok(otel_shutdown(60000), "otel_shutdown");
    bench_sort(seen.oldest_ms, seen.count);
    bench_line_begin("delay", "oldest_of_a_batch");
    bench_count("threads", threads);
    bench_count("batches", seen.count);
    bench_figure("p50_ms", bench_percentile(seen.oldest_ms, seen.count, 50), 1);
    bench_figure("p99_ms", bench_percentile(seen.oldest_ms, seen.count, 99), 1);
    bench_figure("max_ms", bench_percentile(seen.oldest_ms, seen.count, 100), 1);
    bench_line_end();
}

int main(int count, char **arguments)
{
    const struct bench_options options = bench_options_read(count, arguments);
    measure(1, options.quick ? QUICK_SECONDS : SECONDS);
    measure(MOST_THREADS, options.quick ? QUICK_SECONDS : SECONDS);
    return 0;
}
