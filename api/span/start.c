/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/start.c - start spans: the first half of the hot path; end.c has the other.
 *
 * App threads. An entered span is a place on its thread's stack. Entering it is: one
 * thread-local access, one comparison that covers every unusual state, ids, the name, and
 * the clock. scripts/bench.sh span measures what it costs.
 *
 * The fast path marks the state busy. Whatever it cannot do it finds out before it has changed
 * anything that counts; then it leaves the start to enter_under, and that, with the state free
 * again, to start_slow.c. So it calls nothing, and the compiler keeps everything in registers that
 * need not be saved. */
#include "api/active/fast_attribute.h"
#include "api/record/span_encoder.h"
#include "api/span/start_slow.h"
#include "api/span/start_steps.h"
#include "api/thread/detached_pool.h"
#include "api/thread/line_writer.h"
#include "api/thread/thread_state.h"
#include "common/base/ratio.h"
#include "common/clock/clock.h"
#include "common/clock/counter.h"
#include "common/text/utf8.h"

/* What the sampler says to the thread's next root, whose trace id is known before it is made. */
static OTELI_INLINE unsigned decision_of_root(const struct oteli_thread *thread)
{
    const unsigned decision = thread->decide[OTELI_PARENT_NONE];
    if (OTELI_LIKELY(decision != OTELI_DECIDE_RATIO))
        return decision;
    struct oteli_random next = thread->random;
    uint64_t second;
    (void)oteli_random_pair(&next, &second);
    return oteli_ratio_number(second) < thread->ratio_below ? OTELI_DECIDE_SAMPLE
                                                            : OTELI_DECIDE_DROP;
}

/* What it says to a child of this parent; where that has something to hand on that must be looked
 * up, something that is not simple. */
static OTELI_INLINE unsigned decision_under(const struct oteli_thread *thread,
                                            const otel_span *parent)
{
    if (parent->opaque[2] == 0)
        return decision_of_root(thread);
    if ((parent->opaque[3] & (OTELI_REF_SPECIAL | OTELI_REF_DEFERRED)) != 0)
        return OTELI_DECIDE_SLOW_PATH;
    return thread->decide[oteli_span_kind_of_decided(parent->opaque[3])];
}

/* The same with the parent of these options: something that is not simple where that is in another
 * context than what is current. */
static OTELI_INLINE unsigned decision_in(const struct oteli_thread *thread, const otel_span *parent,
                                         const otel_span_options *options)
{
    return oteli_span_context_to_put(thread, options) == NULL ? decision_under(thread, parent)
                                                              : (unsigned)OTELI_DECIDE_SLOW_PATH;
}

/* Most parents: nothing is to be handed on but that they are sampled, of a random trace id. */
static OTELI_INLINE bool is_usual(const struct oteli_active_span *parent)
{
    const uint64_t asked =
        OTELI_REF_SPECIAL | OTELI_REF_REMOTE | OTELI_REF_SAMPLED | OTELI_REF_INHERITED;
    return (parent->self.opaque[3] & asked) == (OTELI_REF_SAMPLED | OTELI_REF_RANDOM);
}

/* The fast path has marked the state busy, and finds that it cannot go on. */
static OTELI_NOINLINE void let_go_and_enter(otel_span *span, otel_tracer *tracer, const char *name,
                                            size_t name_length, const otel_span_options *options,
                                            struct oteli_thread *thread)
{
    oteli_thread_leave_call(thread);
    oteli_span_enter_slow(span, tracer, name, name_length, options);
}

/* The same where the current span is a leaf, with attributes or a name of an unusual length. */
static OTELI_NOINLINE void take_back_and_enter(otel_span *span, otel_tracer *tracer,
                                               const char *name, size_t name_length,
                                               const otel_span_options *options,
                                               struct oteli_thread *thread)
{
    oteli_thread_take_back(thread);
    oteli_thread_leave_call(thread);
    otel_span_enter_p(span, tracer, name, name_length, options);
}

/* The ids of a root that does not record, so that its children know that it was not sampled. The
 * span id is made of the trace id: the two are seen as a context only. */
static OTELI_INLINE void make_unsampled_root(struct oteli_thread *thread,
                                             struct oteli_identity *made)
{
    uint64_t second;
    const uint64_t first = oteli_random_pair(&thread->random, &second);
    made->trace_id = (oteli_half){first, second};
    made->span_id = oteli_random_not_zero(first ^ (second << 32 | second >> 32));
    made->ref = OTELI_REF_VALID | OTELI_REF_RANDOM;
    oteli_count(&thread->counts.unsampled[OTELI_ORIGIN_NONE], 1);
}

