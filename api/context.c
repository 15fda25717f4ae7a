/* SPDX-License-Identifier: Apache-2.0 */
/* api/context.c - span contexts, the current context, values under keys. Any thread. */
#include "api/handle.h"
#include "api/thread.h"
#include "api/tracestate.h"
#include "common/log.h"

#include <string.h>

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
        (context->is_remote ? (uint64_t)OTELI_REF_REMOTE : 0);
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

otel_context otel_current_context(void)
{
    return oteli_self->current;
}

otel_span otel_current_span(void)
{
    return oteli_self->current.span;
}

otel_context_token otel_context_attach(otel_context context)
{
    struct oteli_thread *thread = oteli_self;
    if (OTELI_UNLIKELY(thread == &oteli_empty_thread))
        thread = oteli_thread_own();
    if (OTELI_UNLIKELY(thread == NULL))
        return (otel_context_token){.opaque = 0}; /* no memory: nothing is attached */
    if (OTELI_UNLIKELY(oteli_load_relaxed_32(&otel_is_in_use_) == 0))
        oteli_store_relaxed_32(&otel_is_in_use_, 1);
    const otel_context_token token = {thread->current, ++thread->attached};
    thread->current = context;
    return token;
}

bool otel_context_detach(otel_context_token token)
{
    struct oteli_thread *thread = oteli_self;
    if (token.opaque == 0 || thread == &oteli_empty_thread)
        return false;
    const bool in_order = token.opaque == thread->attached;
    if (!in_order)
        OTELI_LOG(OTEL_LOG_WARN, "contexts are detached in another order than attached");
    if (token.opaque <= thread->attached)
        thread->attached = token.opaque - 1;
    thread->current = token.previous;
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
