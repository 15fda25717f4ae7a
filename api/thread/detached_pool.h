/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/detached_pool.h - spans that any thread may use: a pool of slots that keep their
 * place.
 *
 * A slot is never unmapped while threads trace, so an old handle can always be looked
 * up; it finds another span id there, or none. Each has a lock of its own that is held
 * for one call, which allocates if it is the first end on its thread: two threads wait for
 * each other only if they use the same span at the same moment.
 *
 * Threads:  any thread. Free slots are kept at hand by threads, a few each. */
#ifndef OTELI_DETACHED_POOL_H
#define OTELI_DETACHED_POOL_H

#include "api/thread/thread_state.h"

enum { OTELI_DETACHED_PART = 256, OTELI_DETACHED_PARTS = 4096 };

struct oteli_detached {
    struct oteli_active_span active; /* first: a pointer to it is a pointer to its slot */
    uint32_t free_next;
};

/* Parts stay where they are once they are there. */
OTELI_NOT_LENT extern void *oteli_detached_parts[OTELI_DETACHED_PARTS];

/* Take a free slot for a new span; NULL: no memory, or all parts are in use. */
struct oteli_active_span *oteli_detached_take(struct oteli_thread *thread);

/* From here on others can find it. */
void oteli_detached_publish(struct oteli_active_span *active, const otel_span *span);

/* Lock the slot of a handle if the span is still open in it; NULL otherwise. */
struct oteli_active_span *oteli_detached_lock(otel_span_ref span);

/* Copy all of a span but the handle and the lock, at which others look if it is detached. */
void oteli_detached_copy(struct oteli_active_span *to, const struct oteli_active_span *from);

/* Unlock a locked slot and make no handle find it; and the reverse. */
void oteli_detached_hide(struct oteli_active_span *active);
void oteli_detached_show(struct oteli_active_span *active, otel_span_ref span);

/* A span that processors are being told is about to end. Its slot is hidden, and all that it
 * holds is here, where oteli_detached_lock finds it for the thread that ends it. */
struct oteli_ending {
    struct oteli_detached aside;
    otel_span_ref span;
    struct oteli_ending *outer;
};
void oteli_detached_take_aside(struct oteli_active_span *active, struct oteli_ending *ending);
void oteli_detached_put_back(struct oteli_active_span *active, const struct oteli_ending *ending);

/* Whether a slot is still in the pool, and not of before a fork. */
bool oteli_detached_is_known(const struct oteli_active_span *active);

/* oteli_detached_lock without waiting: NULL also while another thread has the lock. */
static inline struct oteli_active_span *oteli_detached_try_lock(otel_span_ref span)
{
    const uint32_t index = oteli_ref_index(span.place);
    if (oteli_ref_where(span.place) != OTELI_SPAN_IN_POOL ||
        index >= OTELI_DETACHED_PART * OTELI_DETACHED_PARTS)
        return NULL;
    struct oteli_detached *part =
        OTELI_LOAD_ACQUIRE_PTR(&oteli_detached_parts[index / OTELI_DETACHED_PART]);
    if (part == NULL)
        return NULL;
    struct oteli_detached *slot = &part[index % OTELI_DETACHED_PART];
    if (oteli_load_relaxed_64(&slot->active.self.opaque[2]) != span.id ||
        oteli_load_relaxed_32(&slot->active.lock) != 0 ||
        oteli_exchange_full_32(&slot->active.lock, 1) != 0)
        return NULL;
    if (OTELI_LIKELY(oteli_load_relaxed_64(&slot->active.self.opaque[2]) == span.id))
        return &slot->active;
    oteli_store_release_32(&slot->active.lock, 0);
    return NULL;
}

static inline void oteli_detached_unlock(struct oteli_active_span *active)
{
    oteli_store_release_32(&active->lock, 0);
}

/* The span of a handle that is open on this thread's stack, or in the pool, and then locked until
 * oteli_open_release; NULL: it is not open. */
static inline struct oteli_active_span *oteli_open_find(const struct oteli_thread *thread,
                                                        otel_span_ref span)
{
    struct oteli_active_span *active = oteli_thread_find(thread, span);
    return active != NULL ? active : oteli_detached_lock(span);
}

static inline void oteli_open_release(struct oteli_active_span *active)
{
    if (active != NULL && oteli_ref_where(active->usual_ref) == OTELI_SPAN_IN_POOL)
        oteli_detached_unlock(active);
}

/* Give a slot back; its span id must be 0 by now, and its lock free. */
void oteli_detached_give(struct oteli_thread *thread, struct oteli_active_span *active);

/* The thread ends: what it kept at hand goes back to all. */
void oteli_detached_flush(struct oteli_thread *thread);

void oteli_detached_free(void);   /* the process ends, or a test */
void oteli_detached_forget(void); /* after fork, in the child */

#endif