static OTELI_INLINE void make_unsampled(struct oteli_thread *thread, const otel_span *parent,
                                        struct oteli_identity *made)
{
    if (parent->opaque[2] == 0) {
        make_unsampled_root(thread, made);
        return;
    }
    made->trace_id = oteli_half_load(parent->opaque);
    made->span_id = oteli_random_id(&thread->random);
    made->ref = OTELI_REF_VALID | (parent->opaque[3] & OTELI_REF_INHERITED);
    oteli_span_count(thread->counts.unsampled, parent);
}

/* The last of entering a span that is not sampled. */
static OTELI_INLINE void show_unsampled(otel_span *span, struct oteli_thread *thread,
                                        struct oteli_active_span *active, uint32_t epoch,
                                        struct oteli_identity *made, uint64_t generation)
{
    active->epoch = epoch;
    active->shape[1] = 0; /* no traits */
    made->ref |= oteli_active_place_ref(active);
    oteli_span_store_identity(span, made);
    oteli_span_store_identity(&active->self, made);
    oteli_thread_raise(thread, active, &active->record);
    oteli_thread_leave_call_as(thread, generation);
}

static OTELI_INLINE void enter_unsampled_root(otel_span *span, struct oteli_thread *thread,
                                              struct oteli_active_span *active, uint64_t generation)
{
    struct oteli_identity made;
    make_unsampled_root(thread, &made);
    show_unsampled(span, thread, active, oteli_clock_epoch(), &made, generation);
}

/* Whether simple options name another parent than this one, the current span. */
static OTELI_INLINE bool is_elsewhere(const otel_span_options *options, const otel_span *current)
{
    if (options == NULL)
        return false;
    return options->root ? current->opaque[2] != 0 : options->parent != NULL;
}

/* A sampled root, or a child of this parent, whose epoch and origin are given. Its name is in its
 * place. */
static OTELI_INLINE void open_fast(struct oteli_thread *thread, struct oteli_active_span *active,
                                   const otel_span *parent, uint32_t epoch,
                                   enum oteli_origin origin, otel_tracer *tracer,
                                   size_t name_length, uint64_t traits, struct oteli_identity *made)
{
    if (OTELI_UNLIKELY(parent->opaque[2] == 0)) {
        oteli_span_set_origin(active, tracer, 0);
        oteli_span_set_shape(active, oteli_clock_epoch(), name_length, traits);
        oteli_count(&thread->counts.recorded[OTELI_ORIGIN_NONE], 1);
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* what is written now needs no register below */
        uint64_t second;
        const uint64_t first = oteli_random_pair_and_id(&thread->random, &second, &made->span_id);
        made->trace_id = (oteli_half){first, second};
    } else {
        oteli_span_set_origin(active, tracer, parent->opaque[2]);
        oteli_span_set_shape(active, epoch, name_length, traits);
        oteli_count(&thread->counts.recorded[origin], 1);
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* likewise */
        made->trace_id = oteli_half_load(parent->opaque);
        made->span_id = oteli_random_id(&thread->random);
    }
    made->ref = active->usual_ref;
}

/* What is not usual of its parent, and need not be looked up. */
static OTELI_INLINE void inherit_fast(struct oteli_active_span *active, const otel_span *parent,
                                      struct oteli_identity *made)
{
    const uint64_t parent_ref = parent->opaque[3];
    made->ref = (made->ref & ~OTELI_REF_INHERITED) | (parent_ref & OTELI_REF_INHERITED);
    active->traits.wire_flags = (uint16_t)oteli_span_wire_flags_of(parent_ref, parent_ref);
}

/* The kind of simple options, as it is on the wire. */
static OTELI_INLINE uint8_t wire_kind_of(const otel_span_options *options)
{
    return (uint8_t)((options != NULL ? options->kind : OTEL_SPAN_KIND_INTERNAL) + 1);
}

/* open_fast under any parent that has nothing to be looked up. */
static OTELI_INLINE void open_under(struct oteli_thread *thread, struct oteli_active_span *active,
                                    const otel_span *parent, otel_tracer *tracer,
                                    size_t name_length, uint64_t traits,
                                    struct oteli_identity *made)
{
    open_fast(thread, active, parent, oteli_span_epoch_under(thread, parent),
              oteli_ref_is_remote(parent->opaque[3]) ? OTELI_ORIGIN_REMOTE : OTELI_ORIGIN_LOCAL,
              tracer, name_length, traits, made);
    if (parent->opaque[2] != 0)
        inherit_fast(active, parent, made);
}

