/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_lines.c - the designs of the queue study that are no rivals.
 *
 *   lines         the SDK as a program has it: shared libraries and public API
 *   control       the same calls, and spans recorded in the same lines, but nobody to hand them
 *                 to: a full line is forgotten. What lines costs more is its queue
 *   control_copy  the record of the rivals, made, completed and forgotten */
#include "benchmarks/processor.h"

#include "api/record/line.h"
#include "api/thread/sdk_slot.h"

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
    exporter->batches++;
    oteli_count(&exporter->exported, otel_batch_size(call->batch));
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
    const otel_status stopped = otel_shutdown(SHUTDOWN_MS);
    if (stopped != OTEL_ERROR_EXPORT_FAILED) /* spans were dropped: a figure of this benchmark */
        bench_expect_ok(stopped, "otel_shutdown");
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

/* --- control: an SDK that forgets --- */

/* What the thread has handed over: it is current until the call is over, so it is given back
 * at the next one. */
static struct oteli_line *handed_over[PROCESSOR_MOST_THREADS];
static uint32_t forgetting; /* threads that have a place there */

static uint32_t take_quota(struct oteli_sdk *sdk, uint32_t ended)
{
    (void)sdk;
    (void)ended;
    return UINT32_MAX / 2;
}

static void forget(struct oteli_sdk *sdk, struct oteli_line *line)
{
    static __thread struct oteli_line **mine;
    (void)sdk;
    if (mine == NULL)
        mine = &handed_over[oteli_add_full_32(&forgetting, 1) % PROCESSOR_MOST_THREADS];
    if (*mine != NULL)
        oteli_line_put(*mine);
    *mine = line;
}

static void wake(struct oteli_sdk *sdk)
{
    (void)sdk;
}

static void *control_start(const struct processor_design *design,
                           struct processor_exporter *exporter, struct processor_thread *threads,
                           unsigned count)
{
    static uint64_t generation = UINT64_C(1) << 40; /* beyond those of real ones */
    struct oteli_sdk *sdk = calloc(1, sizeof *sdk);
    (void)design;
    (void)exporter;
    (void)threads;
    (void)count;
    if (sdk == NULL)
        bench_fail("no memory");
    sdk->generation = generation += 2;
    memset(sdk->decide, OTELI_DECIDE_SAMPLE, sizeof sdk->decide);
    sdk->limits = (struct oteli_limits){SIZE_MAX, 128, 128, 128, 128, 128, false, 64};
    sdk->take_quota = take_quota;
    sdk->hand_over = forget;
    sdk->wake = wake;
    oteli_sdk_install(sdk);
    tracer = otel_tracer_get("bench", "1.0");
    return sdk;
}

/* The threads have ended. */
static void control_stop(void *queue)
{
    oteli_sdk_uninstall();
    for (unsigned i = 0; i < PROCESSOR_MOST_THREADS; i++)
        if (handed_over[i] != NULL)
            oteli_line_put(handed_over[i]);
    memset(handed_over, 0, sizeof handed_over);
    forgetting = 0;
    free(queue);
}

const struct processor_design processor_control = {
    .name = "control",
    .about = "otel-c, but full lines are forgotten",
    .start = control_start,
    .burst = lines_burst,
    .stop = control_stop,
};

/* --- control_copy --- */

static void *copy_start(const struct processor_design *design, struct processor_exporter *exporter,
                        struct processor_thread *threads, unsigned count)
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

static void copy_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, discard);
}

static void copy_stop(void *queue)
{
    (void)queue;
}

const struct processor_design processor_control_copy = {
    .name = "control_copy",
    .about = "the rivals' span is forgotten",
    .start = copy_start,
    .burst = copy_burst,
    .stop = copy_stop,
};
