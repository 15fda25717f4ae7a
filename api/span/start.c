/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/start.c - start spans: the first half of the hot path; end.c has the other.
 *
 * App threads. An entered span is a place on its thread's stack. Entering it is: one
 * thread-local access, one comparison that covers every unusual state, ids, the name, and
 * the clock. scripts/bench.sh span measures what it costs.
 *
 * The fast path marks the state busy. Whatever it cannot do it finds out before it has changed
 * anything that counts; then it marks the state free and leaves the whole start to a function
 * ending in _slow. So it calls nothing, and the compiler keeps everything in registers that need
 * not be saved. */
#include "api/active/fast_attribute.h"
#include "api/context/tracestate_pool.h"
#include "api/held/span_set.h"
#include "api/record/span_encoder.h"
#include "api/span/context_attributes.h"
#include "api/span/processor_calls.h"
#include "api/span/start_custom.h"
#include "api/span/start_steps.h"
#include "api/span/tracer.h"
#include "api/thread/detached_pool.h"
#include "api/thread/line_writer.h"
#include "api/thread/thread_state.h"
#include "common/base/copy.h"
#include "common/clock/clock.h"
#include "common/clock/counter.h"

/* Without an SDK: the parent goes on as it is, so that propagation passes through. */
static void start_nothing(otel_span *span, const otel_span_options *options)
{
    *span = *oteli_span_parent_of(oteli_self, options, false);
    span->opaque[3] &= ~(OTEL_SPAN_IS_OPEN_ | OTEL_SPAN_IS_RECORDING_ | OTELI_REF_OF_STACK);
}

/* A span that could not be had, though an SDK runs: it counts, and passes its parent on. */
static void refuse(otel_span *span, struct oteli_thread *thread, const otel_span_options *options)
{
    oteli_span_count(thread->counts.recorded, oteli_span_parent_of(thread, options, false));
    oteli_thread_lose(thread, OTEL_DROP_NO_MEMORY, 1);
    start_nothing(span, options);
}

/* A place that repeats a parent, which records nothing: it belongs to the held set of the parent,
 * if there is one, so that its children do. */
static void repeat(struct oteli_thread *thread, struct oteli_active_span *active, otel_span *span,
                   const otel_span *parent)
{
    uint64_t *const ref = &span->opaque[3];
    const uint32_t tracestate = oteli_tracestate_retain(oteli_ref_tracestate(*ref));
    *ref &= ~(OTELI_REF_INDEX | OTELI_REF_TRACESTATE);
    *ref |=
        (oteli_active_place_ref(active) & ~OTELI_REF_VALID) | oteli_ref_of_tracestate(tracestate);
    active->traits = (struct oteli_traits){.is_unusual = tracestate != 0};
    active->epoch = oteli_epoch_under(thread, parent);
    active->hold = 0;
    if (oteli_thread_fits(thread) && !oteli_ref_is_remote(*ref))
        oteli_hold_inherit(thread, active, parent, NULL, span->opaque, ref);
    active->self = *span;
}

/* The context of the options if it has to become current with the span: its baggage or values are
 * others than those that are current now. */
static const otel_context *context_to_put(const struct oteli_thread *thread,
                                          const otel_span_options *options)
{
    const bool has_one = options != NULL && !options->root && options->parent != NULL;
    return has_one && oteli_context_is_another(thread, options->parent) ? options->parent : NULL;
}

/* Without an SDK a parent of the options' is current until the end, so that it is what
 * calls further down propagate; and so is its baggage, also where there is no parent. */
static void enter_nothing(otel_span *span, const otel_span_options *options)
{
    start_nothing(span, options);
    const otel_context *put = context_to_put(oteli_self, options);
    if (options == NULL || options->root || options->parent == NULL ||
        (!oteli_span_is_valid(span) && put == NULL))
        return;
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return;
    if (oteli_thread_has_room(thread, put != NULL ? 2 : 1)) {
        oteli_store_relaxed_32(&otel_is_in_use_, 1);
        if (put != NULL)
            oteli_context_put(thread, put);
        struct oteli_active_span *active = thread->top + 1;
        repeat(thread, active, span, &options->parent->span);
        active->traits.is_unusual |= put != NULL; /* its end takes the context away */
        oteli_thread_push(thread, active);
    }
    oteli_thread_leave_call(thread);
}

