/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/unwind.c - end what was entered after a point of a thread's nesting, when longjmp has
 * left the functions that would have done so. App threads, all of it cold.
 *
 * Each span ends by the call that its function would have made, from the innermost on: so it is
 * held, processed and exported as any other. */
#include "api/thread/thread_state.h"
#include <otel/lines.h>
#include <otel/trace.h>

/* Processors that are told of an end may enter spans, and so move the stack. */
static void close_place(const struct oteli_open *open)
{
    const uint64_t ref = open->self.opaque[3];
    if (oteli_open_is_stretch(open))
        otel_lines_free(otel_lines_end());
    else if ((open->traits.bits & OTELI_IS_ATTACHED) != 0 && !oteli_context_is_of_span(open))
        (void)otel_context_detach_n(open->token);
    else if ((ref & OTELI_REF_OF_STACK) == 0)
        otel_span_end_n((otel_span_ref){open->self.opaque[2], ref}, 0);
}

void oteli_unwind(struct oteli_thread *thread, uint32_t depth)
{
    if (oteli_thread_is_busy(thread))
        return;
    for (size_t at = (size_t)(thread->top - thread->stack); at > depth; at--)
        if (thread->stack + at <= thread->top)
            close_place(&thread->stack[at]);
}

/* How deep, and half of the span's id, which an ended span has not any more. */
static uint64_t mark_of(const struct oteli_thread *thread, const struct oteli_open *open)
{
    const uint64_t depth = (uint64_t)(open - thread->stack) + 1;
    return depth << 32 | (uint32_t)open->self.opaque[2];
}

otel_span_mark otel_span_mark_here(void)
{
    const struct oteli_thread *thread = oteli_self;
    return (otel_span_mark){mark_of(thread, thread->top)};
}

void otel_span_unwind(otel_span_mark mark)
{
    struct oteli_thread *thread = oteli_self;
    const uint64_t depth = (mark.opaque >> 32) - 1;
    if (mark.opaque == 0 || depth >= (uint64_t)(thread->top - thread->stack))
        return;
    const struct oteli_open *open = &thread->stack[depth];
    if ((open->self.opaque[3] & OTELI_REF_DEAD) != 0 || mark_of(thread, open) == mark.opaque)
        oteli_unwind(thread, (uint32_t)depth);
}
