/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/start_steps.h - what every way to start a span is made of: its identity, its place, what
 * it inherits, and what its options say. For start.c and
 * finished_span.c, which put them in line.
 *
 * Threads:  the thread that starts the span. */
#ifndef OTELI_START_STEPS_H
#define OTELI_START_STEPS_H

#include "api/context/tracestate_pool.h"
#include "api/held/span_set.h"
#include "api/record/span_encoder.h"
#include "api/span/tracer.h"
#include "api/thread/detached_pool.h"
#include "api/thread/thread_state.h"
#include "common/clock/clock.h"
#include "common/clock/counter.h"

#include <string.h>

/* Why a thread has no state for a span. */
enum oteli_no_state {
    OTELI_NO_SDK,      /* none runs */
    OTELI_NOT_ENABLED, /* the program has not enabled the tracer */
    OTELI_REENTRANT,   /* a call is under way on the thread: the span is counted as lost */
    OTELI_SILENT       /* it is a thread of the SDK's own, or there is no memory */
};

/* This thread's state, marked busy, for a span of the SDK that runs now; or NULL. From inside
 * another call of this thread, which may be in the middle of changing any other counter, one stands
 * for all. */
static OTELI_INLINE struct oteli_thread *oteli_span_begin(const otel_tracer *tracer,
                                                          enum oteli_no_state *why)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(!oteli_thread_fits(thread))) {
        *why = OTELI_NO_SDK;
        if (oteli_load_acquire_64(&oteli_generation) == 0)
            return NULL;
        *why = OTELI_SILENT;
        if (!oteli_thread_is_busy(thread))
            thread = oteli_thread_is_silent() ? NULL : oteli_thread_refresh();
        if (thread == NULL)
            return NULL;
    }
    if (OTELI_UNLIKELY(thread->program.asks_tracers) && !oteli_tracer_is_enabled(thread, tracer)) {
        *why = OTELI_NOT_ENABLED;
        return NULL;
    }
    if (OTELI_LIKELY(oteli_thread_enter_call(thread)))
        return thread;
    oteli_add_full_64(&thread->counts.reentrant, 1);
    *why = OTELI_REENTRANT;
    return NULL;
}

/* Span.kind */
static inline uint8_t oteli_span_wire_kind(otel_span_kind kind)
{
    const bool is_known = kind >= OTEL_SPAN_KIND_INTERNAL && kind <= OTEL_SPAN_KIND_CONSUMER;
    return (uint8_t)((is_known ? kind : OTEL_SPAN_KIND_INTERNAL) + 1);
}

/* Copy a name that needs no second look, short and ASCII, to where there is room for
 * OTELI_NAME_INLINE bytes. */
static inline bool oteli_span_put_short_name(void *at, const char *name, size_t length)
{
    if (OTELI_LIKELY(length - 8 <= 8)) /* the most frequent lengths, before the bounds */
        return OTELI_LIKELY((oteli_move_8_twice(at, name, length) & OTELI_NOT_ASCII) == 0);
    return OTELI_LIKELY(length - 1 < OTELI_NAME_INLINE) &&
           OTELI_LIKELY(oteli_saw_ascii(oteli_move(at, name, length)));
}

static OTELI_COLD bool oteli_span_ask_sampler(struct oteli_thread *thread,
                                              const struct oteli_sampling *about)
{
    const struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    const bool sampled = sdk != NULL && sdk->sample(sdk, about);
    oteli_sdk_return(thread);
    return sampled;
}

/* What kind of parent a handle with a span id is: enum oteli_parent. */
static inline unsigned oteli_span_kind_of_decided(uint64_t ref)
{
    _Static_assert(OTELI_PARENT_REMOTE_SAMPLED == 1 + (1 | 2), "two bits behind the first kind");
    return OTELI_PARENT_LOCAL_UNSAMPLED +
           (unsigned)(ref >> OTELI_REF_FLAGS_SHIFT & OTEL_TRACE_FLAG_SAMPLED) +
           2 * (unsigned)(ref >> OTELI_REF_REMOTE_SHIFT & 1);
}