/* --- any way --- */

/* A handle's bits by enum otel_sampling_decision. */
static uint64_t bits_of(otel_sampling_decision decision)
{
    if (decision == OTEL_SAMPLING_RECORD_AND_SAMPLE)
        return OTELI_SAMPLED_AND_RECORDING;
    return decision == OTEL_SAMPLING_RECORD_ONLY ? OTEL_SPAN_IS_RECORDING_ : 0;
}

/* What callbacks say of a span, in the specification's order: the trace id, the sampler, the span
 * id. They are the program's, and samplers that a constructor of sampler.h has made. */
static OTELI_COLD void ask_program(struct oteli_thread *thread, struct oteli_active_span *active,
                                   const struct oteli_sampling *about, const otel_context *context,
                                   struct oteli_identity *made, otel_sampling_result *result)
{
    const otel_span *parent = about->parent;
    uint64_t trace_id[2];
    if (oteli_parent_id(parent) == 0 && thread->program.makes_ids &&
        oteli_custom_id(thread, trace_id, NULL)) {
        made->trace_id = oteli_half_load(trace_id);
        if (!thread->program.ids_are_random)
            made->ref &= ~OTELI_REF_RANDOM;
    }
    const struct oteli_sampling_question question = {
        .about = *about,
        .context = *context,
        .parent_kind =
            (uint8_t)(parent->opaque[2] != 0 ? oteli_span_kind_of_parent(parent->opaque[3])
                                             : OTELI_PARENT_NONE),
        .is_random = (made->ref & OTELI_REF_RANDOM) != 0};
    oteli_custom_ask(thread, &question, result);
    if (thread->program.makes_ids) {
        active->made_at = active->quiet_to = thread->random.state; /* the id does not say it */
        (void)oteli_custom_id(thread, NULL, &made->span_id);
    }
    made->ref |= bits_of(result->decision);
}

/* What follows for a place from what the callbacks have said. */
static OTELI_COLD void apply_result(struct oteli_thread *thread, struct oteli_active_span *active,
                                    const otel_span *parent, const otel_sampling_result *result,
                                    struct oteli_identity *made)
{
    if (result->has_tracestate)
        oteli_custom_tracestate(active, result, (const uint8_t *)&made->trace_id, &made->ref);
    const bool is_recording = (made->ref & OTEL_SPAN_IS_RECORDING_) != 0;
    if (is_recording && oteli_processing_is_wanted(thread)) {
        active->traits.is_unusual = true;
        active->traits.bits |= OTELI_IS_PROCESSED;
    }
    if ((made->ref & OTELI_REF_SAMPLED) != 0)
        return;
    active->traits.wire_flags &= (uint16_t)~OTEL_TRACE_FLAG_SAMPLED;
    if (is_recording) {
        active->traits.is_unusual = true;
        active->traits.bits |= OTELI_RECORD_ONLY;
        oteli_span_count(thread->counts.record_only, parent);
    }
}

/* What a child inherits beside ids, and what a root begins. */
static OTELI_COLD void inherit(struct oteli_thread *thread, struct oteli_active_span *active,
                               const otel_span *parent, const otel_span_options *options,
                               struct oteli_identity *made)
{
    const uint64_t parent_ref = parent->opaque[3];
    if ((parent_ref & OTELI_REF_TRACESTATE) != 0) {
        const uint32_t tracestate = oteli_tracestate_retain(oteli_ref_tracestate(parent_ref));
        made->ref |= oteli_ref_of_tracestate(tracestate);
        active->traits.is_unusual |= tracestate != 0; /* so that it is released */
    }
    uint64_t trace_id[2];
    memcpy(trace_id, &made->trace_id, sizeof trace_id);
    if ((made->ref & OTELI_REF_SAMPLED) != 0) {
        oteli_hold_inherit(thread, active, parent, options, trace_id, &made->ref);
    } else {
        made->ref |= parent_ref & OTELI_REF_COLLECTED; /* it has ids of no trace either */
        active->hold = 0;
    }
}

/* Fill in a place for a span of any kind. `context`: what callbacks are shown where there are any;
 * or NULL. */
