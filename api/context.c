/* SPDX-License-Identifier: Apache-2.0 */
/* api/context.c - span contexts, the current context, values under keys. Any thread. */
#include "api/baggage.h"
#include "api/handle.h"
#include "api/scoped.h"
#include "api/thread.h"
#include "api/tracestate.h"
#include "common/log.h"

#include <string.h>

/* What a span context keeps in `reserved` for propagators of other formats than W3C's. */
enum { OF_OTHER_FORMATS = OTELI_REF_DEBUG | OTELI_REF_DEFERRED };

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
    context.reserved[0] = (uint8_t)(span.opaque[3] & OF_OTHER_FORMATS);
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
        (context->is_remote ? (uint64_t)OTELI_REF_REMOTE : 0) |
        (uint64_t)(context->reserved[0] & OF_OTHER_FORMATS);
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

/* The place of the newest attached context; NULL: none is attached. */
static struct oteli_open *newest_attached(const struct oteli_thread *thread)
{
    return thread->attached != 0 ? thread->stack + thread->attached : NULL;
}

/* A place for one more context. Programs that attach and never detach get the place of the
 * last one again, or their stack would grow for ever. */
static struct oteli_open *place_for(struct oteli_thread *thread)
{
    enum { MOST_ATTACHED = 1024 };
    struct oteli_open *newest = newest_attached(thread);
    if (newest != NULL && newest == thread->top && newest->depth >= MOST_ATTACHED) {
        OTELI_LOG(OTEL_LOG_WARN, "%u contexts are attached on one thread: are they detached?",
                  newest->depth);
        return newest;
    }
    if (thread->top == thread->last && !oteli_thread_deepen(thread))
        return NULL;
    struct oteli_open *open = ++thread->top;
    newest = newest_attached(thread);
    open->below = thread->attached;
    open->depth = newest != NULL ? newest->depth + 1 : 1;
    thread->attached = (uint32_t)(open - thread->stack);
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

otel_context_token otel_context_attach(otel_context context)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(thread == &oteli_empty_thread))
        thread = oteli_thread_own();
    otel_context_token token = {.opaque = 0};
    if (OTELI_UNLIKELY(thread == NULL || !oteli_thread_begin(thread)))
        return token; /* no memory: nothing is attached */
    if (OTELI_UNLIKELY(oteli_load_relaxed_32(&otel_is_in_use_) == 0))
        oteli_store_relaxed_32(&otel_is_in_use_, 1);
    token.previous = otel_current_context();
    const uint32_t epoch = oteli_epoch_under(thread, &context.span);
    struct oteli_open *open = place_for(thread);
    if (OTELI_LIKELY(open != NULL)) {
        open->self = context.span;
        open->self.opaque[3] |= OTELI_REF_ATTACHED;
        open->traits = (struct oteli_traits){0};
        open->epoch = epoch;
        open->hold = 0;
        open->values = context.values;
        open->token = token.opaque = ++thread->attaches;
        if (OTELI_UNLIKELY((context.baggage | open->baggage) != 0))
            hold_baggage(open, context.baggage);
        take_from(thread, context.values, open->baggage);
    }
    oteli_thread_finish(thread);
    return token;
}

/* The place of the context that was attached with this token, if it still is. */
static struct oteli_open *find_attached(const struct oteli_thread *thread, uint64_t token)
{
    struct oteli_open *open = token != 0 ? newest_attached(thread) : NULL;
    while (open != NULL && open->token != token)
        open = open->below != 0 ? thread->stack + open->below : NULL;
    return open;
}

bool otel_context_detach(otel_context_token token)
{
    struct oteli_thread *thread = oteli_self;
    struct oteli_open *open = find_attached(thread, token.opaque);
    const bool in_order = open != NULL && open == newest_attached(thread);
    if (token.opaque != 0 && !in_order)
        OTELI_LOG(OTEL_LOG_WARN, "contexts are detached in another order than attached");
    if (open == NULL || !oteli_thread_begin(thread))
        return false;
    open->token = 0;
    while (thread->attached != 0 && newest_attached(thread)->token == 0)
        thread->attached = newest_attached(thread)->below;
    if (OTELI_UNLIKELY(open->baggage != 0))
        hold_baggage(open, 0);
    const struct oteli_open *newest = newest_attached(thread);
    if (newest != NULL)
        take_from(thread, newest->values, newest->baggage);
    else
        take_from(thread, NULL, 0);
    oteli_thread_leave(thread, open);
    if (in_order)
        oteli_thread_cover(thread, open);
    oteli_thread_finish(thread);
    return in_order;
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
