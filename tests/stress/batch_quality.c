/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/batch_quality.c - batches are full, and never too large.
 *
 * With a schedule delay of an hour a batch that is not full has one reason, the shutdown, as long
 * as there is room for more spans and bytes. The rest does everything at once that makes batches,
 * sets of spans that are mounted among it, and looks at nothing but their size. What ticks and full
 * queues do to batches is in unit.sdk.drain and unit.sdk.worker. */
#include "common/base/atomic.h"
#include "tests/support/oracle.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { HOUR_MS = 3600000 };
enum { WILD_THREADS = 6, WILD_SPANS = 4000, LARGEST_SET = 40 };

static otel_tracer *tracer;
static uint32_t wild_ends; /* atomic: the flushers stop */

/* An exporter that looks at sizes. Exports come from one thread at a time. */
struct sizes {
    uint64_t batches;
    uint64_t spans;
    uint64_t not_full;
    uint64_t capacity;
    uint64_t too_large;
    uint64_t empty;
};

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct sizes *sizes = state;
    const size_t size = otel_batch_size(call->batch);
    sizes->batches++;
    sizes->spans += size;
    sizes->not_full += size < sizes->capacity;
    sizes->too_large += size > sizes->capacity;
    sizes->empty += size == 0;
    return OTEL_EXPORT_DONE;
}

static void start(struct sizes *sizes, int64_t capacity, int64_t queue, int64_t delay_ms)
{
    *sizes = (struct sizes){.capacity = (uint64_t)capacity};
    stress_start_sdk(OTEL_EXPORTER(.name = "sizes", .state = sizes, .export_batch = export_batch),
                     &(otel_sdk_options){.bsp_max_queue_size = queue,
                                         .bsp_max_export_batch_size = capacity,
                                         .bsp_schedule_delay = delay_ms,
                                         .queue_max_bytes = 1 << 28, /* half of it: a batch */
                                         .log_level = "none"});
}

/* All spans are in a batch, none of which is too large. Those that were dropped for want of
 * room. */
static uint64_t stop_and_check(const struct sizes *sizes)
{
    const otel_stats stats = stress_stop_sdk();
    STRESS_CHECK(sizes->spans == stats.delivered && stats.batches == sizes->batches);
    STRESS_CHECK(sizes->too_large == 0 && sizes->empty == 0);
    return stats.dropped[OTEL_DROP_QUEUE_FULL];
}

static void mount_some(uint32_t number)
{
    const otel_span parents[2] = {otel_span_enter(tracer, "first", NULL),
                                  otel_span_start(tracer, "second", NULL)};
    otel_lines_begin();
    for (uint32_t i = 0; i < 1 + number % LARGEST_SET; i++)
        otel_span_end(otel_span_enter(tracer, "collected", NULL));
    otel_lines *lines = otel_lines_end();
    otel_lines_mount(lines, parents, 1 + number % 2, NULL);
    otel_lines_free(lines);
    otel_span_end(parents[1]);
    otel_span_end(parents[0]);
}

static void *be_wild(void *argument)
{
    char large[20000];
    (void)argument;
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    for (uint32_t i = 0; i < WILD_SPANS; i++) {
        const otel_span span = otel_span_enter(tracer, "wild", NULL);
        if (i % 100 == 0)
            otel_span_set_string(span, "large", large);
        if (i % 50 == 0)
            mount_some(i);
        otel_span_end(span);
    }
    return NULL;
}

static void *flush_all_the_time(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&wild_ends) == 0) {
        const otel_status status = otel_flush(2);
        STRESS_CHECK(stress_is_done(status) || status == OTEL_ERROR_TIMEOUT);
    }
    return NULL;
}

static void wild(int64_t capacity, int64_t queue, int64_t delay_ms, bool flushes)
{
    struct sizes sizes;
    pthread_t threads[WILD_THREADS];
    pthread_t flusher;
    start(&sizes, capacity, queue, delay_ms);
    wild_ends = 0;
    stress_start(threads, WILD_THREADS, be_wild);
    if (flushes)
        STRESS_CHECK(pthread_create(&flusher, NULL, flush_all_the_time, NULL) == 0);
    stress_join(threads, WILD_THREADS);
    oteli_store_relaxed_32(&wild_ends, 1);
    if (flushes)
        pthread_join(flusher, NULL);
    const uint64_t dropped = stop_and_check(&sizes);
    printf("batches of %" PRId64 ", queue %" PRId64 ": %" PRIu64 " spans in %" PRIu64
           " batches, %" PRIu64 " not full, %" PRIu64 " dropped\n",
           capacity, queue, sizes.spans, sizes.batches, sizes.not_full, dropped);
    /* Nothing but the shutdown can have made a batch that is not full. */
    if (!flushes && delay_ms == HOUR_MS && dropped == 0)
        STRESS_CHECK(sizes.not_full <= 1);
}

/* spec: P5 */
int main(int argc, char **argv)
{
    static const int64_t capacities[] = {1, 7, 512, 1000};
    const unsigned times = stress_scale(argc, argv, 20);
    tracer = otel_tracer_get("stress", NULL);
    for (unsigned i = 0; i < times * (sizeof capacities / sizeof capacities[0]); i++) {
        const int64_t capacity = capacities[i % (sizeof capacities / sizeof capacities[0])];
        wild(capacity, capacity, 5, true);
        wild(capacity, 1 << 16, HOUR_MS, false);
        wild(capacity, 1 << 16, 1, true);
    }
    return 0;
}
