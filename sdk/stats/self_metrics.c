/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/stats/self_metrics.c - see otel/metrics.h. Any thread; owns nothing.
 *
 * Every number that there can be has a place in one sequence, which the cursor walks: those of
 * all spans, those of the processor, and those of each exporter. Places whose number does not
 * exist now are passed over.
 *
 * Source: semantic conventions 1.44.0, model/otel/metrics.yaml. */
#include "sdk/engine/current_engine.h"
#include "sdk/stats/stats.h"

#include <otel/metrics.h>
#include <stdio.h>
#include <string.h>

enum { ORIGINS = 3, RESULTS = 3, REASONS = OTEL_DROP_REASON_COUNT };
enum { WITHHELD = OTEL_WITHHELD_REASON_COUNT };

/* The places of spans and of the processor, and those of an exporter. */
enum {
    AT_STARTED = 0,
    AT_STARTED_UNKNOWN = AT_STARTED + ORIGINS * RESULTS,
    AT_LIVE,
    AT_WITHHELD,
    AT_QUEUE_SIZE = AT_WITHHELD + WITHHELD,
    AT_QUEUE_CAPACITY,
    AT_PROCESSED,
    AT_NOT_PROCESSED,
    AT_EXPORTERS = AT_NOT_PROCESSED + REASONS
};
enum {
    AT_INFLIGHT = 0,
    AT_EXPORTED,
    AT_REJECTED,
    AT_NOT_EXPORTED,
    AT_DURATION = AT_NOT_EXPORTED + REASONS,
    EXPORTER_PLACES = AT_DURATION + OTELI_EXPORT_OUTCOMES
};

static void add_attribute(otel_metric *metric, const char *key, const char *value)
{
    otel_metric_attribute *attribute = &metric->attributes[metric->attribute_count++];
    attribute->key = key;
    snprintf(attribute->value, sizeof attribute->value, "%s", value);
}

static void add_error(otel_metric *metric, const char *type)
{
    add_attribute(metric, "error.type", type);
}

/* Names are types and numbers, from 0 in each SDK that is started. */
static void add_component(otel_metric *metric, const char *type, size_t number)
{
    char name[OTEL_METRIC_TEXT_SIZE];
    snprintf(name, sizeof name, "%.*s/%zu", (int)sizeof name - 24, type, number);
    add_attribute(metric, "otel.component.type", type);
    add_attribute(metric, "otel.component.name", name);
}

static void begin(otel_metric *metric, const char *name, otel_metric_kind kind, uint64_t value)
{
    metric->name = name;
    metric->unit = "{span}";
    metric->kind = kind;
    metric->value = value;
}

static uint64_t at_least_zero(uint64_t all, uint64_t part)
{
    return all > part ? all - part : 0;
}

/* Threads count a span that is recorded only a moment after they have counted it as unsampled, so
 * there can seem to be one less that is neither. No counter says less than it has said. */
static uint64_t at_least_told(uint64_t *told, uint64_t value)
{
    if (value > *told)
        *told = value;
    return *told;
}

static bool describe_started(otel_metric *metric, struct oteli_engine *engine, size_t place)
{
    static const struct {
        const char *name;
        enum oteli_origin origin;
    } parents[ORIGINS] = {{"none", OTELI_ORIGIN_NONE},
                          {"local", OTELI_ORIGIN_LOCAL},
                          {"remote", OTELI_ORIGIN_REMOTE}};
    static const char *const results[RESULTS] = {"RECORD_AND_SAMPLE", "DROP", "RECORD_ONLY"};
    struct oteli_origins origins;
    oteli_stats_origins(&origins, engine);
    if (place >= AT_STARTED_UNKNOWN) {
        begin(metric, "otel.sdk.span.started", OTEL_METRIC_COUNTER, origins.reentrant);
        return origins.reentrant != 0;
    }
    const size_t parent = place % ORIGINS;
    const size_t result = place / ORIGINS;
    const enum oteli_origin origin = parents[parent].origin;
    const uint64_t record_only = origins.record_only[origin];
    const uint64_t dropped = at_least_zero(origins.unsampled[origin], record_only);
    const uint64_t counts[RESULTS] = {origins.recorded[origin],
                                      at_least_told(&engine->told_dropped[origin], dropped),
                                      record_only};
    begin(metric, "otel.sdk.span.started", OTEL_METRIC_COUNTER, counts[result]);
    add_attribute(metric, "otel.span.parent.origin", parents[parent].name);
    add_attribute(metric, "otel.span.sampling_result", results[result]);
    return counts[result] != 0 || result < 2;
}

