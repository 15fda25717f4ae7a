/* SPDX-License-Identifier: Apache-2.0 */
/* api/span.c - start spans: the first half of the hot path; end.c has the other.
 *
 * App threads. A local span is a slot on its thread's stack. Starting it is: one
 * thread-local access, one comparison that covers every unusual state, an id, the ids of
 * the parent, the name, and the clock. scripts/bench.sh span measures what it costs.
 * Everything rare is in a function ending in _slow. */
#include "api/detached.h"
#include "api/thread.h"
#include "api/tracer.h"
#include "api/tracestate.h"
#include "common/clock.h"
#include "common/copy.h"

static inline enum oteli_parent kind_of_parent(const otel_span *parent)
{
    if (parent->opaque[2] == 0)
        return OTELI_PARENT_NONE;
    const unsigned sampled = oteli_ref_flags(parent->opaque[3]) & OTEL_TRACE_FLAG_SAMPLED;
    const unsigned base = oteli_ref_is_remote(parent->opaque[3]) ? OTELI_PARENT_REMOTE_UNSAMPLED
                                                                 : OTELI_PARENT_LOCAL_UNSAMPLED;
    return (enum oteli_parent)(base + sampled);
}

static inline void set_name(struct oteli_open *open, const char *name, size_t length)
{
    if (OTELI_LIKELY(length <= OTELI_NAME_INLINE) &&
        OTELI_LIKELY((oteli_move(open->name, name, length) & OTELI_NOT_ASCII) == 0)) {
        open->name_length = (uint32_t)length;
        return;
    }
    oteli_open_set_long_name(open, name, length);
}

static OTELI_COLD bool ask_sampler(struct oteli_thread *thread, const struct oteli_sampling *about)
{
    const struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    const bool sampled = sdk != NULL && sdk->sample(sdk, about);
    oteli_sdk_return(thread);
    return sampled;
}

/* The ids of a new span, its flags, and whether it records; in the order that the
 * specification asks for: trace id, sampler, span id. */
static OTELI_INLINE void identify(struct oteli_thread *thread, struct oteli_open *open,
                                  const otel_span *parent, const char *name, size_t name_length,
                                  const otel_span_options *options)
{
    const enum oteli_parent kind = kind_of_parent(parent);
    uint8_t flags = OTEL_TRACE_FLAG_RANDOM;
    if (kind == OTELI_PARENT_NONE) {
        const uint64_t first = oteli_random_next(&thread->random);
        const uint64_t second = oteli_random_next(&thread->random);
        oteli_half_set(open->trace_id, first, second | (first == 0)); /* never all zero */
        open->parent_id = 0;
        open->parent_is_remote = false;
        open->tracestate = 0;
    } else {
        oteli_half_copy(open->trace_id, parent->opaque);
        open->parent_id = parent->opaque[2];
        flags = oteli_ref_flags(parent->opaque[3]) & OTEL_TRACE_FLAG_RANDOM;
        open->parent_is_remote = oteli_ref_is_remote(parent->opaque[3]);
        open->tracestate = oteli_ref_tracestate(parent->opaque[3]);
        if (OTELI_UNLIKELY(open->tracestate != 0)) {
            open->tracestate = oteli_tracestate_retain(open->tracestate);
            open->is_unusual = true; /* so that it is released */
        }
    }
    unsigned decision = thread->decide[kind];
    if (OTELI_UNLIKELY(decision == OTELI_DECIDE_ASK)) {
        const struct oteli_sampling about = {(const uint8_t *)open->trace_id, parent, name,
                                             name_length, options};
        decision = ask_sampler(thread, &about);
    }
    uint64_t span_id = oteli_random_next(&thread->random);
    if (OTELI_UNLIKELY(span_id == 0))
        span_id = oteli_random_id(&thread->random);
    oteli_store_relaxed_64(&open->span_id, span_id);
    open->recording = decision != OTELI_DECIDE_DROP;
    open->flags = (uint8_t)(flags | (open->recording ? OTEL_TRACE_FLAG_SAMPLED : 0));
}

/* Fill in a slot. What an unsampled span does not need is not touched. */
static OTELI_INLINE void open_span(struct oteli_thread *thread, struct oteli_open *open,
                                   otel_tracer *tracer, const char *name, size_t name_length,
                                   const otel_span *parent, const otel_span_options *options)
{
    identify(thread, open, parent, name, name_length, options);
    oteli_count(&thread->counts.started, 1);
    open->epoch = oteli_clock_epoch();
    if (!open->recording) {
        oteli_count(&thread->counts.unsampled, 1);
        return;
    }
    open->tracer = OTELI_LIKELY(tracer != NULL) ? tracer : &oteli_tracer_nameless;
    open->kind = OTEL_SPAN_KIND_INTERNAL;
    open->attribute_count = 0;
    open->attributes.length = 0;
    set_name(open, name, name_length);
    open->start = oteli_ticks() | OTELI_TICKS_BIT;
}

