/* SPDX-License-Identifier: Apache-2.0 */
/* api/held/span_set.h - finished spans that are kept back: of a trace whose local root decides at
 * its end, and of a stretch of work that otel_lines_begin collects.
 *
 *   a root that holds back    HELD bit in its handle, inherited by its descendants
 *   a collected stretch       COLLECTED bit, in the place that otel_lines_begin puts on the
 *                             stack and in the entered spans on top of it
 *
 * A span with .hold below another that holds has a set of its own inside the other's: what it keeps
 * goes on to that one, which decides in turn. Below one that was decided against it is a member.
 *
 * A descendant finds its set through its parent's place on the same thread or in the pool of
 * detached spans, or else, on other threads, in a table of the holding roots (hold_table.h),
 * where a verdict stays known for some time.
 *
 * Threads:  any. The lock is held for the copying of one record. */
#ifndef OTELI_SPAN_SET_H
#define OTELI_SPAN_SET_H

#include "api/record/set_pool.h"
#include "api/thread/thread_state.h"
#include <otel/lines.h>

/* Close the set of a stretch or a trace that was taken: mark its outermost spans, turn ticks
 * into nanoseconds. */
void oteli_hold_close(struct otel_lines *hold);

/* Close the set and hand it to the caller. NULL: it was empty, and has been left. */
otel_lines *oteli_hold_give_to_caller(otel_lines *lines);

/* Whether lines can be mounted under a span: it is sampled, and of a trace. */
bool oteli_span_can_be_mounted_under(const otel_span *span);

/* Whether options ask for a held set; they may be of a program that knows no such thing. */
static inline bool oteli_hold_is_wanted(const otel_span_options *options)
{
    return options != NULL && options->size > offsetof(otel_span_options, hold) && options->hold;
}

/* A recording span begins: does it belong to its parent's set, or hold one itself? Says so in
 * the place and in the bits of its handle. */
void oteli_hold_inherit(struct oteli_thread *thread, struct oteli_active_span *active,
                        const otel_span *parent, const otel_span_options *options,
                        const uint64_t trace_id[2], uint64_t *ref);

/* Record the end of any span of this thread's SDK: in its held set, or for the worker, or not
 * at all if it is there for processors only. */
OTELI_COLD void oteli_record_end(struct oteli_thread *thread, struct oteli_active_span *active,
                                 uint64_t end);

#endif
