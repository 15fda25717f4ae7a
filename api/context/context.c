/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/context.c - span contexts, the current context, values under keys. Any thread. */
#include "api/baggage/baggage_pool.h"
#include "api/span/handle.h"
#include "api/context/context_attributes.h"
#include "api/thread/thread_state.h"
#include "api/context/tracestate_pool.h"
#include "common/clock/clock.h"
#include "common/log.h"

#include <string.h>

static uint8_t of_other_formats(uint64_t ref)
{
    return (uint8_t)(((ref & OTELI_REF_DEBUG) != 0 ? OTELI_KEEPS_DEBUG : 0) |
                     ((ref & OTELI_REF_DEFERRED) != 0 ? OTELI_KEEPS_DEFERRED : 0));
}

static uint64_t ref_of_other_formats(uint8_t kept)
{
    return ((kept & OTELI_KEEPS_DEBUG) != 0 ? OTELI_REF_DEBUG : 0) |
           ((kept & OTELI_KEEPS_DEFERRED) != 0 ? OTELI_REF_DEFERRED : 0);
}

otel_span_context otel_span_get_context(otel_span span)
{
    otel_span_context context;
    memset(&context, 0, sizeof context);
    if (!oteli_span_is_valid(&span))
        return context;
    memcpy(context.trace_id, &span.opaque[0], sizeof context.trace_id);
    memcpy(context.span_id, &span.opaque[2], sizeof context.span_id);
    context.flags = oteli_ref_flags(span.opaque[3]);
    context.is_remote = oteli_ref_is_remote(span.opaque[3]);
    context.reserved[0] = of_other_formats(span.opaque[3]);
    context.tracestate = oteli_ref_tracestate(span.opaque[3]);
    return context;
}

otel_span otel_span_wrap(const otel_span_context *context)
{
    otel_span span = {{0}};
    if (context == NULL || !otel_span_context_is_valid(context))
        return span;
    memcpy(&span.opaque[0], context->trace_id, sizeof context->trace_id);
    memcpy(&span.opaque[2], context->span_id, sizeof context->span_id);
    span.opaque[3] =
        oteli_ref_make(context->flags, OTELI_PLACE_NOWHERE, false, 0, context->tracestate) |
        (context->is_remote ? OTELI_REF_REMOTE : 0) | ref_of_other_formats(context->reserved[0]);
    return span;
}

otel_span_context otel_span_context_make(const uint8_t trace_id[16], const uint8_t span_id[8],
                                         uint8_t flags, bool is_remote, const char *tracestate)
{
    otel_span_context context;
    memset(&context, 0, sizeof context);
    memcpy(context.trace_id, trace_id, sizeof context.trace_id);
    memcpy(context.span_id, span_id, sizeof context.span_id);
    context.flags = flags;
    context.is_remote = is_remote;
    if (tracestate != NULL)
        context.tracestate = oteli_tracestate_make(tracestate, strlen(tracestate), trace_id);
    return context;
}

bool otel_span_context_is_valid(const otel_span_context *context)
{
    static const uint8_t zeros[16];
    return memcmp(context->trace_id, zeros, sizeof context->trace_id) != 0 &&
           memcmp(context->span_id, zeros, sizeof context->span_id) != 0;
}

static void write_hex(const uint8_t *bytes, size_t count, char *hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        hex[2 * i] = digits[bytes[i] >> 4];
        hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    hex[2 * count] = '\0';
}

void otel_trace_id_hex(const otel_span_context *context, char hex[33])
{
    write_hex(context->trace_id, sizeof context->trace_id, hex);
}

void otel_span_id_hex(const otel_span_context *context, char hex[17])
{
    write_hex(context->span_id, sizeof context->span_id, hex);
}

size_t otel_span_context_tracestate(const otel_span_context *context, char *text, size_t size)
{
    return oteli_tracestate_copy(context->tracestate, context->trace_id, text, size);
}

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

/* The place of the newest attached context, or the lowest one. */
static struct oteli_open *newest_attached(const struct oteli_thread *thread)
{
    return oteli_thread_attached(thread, thread->attached);
}

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
static struct oteli_open *place_for(struct oteli_thread *thread)
{
    struct oteli_open *newest = newest_attached(thread);
    if (newest == thread->top && newest - thread->stack >= OTELI_MOST_ATTACHED &&
        count_attached(thread) >= OTELI_MOST_ATTACHED) {
        OTELI_LOG(OTEL_LOG_WARN, "%d contexts are attached on one thread: are they detached?",
                  OTELI_MOST_ATTACHED);
        return newest;
    }
    if (thread->top == thread->last && !oteli_thread_deepen(thread))
        return NULL;
    struct oteli_open *open = thread->top + 1;
    open->below = thread->attached;
    return open;
}

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
static OTELI_NOINLINE void hold_baggage(struct oteli_open *open, uint64_t baggage)
{
    const otel_baggage before = {open->baggage};
    open->baggage = oteli_baggage_hold((otel_baggage){baggage}) != NULL ? baggage : 0;
    oteli_baggage_release(before);
}

