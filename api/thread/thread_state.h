/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/thread_state.h - what each thread has for itself: its current context, its stack of
 * open spans, its line, its random numbers and its counters.
 *
 * One thread-local pointer leads here. Until a thread needs state of its own it points at
 * one static, empty state that is never written and fits no SDK's generation: no
 * SDK, a thread's first span and a changed SDK are then the same cold branch.
 *
 * The stack's places hold the contexts that are current one after the other: entered spans
 * and attached contexts, in the order in which they became current. The newest one that has
 * neither ended nor been detached is the current one; `top` points at it. At the bottom is
 * a place that never leaves, with no span in it.
 *
 * States are kept in a list for ever: when a thread ends, the next new one takes its state
 * over, with a partly filled line in it. So the worker finds every line by walking the
 * list, and thread exit hands nothing over.
 *
 * Threads:  everything belongs to the owning thread, except what the comments say that
 *           others read. */
#ifndef OTELI_THREAD_STATE_H
#define OTELI_THREAD_STATE_H

#include "api/record/line.h"
#include "api/thread/context_record.h"
#include "api/thread/sdk_slot.h"
#include "common/base/random.h"
#include <otel/exporter.h>

/* What is counted of where parents come from. */
enum oteli_origin {
    OTELI_ORIGIN_LOCAL = 0,
    OTELI_ORIGIN_NONE = 1,
    OTELI_ORIGIN_REMOTE = 2,
    OTELI_ORIGINS = 3
};

/* Counted by the owner with relaxed stores, read by any thread. */
struct oteli_thread_counts {
    uint64_t ended;
    /* by enum oteli_origin */
    uint64_t recorded[OTELI_ORIGINS];    /* started, and recording */
    uint64_t unsampled[OTELI_ORIGINS];   /* started, but not recording */
    uint64_t record_only[OTELI_ORIGINS]; /* of the unsampled: recorded for processors only */

    uint64_t withheld[OTEL_WITHHELD_REASON_COUNT];
    uint64_t dropped[OTEL_DROP_REASON_COUNT]; /* never OTEL_DROP_REENTRANT, but: */
    uint64_t reentrant; /* started, ended and dropped at once; added to atomically */
};

enum { OTELI_DETACHED_CACHE = 16, OTELI_MOST_ATTACHED = 1024 };

/* Of any origin. */
static inline uint64_t oteli_count_of_origins(const uint64_t counts[OTELI_ORIGINS])
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < OTELI_ORIGINS; i++)
        sum += oteli_load_acquire_64(&counts[i]);
    return sum;
}

/* A stack of places while it is current on no thread (stack_switch.c). */
struct oteli_places {
    struct oteli_active_span *stack; /* or, while there are none, the empty state's */
    struct oteli_active_span *top;
    struct oteli_active_span *last;
    const otel_context_value *values;
    uint64_t baggage;
    uint32_t attached;
    uint32_t lowest_cover;
    uint32_t open_capacity;
    uint32_t forks;                    /* how many had been when it was current last, … */
    uint64_t generation;               /* … of which SDK its spans were, … */
    const struct oteli_thread *thread; /* … and where */
};

/* A fibre's stack (otel/fibre.h). */
struct otel_stack {
    uint32_t is_current; /* on some thread, which has the places; set by compare-and-swap */
    struct oteli_places places;
};

/* What oteli_thread.fast holds in the empty state, and while a call is under way; and the
 * generation of a state that fits no SDK. */
#define OTELI_EMPTY_STATE UINT64_MAX
#define OTELI_BUSY (UINT64_MAX - 1)
#define OTELI_NO_GENERATION (OTELI_NEVER_FAST - 1)

struct oteli_thread {
    /* of the owner: every span touches these */
    /* What the fast ways of calls compare: OTELI_BUSY inside a call, so that a signal handler does
     * not enter another; otherwise `generation`. */
    uint64_t fast;
    uint64_t generation; /* which SDK this state is made for; release, read by the worker */
    struct oteli_random random;
    struct oteli_active_span *top;  /* the current context */
    struct oteli_active_span *last; /* of the stack's places */
    struct oteli_line *line;        /* release; the worker reads it */
    uint32_t used;                  /* bytes written to the line */
    uint32_t line_end;              /* where the last record of the fast path may end */

