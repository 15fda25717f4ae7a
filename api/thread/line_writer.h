/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/line_writer.h - put records into this thread's line, and see to it that there is a
 * line.
 *
 * App threads, inside oteli_thread_enter_call. The worker and the statistics rely on this order:
 * `ended` is counted, the record is committed, and then the thread looks whether the worker sleeps
 * (oteli_wake). */
#ifndef OTELI_LINE_WRITER_H
#define OTELI_LINE_WRITER_H

#include "api/record/raw_record.h"
#include "api/thread/thread_state.h"

/* The line is used up to `used` from now on, and the worker may read so far. */
static OTELI_INLINE void oteli_commit_to(struct oteli_thread *thread, struct oteli_line *line,
                                         uint32_t used, uint32_t spans)
{
    oteli_count(&thread->counts.ended, spans);
    thread->used = used;
    oteli_store_release_32(&line->committed, used); /* pairs with the load of committed_in */
}

static inline void oteli_commit(struct oteli_thread *thread, uint32_t size, uint32_t spans)
{
    oteli_commit_to(thread, thread->line, thread->used + size, spans);
}

/* Whether a span that has ended is written behind the last record at once, if it is there or there
 * is room: nothing about it is unusual, and the thread has quota. */
static OTELI_INLINE bool oteli_is_plain(const struct oteli_thread *thread,
                                        const struct oteli_active_span *active)
{
    return OTELI_LIKELY(!active->traits.is_unusual) &&
           OTELI_LIKELY(thread->counts.ended != thread->quota_end);
}

static OTELI_INLINE bool oteli_line_has_room(const struct oteli_thread *thread, size_t size)
{
    return OTELI_LIKELY(thread->used + size <= thread->line_end);
}

static inline struct oteli_raw *oteli_line_raw(struct oteli_line *line, size_t at)
{
    return (struct oteli_raw *)(void *)(line->records + at);
}

/* Record the end of such a one. */
static OTELI_INLINE void oteli_append_plain(struct oteli_thread *thread,
                                            const struct oteli_active_span *active, uint32_t size,
                                            uint64_t end)
{
    oteli_raw_write(oteli_line_raw(thread->line, thread->used), active, size, end);
    oteli_commit(thread, size, 1);
}

/* The same where all that is unusual about it is that it has more: false, and nothing is done, if
 * there is anything else, no quota, no room, or an end that was given. */
bool oteli_append_more(struct oteli_thread *thread, const struct oteli_active_span *active,
                       uint64_t end);

/* Record the end of a span of this thread's SDK that is in no held set. Of any span:
 * oteli_record_end. */
OTELI_COLD void oteli_append_any(struct oteli_thread *thread, struct oteli_active_span *active,
                                 uint64_t end);

/* Hand on a record that was kept back. */
OTELI_COLD void oteli_append_copy(struct oteli_thread *thread, const struct oteli_record *record);

/* Hand on the message of a mount (struct oteli_mount) of `spans` spans, which have a place in the
 * queue, or export it where spans are exported at once. False: no memory. */
OTELI_COLD bool oteli_append_mount(struct oteli_thread *thread, struct oteli_sdk *sdk,
                                   const void *mount, size_t length, uint32_t spans);

#endif
