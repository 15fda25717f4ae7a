/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/stack_switch.c - exchange a thread's stack of places for that of a fibre. App threads.
 *
 * While a stack is current its places are in the thread's state, where the thread's own are
 * otherwise, so no other file knows of fibres; meanwhile the thread's own wait in its state. What
 * happens while a stack waits (a fork, another SDK, another thread) is made up for when it becomes
 * current again. */
#include "api/thread/thread_state.h"

#include <stdlib.h>

static void put_aside(struct oteli_thread *thread, struct oteli_places *places)
{
    oteli_thread_take_back(thread);
    *places = (struct oteli_places){.stack = thread->stack,
                                    .top = thread->top,
                                    .last = thread->last,
                                    .values = thread->values,
                                    .baggage = thread->baggage,
                                    .attached = thread->attached,
                                    .lowest_cover = thread->lowest_cover,
                                    .open_capacity = thread->open_capacity,
                                    .forks = oteli_load_relaxed_32(&oteli_thread_forks),
                                    .generation = thread->generation,
                                    .thread = thread};
}

/* What other libraries have published is another thread's own, and this thread's sequence does not
 * know what was started under these spans there: none of them is quiet any more (end.c). */
static void come_from_elsewhere(struct oteli_thread *thread)
{
    (void)oteli_random_next(&thread->random);
    if (thread->open_capacity != 0)
        thread->stack->shown = NULL;
    for (struct oteli_active_span *active = thread->stack + 1; active <= thread->top; active++)
        active->shown = oteli_record_of(active);
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
    if (OTELI_UNLIKELY(places->forks != oteli_load_relaxed_32(&oteli_thread_forks)))
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

void oteli_thread_switch(struct oteli_thread *thread, struct otel_stack *stack)
{
    struct otel_stack *before = thread->fibre;
    keep_shown(thread);
    put_aside(thread, before != NULL ? &before->places : &thread->own);
    take_up(thread, stack != NULL ? &stack->places : &thread->own);
    thread->fibre = stack;
    oteli_thread_return(thread, thread->top);
    if (before != NULL) /* pairs with the CAS of claim in fibre.c */
        oteli_store_release_32(&before->is_current, 0);
}

void oteli_fibre_free(struct oteli_thread *thread, struct otel_stack *stack)
{
    struct oteli_places current;
    put_aside(thread, &current);
    take_up(thread, &stack->places);
    oteli_thread_abandon(thread);
    struct oteli_active_span *const places = thread->stack;
    const uint32_t count = thread->open_capacity;
    take_up(thread, &current);
    oteli_places_free(places, count);
    free(stack);
}
