/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/processor_calls.h - tell the SDK's span processors that a span starts, is about to end,
 * and has ended.
 *
 * Processors are the program's, and may call everything of otel/trace.h. So while they are told
 * no call of this thread is under way and nothing is locked; the SDK is borrowed, and stays.
 * What they do may move the stack of places, so a place is looked up again after them. Spans
 * that start meanwhile on this thread are not told of, or it might go on for ever.
 *
 *   ends ──▶ is hidden ──▶ span_ending ──▶ a copy is made ──▶ span_ended ──▶ is recorded
 *            from other    (can be         as bytes           (is dead,      as any other
 *            threads        changed)                           has its id)
 *
 * Threads:  app threads, on the slow path. */
#ifndef OTELI_PROCESSOR_CALLS_H
#define OTELI_PROCESSOR_CALLS_H

#include "api/active/active_span.h"
#include "api/thread/thread_state.h"

/* Whether the start of a span that records is to be told of, now and on this thread. */
static inline bool oteli_processing_is_wanted(const struct oteli_thread *thread)
{
    return thread->program.has_processors && thread->in_processors == 0;
}

/* A span has been started by this thread, which is in no call any more. Tells of it if it
 * records. */
OTELI_COLD void oteli_processing_start(const otel_span *span, const otel_context *parent);

/* Whether processors have to do with the end of a span. All of those are unusual, which is asked
 * for every span anyway. */
static inline bool oteli_processing_knows(const struct oteli_active_span *active)
{
    return active->traits.is_unusual &&
           (active->traits.bits & (OTELI_IS_PROCESSED | OTELI_IS_ENDING)) != 0;
}

/* Such a span ends, at `end`. If it is not cancelled they are told. Its place, which is now to be
 * recorded and left; or NULL: it ended before, or there is no such place any more, and the state is
 * free. Until then it is busy, and the slot of a detached span is locked. */
OTELI_COLD struct oteli_active_span *oteli_processing_end(struct oteli_thread *thread,
                                                          struct oteli_active_span *active,
                                                          otel_span_ref span, uint64_t end);

/* A span that never started here is recorded (finished_span.c): processors are told that it has
 * ended, and then it goes where ended spans go. Its place is left before they are. False: the state
 * is free. */
OTELI_COLD bool oteli_processing_record(struct oteli_thread *thread,
                                        struct oteli_active_span *active, uint64_t end);

#endif
