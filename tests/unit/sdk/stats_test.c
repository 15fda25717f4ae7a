/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/stats_test.c - specification of sdk/stats/stats.c: the sums close at every moment;
 * and of otel/metrics.h, which says more of the same. */
#include "sdk/engine/current_engine.h"
#include "sdk/lifecycle/lifecycle.h"

#include "tests/support/faked.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { TRACERS = 8, SPANS = 5000, METRICS = 500 };

static void start_sampled(size_t exporters, bool simple, const char *sampler)
{
    assert_int_equal(
        faked_start(exporters, &(otel_sdk_options){.simple = simple,
                                                   .traces_sampler = sampler,
                                                   .traces_sampler_arg = sampler ? "0.5" : NULL,
                                                   .bsp_max_queue_size = 500,
                                                   .bsp_max_export_batch_size = 50}),
        OTEL_OK);
}

static void trace_some(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        faked_span("a");
}

AROUND_EACH(faked_begin, faked_end);

TEST(a_span_is_open_then_queued_then_delivered_by_each_pipeline)
{
    fakes[1].reject = 1;
    start_sampled(2, false, NULL);
    const otel_span span = otel_span_start(otel_tracer_get("test", NULL), "a", NULL);
    assert_string_equal(faked_sums(0), "1 started, 1 open, 0 ended: delivered 0, dropped 0");

    otel_span_end(span);
    assert_string_equal(faked_sums(0), "1 started, 1 ended: delivered 0, queued 1, dropped 0");
    assert_int_equal(faked_stats(0).queued_bytes, 0); /* in the line that the thread keeps anyway */

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);
    assert_int_equal(faked_stats(0).batches, 1);
    (void)!otel_shutdown(FOREVER_MS); /* and it is readable after it */
    assert_string_equal(faked_sums(0), "1 started, 1 ended: delivered 1, dropped 0");
    assert_string_equal(faked_sums(1), "1 started, 1 ended: delivered 0, rejected 1, dropped 0");
}

TEST(callers_get_what_they_have_room_for_of_pipelines_that_are_there)
{
    otel_stats stats = {.size = sizeof stats};
    start_sampled(2, false, NULL);
    assert_int_equal(otel_stats_read(2, &stats), OTEL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(otel_stats_read(0, NULL), OTEL_ERROR_INVALID_ARGUMENT);
    stats.size = 0;
    assert_int_equal(otel_stats_read(0, &stats), OTEL_ERROR_INVALID_ARGUMENT);
    memset(&stats, 0x77, sizeof stats);
    stats.size = offsetof(otel_stats, open);

    assert_int_equal(otel_stats_read(0, &stats), OTEL_OK);

    assert_int_equal(stats.started, 0);
    assert_int_equal(stats.size, offsetof(otel_stats, open));
    assert_true(stats.open == UINT64_C(0x7777777777777777));
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

static uint32_t stop;
static uint32_t broken;

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
            const otel_stats stats = faked_stats(i);
            if (!is_closed(&stats) || stats.delivered < last[i].delivered ||
                stats.ended < last[i].ended || stats.started < last[i].started)
                oteli_store_relaxed_32(&broken, 1);
            last[i] = stats;
        }
    }
    return NULL;
}

/* Now and then a set is mounted up to three times or not; some are larger than a batch. */
static void *trace(void *argument)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    (void)argument;
    for (unsigned i = 0; i < SPANS; i++) {
        const otel_span outer = otel_span_enter(tracer, "outer", NULL);
        const otel_span inner = otel_span_start(tracer, "inner", NULL);
        if (i % 200 == 0) {
            const otel_span parents[] = {outer, inner, otel_span_start(tracer, "third", NULL)};
            otel_lines_begin();
            for (unsigned k = 0; k < i / 200 * 37 % 120; k++)
                otel_span_end(otel_span_enter(tracer, "collected", NULL));
            otel_lines *lines = otel_lines_end();
            otel_lines_mount(lines, parents, i / 200 % 4, NULL);
            otel_lines_free(lines);
            otel_span_end(parents[2]);
        }
        otel_span_end(inner);
        otel_span_end(outer);
    }
    return NULL;
}

/* With a queue that is too small, a sampler that says no to half, and a shutdown in the
 * middle: spans go every way there is. */
