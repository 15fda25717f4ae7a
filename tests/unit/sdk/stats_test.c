/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/stats_test.c - specification of sdk/stats.c: the sums close at every moment. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <pthread.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX, TRACERS = 8, SPANS = 5000, METRICS = 500 };

static struct fake_exporter fakes[2];

static int begin(void **state)
{
    (void)state;
    memset(fakes, 0, sizeof fakes);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)!otel_shutdown(FOREVER_MS);
    oteli_lifecycle_reset();
    oteli_api_reset();
    oteli_leaks_check();
    return 0;
}

static void start(const char *sampler, bool simple)
{
    const otel_exporter exporters[] = {fake_exporter(&fakes[0]), fake_exporter(&fakes[1])};
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = exporters, .exporter_count = 2,
                                         .simple = simple, .traces_sampler = sampler,
                                         .traces_sampler_arg = sampler ? "0.5" : NULL,
                                         .bsp_max_queue_size = 500, .bsp_max_export_batch_size = 50,
                                         .log_level = "none", .bsp_schedule_delay = FOREVER_MS)),
        OTEL_OK);
}

static otel_stats stats_of(size_t pipeline)
{
    otel_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_stats_read(pipeline, &stats), OTEL_OK);
    return stats;
}

static bool is_closed(const otel_stats *stats)
{
    uint64_t gone = stats->delivered + stats->rejected + stats->spooled + stats->queued;
    for (unsigned i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        gone += stats->withheld[i];
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        gone += stats->dropped[i];
    return stats->ended == gone && stats->started == stats->unsampled + stats->open + stats->ended;
}

AROUND_EACH(begin, end);

TEST(a_span_is_open_then_queued_then_delivered)
{
    start(NULL, false);
    const otel_span span = otel_span_start(otel_tracer_get("test", NULL), "a", NULL);
    otel_stats stats = stats_of(0);
    assert_int_equal(stats.started, 1);
    assert_int_equal(stats.open, 1);

    otel_span_end(span);
    stats = stats_of(0);
    assert_int_equal(stats.open, 0);
    assert_int_equal(stats.queued, 1);
    assert_int_equal(stats.queued_bytes, 0); /* it is in the line that the thread keeps anyway */

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    stats = stats_of(0);
    assert_int_equal(stats.queued, 0);
    assert_int_equal(stats.delivered, 1);
    assert_int_equal(stats.batches, 1);
}

TEST(pipelines_have_sums_of_their_own)
{
    fakes[1].reject = 2;
    start(NULL, false);
    for (unsigned i = 0; i < 5; i++)
        otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), "a", NULL));

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);

    assert_int_equal(stats_of(0).delivered, 5);
    assert_int_equal(stats_of(1).delivered, 3);
    assert_int_equal(stats_of(1).rejected, 2);
}

TEST(there_are_no_statistics_of_a_pipeline_that_is_not)
{
    otel_stats stats = {.size = sizeof stats};
    start(NULL, false);

    assert_int_equal(otel_stats_read(2, &stats), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_stats_read(0, NULL), OTEL_ERROR_INVALID_ARGUMENT);
    stats.size = 0;
    assert_int_equal(otel_stats_read(0, &stats), OTEL_ERROR_INVALID_ARGUMENT);
}

TEST(a_caller_with_a_shorter_struct_gets_what_fits)
{
    start(NULL, false);
    otel_stats stats;
    memset(&stats, 0x77, sizeof stats);
    stats.size = offsetof(otel_stats, open);

    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);

    assert_int_equal(stats.started, 0);
    assert_int_equal(stats.size, offsetof(otel_stats, open));
    assert_true(stats.open == UINT64_C(0x7777777777777777));
}

TEST(they_stay_readable_after_the_shutdown)
{
    start(NULL, false);
    otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), "a", NULL));
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_int_equal(stats_of(0).delivered, 1);
    assert_int_equal(stats_of(1).delivered, 1);
}

static uint32_t stop;
static uint32_t broken;

static void *trace(void *argument)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    (void)argument;
    for (unsigned i = 0; i < SPANS; i++) {
        const otel_span outer = otel_span_enter(tracer, "outer", NULL);
        const otel_span inner = otel_span_start(tracer, "inner", NULL);
        otel_span_end(inner);
        otel_span_end(outer);
    }
    return NULL;
}