/* Spans that the exporter has been given, and has not answered for. */
static uint64_t inflight_of(const struct oteli_pipeline *pipeline)
{
    uint64_t answered = oteli_load_acquire_64(&pipeline->delivered) +
                        oteli_load_acquire_64(&pipeline->rejected) +
                        oteli_load_acquire_64(&pipeline->spooled);
    for (unsigned i = 0; i < REASONS; i++)
        answered += oteli_load_acquire_64(&pipeline->exporter_dropped[i]);
    return at_least_zero(oteli_load_acquire_64(&pipeline->handed), answered);
}

/* Spans that were lost before an exporter had them. What a hanging one has is among the first
 * pipeline's losses, but not lost by the processor. */
static bool describe_not_processed(otel_metric *metric, const struct oteli_engine *engine,
                                   const otel_stats *stats, unsigned reason)
{
    const struct oteli_pipeline *first = &engine->pipelines[0];
    uint64_t by_exporter = oteli_load_acquire_64(&first->exporter_dropped[reason]);
    if (reason == OTEL_DROP_SHUTDOWN_TIMEOUT && oteli_load_acquire_32(&engine->hangs) != 0)
        by_exporter += inflight_of(first);
    begin(metric, "otel.sdk.processor.span.processed", OTEL_METRIC_COUNTER,
          at_least_zero(stats->dropped[reason], by_exporter));
    add_error(metric, otel_drop_reason_string((otel_drop_reason)reason));
    return metric->value != 0;
}

/* One queue serves all exporters; what it does is told by the first of them. */
static bool describe_processor(otel_metric *metric, const struct oteli_engine *engine,
                               const otel_stats *stats, size_t place)
{
    const bool has_queue = !engine->sdk.synchronous;
    const struct oteli_pipeline *first = &engine->pipelines[0];
    const uint64_t inflight = inflight_of(first);
    bool is_there = has_queue;
    if (place == AT_QUEUE_SIZE) {
        begin(metric, "otel.sdk.processor.span.queue.size", OTEL_METRIC_UP_DOWN_COUNTER,
              at_least_zero(stats->queued, inflight));
    } else if (place == AT_QUEUE_CAPACITY) {
        begin(metric, "otel.sdk.processor.span.queue.capacity", OTEL_METRIC_UP_DOWN_COUNTER,
              engine->settings.queue_size);
    } else if (place == AT_PROCESSED) {
        begin(metric, "otel.sdk.processor.span.processed", OTEL_METRIC_COUNTER,
              oteli_load_acquire_64(&first->handed));
        is_there = true;
    } else {
        is_there =
            describe_not_processed(metric, engine, stats, (unsigned)(place - AT_NOT_PROCESSED));
    }
    add_component(metric, has_queue ? "batching_span_processor" : "simple_span_processor", 0);
    return is_there;
}

static bool describe_live(otel_metric *metric, const otel_stats *stats)
{
    begin(metric, "otel.sdk.span.live", OTEL_METRIC_UP_DOWN_COUNTER, stats->open);
    add_attribute(metric, "otel.span.sampling_result", "RECORD_AND_SAMPLE");
    return true;
}

/* The semantic conventions have no name for these: they are not started only, and no failure. */
static bool describe_withheld(otel_metric *metric, const otel_stats *stats, unsigned reason)
{
    begin(metric, "otel_c.span.withheld", OTEL_METRIC_COUNTER, stats->withheld[reason]);
    add_attribute(metric, "otel_c.withheld.reason",
                  otel_withheld_reason_string((otel_withheld_reason)reason));
    return metric->value != 0;
}

