/* SPDX-License-Identifier: Apache-2.0 */
/* api/append.h - put records into this thread's line, and see to it that there is a line.
 *
 * App threads, the state being held (oteli_thread_begin). The order in here is what the
 * worker and the statistics rely on: `ended` is counted before the record is committed, and
 * whether the worker sleeps is looked at after it (end.c). */
#ifndef OTELI_APPEND_H
#define OTELI_APPEND_H

#include "api/plain.h"
#include "api/hold.h"
#include "api/thread.h"

/* Behind the last record, which has room; the worker may read it from here on. */
static inline void oteli_commit(struct oteli_thread *thread, uint32_t size, uint32_t spans)
{
    oteli_count(&thread->counts.ended, spans);
    const uint32_t used = thread->used + size;
    thread->used = used;
    oteli_store_release_32(&thread->line->committed, used); /* pairs with the load of take_from */
}

/* Whether an ended span, whose record has this size, goes where the last one went, without
 * further thought. */
static inline bool oteli_is_plain(const struct oteli_thread *thread, const struct oteli_open *open,
                                  uint32_t size)
{
    return !open->traits.is_unusual && thread->counts.ended != thread->lot_end &&
           thread->used + size + OTELI_RAW_SLACK <= thread->line_capacity;
}

/* Record the end of such a one. */
static OTELI_INLINE void oteli_append_plain(struct oteli_thread *thread,
                                            const struct oteli_open *open, uint32_t size,
                                            uint64_t end)
{
    struct oteli_raw *raw = (struct oteli_raw *)(void *)(thread->line->records + thread->used);
    oteli_raw_write(raw, open, size, end);
    oteli_commit(thread, size, 1);
}

/* Record the end of any span of this thread's SDK: in its held set, or for the worker, or not
 * at all if it is there for processors only. */
OTELI_COLD void oteli_append_any(struct oteli_thread *thread, struct oteli_open *open,
                                 uint64_t end);

/* Hand on a record that was kept back. */
OTELI_COLD void oteli_append_copy(struct oteli_thread *thread, const struct oteli_record *record);

/* Hand on a mount of `spans` spans, which have a place in the queue. False: no memory. */
OTELI_COLD bool oteli_append_mount(struct oteli_thread *thread, struct oteli_sdk *sdk,
                                   const struct oteli_mount *mount, uint32_t spans);

/* The same where spans are exported at once. */
void oteli_export_mount(struct oteli_thread *thread, struct oteli_sdk *sdk,
                        const struct oteli_mount *mount, uint32_t spans);

#endif
