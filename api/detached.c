/* SPDX-License-Identifier: Apache-2.0 */
/* api/detached.c - the pool of detached spans. Any thread.
 *
 * Like the pool of lines: parts of records that stay, and a stack of free ones whose head
 * counts its changes. */
#include "api/detached.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 256, PARTS = 4096, SPINS = 100 };

struct record {
    struct oteli_open open; /* first: a pointer to it is a pointer to its record */
    uint32_t lock;
    uint32_t free_next; /* index + 1 */
};

static struct {
    uint64_t free_head; /* changes in the upper half, index + 1 in the lower; 0: none */
    uint32_t count;     /* records that were ever given out */
    struct record *parts[PARTS];
} pool;

static struct record *at_index(uint32_t index)
{
    struct record *part = OTELI_LOAD_ACQUIRE_PTR(&pool.parts[index / PART]);
    return part != NULL ? &part[index % PART] : NULL;
}

/* The record of an index that was given out. */
static struct record *existing(uint32_t index)
{
    return &OTELI_LOAD_ACQUIRE_PTR(&pool.parts[index / PART])[index % PART];
}

/* Whether this part is there; made when it is not. One that two threads make is kept once. */
static bool has_part(uint32_t number)
{
    struct record **slot = &pool.parts[number];
    if (OTELI_LOAD_ACQUIRE_PTR(slot) != NULL)
        return true;
    const int saved_errno = errno;
    struct record *part = calloc(PART, sizeof *part);
    errno = saved_errno;
    if (part != NULL && !OTELI_CAS_FULL_PTR(slot, NULL, part))
        free(part);
    return OTELI_LOAD_ACQUIRE_PTR(slot) != NULL;
}

static OTELI_COLD uint32_t take_new(void)
{
    for (;;) {
        const uint32_t index = oteli_load_acquire_32(&pool.count);
        if (index >= PART * PARTS || !has_part(index / PART))
            return OTELI_DETACHED_NONE;
        if (oteli_cas_full_32(&pool.count, index, index + 1))
            return index;
    }
}

static uint32_t pop_free(void)
{
    for (;;) {
        const uint64_t head = oteli_load_acquire_64(&pool.free_head);
        if ((uint32_t)head == 0)
            return OTELI_DETACHED_NONE;
        const uint32_t index = (uint32_t)head - 1;
        const uint64_t next = oteli_load_relaxed_32(&existing(index)->free_next);
        if (oteli_cas_full_64(&pool.free_head, head, ((head >> 32) + 1) << 32 | next))
            return index;
    }
}

static void push_free(uint32_t index)
{
    for (;;) {
        const uint64_t head = oteli_load_acquire_64(&pool.free_head);
        oteli_store_relaxed_32(&existing(index)->free_next, (uint32_t)head);
        if (oteli_cas_full_64(&pool.free_head, head, ((head >> 32) + 1) << 32 | (index + 1)))
            return;
    }
}

uint32_t oteli_detached_take(struct oteli_thread *thread)
{
    if (OTELI_LIKELY(thread->detached_count != 0))
        return thread->detached[--thread->detached_count];
    const uint32_t index = pop_free();
    return index != OTELI_DETACHED_NONE ? index : take_new();
}

void oteli_detached_give(struct oteli_thread *thread, uint32_t index)
{
    if (OTELI_LIKELY(thread->detached_count < OTELI_DETACHED_CACHE))
        thread->detached[thread->detached_count++] = index;
    else
        push_free(index);
}

void oteli_detached_flush(struct oteli_thread *thread)
{
    while (thread->detached_count != 0)
        push_free(thread->detached[--thread->detached_count]);
}

struct oteli_open *oteli_detached_at(uint32_t index)
{
    return &existing(index)->open;
}

static void lock(struct record *record)
{
    for (unsigned tries = 0;; tries++) {
        if (oteli_load_relaxed_32(&record->lock) == 0 &&
            oteli_exchange_full_32(&record->lock, 1) == 0)
            return;
        oteli_stall();
        if (tries >= SPINS)
            sched_yield();
    }
}

struct oteli_open *oteli_detached_lock(const otel_span *span)
{
    const uint32_t index = oteli_ref_slot(span->opaque[3]);
    if (index >= PART * PARTS)
        return NULL;
    struct record *record = at_index(index);
    if (record == NULL || oteli_load_relaxed_64(&record->open.span_id) != span->opaque[2])
        return NULL;
    lock(record);
    if (oteli_load_relaxed_64(&record->open.span_id) == span->opaque[2])
        return &record->open;
    oteli_detached_unlock(&record->open);
    return NULL;
}

void oteli_detached_unlock(struct oteli_open *open)
{
    oteli_store_release_32(&((struct record *)(void *)open)->lock, 0);
}

void oteli_detached_free(void)
{
    for (uint32_t i = 0; i < PARTS && pool.parts[i] != NULL; i++) {
        for (uint32_t k = 0; k < PART; k++)
            oteli_open_fini(&pool.parts[i][k].open);
        free(pool.parts[i]);
    }
    oteli_detached_forget();
}

void oteli_detached_forget(void)
{
    memset(&pool, 0, sizeof pool);
}