static OTELI_INLINE void open_any(struct oteli_thread *thread, struct oteli_active_span *active,
                                  otel_tracer *tracer, struct oteli_sampling *about,
                                  const otel_context *context, struct oteli_identity *made)
{
    const otel_span *parent = about->parent;
    const otel_span_options *options = about->options;
    const uint64_t parent_id = oteli_parent_id(parent);
    otel_sampling_result result;
    oteli_span_identify(thread, parent, parent_id, made);
    /* Also where the parent has no ids, only this flag. */
    made->ref |= parent->opaque[3] & OTELI_REF_DEBUG;
    about->trace_id = (const uint8_t *)&made->trace_id;
    if (context != NULL)
        ask_program(thread, active, about, context, made, &result);
    else
        made->ref |= oteli_span_is_sampled(thread, parent, about) ? OTELI_SAMPLED_AND_RECORDING : 0;
    const bool is_recording = (made->ref & OTEL_SPAN_IS_RECORDING_) != 0;
    const bool is_sampled = context == NULL ? is_recording : (made->ref & OTELI_REF_SAMPLED) != 0;
    made->ref |= oteli_active_place_ref(active);
    oteli_span_set_shape(
        active, oteli_span_epoch_under(thread, parent), about->name_length,
        oteli_span_wire_flags_of(made->ref, parent_id != 0 ? parent->opaque[3] : 0),
        OTEL_SPAN_KIND_INTERNAL + 1);
    oteli_span_set_origin(active, tracer, parent_id);
    oteli_active_begin_own(active);
    if (context != NULL || OTELI_UNLIKELY(oteli_span_is_special(thread, parent, options)))
        inherit(thread, active, parent, options, made);
    oteli_span_count(is_sampled ? thread->counts.recorded : thread->counts.unsampled, parent);
    if (context != NULL)
        apply_result(thread, active, parent, &result, made);
    if (!is_recording)
        return;
    oteli_span_fill_in(thread, active, about->name, about->name_length, options);
    if (context != NULL && result.attribute_count != 0) {
        oteli_active_set_many(active, &thread->limits, result.attributes, result.attribute_count);
        oteli_span_warn(active);
    }
}

/* This thread's state, marked busy, for a span of the SDK that runs now. NULL: there is no such
 * span, and `*span` is what the caller gets instead. */
static OTELI_INLINE struct oteli_thread *begin(otel_span *span, const otel_tracer *tracer,
                                               const otel_span_options *options, bool is_entered)
{
    enum oteli_no_state why;
    struct oteli_thread *thread = oteli_span_begin(tracer, &why);
    if (OTELI_LIKELY(thread != NULL))
        return thread;
    if (is_entered && (why == OTELI_NO_SDK || why == OTELI_NOT_ENABLED))
        enter_nothing(span, options);
    else
        start_nothing(span, options);
    return NULL;
}

/* A detached span is there, for others to find. */
static OTELI_INLINE void publish(otel_span *span, struct oteli_thread *thread,
                                 struct oteli_active_span *active,
                                 const struct oteli_identity *made)
{
    oteli_span_store_identity(span, made);
    if ((made->ref & OTEL_SPAN_IS_RECORDING_) != 0) {
        active->generation = thread->generation;
        oteli_detached_publish(active, span);
    } else {
        /* Nothing will ever be set or ended: the ids in the handle are the span. */
        span->opaque[3] &= ~OTEL_SPAN_IS_OPEN_;
        oteli_tracestate_release(oteli_ref_tracestate(span->opaque[3]));
        oteli_detached_give(thread, active);
    }
}