static void trace_and_watch(const char *sampler, bool simple)
{
    pthread_t threads[TRACERS];
    pthread_t watcher;
    stop = broken = 0;
    fakes[1].drop = 1;
    fakes[1].drop_reason = OTEL_DROP_UNCONFIRMED;
    start_sampled(2, simple, sampler);
    assert_int_equal(pthread_create(&watcher, NULL, watch, NULL), 0);
    for (unsigned i = 0; i < TRACERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, trace, NULL), 0);
    for (unsigned i = 0; i < TRACERS / 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)!otel_shutdown(FOREVER_MS);
    for (unsigned i = TRACERS / 2; i < TRACERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    oteli_store_relaxed_32(&stop, 1);
    assert_int_equal(pthread_join(watcher, NULL), 0);

    assert_int_equal(broken, 0);
    for (size_t i = 0; i < 2; i++) {
        const otel_stats stats = faked_stats(i);
        assert_true(is_closed(&stats));
        assert_int_equal(stats.open, 0);
        assert_int_equal(stats.queued, 0);
    }
    assert_int_equal(faked_stats(0).delivered, fakes[0].spans);
    assert_true(sampler == NULL || faked_stats(0).unsampled > 0);
}

TEST(the_sums_close_while_eight_threads_trace)
{
    for (unsigned i = 0; i < 3; i++) {
        trace_and_watch(i == 1 ? "traceidratio" : NULL, i == 2);
        faked_end(NULL);
        faked_begin(NULL);
    }
}

