/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/span_context.c - span contexts: what identifies a span, as values. Any thread, no
 * state. */
#include "api/context/handle.h"
#include "api/context/tracestate_pool.h"
#include "common/text/text.h"
#include <otel/ffi.h>

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
        oteli_ref_make(context->flags, OTELI_SPAN_NOWHERE, false, 0, context->tracestate) |
        (context->is_remote ? OTELI_REF_REMOTE : 0) | ref_of_other_formats(context->reserved[0]);
    return span;
}

void otel_span_context_make_p(otel_span_context *result, const uint8_t trace_id[16],
                              const uint8_t span_id[8], uint8_t flags, bool is_remote,
                              const char *tracestate, size_t length)
{
    memset(result, 0, sizeof *result);
    memcpy(result->trace_id, trace_id, sizeof result->trace_id);
    memcpy(result->span_id, span_id, sizeof result->span_id);
    result->flags = flags;
    result->is_remote = is_remote;
    if (tracestate != NULL)
        result->tracestate = oteli_tracestate_make(tracestate, length, trace_id);
}

otel_span_context otel_span_context_make(const uint8_t trace_id[16], const uint8_t span_id[8],
                                         uint8_t flags, bool is_remote, const char *tracestate)
{
    otel_span_context context;
    otel_span_context_make_p(&context, trace_id, span_id, flags, is_remote, tracestate,
                             tracestate != NULL ? strlen(tracestate) : 0);
    return context;
}

bool otel_span_context_is_valid(const otel_span_context *context)
{
    static const uint8_t zeros[16];
    return memcmp(context->trace_id, zeros, sizeof context->trace_id) != 0 &&
           memcmp(context->span_id, zeros, sizeof context->span_id) != 0;
}

void otel_trace_id_hex(const otel_span_context *context, char hex[33])
{
    (void)oteli_hex_put(hex, context->trace_id, sizeof context->trace_id);
}

void otel_span_id_hex(const otel_span_context *context, char hex[17])
{
    (void)oteli_hex_put(hex, context->span_id, sizeof context->span_id);
}

size_t otel_span_context_tracestate(const otel_span_context *context, char *text, size_t size)
{
    return oteli_tracestate_copy(context->tracestate, context->trace_id, text, size);
}
