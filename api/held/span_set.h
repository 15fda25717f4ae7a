/* SPDX-License-Identifier: Apache-2.0 */
/* api/held/span_set.h - finished spans that are kept back: of a trace whose local root decides at
 * its end, and of a stretch of work that otel_lines_begin collects.
 *
 *   a root that holds back    HELD bit in its handle, inherited by its descendants
 *   a collected stretch       COLLECTED bit, in the place that otel_lines_begin puts on the
 *                             stack and in the local spans on top of it
 *
 * A span with .hold below another that holds has a set of its own inside the other's: what it keeps
 * goes on to that one, which decides in turn. Below one that was decided against it is a member.
 *
 * A held set has one lock, and members: its root or its stretch, each open span that would
 * end into it, the caller's otel_lines and each mount that is not exported yet. It goes back
 * to the pool with the last of them. Its records are like those of a line; they do not change
 * any more once the set is closed.
 *
 * A descendant finds its set through its parent's place on the same thread or in the pool of
 * detached spans, or else, on other threads, in a table of the holding roots (hold_table.h),
 * where a verdict stays known for some time.
 *
 * Threads:  any. The lock is held for the copying of one record. */
#ifndef OTELI_SPAN_SET_H
#define OTELI_SPAN_SET_H

#include "api/active/active_span.h"
#include "api/thread/thread_state.h"
#include <otel/lines.h>

enum oteli_hold_state {
    OTELI_HOLDING = 0, /* spans that end are added */
    OTELI_KEPT,        /* spans that end go their usual way */
    OTELI_CLOSED       /* spans that end are late, or abandoned with its root */
};

/* The most that held sets may occupy together. Start/stop only. */
OTELI_INTERNAL_API void oteli_holds_set_limit(uint64_t bytes);

/* A held set. What is behind the lock is used under it, and without it once the set is not
 * OTELI_HOLDING any more, when it is constant but for `members`. */
struct otel_lines {
    uint32_t index; /* in the pool; constant */
    uint32_t free_next;
    uint32_t lock;
    uint32_t members; /* atomic */
    uint32_t state;   /* enum oteli_hold_state; atomic, for those who only look */
    uint32_t count;   /* of records */
    uint32_t number;  /* of its root in the table of holders */
    uint32_t outer;   /* the set around it, joined, which takes what this one keeps; 0: none */
    struct oteli_buffer records;
    uint64_t generation;
    uint64_t trace_id[2];
    uint32_t is_unaccounted; /* its spans have started, and not ended yet; atomic */
    bool has_error;
    bool is_cancelled; /* when it ends nothing is kept … */
    bool is_collected; /* … because its caller takes it */
    bool is_abandoned; /* its root or stretch was left open: no decision was made */
};

/* The message of a mount's record: a set in the trace of one parent. The worker, or with
 * the simple processor the thread that makes the mount, makes the spans of it, and leaves the set
 * and the tracestate when it is done. */
struct oteli_mount {
    struct otel_lines *lines; /* joined */
    uint64_t trace_id[2];
    uint64_t parent_id;   /* of the outermost */
    uint64_t key;         /* new span ids are the old ones XOR this; never equal to one of them */
    uint32_t tracestate;  /* the parent's, retained, or 0 */
    uint32_t wire_flags;  /* Span.flags of all of them … */
    uint32_t outer_flags; /* … and of the outermost, whose parent may be remote */
    uint32_t link_length; /* of a Span.links field, for the outermost; 0: none */
    uint8_t link[];
};

/* A new set with one member, or NULL without memory. */
struct otel_lines *oteli_hold_new(const struct oteli_thread *thread, const uint64_t trace_id[2]);

/* The parts of the pool (slot_pool.h), for oteli_hold_at. */
enum { OTELI_HOLD_PART = 64, OTELI_HOLD_PARTS = 16384 };
OTELI_NOT_LENT extern void *oteli_hold_parts[OTELI_HOLD_PARTS];

/* The set whose index a place on the stack or in the pool of detached spans has; its part is
 * there, because the set has members. */
static inline struct otel_lines *oteli_hold_at(uint32_t hold)
{
    struct otel_lines *part =
        OTELI_LOAD_ACQUIRE_PTR(&oteli_hold_parts[(hold - 1) / OTELI_HOLD_PART]);
    return &part[(hold - 1) % OTELI_HOLD_PART];
}

static inline uint32_t oteli_hold_index(const struct otel_lines *hold)
{
    return hold->index + 1; /* 0 is none */
}

static inline enum oteli_hold_state oteli_hold_state_of(const struct otel_lines *hold)
{
    return (enum oteli_hold_state)oteli_load_acquire_32(&hold->state);
}

/* Where `bytes` more go in the set; NULL: there is no room under the limit, or no memory. */
uint8_t *oteli_hold_room(struct otel_lines *hold, size_t bytes);

/* One member more. */
static inline void oteli_hold_join(struct otel_lines *hold)
{
    oteli_add_full_32(&hold->members, 1);
}

OTELI_INTERNAL_API void oteli_hold_leave(struct otel_lines *hold); /* the last one gives it back */

/* Close the set of a stretch or a trace that was taken: mark its outermost spans, turn ticks
 * into nanoseconds. */
void oteli_hold_close(struct otel_lines *hold);

/* Close it, for the caller who takes it; NULL, and it is left: there is nothing in it. */
otel_lines *oteli_hold_give_to_caller(otel_lines *lines);

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

/* The thread of an open member, or of a stretch, has ended. */
void oteli_hold_abandon(struct oteli_thread *thread, struct oteli_active_span *active);

void oteli_holds_free(void);   /* the process ends, or a test */
void oteli_holds_forget(void); /* after fork, in the child */

#endif
