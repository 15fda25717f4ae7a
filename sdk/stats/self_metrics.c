/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/stats/self_metrics.c - see otel/metrics.h. Any thread; owns nothing.
 *
 * Every number that there can be has a place in one sequence, in which they are offered: those of
 * all spans, those of the processor, and those of each exporter. The cursor is a place; the first
 * number from there on that exists now is taken.
 *
 * Source: semantic conventions 1.44.0, model/otel/metrics.yaml. */
#include "sdk/engine/current_engine.h"
#include "sdk/stats/stats.h"

#include <otel/metrics.h>
#include <stdio.h>
#include <string.h>

struct walk {
    size_t from;  /* the cursor */
    size_t place; /* of the number that is offered next */
    bool is_taken;
    otel_metric taken;
};

static void offer(struct walk *walk, bool exists, const otel_metric *metric)
{
    const size_t place = walk->place++;
    if (walk->is_taken || !exists || place < walk->from)
        return;
    walk->is_taken = true;
    walk->taken = *metric;
    walk->from = walk->place;
}

static otel_metric counter(const char *name, uint64_t value)
{
    return (otel_metric){
        .name = name, .unit = "{span}", .kind = OTEL_METRIC_COUNTER, .value = value};
}

static otel_metric up_down_counter(const char *name, uint64_t value)
{
    return (otel_metric){
        .name = name, .unit = "{span}", .kind = OTEL_METRIC_UP_DOWN_COUNTER, .value = value};
}

static void add_attribute(otel_metric *metric, const char *key, const char *value)
{
    otel_metric_attribute *attribute = &metric->attributes[metric->attribute_count++];
    attribute->key = key;
    snprintf(attribute->value, sizeof attribute->value, "%s", value);
}

/* Names are types and numbers, from 0 in each SDK that is started. */
static void add_component(otel_metric *metric, const char *type, size_t number)
{
    char name[OTEL_METRIC_TEXT_SIZE];
    snprintf(name, sizeof name, "%.*s/%zu", (int)sizeof name - 24, type, number);
    add_attribute(metric, "otel.component.type", type);
    add_attribute(metric, "otel.component.name", name);
}

static const char *reason_string(unsigned reason)
{
    return otel_drop_reason_string((otel_drop_reason)reason);
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

static void offer_started(struct walk *walk, struct oteli_engine *engine)
{
    static const enum oteli_origin parents[] = {OTELI_ORIGIN_NONE, OTELI_ORIGIN_LOCAL,
                                                OTELI_ORIGIN_REMOTE};
    static const char *const parent_names[] = {"none", "local", "remote"};
    static const char *const results[] = {"RECORD_AND_SAMPLE", "DROP", "RECORD_ONLY"};
    struct oteli_origins origins;
    oteli_stats_origins(&origins, engine);
    for (unsigned result = 0; result < 3; result++)
        for (unsigned parent = 0; parent < 3; parent++) {
            const enum oteli_origin origin = parents[parent];
            const uint64_t record_only = origins.record_only[origin];
            const uint64_t dropped = at_least_zero(origins.unsampled[origin], record_only);
            const uint64_t counts[] = {origins.recorded[origin],
                                       at_least_told(&engine->told_dropped[origin], dropped),
                                       record_only};
            otel_metric metric = counter("otel.sdk.span.started", counts[result]);
            add_attribute(&metric, "otel.span.parent.origin", parent_names[parent]);
            add_attribute(&metric, "otel.span.sampling_result", results[result]);
            offer(walk, result < 2 || metric.value != 0, &metric);
        }
    const otel_metric unknown = counter("otel.sdk.span.started", origins.reentrant);
    offer(walk, unknown.value != 0, &unknown);
}

static void offer_spans(struct walk *walk, const otel_stats *stats)
{
    otel_metric live = up_down_counter("otel.sdk.span.live", stats->open);
    add_attribute(&live, "otel.span.sampling_result", "RECORD_AND_SAMPLE");
    offer(walk, true, &live);
    /* The semantic conventions have no name for these: they were more than started, and no
     * failure. */
    for (unsigned i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++) {
        otel_metric withheld = counter("otel_c.span.withheld", stats->withheld[i]);
        add_attribute(&withheld, "otel_c.withheld.reason",
                      otel_withheld_reason_string((otel_withheld_reason)i));
        offer(walk, withheld.value != 0, &withheld);
    }
}

/* Spans that the exporter has been given, and has not answered for. */
static uint64_t inflight_of(const struct oteli_pipeline *pipeline)
{
    uint64_t answered = oteli_load_acquire_64(&pipeline->delivered) +
                        oteli_load_acquire_64(&pipeline->rejected) +
                        oteli_load_acquire_64(&pipeline->spooled);
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        answered += oteli_load_acquire_64(&pipeline->exporter_dropped[i]);
    return at_least_zero(oteli_load_acquire_64(&pipeline->handed), answered);
}

/* Spans that were lost before an exporter had them. What a hanging one has is among the first
 * pipeline's losses, but not lost by the processor. */
static uint64_t not_processed(const struct oteli_engine *engine, const otel_stats *stats,
                              unsigned reason)
{
    const struct oteli_pipeline *first = &engine->pipelines[0];
    uint64_t by_exporter = oteli_load_acquire_64(&first->exporter_dropped[reason]);
    if (reason == OTEL_DROP_SHUTDOWN_TIMEOUT && oteli_load_acquire_32(&engine->hangs) != 0)
        by_exporter += inflight_of(first);
    return at_least_zero(stats->dropped[reason], by_exporter);
}

/* One queue serves all exporters; what it does is told by the first of them. */
static void offer_processor(struct walk *walk, const struct oteli_engine *engine,
                            const otel_stats *stats)
{
    const bool has_queue = !engine->sdk.synchronous;
    const char *type = has_queue ? "batching_span_processor" : "simple_span_processor";
    const struct oteli_pipeline *first = &engine->pipelines[0];
    otel_metric size = up_down_counter("otel.sdk.processor.span.queue.size",
                                       at_least_zero(stats->queued, inflight_of(first)));
    otel_metric capacity =
        up_down_counter("otel.sdk.processor.span.queue.capacity", engine->settings.queue_size);
    otel_metric processed =
        counter("otel.sdk.processor.span.processed", oteli_load_acquire_64(&first->handed));
    add_component(&size, type, 0);
    add_component(&capacity, type, 0);
    add_component(&processed, type, 0);
    offer(walk, has_queue, &size);
    offer(walk, has_queue, &capacity);
    offer(walk, true, &processed);
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++) {
        otel_metric lost =
            counter("otel.sdk.processor.span.processed", not_processed(engine, stats, i));
        add_attribute(&lost, "error.type", reason_string(i));
        add_component(&lost, type, 0);
        offer(walk, lost.value != 0, &lost);
    }
}

