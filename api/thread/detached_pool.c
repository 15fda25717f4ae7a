/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/detached_pool.c - the pool of detached spans. Any thread.
 *
 * Like the pool of lines: slots that stay (slot_pool.h), and a list of the free ones. */
#include "api/thread/detached_pool.h"
#include "common/base/alloc.h"
#include "common/base/slot_pool.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock.h"

#include <string.h>

enum { PART = OTELI_DETACHED_PART, PARTS = OTELI_DETACHED_PARTS };

/* Whole pages, so that the kernel can empty them in a child (watch, api/lifetime.c). */
_Alignas(OTELI_FORK_PAGE) void *oteli_detached_parts[PARTS];
_Static_assert(sizeof oteli_detached_parts % OTELI_FORK_PAGE == 0, "and nothing else");

static struct oteli_free_list free_slots;
static struct oteli_slot_pool pool = {.parts = oteli_detached_parts,
                                      .part_count = PARTS,
                                      .slots_a_part = PART,
                                      .slot_size = sizeof(struct oteli_detached),
                                      .new_part = oteli_calloc};

static struct oteli_detached *at_index(uint32_t index)
{
    return oteli_slot_at(oteli_detached_parts, PART, sizeof(struct oteli_detached), index);
}

static uint32_t *link_of(uint32_t index)
{
    return oteli_slot_link(oteli_detached_parts, PART, sizeof(struct oteli_detached),
                           offsetof(struct oteli_detached, free_next), index);
}

bool oteli_detached_is_known(const struct oteli_active_span *active)
{
    return (const void *)at_index(oteli_ref_index(active->usual_ref)) == (const void *)active;
}

static void push(struct oteli_active_span *active)
{
    if (OTELI_LIKELY(oteli_detached_is_known(active)))
        oteli_free_list_push(&free_slots, link_of, oteli_ref_index(active->usual_ref));
}

static OTELI_COLD struct oteli_active_span *take_new(void)
{
    const uint32_t index = oteli_slot_new(&pool);
    if (index == OTELI_NO_SLOT)
        return NULL;
    struct oteli_active_span *active = &at_index(index)->active;
    active->usual_ref = oteli_ref_make(0, OTELI_SPAN_IN_POOL, false, index, 0) | OTELI_REF_USUAL;
    return active;
}

struct oteli_active_span *oteli_detached_take(struct oteli_thread *thread)
{
    if (OTELI_LIKELY(thread->detached_count != 0))
        return thread->detached[--thread->detached_count];
    const uint32_t index = oteli_free_list_pop(&free_slots, link_of);
    if (index == OTELI_NO_SLOT)
        return take_new();
    struct oteli_detached *slot = at_index(index);
    return slot != NULL ? &slot->active : NULL;
}

void oteli_detached_give(struct oteli_thread *thread, struct oteli_active_span *active)
{
    if (OTELI_LIKELY(thread->detached_count < OTELI_DETACHED_CACHE))
        thread->detached[thread->detached_count++] = active;
    else
        push(active);
}

void oteli_detached_flush(struct oteli_thread *thread)
{
    while (thread->detached_count != 0)
        push(thread->detached[--thread->detached_count]);
}

void oteli_detached_publish(struct oteli_active_span *active, const otel_span *span)
{
    oteli_half_copy(active->self.opaque, span->opaque);
    active->self.opaque[3] = span->opaque[3];
    oteli_store_relaxed_64(&active->self.opaque[2], span->opaque[2]);
}

void oteli_detached_hide(struct oteli_active_span *active)
{
    oteli_store_relaxed_64(&active->self.opaque[2], 0);
    oteli_detached_unlock(active);
}

void oteli_detached_show(struct oteli_active_span *active, otel_span_ref span)
{
    oteli_spin_lock(&active->lock);
    oteli_store_relaxed_64(&active->self.opaque[2], span.id);
}

static void copy_part(struct oteli_active_span *to, const struct oteli_active_span *from, size_t at,
                      size_t end)
{
    memcpy((uint8_t *)to + at, (const uint8_t *)from + at, end - at);
}

void oteli_detached_copy(struct oteli_active_span *to, const struct oteli_active_span *from)
{
    const size_t lock = offsetof(struct oteli_active_span, lock);
    copy_part(to, from, sizeof from->self, lock);
    copy_part(to, from, lock + sizeof from->lock, sizeof *from);
}

void oteli_detached_take_aside(struct oteli_active_span *active, struct oteli_ending *ending)
{
    const struct oteli_active_span nothing = {.usual_ref = active->usual_ref};
    ending->aside = (struct oteli_detached){.active.self = active->self};
    oteli_detached_copy(&ending->aside.active, active);
    /* Whatever becomes of this thread, buffers have one owner. */
    oteli_detached_copy(active, &nothing);
    oteli_detached_hide(active);
}

void oteli_detached_put_back(struct oteli_active_span *active, const struct oteli_ending *ending)
{
    oteli_detached_show(active, ending->span);
    oteli_detached_copy(active, &ending->aside.active);
}

/* What this thread is ending. */
static OTELI_COLD struct oteli_active_span *find_ending(otel_span_ref span)
{
    for (struct oteli_ending *at = oteli_self->ending; at != NULL; at = at->outer)
        if (at->span.id == span.id &&
            oteli_ref_index(at->span.place) == oteli_ref_index(span.place))
            return &at->aside.active;
    return NULL;
}

struct oteli_active_span *oteli_detached_lock(otel_span_ref span)
{
    const uint32_t index = oteli_ref_index(span.place);
    if (oteli_ref_where(span.place) != OTELI_SPAN_IN_POOL || index >= PART * PARTS)
        return NULL;
    struct oteli_detached *slot = at_index(index);
    if (slot == NULL || oteli_load_relaxed_64(&slot->active.self.opaque[2]) != span.id)
        return find_ending(span);
    oteli_spin_lock(&slot->active.lock);
    if (oteli_load_relaxed_64(&slot->active.self.opaque[2]) == span.id)
        return &slot->active;
    oteli_detached_unlock(&slot->active);
    return NULL;
}

uint32_t oteli_epoch_under(const struct oteli_thread *thread, const otel_span *parent)
{
    if (parent == &thread->top->self && thread->top != thread->stack)
        return thread->top->epoch;
    const struct oteli_active_span *active = oteli_thread_place(thread, otel_span_ref_of(parent));
    uint32_t epoch = active != NULL ? active->epoch : oteli_clock_epoch();
    struct oteli_active_span *detached =
        active == NULL ? oteli_detached_lock(otel_span_ref_of(parent)) : NULL;
    if (detached != NULL) {
        epoch = detached->epoch;
        detached->traits.bits |= OTELI_IS_PARENT;
        oteli_detached_unlock(detached);
    }
    return epoch;
}

static void fini(void *slot)
{
    oteli_active_fini(&((struct oteli_detached *)slot)->active);
}

void oteli_detached_free(void)
{
    free_slots.head = 0;
    oteli_slots_free(&pool, fini);
}

void oteli_detached_forget(void)
{
    free_slots.head = 0;
    oteli_slots_forget(&pool);
}