/* In bytes from the lowest place. */
static inline uint32_t distance_of(const struct oteli_thread *thread, const struct oteli_open *open)
{
    return (uint32_t)((const char *)open - (const char *)thread->stack);
}

/* Make a context current in a place that is the top, or the one above it. */
static void put_context(struct oteli_thread *thread, struct oteli_open *open,
                        const otel_context *context, uint64_t token, uint32_t epoch)
{
    open->traits = (struct oteli_traits){.bits = OTELI_IS_ATTACHED};
    open->epoch = epoch;
    open->hold = 0;
    open->values = context->values;
    open->token = token;
    if (OTELI_UNLIKELY((context->baggage | open->baggage) != 0))
        hold_baggage(open, context->baggage);
    take_from(thread, context->values, open->baggage);
    thread->attached = distance_of(thread, open);
    otel_span self = context->span;
    self.opaque[3] |= OTELI_REF_ATTACHED;
    if (open == thread->top) {
        oteli_thread_rewrite(thread, open, &self);
    } else {
        open->self = self;
        oteli_thread_push(thread, open);
    }
}

static OTELI_NOINLINE uint64_t attach_any(const otel_context *context)
{
    uint64_t token = 0;
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || !oteli_thread_begin(thread))
        return 0; /* no memory: nothing is attached */
    if (oteli_load_relaxed_32(&otel_is_in_use_) == 0)
        oteli_store_relaxed_32(&otel_is_in_use_, 1);
    thread->epoch = oteli_epoch_under(thread, &context->span);
    thread->epoch_of = context->span.opaque[2];
    struct oteli_open *open = place_for(thread);
    if (OTELI_LIKELY(open != NULL)) {
        token = ++thread->attaches;
        put_context(thread, open, context, token, thread->epoch);
    }
    oteli_thread_finish(thread);
    return token;
}

/* The fast way has the state held, and finds that it cannot go on. */
static OTELI_NOINLINE uint64_t let_go_and_attach(const otel_context *context,
                                                 struct oteli_thread *thread)
{
    oteli_thread_finish(thread);
    return attach_any(context);
}

/* Whether a place, which is a context's, was attached so, and nothing has been left below it. What
 * spans have of traits a context has not. */
static OTELI_INLINE bool is_simply_attached(const struct oteli_open *open)
{
    const struct oteli_traits simple = {.bits = OTELI_IS_ATTACHED_SIMPLY};
    const size_t at = offsetof(struct oteli_traits, wire_kind);
    return memcmp((const char *)&open->traits + at, (const char *)&simple + at,
                  sizeof simple - at) == 0;
}

/* The epoch of an open span's children is looked up once while the span is attached again and
 * again; then the fast way is open. The state is held. */
static OTELI_NOINLINE uint64_t attach_another(const otel_context *context,
                                              struct oteli_thread *thread)
{
    thread->epoch = oteli_epoch_under(thread, &context->span);
    thread->epoch_of = context->span.opaque[2];
    oteli_thread_finish(thread);
    return otel_context_attach_n(context);
}

/* Whether the fast way may be open: nothing but the span changes, which is one to be published, and
 * no call is under way. */
static OTELI_INLINE bool is_simple(const struct oteli_thread *thread, const otel_context *context)
{
    /* One question is less than many: each is a place where the processor has to guess. */
    const uint64_t no_record = oteli_ref_beside_record(context->span.opaque[3]);
    const uint64_t other_values = (uintptr_t)context->values ^ (uintptr_t)thread->values;
    const uint64_t busy = thread->fast ^ thread->generation;
    return OTELI_LIKELY((no_record | other_values | context->baggage | busy) == 0);
}

