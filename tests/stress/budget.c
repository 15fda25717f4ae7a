/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/budget.c - the limits of the queue are exact for 1 to 1,000 threads: while the
 * exporter does not come back exactly so many spans are kept, whoever ends them, and never so
 * much as one line more than so many bytes; the rest is counted.
 *
 * A thread reserves room in quotas, so room can be with threads that end no more spans. Here all
 * of them go on until everybody has used up what they had; `idle` looks at what is left over
 * for one busy thread when the others have stopped. */
#include "api/thread/thread_state.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/oracle.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

enum { MOST_THREADS = 1000, BATCH = 10, QUOTA = 128, LARGE = 3000, STACK_BYTES = 128 * 1024 };
enum { ROUNDS = 3 };
enum { LEAST_QUEUE_BYTES = 1 << 20, LINE_BYTES = 16 * 1024, NUMBERS = 1 << 20 };

static struct oracle oracle;
static otel_tracer *tracer;
static uint32_t next_number; /* atomic */
static uint32_t stop;        /* atomic */
static uint64_t byte_limit;  /* what the watcher holds the queue to */
static uint64_t queue_size;
static uint32_t spans_each;
static pthread_barrier_t round_is_over;
static uint32_t finished; /* threads that have ended their spans; atomic */
static pthread_t watcher;

static void end_span(const char *attribute)
{
    const otel_span span = oracle_enter(tracer, oteli_add_full_32(&next_number, 1));
    if (attribute != NULL)
        otel_span_set_string(span, "large", attribute);
    otel_span_end(span);
}

static void *trace(void *argument)
{
    for (uint32_t i = 0; i < spans_each; i++)
        end_span(argument);
    oteli_add_full_32(&finished, 1);
    pthread_barrier_wait(&round_is_over);
    return NULL;
}

static void *watch(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&stop) == 0) {
        const otel_stats stats = stress_stats();
        stress_check_sums(&stats, false);
        STRESS_CHECK(stats.queued_bytes <= byte_limit);
        stress_sleep_us(200);
    }
    return NULL;
}

static void start(int64_t queue, int64_t bytes)
{
    oracle_init(&oracle, NUMBERS);
    oteli_store_release_32(&oracle.blocked, 1);
    next_number = stop = 0;
    queue_size = (uint64_t)queue;
    byte_limit = bytes != 0 ? (uint64_t)bytes : UINT64_MAX;
    stress_start_sdk(oracle_exporter(&oracle),
                     &(otel_sdk_options){.bsp_max_queue_size = queue,
                                         .queue_max_bytes = bytes,
                                         .bsp_max_export_batch_size = queue < BATCH ? queue : BATCH,
                                         .bsp_export_timeout = OTEL_ZERO,
                                         .log_level = "none"});
    STRESS_CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
}

