/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/threads.c - threads that come and go, a few at a time, and spans that one
 * thread starts and another ends: all are delivered once, and memory does not grow with
 * the number of threads there ever were. */
#include "api/thread.h"
#include "tests/support/oracle.h"

#include <pthread.h>

enum { THREADS = 10000, AT_A_TIME = 8, SPANS_EACH = 4 };

static struct oracle oracle;
static otel_tracer *tracer;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static otel_span handed; /* from one thread to another, under the lock */

static otel_span exchange(otel_span mine)
{
    pthread_mutex_lock(&lock);
    const otel_span theirs = handed;
    handed = mine;
    pthread_mutex_unlock(&lock);
    return theirs;
}

static void *live(void *argument)
{
    const uint32_t first = (uint32_t)(uintptr_t)argument * SPANS_EACH;
    char name[ORACLE_NAME];
    oracle_name(first, name);
    const otel_span detached = otel_span_start_n(tracer, name, sizeof name, NULL);
    for (uint32_t i = 1; i < SPANS_EACH; i++) {
        oracle_name(first + i, name);
        otel_span_end(otel_span_enter_n(tracer, name, sizeof name, NULL));
    }
    const otel_span theirs = exchange(detached);
    otel_span_set_int(theirs, "by", (int64_t)first);
    otel_span_end(theirs);
    otel_span_end(theirs);
    return NULL;
}

int main(int argc, char **argv)
{
    const uint32_t threads = THREADS * stress_scale(argc, argv, 20);
    pthread_t running[AT_A_TIME];
    oracle_init(&oracle, threads * SPANS_EACH);
    const otel_exporter exporter = oracle_exporter(&oracle);
    STRESS_CHECK(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                  .bsp_schedule_delay = 5,
                                                  .bsp_max_queue_size = 1 << 16)) == OTEL_OK);
    tracer = otel_tracer_get("stress", NULL);

    for (uintptr_t i = 0; i < threads; i++) {
        if (i >= AT_A_TIME)
            pthread_join(running[i % AT_A_TIME], NULL);
        STRESS_CHECK(pthread_create(&running[i % AT_A_TIME], NULL, live, (void *)i) == 0);
    }
    for (unsigned i = 0; i < AT_A_TIME; i++)
        pthread_join(running[i], NULL);
    otel_span_end(exchange((otel_span){{0}}));

    unsigned states = 0;
    for (const struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        states++;
    STRESS_CHECK(states <= 2 * AT_A_TIME + 1);
    STRESS_CHECK(otel_flush(60000) == OTEL_OK);
    STRESS_CHECK(stress_stats().queued_bytes <= (uint64_t)states * OTELI_LINE_BYTES);
    STRESS_CHECK(otel_shutdown(60000) == OTEL_OK);

    const otel_stats stats = stress_stats();
    stress_check_sums(&stats, true);
    STRESS_CHECK(stats.delivered == (uint64_t)threads * SPANS_EACH);
    STRESS_CHECK(oracle_wrong(&oracle) == 0);
    oracle_fini(&oracle);
    return 0;
}
