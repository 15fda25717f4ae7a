/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/flush.c - 16 threads end spans while two others flush again and again: a
 * span that ended before a flush began has been delivered when the flush is done. */
#include "common/atomic.h"
#include "tests/support/oracle.h"

#include <pthread.h>
#include <sched.h>

enum { PRODUCERS = 16, FLUSHERS = 2, SPANS = 30000, AHEAD = 500 };

static struct oracle oracle;
static otel_tracer *tracer;
static uint32_t spans;
static uint32_t ended[PRODUCERS];   /* spans that have ended; atomic */
static uint32_t flushed[PRODUCERS]; /* spans that a flush has delivered; atomic */
static uint32_t flushes;

static void *produce(void *argument)
{
    const uint32_t me = (uint32_t)(uintptr_t)argument;
    char name[ORACLE_NAME];
    for (uint32_t i = 0; i < spans; i++) {
        /* Never so far ahead that spans could be dropped. */
        while (i - oteli_load_acquire_32(&flushed[me]) >= AHEAD)
            sched_yield();
        oracle_name(me * spans + i, name);
        const otel_span span = i % 3 == 0 ? otel_span_start_n(tracer, name, sizeof name, NULL)
                                          : otel_span_enter_n(tracer, name, sizeof name, NULL);
        otel_span_end(span);
        oteli_store_release_32(&ended[me], i + 1);
    }
    return NULL;
}

static bool flush_once(void)
{
    uint32_t before[PRODUCERS];
    bool all_done = true;
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        before[i] = oteli_load_acquire_32(&ended[i]);
        all_done = all_done && before[i] == spans;
    }
    STRESS_CHECK(otel_flush(60000) == OTEL_OK);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        for (uint32_t k = before[i] > 2 * AHEAD ? before[i] - 2 * AHEAD : 0; k < before[i]; k++)
            STRESS_CHECK(oracle_seen(&oracle, i * spans + k) == 1);
        uint32_t known = oteli_load_acquire_32(&flushed[i]);
        while (known < before[i] && !oteli_cas_full_32(&flushed[i], known, before[i]))
            known = oteli_load_acquire_32(&flushed[i]);
    }
    oteli_add_full_32(&flushes, 1);
    return all_done;
}

static void *flush(void *argument)
{
    (void)argument;
    while (!flush_once())
        continue;
    return NULL;
}

static void run(int64_t batch_size)
{
    pthread_t producers[PRODUCERS];
    pthread_t flushers[FLUSHERS];
    oracle_init(&oracle, PRODUCERS * spans);
    for (unsigned i = 0; i < PRODUCERS; i++)
        ended[i] = flushed[i] = 0;
    const otel_exporter exporter = oracle_exporter(&oracle);
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                  .bsp_max_queue_size = 1 << 16,
                                                  .bsp_max_export_batch_size = batch_size)) ==
                 OTEL_OK);
    tracer = otel_tracer_get("stress", NULL);
    for (uintptr_t i = 0; i < PRODUCERS; i++)
        STRESS_CHECK(pthread_create(&producers[i], NULL, produce, (void *)i) == 0);
    for (unsigned i = 0; i < FLUSHERS; i++)
        STRESS_CHECK(pthread_create(&flushers[i], NULL, flush, NULL) == 0);
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    for (unsigned i = 0; i < FLUSHERS; i++)
        pthread_join(flushers[i], NULL);
    STRESS_CHECK(otel_shutdown(60000) == OTEL_OK);

    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    STRESS_CHECK(stats.delivered == (uint64_t)PRODUCERS * spans);
    STRESS_CHECK(oracle_wrong(&oracle) == 0);
    STRESS_CHECK(oracle.largest <= (uint64_t)batch_size);
    oracle_fini(&oracle);
}

int main(int argc, char **argv)
{
    spans = SPANS * stress_scale(argc, argv, 20);
    run(512);
    run(7);
    return 0;
}
