/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/processors.c - the contracts are in sdk/processors.h. */
#include "sdk/processors.h"
#include "common/clock.h"
#include "sdk/batch.h"
#include "sdk/simple_processor.h"
#include "sdk/view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NS_PER_MS = 1000000 };
#define NS_PER_S UINT64_C(1000000000)

otel_processor oteli_processors_known(const struct oteli_engine_options *options, size_t index)
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

bool oteli_processors_init(struct oteli_processors *processors,
                           const struct oteli_engine_options *options,
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
    for (; processors->count < parents->count; processors->count++) {
        processors->list[processors->count] = parents->list[processors->count];
        oteli_simple_processor_renew(&processors->list[processors->count]);
    }
    return true;
}

void oteli_processors_start(const struct oteli_processors *processors, const otel_span *span,
                            const otel_context *parent)
{
    for (size_t i = 0; i < processors->count; i++)
        if (processors->list[i].on_start != NULL)
            processors->list[i].on_start(processors->list[i].state, *span, parent);
}

void oteli_processors_ending(const struct oteli_processors *processors, const otel_span *span,
                             uint64_t end_ns)
{
    for (size_t i = 0; i < processors->count; i++)
        if (processors->list[i].on_ending != NULL)
            processors->list[i].on_ending(processors->list[i].state, *span, end_ns);
}

/* A view that knows its resource. */
struct ended {
    otel_span_view view; /* first: it is what processors are given a pointer to */
    const struct oteli_resource *resource;
};

const struct oteli_resource *oteli_span_view_resource(const otel_span_view *span)
{
    return ((const struct ended *)(const void *)span)->resource;
}

otel_slice otel_span_view_resource(const otel_span_view *span)
{
    const struct oteli_resource *resource = oteli_span_view_resource(span);
    return (otel_slice){resource->otlp, resource->otlp_length};
}

void oteli_processors_end(const struct oteli_processors *processors, struct oteli_record *record)
{
    struct ended ended = {.resource = processors->resource};
    oteli_record_convert(record);
    const otel_slice otlp = {(const char *)oteli_record_message(record), record->length};
    oteli_span_view_fill(&ended.view, otlp, oteli_record_scope(record));
    for (size_t i = 0; i < processors->count; i++)
        if (processors->list[i].on_end != NULL)
            processors->list[i].on_end(processors->list[i].state, &ended.view);
}

/* --- flush and stop --- */

static int64_t milliseconds_until(uint64_t deadline_ns)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    const uint64_t ms = left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0);
    return ms > INT64_MAX ? INT64_MAX : (int64_t)ms;
}

/* In wall time, the only one that every libc offers for it. */
static bool lock_until(pthread_mutex_t *lock, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_mutex_lock(lock) == 0;
    const uint64_t now_ns = oteli_monotonic_ns();
    const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t ns = (uint64_t)until.tv_nsec + left_ns % NS_PER_S;
    until.tv_sec += (time_t)(left_ns / NS_PER_S + ns / NS_PER_S);
    until.tv_nsec = (long)(ns % NS_PER_S);
    return pthread_mutex_timedlock(lock, &until) == 0;
}

static otel_status flush_locked(struct oteli_processors *processors, uint64_t deadline_ns)
{
    otel_status status = OTEL_OK;
    for (size_t i = 0; i < processors->count; i++) {
        const otel_processor *one = &processors->list[i];
        const otel_status answer =
            one->flush != NULL ? one->flush(one->state, milliseconds_until(deadline_ns)) : OTEL_OK;
        if (status == OTEL_OK && answer != OTEL_OK)
            status = answer == OTEL_ERROR_TIMEOUT ? answer : OTEL_ERROR_EXPORT_FAILED;
    }
    return status;
}

otel_status oteli_processors_flush(struct oteli_processors *processors, uint64_t deadline_ns)
{
    if (processors->list == NULL)
        return OTEL_OK;
    if (!lock_until(&processors->lock, deadline_ns))
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
    if (!lock_until(&processors->lock, deadline_ns))
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
    processors->list = NULL;
    if (processors->has_lock)
        pthread_mutex_destroy(&processors->lock);
    processors->has_lock = false;
}

void oteli_processors_discard(const struct oteli_engine_options *options)
{
    for (size_t i = 0; i < options->processor_count; i++) {
        const otel_processor unused = oteli_processors_known(options, i);
        if (unused.free != NULL)
            unused.free(unused.state);
    }
}