/* Start a span of any kind, which becomes current or is detached. */
static OTELI_INLINE void start_span(otel_span *span, otel_tracer *tracer, const char *name,
                                    size_t name_length, const otel_span_options *options,
                                    bool is_entered)
{
    struct oteli_thread *const thread = begin(span, tracer, options, is_entered);
    if (thread == NULL)
        return;
    const bool has_callbacks = thread->program.has_callbacks;
    otel_context context = {0};
    const otel_context *put = is_entered ? context_to_put(thread, options) : NULL;
    struct oteli_active_span *active = NULL;
    if (!is_entered) {
        active = oteli_detached_take(thread);
    } else if (oteli_thread_has_room(thread, put != NULL ? 2 : 1)) {
        if (put != NULL)
            oteli_context_put(thread, put);
        active = thread->top + 1;
    }
    if (OTELI_UNLIKELY(active == NULL)) {
        refuse(span, thread, options);
    } else {
        struct oteli_identity made;
        const otel_span *parent = oteli_span_parent_of(thread, options, is_entered);
        struct oteli_sampling about = {NULL, parent, name, name_length, options};
        if (OTELI_UNLIKELY(has_callbacks)) {
            context = oteli_custom_context(thread, parent, options);
            open_any(thread, active, tracer, &about, &context, &made);
        } else {
            open_any(thread, active, tracer, &about, NULL, &made);
        }
        if (is_entered) {
            oteli_span_store_identity(span, &made);
            oteli_span_store_identity(&active->self, &made);
            active->traits.is_unusual |= put != NULL; /* its end takes the context away */
            oteli_thread_push(thread, active);
        } else {
            publish(span, thread, active, &made);
        }
    }
    oteli_thread_leave_call(thread);
    if (OTELI_UNLIKELY(has_callbacks))
        oteli_processing_start(span, &context);
}

static OTELI_NOINLINE void enter_any(otel_span *span, otel_tracer *tracer, const char *name,
                                     size_t name_length, const otel_span_options *options)
{
    start_span(span, tracer, name, name_length, options, true);
}

static OTELI_NOINLINE void start_any(otel_span *span, otel_tracer *tracer, const char *name,
                                     size_t name_length, const otel_span_options *options)
{
    start_span(span, tracer, name, name_length, options, false);
}

typedef void start_function(otel_span *span, otel_tracer *tracer, const char *name,
                            size_t name_length, const otel_span_options *options);

/* The context has attributes for it: as if the options had them. */
static OTELI_COLD void start_scoped(start_function *start, otel_span *span, otel_tracer *tracer,
                                    const char *name, size_t name_length,
                                    const otel_span_options *options)
{
    struct oteli_scoped scoped;
    oteli_scoped_begin(&scoped, oteli_self->values, options);
    start(span, tracer, name, name_length, &scoped.options);
    oteli_scoped_end(&scoped);
}

static OTELI_NOINLINE void enter_slow(otel_span *span, otel_tracer *tracer, const char *name,
                                      size_t name_length, const otel_span_options *options)
{
    if (OTELI_UNLIKELY(oteli_scoped_applies(oteli_self, options)))
        start_scoped(enter_any, span, tracer, name, name_length, options);
    else
        enter_any(span, tracer, name, name_length, options);
}

static OTELI_NOINLINE void start_slow(otel_span *span, otel_tracer *tracer, const char *name,
                                      size_t name_length, const otel_span_options *options)
{
    if (OTELI_UNLIKELY(oteli_scoped_applies(oteli_self, options)))
        start_scoped(start_any, span, tracer, name, name_length, options);
    else
        start_any(span, tracer, name, name_length, options);
}

/* --- the fast path --- */

/* What the sampler says to a child of this parent; where that is remote, or has something to hand
 * on that must be looked up, something that is not simple. */
static OTELI_INLINE unsigned decision_under(const struct oteli_thread *thread,
                                            const struct oteli_active_span *parent)
{
    if (parent->self.opaque[2] == 0)
        return thread->decide[OTELI_PARENT_NONE];
    switch (parent->self.opaque[3] & (OTELI_REF_SPECIAL | OTELI_REF_REMOTE | OTELI_REF_SAMPLED)) {
    case OTELI_REF_SAMPLED:
        return thread->decide[OTELI_PARENT_LOCAL_SAMPLED];
    case 0:
        return thread->decide[OTELI_PARENT_LOCAL_UNSAMPLED];
    default:
        return OTELI_DECIDE_SLOW_PATH;
    }
}

/* Most parents: nothing is to be handed on but that they are sampled, of a random trace id. */
static OTELI_INLINE bool is_usual(const struct oteli_active_span *parent)
{
    const uint64_t asked =
        OTELI_REF_SPECIAL | OTELI_REF_REMOTE | OTELI_REF_SAMPLED | OTELI_REF_INHERITED;
    return (parent->self.opaque[3] & asked) == (OTELI_REF_SAMPLED | OTELI_REF_RANDOM);
}

