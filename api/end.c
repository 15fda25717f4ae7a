/* SPDX-License-Identifier: Apache-2.0 */
/* api/end.c - end spans: from an open span to a committed record. App threads.
 *
 * The order in here is what the worker and the statistics rely on: `ended` is counted
 * before the record is committed, and whether the worker sleeps is looked at after it. */
#include "api/compose.h"
#include "api/detached.h"
#include "api/thread.h"
#include "common/clock.h"

#include <string.h>

enum { LARGEST_RECORD = 1 << 30 }; /* sizes of lines and records have 32 bits */

static void drop(struct oteli_thread *thread, otel_drop_reason reason)
{
    oteli_count(&thread->counts.dropped[reason], 1);
}

/* Behind the last record, which has room; the worker may read it from here on. */
static inline void commit(struct oteli_thread *thread, uint32_t size)
{
    thread->lot--;
    thread->used += size;
    /* pairs with the load of take_from */
    oteli_store_release_32(&thread->line->committed, thread->used);
}

/* A line of its own for a record that fits into no other. */
static OTELI_COLD void commit_large(struct oteli_thread *thread, struct oteli_sdk *sdk,
                                    const struct oteli_open *open, uint64_t end, size_t bound)
{
    struct oteli_line *line = oteli_line_get(thread, bound);
    if (line == NULL) {
        drop(thread, OTEL_DROP_BYTE_LIMIT);
        return;
    }
    thread->lot--;
    oteli_store_release_32(&line->committed, oteli_compose(oteli_line_record(line, 0), open, end));
    sdk->hand_over(sdk, line);
}

/* A line with room, in place of the full one; that one stays current until the worker can
 * find it in the ring. */
static bool next_line(struct oteli_thread *thread, struct oteli_sdk *sdk, size_t bound)
{
    struct oteli_line *line = oteli_line_get(thread, bound);
    if (line == NULL)
        return false;
    if (thread->line != NULL)
        sdk->hand_over(sdk, thread->line);
    thread->used = 0;
    thread->line_capacity = line->capacity;
    OTELI_STORE_RELEASE_PTR(&thread->line, line);
    return true;
}

static OTELI_COLD void export_now(struct oteli_thread *thread, struct oteli_sdk *sdk,
                                  const struct oteli_open *open, uint64_t end, size_t bound)
{
    thread->scratch.length = 0;
    uint8_t *at = oteli_buffer_room(&thread->scratch, bound);
    if (at == NULL) {
        drop(thread, OTEL_DROP_NO_MEMORY);
        return;
    }
    oteli_compose((struct oteli_record *)(void *)at, open, end);
    sdk->export_one(sdk, at);
}

/* No room in the line, or no lot: everything that happens once in many spans. */
static OTELI_COLD void append_slow(struct oteli_thread *thread, const struct oteli_open *open,
                                   uint64_t end)
{
    const size_t bound = oteli_compose_bound(open);
    if (thread->lot != 0 && thread->used + bound <= thread->line_capacity) {
        commit(thread, oteli_compose(oteli_line_record(thread->line, thread->used), open, end));
        return; /* unusual, but there is room */
    }
    if (bound > LARGEST_RECORD) {
        drop(thread, OTEL_DROP_TOO_LARGE);
        return;
    }
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk == NULL || sdk->generation != thread->generation) {
        drop(thread, OTEL_DROP_ALREADY_SHUTDOWN);
    } else if (sdk->synchronous) {
        export_now(thread, sdk, open, end, bound);
    } else {
        if (thread->lot == 0) {
            thread->lot = sdk->take_lot(sdk, thread->lot_size);
            thread->lot_size = thread->lot;
        }
        const bool is_large = bound > OTELI_LINE_BYTES - sizeof(struct oteli_line);
        if (thread->lot == 0)
            drop(thread, OTEL_DROP_QUEUE_FULL);
        else if (is_large)
            commit_large(thread, sdk, open, end, bound);
        else if (thread->used + bound > thread->line_capacity && !next_line(thread, sdk, bound))
            drop(thread, OTEL_DROP_BYTE_LIMIT);
        else
            commit(thread, oteli_compose(oteli_line_record(thread->line, thread->used), open, end));
    }
    oteli_sdk_return(thread);
}

/* The worker sleeps until somebody has something for it. */
static OTELI_COLD void wake_slow(struct oteli_thread *thread)
{
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation && oteli_sdk_set_asleep(sdk, false))
        sdk->wake(sdk);
    oteli_sdk_return(thread);
}

