/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/trace_context.c - the W3C Trace Context propagator. Any thread.
 *
 *     traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *                  version - trace id - span id - flags
 *
 * Source: W3C Trace Context Level 2, section 3. */
#include "api/context/tracestate_pool.h"
#include "api/propagators/carrier_text.h"
#include "common/text/text.h"

#include <string.h>

enum {
    TRACEPARENT_LENGTH = 55,
    TRACE_ID_AT = 3,
    SPAN_ID_AT = 36,
    FLAGS_AT = 53,
    TRACESTATE_TEXT = 8 * 1024,   /* of members that are looked at, … */
    TRACESTATE_LINES = 32 * 1024, /* … in so much text of headers */
};

static bool parse_traceparent(const char *text, size_t length, otel_span_context *context)
{
    uint8_t version;
    uint8_t flags;
    if (length < TRACEPARENT_LENGTH || !oteli_hex_read(text, 1, OTELI_HEX_LOWER, &version) ||
        version == 0xff)
        return false;
    if (length > TRACEPARENT_LENGTH && (version == 0 || text[TRACEPARENT_LENGTH] != '-'))
        return false;
    if (text[TRACE_ID_AT - 1] != '-' || text[SPAN_ID_AT - 1] != '-' || text[FLAGS_AT - 1] != '-')
        return false;
    memset(context, 0, sizeof *context);
    if (!oteli_hex_read(text + TRACE_ID_AT, sizeof context->trace_id, OTELI_HEX_LOWER,
                        context->trace_id) ||
        !oteli_hex_read(text + SPAN_ID_AT, sizeof context->span_id, OTELI_HEX_LOWER,
                        context->span_id) ||
        !oteli_hex_read(text + FLAGS_AT, 1, OTELI_HEX_LOWER, &flags))
        return false;
    context->flags = flags & OTELI_W3C_FLAGS;
    context->is_remote = true;
    return otel_span_context_is_valid(context);
}

/* The members of all tracestate headers, whole and without the blanks around them. What does not
 * fit is not looked at: no more than OTELI_TRACESTATE_BYTES of them are kept anyway, those in
 * front. */
static uint32_t extract_tracestate(const otel_carrier_reader *reader, const uint8_t *trace_id)
{
    struct oteli_headers headers = {.reader = reader, .name = "tracestate"};
    char joined[TRACESTATE_TEXT];
    size_t at = 0;
    size_t lines = 0;
    size_t length;
    const char *text;
    while (lines < TRACESTATE_LINES && (text = oteli_headers_next(&headers, &length)) != NULL) {
        lines += length + 1;
        otel_slice rest = {text, length};
        otel_slice member;
        while (oteli_list_next(&rest, &member)) {
            if (member.length + 1 > sizeof joined - at)
                return oteli_tracestate_make(joined, at, trace_id);
            memcpy(joined + at, member.data, member.length);
            at += member.length;
            joined[at++] = ',';
        }
    }
    return oteli_tracestate_make(joined, at, trace_id);
}

static otel_context extract(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader)
{
    (void)state;
    otel_span_context remote;
    struct oteli_headers headers = {.reader = reader, .name = "traceparent"};
    size_t length;
    const char *text = oteli_headers_next(&headers, &length);
    if (text == NULL || !parse_traceparent(text, length, &remote))
        return *context;
    if (oteli_headers_next(&headers, &length) != NULL)
        return *context; /* two of them, which differ: neither can be trusted */
    remote.tracestate = extract_tracestate(reader, remote.trace_id);
    return oteli_context_with_found(context, otel_span_wrap(&remote), OTELI_KEPT_FROM_B3);
}

static void inject(const void *state, const otel_context *context, otel_set_header *set,
                   void *carrier)
{
    (void)state;
    otel_span_context span;
    if (!oteli_span_to_send(context, &span))
        return;
    char text[TRACEPARENT_LENGTH + 1] = "00-";
    otel_trace_id_hex(&span, text + TRACE_ID_AT);
    text[SPAN_ID_AT - 1] = '-';
    otel_span_id_hex(&span, text + SPAN_ID_AT);
    text[FLAGS_AT - 1] = '-';
    text[FLAGS_AT] = '0';
    text[FLAGS_AT + 1] = (char)('0' + (span.flags & OTELI_W3C_FLAGS));
    text[TRACEPARENT_LENGTH] = '\0';
    set(carrier, "traceparent", text, TRACEPARENT_LENGTH);

    char tracestate[OTELI_TRACESTATE_BYTES + 1];
    const size_t length = otel_span_context_tracestate(&span, tracestate, sizeof tracestate);
    if (length != 0)
        set(carrier, "tracestate", tracestate, length);
}

const otel_propagator *otel_propagator_trace_context(void)
{
    static const char *const fields[] = {"traceparent", "tracestate", NULL};
    static const otel_propagator propagator =
        OTEL_PROPAGATOR(.name = "tracecontext", .inject = inject, .extract = extract,
                        .fields = fields);
    return &propagator;
}