/* The same for the fast path, which has marked the state busy and finds that it cannot go on. */
static OTELI_NOINLINE void let_go_and_enter(otel_span *span, otel_tracer *tracer, const char *name,
                                            size_t name_length, const otel_span_options *options,
                                            struct oteli_thread *thread)
{
    oteli_thread_leave_call(thread);
    enter_slow(span, tracer, name, name_length, options);
}

/* The same where the current span is a leaf, with attributes or a longer name. */
static OTELI_NOINLINE void take_back_and_enter(otel_span *span, otel_tracer *tracer,
                                               const char *name, size_t name_length,
                                               const otel_span_options *options,
                                               struct oteli_thread *thread)
{
    oteli_thread_take_back(thread);
    oteli_thread_leave_call(thread);
    otel_span_enter_p(span, tracer, name, name_length, options);
}

/* The last of entering a span that is not sampled. */
static OTELI_INLINE void show_unsampled(otel_span *span, struct oteli_thread *thread,
                                        struct oteli_active_span *active, uint32_t epoch,
                                        const struct oteli_identity *made, uint64_t generation)
{
    active->epoch = epoch;
    active->shape[1] = 0; /* no traits */
    oteli_span_store_identity(span, made);
    oteli_span_store_identity(&active->self, made);
    oteli_thread_raise(thread, active, &active->record);
    oteli_thread_leave_call_as(thread, generation);
}

/* A root that does not record: ids, so that its children know that it was not sampled. The span
 * id is made of the trace id: the two are seen as a context only. */
static OTELI_INLINE void enter_unsampled_root(otel_span *span, struct oteli_thread *thread,
                                              struct oteli_active_span *active, uint64_t generation)
{
    struct oteli_identity made;
    uint64_t second;
    const uint64_t first = oteli_random_pair(&thread->random, &second);
    made.trace_id = (oteli_half){first, second};
    made.span_id = oteli_random_not_zero(first ^ (second << 32 | second >> 32));
    made.ref = active->usual_ref & ~OTELI_SAMPLED_AND_RECORDING;
    oteli_count(&thread->counts.unsampled[OTELI_ORIGIN_NONE], 1);
    show_unsampled(span, thread, active, oteli_clock_epoch(), &made, generation);
}

static OTELI_INLINE void enter_unsampled_child(otel_span *span, struct oteli_thread *thread,
                                               struct oteli_active_span *active)
{
    const struct oteli_active_span *parent = active - 1;
    struct oteli_identity made;
    made.trace_id = oteli_half_load(parent->self.opaque);
    made.span_id = oteli_random_id(&thread->random);
    made.ref = oteli_active_place_ref(active) | (parent->self.opaque[3] & OTELI_REF_INHERITED);
    oteli_count(&thread->counts.unsampled[OTELI_ORIGIN_LOCAL], 1);
    show_unsampled(span, thread, active, parent->epoch, &made, thread->generation);
}

/* Its epoch, the length of its name, and its traits. */
static OTELI_INLINE void set_usual_shape(struct oteli_active_span *active, uint32_t epoch,
                                         size_t name_length, const struct oteli_traits *traits)
{
    const uint64_t first = oteli_word_of(epoch, name_length);
    uint64_t second;
    memcpy(&second, traits, sizeof second);
    oteli_half_store(active->shape, (oteli_half){first, second});
}

/* A sampled child of a parent, or a root; its name is in its place. */
static OTELI_INLINE void open_fast(struct oteli_thread *thread, struct oteli_active_span *active,
                                   const struct oteli_active_span *parent, otel_tracer *tracer,
                                   size_t name_length, const struct oteli_traits *traits,
                                   struct oteli_identity *made)
{
    if (parent->self.opaque[2] == 0) {
        oteli_span_set_origin(active, tracer, 0);
        set_usual_shape(active, oteli_clock_epoch(), name_length, traits);
        oteli_count(&thread->counts.recorded[OTELI_ORIGIN_NONE], 1);
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* what is written now needs no register below */
        uint64_t second;
        const uint64_t first = oteli_random_pair_and_id(&thread->random, &second, &made->span_id);
        made->trace_id = (oteli_half){first, second};
    } else {
        oteli_span_set_origin(active, tracer, parent->self.opaque[2]);
        set_usual_shape(active, parent->epoch, name_length, traits);
        oteli_count(&thread->counts.recorded[OTELI_ORIGIN_LOCAL], 1);
        __atomic_signal_fence(__ATOMIC_SEQ_CST); /* likewise */
        made->trace_id = oteli_half_load(parent->self.opaque);
        made->span_id = oteli_random_id(&thread->random);
    }
    made->ref = active->usual_ref;
}

