/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/shutdown.c - the SDK starts and shuts down again and again while 16 threads
 * trace and one reads the statistics. No span is delivered twice, the sums close at every
 * moment, and once the threads are still every span is delivered or counted. */
#include "common/atomic.h"
#include "tests/support/oracle.h"

#include <pthread.h>

enum { TRACERS = 16, ROUNDS = 25, NUMBERS = 1 << 24 };

static struct oracle oracle;
static otel_tracer *tracer;
static uint32_t next_number; /* atomic */
static uint32_t stop;        /* atomic */
static uint64_t seed;

static otel_span open_one(uint64_t *random, const otel_span_options *options)
{
    char name[ORACLE_NAME];
    oracle_name(oteli_add_full_32(&next_number, 1) % NUMBERS, name);
    if (stress_random(random) % 2 == 0)
        return otel_span_start_n(tracer, name, sizeof name, options);
    return otel_span_enter_n(tracer, name, sizeof name, options);
}

static void *trace(void *argument)
{
    uint64_t random = seed + (uint64_t)(uintptr_t)argument + 1;
    const otel_attribute attribute = otel_attribute_of("n", otel_value_int(1));
    while (oteli_load_relaxed_32(&stop) == 0) {
        const otel_span outer = open_one(&random, NULL);
        otel_span_set_int(outer, "thread", (int64_t)(uintptr_t)argument);
        const otel_span inner =
            open_one(&random, OTEL_SPAN_OPTIONS(.attributes = &attribute, .attribute_count = 1));
        otel_span_add_event(inner, "event", NULL, 0);
        otel_span_end(inner);
        otel_span_end(outer);
        if (stress_random(&random) % 64 == 0)
            stress_sleep_us((unsigned)(stress_random(&random) % 200));
    }
    return NULL;
}

static void *read_statistics(void *argument)
{
    (void)argument;
    while (oteli_load_relaxed_32(&stop) == 0) {
        otel_stats stats = {.size = sizeof stats};
        if (otel_stats_read(0, &stats) == OTEL_OK)
            stress_check_sums(&stats, false);
    }
    return NULL;
}

static void start(uint64_t *random)
{
    const otel_exporter exporter = oracle_exporter(&oracle);
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(
                         .exporters = &exporter, .exporter_count = 1,
                         .bsp_max_queue_size = 1 + (int64_t)(stress_random(random) % 5000),
                         .bsp_max_export_batch_size = 1 + (int64_t)(stress_random(random) % 300),
                         .bsp_schedule_delay = 1 + (int64_t)(stress_random(random) % 20),
                         .log_level = "none")) == OTEL_OK);
}

int main(int argc, char **argv)
{
    const unsigned rounds = ROUNDS * stress_scale(argc, argv, 20);
    pthread_t threads[TRACERS + 1];
    seed = stress_seed() | 1;
    uint64_t random = seed;
    oracle_init(&oracle, NUMBERS);
    tracer = otel_tracer_get("stress", NULL);
    stress_start(threads, TRACERS, trace);
    STRESS_CHECK(pthread_create(&threads[TRACERS], NULL, read_statistics, NULL) == 0);

    for (unsigned round = 0; round < rounds; round++) {
        const uint64_t before = oracle.delivered;
        start(&random);
        stress_sleep_us((unsigned)(stress_random(&random) % 100000));
        const otel_status status = otel_shutdown(60000);
        STRESS_CHECK(stress_is_done(status));
        const otel_stats stats = stress_stats();
        stress_check_sums(&stats, false);
        STRESS_CHECK(stats.delivered == oracle.delivered - before);
        STRESS_CHECK(otel_flush(0) == OTEL_ERROR_NOT_STARTED);
    }

    const uint64_t before = oracle.delivered;
    start(&random);
    stress_sleep_us(50000);
    STRESS_CHECK(stress_is_done(otel_shutdown(60000)));
    oteli_store_relaxed_32(&stop, 1);
    stress_join(threads, TRACERS + 1);
    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    STRESS_CHECK(stats.delivered == oracle.delivered - before);
    if (next_number < NUMBERS)
        STRESS_CHECK(oracle_wrong(&oracle) == 0);
    oracle_fini(&oracle);
    return 0;
}
