/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/processors.c - the contracts are in sdk/engine/processors.h. */
#include "sdk/engine/processors.h"
#include "api/record/set_roots.h"
#include "sdk/engine/deadline.h"
#include "sdk/engine/engine.h"
#include "sdk/view/span_view.h"

#include <stdlib.h>
#include <string.h>

otel_processor oteli_processors_known(const otel_sdk_options *options, size_t index)
{
    const otel_processor *list = options->processors;
    const size_t size = list->size != 0 ? list->size : sizeof *list;
    otel_processor known = {0};
    memcpy(&known, (const uint8_t *)list + index * size, size < sizeof known ? size : sizeof known);
    return known;
}

static bool furnish(struct oteli_processors *processors, size_t count,
                    const struct oteli_resource *resource)
{
    *processors = (struct oteli_processors){.resource = resource};
    processors->list = count != 0 ? calloc(count, sizeof *processors->list) : NULL;
    if (count != 0 && processors->list == NULL)
        return false;
    processors->has_lock = pthread_mutex_init(&processors->lock, NULL) == 0;
    return processors->has_lock;
}

bool oteli_processors_init(struct oteli_processors *processors, const otel_sdk_options *options,
                           const struct oteli_resource *resource)
{
    if (!furnish(processors, options->processor_count, resource)) {
        oteli_processors_discard(options);
        return false;
    }
    for (; processors->count < options->processor_count; processors->count++)
        processors->list[processors->count] = oteli_processors_known(options, processors->count);
    return true;
}

bool oteli_processors_renew(struct oteli_processors *processors,
                            const struct oteli_processors *parents,
                            const struct oteli_resource *resource)
{
    if (!furnish(processors, parents->count, resource))
        return false;
    for (; processors->count < parents->count; processors->count++)
        processors->list[processors->count] = parents->list[processors->count];
    return true;
}

void oteli_processors_start(const struct oteli_sdk *sdk, const otel_span *span,
                            const otel_context *parent)
{
    const struct oteli_processors *processors = &oteli_engine_of(sdk)->processors;
    for (size_t i = 0; i < processors->count; i++)
        if (processors->list[i].on_start != NULL)
            processors->list[i].on_start(processors->list[i].state, *span, parent);
}

void oteli_processors_ending(const struct oteli_sdk *sdk, const otel_span *span, uint64_t end_ns)
{
    const struct oteli_processors *processors = &oteli_engine_of(sdk)->processors;
    for (size_t i = 0; i < processors->count; i++)
        if (processors->list[i].on_ending != NULL)
            processors->list[i].on_ending(processors->list[i].state, *span, end_ns);
}

otel_slice otel_span_view_resource(const otel_span_view *span)
{
    const struct oteli_resource *resource = oteli_span_view_resource(span);
    return (otel_slice){resource->otlp, resource->otlp_length};
}

void oteli_processors_end(const struct oteli_sdk *sdk, struct oteli_record *record)
{
    const struct oteli_processors *processors = &oteli_engine_of(sdk)->processors;
    struct oteli_ended_view ended = {.resource = processors->resource};
    oteli_record_convert(record);
    oteli_span_view_of_record(&ended.view, record);
    for (size_t i = 0; i < processors->count; i++)
        if (processors->list[i].on_end != NULL)
            processors->list[i].on_end(processors->list[i].state, &ended.view);
}

/* --- flush and stop --- */

static otel_status flush_locked(struct oteli_processors *processors, uint64_t deadline_ns)
{
    otel_status status = OTEL_OK;
    for (size_t i = 0; i < processors->count; i++) {
        const otel_processor *one = &processors->list[i];
        const otel_status answer =
            one->flush != NULL
                ? one->flush(one->state,
                             (int64_t)oteli_ms_between(oteli_monotonic_ns(), deadline_ns))
                : OTEL_OK;
        if (status == OTEL_OK && answer != OTEL_OK)
            status = answer == OTEL_ERROR_TIMEOUT ? answer : OTEL_ERROR_EXPORT_FAILED;
    }
    return status;
}

otel_status oteli_processors_flush(struct oteli_processors *processors, uint64_t deadline_ns)
{
    if (processors->list == NULL)
        return OTEL_OK;
    if (!oteli_deadline_lock(&processors->lock, deadline_ns))
        return OTEL_ERROR_TIMEOUT;
    const otel_status status = flush_locked(processors, deadline_ns);
    pthread_mutex_unlock(&processors->lock);
    return status;
}

static void free_all(struct oteli_processors *processors)
{
    for (size_t i = 0; i < processors->count; i++)
        if (processors->list[i].free != NULL)
            processors->list[i].free(processors->list[i].state);
    processors->count = 0;
}

bool oteli_processors_stop(struct oteli_processors *processors, uint64_t deadline_ns,
                           otel_status *status)
{
    *status = OTEL_OK;
    if (processors->list == NULL)
        return true;
    if (!oteli_deadline_lock(&processors->lock, deadline_ns))
        return false;
    *status = flush_locked(processors, deadline_ns);
    free_all(processors);
    pthread_mutex_unlock(&processors->lock);
    return true;
}

void oteli_processors_fini(struct oteli_processors *processors)
{
    free_all(processors);
    free(processors->list);
    if (processors->has_lock)
        pthread_mutex_destroy(&processors->lock);
}

void oteli_processors_discard(const otel_sdk_options *options)
{
    for (size_t i = 0; i < options->processor_count; i++) {
        const otel_processor unused = oteli_processors_known(options, i);
        if (unused.free != NULL)
            unused.free(unused.state);
    }
}