/* What is not usual of its parent, and need not be looked up. */
static OTELI_INLINE void inherit_fast(struct oteli_active_span *active,
                                      const struct oteli_active_span *parent,
                                      struct oteli_identity *made)
{
    const uint64_t parent_ref = parent->self.opaque[3];
    made->ref = (made->ref & ~OTELI_REF_INHERITED) | (parent_ref & OTELI_REF_INHERITED);
    active->traits.wire_flags = (uint16_t)oteli_span_wire_flags_of(parent_ref, 0);
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
    oteli_active_lend(active, name + name_length + OTELI_BEHIND_NAME, (size_t)room);
    return name;
}

/* Show it, with the attributes of simple options: the last of entering. */
static OTELI_INLINE void show_fast(otel_span *span, struct oteli_thread *thread,
                                   struct oteli_active_span *active,
                                   const otel_span_options *options,
                                   const struct oteli_identity *made)
{
    if (options != NULL && options->attributes != NULL) {
        oteli_active_set_many(active, &thread->limits, options->attributes,
                              options->attribute_count);
        oteli_span_warn(active);
    }
    oteli_span_store_identity(span, made);
    oteli_span_store_identity(&active->self, made);
    active->start = oteli_counter();
    oteli_thread_raise(thread, active, &active->record);
    oteli_thread_leave_call(thread);
}

/* The fast path where the parent is not usual, spans under it are not sampled, or there is no room
 * in the line. The state is busy. */
static OTELI_NOINLINE OTELI_HOT void enter_other(otel_span *span, otel_tracer *tracer,
                                                 const char *name, size_t name_length,
                                                 const otel_span_options *options,
                                                 struct oteli_thread *thread)
{
    oteli_thread_take_back(thread);
    struct oteli_active_span *active = thread->top + 1;
    const struct oteli_active_span *parent = active - 1;
    const unsigned decision = decision_under(thread, parent);
    if (decision == OTELI_DECIDE_DROP) {
        enter_unsampled_child(span, thread, active);
        return;
    }
    const uint8_t wire_kind =
        (uint8_t)((options != NULL ? options->kind : OTEL_SPAN_KIND_INTERNAL) + 1);
    if (OTELI_UNLIKELY(decision != OTELI_DECIDE_SAMPLE)) {
        let_go_and_enter(span, tracer, name, name_length, options, thread);
        return;
    }
    const int32_t room = leaf_room(thread);
    const bool is_leaf = room >= LEAF_LEAST;
    void *at = is_leaf ? lend_line(thread, active, name_length, room) : active->name;
    if (OTELI_UNLIKELY(!oteli_span_put_short_name(at, name, name_length))) {
        let_go_and_enter(span, tracer, name, name_length, options, thread);
        return;
    }
    struct oteli_identity made;
    open_fast(thread, active, parent, tracer, name_length,
              is_leaf ? &oteli_leaf_traits[wire_kind] : &oteli_usual_traits[wire_kind], &made);
    if (!is_leaf)
        oteli_active_begin_own(active);
    if (parent->self.opaque[2] != 0)
        inherit_fast(active, parent, &made);
    show_fast(span, thread, active, options, &made);
}