TEST(the_description_is_a_line_for_people)
{
    static const struct {
        otel_stats stats;
        const char *text;
    } rows[] = {
        {{.delivered = 9812, .dropped[OTEL_DROP_QUEUE_FULL] = 188},
         "delivered 9,812, dropped 188 (queue_full 188)"},
        {{.delivered = 1234567890}, "delivered 1,234,567,890, dropped 0"},
        {{.rejected = 999,
          .queued = 1000,
          .dropped = {[OTEL_DROP_UNCONFIRMED] = 1, [OTEL_DROP_NO_MEMORY] = 2}},
         "delivered 0, rejected 999, queued 1,000, dropped 3 (unconfirmed 1, no_memory 2)"},
        {{.queued = 1, .open = 2, .unsampled = 3},
         "delivered 0, queued 1, open 2, unsampled 3, dropped 0"},
        {{.delivered = 1, .spooled = 2048}, "delivered 1, spooled 2,048, dropped 0"},
        {{.delivered = 9812,
          .withheld = {[OTEL_WITHHELD_CANCELLED] = 1200, [OTEL_WITHHELD_NOT_KEPT] = 3}},
         "delivered 9,812, withheld 1,203 (cancelled 1,200, not_kept 3), dropped 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        otel_stats stats = rows[i].stats;
        stats.size = sizeof stats;
        assert_int_equal(otel_stats_describe(&stats, text, sizeof text), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
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
    for (int i = -1; i <= OTEL_DROP_REASON_COUNT; i++)
        assert_int_equal(strcmp(otel_drop_reason_string((otel_drop_reason)i), "unknown") == 0,
                         i < 0 || i == OTEL_DROP_REASON_COUNT);
    for (int i = -1; i <= OTEL_WITHHELD_REASON_COUNT; i++)
        assert_int_equal(strcmp(otel_withheld_reason_string((otel_withheld_reason)i), "unknown") ==
                             0,
                         i < 0 || i == OTEL_WITHHELD_REASON_COUNT);
}

/* ---- otel/metrics.h
 * ------------------------------------------------------------------------------- */

static void start(size_t exporters, bool simple, const char *sampler)
{
    assert_int_equal(faked_start(exporters, &(otel_sdk_options){.simple = simple,
                                                                .traces_sampler = sampler,
                                                                .bsp_max_queue_size = 10,
                                                                .bsp_max_export_batch_size = 5}),
                     OTEL_OK);
}

/* All numbers as lines: name{value,value …} kind number unit. The keys of attributes have one
 * order, which the first test knows; of components only the name is told. */
static const char *all(void)
{
    static char text[8000];
    size_t at = 0;
    otel_metric metric = {.size = sizeof metric};
    text[0] = '\0';
    for (size_t cursor = 0; otel_metric_next(&cursor, &metric);) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%s{", metric.name);
        const char *separator = "";
        for (size_t i = 0; i < metric.attribute_count; i++) {
            const otel_metric_attribute *attribute = &metric.attributes[i];
            if (strcmp(attribute->key, "otel.component.type") == 0)
                continue;
            at +=
                (size_t)snprintf(text + at, sizeof text - at, "%s%s", separator, attribute->value);
            separator = " ";
        }
        at += (size_t)snprintf(text + at, sizeof text - at, "} %llu\n",
                               (unsigned long long)metric.value);
    }
    assert_true(at < sizeof text);
    return text;
}

/* Whether the lines are among them; "otel.sdk." is not said. */
static void assert_has(const char *lines)
{
    const char *const numbers = all();
    while (*lines != '\0') {
        const int length = (int)strcspn(lines, "\n");
        char whole[300];
        snprintf(whole, sizeof whole, "otel.sdk.%.*s\n", length, lines);
        if (strstr(numbers, whole) == NULL)
            fail_msg("there is no %sin\n%s", whole, numbers);
        lines += length + (lines[length] == '\n');
    }
}

static otel_metric first_of(const char *name)
{
    otel_metric metric = {.size = sizeof metric};
    for (size_t cursor = 0; otel_metric_next(&cursor, &metric);)
        if (strcmp(metric.name, name) == 0)
            return metric;
    fail_msg("there is no %s", name);
    return metric;
}

static const char *attribute_of(const otel_metric *metric, const char *key)
{
    for (size_t i = 0; i < metric->attribute_count; i++)
        if (strcmp(metric->attributes[i].key, key) == 0)
            return metric->attributes[i].value;
    return "-";
}

static otel_context remote(uint8_t flags)
{
    const uint8_t trace_id[16] = {1};
    const uint8_t span_id[8] = {1};
    const otel_span_context parent = otel_span_context_make(trace_id, span_id, flags, true, NULL);
    return otel_context_with_span(otel_current_context(), otel_span_wrap(&parent));
}

/* Roots, local children and those of a remote parent that was sampled or not. */
static void trace_every_origin(void)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    const otel_context sampled = remote(OTEL_TRACE_FLAG_SAMPLED);
    const otel_context unsampled = remote(0);
    const otel_span root = otel_span_enter(tracer, "root", NULL);
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_end(otel_span_start(tracer, "child", NULL));
    otel_span_end(root);
    otel_span_end(otel_span_start(tracer, "root", NULL));
    otel_span_end(otel_span_start(tracer, "", OTEL_SPAN_OPTIONS(.parent = &sampled)));
    otel_span_end(otel_span_enter(tracer, "", OTEL_SPAN_OPTIONS(.parent = &sampled)));
    otel_span_end(otel_span_start(tracer, "", OTEL_SPAN_OPTIONS(.parent = &unsampled)));
    otel_span_end(otel_span_enter(tracer, "", OTEL_SPAN_OPTIONS(.parent = &unsampled)));
    otel_context_token token = otel_context_attach(unsampled);
    const otel_span dropped = otel_span_enter(tracer, "", NULL);
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_end(dropped);
    assert_true(otel_context_detach(token));
    token = otel_context_attach(sampled);
    otel_span_end(otel_span_enter(tracer, "", NULL));
    assert_true(otel_context_detach(token));
}

static void record_only(const void *state, const otel_sampling_query *query,
                        otel_sampling_result *result)
{
    (void)state;
    (void)query;
    otel_span_end(otel_span_enter(NULL, "from inside a call: its parent is not told", NULL));
    result->decision = OTEL_SAMPLING_RECORD_ONLY;
}

/* spec: O1 semconv/otel/sdk-metrics.md#metric-otelsdkspanstarted SHOULD development */
TEST(O1_spans_are_counted_by_parent_and_decision)
{
    const otel_sampler recording = OTEL_SAMPLER(.sample = record_only);
    const struct {
        otel_sdk_options options;
        const char *lines;
    } rows[] = {{{.traces_sampler = NULL},
                 "span.started{none RECORD_AND_SAMPLE} 2\n"
                 "span.started{local RECORD_AND_SAMPLE} 2\n"
                 "span.started{remote RECORD_AND_SAMPLE} 3\n"
                 "span.started{none DROP} 0\n"
                 "span.started{local DROP} 1\n"
                 "span.started{remote DROP} 3\n"},
                {{.traces_sampler = "always_off"},
                 "span.started{none DROP} 2\n"
                 "span.started{local DROP} 3\n"
                 "span.started{remote DROP} 6\n"
                 "span.started{none RECORD_AND_SAMPLE} 0\n"},
                {{.sampler = &recording},
                 "span.started{none RECORD_ONLY} 2\n"
                 "span.started{local RECORD_ONLY} 3\n"
                 "span.started{remote RECORD_ONLY} 6\n"
                 "span.started{} 11\n"
                 "span.started{none DROP} 0\n"
                 "span.started{local DROP} 0\n"
                 "span.started{remote DROP} 0\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        otel_sdk_options options = rows[i].options;
        assert_int_equal(faked_start(1, &options), OTEL_OK);
        trace_every_origin();
        assert_has(rows[i].lines);
        const otel_metric metric = first_of("otel.sdk.span.started");
        assert_int_equal(metric.kind, OTEL_METRIC_COUNTER);
        assert_string_equal(metric.unit, "{span}");
        assert_string_equal(attribute_of(&metric, "otel.span.parent.origin"), "none");
        assert_string_equal(attribute_of(&metric, "otel.span.sampling_result"),
                            "RECORD_AND_SAMPLE");
        faked_restart();
    }
}

/* spec: O1 semconv/otel/sdk-metrics.md#metric-otelsdkspanlive SHOULD development */
TEST(O1_a_span_lives_until_it_ends)
{
    start(1, false, NULL);
    const otel_span span = otel_span_start(otel_tracer_get("test", NULL), "a", NULL);
    assert_has("span.live{RECORD_AND_SAMPLE} 1");

    otel_span_end(span);

    assert_has("span.live{RECORD_AND_SAMPLE} 0");
    assert_int_equal(first_of("otel.sdk.span.live").kind, OTEL_METRIC_UP_DOWN_COUNTER);
}

/* spec: O2 semconv/otel/sdk-metrics.md#metric-otelsdkprocessorspanqueuesize SHOULD development */
TEST(O2_the_queue_has_a_size_and_a_capacity)
{
    start(2, false, NULL);
    trace_some(3);
    assert_has("processor.span.queue.size{batching_span_processor/0} 3\n"
               "processor.span.queue.capacity{batching_span_processor/0} 10\n"
               "processor.span.processed{batching_span_processor/0} 0\n");

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_has("processor.span.queue.size{batching_span_processor/0} 0\n"
               "processor.span.processed{batching_span_processor/0} 3\n");
    const otel_metric metric = first_of("otel.sdk.processor.span.queue.size");
    assert_string_equal(attribute_of(&metric, "otel.component.type"), "batching_span_processor");
}

/* spec: O2 semconv/otel/sdk-metrics.md#metric-otelsdkprocessorspanprocessed MUST development */
TEST(O2_what_does_not_reach_an_exporter_has_a_cause)
{
    start(1, true, NULL);
    const otel_span late = otel_span_start(otel_tracer_get("test", NULL), "late", NULL);
    otel_span_cancel(otel_span_start(otel_tracer_get("test", NULL), "cancelled", NULL));
    trace_some(2);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    otel_span_end(late);

    assert_has("processor.span.processed{simple_span_processor/0} 2\n"
               "processor.span.processed{already_shutdown simple_span_processor/0} 1\n");
    assert_non_null(strstr(all(), "otel_c.span.withheld{cancelled} 1\n"));
    assert_null(strstr(all(), "processed{cancelled")); /* by the program: not lost */
    assert_null(strstr(all(), "queue.size"));
}

/* What the exporter that hangs has is its loss. */
TEST(O2_what_waits_behind_an_export_that_hangs_is_lost_by_the_processor)
{
    fakes[0] = (struct fake_exporter){.name = "fake", .during = faked_hold};
    start(1, false, NULL);
    trace_some(1);
    (void)!otel_flush(0);
    faked_wait_until_held();
    trace_some(2);
    assert_int_equal(otel_shutdown(1), OTEL_ERROR_TIMEOUT);
    assert_has("processor.span.processed{shutdown_timeout batching_span_processor/0} 2\n");
    const struct oteli_engine *const left = oteli_current.engine;
    faked_let_go();
    while (oteli_load_acquire_32(&left->done) == 0)
        sched_yield();
}

static void look_inside(void *context, otel_export *call)
{
    (void)call;
    snprintf(context, 8000, "%s", all());
}

/* spec: O3 semconv/otel/sdk-metrics.md#metric-otelsdkexporterspaninflight SHOULD development */
TEST(O3_spans_are_in_flight_while_they_are_exported)
{
    static char inside[8000];
    fakes[0] = (struct fake_exporter){.name = "fake", .during = look_inside, .context = inside};
    start(1, false, NULL);
    trace_some(3);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_non_null(strstr(inside, "exporter.span.inflight{fake/0} 3\n"));
    assert_non_null(strstr(inside, "queue.size{batching_span_processor/0} 0\n"));
    assert_non_null(strstr(inside, "span.processed{batching_span_processor/0} 3\n"));
    assert_has("exporter.span.inflight{fake/0} 0\n"
               "exporter.span.exported{fake/0} 3\n");
}

/* spec: O3 semconv/otel/sdk-metrics.md#metric-otelsdkexporterspanexported MUST development */
TEST(O3_failed_exports_have_a_cause_and_successful_ones_none)
{
    fakes[0] = (struct fake_exporter){.name = "fake", .reject = 1};
    fakes[1] = (struct fake_exporter){
        .name = "other", .drop = 2, .drop_reason = OTEL_DROP_RETRY_EXHAUSTED};
    start(2, false, NULL);
    trace_some(5);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);

    assert_has("exporter.span.exported{fake/0} 4\n"
               "exporter.span.exported{rejected fake/0} 1\n"
               "exporter.span.exported{other/0} 3\n"
               "exporter.span.exported{retry_exhausted other/0} 2\n"
               "exporter.operation.duration{fake/0} 0\n"
               "exporter.operation.duration{rejected fake/0} 1\n"
               "exporter.operation.duration{retry_exhausted other/0} 1\n"
               "processor.span.processed{batching_span_processor/0} 5\n");
    assert_null(strstr(all(), "{retry_exhausted batching"));
}

/* spec: O3 semconv/otel/sdk-metrics.md#metric-otelsdkexporteroperationduration SHOULD
 * development */
TEST(O3_the_time_that_exports_took_is_in_seconds)
{
    fakes[0] = (struct fake_exporter){.name = "fake"};
    start(1, false, NULL);
    for (unsigned i = 0; i < 2; i++) {
        trace_some(1);
        assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);
    }
    const otel_metric metric = first_of("otel.sdk.exporter.operation.duration");

    assert_int_equal(metric.kind, OTEL_METRIC_HISTOGRAM);
    assert_string_equal(metric.unit, "s");
    assert_int_equal(metric.value, 2);
    assert_true(metric.sum > 0 && metric.sum < 600);
    assert_string_equal(attribute_of(&metric, "error.type"), "-");
}

/* spec: O4 semconv/otel/sdk-metrics.md#metric-otelsdkprocessorspanqueuesize MUST development */
TEST(O4_components_have_names_of_their_own_that_come_again)
{
    for (unsigned run = 0; run < 2; run++) {
        memset(fakes, 0, sizeof fakes);
        fakes[0].name = fakes[2].name = "fake";
        fakes[1].name = "other";
        start(3, false, NULL);
        assert_has("exporter.span.exported{fake/0} 0\n"
                   "exporter.span.exported{other/0} 0\n"
                   "exporter.span.exported{fake/1} 0\n");
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    }
    fakes[0].name = fakes[1].name =
        "an_exporter_100%sure_of_a_name_that_is_much_longer_than_what_there_is_"
        "room_for_in_a_metric"; /* it is cut */
    start(2, false, NULL);
    assert_non_null(strstr(all(), "{an_exporter_100%sure_of_a_name"));
    assert_non_null(strstr(all(), "/0}"));
    assert_non_null(strstr(all(), "/1}"));
}

/* spec: O5 self-observability.md#sdk-self-observability-metrics SHOULD development */
TEST(O5_they_need_no_metrics_sdk_and_stay_after_the_shutdown)
{
    otel_metric metric = {.size = sizeof metric};
    size_t cursor = 0;
    assert_false(otel_metric_next(&cursor, &metric)); /* nothing was started */
    start(1, false, NULL);
    trace_some(2);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_has("processor.span.processed{batching_span_processor/0} 2");
    assert_false(otel_metric_next(NULL, &metric));
    assert_false(otel_metric_next(&cursor, NULL));
    metric.size = 0;
    assert_false(otel_metric_next(&cursor, &metric));
}

TEST(a_caller_with_a_shorter_struct_gets_what_fits)
{
    start(1, false, NULL);
    otel_metric metric;
    memset(&metric, 0x77, sizeof metric);
    metric.size = offsetof(otel_metric, sum);
    size_t cursor = 0;

    assert_true(otel_metric_next(&cursor, &metric));

    assert_int_equal(metric.value, 0);
    assert_int_equal(metric.attribute_count, (size_t)0x7777777777777777);
}