static OTELI_INLINE otel_span handle_of(const struct oteli_open *open, enum oteli_span_place place,
                                        uint32_t slot)
{
    otel_span span;
    oteli_half_copy(span.opaque, open->trace_id);
    oteli_half_set(span.opaque + 2, open->span_id,
                   oteli_ref_make(open->flags, place, open->recording, slot, open->tracestate));
    return span;
}

/* The epoch of a child: its parent's if that is an open span of this process. */
static void inherit_epoch(struct oteli_thread *thread, struct oteli_open *open,
                          const otel_span *parent)
{
    const uint32_t slot = oteli_ref_slot(parent->opaque[3]);
    switch (oteli_ref_place(parent->opaque[3])) {
    case OTELI_PLACE_LOCAL:
        if (slot < thread->depth && thread->open[slot].span_id == parent->opaque[2])
            open->epoch = thread->open[slot].epoch;
        break;
    case OTELI_PLACE_DETACHED: {
        struct oteli_open *detached = oteli_detached_lock(parent);
        if (detached != NULL) {
            open->epoch = detached->epoch;
            oteli_detached_unlock(detached);
        }
        break;
    }
    case OTELI_PLACE_NOWHERE:
        break;
    }
}

/* Nobody else has the span yet, so a complaint can be logged at once. */
static OTELI_COLD void apply_options(struct oteli_thread *thread, struct oteli_open *open,
                                     const otel_span_options *options)
{
    if (!open->recording)
        return;
    if (options->kind >= OTEL_SPAN_KIND_INTERNAL && options->kind <= OTEL_SPAN_KIND_CONSUMER)
        open->kind = (uint8_t)options->kind;
    if (options->attributes != NULL)
        oteli_open_set_many(open, &thread->limits, options->attributes, options->attribute_count);
    if (options->links != NULL)
        for (size_t i = 0; i < options->link_count; i++)
            oteli_open_add_link(open, &thread->limits, &options->links[i]);
    if (options->start_ns != 0)
        open->start = options->start_ns & ~OTELI_TICKS_BIT;
    if (open->unusual.complaint != OTELI_NO_COMPLAINT) {
        struct oteli_complaint complaint;
        oteli_open_take_complaint(open, &complaint);
        oteli_complain(&complaint);
    }
}

/* The parent that options ask for, or the current span. */
static const otel_span *parent_of(const struct oteli_thread *thread,
                                  const otel_span_options *options)
{
    static const otel_span none;
    if (options == NULL)
        return &thread->current.span;
    if (options->root)
        return &none;
    return options->parent != NULL ? &options->parent->span : &thread->current.span;
}

/* Without an SDK: the parent goes on as it is, so that propagation passes through. */
static otel_span pass_on(const struct oteli_thread *thread, const otel_span_options *options)
{
    const otel_span *parent = parent_of(thread, options);
    otel_span span;
    oteli_half_copy(span.opaque, parent->opaque);
    oteli_half_set(span.opaque + 2, parent->opaque[2],
                   parent->opaque[3] & ~(OTEL_SPAN_IS_OPEN_ | OTEL_SPAN_IS_RECORDING_));
    return span;
}

/* A span that could not be had, though an SDK runs: it counts, and passes its parent on. */
static otel_span refuse(struct oteli_thread *thread, const otel_span_options *options,
                        otel_drop_reason reason)
{
    oteli_count(&thread->counts.started, 1);
    oteli_count(&thread->counts.ended, 1);
    oteli_count(&thread->counts.dropped[reason], 1);
    return pass_on(thread, options);
}

/* The same from inside another call of this thread, which may be in the middle of changing
 * any other counter: this one stands for all three. */
static otel_span refuse_reentrant(struct oteli_thread *thread, const otel_span_options *options)
{
    oteli_add_full_64(&thread->counts.reentrant, 1);
    return pass_on(thread, options);
}

/* Without an SDK a parent of the options' is current until the end, so that it is what
 * calls further down propagate: a slot that holds its ids and records nothing. */
static otel_span enter_nothing(const otel_span_options *options)
{
    otel_span span = pass_on(oteli_self, options);
    if (options == NULL || options->root || options->parent == NULL || !oteli_span_is_valid(&span))
        return span;
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || !oteli_thread_begin(thread))
        return span;
    if (thread->depth != thread->open_capacity || oteli_thread_deepen(thread)) {
        const uint32_t slot = thread->depth++;
        struct oteli_open *open = &thread->open[slot];
        oteli_store_relaxed_32(&otel_is_in_use_, 1);
        open->span_id = span.opaque[2];
        open->recording = false;
        open->epoch = oteli_clock_epoch();
        open->saved = thread->current.span;
        span.opaque[3] &= ~((uint64_t)OTELI_SLOT_MAX << OTELI_REF_SLOT_SHIFT);
        span.opaque[3] |= oteli_ref_make(0, OTELI_PLACE_LOCAL, false, slot, 0);
        thread->current.span = span;
    }
    oteli_thread_finish(thread);
    return span;
}

