/* SPDX-License-Identifier: Apache-2.0 */
/* What the C tests of the suite share: cmocka with what it needs, statistics, and spans that stay
 * in memory. */
#ifndef BLACKBOX_H
#define BLACKBOX_H

#include <otel/memory.h>
#include <otel/otel.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000 }; /* it has no meaning as a speed */

static inline otel_stats stats_now(void)
{
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);
    return stats;
}

static inline uint64_t sum_of(const uint64_t *counts, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += counts[i];
    return sum;
}

static inline uint64_t all_lost(const otel_stats *stats)
{
    return sum_of(stats->dropped, OTEL_DROP_REASON_COUNT);
}

static inline uint64_t all_withheld(const otel_stats *stats)
{
    return sum_of(stats->withheld, OTEL_WITHHELD_REASON_COUNT);
}

static inline void assert_sums_close(const otel_stats *stats)
{
    assert_int_equal(stats->started, stats->unsampled + stats->open + stats->ended);
    assert_int_equal(stats->ended, stats->delivered + stats->rejected + stats->spooled +
                                       stats->queued + all_withheld(stats) + all_lost(stats));
}

static inline void run_in_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* An SDK whose spans go to `memory`; when it stops nothing has been lost. */
static otel_memory *memory __attribute__((unused));

static inline otel_status start_with_memory(otel_sdk_options *options)
{
    memory = otel_memory_new();
    const otel_exporter exporter = otel_memory_exporter(memory);
    options->exporters = &exporter;
    options->exporter_count = 1;
    return otel_start_with(options);
}

static inline int stop_memory(void **state)
{
    (void)state;
    const otel_status status = otel_shutdown(PATIENCE_MS);
    const otel_stats stats = stats_now();
    assert_sums_close(&stats);
    otel_memory_free(memory);
    return status != OTEL_OK;
}

/* Of a file that has functions of these names. */
#define AROUND(test) cmocka_unit_test_setup_teardown(test, start, stop)

#endif
