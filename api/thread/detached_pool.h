/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/detached_pool.h - spans that any thread may use: a pool of slots that keep their
 * place.
 *
 * A slot is never unmapped while threads trace, so an old handle can always be looked
 * up; it finds another span id there, or none. Each has a lock of its own that is held
 * for one call, which allocates if it is the first end on its thread: two threads wait for
 * each other only if they use the same span at the same moment.
 *
 * As long as no other thread has used a detached span of a thread, that one takes no locks: they
 * have its number. Another makes an end of that before it takes one; from then on the thread takes
 * locks, too, for as long as its state is there (alone.pml). The word is
 *
 *     0                no thread has it, and any may take it
 *     number           the thread with this number may use the span without it
 *     number + 1, 1    a thread has it
 *     OTELI_SLOT_FREE  there is no span
 *
 * Threads:  any thread. Free slots are kept at hand by threads, a few each. */
#ifndef OTELI_DETACHED_POOL_H
#define OTELI_DETACHED_POOL_H

#include "api/thread/thread_state.h"

enum { OTELI_DETACHED_PART = 256, OTELI_DETACHED_PARTS = 4096 };
#define OTELI_SLOT_FREE (UINT32_MAX - 1)

struct oteli_detached {
    struct oteli_active_span active; /* first: a pointer to it is a pointer to its slot */
    uint32_t free_next;
};

/* Parts stay where they are once they are there. */
OTELI_NOT_LENT extern void *oteli_detached_parts[OTELI_DETACHED_PARTS];

/* A thread that has not started a span before gets a number, if there is a way to take it away. */
void oteli_detached_own(struct oteli_thread *thread);

/* Take a free slot for a new span; NULL: no memory, or all parts are in use. */
struct oteli_active_span *oteli_detached_take(struct oteli_thread *thread);

/* From here on others can find it. */
void oteli_detached_publish(const struct oteli_thread *thread, struct oteli_active_span *active,
                            const otel_span *span);

/* Lock the slot of a handle if the span is still open in it; NULL otherwise. */
struct oteli_active_span *oteli_detached_lock(otel_span_ref span);

/* Copy all of a locked slot but the handle and the lock, which others look at meanwhile. */
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

/* The slot of a handle, if its span is open there at the moment; or NULL. */
static inline struct oteli_active_span *oteli_detached_at(otel_span_ref span)
{
    const uint32_t index = oteli_ref_index(span.place);
    if (oteli_ref_where(span.place) != OTELI_SPAN_IN_POOL ||
        index >= OTELI_DETACHED_PART * OTELI_DETACHED_PARTS)
        return NULL;
    struct oteli_detached *part =
        OTELI_LOAD_ACQUIRE_PTR(&oteli_detached_parts[index / OTELI_DETACHED_PART]);
    if (part == NULL)
        return NULL;
    struct oteli_active_span *active = &part[index % OTELI_DETACHED_PART].active;
    return oteli_load_relaxed_64(&active->self.opaque[2]) == span.id ? active : NULL;
}

/* No lock is held where it was not needed. */
static inline void oteli_detached_unlock(struct oteli_active_span *active)
{
    const uint32_t lock = oteli_load_relaxed_32(&active->lock);
    if ((lock & 1) != 0)
        oteli_store_release_32(&active->lock, lock - 1);
}

/* oteli_detached_lock without waiting: NULL also while another thread has the lock, or its number
 * is in it. The state is oteli_thread_mark_alone: of the thread's own none is taken. */
static inline struct oteli_active_span *oteli_detached_try_lock(const struct oteli_thread *thread,
                                                                otel_span_ref span)
{
    struct oteli_active_span *active = oteli_detached_at(span);
    if (OTELI_UNLIKELY(active == NULL))
        return NULL;
    const uint32_t lock = oteli_load_relaxed_32(&active->lock);
    if (lock != 0)
        return lock == oteli_load_relaxed_32(&thread->owns) ? active : NULL;
    if (OTELI_UNLIKELY(!oteli_cas_full_32(&active->lock, 0, 1)))
        return NULL;
    if (OTELI_LIKELY(oteli_load_relaxed_64(&active->self.opaque[2]) == span.id))
        return active;
    oteli_detached_unlock(active);
    return NULL;
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
