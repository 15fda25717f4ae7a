/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/counters_wrap.c - counters that leave 32 and 64 bits behind while threads
 * trace: the tickets of the ring, the word of the bell, what the bell has announced. */
#include "sdk/engine.h"
#include "tests/support/oracle.h"

#include <pthread.h>

enum { THREADS = 8, SPANS = 10000, FLUSHES = 50 };

static struct oracle oracle;
static otel_tracer *tracer;

static void *trace(void *argument)
{
    const uint32_t first = (uint32_t)(uintptr_t)argument * SPANS;
    char name[ORACLE_NAME];
    for (uint32_t i = 0; i < SPANS; i++) {
        oracle_name(first + i, name);
        otel_span_end(otel_span_enter_n(tracer, name, sizeof name, NULL));
        if (i % 1000 == 0)
            STRESS_CHECK(otel_flush(60000) == OTEL_OK);
    }
    return NULL;
}

/* Nobody traces yet and the worker sleeps, so the engine can be changed. */
static void set_counters(uint64_t first_ticket)
{
    oteli_lifecycle_lock();
    struct oteli_engine *engine = oteli_lifecycle_engine();
    pthread_mutex_lock(&engine->mutex);
    const uint64_t lines = engine->ring.mask + 1;
    oteli_ring_fini(&engine->ring);
    STRESS_CHECK(oteli_ring_init(&engine->ring, lines, first_ticket));
    oteli_store_release_32(&engine->bell.word, UINT32_MAX - 2);
    pthread_mutex_unlock(&engine->mutex);
    oteli_lifecycle_unlock();
}

static void run(uint64_t first_ticket)
{
    pthread_t threads[THREADS];
    oracle_init(&oracle, THREADS * SPANS);
    const otel_exporter exporter = oracle_exporter(&oracle);
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                  .bsp_max_queue_size = 1 << 20)) == OTEL_OK);
    tracer = otel_tracer_get("stress", NULL);
    STRESS_CHECK(otel_flush(60000) == OTEL_OK);
    set_counters(first_ticket);
    for (uintptr_t i = 0; i < THREADS; i++)
        STRESS_CHECK(pthread_create(&threads[i], NULL, trace, (void *)i) == 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    STRESS_CHECK(otel_shutdown(60000) == OTEL_OK);

    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    STRESS_CHECK(stats.delivered == (uint64_t)THREADS * SPANS);
    STRESS_CHECK(oracle_wrong(&oracle) == 0);
    oracle_fini(&oracle);
}

int main(int argc, char **argv)
{
    const unsigned times = stress_scale(argc, argv, 20);
    for (unsigned i = 0; i < times; i++) {
        run((UINT64_C(1) << 32) - 20);
        run(UINT64_MAX - 20);
    }
    return 0;
}
