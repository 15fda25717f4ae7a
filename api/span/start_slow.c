/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/start_slow.c - the contracts are in api/span/start_slow.h. App threads. */
#include "api/span/start_slow.h"
#include "api/context/tracestate_pool.h"
#include "api/held/span_set.h"
#include "api/span/context_attributes.h"
#include "api/span/processor_calls.h"
#include "api/span/start_custom.h"
#include "api/span/start_steps.h"
#include "api/span/tracer.h"
#include "api/thread/detached_pool.h"
#include "api/thread/thread_state.h"

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

/* Without an SDK a parent of the options' is current until the end, so that it is what
 * calls further down propagate; and so is its baggage, also where there is no parent. */
static void enter_nothing(otel_span *span, const otel_span_options *options)
{
    start_nothing(span, options);
    const otel_context *put = oteli_span_context_to_put(oteli_self, options);
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
    oteli_span_set_shape(active, oteli_span_epoch_under(thread, parent), about->name_length,
                         oteli_traits_word(oteli_span_wire_flags_of(
                                               made->ref, parent_id != 0 ? parent->opaque[3] : 0),
                                           OTEL_SPAN_KIND_INTERNAL + 1));
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
    const otel_context *put = is_entered ? oteli_span_context_to_put(thread, options) : NULL;
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

void oteli_span_enter_slow(otel_span *span, otel_tracer *tracer, const char *name,
                           size_t name_length, const otel_span_options *options)
{
    if (OTELI_UNLIKELY(oteli_scoped_applies(oteli_self, options)))
        start_scoped(enter_any, span, tracer, name, name_length, options);
    else
        enter_any(span, tracer, name, name_length, options);
}

void oteli_span_start_slow(otel_span *span, otel_tracer *tracer, const char *name,
                           size_t name_length, const otel_span_options *options)
{
    if (OTELI_UNLIKELY(oteli_scoped_applies(oteli_self, options)))
        start_scoped(start_any, span, tracer, name, name_length, options);
    else
        start_any(span, tracer, name, name_length, options);
}