/* The fast way finds out first and calls nothing, like those of start.c and end.c. */
OTELI_HOT uint64_t otel_context_attach_n(const otel_context *context)
{
    struct oteli_thread *thread = oteli_self;
    if (!is_simple(thread, context))
        return attach_any(context);
    const uint64_t span_id = context->span.opaque[2];
    const uint64_t ref = context->span.opaque[3];
    const otel_context_value *values = thread->values;
    uint32_t epoch = oteli_clock_epoch();
    oteli_thread_hurry(thread);
    struct oteli_open *open = thread->top;
    if (OTELI_UNLIKELY(open >= thread->attach_end)) /* no place, or one that is above a cover */
        return let_go_and_attach(context, thread);
    if ((ref & OTEL_SPAN_IS_OPEN_) != 0) {
        if (OTELI_UNLIKELY(span_id != thread->epoch_of))
            return attach_another(context, thread);
        epoch = thread->epoch;
    }
    open++;
    OTELI_OPAQUE(open);
    const oteli_half trace_id = oteli_half_load(context->span.opaque);
    const oteli_half second = oteli_half_load(context->span.opaque + 2);
    const uint64_t number = thread->attaches + 1;
    uint64_t traits;
    memcpy(&traits, &oteli_simple_traits, sizeof traits);
    oteli_half_store(open->self.opaque, trace_id);
    oteli_half_store(open->self.opaque + 2, second | (oteli_half){0, OTELI_REF_ATTACHED});
    oteli_half_store(open->shape, (oteli_half){epoch, traits});
    open->hold_and_below = oteli_word_of(0, thread->attached);
    oteli_half_store(open->values_and_token, (oteli_half){(uint64_t)(uintptr_t)values, number});
    thread->attaches = number;
    thread->attached = distance_of(thread, open);
    oteli_thread_raise(thread, open, &open->record);
    oteli_thread_finish(thread);
    return number;
}

/* The place of the context that was attached with this token, if it still is. */
static struct oteli_open *find_attached(const struct oteli_thread *thread, uint64_t token)
{
    struct oteli_open *open = newest_attached(thread);
    while (open != thread->stack && open->token != token)
        open = oteli_thread_attached(thread, open->below);
    return token != 0 && open != thread->stack ? open : NULL;
}

/* What comes above it has to ask what is below it when it is detached in turn. */
static void complicate(const struct oteli_thread *thread, struct oteli_open *open)
{
    for (open++; open <= thread->top; open++)
        open->traits.bits &= (uint8_t)~OTELI_ATTACHED_SIMPLY;
}

static void detach_place(struct oteli_thread *thread, struct oteli_open *open, bool in_order)
{
    open->token = 0;
    open->traits.bits = 0;
    complicate(thread, open);
    while (thread->attached != 0 && newest_attached(thread)->token == 0)
        thread->attached = newest_attached(thread)->below;
    if (OTELI_UNLIKELY(open->baggage != 0))
        hold_baggage(open, 0);
    const struct oteli_open *newest = newest_attached(thread);
    take_from(thread, newest->values, newest->baggage);
    oteli_thread_leave(thread, open);
    if (in_order)
        oteli_thread_cover(thread, open);
}

/* --- the context of an entered span --- */

void oteli_context_put(struct oteli_thread *thread, const otel_context *context)
{
    struct oteli_open *open = thread->top + 1;
    open->below = thread->attached;
    put_context(thread, open, context, OTELI_TOKEN_OF_SPAN,
                oteli_epoch_under(thread, &context->span));
}

void oteli_context_take(struct oteli_thread *thread, struct oteli_open *context)
{
    detach_place(thread, context, false);
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

/* The state is held, and let go. */
static OTELI_NOINLINE bool detach_any(uint64_t token, struct oteli_thread *thread)
{
    struct oteli_open *open = find_attached(thread, token);
    const bool in_order = open != NULL && open == newest_attached(thread);
    if (open != NULL)
        detach_place(thread, open, in_order);
    oteli_thread_finish(thread);
    if (open == NULL)
        return warn_of_stranger(token);
    return in_order || warn_of_order();
}

/* The fast way is for the top, attached the fast way, while nothing below it has been left. */
OTELI_HOT bool otel_context_detach_n(uint64_t token)
{
    struct oteli_thread *thread = oteli_self;
    const uint64_t generation = thread->fast;
    if (OTELI_UNLIKELY(!oteli_thread_may_begin(generation)))
        return !oteli_thread_is_busy(thread) && warn_of_stranger(token);
    oteli_thread_hurry(thread);
    struct oteli_open *open = thread->top;
    if (OTELI_UNLIKELY(open->token != token || !is_simply_attached(open)))
        return detach_any(token, thread);
    thread->attached = open->below;
    oteli_thread_return(thread, open - 1);
    oteli_thread_finish_as(thread, generation);
    return true;
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
