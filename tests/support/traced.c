/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/traced.c - see traced.h. */
#include "tests/support/traced.h"

#include "api/thread/thread_state.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/leaks.h"
#include "tests/support/span_tree.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct traced traced;

static void say_nothing(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    (void)message;
}

void traced_start(otel_sdk_options *options)
{
    const otel_exporter exporter = otel_memory_exporter(traced.memory);
    options->size = sizeof *options;
    options->exporters = &exporter;
    options->exporter_count = 1;
    assert_int_equal(otel_start_with(options), OTEL_OK);
    traced.tracer = otel_tracer_get("traced", NULL);
}

void traced_stop(void)
{
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
}

void traced_touch(const char *name)
{
    otel_span_end(otel_span_enter(traced.tracer, name, NULL));
}

/* Nothing is left in a queue; without an SDK there is none. */
static void settle(void)
{
    const otel_status status = otel_flush(60000);
    assert_int_not_equal(status, OTEL_ERROR_TIMEOUT);
}

const char *traced_tree(void)
{
    settle();
    span_tree_text(traced.memory, traced.text, sizeof traced.text);
    return traced.text;
}

otel_stats traced_stats(void)
{
    otel_stats stats = {.size = sizeof stats};
    settle();
    if (otel_stats_read(0, &stats) != OTEL_OK)
        return stats;
    uint64_t gone = stats.delivered + stats.rejected + stats.spooled + stats.queued;
    for (size_t i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        gone += stats.withheld[i];
    for (size_t i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        gone += stats.dropped[i];
    assert_int_equal(stats.ended, gone);
    assert_int_equal(stats.started, stats.unsampled + stats.open + stats.ended);
    assert_int_equal(stats.queued, 0);
    return stats;
}

const char *stats_text(const otel_stats *stats)
{
    static char text[300];
    size_t length =
        (size_t)snprintf(text, sizeof text, "%llu started, ", (unsigned long long)stats->started);
    if (stats->unsampled != 0)
        length += (size_t)snprintf(text + length, sizeof text - length, "%llu unsampled, ",
                                   (unsigned long long)stats->unsampled);
    if (stats->open != 0)
        length += (size_t)snprintf(text + length, sizeof text - length, "%llu open, ",
                                   (unsigned long long)stats->open);
    length += (size_t)snprintf(text + length, sizeof text - length,
                               "%llu ended: ", (unsigned long long)stats->ended);
    otel_stats ended = *stats; /* the rest is said already */
    ended.open = 0;
    ended.unsampled = 0;
    assert_true(length + otel_stats_describe(&ended, text + length, sizeof text - length) <
                sizeof text);
    return text;
}

const char *traced_sums(void)
{
    const otel_stats stats = traced_stats();
    return stats_text(&stats);
}

static void assert_count(const char *what, uint64_t is, uint64_t wanted, const char *file, int line)
{
    if (is == wanted)
        return;
    print_error("%s: %llu, and not %llu\n", what, (unsigned long long)is,
                (unsigned long long)wanted);
    _fail(file, line);
}

void traced_assert_only(int withheld, int dropped, uint64_t count, const char *file, int line)
{
    const otel_stats stats = traced_stats();
    for (int i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        assert_count(otel_withheld_reason_string((otel_withheld_reason)i), stats.withheld[i],
                     i == withheld ? count : 0, file, line);
    for (int i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        assert_count(otel_drop_reason_string((otel_drop_reason)i), stats.dropped[i],
                     i == dropped ? count : 0, file, line);
}

void traced_thread(void *(*main)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, main, argument), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int traced_setup_without_sdk(void **state)
{
    (void)state;
    oteli_leaks_begin();
    otel_log_set_handler(say_nothing, NULL);
    traced.memory = otel_memory_new();
    assert_non_null(traced.memory);
    traced.tracer = otel_tracer_get("traced", NULL);
    return 0;
}

int traced_setup(void **state)
{
    traced_setup_without_sdk(state);
    traced_start(&(otel_sdk_options){.simple = true});
    return 0;
}

int traced_setup_queued(void **state)
{
    traced_setup_without_sdk(state);
    traced_start(&(otel_sdk_options){.bsp_schedule_delay = 60000});
    return 0;
}

int traced_teardown(void **state)
{
    (void)state;
    oteli_leaks_fail_at(0);
    (void)traced_stats();
    assert_int_not_equal(otel_shutdown(60000), OTEL_ERROR_TIMEOUT);
    otel_memory_free(traced.memory);
    oteli_lifecycle_reset();
    oteli_api_reset();
    otel_log_set_handler(NULL, NULL);
    oteli_leaks_check();
    return 0;
}