/* Room for attributes of a leaf, at least for one of those that go the short way; its name may be
 * copied as if it were as long as it may be. */
enum { LEAF_BESIDE = OTELI_RAW_PADDED + OTELI_NAME_INLINE, LEAF_LEAST = OTELI_SHORT_ROOM };

static OTELI_INLINE int32_t leaf_room(const struct oteli_thread *thread)
{
    return (int32_t)thread->line_end - (int32_t)thread->used - (int32_t)LEAF_BESIDE;
}

/* Where the name of a leaf goes, which gets `room`: into the line, behind the last record. */
static OTELI_INLINE void *lend_line(const struct oteli_thread *thread,
                                    struct oteli_active_span *active, size_t name_length,
                                    int32_t room)
{
    uint8_t *name = oteli_line_raw(thread->line, thread->used)->name;
    oteli_active_lend(active, name + name_length, (size_t)room);
    return name;
}

/* The same for any name that a raw record can have, which is copied there. */
static OTELI_INLINE bool lend_line_and_name(const struct oteli_thread *thread,
                                            struct oteli_active_span *active, const char *name,
                                            size_t length, int32_t room)
{
    if (length > OTELI_RAW_NAME_MOST)
        return false;
    if (length > OTELI_NAME_INLINE)
        room -= (int32_t)(length - OTELI_NAME_INLINE);
    if (room < LEAF_LEAST)
        return false;
    void *at = lend_line(thread, active, length, room);
    return OTELI_LIKELY(oteli_saw_ascii(oteli_move(at, name, length))) ||
           oteli_utf8_valid_prefix(at, length) == length;
}

static OTELI_INLINE void set_attributes_fast(struct oteli_thread *thread,
                                             struct oteli_active_span *active,
                                             const otel_span_options *options)
{
    if (options == NULL || options->attributes == NULL)
        return;
    oteli_active_set_many(active, &thread->limits, options->attributes, options->attribute_count);
    oteli_span_warn(active);
}

/* Show it, with the attributes of simple options: the last of entering. */
static OTELI_INLINE void show_fast(otel_span *span, struct oteli_thread *thread,
                                   struct oteli_active_span *active,
                                   const otel_span_options *options,
                                   const struct oteli_identity *made)
{
    set_attributes_fast(thread, active, options);
    oteli_span_store_identity(span, made);
    oteli_span_store_identity(&active->self, made);
    active->start = oteli_counter();
    oteli_thread_raise(thread, active, &active->record);
    oteli_thread_leave_call(thread);
}

/* Where options name the parent, or it is not usual; where the span may not be sampled; where there
 * is no room in the line; or where the name is long, empty or not ASCII. The state is busy. */
static OTELI_NOINLINE OTELI_HOT void enter_under(otel_span *span, otel_tracer *tracer,
                                                 const char *name, size_t name_length,
                                                 const otel_span_options *options,
                                                 struct oteli_thread *thread)
{
    oteli_thread_take_back(thread);
    struct oteli_active_span *active = thread->top + 1;
    const otel_span *parent = oteli_span_parent_asked(thread, options);
    const unsigned decision = decision_in(thread, parent, options);
    struct oteli_identity made;
    if (decision == OTELI_DECIDE_DROP) {
        make_unsampled(thread, parent, &made);
        show_unsampled(span, thread, active, oteli_span_epoch_under(thread, parent), &made,
                       thread->generation);
        return;
    }
    if (OTELI_UNLIKELY(decision != OTELI_DECIDE_SAMPLE)) {
        let_go_and_enter(span, tracer, name, name_length, options, thread);
        return;
    }
    const uint8_t wire_kind = wire_kind_of(options);
    const int32_t room = leaf_room(thread);
    const bool is_leaf = room >= LEAF_LEAST;
    if (OTELI_UNLIKELY(!(is_leaf ? lend_line_and_name(thread, active, name, name_length, room)
                                 : oteli_span_put_short_name(active->name, name, name_length)))) {
        let_go_and_enter(span, tracer, name, name_length, options, thread);
        return;
    }
    open_under(thread, active, parent, tracer, name_length,
               is_leaf ? oteli_leaf_traits(wire_kind) : oteli_usual_traits(wire_kind), &made);
    if (!is_leaf)
        oteli_active_begin_own(active);
    show_fast(span, thread, active, options, &made);
}

