/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/metrics_test.c - specification of otel/metrics.h. */
#include "sdk/engine.h"

#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <stdio.h>
#include <string.h>

enum { FOREVER_MS = INT32_MAX };

static struct fake_exporter fakes[3];

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

static void start(size_t exporter_count, bool simple, const char *sampler)
{
    const otel_exporter exporters[] = {fake_exporter(&fakes[0]), fake_exporter(&fakes[1]),
                                       fake_exporter(&fakes[2])};
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = exporters, .exporter_count = exporter_count,
                                         .simple = simple, .traces_sampler = sampler,
                                         .bsp_max_queue_size = 10, .bsp_max_export_batch_size = 5,
                                         .log_level = "none", .bsp_schedule_delay = FOREVER_MS)),
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

static bool has(const char *line)
{
    char whole[300];
    snprintf(whole, sizeof whole, "otel.sdk.%s\n", line);
    return strstr(all(), whole) != NULL;
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

static void trace(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        otel_span_end(otel_span_enter(otel_tracer_get("test", NULL), "a", NULL));
}

static otel_context remote(uint8_t flags)
{
    const uint8_t trace_id[16] = {1};
    const uint8_t span_id[8] = {1};
    const otel_span_context parent = otel_span_context_make(trace_id, span_id, flags, true, NULL);
    return otel_context_with_span(otel_current_context(), otel_span_wrap(&parent));
}

AROUND_EACH(begin, end);

/* spec: O1 semconv/otel/sdk-metrics.md#metric-otelsdkspanstarted SHOULD development */
TEST(O1_spans_are_counted_by_parent_and_decision)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    start(1, false, NULL);
    const otel_context sampled = remote(OTEL_TRACE_FLAG_SAMPLED);
    const otel_context unsampled = remote(0);

    const otel_span root = otel_span_enter(tracer, "root", NULL);
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_end(otel_span_start(tracer, "child", NULL));
    otel_span_end(root);
    otel_span_end(otel_span_start(tracer, "root", NULL));
    otel_span_end(otel_span_start(tracer, "", OTEL_SPAN_OPTIONS(.parent = &sampled)));
    const otel_context_token token = otel_context_attach(unsampled);
    const otel_span dropped = otel_span_enter(tracer, "", NULL);
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_end(dropped);
    assert_true(otel_context_detach(token));
    const otel_context_token other = otel_context_attach(sampled);
    otel_span_end(otel_span_enter(tracer, "", NULL));
    assert_true(otel_context_detach(other));

    assert_true(has("span.started{none RECORD_AND_SAMPLE} 2"));
    assert_true(has("span.started{local RECORD_AND_SAMPLE} 2"));
    assert_true(has("span.started{remote RECORD_AND_SAMPLE} 2"));
    assert_true(has("span.started{none DROP} 0"));
    assert_true(has("span.started{local DROP} 1"));
    assert_true(has("span.started{remote DROP} 1"));
    const otel_metric metric = first_of("otel.sdk.span.started");
    assert_int_equal(metric.kind, OTEL_METRIC_COUNTER);
    assert_string_equal(metric.unit, "{span}");
    assert_string_equal(attribute_of(&metric, "otel.span.parent.origin"), "none");
    assert_string_equal(attribute_of(&metric, "otel.span.sampling_result"), "RECORD_AND_SAMPLE");
}

/* spec: O1 semconv/otel/sdk-metrics.md#metric-otelsdkspanstarted SHOULD development */
TEST(O1_roots_that_are_dropped_are_roots)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    start(1, false, "always_off");

    const otel_span root = otel_span_enter(tracer, "root", NULL);
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_end(root);
    otel_span_end(otel_span_start(tracer, "root", NULL));

    assert_true(has("span.started{none DROP} 2"));
    assert_true(has("span.started{local DROP} 1"));
    assert_true(has("span.started{none RECORD_AND_SAMPLE} 0"));
}

static void record_only(const void *state, const otel_sampling_query *query,
                        otel_sampling_result *result)
{
    (void)state;
    (void)query;
    result->decision = OTEL_SAMPLING_RECORD_ONLY;
}

/* spec: O1 semconv/otel/sdk-metrics.md#metric-otelsdkspanstarted SHOULD development */
TEST(O1_spans_that_are_recorded_only_are_told_apart)
{
    otel_tracer *tracer = otel_tracer_get("test", NULL);
    const otel_exporter exporter = fake_exporter(&fakes[0]);
    const otel_sampler sampler = OTEL_SAMPLER(.sample = record_only);
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                         .sampler = &sampler, .bsp_schedule_delay = FOREVER_MS)),
        OTEL_OK);
    const otel_context far = remote(OTEL_TRACE_FLAG_SAMPLED);

    const otel_span root = otel_span_enter(tracer, "root", NULL);
    otel_span_end(otel_span_start(tracer, "child", NULL));
    otel_span_end(otel_span_enter(tracer, "child", NULL));
    otel_span_end(root);
    otel_span_end(otel_span_start(tracer, "", OTEL_SPAN_OPTIONS(.parent = &far)));

    assert_true(has("span.started{none RECORD_ONLY} 1"));
    assert_true(has("span.started{local RECORD_ONLY} 2"));
    assert_true(has("span.started{remote RECORD_ONLY} 1"));
    assert_true(has("span.started{none DROP} 0"));
    assert_true(has("span.started{local DROP} 0"));
    assert_true(has("span.started{remote DROP} 0"));
}

