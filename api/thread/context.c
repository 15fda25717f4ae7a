/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/context.c - the current context: read, attached and detached; values under keys.
 * Any thread. Places on the thread's stack are written in api/thread/place_stack.c. */
#include "api/thread/thread_state.h"
#include "common/clock/clock.h"
#include "common/log.h"
#include <otel/baggage.h>

#include <string.h>

otel_span otel_current_span(void)
{
    otel_span span = oteli_self->top->self;
    span.opaque[3] &= ~OTELI_REF_OF_STACK;
    return span;
}

otel_context otel_current_context(void)
{
    return (otel_context){otel_current_span(), oteli_self->values, oteli_self->baggage};
}

/* The epoch of the current span is that of its whole trace here. */
uint64_t otel_now_ns(void)
{
    const struct oteli_active_span *active = oteli_self->top;
    if (oteli_load_acquire_64(&oteli_generation) == 0)
        return oteli_wall_ns();
    return oteli_clock_now_ns(active->self.opaque[2] != 0 ? active->epoch : 0);
}

otel_baggage otel_context_baggage(const otel_context *context)
{
    return (otel_baggage){context != NULL ? context->baggage : oteli_self->baggage};
}

otel_context_key otel_context_create_key(const char *name)
{
    static uint64_t last;
    (void)name; /* for people who read the calling code */
    return (otel_context_key){oteli_add_full_64(&last, 1) + 1};
}

otel_context otel_context_with_value(otel_context context, otel_context_key key, void *value,
                                     otel_context_value *place)
{
    place->next = context.values;
    place->key = key.opaque;
    place->value = value;
    context.values = place;
    return context;
}

void *otel_context_get_value(const otel_context *context, otel_context_key key)
{
    for (const otel_context_value *at = context->values; at != NULL; at = at->next)
        if (at->key == key.opaque)
            return at->value;
    return NULL;
}

/* --- attaching --- */

/* How many contexts are attached. */
static uint32_t count_attached(const struct oteli_thread *thread)
{
    uint32_t count = 0;
    for (uint32_t at = thread->attached; at != 0; at = oteli_thread_attached(thread, at)->below)
        count++;
    return count;
}

/* A place for one more context. Programs that attach and never detach get the place of the
 * last one again, or their stack would grow for ever. */
static struct oteli_active_span *place_for(struct oteli_thread *thread)
{
    struct oteli_active_span *newest = oteli_thread_newest_attached(thread);
    if (newest == thread->top && newest - thread->stack >= OTELI_MOST_ATTACHED &&
        count_attached(thread) >= OTELI_MOST_ATTACHED) {
        OTELI_LOG(OTEL_LOG_WARN, "%d contexts are attached on one thread: are they detached?",
                  OTELI_MOST_ATTACHED);
        return newest;
    }
    if (thread->top == thread->last && !oteli_thread_deepen(thread))
        return NULL;
    struct oteli_active_span *active = thread->top + 1;
    active->below = thread->attached;
    return active;
}

static OTELI_NOINLINE uint64_t attach_any(const otel_context *context)
{
    uint64_t token = 0;
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return 0; /* no memory: nothing is attached */
    if (oteli_load_relaxed_32(&otel_is_in_use_) == 0)
        oteli_store_relaxed_32(&otel_is_in_use_, 1);
    thread->epoch = oteli_epoch_under(thread, &context->span);
    thread->epoch_of = context->span.opaque[2];
    struct oteli_active_span *active = place_for(thread);
    if (OTELI_LIKELY(active != NULL)) {
        token = ++thread->attaches;
        oteli_place_attach(thread, active, context, token, thread->epoch);
    }
    oteli_thread_leave_call(thread);
    return token;
}

/* The fast path has marked the state busy, and finds that it cannot go on. */
static OTELI_NOINLINE uint64_t let_go_and_attach(const otel_context *context,
                                                 struct oteli_thread *thread)
{
    oteli_thread_leave_call(thread);
    return attach_any(context);
}

/* Whether a place, which is a context's, was attached so, and nothing has been left below it. What
 * spans have of traits a context has not. */
static OTELI_INLINE bool is_simply_attached(const struct oteli_active_span *active)
{
    const struct oteli_traits simple = {.bits = OTELI_IS_ATTACHED_SIMPLY};
    const size_t at = offsetof(struct oteli_traits, wire_kind);
    return memcmp((const char *)&active->traits + at, (const char *)&simple + at,
                  sizeof simple - at) == 0;
}

/* The epoch of an open span's children is looked up once while the span is attached again and
 * again; then the fast path is open. The state is busy. */
static OTELI_NOINLINE uint64_t attach_another(const otel_context *context,
                                              struct oteli_thread *thread)
{
    thread->epoch = oteli_epoch_under(thread, &context->span);
    thread->epoch_of = context->span.opaque[2];
    oteli_thread_leave_call(thread);
    return otel_context_attach_p(context);
}