/* The same where the sender may have left the decision open (B3): this process decides, as for a
 * root. */
static inline unsigned oteli_span_kind_of_parent(uint64_t ref)
{
    return OTELI_UNLIKELY((ref & OTELI_REF_DEFERRED) != 0) ? (unsigned)OTELI_PARENT_NONE
                                                           : oteli_span_kind_of_decided(ref);
}

/* A handle being made, in registers. */
struct oteli_identity {
    oteli_half trace_id;
    uint64_t span_id;
    uint64_t ref;
};

static inline void oteli_span_store_identity(otel_span *span, const struct oteli_identity *made)
{
    oteli_half_store(span->opaque, made->trace_id);
    oteli_half_store(span->opaque + 2, (oteli_half){made->span_id, made->ref});
}

/* What identifies a child of this parent, or a root: new ids, the parent's flags of a random
 * trace id and of debugging, and no place yet. */
static OTELI_INLINE void oteli_span_identify(struct oteli_thread *thread, const otel_span *parent,
                                             uint64_t parent_id, struct oteli_identity *made)
{
    if (parent_id == 0) {
        uint64_t second;
        const uint64_t first = oteli_random_pair(&thread->random, &second);
        made->trace_id = (oteli_half){first, second};
        made->ref = OTELI_REF_RANDOM;
    } else {
        made->trace_id = oteli_half_load(parent->opaque);
        made->ref = parent->opaque[3] & OTELI_REF_INHERITED;
    }
    made->span_id = oteli_random_id(&thread->random);
}

/* Span.flags of a sampled span. */
static inline uint32_t oteli_span_wire_flags_of(uint64_t ref, uint64_t parent_ref)
{
    const uint32_t is_remote = (uint32_t)(parent_ref >> OTELI_REF_REMOTE_SHIFT) & 1;
    return (uint32_t)(ref >> OTELI_REF_FLAGS_SHIFT & OTEL_TRACE_FLAG_RANDOM) |
           OTEL_TRACE_FLAG_SAMPLED | OTELI_FLAG_HAS_IS_REMOTE | is_remote * OTELI_FLAG_IS_REMOTE;
}

/* Epoch, length of the name and traits; tracer and parent. */
static OTELI_INLINE void oteli_span_set_shape(struct oteli_active_span *active, uint32_t epoch,
                                              size_t name_length, uint64_t traits)
{
    const uint64_t first = oteli_word_of(epoch, name_length);
    oteli_half_store(active->shape, (oteli_half){first, traits});
}

static OTELI_INLINE void oteli_span_set_origin(struct oteli_active_span *active,
                                               otel_tracer *tracer, uint64_t parent_id)
{
    oteli_half_store(active->origin, (oteli_half){(uint64_t)(uintptr_t)tracer, parent_id});
}

/* The parent that options ask for, or the current span. */
static inline const otel_span *oteli_span_parent_asked(const struct oteli_thread *thread,
                                                       const otel_span_options *options)
{
    static const otel_span none;
    if (options != NULL && options->root)
        return &none;
    return options != NULL && options->parent != NULL ? &options->parent->span : &thread->top->self;
}

/* The parent: what is collected has no trace, so it can be one only for what is collected with
 * it. */
static inline const otel_span *oteli_span_parent_of(const struct oteli_thread *thread,
                                                    const otel_span_options *options, bool is_local)
{
    static const otel_span none;
    const otel_span *parent = oteli_span_parent_asked(thread, options);
    if (OTELI_UNLIKELY((parent->opaque[3] & OTELI_REF_COLLECTED) != 0) &&
        (!is_local || oteli_thread_place(thread, otel_span_ref_of(parent)) == NULL))
        return &none;
    return parent;
}

/* The context of the options if it has to become current with the span: its baggage or values are
 * others than those that are current now. */
static inline const otel_context *oteli_span_context_to_put(const struct oteli_thread *thread,
                                                            const otel_span_options *options)
{
    const bool has_one = options != NULL && !options->root && options->parent != NULL;
    return has_one && oteli_context_is_another(thread, options->parent) ? options->parent : NULL;
}