/* spec: O1 semconv/otel/sdk-metrics.md#metric-otelsdkspanlive SHOULD development */
TEST(O1_a_span_lives_until_it_ends)
{
    start(1, false, NULL);
    const otel_span span = otel_span_start(otel_tracer_get("test", NULL), "a", NULL);
    assert_true(has("span.live{RECORD_AND_SAMPLE} 1"));

    otel_span_end(span);

    assert_true(has("span.live{RECORD_AND_SAMPLE} 0"));
    assert_int_equal(first_of("otel.sdk.span.live").kind, OTEL_METRIC_UP_DOWN_COUNTER);
}

/* spec: O2 semconv/otel/sdk-metrics.md#metric-otelsdkprocessorspanqueuesize SHOULD development */
TEST(O2_the_queue_has_a_size_and_a_capacity)
{
    start(2, false, NULL);
    trace(3);
    assert_true(has("processor.span.queue.size{batching_span_processor/0} 3"));
    assert_true(has("processor.span.queue.capacity{batching_span_processor/0} 10"));
    assert_true(has("processor.span.processed{batching_span_processor/0} 0"));

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_true(has("processor.span.queue.size{batching_span_processor/0} 0"));
    assert_true(has("processor.span.processed{batching_span_processor/0} 3"));
    const otel_metric metric = first_of("otel.sdk.processor.span.queue.size");
    assert_string_equal(attribute_of(&metric, "otel.component.type"), "batching_span_processor");
}

/* spec: O2 semconv/otel/sdk-metrics.md#metric-otelsdkprocessorspanprocessed MUST development */
TEST(O2_what_does_not_reach_an_exporter_has_a_cause)
{
    start(1, true, NULL);
    const otel_span late = otel_span_start(otel_tracer_get("test", NULL), "late", NULL);
    otel_span_cancel(otel_span_start(otel_tracer_get("test", NULL), "cancelled", NULL));
    trace(2);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    otel_span_end(late);

    assert_true(has("processor.span.processed{simple_span_processor/0} 2"));
    assert_true(has("processor.span.processed{already_shutdown simple_span_processor/0} 1"));
    assert_non_null(strstr(all(), "otel_c.span.withheld{cancelled} 1\n"));
    assert_null(strstr(all(), "processed{cancelled")); /* by the program: not lost */
    assert_null(strstr(all(), "queue.size"));
}

struct look {
    bool saw_inflight;
    bool saw_queue;
    bool saw_processed;
};

static void look_inside(void *context, otel_export *call)
{
    struct look *look = context;
    (void)call;
    look->saw_inflight = has("exporter.span.inflight{fake/0} 3");
    look->saw_queue = has("processor.span.queue.size{batching_span_processor/0} 0");
    look->saw_processed = has("processor.span.processed{batching_span_processor/0} 3");
}

/* spec: O3 semconv/otel/sdk-metrics.md#metric-otelsdkexporterspaninflight SHOULD development */
TEST(O3_spans_are_in_flight_while_they_are_exported)
{
    struct look look = {0};
    fakes[0] = (struct fake_exporter){.name = "fake", .during = look_inside, .context = &look};
    start(1, false, NULL);
    trace(3);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_OK);

    assert_true(look.saw_inflight);
    assert_true(look.saw_queue);
    assert_true(look.saw_processed);
    assert_true(has("exporter.span.inflight{fake/0} 0"));
    assert_true(has("exporter.span.exported{fake/0} 3"));
}

/* spec: O3 semconv/otel/sdk-metrics.md#metric-otelsdkexporterspanexported MUST development */
TEST(O3_failed_exports_have_a_cause_and_successful_ones_none)
{
    fakes[0] = (struct fake_exporter){.name = "fake", .reject = 1};
    fakes[1] = (struct fake_exporter){
        .name = "other", .drop = 2, .drop_reason = OTEL_DROP_RETRY_EXHAUSTED};
    start(2, false, NULL);
    trace(5);

    assert_int_equal(otel_flush(FOREVER_MS), OTEL_ERROR_EXPORT_FAILED);

    assert_true(has("exporter.span.exported{fake/0} 4"));
    assert_true(has("exporter.span.exported{rejected fake/0} 1"));
    assert_true(has("exporter.span.exported{other/0} 3"));
    assert_true(has("exporter.span.exported{retry_exhausted other/0} 2"));
    assert_true(has("exporter.operation.duration{fake/0} 0"));
    assert_true(has("exporter.operation.duration{rejected fake/0} 1"));
    assert_true(has("exporter.operation.duration{retry_exhausted other/0} 1"));
    assert_true(has("processor.span.processed{batching_span_processor/0} 5"));
    assert_null(strstr(all(), "{retry_exhausted batching"));
}

/* spec: O3 semconv/otel/sdk-metrics.md#metric-otelsdkexporteroperationduration SHOULD development */
TEST(O3_the_time_that_exports_took_is_in_seconds)
{
    fakes[0] = (struct fake_exporter){.name = "fake"};
    start(1, false, NULL);
    for (unsigned i = 0; i < 2; i++) {
        trace(1);
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
        assert_true(has("exporter.span.exported{fake/0} 0"));
        assert_true(has("exporter.span.exported{other/0} 0"));
        assert_true(has("exporter.span.exported{fake/1} 0"));
        assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);
    }
}

TEST(a_long_name_is_cut_and_keeps_its_number)
{
    fakes[0].name = fakes[1].name =
        "an_exporter_with_a_name_that_is_much_longer_than_what_there_is_room_for_in_a_metric";
    start(2, false, NULL);

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
    trace(2);
    assert_int_equal(otel_shutdown(FOREVER_MS), OTEL_OK);

    assert_true(has("processor.span.processed{batching_span_processor/0} 2"));
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