static void start_threads(pthread_t *threads, unsigned count, void *(*main)(void *),
                          const char *attribute)
{
    pthread_attr_t attributes;
    STRESS_CHECK(pthread_attr_init(&attributes) == 0);
    STRESS_CHECK(pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
    pthread_barrier_init(&round_is_over, NULL, count + 1);
    finished = 0;
    for (unsigned i = 0; i < count; i++)
        STRESS_CHECK(pthread_create(&threads[i], &attributes, main, (void *)(uintptr_t)attribute) ==
                     0);
    pthread_attr_destroy(&attributes);
}

static void trace_with(pthread_t *threads, unsigned count, const char *attribute)
{
    start_threads(threads, count, trace, attribute);
    stress_wait(&finished, count);
}

static void end_threads(const pthread_t *threads, unsigned count)
{
    pthread_barrier_wait(&round_is_over);
    stress_join(threads, count);
    pthread_barrier_destroy(&round_is_over);
}

/* End spans until some are dropped. */
static void fill_up(void)
{
    const uint64_t before = stress_stats().dropped[OTEL_DROP_QUEUE_FULL];
    while (stress_stats().dropped[OTEL_DROP_QUEUE_FULL] == before)
        for (unsigned i = 0; i < QUOTA; i++)
            end_span(NULL);
}

static void end(void)
{
    const otel_stats stats = stress_stop_sdk();
    oteli_store_relaxed_32(&stop, 1);
    pthread_join(watcher, NULL);
    STRESS_CHECK(stats.ended == next_number);
    STRESS_CHECK(oracle_wrong(&oracle) == 0 && oracle.largest <= BATCH);
    oracle_fini(&oracle);
    oteli_lifecycle_reset();
    oteli_api_reset(); /* lines that were made for a larger limit stay in their pool */
}

/* Everything that was kept is delivered, and the rest is counted. */
static void finish(void)
{
    const uint64_t kept = stress_stats().queued;
    oteli_store_release_32(&oracle.blocked, 0);
    STRESS_CHECK(stress_is_done(otel_flush(60000)));
    STRESS_CHECK(oracle.delivered == kept);
    end();
}

/* Spans: each thread ends as many as the queue holds and a lot more, so the queue is full and
 * no thread has a part of a quota left. */
static void run_spans(unsigned count, int64_t queue)
{
    pthread_t threads[MOST_THREADS];
    start(queue, 0);
    spans_each = (uint32_t)queue / count + 2 * QUOTA;
    trace_with(threads, count, NULL);
    fill_up(); /* the threads' last quotas may have had room for all of theirs */
    end_threads(threads, count);
    spans_each = QUOTA; /* once more, now that the queue is full */
    trace_with(threads, count, NULL);
    end_threads(threads, count);
    fill_up();

    const otel_stats full = stress_stats();
    STRESS_CHECK(full.delivered == 0 && full.queued == queue_size);
    STRESS_CHECK(full.dropped[OTEL_DROP_QUEUE_FULL] == next_number - queue_size);
    finish();
}

/* Bytes: threads end large spans until there is no line any more. */
static void run_bytes(unsigned count, int64_t bytes)
{
    static char large[LARGE];
    pthread_t threads[MOST_THREADS];
    for (unsigned i = 0; i + 1 < sizeof large; i++)
        large[i] = 'x';
    start(1 << 20, bytes);
    spans_each = (uint32_t)(bytes / LARGE) / count + 10;
    trace_with(threads, count, large);

    const otel_stats full = stress_stats();
    STRESS_CHECK(full.delivered == 0 && full.dropped[OTEL_DROP_QUEUE_FULL] == 0);
    STRESS_CHECK(full.dropped[OTEL_DROP_BYTE_LIMIT] != 0);
    STRESS_CHECK(full.queued_bytes == byte_limit / LINE_BYTES * LINE_BYTES);
    end_threads(threads, count);
    finish();
}

/* How much of the queue one thread can fill while `count` others, which ended some spans each,
 * are still there: what is left of their quotas is a small part of it. */
static void run_idle(unsigned count, int64_t queue, uint32_t ended_each)
{
    pthread_t threads[MOST_THREADS];
    start(queue, 0);
    spans_each = ended_each;
    trace_with(threads, count, NULL);
    fill_up();
    const uint64_t left_over = queue_size - stress_stats().queued;
    printf("%u idle threads keep %" PRIu64 " of %" PRIu64 " places\n", count, left_over,
           queue_size);
    STRESS_CHECK(left_over <= queue_size / 4);
    end_threads(threads, count);
    finish();
}

static void *end_again_and_again(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        end_span(NULL);
        pthread_barrier_wait(&round_is_over);
        pthread_barrier_wait(&round_is_over);
    }
    return NULL;
}

/* Threads keep a line each, which is not what the limit of bytes is for: as long as nothing
 * waits nothing is dropped, however many threads there are. */
static void run_idle_lines(unsigned count)
{
    pthread_t threads[MOST_THREADS];
    start(1 << 16, LEAST_QUEUE_BYTES);
    oteli_store_release_32(&oracle.blocked, 0);
    start_threads(threads, count, end_again_and_again, NULL);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&round_is_over);
        STRESS_CHECK(stress_is_done(otel_flush(60000)));
        if (i + 1 < ROUNDS)
            pthread_barrier_wait(&round_is_over);
    }
    end_threads(threads, count);
    STRESS_CHECK(stress_stats().delivered == (uint64_t)count * ROUNDS);
    end();
}

/* spec: P4 */
int main(int argc, char **argv)
{
    const unsigned times = stress_scale(argc, argv, 20);
    static const unsigned counts[] = {1, 2, 17, 300, 1000};
    static const int64_t queues[] = {1, 9, 512, 2048};
    tracer = otel_tracer_get("stress", NULL);
    for (unsigned time = 0; time < times; time++) {
        for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            for (unsigned k = 0; k < sizeof queues / sizeof queues[0]; k++)
                run_spans(counts[i], queues[k]);
            run_bytes(counts[i], LEAST_QUEUE_BYTES);
            run_bytes(counts[i], 4 * LEAST_QUEUE_BYTES + 1000);
            run_idle(counts[i], 2048, 1);
            run_idle(counts[i], 2048, 1 + 1000 / counts[i]);
            run_idle_lines(counts[i]);
        }
    }
    return 0;
}
