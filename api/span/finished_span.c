/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/finished_span.c - spans that are handed in when they have ended: otel/record.h. App
 * threads.
 *
 * One is put together in the place above the top of the thread's stack, which is not current,
 * with the buffers that are there; it is appended like any other, and the place is left again.
 * The top does not move, so nothing becomes current. */
#include "api/context/tracestate_pool.h"
#include "api/held/span_set.h"
#include "api/span/processor_calls.h"
#include "api/span/start_custom.h"
#include "api/span/start_steps.h"
#include "api/thread/line_writer.h"
#include "common/base/sized.h"
#include "common/clock/clock.h"
#include "common/clock/counter.h"

#include <otel/record.h>
#include <string.h>

/* What of a span is settled before anything is written. */
struct identity {
    uint64_t trace_id[2];
    uint64_t span_id;
    uint64_t parent_id; /* 0: a root */
    uint8_t flags;
};

static uint64_t id_of(const uint8_t *bytes)
{
    uint64_t id = 0;
    if (bytes != NULL)
        memcpy(&id, bytes, sizeof id);
    return id;
}

static bool is_sampled(const otel_finished_span *span)
{
    return (span->flags & OTEL_TRACE_FLAG_SAMPLED) != 0;
}

/* Without a trace of its own it has no parent either. */
static bool is_root(const otel_finished_span *span)
{
    const uint8_t *trace_id = span->trace_id;
    return id_of(span->parent_span_id) == 0 || trace_id == NULL ||
           (id_of(trace_id) | id_of(trace_id + 8)) == 0;
}

static void make_trace_id(struct oteli_thread *thread, struct identity *made)
{
    bool is_random = true;
    if (thread->program.makes_ids && oteli_custom_id(thread, made->trace_id, NULL)) {
        is_random = thread->program.ids_are_random;
    } else {
        made->trace_id[0] = oteli_random_pair(&thread->random, &made->trace_id[1]);
    }
    made->flags = OTEL_TRACE_FLAG_SAMPLED | (is_random ? OTEL_TRACE_FLAG_RANDOM : 0);
}

static void identify(struct oteli_thread *thread, const otel_finished_span *span,
                     struct identity *made)
{
    (void)oteli_random_next(&thread->random); /* also with ids of its own: see end.c, is_quiet */
    *made =
        (struct identity){.span_id = id_of(span->span_id), .flags = span->flags & OTELI_W3C_FLAGS};
    if (span->trace_id != NULL)
        memcpy(made->trace_id, span->trace_id, sizeof made->trace_id);
    if ((made->trace_id[0] | made->trace_id[1]) == 0)
        make_trace_id(thread, made);
    else
        made->parent_id = id_of(span->parent_span_id);
    if (made->span_id == 0 &&
        !(thread->program.makes_ids && oteli_custom_id(thread, NULL, &made->span_id)))
        made->span_id = oteli_random_id(&thread->random);
}

static uint32_t wire_flags_of(const otel_finished_span *span, const struct identity *made)
{
    const bool is_remote = made->parent_id != 0 && span->parent_is_remote;
    return made->flags | OTELI_FLAG_HAS_IS_REMOTE | (is_remote ? OTELI_FLAG_IS_REMOTE : 0u);
}

static uint32_t hold_tracestate(otel_slice text, const uint64_t trace_id[2])
{
    if (text.length == 0)
        return 0;
    return oteli_tracestate_retain(
        oteli_tracestate_make(text.data, text.length, (const uint8_t *)trace_id));
}

/* Ids, times, kind, name: what every span has. Returns its end. */
static uint64_t begin(struct oteli_thread *thread, struct oteli_active_span *active,
                      otel_tracer *tracer, const otel_finished_span *span)
{
    struct identity made;
    identify(thread, span, &made);
    const uint32_t tracestate =
        hold_tracestate(oteli_text_of(span->tracestate, span->tracestate_length), made.trace_id);
    active->self =
        (otel_span){{made.trace_id[0], made.trace_id[1], made.span_id,
                     oteli_ref_make(made.flags, OTELI_SPAN_NOWHERE, false, 0, tracestate)}};
    active->tracer = tracer;
    active->parent_id = made.parent_id;
    active->epoch = oteli_clock_epoch();
    active->traits = (struct oteli_traits){.wire_flags = (uint16_t)wire_flags_of(span, &made),
                                           .wire_kind = oteli_span_wire_kind(span->kind),
                                           .is_unusual = true};
    oteli_active_begin_own(active);
    const uint64_t given = span->end_ns & ~OTELI_TICKS_BIT;
    const uint64_t end = span->end_ns != 0 ? given : oteli_ticks() | OTELI_TICKS_BIT;
    active->start = (span->start_ns != 0 ? span->start_ns : end) & ~OTELI_TICKS_BIT;
    if (span->start_ns != 0 || span->end_ns != 0)
        active->traits.bits = OTELI_START_IS_GIVEN;
    const otel_slice name = oteli_text_of(span->name, span->name_length);
    oteli_active_set_long_name(active, name.data, name.length);
    return end;
}

