/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/set_pool.h - held sets: records of ended spans that are kept back, in memory of their
 * own. Which spans belong to a set and what becomes of it is in api/held/span_set.h.
 *
 * A held set has one lock, and members: its root or its stretch, each open span that would
 * end into it, the caller's otel_lines and each mount that is not exported yet. It goes back
 * to the pool with the last of them. Its records are like those of a line; they do not change
 * any more once the set is closed.
 *
 * Threads:  any. The lock is held for the copying of one record. */
#ifndef OTELI_SET_POOL_H
#define OTELI_SET_POOL_H

#include "api/active/active_span.h"
#include "common/base/atomic.h"
#include "common/base/internal_api.h"
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

/* A new set with one member, or NULL without memory. */
struct otel_lines *oteli_hold_new(uint64_t generation, const uint64_t trace_id[2]);

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

void oteli_hold_set_state(struct otel_lines *hold, enum oteli_hold_state state);

/* Where `bytes` more go in the set; NULL: there is no room under the limit, or no memory. */
uint8_t *oteli_hold_room(struct otel_lines *hold, size_t bytes);

/* One member more. */
static inline void oteli_hold_join(struct otel_lines *hold)
{
    oteli_add_full_32(&hold->members, 1);
}

OTELI_INTERNAL_API void oteli_hold_leave(struct otel_lines *hold); /* the last one gives it back */

void oteli_holds_free(void);   /* the process ends, or a test */
void oteli_holds_forget(void); /* after fork, in the child */

#endif