    uint64_t quota_end; /* when as many have ended, another quota is asked for */
    uint8_t decide[OTELI_PARENT_KINDS];
    bool is_scoped; /* the current context has attributes for spans */
    struct oteli_limits limits;
    struct oteli_thread_counts counts; /* read by any thread */

    /* of the owner: now and then */
    _Alignas(OTELI_CACHELINE) struct oteli_active_span *stack; /* open_capacity places */
    struct oteli_active_span
        *attach_end; /* contexts are attached on the fast path while the top is below
                                         this one: oteli_thread_bound */
    const otel_context_value *values; /* of the current context */
    uint64_t baggage;                 /* of the current context, whose place holds it */
    uint64_t attaches;                /* the newest token: no two threads have the same */
    uint32_t attached;     /* the newest context that is: its place's distance in bytes from the
                              lowest, which is 0 and stands for none */
    uint32_t lowest_cover; /* no place below this one is a cover; 0: none is */
    uint64_t epoch_of;     /* the span that was attached last, … */
    uint32_t epoch;        /* … and the epoch of its children */
    uint32_t open_capacity;
    uint32_t quota_size;                  /* as it was given */
    uint8_t unscoped[OTELI_PARENT_KINDS]; /* what `decide` is without them */
    uint64_t ratio_below;                 /* as in oteli_sdk */
    struct otel_stack *fibre;             /* whose places are current; NULL: its own are */
    struct oteli_places own;              /* while those of a fibre are */
    otel_thread_context_record aside;     /* published while the top is written anew */
    struct oteli_buffer scratch;          /* a record for a synchronous SDK */
    struct oteli_program program;
    uint32_t in_processors;      /* how many calls of them are under way, one inside the other */
    struct oteli_ending *ending; /* the innermost detached span that is ending in them */
    uint32_t detached_count;
    struct oteli_active_span
        *detached[OTELI_DETACHED_CACHE]; /* free slots of the pool, kept at hand */

    /* of the list */
    _Alignas(OTELI_CACHELINE) uint32_t in_use; /* exchanged by the thread that takes it */
    uint32_t in_sdk;                           /* how often: oteli_sdk_borrow */
    struct oteli_thread *next;                 /* constant once in the list */
};

_Static_assert(offsetof(struct oteli_thread, quota_end) == 64, "the first cache line is full");
_Static_assert(offsetof(struct oteli_thread, counts.recorded[OTELI_ORIGIN_NONE]) == 128,
               "so is the second, and most spans write to no third");

extern struct oteli_thread oteli_empty_thread;

/* Of a context that was attached on the fast path. It is in memory, from where one instruction puts
 * it beside the other half of a pair. */
OTELI_NOT_LENT extern const struct oteli_traits oteli_simple_traits __attribute__((aligned(8)));

OTELI_NOT_LENT extern OTELI_TLS struct oteli_thread *oteli_self;

/* This thread's own state, made when there is none; NULL without memory. */
OTELI_COLD struct oteli_thread *oteli_thread_own(void);

/* Make this thread's state fit the SDK that runs now. NULL: none runs, or no memory. */
OTELI_COLD struct oteli_thread *oteli_thread_refresh(void);

/* The state of this thread for the end of a span of this generation, also after its SDK
 * has stopped; NULL: another SDK runs, or no memory. */
struct oteli_thread *oteli_thread_for_end(uint64_t generation);

/* Room for one more open span on the stack. */
OTELI_COLD bool oteli_thread_deepen(struct oteli_thread *thread);

/* Have forked children forget what is the parent's. */
void oteli_threads_watch_forks(void);

/* There are no states, and this thread's end is not told; for good: that of no thread is. */
void oteli_threads_end(bool for_good);

/* Nothing of this thread's is published any more. */
void oteli_thread_publish_nothing(const struct oteli_thread *thread);

/* The line and the quota are used up, and nothing was counted. */
void oteli_thread_count_from_zero(struct oteli_thread *thread);

/* It will not be exported. The end of a span that does not record need not look for attributes. */
void oteli_active_record_no_more(struct oteli_active_span *active);

/* How many forks this process has been through. */
OTELI_NOT_LENT extern uint32_t oteli_thread_forks;

/* The places that are current here are of before a fork: they are the parent's. */
void oteli_thread_disown(struct oteli_thread *thread);

/* Free places that are current nowhere, with all that hangs on them. */
void oteli_places_free(struct oteli_active_span *stack, uint32_t capacity);