static OTELI_COLD otel_span enter_slow(otel_tracer *tracer, const char *name, size_t name_length,
                                       const otel_span_options *options)
{
    struct oteli_thread *thread = oteli_self;
    if (!oteli_thread_fits(thread)) {
        if (oteli_load_acquire_64(&oteli_generation) == 0)
            return enter_nothing(options);
        if (thread->busy != 0)
            return refuse_reentrant(thread, options);
        thread = oteli_thread_refresh();
        if (thread == NULL)
            return pass_on(oteli_self, options);
    }
    if (!oteli_thread_begin(thread))
        return refuse_reentrant(thread, options);
    otel_span span;
    if (thread->depth == thread->open_capacity && !oteli_thread_deepen(thread)) {
        span = refuse(thread, options, OTEL_DROP_NO_MEMORY);
    } else {
        const uint32_t slot = thread->depth++;
        struct oteli_open *open = &thread->open[slot];
        const otel_span *parent = parent_of(thread, options);
        open_span(thread, open, tracer, name, name_length, parent, options);
        inherit_epoch(thread, open, parent);
        if (options != NULL)
            apply_options(thread, open, options);
        open->saved = thread->current.span;
        span = handle_of(open, OTELI_PLACE_LOCAL, slot);
        thread->current.span = span;
    }
    oteli_thread_finish(thread);
    return span;
}

otel_span otel_span_enter_n(otel_tracer *tracer, const char *name, size_t name_length,
                            const otel_span_options *options)
{
    struct oteli_thread *thread = oteli_self;
    const uint32_t slot = thread->depth;
    if (OTELI_UNLIKELY(!oteli_thread_fits(thread) || options != NULL ||
                       slot == thread->open_capacity || !oteli_thread_begin(thread)))
        return enter_slow(tracer, name, name_length, options);
    thread->depth = slot + 1;
    struct oteli_open *open = &thread->open[slot];
    const otel_span *parent = &thread->current.span;
    open_span(thread, open, tracer, name, name_length, parent, NULL);
    if (slot != 0 && OTELI_LIKELY(open[-1].span_id == parent->opaque[2]))
        open->epoch = open[-1].epoch; /* nearly always the parent is the span below */
    else if (OTELI_UNLIKELY((parent->opaque[3] & OTEL_SPAN_IS_OPEN_) != 0))
        inherit_epoch(thread, open, parent);
    open->saved = *parent;
    const otel_span span = handle_of(open, OTELI_PLACE_LOCAL, slot);
    thread->current.span = span;
    oteli_thread_finish(thread);
    return span;
}

otel_span otel_span_start_n(otel_tracer *tracer, const char *name, size_t name_length,
                            const otel_span_options *options)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(!oteli_thread_fits(thread))) {
        if (oteli_load_acquire_64(&oteli_generation) == 0)
            return pass_on(thread, options);
        if (thread->busy != 0)
            return refuse_reentrant(thread, options);
        thread = oteli_thread_refresh();
        if (thread == NULL)
            return pass_on(oteli_self, options);
    }
    if (OTELI_UNLIKELY(!oteli_thread_begin(thread)))
        return refuse_reentrant(thread, options);
    otel_span span;
    const uint32_t slot = oteli_detached_take(thread);
    if (OTELI_UNLIKELY(slot == OTELI_DETACHED_NONE)) {
        span = refuse(thread, options, OTEL_DROP_NO_MEMORY);
    } else {
        struct oteli_open *open = oteli_detached_at(slot);
        const otel_span *parent = parent_of(thread, options);
        open_span(thread, open, tracer, name, name_length, parent, options);
        inherit_epoch(thread, open, parent);
        if (options != NULL)
            apply_options(thread, open, options);
        open->generation = thread->generation;
        span = handle_of(open, OTELI_PLACE_DETACHED, slot);
        if (!open->recording) {
            /* Nothing will ever be set or ended: the ids in the handle are the span. */
            span.opaque[3] &= ~(OTEL_SPAN_IS_OPEN_ | OTEL_SPAN_IS_RECORDING_);
            if (open->is_unusual)
                oteli_open_lighten(open);
            oteli_store_relaxed_64(&open->span_id, 0);
            oteli_detached_give(thread, slot);
        }
    }
    oteli_thread_finish(thread);
    return span;
}
