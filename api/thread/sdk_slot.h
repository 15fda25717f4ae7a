/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/sdk_slot.h - what an SDK hands to the API, and how the API knows that it is there.
 *
 * One number says it all: oteli_generation is 0 without an SDK, and otherwise the SDK's
 * generation; the hot path reads oteli_fast_generation, which is OTELI_NEVER_FAST where the fast
 * path may not be used. A thread compares it with the generation that its own state was made for:
 * equal means "go on"; everything else (no SDK, an SDK that stopped or is another, a thread's
 * first span, a forked child's first span) is one cold branch.
 *
 * Threads:  oteli_sdk_install start/stop only; the functions of struct oteli_sdk are
 *           called by app threads, on their cold path. */
#ifndef OTELI_SDK_SLOT_H
#define OTELI_SDK_SLOT_H

#include "api/active/active_span.h"
#include "common/base/internal_api.h"
#include "common/os/fork.h"
#include <otel/lines.h>
#include <otel/sampler.h>

struct oteli_thread;
struct oteli_line;
struct oteli_record;

/* What the program does itself when spans start and end. */
struct oteli_program {
    bool has_callbacks;  /* something: all spans that might be recorded start on the slow path */
    bool has_processors; /* span_started, span_ending, span_ended */
    bool makes_ids;      /* make_ids */
    bool ids_are_random; /* … and the traces' are, as W3C means it */
    bool asks_tracers;   /* is_tracer_enabled */
    bool has_no_outlet;  /* nothing of it, but spans go nowhere: no exporter either */
    bool gets_exports;   /* its threads export spans, in the ends of them: `synchronous` */
};

/* What kind of parent a span has; the samplers of the specification know these five. */
enum oteli_parent {
    OTELI_PARENT_NONE = 0,
    OTELI_PARENT_LOCAL_UNSAMPLED = 1,
    OTELI_PARENT_LOCAL_SAMPLED = 2,
    OTELI_PARENT_REMOTE_UNSAMPLED = 3,
    OTELI_PARENT_REMOTE_SAMPLED = 4,
    OTELI_PARENT_KINDS = 5
};

enum oteli_decision {
    OTELI_DECIDE_DROP = 0,
    OTELI_DECIDE_SAMPLE = 1,
    OTELI_DECIDE_ASK = 2,       /* the ratio, by oteli_sdk.sample */
    OTELI_DECIDE_SLOW_PATH = 3, /* sample, on the slow path */
    OTELI_DECIDE_RATIO = 4      /* of roots: OTELI_DECIDE_ASK, or on the fast path by ratio_below */
};

/* The same decision where a span that is sampled has to take the slow path. */
static inline uint8_t oteli_decide_slowly(uint8_t decision)
{
    if (decision == OTELI_DECIDE_RATIO)
        return OTELI_DECIDE_ASK;
    return decision == OTELI_DECIDE_SAMPLE ? OTELI_DECIDE_SLOW_PATH : decision;
}

/* What a sampler may look at. */
struct oteli_sampling {
    const uint8_t *trace_id; /* 16 bytes */
    const otel_span *parent;
    const char *name;
    size_t name_length;
    const otel_span_options *options; /* or NULL */
};

/* The same for a sampler of the program's. */
struct oteli_sampling_question {
    struct oteli_sampling about;
    otel_context context; /* the parent in its context */
    uint8_t parent_kind;  /* enum oteli_parent */
    bool is_random;       /* the trace id is */
};

struct oteli_sdk {
    uint64_t generation;                /* even and not zero; another one for each start */
    uint8_t decide[OTELI_PARENT_KINDS]; /* enum oteli_decision by enum oteli_parent */
    uint64_t ratio_below;               /* sampled are roots whose oteli_ratio_number is */
    struct oteli_limits limits;
    struct oteli_program program;
    bool synchronous;   /* every ended span goes to export_one, none into a line */
    bool starts_asleep; /* its worker sleeps until the first span ends */
    uint32_t threads;   /* that took this SDK up so far; atomic */

    /* Asked where `decide` says OTELI_DECIDE_ASK, or OTELI_DECIDE_RATIO. */
    bool (*sample)(const struct oteli_sdk *, const struct oteli_sampling *);

    /* Where program.has_callbacks: asked for every span, the program's sampler or ours. The result
     * comes in with the decision DROP; of the rest only what a flag or a count
     * announces is valid. */
    void (*ask_sampler)(const struct oteli_sdk *, const struct oteli_sampling_question *,
                        otel_sampling_result *);

    /* See struct oteli_program. Of the ids one is wanted, and the other NULL. */
    void (*make_ids)(const struct oteli_sdk *, uint8_t *trace_id, uint8_t *span_id);
    bool (*is_tracer_enabled)(const struct oteli_sdk *, const otel_scope_view *scope);

    /* See struct oteli_program. The thread state is not busy, so that processors can use spans. */
    void (*span_started)(const struct oteli_sdk *, const otel_span *span,
                         const otel_context *parent);
    void (*span_ending)(const struct oteli_sdk *, const otel_span *span, uint64_t end_ns);
    void (*span_ended)(const struct oteli_sdk *, struct oteli_record *record);

    /* Reserve room for spans in the queue; the number that the thread may end before it
     * asks again, at least 1. 0: the queue is full. `ended` of the last quota are done. */
    uint32_t (*take_quota)(struct oteli_sdk *, uint32_t ended);

    /* Reserve room for exactly this many spans at once. False: there is not that much. */
    bool (*reserve)(struct oteli_sdk *, uint32_t count);

    /* They have been recorded in it: the worker may want to know. */
    void (*announce)(struct oteli_sdk *, uint32_t count);

    /* Give up room that was reserved. */
    void (*give_room_back)(struct oteli_sdk *, uint32_t count);

    /* A line was refused at the limit of bytes: the worker may be able to make room. */
    void (*request_drain)(struct oteli_sdk *);

    /* The verdict on a trace at the end of its local root; NULL: all are kept. */
    bool (*keep)(const struct oteli_sdk *, const otel_tail *tail);

    /* Hand a full line (or NULL) to the worker. */
    void (*hand_over)(struct oteli_sdk *, struct oteli_line *line);

    /* The worker sleeps without a timer, and a span has ended. */
    void (*wake)(struct oteli_sdk *);

    /* Export one record at once (`synchronous`). */
    void (*export_one)(struct oteli_sdk *, const void *record);

    /* The first span of a forked child whose parent this SDK ran in: install another one like
     * it, or uninstall what has been waiting for that. Must not look at this struct, which is
     * the parent's. May be called again by threads that come meanwhile. NULL: a child has none. */
    void (*revive)(void);
};

/* What the hot path looks at. A page of its own, which the kernel wipes in every child
 * (common/os/fork.h): one that is made behind our back finds that there is no SDK. */
union oteli_watched {
    struct {
        uint64_t generation;
        uint64_t fast_generation;
        uint64_t asleep;
        uint64_t mark; /* 0: no SDK was ever installed, or this is a child that must notice it */
    } words;
    uint8_t page[OTELI_FORK_PAGE];
};
OTELI_NOT_LENT extern union oteli_watched oteli_watched;

/* See above. Written by install and uninstall. */
#define oteli_generation (oteli_watched.words.generation)

/* What it is in a forked child whose SDK comes back with its first span. */
#define OTELI_REVIVE 1

/* The same while a span's times are plain readings of the processor's counter, and otherwise
 * a number that no thread has: the fast path of spans compares with this one. */
#define OTELI_NEVER_FAST (UINT64_MAX - 2)
#define oteli_fast_generation (oteli_watched.words.fast_generation)

/* Look at the clock again: its source has changed. The worker. */
OTELI_INTERNAL_API void oteli_sdk_reconsider_clock(const struct oteli_sdk *sdk);

/* The generation of the SDK whose worker sleeps without a timer; 0: none does. A span that
 * ends looks at it after its record is committed. */
#define oteli_asleep (oteli_watched.words.asleep)

/* Before the end of a span, which could wait for a thread of the parent's: an orphan
 * (common/os/fork.h) forgets its parent first. */
static inline void oteli_notice_fork(void)
{
    if (OTELI_UNLIKELY(oteli_load_relaxed_64(&oteli_watched.words.mark) == 0))
        oteli_fork_notice();
}

/* The generation of the SDK whose queue has no room; 0: none. The thread that finds the
 * queue full sets it, and looks at the queue once more; the thread that makes room clears it. So a
 * thread that drops spans only reads it. */
OTELI_INTERNAL_API extern uint64_t oteli_full;

/* The SDK behind oteli_generation; only between oteli_sdk_borrow and _return. */
extern struct oteli_sdk *oteli_sdk_current;

OTELI_INTERNAL_API void oteli_sdk_install(struct oteli_sdk *sdk);
OTELI_INTERNAL_API void oteli_sdk_uninstall(void);

/* The generation of the SDK that was uninstalled last in this process; 0: none was. */
uint64_t oteli_sdk_stopped(void);

/* In a forked child, where oteli_generation is OTELI_REVIVE: let the SDK come back, or not.
 * App threads. */
void oteli_sdk_revive(void);

/* The slot's part of oteli_sdk_install, and of what a forked child forgets. */
void oteli_sdk_put(struct oteli_sdk *sdk);
void oteli_sdk_forget(void);

/* After it was uninstalled: wait until each thread has been outside of its functions. False:
 * not before the deadline, which may be 0, or this thread is inside itself. An SDK cannot be freed
 * earlier. */
OTELI_INTERNAL_API bool oteli_sdk_wait_until_left(uint64_t deadline_ns);

/* Whether this SDK's worker is marked as asleep. */
OTELI_INTERNAL_API bool oteli_sdk_is_asleep(const struct oteli_sdk *sdk);

/* Mark the worker asleep without a timer, and awake. True: this call changed it. */
OTELI_INTERNAL_API bool oteli_sdk_set_asleep(const struct oteli_sdk *sdk, bool asleep);

#endif