/* They are of an SDK that has gone: none records any more. */
void oteli_thread_stop_recording(struct oteli_thread *thread);

/* After the stack, its covers or the baggage have changed: contexts are attached on the fast path
 * while the stack has no covers, no baggage and a free place, and is not so deep that
 * OTELI_MOST_ATTACHED contexts may be attached. */
static inline void oteli_thread_bound(struct oteli_thread *thread)
{
    struct oteli_active_span *const last = thread->last, *const most =
                                                             thread->stack + OTELI_MOST_ATTACHED;
    const bool is_plain = thread->lowest_cover == 0 && thread->baggage == 0;
    thread->attach_end = !is_plain ? thread->stack : last < most ? last : most;
}

/* Leave all of them; spans that are still open are lost. */
void oteli_thread_abandon(struct oteli_thread *thread);

/* The thread of an open member of a held set, or of a stretch that is collected, has ended. */
void oteli_hold_abandon(struct oteli_thread *thread, struct oteli_active_span *active);

/* The key of a context's attributes for spans, among its values (context_attributes.h). */
#define OTELI_SCOPED_KEY UINT64_MAX

static inline bool oteli_scoped_has(const otel_context_value *values)
{
    while (values != NULL && values->key != OTELI_SCOPED_KEY)
        values = values->next;
    return values != NULL;
}

/* The current context has attributes for spans, or has none any more: with them no span starts
 * the fast path. */
OTELI_COLD void oteli_thread_scope(struct oteli_thread *thread, bool is_scoped);

/* Make the places of a fibre current in place of those that are, or the thread's own (NULL). The
 * caller has claimed the fibre. */
void oteli_thread_switch(struct oteli_thread *thread, struct otel_stack *stack);

/* Free a claimed fibre, after all spans in its places are abandoned. */
void oteli_fibre_free(struct oteli_thread *thread, struct otel_stack *stack);

/* The list of all states. */
OTELI_INTERNAL_API struct oteli_thread *oteli_threads(void);

/* How many states belong to living threads now. */
uint32_t oteli_threads_alive(void);

/* This thread is the SDK's own: what it calls of the program's, an exporter for instance, starts no
 * spans. They would be about exporting, and would have to be exported in turn. */
OTELI_INTERNAL_API void oteli_thread_silence(void);
bool oteli_thread_is_silent(void);

/* An exporter that was given up may still look at lines: their memory stays when the process
 * ends. */
OTELI_INTERNAL_API void oteli_api_keep_memory(void);

/* Free every state, pool and table of the API: no other thread may trace. */
OTELI_INTERNAL_API void oteli_api_reset(void);

static inline bool oteli_thread_fits(const struct oteli_thread *thread)
{
    return thread->generation == oteli_load_relaxed_64(&oteli_generation);
}

static inline bool oteli_thread_is_busy(const struct oteli_thread *thread)
{
    return thread->fast == OTELI_BUSY;
}

/* Calls of one thread do not nest, except from a signal handler; then the inner one is
 * refused. Only this thread and its handlers look at it: no ordering but the compiler's.
 *
 * Before, a handler may go so deep that the stack is moved: where a place is has to be found
 * out in here. */
