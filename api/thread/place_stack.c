/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/place_stack.c - what is current on a thread after a place of its stack was left: a span has ended, or
 * a context was detached. App threads, the state being held, all of it cold.
 *
 * A place that is left below others stays, dead, until those have left too. Where what is above it is
 * not to be current any more, a cover is put on top: a place that repeats what was current before. */
#include "api/thread/thread_state.h"
#include "common/clock/clock.h"
#include "common/log.h"

static bool is_span(const struct oteli_open *open)
{
    return (open->self.opaque[3] & (OTELI_REF_ATTACHED | OTELI_REF_DEAD)) == 0;
}

static bool is_passed(const struct oteli_open *open)
{
    return open->below == OTELI_PASSED;
}

/* Whether nothing is open any more between a cover and what it repeats. */
static bool covers_nothing(const struct oteli_thread *thread, const struct oteli_open *cover)
{
    const struct oteli_open *open = cover - 1;
    while (open > thread->stack + cover->below &&
           (oteli_open_is_dead(open) || oteli_open_is_cover(open)))
        open--;
    return open <= thread->stack + cover->below;
}

void oteli_thread_show_again(struct oteli_thread *thread, struct oteli_open *cover)
{
    while (oteli_open_is_dead(&thread->stack[cover->below]) ||
           is_passed(&thread->stack[cover->below]))
        cover->below--;
    const struct oteli_open *again = &thread->stack[cover->below];
    otel_span self = again->self;
    self.opaque[3] |= OTELI_REF_ATTACHED;
    cover->epoch = cover->below != 0 ? again->epoch : oteli_clock_epoch();
    oteli_thread_rewrite(thread, cover, &self);
}

/* Covers above a place that was just left may repeat it, or repeat one that does. */
static void show_others(struct oteli_thread *thread, const struct oteli_open *left)
{
    if (thread->lowest_cover == 0)
        return;
    const uint32_t after = (uint32_t)(left - thread->stack) + 1;
    const uint32_t from = after > thread->lowest_cover ? after : thread->lowest_cover;
    for (struct oteli_open *open = thread->stack + from; open <= thread->top; open++) {
        if (!oteli_open_is_cover(open))
            continue;
        oteli_thread_show_again(thread, open);
        if (open != thread->top)
            open[1].traits.is_unusual = true; /* its end must look whether the cover is needed */
    }
}

void oteli_thread_settle(struct oteli_thread *thread)
{
    for (;;) {
        while (oteli_open_is_dead(thread->top))
            thread->top--;
        if (!oteli_open_is_cover(thread->top) || !covers_nothing(thread, thread->top))
            break;
        thread->top = thread->stack + thread->top->below;
    }
    if (OTELI_UNLIKELY(thread->stack + thread->lowest_cover > thread->top)) {
        thread->lowest_cover = 0;
        oteli_thread_bound(thread);
    }
}

/* What is above a place is open and not current any more, and so is what covers have put there. */
static OTELI_COLD void abandon_covered(struct oteli_thread *thread, const struct oteli_open *from)
{
    struct oteli_open *const before = thread->top;
    while (oteli_open_is_cover(from) || is_passed(from) || oteli_open_is_dead(from))
        from = oteli_open_is_cover(from) ? thread->stack + from->below : from - 1;
    thread->top = thread->stack + (from - thread->stack);
    oteli_thread_settle(thread);
    OTELI_LOG(OTEL_LOG_WARN,
              "%u spans were left open on one thread: are they ended? See otel_span_unwind",
              (unsigned)(before - thread->top));
    oteli_thread_return(thread, thread->top);
    for (struct oteli_open *open = before; open > thread->top; open--)
        oteli_thread_abandon_place(thread, open);
}

static void cover_top(struct oteli_thread *thread, uint32_t below)
{
    const struct oteli_open *const top = thread->top;
    if (top - thread->stack >= OTELI_MOST_ATTACHED) {
        abandon_covered(thread, &thread->stack[below]);
        return;
    }
    if (top == thread->last && !oteli_thread_deepen(thread))
        return;
    struct oteli_open *open = thread->top + 1;
    open->traits = (struct oteli_traits){0};
    open->hold = 0;
    open->below = below;
    oteli_thread_show_again(thread, open);
    oteli_thread_push(thread, open);
    const uint32_t cover = (uint32_t)(open - thread->stack);
    if (thread->lowest_cover == 0 || thread->lowest_cover > cover)
        thread->lowest_cover = cover;
    oteli_thread_bound(thread);
}

void oteli_thread_cover(struct oteli_thread *thread, const struct oteli_open *left)
{
    if (thread->top > left)
        cover_top(thread, (uint32_t)(left - thread->stack) - 1);
}

/* Spans of its trace that were entered in a span which ends are not current any more: but what they
 * were entered in is a context, or what a cover shows, where one is in between. The ends of those
 * above have to look below them. */
static void pass_over(struct oteli_thread *thread, const struct oteli_open *left)
{
    struct oteli_open *open = thread->stack + (left - thread->stack) + 1;
    for (; open <= thread->top; open++) {
        open->traits.is_unusual = true;
        if ((open->traits.bits & OTELI_IS_ATTACHED) != 0 ||
            (oteli_open_is_cover(open) && thread->stack + open->below < left))
            return;
        if (is_span(open) && open->self.opaque[0] == left->self.opaque[0] &&
            open->self.opaque[1] == left->self.opaque[1])
            open->below = OTELI_PASSED;
    }
}

void oteli_thread_leave(struct oteli_thread *thread, struct oteli_open *open)
{
    if (OTELI_UNLIKELY(open->traits.is_unusual) && oteli_context_is_of_span(open - 1))
        oteli_context_take(thread, open - 1);
    struct oteli_open *const before = thread->top;
    if (open == before) { /* what is shown stays whole until something else is */
        thread->top--;
        oteli_thread_settle(thread);
        oteli_thread_return(thread, thread->top);
    } else if (is_span(open) && !is_passed(open)) {
        pass_over(thread, open);
    }
    oteli_open_leave(open);
    open->self.opaque[3] = OTELI_REF_DEAD;
    if (open != before) {
        open[1].traits.is_unusual = true; /* its end must look below it */
        show_others(thread, open);
        oteli_thread_settle(thread);
        if (thread->top != before)
            oteli_thread_return(thread, thread->top);
    }
    if (OTELI_UNLIKELY(is_passed(thread->top)))
        cover_top(thread, (uint32_t)(thread->top - thread->stack));
}
