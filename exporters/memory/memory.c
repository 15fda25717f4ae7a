/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/memory/memory.c - keep exported spans in memory. Any thread, under a mutex.
 *
 * Each span is copied as its OTLP bytes, with the view that the batch gave of it.
 *
 * The copy of a store that a forked child finds may be locked, or half written, and nobody is
 * there to finish it. So every process has a store of its own behind the same handle:
 *
 *     handle ─▶ its store ─▶ the child's ─▶ the grandchild's
 *
 * each with the number of the process that it belongs to. */
#include <otel/memory.h>

#include "common/base/atomic.h"
#include "common/base/span_copy.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct otel_memory {
    uint32_t process;
    struct otel_memory *childs; /* made in a child, by whoever exports; release, acquire by
                                   whoever looks */
    pthread_mutex_t mutex;
    struct oteli_kept_span **spans;
    size_t count;
    size_t capacity;
    char *resource;
    size_t resource_length;
};

static otel_memory *new_store(void)
{
    otel_memory *memory = calloc(1, sizeof *memory);
    if (memory == NULL)
        return NULL;
    memory->process = (uint32_t)getpid();
    pthread_mutex_init(&memory->mutex, NULL);
    return memory;
}

/* This process's store behind the handle; NULL: it has none yet. */
static otel_memory *own(const otel_memory *handle)
{
    const uint32_t process = (uint32_t)getpid();
    const otel_memory *memory = handle;
    while (memory != NULL && memory->process != process)
        memory = OTELI_LOAD_ACQUIRE_PTR(&memory->childs); /* pairs with own_or_new */
    return (otel_memory *)(uintptr_t)memory;
}

/* NULL: no memory. */
static otel_memory *own_or_new(otel_memory *handle)
{
    otel_memory *memory = own(handle);
    if (memory != NULL)
        return memory;
    memory = new_store();
    if (memory == NULL)
        return NULL;
    while (handle->childs != NULL)
        handle = handle->childs;
    OTELI_STORE_RELEASE_PTR(&handle->childs, memory); /* pairs with own */
    return memory;
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
    otel_memory *memory = own_or_new(state);
    otel_span_view span;
    size_t lost = 0;
    if (memory == NULL) {
        otel_export_drop(call, OTEL_DROP_NO_MEMORY, otel_batch_size(call->batch));
        return OTEL_EXPORT_DONE;
    }
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

/* The handle finds the child's store by itself. */
static otel_status renew(const void *state, otel_exporter *renewed)
{
    *renewed = otel_memory_exporter((otel_memory *)(uintptr_t)state);
    return OTEL_OK;
}

otel_memory *otel_memory_new(void)
{
    return new_store();
}

static void forget(otel_memory *memory)
{
    for (size_t i = 0; i < memory->count; i++)
        free(memory->spans[i]);
    memory->count = 0;
}

void otel_memory_clear(otel_memory *handle)
{
    otel_memory *memory = own(handle);
    if (memory == NULL)
        return;
    pthread_mutex_lock(&memory->mutex);
    forget(memory);
    pthread_mutex_unlock(&memory->mutex);
}

void otel_memory_free(otel_memory *handle)
{
    otel_memory *memory = handle;
    while (memory != NULL) {
        otel_memory *next = memory->childs;
        /* Only a parent's that was half written at the fork is still locked. */
        if (pthread_mutex_trylock(&memory->mutex) == 0) {
            forget(memory);
            pthread_mutex_unlock(&memory->mutex);
            pthread_mutex_destroy(&memory->mutex);
            free(memory->spans);
            free(memory->resource);
        }
        free(memory);
        memory = next;
    }
}

otel_exporter otel_memory_exporter(otel_memory *memory)
{
    return OTEL_EXPORTER(.name = "memory_exporter", .state = memory, .export_batch = export_batch,
                         .renew = renew);
}

size_t otel_memory_count(const otel_memory *handle)
{
    otel_memory *memory = own(handle);
    if (memory == NULL)
        return 0;
    pthread_mutex_lock(&memory->mutex);
    const size_t count = memory->count;
    pthread_mutex_unlock(&memory->mutex);
    return count;
}

bool otel_memory_span(const otel_memory *handle, size_t index, otel_span_view *span)
{
    otel_memory *memory = own(handle);
    if (memory == NULL)
        return false;
    pthread_mutex_lock(&memory->mutex);
    const bool is_there = index < memory->count;
    if (is_there)
        *span = memory->spans[index]->view;
    pthread_mutex_unlock(&memory->mutex);
    return is_there;
}

otel_slice otel_memory_resource(const otel_memory *handle)
{
    const otel_memory *memory = own(handle);
    return memory != NULL ? (otel_slice){memory->resource, memory->resource_length}
                          : (otel_slice){0};
}
