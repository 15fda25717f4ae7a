/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/fiber_stack.c - exchange a thread's stack of places for that of a fibre. App threads.
 *
 * While a stack is current its places are in the thread's state, like the thread's own
 * otherwise, so that nobody else knows of fibres; meanwhile the thread's own wait in its state.
 * A stack that waits is looked at by nobody: what has happened since (a fork, another SDK,
 * another thread) it is told when it becomes current again. */
#include <otel/fibre.h>

#include "api/context/context_attributes.h"
#include "api/thread/thread_state.h"
#include "common/base/alloc.h"
#include "common/log.h"

#include <stdlib.h>

struct otel_stack {
    uint32_t is_current; /* on some thread; whoever sets it has the places */
    struct oteli_places places;
};

static void empty(struct oteli_places *places)
{
    *places = (struct oteli_places){.stack = oteli_empty_thread.stack,
                                    .top = oteli_empty_thread.stack,
                                    .last = oteli_empty_thread.stack,
                                    .forks = oteli_thread_forks(),
                                    .generation = OTELI_NO_GENERATION};
}

static void put_aside(const struct oteli_thread *thread, struct oteli_places *places)
{
    *places = (struct oteli_places){.stack = thread->stack,
                                    .top = thread->top,
                                    .last = thread->last,
                                    .values = thread->values,
                                    .baggage = thread->baggage,
                                    .attached = thread->attached,
                                    .lowest_cover = thread->lowest_cover,
                                    .open_capacity = thread->open_capacity,
                                    .forks = oteli_thread_forks(),
                                    .generation = thread->generation,
                                    .thread = thread};
}

/* Another thread has other counts, with which a mark has nothing to do (end.c), and what other
 * libraries have published is its own. */
static void come_from_elsewhere(struct oteli_thread *thread)
{
    if (thread->open_capacity != 0)
        thread->stack->shown = NULL;
    for (struct oteli_open *open = thread->stack + 1; open <= thread->top; open++) {
        open->mark = UINT64_MAX;
        open->shown = oteli_record_of(open);
    }
}

static void take_up(struct oteli_thread *thread, const struct oteli_places *places)
{
    thread->stack = places->stack;
    thread->top = places->top;
    thread->last = places->last;
    thread->values = places->values;
    thread->baggage = places->baggage;
    thread->attached = places->attached;
    thread->lowest_cover = places->lowest_cover;
    thread->open_capacity = places->open_capacity;
    oteli_thread_bound(thread);
    if (OTELI_UNLIKELY(places->forks != oteli_thread_forks()))
        oteli_thread_disown(thread);
    if (OTELI_UNLIKELY(places->generation != thread->generation))
        oteli_thread_stop_recording(thread);
    if (places->thread != thread)
        come_from_elsewhere(thread);
    const bool is_scoped = oteli_scoped_has(thread->values);
    if (OTELI_UNLIKELY(is_scoped != thread->is_scoped))
        oteli_thread_scope(thread, is_scoped);
}

/* As if there were another place above the top. */
static void keep_shown(struct oteli_thread *thread)
{
    if (thread->top != thread->stack)
        thread->top->shown = oteli_record_of(thread->top);
    else if (thread->open_capacity != 0)
        thread->stack->shown = otel_thread_ctx_v1;
}

/* `stack` is claimed by the caller, or NULL. */
static void exchange(struct oteli_thread *thread, otel_stack *stack)
{
    otel_stack *before = thread->fibre;
    keep_shown(thread);
    put_aside(thread, before != NULL ? &before->places : &thread->own);
    take_up(thread, stack != NULL ? &stack->places : &thread->own);
    thread->fibre = stack;
    oteli_thread_return(thread, thread->top);
    if (before != NULL) /* pairs with the CAS of claim */
        oteli_store_release_32(&before->is_current, 0);
}

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
        empty(&stack->places);
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
    if (thread == NULL || !oteli_thread_begin(thread))
        return before; /* no memory, or inside of another call */
    if (claim(stack))
        exchange(thread, stack);
    oteli_thread_finish(thread);
    return before;
}

void otel_stack_free(otel_stack *stack)
{
    struct oteli_thread *thread = stack != NULL ? own_thread() : NULL;
    if (thread == NULL || !oteli_thread_begin(thread))
        return;
    if (thread->fibre == stack)
        exchange(thread, NULL);
    if (claim(stack)) {
        struct oteli_places current;
        put_aside(thread, &current);
        take_up(thread, &stack->places);
        oteli_thread_abandon(thread);
        struct oteli_open *const places = thread->stack;
        const uint32_t count = thread->open_capacity;
        take_up(thread, &current);
        oteli_places_free(places, count);
        free(stack);
    }
    oteli_thread_finish(thread);
}

void oteli_thread_leave_fibre(struct oteli_thread *thread)
{
    if (thread->fibre != NULL)
        exchange(thread, NULL);
}