/* A root about which the sampler has no fixed decision: mostly a ratio's. The state is busy. */
static OTELI_NOINLINE OTELI_HOT void enter_by_ratio(otel_span *span, otel_tracer *tracer,
                                                    const char *name, size_t name_length,
                                                    const otel_span_options *options,
                                                    struct oteli_thread *thread)
{
    if (decision_of_root(thread) == OTELI_DECIDE_DROP)
        enter_unsampled_root(span, thread, thread->top + 1, thread->generation);
    else
        enter_under(span, tracer, name, name_length, options, thread);
}

/* The fast path itself. `options` are simple. */
static OTELI_INLINE void enter_fast(otel_span *span, otel_tracer *tracer, const char *name,
                                    size_t name_length, const otel_span_options *options)
{
    struct oteli_thread *thread = oteli_self;
    const uint64_t generation = thread->fast;
    /* Nothing is under way, and the state fits the SDK. */
    if (OTELI_UNLIKELY(!oteli_is_relaxed_64(&oteli_fast_generation, generation))) {
        oteli_span_enter_slow(span, tracer, name, name_length, options);
        return;
    }
    oteli_thread_mark_busy(thread);
    struct oteli_active_span *active = thread->top;
    if (OTELI_UNLIKELY(active == thread->last)) {
        let_go_and_enter(span, tracer, name, name_length, options, thread);
        return;
    }
    active++;
    OTELI_OPAQUE(active); /* one register for both places */
    struct oteli_active_span *parent = active - 1;
    if (is_elsewhere(options, &parent->self)) {
        enter_under(span, tracer, name, name_length, options, thread);
        return;
    }
    if (OTELI_LIKELY(parent->self.opaque[2] != 0)) {
        if (OTELI_UNLIKELY(!is_usual(parent)) ||
            OTELI_UNLIKELY(thread->decide[OTELI_PARENT_LOCAL_SAMPLED] != OTELI_DECIDE_SAMPLE)) {
            enter_under(span, tracer, name, name_length, options, thread);
            return;
        }
        if (OTELI_UNLIKELY(parent->traits.is_lent)) {
            if (OTELI_UNLIKELY(!oteli_active_is_name_only(parent))) {
                take_back_and_enter(span, tracer, name, name_length, options, thread);
                return;
            }
            oteli_active_take_name_back(parent);
        }
    } else if (OTELI_UNLIKELY(thread->decide[OTELI_PARENT_NONE] != OTELI_DECIDE_SAMPLE)) {
        if (thread->decide[OTELI_PARENT_NONE] == OTELI_DECIDE_DROP)
            enter_unsampled_root(span, thread, active, generation);
        else
            enter_by_ratio(span, tracer, name, name_length, options, thread);
        return;
    }
    const int32_t room = leaf_room(thread);
    if (OTELI_UNLIKELY(room < LEAF_LEAST)) {
        enter_under(span, tracer, name, name_length, options, thread);
        return;
    }
    void *at = lend_line(thread, active, name_length, room);
    if (OTELI_UNLIKELY(!oteli_span_put_short_name(at, name, name_length))) {
        enter_under(span, tracer, name, name_length, options, thread);
        return;
    }
    struct oteli_identity made;
    open_fast(thread, active, &parent->self, parent->epoch, OTELI_ORIGIN_LOCAL, tracer, name_length,
              oteli_leaf_traits(wire_kind_of(options)), &made);
    show_fast(span, thread, active, options, &made);
}

/* Options that say nothing but the kind, attributes and the parent. */
static inline bool are_simple(const otel_span_options *options)
{
    return options->links == NULL && options->start_ns == 0 && !oteli_hold_is_wanted(options) &&
           (unsigned)options->kind <= OTEL_SPAN_KIND_CONSUMER;
}

static OTELI_NOINLINE OTELI_HOT void enter_with(otel_span *span, otel_tracer *tracer,
                                                const char *name, size_t name_length,
                                                const otel_span_options *options)
{
    if (are_simple(options))
        enter_fast(span, tracer, name, name_length, options);
    else
        oteli_span_enter_slow(span, tracer, name, name_length, options);
}