/* What only some spans have, under the limits. */
static void describe(const struct oteli_thread *thread, struct oteli_active_span *active,
                     const otel_finished_span *span, uint64_t end)
{
    const struct oteli_limits *limits = &thread->limits;
    if (span->attributes != NULL)
        oteli_active_set_many(active, limits, span->attributes, span->attribute_count);
    for (size_t i = 0; span->events != NULL && i < span->event_count; i++) {
        const otel_finished_event *event = &span->events[i];
        const uint64_t given = event->time_ns & ~OTELI_TICKS_BIT;
        oteli_active_add_event(active, limits, oteli_text_of(event->name, event->name_length),
                               event->time_ns != 0 ? given : end, event->attributes,
                               event->attribute_count);
    }
    for (size_t i = 0; span->links != NULL && i < span->link_count; i++)
        oteli_active_add_link(active, limits, &span->links[i]);
    oteli_active_set_status(active, span->status,
                            oteli_text_of(span->status_message, span->status_message_length));
}

static void count(struct oteli_thread *thread, const otel_finished_span *span)
{
    struct oteli_thread_counts *counts = &thread->counts;
    uint64_t *origins = is_sampled(span) ? counts->recorded : counts->unsampled;
    enum oteli_origin origin = OTELI_ORIGIN_LOCAL;
    if (is_root(span))
        origin = OTELI_ORIGIN_NONE;
    else if (span->parent_is_remote)
        origin = OTELI_ORIGIN_REMOTE;
    oteli_count(&origins[origin], 1);
}

/* The state is busy, and free afterwards. */
static void record(struct oteli_thread *thread, otel_tracer *tracer, const otel_finished_span *span)
{
    struct oteli_warning warning = {OTELI_NO_COMPLAINT, ""};
    bool is_held = true;
    count(thread, span);
    if (is_sampled(span) && thread->top == thread->last && !oteli_thread_deepen(thread)) {
        oteli_thread_lose(thread, OTEL_DROP_NO_MEMORY, 1);
    } else if (is_sampled(span)) {
        struct oteli_active_span *active = thread->top + 1;
        const uint64_t end = begin(thread, active, tracer, span);
        describe(thread, active, span, end);
        if (active->unusual.warning != OTELI_NO_COMPLAINT)
            oteli_active_take_warning(active, &warning);
        if (oteli_processing_is_wanted(thread)) {
            is_held = oteli_processing_record(thread, active, end);
        } else {
            oteli_record_end(thread, active, end);
            oteli_active_leave(active);
        }
    }
    if (is_held)
        oteli_thread_leave_call(thread);
    oteli_warn_later(&warning);
}

/* After the shutdown: it is counted with the SDK that stopped last. */
static OTELI_COLD void record_too_late(const otel_finished_span *span)
{
    const uint64_t generation = oteli_sdk_stopped();
    struct oteli_thread *thread = generation != 0 ? oteli_thread_own() : NULL;
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return;
    if (oteli_thread_for_end(generation) != NULL) {
        count(thread, span);
        if (is_sampled(span))
            oteli_thread_lose(thread, OTEL_DROP_ALREADY_SHUTDOWN, 1);
    }
    oteli_thread_leave_call(thread);
}

void otel_span_record(otel_tracer *tracer, const otel_finished_span *span)
{
    if (span == NULL || otel_is_idle_())
        return;
    otel_finished_span known;
    span = oteli_sized(span, span->size, &known, sizeof known);
    enum oteli_no_state why;
    struct oteli_thread *thread = oteli_span_begin(tracer, &why);
    if (thread != NULL) {
        record(thread, tracer, span);
        oteli_wake();
    } else if (why == OTELI_NO_SDK && !oteli_thread_is_silent()) {
        record_too_late(span);
    }
}