/* Counters of otel/metrics.h never go down either; `last` has one for each place. */
static bool metrics_go_down(uint64_t last[METRICS])
{
    otel_metric metric = {.size = sizeof metric};
    bool is_down = false;
    for (size_t cursor = 0; otel_metric_next(&cursor, &metric) && cursor < METRICS;) {
        is_down |= metric.kind != OTEL_METRIC_UP_DOWN_COUNTER && metric.value < last[cursor];
        last[cursor] = metric.value;
    }
    return is_down;
}

static void *watch(void *argument)
{
    (void)argument;
    uint64_t last_metrics[METRICS] = {0};
    otel_stats last[2];
    memset(last, 0, sizeof last);
    while (oteli_load_relaxed_32(&stop) == 0) {
        if (metrics_go_down(last_metrics))
            oteli_store_relaxed_32(&broken, 1);
        for (size_t i = 0; i < 2; i++) {
            const otel_stats stats = stats_of(i);
            if (!is_closed(&stats) || stats.delivered < last[i].delivered ||
                stats.ended < last[i].ended || stats.started < last[i].started)
                oteli_store_relaxed_32(&broken, 1);
            last[i] = stats;
        }
    }
    return NULL;
}

/* Sets of all sizes, some larger than a batch, that are mounted up to three times or not. */
static void *trace_mounts(void *argument)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    (void)argument;
    for (unsigned i = 0; i < SPANS / 200; i++) {
        const otel_span parents[] = {otel_span_start(tracer, "a", NULL),
                                     otel_span_start(tracer, "b", NULL),
                                     otel_span_start(tracer, "c", NULL)};
        otel_lines_begin();
        for (unsigned k = 0; k < i * 37 % 120; k++)
            otel_span_end(otel_span_enter(tracer, "collected", NULL));
        otel_lines *lines = otel_lines_end();
        otel_lines_mount(lines, parents, i % 4, NULL);
        otel_lines_free(lines);
        for (unsigned k = 0; k < 3; k++)
            otel_span_end(parents[k]);
    }
    return NULL;
}

/* With a queue that is too small, a sampler that says no to half, and a shutdown in the
 * middle: spans go every way there is. */
static void trace_and_watch(const char *sampler, bool simple, void *(*tracing)(void *))
{
    pthread_t threads[TRACERS];
    pthread_t watcher;
    stop = broken = 0;
    fakes[1].drop = 1;
    fakes[1].drop_reason = OTEL_DROP_UNCONFIRMED;
    start(sampler, simple);
    assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
    for (unsigned i = 0; i < TRACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tracing, NULL), 0);
    for (unsigned i = 0; i < TRACERS / 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)!otel_shutdown(FOREVER_MS);
    for (unsigned i = TRACERS / 2; i < TRACERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    oteli_store_relaxed_32(&stop, 1);
    assert_int_equal(pthread_join(watcher, NULL), 0);

    assert_int_equal(broken, 0);
    for (size_t i = 0; i < 2; i++) {
        const otel_stats stats = stats_of(i);
        assert_true(is_closed(&stats));
        assert_int_equal(stats.open, 0);
        assert_int_equal(stats.queued, 0);
        assert_true(stats.ended <= 2 * TRACERS * SPANS);
    }
    assert_int_equal(stats_of(0).delivered, fakes[0].spans);
    assert_true(sampler == NULL || stats_of(0).unsampled > 0);
}

TEST(the_sums_close_while_eight_threads_trace)
{
    trace_and_watch(NULL, false, trace);
}

TEST(they_close_with_a_sampler)
{
    trace_and_watch("traceidratio", false, trace);
}

TEST(they_close_with_mounts)
{
    trace_and_watch(NULL, false, trace_mounts);
}

TEST(they_close_with_mounts_and_the_simple_processor)
{
    trace_and_watch(NULL, true, trace_mounts);
}

TEST(they_close_with_the_simple_processor)
{
    trace_and_watch(NULL, true, trace);
}

/* Keep a trace of more than two spans. */
static bool keep_large(void *calls, const otel_tail *tail)
{
    ++*(unsigned *)calls;
    return tail->span_count > 2;
}