/* Record the end of a sampled span of this thread's SDK. */
static OTELI_INLINE void append(struct oteli_thread *thread, const struct oteli_open *open,
                                uint64_t end)
{
    const size_t bound = oteli_compose_plain_bound(open);
    oteli_count(&thread->counts.ended, 1);
    if (OTELI_LIKELY(thread->lot != 0 && thread->used + bound <= thread->line_capacity &&
                     !open->is_unusual))
        commit(thread,
               oteli_compose_plain(oteli_line_record(thread->line, thread->used), open, end));
    else
        append_slow(thread, open, end);
    if (OTELI_UNLIKELY(oteli_load_relaxed_64(&oteli_asleep) != 0))
        wake_slow(thread);
}

/* Take an ended span off the stack, and those below it that had ended before. One that is
 * not on top stays until it is. */
static inline void pop(struct oteli_thread *thread, uint32_t slot)
{
    if (OTELI_UNLIKELY(slot + 1 != thread->depth))
        return;
    while (slot != 0 && OTELI_UNLIKELY(thread->open[slot - 1].span_id == 0))
        slot--;
    thread->depth = slot;
}

/* The slot that the handle names. Nearly always that is the top of the stack, and then it
 * is taken from the stack: the handle has been through memory several times by now, and
 * what the next span does would have to wait for it. */
static inline uint32_t own_slot(const struct oteli_thread *thread, const otel_span *span)
{
    const uint32_t slot = oteli_ref_slot(span->opaque[3]);
    uint32_t top = thread->depth - 1;
    __asm__("" : "+r"(top)); /* or the compiler uses one for the other */
    return OTELI_LIKELY(slot == top) ? top : slot;
}

/* The span of this slot ends, but is not current: the span that would have made it current
 * again must go on to what was current before. */
static OTELI_COLD void leave_slow(struct oteli_thread *thread, uint32_t slot)
{
    const struct oteli_open *left = &thread->open[slot];
    for (uint32_t i = slot + 1; i < thread->depth; i++) {
        struct oteli_open *above = &thread->open[i];
        if (above->span_id != 0 && above->saved.opaque[2] == left->span_id) {
            above->saved = left->saved;
            return;
        }
    }
}

static OTELI_INLINE void end_local(struct oteli_thread *thread, const otel_span *span, uint64_t end)
{
    const uint32_t slot = own_slot(thread, span);
    if (OTELI_UNLIKELY(slot >= thread->depth || thread->open[slot].span_id != span->opaque[2] ||
                       !oteli_thread_begin(thread)))
        return;
    struct oteli_open *open = &thread->open[slot];
    if (open->recording)
        append(thread, open, end);
    if (OTELI_LIKELY(thread->current.span.opaque[2] == open->span_id))
        thread->current.span = open->saved;
    else
        leave_slow(thread, slot);
    if (OTELI_UNLIKELY(open->is_unusual))
        oteli_open_lighten(open);
    open->span_id = 0;
    pop(thread, slot);
    oteli_thread_finish(thread);
}

static void end_detached(const otel_span *span, uint64_t end)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(thread == &oteli_empty_thread))
        thread = oteli_thread_own();
    if (OTELI_UNLIKELY(thread == NULL || !oteli_thread_begin(thread)))
        return;
    struct oteli_open *open = oteli_detached_lock(span);
    if (open != NULL) {
        if (OTELI_UNLIKELY(open->generation != thread->generation))
            oteli_thread_for_end(open->generation);
        if (OTELI_LIKELY(open->generation == thread->generation))
            append(thread, open, end);
        if (OTELI_UNLIKELY(open->is_unusual))
            oteli_open_lighten(open);
        oteli_store_relaxed_64(&open->span_id, 0);
        oteli_detached_unlock(open);
        oteli_detached_give(thread, oteli_ref_slot(span->opaque[3]));
    }
    oteli_thread_finish(thread);
}

void otel_span_end_n(const otel_span *span, uint64_t end_ns)
{
    uint64_t end = end_ns & ~OTELI_TICKS_BIT;
    if (OTELI_LIKELY(end_ns == 0) && (span->opaque[3] & OTEL_SPAN_IS_RECORDING_) != 0)
        end = oteli_ticks() | OTELI_TICKS_BIT;
    const enum oteli_span_place place = oteli_ref_place(span->opaque[3]);
    if (OTELI_LIKELY(place == OTELI_PLACE_LOCAL))
        end_local(oteli_self, span, end);
    else if (place == OTELI_PLACE_DETACHED)
        end_detached(span, end);
}
