/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/processors/simple_processor.c - otel_simple_processor_new: a processor that exports each span
 * on the thread that ends it, one after the other. App threads, under the processor's lock.
 *
 * Source: OpenTelemetry specification, trace/sdk.md "Simple processor". */
#include "sdk/processors/simple_processor.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/wire.h"
#include "sdk/pipeline/batch.h"
#include "sdk/view/span_view.h"
#include "sdk/worker/deadline.h"

#include <inttypes.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { START_TIME = 7, TIMEOUT_MS = 30000 };

struct simple {
    pthread_mutex_t lock;
    otel_exporter exporter;  /* without export_batch: nothing is exported */
    otel_batch batch;        /* of one span, whose record is in its arena */
    uint64_t lost_meanwhile; /* for the log */
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

static uint64_t lost_of(const struct oteli_call *call)
{
    uint64_t lost = call->rejected;
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        lost += call->dropped[i];
    return lost;
}

/* Wait for an exporter that is pending; false: its time is over. */
static bool wait_for(const otel_exporter *exporter, struct oteli_call *call)
{
    for (;;) {
        const int left_ms = oteli_ms_until(call->view.deadline_ns);
        if (exporter->poll(exporter->state, &call->view, left_ms, left_ms == 0) == OTEL_EXPORT_DONE)
            return true;
        if (left_ms == 0)
            return false;
    }
}

static bool is_exported(struct simple *simple)
{
    const otel_exporter *exporter = &simple->exporter;
    const uint64_t timeout_ns = (uint64_t)TIMEOUT_MS * OTELI_NS_PER_MS;
    struct oteli_call call = {
        .view = {.batch = &simple->batch, .deadline_ns = oteli_monotonic_ns() + timeout_ns}};
    bool is_done = exporter->export_batch(exporter->state, &call.view) == OTEL_EXPORT_DONE;
    if (!is_done && exporter->poll != NULL)
        is_done = wait_for(exporter, &call);
    if (exporter->size >= offsetof(otel_exporter, attend) + sizeof exporter->attend &&
        exporter->attend != NULL)
        (void)exporter->attend(exporter->state);
    return is_done && lost_of(&call) == 0;
}

/* A loss is news when it begins and when it is over; then it has a number. */
static void tell(struct simple *simple, bool is_lost)
{
    const uint64_t meanwhile = simple->lost_meanwhile;
    simple->lost_meanwhile = is_lost ? meanwhile + 1 : 0;
    if (is_lost && meanwhile == 0)
        OTELI_LOG(OTEL_LOG_WARN, "%s: a simple processor loses spans", simple->exporter.name);
    if (!is_lost && meanwhile != 0)
        OTELI_LOG_LOST(OTEL_LOG_WARN, meanwhile,
                       "%s: delivering again, %" PRIu64 " span%s lost meanwhile",
                       simple->exporter.name, meanwhile, meanwhile == 1 ? " was" : "s were");
}

static void on_end(void *state, const otel_span_view *span)
{
    struct simple *simple = state;
    if ((span->flags & OTEL_TRACE_FLAG_SAMPLED) == 0)
        return;
    pthread_mutex_lock(&simple->lock);
    struct oteli_record *record = make_record(simple, span);
    bool is_lost = true;
    if (record != NULL && simple->exporter.export_batch != NULL) {
        simple->batch.resource = oteli_span_view_resource(span);
        oteli_batch_add(&simple->batch, record);
        is_lost = !is_exported(simple);
        oteli_batch_empty(&simple->batch);
        simple->batch.resource = NULL;
    }
    tell(simple, is_lost);
    pthread_mutex_unlock(&simple->lock);
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    struct simple *simple = state;
    const uint64_t deadline_ns = oteli_deadline_ns(timeout_ms);
    otel_status status = OTEL_OK;
    if (!oteli_deadline_lock(&simple->lock, deadline_ns))
        return OTEL_ERROR_TIMEOUT;
    if (simple->exporter.flush != NULL)
        status = simple->exporter.flush(
            simple->exporter.state, (int64_t)oteli_ms_between(oteli_monotonic_ns(), deadline_ns));
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
    free_exporter(&simple->exporter);
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
    simple->exporter = exporter;
    pthread_mutex_init(&simple->lock, NULL);
    *processor = OTEL_PROCESSOR(.name = "simple_span_processor", .state = simple, .on_end = on_end,
                                .flush = flush, .free = free_simple);
    return OTEL_OK;
}

static otel_export_result drop_as_forked(void *state, otel_export *call)
{
    (void)state;
    otel_export_drop(call, OTEL_DROP_FORKED_CHILD, otel_batch_size(call->batch));
    return OTEL_EXPORT_DONE;
}

void oteli_simple_processor_renew(otel_processor *processor)
{
    if (processor->on_end != on_end)
        return;
    const struct simple *parents = processor->state;
    const otel_exporter *exporter = &parents->exporter;
    otel_exporter made = {0};
    if (exporter->size < offsetof(otel_exporter, renew) + sizeof exporter->renew ||
        exporter->renew == NULL || exporter->renew(exporter->state, &made) != OTEL_OK)
        made = OTEL_EXPORTER(.name = exporter->name, .export_batch = drop_as_forked);
    if (otel_simple_processor_new(made, processor) != OTEL_OK)
        *processor = OTEL_PROCESSOR(.name = processor->name);
}

const otel_exporter *oteli_simple_processor_exporter(const otel_processor *processor)
{
    return processor->on_end == on_end ? &((const struct simple *)processor->state)->exporter
                                       : NULL;
}