static bool describe_duration(otel_metric *metric, const struct oteli_pipeline *pipeline,
                              unsigned outcome)
{
    begin(metric, "otel.sdk.exporter.operation.duration", OTEL_METRIC_HISTOGRAM,
          oteli_load_acquire_64(&pipeline->export_count[outcome]));
    metric->unit = "s";
    metric->sum = (double)oteli_load_acquire_64(&pipeline->export_ns[outcome]) / 1e9;
    if (outcome == OTELI_EXPORT_REJECTED)
        add_error(metric, "rejected");
    else if (outcome >= OTELI_EXPORT_DROPPED)
        add_error(metric,
                  otel_drop_reason_string((otel_drop_reason)(outcome - OTELI_EXPORT_DROPPED)));
    return outcome == OTELI_EXPORT_SUCCEEDED || metric->value != 0;
}

static bool describe_outcome(otel_metric *metric, const struct oteli_pipeline *pipeline,
                             unsigned place)
{
    const unsigned reason = place - AT_NOT_EXPORTED;
    const uint64_t *counter = place == AT_EXPORTED   ? &pipeline->delivered
                              : place == AT_REJECTED ? &pipeline->rejected
                                                     : &pipeline->exporter_dropped[reason];
    begin(metric, "otel.sdk.exporter.span.exported", OTEL_METRIC_COUNTER,
          oteli_load_acquire_64(counter));
    if (place == AT_REJECTED)
        add_error(metric, "rejected");
    else if (place != AT_EXPORTED)
        add_error(metric, otel_drop_reason_string((otel_drop_reason)reason));
    return place == AT_EXPORTED || metric->value != 0;
}

static bool describe_exporter(otel_metric *metric, const struct oteli_engine *engine, size_t index,
                              unsigned place)
{
    const struct oteli_pipeline *pipeline = &engine->pipelines[index];
    const char *type = pipeline->exporter.name != NULL ? pipeline->exporter.name : "span_exporter";
    size_t number = 0;
    for (size_t i = 0; i < index; i++) {
        const char *other = engine->pipelines[i].exporter.name;
        number += strcmp(other != NULL ? other : "span_exporter", type) == 0;
    }
    bool is_there = true;
    if (place == AT_INFLIGHT)
        begin(metric, "otel.sdk.exporter.span.inflight", OTEL_METRIC_UP_DOWN_COUNTER,
              inflight_of(pipeline));
    else if (place < AT_DURATION)
        is_there = describe_outcome(metric, pipeline, place);
    else
        is_there = describe_duration(metric, pipeline, place - AT_DURATION);
    add_component(metric, type, number);
    return is_there;
}

static bool describe(otel_metric *metric, struct oteli_engine *engine, size_t place)
{
    otel_stats stats = {.size = sizeof stats};
    if (place < AT_LIVE)
        return describe_started(metric, engine, place - AT_STARTED);
    if (engine->pipeline_count == 0)
        return false;
    if (place < AT_EXPORTERS)
        oteli_stats_fill(&stats, engine, 0);
    if (place == AT_LIVE)
        return describe_live(metric, &stats);
    if (place < AT_QUEUE_SIZE)
        return describe_withheld(metric, &stats, (unsigned)(place - AT_WITHHELD));
    if (place < AT_EXPORTERS)
        return describe_processor(metric, engine, &stats, place);
    const size_t behind = place - AT_EXPORTERS;
    return describe_exporter(metric, engine, behind / EXPORTER_PLACES,
                             (unsigned)(behind % EXPORTER_PLACES));
}

bool otel_metric_next(size_t *cursor, otel_metric *metric)
{
    if (cursor == NULL || metric == NULL || metric->size < sizeof metric->size)
        return false;
    const size_t size = metric->size;
    bool is_there = false;
    otel_metric made;
    oteli_current_lock();
    struct oteli_engine *engine = oteli_current.engine;
    const size_t places =
        engine != NULL ? AT_EXPORTERS + engine->pipeline_count * EXPORTER_PLACES : 0;
    while (!is_there && *cursor < places) {
        made = (otel_metric){.size = size};
        is_there = describe(&made, engine, (*cursor)++);
    }
    oteli_current_unlock();
    if (is_there)
        memcpy(metric, &made, size < sizeof made ? size : sizeof made);
    return is_there;
}
