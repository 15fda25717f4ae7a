/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/gather.c - spans wait here until their trace can be drawn.
 *
 * Runs on the thread that exports or receives; owns the traces. Memory is taken in blocks
 * and given back only with the whole trace. */
#include "exporters/console/gather.h"

#include "common/base/random.h"
#include "common/text/utf8.h"
#include <stdlib.h>

struct oteli_gather_block {
    struct oteli_gather_block *next;
    size_t used, size; /* bytes of `memory` */
    _Alignas(16) uint8_t memory[];
};

enum { FIRST_BLOCK = 512, LARGEST_BLOCK = 32768, FIRST_BUCKETS = 64 };

void oteli_gather_init(struct oteli_gather *gather)
{
    struct oteli_random random;
    *gather = (struct oteli_gather){0};
    if (oteli_random_seed(&random))
        gather->seed = oteli_random_next(&random);
}

void oteli_gather_fini(struct oteli_gather *gather)
{
    for (struct oteli_gather_trace *trace = gather->oldest, *newer; trace != NULL; trace = newer) {
        newer = trace->newer;
        oteli_gather_remove(gather, trace);
    }
    oteli_text_fini(&gather->scratch);
    free(gather->buckets);
    gather->buckets = NULL;
    gather->bucket_count = 0;
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0xd6e8feb86659fd93);
    value = (value ^ value >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return value ^ value >> 32;
}

static size_t bucket_of(const struct oteli_gather *gather, const uint8_t *trace_id)
{
    uint64_t halves[2];
    memcpy(halves, trace_id, sizeof halves);
    return (size_t)mix(mix(halves[0] ^ gather->seed) + halves[1]) & (gather->bucket_count - 1);
}

static bool grow_buckets(struct oteli_gather *gather)
{
    if (gather->trace_count < gather->bucket_count)
        return true;
    const size_t count = gather->bucket_count == 0 ? FIRST_BUCKETS : gather->bucket_count * 2;
    struct oteli_gather_trace **buckets = calloc(count, sizeof *buckets);
    if (buckets == NULL)
        return gather->bucket_count != 0;
    free(gather->buckets);
    gather->buckets = buckets;
    gather->bucket_count = count;
    for (struct oteli_gather_trace *trace = gather->oldest; trace != NULL; trace = trace->newer) {
        struct oteli_gather_trace **bucket = &buckets[bucket_of(gather, trace->trace_id)];
        trace->next_in_bucket = *bucket;
        *bucket = trace;
    }
    return true;
}

static void unlink_by_age(struct oteli_gather *gather, struct oteli_gather_trace *trace)
{
    *(trace->older != NULL ? &trace->older->newer : &gather->oldest) = trace->newer;
    *(trace->newer != NULL ? &trace->newer->older : &gather->newest) = trace->older;
}

static void link_as_newest(struct oteli_gather *gather, struct oteli_gather_trace *trace)
{
    trace->newer = NULL;
    trace->older = gather->newest;
    *(gather->newest != NULL ? &gather->newest->newer : &gather->oldest) = trace;
    gather->newest = trace;
}

struct oteli_gather_trace *oteli_gather_open(struct oteli_gather *gather, const uint8_t *trace_id)
{
    if (!grow_buckets(gather))
        return NULL;
    struct oteli_gather_trace **bucket = &gather->buckets[bucket_of(gather, trace_id)];
    struct oteli_gather_trace *trace = *bucket;
    while (trace != NULL && memcmp(trace->trace_id, trace_id, sizeof trace->trace_id) != 0)
        trace = trace->next_in_bucket;
    if (trace != NULL) {
        unlink_by_age(gather, trace);
        link_as_newest(gather, trace);
        return trace;
    }
    trace = calloc(1, sizeof *trace);
    if (trace == NULL)
        return NULL;
    memcpy(trace->trace_id, trace_id, sizeof trace->trace_id);
    trace->next_in_bucket = *bucket;
    *bucket = trace;
    link_as_newest(gather, trace);
    gather->trace_count++;
    trace->bytes = sizeof *trace;
    gather->bytes += trace->bytes;
    return trace;
}

void *oteli_gather_allocate(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                            size_t size)
{
    size = (size + 15) & ~(size_t)15;
    struct oteli_gather_block *block = trace->blocks;
    if (block == NULL || block->size - block->used < size) {
        size_t bytes = block == NULL ? FIRST_BLOCK : block->size * 2;
        bytes = bytes > LARGEST_BLOCK ? LARGEST_BLOCK : bytes;
        bytes = bytes < size ? size : bytes;
        block = malloc(sizeof *block + bytes);
        if (block == NULL)
            return NULL;
        block->next = trace->blocks;
        block->used = 0;
        block->size = bytes;
        trace->blocks = block;
        trace->bytes += sizeof *block + bytes;
        gather->bytes += sizeof *block + bytes;
    }
    void *memory = block->memory + block->used;
    block->used += size;
    return memset(memory, 0, size);
}

otel_slice oteli_gather_copy(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                             otel_slice text)
{
    if (text.length > OTELI_RENDER_TEXT_MAX) {
        /* Cut between characters, so that the cut does not look like broken UTF-8. */
        text.length = OTELI_RENDER_TEXT_MAX;
        const size_t valid = oteli_utf8_valid_prefix(text.data, text.length);
        if (text.length - valid < 4)
            text.length = valid;
    }
    char *copy = text.length != 0 ? oteli_gather_allocate(gather, trace, text.length) : NULL;
    if (copy == NULL)
        return (otel_slice){0};
    memcpy(copy, text.data, text.length);
    return (otel_slice){copy, text.length};
}

struct oteli_render_span *oteli_gather_add(struct oteli_gather *gather,
                                           struct oteli_gather_trace *trace)
{
    if (trace->span_count == trace->span_capacity) {
        const size_t capacity = trace->span_capacity == 0 ? 8 : trace->span_capacity * 2;
        const struct oteli_render_span **spans =
            realloc(trace->spans, capacity * sizeof *trace->spans);
        if (spans == NULL)
            return NULL;
        const size_t grown = (capacity - trace->span_capacity) * sizeof *spans;
        trace->spans = spans;
        trace->span_capacity = capacity;
        trace->bytes += grown;
        gather->bytes += grown;
    }
    struct oteli_render_span *span = oteli_gather_allocate(gather, trace, sizeof *span);
    if (span == NULL)
        return NULL;
    memcpy(span->trace_id, trace->trace_id, sizeof span->trace_id);
    trace->spans[trace->span_count++] = span;
    gather->span_count++;
    return span;
}

void oteli_gather_remove(struct oteli_gather *gather, struct oteli_gather_trace *trace)
{
    struct oteli_gather_trace **link = &gather->buckets[bucket_of(gather, trace->trace_id)];
    while (*link != trace)
        link = &(*link)->next_in_bucket;
    *link = trace->next_in_bucket;
    unlink_by_age(gather, trace);
    gather->trace_count--;
    gather->span_count -= trace->span_count;
    gather->bytes -= trace->bytes;
    while (trace->blocks != NULL) {
        struct oteli_gather_block *next = trace->blocks->next;
        free(trace->blocks);
        trace->blocks = next;
    }
    free(trace->spans);
    free(trace);
}