OTELI_HOT void otel_span_enter_p(otel_span *span, otel_tracer *tracer, const char *name,
                                 size_t name_length, const otel_span_options *options)
{
    if (OTELI_LIKELY(options == NULL))
        enter_fast(span, tracer, name, name_length, NULL);
    else
        enter_with(span, tracer, name, name_length, options);
}

/* The last of starting a detached span: others may find it. */
static OTELI_INLINE void publish_fast(otel_span *span, struct oteli_thread *thread,
                                      struct oteli_active_span *active,
                                      const struct oteli_identity *made)
{
    active->start = oteli_counter();
    oteli_span_store_identity(span, made);
    active->generation = thread->generation;
    oteli_detached_publish(active, span);
    oteli_thread_leave_call(thread);
}

/* The slot of an ended span that is at hand, with this name, and without attributes; NULL: there is
 * none, or the name takes longer. It is still at hand. */
static OTELI_INLINE struct oteli_active_span *slot_at_hand(const struct oteli_thread *thread,
                                                           const char *name, size_t name_length)
{
    const uint32_t count = thread->detached_count;
    struct oteli_active_span *active = count != 0 ? thread->detached[count - 1] : NULL;
    if (OTELI_UNLIKELY(active == NULL) ||
        OTELI_UNLIKELY(!oteli_span_put_short_name(active->name, name, name_length)))
        return NULL;
    oteli_active_begin_own(active);
    return active;
}

/* A detached span with simple options, or without. One that is not sampled needs no slot: the ids
 * in the handle are the span. */
static OTELI_NOINLINE OTELI_HOT void start_under(otel_span *span, otel_tracer *tracer,
                                                 const char *name, size_t name_length,
                                                 const otel_span_options *options)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(thread->fast != oteli_load_relaxed_64(&oteli_fast_generation)) ||
        (options != NULL && !are_simple(options))) {
        oteli_span_start_slow(span, tracer, name, name_length, options);
        return;
    }
    oteli_thread_mark_busy(thread);
    const otel_span *parent = oteli_span_parent_asked(thread, options);
    const unsigned decision = decision_in(thread, parent, options);
    struct oteli_active_span *active = NULL;
    struct oteli_identity made;
    if (decision == OTELI_DECIDE_DROP) {
        make_unsampled(thread, parent, &made);
        oteli_span_store_identity(span, &made);
        oteli_thread_leave_call(thread);
        return;
    }
    if (decision == OTELI_DECIDE_SAMPLE)
        active = slot_at_hand(thread, name, name_length);
    if (OTELI_UNLIKELY(active == NULL)) {
        oteli_thread_leave_call(thread);
        oteli_span_start_slow(span, tracer, name, name_length, options);
        return;
    }
    thread->detached_count--;
    open_under(thread, active, parent, tracer, name_length,
               oteli_usual_traits(wire_kind_of(options)), &made);
    set_attributes_fast(thread, active, options);
    publish_fast(span, thread, active, &made);
}

/* A child of a usual parent, or a root, without options. */
static OTELI_INLINE bool start_fast(otel_span *span, otel_tracer *tracer, const char *name,
                                    size_t name_length)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(thread->fast != oteli_load_relaxed_64(&oteli_fast_generation)))
        return false;
    oteli_thread_mark_busy(thread);
    const struct oteli_active_span *parent = thread->top;
    struct oteli_active_span *active = NULL;
    if (parent->self.opaque[2] == 0
            ? thread->decide[OTELI_PARENT_NONE] == OTELI_DECIDE_SAMPLE
            : is_usual(parent) && thread->decide[OTELI_PARENT_LOCAL_SAMPLED] == OTELI_DECIDE_SAMPLE)
        active = slot_at_hand(thread, name, name_length);
    if (OTELI_UNLIKELY(active == NULL)) {
        oteli_thread_leave_call(thread);
        return false;
    }
    struct oteli_identity made;
    thread->detached_count--;
    open_fast(thread, active, &parent->self, parent->epoch, OTELI_ORIGIN_LOCAL, tracer, name_length,
              oteli_usual_traits(OTEL_SPAN_KIND_INTERNAL + 1), &made);
    publish_fast(span, thread, active, &made);
    return true;
}

OTELI_HOT void otel_span_start_p(otel_span *span, otel_tracer *tracer, const char *name,
                                 size_t name_length, const otel_span_options *options)
{
    if (OTELI_UNLIKELY(options != NULL) || !start_fast(span, tracer, name, name_length))
        start_under(span, tracer, name, name_length, options);
}