static void trace_one(unsigned children, bool fails)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    const otel_span root = otel_span_enter(tracer, "root", NULL);
    for (unsigned i = 0; i < children; i++)
        otel_span_end(otel_span_enter(tracer, "child", NULL));
    if (fails)
        otel_span_fail(root, NULL);
    otel_span_end(root);
}

TEST(traces_that_are_not_kept_are_counted)
{
    unsigned calls = 0;
    const otel_exporter exporter = fake_exporter(&fakes[0]);
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .tail_keep = keep_large, .tail_keep_state = &calls,
                                         .tail_keep_errors = "true")),
        OTEL_OK);

    trace_one(1, false);
    trace_one(1, true);
    trace_one(2, false);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    const otel_stats stats = stats_of(0);
    assert_int_equal(stats.delivered, 5);
    assert_int_equal(stats.withheld[OTEL_WITHHELD_NOT_KEPT], 2);
    assert_int_equal(calls, 2);
    assert_true(is_closed(&stats));
}

TEST(what_is_held_takes_no_more_than_it_may)
{
    const otel_exporter exporter = fake_exporter(&fakes[0]);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .tail_keep_slower_than = OTEL_ZERO,
                                                      .held_max_bytes = 2000)),
                     OTEL_OK);

    trace_one(100, false);
    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);

    const otel_stats stats = stats_of(0);
    assert_true(stats.delivered > 0 && stats.delivered <= 20);
    assert_int_equal(stats.dropped[OTEL_DROP_HELD_LIMIT], 101 - stats.delivered);
    assert_true(is_closed(&stats));
}

TEST(the_description_is_a_line_for_people)
{
    char text[256];
    otel_stats stats = {.size = sizeof stats, .delivered = 9812};
    stats.dropped[OTEL_DROP_QUEUE_FULL] = 188;

    const size_t length = otel_stats_describe(&stats, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(text, "delivered 9,812, dropped 188 (queue_full 188)");

    stats.dropped[OTEL_DROP_QUEUE_FULL] = 0;
    stats.delivered = 1234567890;
    otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 1,234,567,890, dropped 0");

    stats.delivered = 0;
    stats.rejected = 999;
    stats.queued = 1000;
    stats.dropped[OTEL_DROP_UNCONFIRMED] = 1;
    stats.dropped[OTEL_DROP_NO_MEMORY] = 2;
    otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 0, rejected 999, queued 1,000, dropped 3 "
                              "(unconfirmed 1, no_memory 2)");

    stats = (otel_stats){.size = sizeof stats, .delivered = 1, .spooled = 2048};
    otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 1, spooled 2,048, dropped 0");

    stats = (otel_stats){.size = sizeof stats, .delivered = 9812};
    stats.withheld[OTEL_WITHHELD_CANCELLED] = 1200;
    stats.withheld[OTEL_WITHHELD_NOT_KEPT] = 3;
    otel_stats_describe(&stats, text, sizeof text);
    assert_string_equal(text, "delivered 9,812, withheld 1,203 (cancelled 1,200, not_kept 3), "
                              "dropped 0");
}

TEST(the_description_is_cut_to_its_room)
{
    const otel_stats stats = {.size = sizeof stats};
    char text[8];
    memset(text, 'x', sizeof text);

    assert_int_equal(otel_stats_describe(&stats, text, 5), strlen("delivered 0, dropped 0"));
    assert_string_equal(text, "deli");
    assert_int_equal(text[5], 'x');
    assert_int_equal(otel_stats_describe(&stats, NULL, 0), strlen("delivered 0, dropped 0"));
    otel_stats_describe(&stats, text, 1);
    assert_string_equal(text, "");
}

TEST(every_reason_has_a_word)
{
    for (int i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        assert_string_not_equal(otel_drop_reason_string((otel_drop_reason)i), "unknown");
    assert_string_equal(otel_drop_reason_string(OTEL_DROP_REASON_COUNT), "unknown");
    assert_string_equal(otel_drop_reason_string((otel_drop_reason)-1), "unknown");
    for (int i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        assert_string_not_equal(otel_withheld_reason_string((otel_withheld_reason)i), "unknown");
    assert_string_equal(otel_withheld_reason_string(OTEL_WITHHELD_REASON_COUNT), "unknown");
    assert_string_equal(otel_withheld_reason_string((otel_withheld_reason)-1), "unknown");
}
