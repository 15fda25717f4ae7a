/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/place_stack.c - what is current on a thread: contexts are attached and detached,
 * places of its stack are left, abandoned, or in a forked child the parent's. App threads.
 *
 * A place that is left below others stays, dead, until those have left too. Where what is above it
 * is not to be current any more, a cover is put on top: a place that repeats what was current
 * before. */
#include "api/baggage/baggage_pool.h"
#include "api/context/tracestate_pool.h"
#include "api/record/hold_table.h"
#include "api/thread/detached_pool.h"
#include "api/thread/thread_state.h"
#include "common/clock/clock.h"
#include "common/log.h"

#include <stdlib.h>
#include <string.h>

/* --- places are left --- */

void oteli_hold_abandon(struct oteli_thread *thread, struct oteli_active_span *active)
{
    if (oteli_active_hold(active) == 0)
        return;
    struct otel_lines *hold = oteli_hold_at(active->hold);
    const bool holds = (active->traits.bits & OTELI_HOLDS) != 0;
    const bool is_stretch = (active->self.opaque[3] & OTELI_REF_ATTACHED) != 0;
    const bool is_of_another_sdk = hold->generation != thread->generation;
    if (holds || is_stretch) /* members end on other threads */
        hold->is_abandoned = true;
    if (holds) /* a former SDK's verdict does not bind this one's spans */
        oteli_holders_decide(hold, is_of_another_sdk);
    if (holds || is_stretch) {
        oteli_hold_set_state(hold, OTELI_CLOSED);
        if (!is_of_another_sdk)
            oteli_thread_lose(thread, OTEL_DROP_ABANDONED, hold->count);
    }
    active->hold = 0;
    active->traits.bits &= (uint8_t)~OTELI_HOLDS;
    oteli_hold_leave(hold);
}

/* Nothing can end a place any more. */
static void abandon_place(struct oteli_thread *thread, struct oteli_active_span *active)
{
    if (oteli_active_records(active) && (active->self.opaque[3] & OTELI_REF_OF_STACK) == 0 &&
        (active->traits.bits & OTELI_RECORD_ONLY) == 0)
        oteli_thread_lose(thread, OTEL_DROP_ABANDONED, 1);
    oteli_hold_abandon(thread, active);
    oteli_baggage_release((otel_baggage){active->baggage});
    active->baggage = 0;
    active->traits.bits = 0;
    oteli_active_leave(active);
}

static bool is_span(const struct oteli_active_span *active)
{
    return (active->self.opaque[3] & (OTELI_REF_ATTACHED | OTELI_REF_DEAD)) == 0;
}

static bool is_passed(const struct oteli_active_span *active)
{
    return active->below == OTELI_PASSED;
}

/* Whether nothing is open any more between a cover and what it repeats. */
static bool covers_nothing(const struct oteli_thread *thread, const struct oteli_active_span *cover)
{
    const struct oteli_active_span *active = cover - 1;
    while (active > thread->stack + cover->below &&
           (oteli_active_is_dead(active) || oteli_active_is_cover(active)))
        active--;
    return active <= thread->stack + cover->below;
}

void oteli_thread_show_again(struct oteli_thread *thread, struct oteli_active_span *cover)
{
    while (oteli_active_is_dead(&thread->stack[cover->below]) ||
           is_passed(&thread->stack[cover->below]))
        cover->below--;
    const struct oteli_active_span *again = &thread->stack[cover->below];
    otel_span self = again->self;
    self.opaque[3] |= OTELI_REF_ATTACHED;
    cover->epoch = cover->below != 0 ? again->epoch : oteli_clock_epoch();
    oteli_thread_rewrite(thread, cover, &self);
}

/* Covers above a place that was just left may repeat it, or repeat one that does. */
static void show_others(struct oteli_thread *thread, const struct oteli_active_span *left)
{
    if (thread->lowest_cover == 0)
        return;
    const uint32_t after = (uint32_t)(left - thread->stack) + 1;
    const uint32_t from = after > thread->lowest_cover ? after : thread->lowest_cover;
    for (struct oteli_active_span *active = thread->stack + from; active <= thread->top; active++) {
        if (!oteli_active_is_cover(active))
            continue;
        oteli_thread_show_again(thread, active);
        if (active != thread->top)
            active[1].traits.is_unusual = true; /* its end must look whether the cover is needed */
    }
}

void oteli_thread_settle(struct oteli_thread *thread)
{
    for (;;) {
        while (oteli_active_is_dead(thread->top))
            thread->top--;
        if (!oteli_active_is_cover(thread->top) || !covers_nothing(thread, thread->top))
            break;
        thread->top = thread->stack + thread->top->below;
    }
    if (OTELI_UNLIKELY(thread->stack + thread->lowest_cover > thread->top)) {
        thread->lowest_cover = 0;
        oteli_thread_bound(thread);
    }
}

