/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/fibre.c - stacks of fibres as programs see them: otel/fibre.h. App threads. */
#include <otel/fibre.h>

#include "api/thread/thread_state.h"
#include "common/base/alloc.h"
#include "common/log.h"

static bool claim(otel_stack *stack)
{
    if (stack == NULL || oteli_cas_full_32(&stack->is_current, 0, 1))
        return true;
    OTELI_LOG(OTEL_LOG_WARN, "the stack of a fibre is current on another thread");
    return false;
}

/* This thread's state as it is for the SDK that runs now, so that spans which a stack brings
 * along are recognised as this SDK's. */
static struct oteli_thread *own_thread(void)
{
    struct oteli_thread *thread = oteli_thread_own();
    const uint64_t generation = oteli_load_acquire_64(&oteli_generation);
    if (thread != NULL && !oteli_thread_is_busy(thread) && generation != 0 &&
        generation != OTELI_REVIVE && thread->generation != generation)
        oteli_thread_refresh();
    return thread;
}

otel_stack *otel_stack_new(void)
{
    otel_stack *stack = oteli_malloc(sizeof *stack);
    if (stack != NULL) {
        stack->is_current = 0;
        stack->places = (struct oteli_places){.stack = oteli_empty_thread.stack,
                                              .top = oteli_empty_thread.stack,
                                              .last = oteli_empty_thread.stack,
                                              .forks = oteli_load_relaxed_32(&oteli_thread_forks),
                                              .generation = OTELI_NO_GENERATION};
    }
    return stack;
}

otel_stack *otel_stack_current(void)
{
    return oteli_self->fibre;
}

otel_stack *otel_stack_switch(otel_stack *stack)
{
    otel_stack *before = oteli_self->fibre;
    if (stack == before)
        return before;
    struct oteli_thread *thread = own_thread();
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return before; /* no memory, or inside of another call */
    if (claim(stack))
        oteli_thread_switch(thread, stack);
    oteli_thread_leave_call(thread);
    return before;
}

void otel_stack_free(otel_stack *stack)
{
    struct oteli_thread *thread = stack != NULL ? own_thread() : NULL;
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return;
    if (thread->fibre == stack)
        oteli_thread_switch(thread, NULL);
    if (claim(stack))
        oteli_fibre_free(thread, stack);
    oteli_thread_leave_call(thread);
}
