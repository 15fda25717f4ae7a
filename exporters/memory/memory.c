/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/memory/memory.c - keep exported spans in memory. Any thread, under a mutex.
 *
 * Each span is copied as its OTLP bytes, with the view that the batch gave of it.
 *
 *     spans │ of the parent process, for views of them │ of this process │
 *                                                  first               count
 *
 * A forked child finds a copy of its parent's store. The child's first export takes the store over:
 * its own spans begin there. Until then the store is empty for the child. */
#include <otel/memory.h>

#include "common/base/atomic.h"
#include "common/base/span_copy.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct otel_memory {
    uint32_t process; /* whose spans are counted; release by the new one, acquire by others */
    pthread_mutex_t mutex;
    struct oteli_kept_span **spans;
    size_t first; /* of this process */
    size_t count;
    size_t capacity;
    char *resource;
    size_t resource_length;
};

otel_memory *otel_memory_new(void)
{
    otel_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return NULL;
    memory->process = (uint32_t)getpid();
    pthread_mutex_init(&memory->mutex, NULL);
    return memory;
}

static bool is_ours(const otel_memory *memory)
{
    return memory != NULL && oteli_load_acquire_32(&memory->process) == (uint32_t)getpid();
}

/* In a forked child. A thread of the parent may have been in the middle of an export: then its
 * spans are left alone, and their memory with them. */
static void take_over(otel_memory *memory)
{
    if (is_ours(memory))
        return;
    if (pthread_mutex_trylock(&memory->mutex) != 0) {
        memory->spans = NULL;
        memory->count = 0;
        memory->capacity = 0;
        memory->resource = NULL;
    }
    memory->first = memory->count;
    memory->resource_length = 0;
    pthread_mutex_init(&memory->mutex, NULL);
    oteli_store_release_32(&memory->process, (uint32_t)getpid());
}

static bool add(otel_memory *memory, const otel_span_view *span)
{
    if (memory->count == memory->capacity) {
        const size_t capacity = memory->capacity == 0 ? 64 : memory->capacity * 2;
        struct oteli_kept_span **more = realloc(memory->spans, capacity * sizeof *more);
        if (more == NULL)
            return false;
        memory->spans = more;
        memory->capacity = capacity;
    }
    struct oteli_kept_span *kept = oteli_keep_span(span);
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
    take_over(memory);
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

static otel_status renew(const void *state, otel_exporter *renewed)
{
    otel_memory *memory = (otel_memory *)(uintptr_t)state;
    take_over(memory);
    *renewed = otel_memory_exporter(memory);
    return OTEL_OK;
}

/* Free the spans from this one on. */
static void forget(otel_memory *memory, size_t first)
{
    for (size_t i = first; i < memory->count; i++)
        free(memory->spans[i]);
    memory->count = first;
}

void otel_memory_clear(otel_memory *memory)
{
    if (!is_ours(memory))
        return;
    pthread_mutex_lock(&memory->mutex);
    forget(memory, memory->first);
    pthread_mutex_unlock(&memory->mutex);
}

void otel_memory_free(otel_memory *memory)
{
    if (memory == NULL)
        return;
    /* Only a parent's that was half written at the fork is still locked. */
    if (pthread_mutex_trylock(&memory->mutex) == 0) {
        forget(memory, 0);
        pthread_mutex_unlock(&memory->mutex);
        pthread_mutex_destroy(&memory->mutex);
        free(memory->spans);
        free(memory->resource);
    }
    free(memory);
}

otel_exporter otel_memory_exporter(otel_memory *memory)
{
    return OTEL_EXPORTER(.name = "memory_exporter", .state = memory, .export_batch = export_batch,
                         .renew = renew);
}

/* The mutex of a constant handle is not constant. */
static otel_memory *of_handle(const otel_memory *handle)
{
    return (otel_memory *)(uintptr_t)handle;
}

size_t otel_memory_count(const otel_memory *handle)
{
    otel_memory *memory = of_handle(handle);
    if (!is_ours(memory))
        return 0;
    pthread_mutex_lock(&memory->mutex);
    const size_t count = memory->count - memory->first;
    pthread_mutex_unlock(&memory->mutex);
    return count;
}

bool otel_memory_span(const otel_memory *handle, size_t index, otel_span_view *span)
{
    otel_memory *memory = of_handle(handle);
    if (!is_ours(memory))
        return false;
    pthread_mutex_lock(&memory->mutex);
    const bool is_there = index < memory->count - memory->first;
    if (is_there)
        *span = memory->spans[memory->first + index]->view;
    pthread_mutex_unlock(&memory->mutex);
    return is_there;
}

otel_slice otel_memory_resource(const otel_memory *memory)
{
    return is_ours(memory) ? (otel_slice){memory->resource, memory->resource_length}
                           : (otel_slice){0};
}
