/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/budget.c - the queue's size is exact for 1 to 64 threads: while the exporter
 * does not come back exactly so many spans are kept, whoever ends them, and the rest is
 * counted. */
#include "common/atomic.h"
#include "tests/support/oracle.h"

#include <pthread.h>

enum { MOST_THREADS = 64, SPANS = 1000, BATCH = 10 };

static struct oracle oracle;
static otel_tracer *tracer;
static uint32_t next_number; /* atomic */
static uint32_t stop;        /* atomic */
static uint64_t queue_size;

static void *trace(void *argument)
{
    char name[ORACLE_NAME];
    (void)argument;
    for (unsigned i = 0; i < SPANS; i++) {
        oracle_name(oteli_add_full_32(&next_number, 1), name);
        otel_span_end(otel_span_enter_n(tracer, name, sizeof name, NULL));
    }
    return NULL;
}

static void *watch(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&stop) == 0) {
        const otel_stats stats = stress_stats();
        stress_check_sums(&stats, false);
    }
    return NULL;
}

static void run(unsigned count, int64_t queue)
{
    pthread_t threads[MOST_THREADS];
    pthread_t watcher;
    oracle_init(&oracle, MOST_THREADS * SPANS);
    oracle.blocked = 1;
    next_number = 0;
    stop = 0;
    queue_size = (uint64_t)queue;
    const otel_exporter exporter = oracle_exporter(&oracle);
    STRESS_CHECK(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .bsp_max_queue_size = queue,
                                         .bsp_max_export_batch_size = queue < BATCH ? queue : BATCH,
                                         .bsp_export_timeout = OTEL_ZERO, .log_level = "none")) ==
        OTEL_OK);
    tracer = otel_tracer_get("stress", NULL);
    STRESS_CHECK(pthread_create(&watcher, NULL, watch, NULL) == 0);
    for (unsigned i = 0; i < count; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, trace, NULL) == 0);
    for (unsigned i = 0; i < count; i++)
        pthread_join(threads[i], NULL);

    const otel_stats full = stress_stats();
    STRESS_CHECK(full.delivered == 0);
    STRESS_CHECK(full.queued == queue_size);
    STRESS_CHECK(full.dropped[OTEL_DROP_QUEUE_FULL] == (uint64_t)count * SPANS - queue_size);

    oteli_store_release_32(&oracle.blocked, 0);
    STRESS_CHECK(otel_flush(60000) == OTEL_OK);
    STRESS_CHECK(oracle.delivered == queue_size);
    STRESS_CHECK(otel_shutdown(60000) == OTEL_OK);
    oteli_store_relaxed_32(&stop, 1);
    pthread_join(watcher, NULL);
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    STRESS_CHECK(oracle_wrong(&oracle) == 0 && oracle.largest <= BATCH);
    oracle_fini(&oracle);
}

int main(int argc, char **argv)
{
    const unsigned times = stress_scale(argc, argv, 50);
    static const unsigned counts[] = {1, 2, 3, 8, 33, 64};
    static const int64_t queues[] = {1, 9, 100, 512, 999};
    for (unsigned time = 0; time < times; time++)
        for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++)
            for (unsigned k = 0; k < sizeof queues / sizeof queues[0]; k++)
                run(counts[i], queues[k]);
    return 0;
}