/* Whether the fast path is open: nothing but the span changes, which is one to be published, and
 * the state is not busy. */
static OTELI_INLINE bool is_simple(const struct oteli_thread *thread, const otel_context *context)
{
    /* One question is less than many: each is a place where the processor has to guess. */
    const uint64_t no_record = oteli_ref_beside_record(context->span.opaque[3]);
    const uint64_t other_values = (uintptr_t)context->values ^ (uintptr_t)thread->values;
    const uint64_t busy = thread->fast ^ thread->generation;
    return OTELI_LIKELY((no_record | other_values | context->baggage | busy) == 0);
}

/* The fast path finds out first and calls nothing, like those of start.c and end.c. */
OTELI_HOT uint64_t otel_context_attach_p(const otel_context *context)
{
    struct oteli_thread *thread = oteli_self;
    if (!is_simple(thread, context))
        return attach_any(context);
    const uint64_t span_id = context->span.opaque[2];
    const uint64_t ref = context->span.opaque[3];
    const otel_context_value *values = thread->values;
    uint32_t epoch = oteli_clock_epoch();
    oteli_thread_mark_busy(thread);
    struct oteli_active_span *active = thread->top;
    if (OTELI_UNLIKELY(active >= thread->attach_end)) /* no place, or one that is above a cover */
        return let_go_and_attach(context, thread);
    if ((ref & OTEL_SPAN_IS_OPEN_) != 0) {
        if (OTELI_UNLIKELY(span_id != thread->epoch_of))
            return attach_another(context, thread);
        epoch = thread->epoch;
    }
    if (OTELI_UNLIKELY(active->traits.is_lent))
        return let_go_and_attach(context, thread);
    active++;
    OTELI_OPAQUE(active);
    const oteli_half trace_id = oteli_half_load(context->span.opaque);
    const oteli_half second = oteli_half_load(context->span.opaque + 2);
    const uint64_t number = thread->attaches + 1;
    uint64_t traits;
    memcpy(&traits, &oteli_simple_traits, sizeof traits);
    oteli_half_store(active->self.opaque, trace_id);
    oteli_half_store(active->self.opaque + 2, second | (oteli_half){0, OTELI_REF_ATTACHED});
    oteli_half_store(active->shape, (oteli_half){epoch, traits});
    active->hold_and_below = oteli_word_of(0, thread->attached);
    oteli_half_store(active->values_and_token, (oteli_half){(uint64_t)(uintptr_t)values, number});
    thread->attaches = number;
    thread->attached = oteli_thread_distance(thread, active);
    oteli_thread_raise(thread, active, &active->record);
    oteli_thread_leave_call(thread);
    return number;
}

/* The place of the context that was attached with this token, if it still is. */
static struct oteli_active_span *find_attached(const struct oteli_thread *thread, uint64_t token)
{
    struct oteli_active_span *active = oteli_thread_newest_attached(thread);
    while (active != thread->stack && active->token != token)
        active = oteli_thread_attached(thread, active->below);
    return token != 0 && active != thread->stack ? active : NULL;
}

/* --- detaching --- */

static OTELI_COLD bool warn_of_stranger(uint64_t token)
{
    if (token != 0)
        OTELI_LOG(OTEL_LOG_WARN,
                  "a context is detached that is not attached on this thread: is it on "
                  "another one, or detached already?");
    return false;
}

static OTELI_COLD bool warn_of_order(void)
{
    OTELI_LOG(OTEL_LOG_WARN, "contexts are detached in another order than attached");
    return false;
}

/* The state is busy, and free afterwards. */
static OTELI_NOINLINE bool detach_any(uint64_t token, struct oteli_thread *thread)
{
    struct oteli_active_span *active = find_attached(thread, token);
    const bool in_order = active != NULL && active == oteli_thread_newest_attached(thread);
    if (active != NULL)
        oteli_place_detach(thread, active, in_order);
    oteli_thread_leave_call(thread);
    if (active == NULL)
        return warn_of_stranger(token);
    return in_order || warn_of_order();
}

/* The fast path is for the top, attached on the fast path, while nothing below it has been left. */
OTELI_HOT bool otel_context_detach_p(uint64_t token)
{
    struct oteli_thread *thread = oteli_self;
    const uint64_t generation = thread->fast;
    if (OTELI_UNLIKELY(!oteli_thread_may_begin(generation)))
        return !oteli_thread_is_busy(thread) && warn_of_stranger(token);
    oteli_thread_mark_busy(thread);
    struct oteli_active_span *active = thread->top;
    if (OTELI_UNLIKELY(active->token != token || !is_simply_attached(active)))
        return detach_any(token, thread);
    thread->attached = active->below;
    oteli_thread_return(thread, active - 1);
    oteli_thread_leave_call_as(thread, generation);
    return true;
}