/* The fast path itself. `options` say at most the kind and attributes. */
static OTELI_INLINE void enter_fast(otel_span *span, otel_tracer *tracer, const char *name,
                                    size_t name_length, const otel_span_options *options,
                                    uint8_t wire_kind)
{
    struct oteli_thread *thread = oteli_self;
    const uint64_t generation = thread->fast;
    /* Nothing is under way, and the state fits the SDK. */
    if (OTELI_UNLIKELY(!oteli_is_relaxed_64(&oteli_fast_generation, generation))) {
        enter_slow(span, tracer, name, name_length, options);
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
    if (parent->self.opaque[2] == 0) {
        if (OTELI_UNLIKELY(thread->decide[OTELI_PARENT_NONE] != OTELI_DECIDE_SAMPLE)) {
            if (thread->decide[OTELI_PARENT_NONE] == OTELI_DECIDE_DROP)
                enter_unsampled_root(span, thread, active, generation);
            else
                let_go_and_enter(span, tracer, name, name_length, options, thread);
            return;
        }
    } else if (!is_usual(parent) ||
               thread->decide[OTELI_PARENT_LOCAL_SAMPLED] != OTELI_DECIDE_SAMPLE) {
        enter_other(span, tracer, name, name_length, options, thread);
        return;
    } else if (parent->traits.is_lent) {
        if (OTELI_UNLIKELY(!oteli_active_is_name_only(parent))) {
            take_back_and_enter(span, tracer, name, name_length, options, thread);
            return;
        }
        oteli_active_take_name_back(parent);
    }
    const int32_t room = leaf_room(thread);
    if (OTELI_UNLIKELY(room < LEAF_LEAST)) {
        enter_other(span, tracer, name, name_length, options, thread);
        return;
    }
    void *at = lend_line(thread, active, name_length, room);
    if (OTELI_UNLIKELY(!oteli_span_put_short_name(at, name, name_length))) {
        let_go_and_enter(span, tracer, name, name_length, options, thread);
        return;
    }
    struct oteli_identity made;
    open_fast(thread, active, parent, tracer, name_length, &oteli_leaf_traits[wire_kind], &made);
    show_fast(span, thread, active, options, &made);
}

/* Options that say nothing but the kind and attributes, or that it be a root where it is anyway. */
static inline bool are_simple(const otel_span_options *options)
{
    return (!options->root || oteli_self->top->self.opaque[2] == 0) && options->parent == NULL &&
           options->links == NULL && options->start_ns == 0 && !oteli_hold_is_wanted(options) &&
           (unsigned)options->kind <= OTEL_SPAN_KIND_CONSUMER;
}

static OTELI_NOINLINE OTELI_HOT void enter_with(otel_span *span, otel_tracer *tracer,
                                                const char *name, size_t name_length,
                                                const otel_span_options *options)
{
    if (are_simple(options))
        enter_fast(span, tracer, name, name_length, options, (uint8_t)(options->kind + 1));
    else
        enter_slow(span, tracer, name, name_length, options);
}

OTELI_HOT void otel_span_enter_p(otel_span *span, otel_tracer *tracer, const char *name,
                                 size_t name_length, const otel_span_options *options)
{
    if (OTELI_LIKELY(options == NULL))
        enter_fast(span, tracer, name, name_length, NULL, OTEL_SPAN_KIND_INTERNAL + 1);
    else
        enter_with(span, tracer, name, name_length, options);
}

/* A child of the current span, or a root, without options, while the slot of an ended span
 * is at hand and nothing is unusual. */
static OTELI_INLINE bool start_fast(otel_span *span, otel_tracer *tracer, const char *name,
                                    size_t name_length)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(thread->fast != oteli_load_relaxed_64(&oteli_fast_generation)))
        return false;
    oteli_thread_mark_busy(thread);
    const struct oteli_active_span *parent = thread->top;
    const uint32_t count = thread->detached_count;
    if (OTELI_UNLIKELY(count == 0 || decision_under(thread, parent) != OTELI_DECIDE_SAMPLE)) {
        oteli_thread_leave_call(thread);
        return false;
    }
    struct oteli_active_span *active = thread->detached[count - 1];
    const bool is_short = oteli_span_put_short_name(active->name, name, name_length);
    if (OTELI_LIKELY(is_short)) {
        struct oteli_identity made;
        thread->detached_count--;
        open_fast(thread, active, parent, tracer, name_length,
                  &oteli_usual_traits[OTEL_SPAN_KIND_INTERNAL + 1], &made);
        oteli_active_begin_own(active);
        if (parent->self.opaque[2] != 0)
            inherit_fast(active, parent, &made);
        active->start = oteli_counter();
        publish(span, thread, active, &made);
    }
    oteli_thread_leave_call(thread);
    return is_short;
}

OTELI_HOT void otel_span_start_p(otel_span *span, otel_tracer *tracer, const char *name,
                                 size_t name_length, const otel_span_options *options)
{
    if (OTELI_UNLIKELY(options != NULL) || !start_fast(span, tracer, name, name_length))
        start_slow(span, tracer, name, name_length, options);
}
