/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_lines.c - the two designs of the queue study that are no rivals.
 *
 *   lines    the SDK as a program has it: shared libraries, public API, and an exporter that
 *            looks at every span and forgets it
 *   control  the span is made, completed and forgotten: what every design costs without its
 *            queue */
#include "benchmarks/processor.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHUTDOWN_MS = 60000 };

/* --- lines --- */

struct lines_queue {
    struct processor_exporter *exporter;
    uint32_t worker; /* its number; release */
};

static otel_tracer *tracer;

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct processor_exporter *exporter = state;
    const size_t count = otel_batch_size(call->batch);
    uint64_t touched = exporter->touched;
    for (size_t i = 0; i < count; i++) {
        const otel_scope_view *scope;
        const otel_slice span = otel_batch_span_otlp(call->batch, i, &scope);
        uint64_t piece = 0;
        if (span.length < sizeof piece)
            bench_fail("a span was torn on its way");
        memcpy(&piece, span.data, sizeof piece);
        touched += piece;
    }
    exporter->touched = touched;
    exporter->batches++;
    oteli_count(&exporter->exported, count);
    return OTEL_EXPORT_DONE;
}

/* On the exporter thread. */
static void note_worker(void *state)
{
    struct lines_queue *queue = state;
    oteli_store_release_32(&queue->worker, (uint32_t)gettid());
}

static void *lines_start(const struct processor_design *design, struct processor_exporter *exporter,
                         struct processor_thread *threads, unsigned count)
{
    (void)design;
    (void)threads;
    (void)count;
    struct lines_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        bench_fail("no memory");
    queue->exporter = exporter;
    const otel_exporter forgets =
        OTEL_EXPORTER(.name = "forgets", .state = exporter, .export_batch = export_batch);
    bench_expect_ok(
        otel_start_with(
            OTEL_SDK_OPTIONS(.service_name = "bench", .exporters = &forgets, .exporter_count = 1,
                             .traces_sampler = "always_on", .log_level = "error",
                             .bsp_max_queue_size = PROCESSOR_QUEUE,
                             .bsp_max_export_batch_size = PROCESSOR_BATCH,
                             .thread_started = note_worker, .thread_started_state = queue,
                             .bsp_schedule_delay = (int64_t)(PROCESSOR_DELAY_NS / 1000000))),
        "otel_start_with");
    tracer = otel_tracer_get("bench", "1.0");
    return queue;
}

static pid_t lines_worker(void *queue)
{
    const struct lines_queue *lines = queue;
    return (pid_t)oteli_load_acquire_32(&lines->worker);
}

static otel_stats read_stats(void)
{
    otel_stats stats = {.size = sizeof stats};
    bench_expect_ok(otel_stats_read(0, &stats), "otel_stats_read");
    return stats;
}

static uint64_t lines_dropped(void *queue)
{
    (void)queue;
    uint64_t dropped = 0;
    const otel_stats stats = read_stats();
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        dropped += stats.dropped[i];
    return dropped;
}

static void lines_stop(void *queue)
{
    struct lines_queue *lines = queue;
    bench_expect_ok(otel_shutdown(SHUTDOWN_MS), "otel_shutdown");
    const otel_stats stats = read_stats();
    if (stats.delivered != lines->exporter->exported || stats.queued != 0 || stats.open != 0)
        bench_fail("the SDK's books do not close");
    free(lines);
}

static OTELI_INLINE void lines_begin(struct processor_thread *thread)
{
    thread->lines_span = otel_span_enter(tracer, processor_span_name, NULL);
}

static OTELI_INLINE bool lines_end(struct processor_thread *thread)
{
    otel_span_end(thread->lines_span);
    return true; /* or dropped: the SDK counts */
}

static void lines_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, lines_begin, lines_end);
}

const struct processor_design processor_lines = {
    .name = "lines",
    .about = "otel-c: spans in lines, a signal for a batch at most",
    .start = lines_start,
    .burst = lines_burst,
    .worker = lines_worker,
    .dropped = lines_dropped,
    .stop = lines_stop,
};

/* --- control --- */

static void *control_start(const struct processor_design *design,
                           struct processor_exporter *exporter, struct processor_thread *threads,
                           unsigned count)
{
    (void)design;
    (void)exporter;
    (void)threads;
    (void)count;
    return NULL;
}

static OTELI_INLINE bool discard(struct processor_thread *thread)
{
    processor_complete(thread);
    __asm__ volatile("" : : "r"(&thread->span) : "memory"); /* the record is complete here */
    return true;
}

static void control_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, discard);
}

static void control_stop(void *queue)
{
    (void)queue;
}

const struct processor_design processor_control = {
    .name = "control",
    .about = "the span is forgotten",
    .start = control_start,
    .burst = control_burst,
    .stop = control_stop,
};
