/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagate.c - the W3C Trace Context propagator, and which one is global. Any thread.
 *
 *     traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *                  version - trace id - span id - flags
 *
 * Source: W3C Trace Context Level 2, section 3. */
#include <otel/propagate.h>

#include "api/handle.h"
#include "api/tracestate.h"
#include "common/atomic.h"
#include "common/lent.h"

#include <string.h>

enum {
    TRACEPARENT_LENGTH = 55,
    TRACE_ID_AT = 3,
    SPAN_ID_AT = 36,
    FLAGS_AT = 53,
    KNOWN_FLAGS = OTEL_TRACE_FLAG_SAMPLED | OTEL_TRACE_FLAG_RANDOM,
    TRACESTATE_HEADERS = 32,
    TRACESTATE_TEXT = 8 * 1024 /* of all headers together; above it they do not count */
};

struct otel_propagator {
    void (*inject)(const otel_context *context, otel_set_header *set, void *carrier);
    otel_context (*extract)(const otel_context *context, otel_get_header *get, void *carrier);
};

/* Lower-case digits only; -1: none. */
static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

static bool parse_hex(const char *text, size_t bytes, uint8_t *out)
{
    for (size_t i = 0; i < bytes; i++) {
        const int high = digit(text[2 * i]);
        const int low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool parse_traceparent(const char *text, size_t length, otel_span_context *context)
{
    uint8_t version;
    uint8_t flags;
    if (length < TRACEPARENT_LENGTH || !parse_hex(text, 1, &version) || version == 0xff)
        return false;
    if (length > TRACEPARENT_LENGTH && (version == 0 || text[TRACEPARENT_LENGTH] != '-'))
        return false;
    if (text[TRACE_ID_AT - 1] != '-' || text[SPAN_ID_AT - 1] != '-' || text[FLAGS_AT - 1] != '-')
        return false;
    memset(context, 0, sizeof *context);
    if (!parse_hex(text + TRACE_ID_AT, sizeof context->trace_id, context->trace_id) ||
        !parse_hex(text + SPAN_ID_AT, sizeof context->span_id, context->span_id) ||
        !parse_hex(text + FLAGS_AT, 1, &flags))
        return false;
    context->flags = flags & KNOWN_FLAGS;
    context->is_remote = true;
    return otel_span_context_is_valid(context);
}

/* All tracestate headers, joined by commas. */
static uint32_t extract_tracestate(otel_get_header *get, void *carrier, const uint8_t *trace_id)
{
    char joined[TRACESTATE_TEXT];
    size_t at = 0;
    for (size_t i = 0; i < TRACESTATE_HEADERS; i++) {
        size_t length = 0;
        const char *text = get(carrier, "tracestate", i, &length);
        if (text == NULL)
            break;
        if (length >= sizeof joined - at)
            return 0;
        if (at != 0)
            joined[at++] = ',';
        memcpy(joined + at, text, length);
        at += length;
    }
    return at != 0 ? oteli_tracestate_make(joined, at, trace_id) : 0;
}

static otel_context extract_trace_context(const otel_context *context, otel_get_header *get,
                                          void *carrier)
{
    otel_span_context remote;
    size_t length = 0;
    const char *text = get(carrier, "traceparent", 0, &length);
    if (text == NULL || !parse_traceparent(text, length, &remote))
        return *context;
    size_t ignored = 0;
    if (get(carrier, "traceparent", 1, &ignored) != NULL)
        return *context; /* two of them: neither can be trusted */
    remote.tracestate = extract_tracestate(get, carrier, remote.trace_id);
    return otel_context_with_span(*context, otel_span_wrap(&remote));
}

static void inject_trace_context(const otel_context *context, otel_set_header *set, void *carrier)
{
    const otel_span_context span = otel_span_get_context(context->span);
    if (!otel_span_context_is_valid(&span) || oteli_span_is_collected(&context->span))
        return;
    char text[TRACEPARENT_LENGTH + 1] = "00-";
    otel_trace_id_hex(&span, text + TRACE_ID_AT);
    text[SPAN_ID_AT - 1] = '-';
    otel_span_id_hex(&span, text + SPAN_ID_AT);
    text[FLAGS_AT - 1] = '-';
    text[FLAGS_AT] = '0';
    text[FLAGS_AT + 1] = (char)('0' + (span.flags & KNOWN_FLAGS));
    text[TRACEPARENT_LENGTH] = '\0';
    set(carrier, "traceparent", text, TRACEPARENT_LENGTH);

    char tracestate[OTELI_TRACESTATE_BYTES + 1];
    const size_t length = otel_span_context_tracestate(&span, tracestate, sizeof tracestate);
    if (length != 0)
        set(carrier, "tracestate", tracestate, length);
}

static void inject_nothing(const otel_context *context, otel_set_header *set, void *carrier)
{
    (void)context;
    (void)set;
    (void)carrier;
}

static otel_context extract_nothing(const otel_context *context, otel_get_header *get,
                                    void *carrier)
{
    (void)get;
    (void)carrier;
    return *context;
}

static const otel_propagator trace_context = {inject_trace_context, extract_trace_context};
static const otel_propagator none = {inject_nothing, extract_nothing};
static const otel_propagator *global = &none;

const otel_propagator *otel_propagator_trace_context(void)
{
    return &trace_context;
}

const otel_propagator *otel_propagator_none(void)
{
    return &none;
}

const otel_propagator *otel_propagator_get(void)
{
    return OTELI_LOAD_ACQUIRE_PTR(&global);
}

void otel_propagator_set(const otel_propagator *propagator)
{
    OTELI_STORE_RELEASE_PTR(&global, propagator != NULL ? propagator : &none);
}

void otel_propagator_inject(const otel_propagator *propagator, const otel_context *context,
                            otel_set_header *set, void *carrier)
{
    const otel_context current = otel_current_context();
    propagator->inject(context != NULL ? context : &current, set, carrier);
}

otel_context otel_propagator_extract(const otel_propagator *propagator, const otel_context *context,
                                     otel_get_header *get, void *carrier)
{
    const otel_context current = otel_current_context();
    return propagator->extract(context != NULL ? context : &current, get, carrier);
}
