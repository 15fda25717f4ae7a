/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/memory/memory.c - keep exported spans in memory. Any thread, under a mutex.
 *
 * Each span is copied as its OTLP bytes; a view of it is made when it is asked for, by
 * the same function that makes views of batches. */
#include <otel/memory.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* One kept span. The view points into `otlp`, which never moves. */
struct kept {
    otel_span_view view;
    char otlp[];
};

struct otel_memory {
    pthread_mutex_t mutex;
    struct kept **spans;
    size_t count;
    size_t capacity;
    char *resource;
    size_t resource_length;
};

/* The same place in the copy as `inside` has in the original. */
static const char *moved(const char *inside, otel_slice original, const char *copy)
{
    return inside == NULL ? NULL : copy + (inside - original.data);
}

static const uint8_t *moved_bytes(const uint8_t *inside, otel_slice original, const char *copy)
{
    return (const uint8_t *)moved((const char *)inside, original, copy);
}

static struct kept *keep(const otel_span_view *span)
{
    struct kept *kept = malloc(sizeof *kept + span->otlp.length);
    if (kept == NULL)
        return NULL;
    const otel_slice from = span->otlp;
    memcpy(kept->otlp, from.data, from.length);
    otel_span_view *view = &kept->view;
    *view = *span;
    view->otlp.data = kept->otlp;
    view->trace_id = moved_bytes(span->trace_id, from, kept->otlp);
    view->span_id = moved_bytes(span->span_id, from, kept->otlp);
    view->parent_span_id = moved_bytes(span->parent_span_id, from, kept->otlp);
    otel_slice *const slices[] = {&view->tracestate, &view->name,   &view->status_message,
                                  &view->attributes, &view->events, &view->links};
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++)
        if (slices[i]->length != 0)
            slices[i]->data = moved(slices[i]->data, from, kept->otlp);
    return kept;
}

static bool add(otel_memory *memory, const otel_span_view *span)
{
    if (memory->count == memory->capacity) {
        const size_t capacity = memory->capacity == 0 ? 64 : memory->capacity * 2;
        struct kept **more = realloc(memory->spans, capacity * sizeof *more);
        if (more == NULL)
            return false;
        memory->spans = more;
        memory->capacity = capacity;
    }
    struct kept *kept = keep(span);
    if (kept == NULL)
        return false;
    memory->spans[memory->count++] = kept;
    return true;
}

static void keep_resource(otel_memory *memory, otel_slice resource)
{
    char *copy = malloc(resource.length + 1);
    if (copy == NULL)
        return;
    memcpy(copy, resource.data, resource.length);
    free(memory->resource);
    memory->resource = copy;
    memory->resource_length = resource.length;
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    otel_memory *memory = state;
    otel_span_view span;
    size_t lost = 0;
    pthread_mutex_lock(&memory->mutex);
    keep_resource(memory, otel_batch_resource(call->batch));
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_batch_span(call->batch, i, &span);
        lost += !add(memory, &span);
    }
    pthread_mutex_unlock(&memory->mutex);
    if (lost != 0)
        otel_export_drop(call, OTEL_DROP_NO_MEMORY, lost);
    return OTEL_EXPORT_DONE;
}

otel_memory *otel_memory_new(void)
{
    otel_memory *memory = calloc(1, sizeof *memory);
    if (memory != NULL)
        pthread_mutex_init(&memory->mutex, NULL);
    return memory;
}

void otel_memory_clear(otel_memory *memory)
{
    pthread_mutex_lock(&memory->mutex);
    for (size_t i = 0; i < memory->count; i++)
        free(memory->spans[i]);
    memory->count = 0;
    pthread_mutex_unlock(&memory->mutex);
}

void otel_memory_free(otel_memory *memory)
{
    if (memory == NULL)
        return;
    otel_memory_clear(memory);
    free(memory->spans);
    free(memory->resource);
    pthread_mutex_destroy(&memory->mutex);
    free(memory);
}

otel_exporter otel_memory_exporter(otel_memory *memory)
{
    return OTEL_EXPORTER(.name = "memory_exporter", .state = memory, .export_batch = export_batch);
}

size_t otel_memory_count(const otel_memory *memory)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&memory->mutex;
    pthread_mutex_lock(mutex);
    const size_t count = memory->count;
    pthread_mutex_unlock(mutex);
    return count;
}

bool otel_memory_span(const otel_memory *memory, size_t index, otel_span_view *span)
{
    pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&memory->mutex;
    pthread_mutex_lock(mutex);
    const bool is_there = index < memory->count;
    if (is_there)
        *span = memory->spans[index]->view;
    pthread_mutex_unlock(mutex);
    return is_there;
}

otel_slice otel_memory_resource(const otel_memory *memory)
{
    return (otel_slice){memory->resource, memory->resource_length};
}