/* No other thread has the span yet, so the log can be told at once what is left out. */
static inline void oteli_span_warn(struct oteli_active_span *active)
{
    struct oteli_warning warning;
    if (active->unusual.warning == OTELI_NO_COMPLAINT)
        return;
    oteli_active_take_warning(active, &warning);
    oteli_warn_later(&warning);
}

/* Attributes, links and start of the options. */
static OTELI_COLD void oteli_span_apply_options(struct oteli_thread *thread,
                                                struct oteli_active_span *active,
                                                const otel_span_options *options)
{
    if (options->attributes != NULL)
        oteli_active_set_many(active, &thread->limits, options->attributes,
                              options->attribute_count);
    if (options->links != NULL)
        for (size_t i = 0; i < options->link_count; i++)
            oteli_active_add_link(active, &thread->limits, &options->links[i]);
    if (options->start_ns != 0) {
        active->start = options->start_ns & ~OTELI_TICKS_BIT;
        active->traits.bits |= OTELI_START_IS_GIVEN;
        active->traits.is_unusual = true;
    }
    oteli_span_warn(active);
}

/* Whether the span inherits more from its parent, or takes part in more, than most do: a debug
 * flag, attributes of the context, a held set. */
static inline bool oteli_span_is_special(const struct oteli_thread *thread, const otel_span *parent,
                                         const otel_span_options *options)
{
    if (parent->opaque[2] != 0 && (parent->opaque[3] & OTELI_REF_SPECIAL) != 0)
        return true;
    if (oteli_hold_is_wanted(options))
        return true;
    return thread->limits.roots_hold &&
           (parent->opaque[2] == 0 || oteli_ref_is_remote(parent->opaque[3]));
}

/* The epoch of a child of `parent`, which mostly is the current span or none. */
static inline uint32_t oteli_span_epoch_under(const struct oteli_thread *thread,
                                              const otel_span *parent)
{
    if (parent->opaque[2] == 0)
        return oteli_clock_epoch();
    if (OTELI_LIKELY(parent == &thread->top->self))
        return thread->top->epoch;
    return (parent->opaque[3] & OTEL_SPAN_IS_OPEN_) == 0 ? oteli_clock_epoch()
                                                         : oteli_epoch_under(thread, parent);
}

static inline bool oteli_span_is_sampled(struct oteli_thread *thread, const otel_span *parent,
                                         struct oteli_sampling *about)
{
    const unsigned kind = parent->opaque[2] != 0 ? oteli_span_kind_of_parent(parent->opaque[3])
                                                 : (unsigned)OTELI_PARENT_NONE;
    const unsigned decision = thread->decide[kind];
    return OTELI_UNLIKELY(decision == OTELI_DECIDE_ASK || decision == OTELI_DECIDE_RATIO)
               ? oteli_span_ask_sampler(thread, about)
               : decision != OTELI_DECIDE_DROP;
}

/* A span has started under this parent. */
static inline void oteli_span_count(uint64_t counts[OTELI_ORIGINS], const otel_span *parent)
{
    unsigned origin = OTELI_ORIGIN_LOCAL;
    if (parent->opaque[2] == 0)
        origin = OTELI_ORIGIN_NONE;
    else if (OTELI_UNLIKELY(oteli_ref_is_remote(parent->opaque[3])))
        origin = OTELI_ORIGIN_REMOTE;
    oteli_count(&counts[origin], 1);
}

/* Name, start and options of a span that records. */
static OTELI_INLINE void oteli_span_fill_in(struct oteli_thread *thread,
                                            struct oteli_active_span *active, const char *name,
                                            size_t name_length, const otel_span_options *options)
{
    if (OTELI_UNLIKELY(!oteli_span_put_short_name(active->name, name, name_length)))
        oteli_active_set_long_name(active, name, name_length);
    active->start = oteli_ticks();
    if (options == NULL)
        return;
    active->traits.wire_kind = oteli_span_wire_kind(options->kind);
    if (options->attributes != NULL || options->links != NULL || options->start_ns != 0)
        oteli_span_apply_options(thread, active, options);
}

#endif