/* What is above a place is open and not current any more, and so is what covers have put there. */
static OTELI_COLD void abandon_covered(struct oteli_thread *thread,
                                       const struct oteli_active_span *from)
{
    struct oteli_active_span *const before = thread->top;
    while (oteli_active_is_cover(from) || is_passed(from) || oteli_active_is_dead(from))
        from = oteli_active_is_cover(from) ? thread->stack + from->below : from - 1;
    thread->top = thread->stack + (from - thread->stack);
    oteli_thread_settle(thread);
    OTELI_LOG(OTEL_LOG_WARN,
              "%u spans were left open on one thread: are they ended? See otel_span_unwind",
              (unsigned)(before - thread->top));
    oteli_thread_return(thread, thread->top);
    for (struct oteli_active_span *active = before; active > thread->top; active--)
        abandon_place(thread, active);
}

static void cover_top(struct oteli_thread *thread, uint32_t below)
{
    const struct oteli_active_span *const top = thread->top;
    if (top - thread->stack >= OTELI_MOST_ATTACHED) {
        abandon_covered(thread, &thread->stack[below]);
        return;
    }
    if (top == thread->last && !oteli_thread_deepen(thread))
        return;
    struct oteli_active_span *active = thread->top + 1;
    active->traits = (struct oteli_traits){0};
    active->hold = 0;
    active->below = below;
    oteli_thread_show_again(thread, active);
    oteli_thread_push(thread, active);
    const uint32_t cover = (uint32_t)(active - thread->stack);
    if (thread->lowest_cover == 0 || thread->lowest_cover > cover)
        thread->lowest_cover = cover;
    oteli_thread_bound(thread);
}

void oteli_thread_cover(struct oteli_thread *thread, const struct oteli_active_span *left)
{
    if (thread->top > left)
        cover_top(thread, (uint32_t)(left - thread->stack) - 1);
}

/* Spans of its trace that were entered in a span which ends are not current any more: but what they
 * were entered in is a context, or what a cover shows, where one is in between. The ends of those
 * above have to look below them. */
static void pass_over(struct oteli_thread *thread, const struct oteli_active_span *left)
{
    struct oteli_active_span *active = thread->stack + (left - thread->stack) + 1;
    for (; active <= thread->top; active++) {
        active->traits.is_unusual = true;
        if ((active->traits.bits & OTELI_IS_ATTACHED) != 0 ||
            (oteli_active_is_cover(active) && thread->stack + active->below < left))
            return;
        if (is_span(active) && active->self.opaque[0] == left->self.opaque[0] &&
            active->self.opaque[1] == left->self.opaque[1])
            active->below = OTELI_PASSED;
    }
}

void oteli_thread_leave(struct oteli_thread *thread, struct oteli_active_span *active)
{
    if (OTELI_UNLIKELY(active->traits.is_unusual) && oteli_context_is_of_span(active - 1))
        oteli_place_detach(thread, active - 1, false);
    struct oteli_active_span *const before = thread->top;
    if (active == before) { /* what is shown stays whole until something else is */
        thread->top--;
        oteli_thread_settle(thread);
        oteli_thread_return(thread, thread->top);
    } else if (is_span(active) && !is_passed(active)) {
        pass_over(thread, active);
    }
    oteli_active_leave(active);
    active->self.opaque[3] = OTELI_REF_DEAD;
    if (active != before) {
        active[1].traits.is_unusual = true; /* its end must look below it */
        show_others(thread, active);
        oteli_thread_settle(thread);
        if (thread->top != before)
            oteli_thread_return(thread, thread->top);
    }
    if (OTELI_UNLIKELY(is_passed(thread->top)))
        cover_top(thread, (uint32_t)(thread->top - thread->stack));
}

void oteli_thread_abandon(struct oteli_thread *thread)
{
    for (; thread->top != thread->stack; thread->top--)
        abandon_place(thread, thread->top);
    thread->values = NULL;
    thread->baggage = 0;
    thread->attached = 0;
    thread->lowest_cover = 0;
    oteli_thread_bound(thread);
    if (thread->is_scoped)
        oteli_thread_scope(thread, false);
}

void oteli_places_free(struct oteli_active_span *stack, uint32_t capacity)
{
    struct oteli_active_span *outgrown = capacity != 0 ? stack->outgrown : NULL;
    for (uint32_t i = 0; i < capacity; i++) {
        oteli_baggage_release((otel_baggage){stack[i].baggage});
        free(stack[i].apart);
        oteli_active_fini(&stack[i]);
    }
    if (capacity != 0)
        free(stack);
    while (outgrown != NULL) {
        stack = outgrown;
        outgrown = stack->outgrown;
        free(stack);
    }
}

/* --- in a forked child --- */

/* A span of the parent's, or what mentions one. What is collected has the ids of no trace,
 * and here it will not get into any: it is as if it had been left. */