static const char *type_of(const struct oteli_pipeline *pipeline)
{
    return pipeline->exporter.name != NULL ? pipeline->exporter.name : "span_exporter";
}

/* With an error, or without; those that have one exist once they have happened. */
static void offer_of_exporter(struct walk *walk, otel_metric metric, const char *error,
                              const char *type, size_t number)
{
    if (error != NULL)
        add_attribute(&metric, "error.type", error);
    add_component(&metric, type, number);
    offer(walk, error == NULL || metric.value != 0, &metric);
}

static void offer_exporter(struct walk *walk, const struct oteli_engine *engine, size_t index)
{
    static const char exported[] = "otel.sdk.exporter.span.exported";
    const struct oteli_pipeline *pipeline = &engine->pipelines[index];
    const char *type = type_of(pipeline);
    size_t number = 0;
    for (size_t i = 0; i < index; i++)
        number += strcmp(type_of(&engine->pipelines[i]), type) == 0;
    offer_of_exporter(walk,
                      up_down_counter("otel.sdk.exporter.span.inflight", inflight_of(pipeline)),
                      NULL, type, number);
    offer_of_exporter(walk, counter(exported, oteli_load_acquire_64(&pipeline->delivered)), NULL,
                      type, number);
    offer_of_exporter(walk, counter(exported, oteli_load_acquire_64(&pipeline->rejected)),
                      "rejected", type, number);
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        offer_of_exporter(walk,
                          counter(exported, oteli_load_acquire_64(&pipeline->exporter_dropped[i])),
                          reason_string(i), type, number);
    for (unsigned i = 0; i < OTELI_EXPORT_OUTCOMES; i++) {
        const otel_metric duration = {
            .name = "otel.sdk.exporter.operation.duration",
            .unit = "s",
            .kind = OTEL_METRIC_HISTOGRAM,
            .value = oteli_load_acquire_64(&pipeline->export_count[i]),
            .sum = (double)oteli_load_acquire_64(&pipeline->export_ns[i]) / 1e9};
        const char *error = i == OTELI_EXPORT_SUCCEEDED  ? NULL
                            : i == OTELI_EXPORT_REJECTED ? "rejected"
                                                         : reason_string(i - OTELI_EXPORT_DROPPED);
        offer_of_exporter(walk, duration, error, type, number);
    }
}

bool otel_metric_next(size_t *cursor, otel_metric *metric)
{
    if (cursor == NULL || metric == NULL || metric->size < sizeof metric->size)
        return false;
    const size_t size = metric->size;
    struct walk walk = {.from = *cursor};
    oteli_current_lock();
    struct oteli_engine *engine = oteli_current.engine;
    if (engine != NULL)
        offer_started(&walk, engine);
    if (engine != NULL && engine->pipeline_count != 0) {
        otel_stats stats = {.size = sizeof stats};
        oteli_stats_fill(&stats, engine, 0);
        offer_spans(&walk, &stats);
        offer_processor(&walk, engine, &stats);
        for (size_t i = 0; i < engine->pipeline_count; i++)
            offer_exporter(&walk, engine, i);
    }
    oteli_current_unlock();
    if (!walk.is_taken)
        return false;
    *cursor = walk.from;
    walk.taken.size = size;
    memcpy(metric, &walk.taken, size < sizeof walk.taken ? size : sizeof walk.taken);
    return true;
}
