/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/simple_processor.c - otel_simple_processor_new: a processor that exports each span
 * on the thread that ends it, one after the other. App threads, under the processor's lock.
 *
 * Source: OpenTelemetry specification, trace/sdk.md "Simple processor". */
#include "sdk/worker/simple_processor.h"
#include "common/clock/clock.h"
#include "common/wire.h"
#include "sdk/engine/deadline.h"
#include "sdk/pipeline/batch.h"
#include "sdk/view/span_view.h"
#include "sdk/worker/export.h"
#include "sdk/worker/on_idle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { START_TIME = 7, TIMEOUT_MS = 30000 };

struct simple {
    pthread_mutex_t lock;
    struct oteli_pipeline pipeline;
    otel_batch batch; /* of one span, whose record is in its arena */
};

/* The record that batches are made of, with the bytes of a view. NULL: no memory. */
static struct oteli_record *make_record(struct simple *simple, const otel_span_view *span)
{
    const size_t size = (sizeof(struct oteli_record) + span->otlp.length + 7) & ~(size_t)7;
    struct oteli_record *record =
        (struct oteli_record *)(void *)oteli_arena_room(&simple->batch.arena, size);
    if (record == NULL)
        return NULL;
    uint8_t *const message = (uint8_t *)(record + 1);
    memcpy(message, span->otlp.data, span->otlp.length);
    /* A scope's view is the first member of its tracer. */
    *record = (struct oteli_record){.size = (uint32_t)size,
                                    .length = (uint32_t)span->otlp.length,
                                    .tracer = (const otel_tracer *)(const void *)span->scope};
    const uint8_t *at = message;
    struct oteli_field field;
    while (oteli_next_field(&at, message + record->length, &field))
        if (field.number == START_TIME)
            record->times_at = (uint32_t)(field.start - message);
    return record;
}

static void on_end(void *state, const otel_span_view *span)
{
    struct simple *simple = state;
    if ((span->flags & OTEL_TRACE_FLAG_SAMPLED) == 0)
        return;
    pthread_mutex_lock(&simple->lock);
    const struct oteli_pipeline *pipeline = &simple->pipeline;
    struct oteli_record *record = make_record(simple, span);
    if (record != NULL) {
        simple->batch.resource = oteli_span_view_resource(span);
        oteli_batch_add(&simple->batch, record);
        oteli_pipeline_export(&simple->pipeline, &simple->batch, oteli_deadline_ns(TIMEOUT_MS));
        if (pipeline->attends)
            (void)pipeline->exporter.attend(pipeline->exporter.state);
        oteli_batch_empty(&simple->batch);
        simple->batch.resource = NULL;
    } else {
        oteli_pipeline_drop(&simple->pipeline, OTEL_DROP_NO_MEMORY, 1);
    }
    pthread_mutex_unlock(&simple->lock);
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    struct simple *simple = state;
    const uint64_t deadline_ns = oteli_deadline_ns(timeout_ms);
    otel_status status = OTEL_OK;
    if (!oteli_deadline_lock(&simple->lock, deadline_ns))
        return OTEL_ERROR_TIMEOUT;
    const otel_exporter *exporter = &simple->pipeline.exporter;
    if (exporter->flush != NULL)
        status = exporter->flush(exporter->state, oteli_ms_until(deadline_ns));
    pthread_mutex_unlock(&simple->lock);
    return status;
}

static void free_exporter(const otel_exporter *exporter)
{
    if (exporter->free != NULL)
        exporter->free(exporter->state);
}

static void free_simple(void *state)
{
    struct simple *simple = state;
    free_exporter(&simple->pipeline.exporter);
    oteli_batch_fini(&simple->batch);
    pthread_mutex_destroy(&simple->lock);
    free(simple);
}

otel_status otel_simple_processor_new(otel_exporter exporter, otel_processor *processor)
{
    struct simple *simple = calloc(1, sizeof *simple);
    if (simple == NULL || exporter.export_batch == NULL ||
        !oteli_batch_init(&simple->batch, 1, NULL)) {
        const otel_status status =
            exporter.export_batch == NULL ? OTEL_ERROR_INVALID_ARGUMENT : OTEL_ERROR_NO_MEMORY;
        if (simple != NULL)
            oteli_batch_fini(&simple->batch);
        free(simple);
        free_exporter(&exporter);
        return status;
    }
    simple->pipeline.exporter = exporter;
    oteli_on_idle_init(&simple->pipeline);
    pthread_mutex_init(&simple->lock, NULL);
    *processor = OTEL_PROCESSOR(.name = "simple_span_processor", .state = simple, .on_end = on_end,
                                .flush = flush, .free = free_simple);
    return OTEL_OK;
}

void oteli_simple_processor_renew(otel_processor *processor)
{
    if (processor->on_end != on_end)
        return;
    const struct simple *parents = processor->state;
    if (otel_simple_processor_new(oteli_exporter_renew(&parents->pipeline.exporter), processor) !=
        OTEL_OK)
        *processor = OTEL_PROCESSOR(.name = processor->name);
}

const otel_exporter *oteli_simple_processor_exporter(const otel_processor *processor)
{
    return processor->on_end == on_end
               ? &((const struct simple *)processor->state)->pipeline.exporter
               : NULL;
}