static void disown(struct oteli_thread *thread, struct oteli_active_span *active)
{
    const bool is_collected = (active->self.opaque[3] & OTELI_REF_COLLECTED) != 0;
    active->hold = 0;
    active->traits.bits &= (uint8_t)~OTELI_HOLDS;
    active->traits.end_as = OTELI_END_EXPORTED;
    if (oteli_active_is_dead(active))
        return;
    if (oteli_active_is_cover(active)) {
        oteli_thread_show_again(thread, active);
    } else if (!is_collected) {
        oteli_active_record_no_more(active);
        active->self.opaque[3] &= ~(OTELI_REF_HELD | OTELI_REF_HOLDER);
        if (active->traits.is_unusual && (active->self.opaque[3] & OTELI_REF_ATTACHED) == 0 &&
            oteli_tracestate_retain(oteli_active_tracestate(active)) == 0)
            active->self.opaque[3] &= ~OTELI_REF_TRACESTATE; /* by now another span may have it */
    } else if (oteli_active_is_mention(active)) {
        active->self = (otel_span){{0, 0, 0, OTELI_REF_ATTACHED}};
    } else {
        if (oteli_context_is_of_span(active - 1))
            oteli_place_detach(thread, active - 1, false);
        oteli_active_forget(active);
        active->self = (otel_span){{0, 0, 0, OTELI_REF_DEAD}};
        active->below = OTELI_NOT_A_COVER;
        if (active != thread->top)
            active[1].traits.is_unusual = true; /* its end must look below it */
    }
}

void oteli_thread_disown(struct oteli_thread *thread)
{
    for (struct oteli_active_span *active = thread->stack + 1; active <= thread->top; active++) {
        disown(thread, active);
        if (oteli_baggage_hold((otel_baggage){active->baggage}) == NULL)
            active->baggage = 0;
    }
    thread->baggage = oteli_thread_attached(thread, thread->attached)->baggage;
    oteli_thread_settle(thread);
    oteli_thread_bound(thread);
}

/* --- contexts in places --- */

static OTELI_NOINLINE void look_for_attributes(struct oteli_thread *thread)
{
    const bool is_scoped = oteli_scoped_has(thread->values);
    if (is_scoped != thread->is_scoped)
        oteli_thread_scope(thread, is_scoped);
}

/* What is current beside the span is of the newest attached context. */
static OTELI_INLINE void take_from(struct oteli_thread *thread, const otel_context_value *values,
                                   uint64_t baggage)
{
    thread->values = values;
    thread->baggage = baggage;
    oteli_thread_bound(thread);
    if (OTELI_UNLIKELY(values != NULL || thread->is_scoped))
        look_for_attributes(thread);
}

/* The place holds the baggage until it is detached, or taken for another context. */
static OTELI_NOINLINE void hold_baggage(struct oteli_active_span *active, uint64_t baggage)
{
    const otel_baggage before = {active->baggage};
    active->baggage = oteli_baggage_hold((otel_baggage){baggage}) != NULL ? baggage : 0;
    oteli_baggage_release(before);
}

void oteli_place_attach(struct oteli_thread *thread, struct oteli_active_span *active,
                        const otel_context *context, uint64_t token, uint32_t epoch)
{
    active->traits = (struct oteli_traits){.bits = OTELI_IS_ATTACHED};
    active->epoch = epoch;
    active->hold = 0;
    active->values = context->values;
    active->token = token;
    if (OTELI_UNLIKELY((context->baggage | active->baggage) != 0))
        hold_baggage(active, context->baggage);
    take_from(thread, context->values, active->baggage);
    thread->attached = oteli_thread_distance(thread, active);
    otel_span self = context->span;
    self.opaque[3] |= OTELI_REF_ATTACHED;
    if (active == thread->top) {
        oteli_thread_rewrite(thread, active, &self);
    } else {
        active->self = self;
        oteli_thread_push(thread, active);
    }
}

/* What comes above it has to ask what is below it when it is detached in turn. */
static void complicate(const struct oteli_thread *thread, struct oteli_active_span *active)
{
    for (active++; active <= thread->top; active++)
        active->traits.bits &= (uint8_t)~OTELI_ATTACHED_SIMPLY;
}

void oteli_place_detach(struct oteli_thread *thread, struct oteli_active_span *active,
                        bool in_order)
{
    active->token = 0;
    active->traits.bits = 0;
    complicate(thread, active);
    while (thread->attached != 0 && oteli_thread_newest_attached(thread)->token == 0)
        thread->attached = oteli_thread_newest_attached(thread)->below;
    if (OTELI_UNLIKELY(active->baggage != 0))
        hold_baggage(active, 0);
    const struct oteli_active_span *newest = oteli_thread_newest_attached(thread);
    take_from(thread, newest->values, newest->baggage);
    oteli_thread_leave(thread, active);
    if (in_order)
        oteli_thread_cover(thread, active);
}

void oteli_context_put(struct oteli_thread *thread, const otel_context *context)
{
    struct oteli_active_span *active = thread->top + 1;
    active->below = thread->attached;
    oteli_place_attach(thread, active, context, OTELI_TOKEN_OF_SPAN,
                       oteli_epoch_under(thread, &context->span));
}