static inline void oteli_thread_mark_busy(struct oteli_thread *thread)
{
    thread->fast = OTELI_BUSY;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Of what `fast` holds: whether no call is under way, and the state is a thread's own. */
static OTELI_INLINE bool oteli_thread_may_begin(uint64_t fast)
{
    return fast < OTELI_BUSY;
}

static inline bool oteli_thread_enter_call(struct oteli_thread *thread)
{
    if (OTELI_UNLIKELY(!oteli_thread_may_begin(thread->fast)))
        return false;
    oteli_thread_mark_busy(thread);
    return true;
}

static OTELI_INLINE void oteli_thread_leave_call_as(struct oteli_thread *thread,
                                                    uint64_t generation)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->fast = generation;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void oteli_thread_leave_call(struct oteli_thread *thread)
{
    oteli_thread_leave_call_as(thread, thread->generation);
}

/* Spans end and are lost; they take nothing from the quota. */
static inline void oteli_thread_lose(struct oteli_thread *thread, otel_drop_reason reason,
                                     uint64_t count)
{
    thread->quota_end += count;
    oteli_count(&thread->counts.ended, count);
    oteli_count(&thread->counts.dropped[reason], count);
}

/* Spans end, and are not to be exported. */
static inline void oteli_thread_withhold(struct oteli_thread *thread, otel_withheld_reason reason,
                                         uint64_t count)
{
    thread->quota_end += count;
    oteli_count(&thread->counts.ended, count);
    oteli_count(&thread->counts.withheld[reason], count);
}

/* The place of an attached context. The lowest has neither values nor baggage. */
static inline struct oteli_active_span *oteli_thread_attached(const struct oteli_thread *thread,
                                                              uint32_t attached)
{
    return (struct oteli_active_span *)(void *)((char *)thread->stack + attached);
}

/* The place of the newest attached context, or the lowest one. */
static inline struct oteli_active_span *oteli_thread_newest_attached(
    const struct oteli_thread *thread)
{
    return oteli_thread_attached(thread, thread->attached);
}

/* In bytes from the lowest place. */
static inline uint32_t oteli_thread_distance(const struct oteli_thread *thread,
                                             const struct oteli_active_span *active)
{
    return (uint32_t)((const char *)active - (const char *)thread->stack);
}

/* A place that repeats the context of one further down, over spans that are still open. */
static inline bool oteli_active_is_cover(const struct oteli_active_span *active)
{
    return (active->self.opaque[3] & OTELI_REF_ATTACHED) != 0 &&
           (active->traits.bits & OTELI_IS_ATTACHED) == 0 && active->below != OTELI_NOT_A_COVER;
}

/* The place of a stretch that is being collected (collect.c). */
static inline bool oteli_active_is_stretch(const struct oteli_active_span *active)
{
    const uint64_t both = OTELI_REF_COLLECTED | OTELI_REF_ATTACHED;
    return (active->self.opaque[3] & both) == both && active->below == OTELI_NOT_A_COVER &&
           active->hold != 0;
}

/* It has been left, and is not gone. */
static inline bool oteli_active_is_dead(const struct oteli_active_span *active)
{
    return (active->self.opaque[3] & OTELI_REF_DEAD) != 0;
}

/* Whether a place only mentions its span: an attached context, or a cover of one. A stretch
 * that is being collected looks like one, but is what handles that name it mean. */
static inline bool oteli_active_is_mention(const struct oteli_active_span *active)
{
    return (active->self.opaque[3] & OTELI_REF_ATTACHED) != 0 &&
           ((active->self.opaque[3] & OTELI_REF_COLLECTED) == 0 ||
            (active->traits.bits & OTELI_IS_ATTACHED) != 0 || active->below != OTELI_NOT_A_COVER);
}

/* The place on this thread's stack that a handle names, also that of a stretch being
 * collected; NULL: it is not there. */
static inline struct oteli_active_span *oteli_thread_place(const struct oteli_thread *thread,
                                                           otel_span_ref span)
{
    struct oteli_active_span *active = thread->stack + oteli_ref_index(span.place);
    if (oteli_ref_where(span.place) != OTELI_SPAN_ON_STACK || active > thread->top ||
        active->self.opaque[2] != span.id || oteli_active_is_mention(active))
        return NULL;
    return active;
}

/* The place of a span that is open on this thread's stack; NULL: it is not. */
static inline struct oteli_active_span *oteli_thread_find(const struct oteli_thread *thread,
                                                          otel_span_ref span)
{
    struct oteli_active_span *active = oteli_thread_place(thread, span);
    return active != NULL && (active->self.opaque[3] & OTELI_REF_OF_STACK) == 0 ? active : NULL;
}

/* The top becomes `active`, and then what is published `record`, in this order. */
static OTELI_INLINE void oteli_thread_show(struct oteli_thread *thread,
                                           struct oteli_active_span *active,
                                           const otel_thread_context_record *record)
{
    thread->top = active;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    otel_thread_ctx_v1 = record;
}

/* A place has been written above the top, which is no leaf, and keeps what is published until now:
 * mostly what it kept the last time, and a comparison need not be waited for. */
static OTELI_INLINE void oteli_thread_raise(struct oteli_thread *thread,
                                            struct oteli_active_span *active,
                                            const otel_thread_context_record *record)
{
    if (OTELI_UNLIKELY(active[-1].shown != otel_thread_ctx_v1))
        active[-1].shown = otel_thread_ctx_v1;
    oteli_thread_show(thread, active, record);
}

/* Before anything is written to the line, or another stack becomes current: the top is no leaf from
 * now on. */
static inline void oteli_thread_take_back(struct oteli_thread *thread)
{
    if (OTELI_UNLIKELY(thread->top->traits.is_lent))
        oteli_active_take_back(thread->top);
}

/* oteli_thread_raise for any place, above any. */
static OTELI_INLINE void oteli_thread_push(struct oteli_thread *thread,
                                           struct oteli_active_span *active)
{
    oteli_thread_take_back(thread);
    oteli_thread_raise(thread, active, oteli_record_of(active));
}

/* The places above another are left: what was published before is again. */
static OTELI_INLINE void oteli_thread_return(struct oteli_thread *thread,
                                             struct oteli_active_span *active)
{
    oteli_thread_show(thread, active, active->shown);
}

/* A place that may be the top gets another handle, epoch apart: what is shown is that of before or
 * that of after. */
void oteli_thread_rewrite(struct oteli_thread *thread, struct oteli_active_span *active,
                          const otel_span *self);

/* A span that is entered in a context of its own (otel_span_options.parent) has that context in the
 * place below its own. It is detached when the span's place is left: what it was attached with is
 * no token that is given out. */
#define OTELI_TOKEN_OF_SPAN UINT64_MAX

/* Whether to enter a span in this context changes more than the current span. */
static inline bool oteli_context_is_another(const struct oteli_thread *thread,
                                            const otel_context *context)
{
    return context->values != thread->values || context->baggage != thread->baggage;
}

/* Put a context, which a span is about to be entered in, on top; there is a place for it. */
void oteli_context_put(struct oteli_thread *thread, const otel_context *context);

static inline bool oteli_context_is_of_span(const struct oteli_active_span *active)
{
    return (active->traits.bits & OTELI_IS_ATTACHED) != 0 && active->token == OTELI_TOKEN_OF_SPAN;
}

/* Room for `count` places above the top, one or two. */
static inline bool oteli_thread_has_room(struct oteli_thread *thread, unsigned count)
{
    return OTELI_LIKELY(thread->last - thread->top >= (ptrdiff_t)count) ||
           oteli_thread_deepen(thread);
}

/* Make a context current in a place that is the top, or the one above it. */
void oteli_place_attach(struct oteli_thread *thread, struct oteli_active_span *active,
                        const otel_context *context, uint64_t token, uint32_t epoch);

/* Leave the place of a context. `in_order`: what was current before is put on top of the spans that
 * were entered in it and are open. */
void oteli_place_detach(struct oteli_thread *thread, struct oteli_active_span *active,
                        bool in_order);

/* A place of the stack is left, and the context that was put for it. If it is not the top it stays
 * until those above it have left too. */
void oteli_thread_leave(struct oteli_thread *thread, struct oteli_active_span *active);

/* A context is detached, or a stretch has ended, while spans that were entered in it are open. They
 * stay where they are until they end; what was current before is put on top of them. Where the
 * stack is deep they are abandoned: a program that never ends them would fill it. */
void oteli_thread_cover(struct oteli_thread *thread, const struct oteli_active_span *left);

/* Make the newest place that says what is current the top, without publishing it. */
void oteli_thread_settle(struct oteli_thread *thread);

/* Let a cover repeat the place `below` it, or the newest under that which may be current. */
void oteli_thread_show_again(struct oteli_thread *thread, struct oteli_active_span *cover);

/* The epoch of what is about to be a child of `parent`: the parent's if that is open in this
 * process. An open detached span is a parent from now on, as otel_span_end_unless_shorter asks. */
uint32_t oteli_epoch_under(const struct oteli_thread *thread, const otel_span *parent);

/* Wake the worker if it sleeps: after something was committed. App threads, not busy. */
OTELI_COLD void oteli_wake_slow(void);
static inline void oteli_wake(void)
{
    if (OTELI_UNLIKELY(!oteli_is_relaxed_64(&oteli_asleep, 0)))
        oteli_wake_slow();
}

/* Keep the SDK alive while this thread is inside one of its functions. NULL: gone. May be
 * nested, and each has its return. */
struct oteli_sdk *oteli_sdk_borrow(struct oteli_thread *thread);
void oteli_sdk_return(struct oteli_thread *thread);

#endif
