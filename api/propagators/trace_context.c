/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/trace_context.c - the W3C Trace Context propagator. Any thread.
 *
 *     traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
 *                  version - trace id - span id - flags
 *
 * Source: W3C Trace Context Level 2, section 3. */
#include "api/context/tracestate_pool.h"
#include "api/propagators/carrier_text.h"

#include <string.h>

enum {
    TRACEPARENT_LENGTH = 55,
    TRACE_ID_AT = 3,
    SPAN_ID_AT = 36,
    FLAGS_AT = 53,
    TRACESTATE_TEXT = 8 * 1024,   /* of members that are looked at, … */
    TRACESTATE_LINES = 32 * 1024, /* … in so much text of headers */
};

static bool parse_traceparent(otel_slice text, otel_span *span)
{
    const char *const at = text.data;
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t version;
    uint8_t flags;
    if (text.length < TRACEPARENT_LENGTH || !oteli_hex_read(at, 1, OTELI_HEX_LOWER, &version) ||
        version == 0xff)
        return false;
    if (text.length > TRACEPARENT_LENGTH && (version == 0 || at[TRACEPARENT_LENGTH] != '-'))
        return false;
    if (at[TRACE_ID_AT - 1] != '-' || at[SPAN_ID_AT - 1] != '-' || at[FLAGS_AT - 1] != '-' ||
        !oteli_hex_read(at + TRACE_ID_AT, sizeof trace_id, OTELI_HEX_LOWER, trace_id) ||
        !oteli_hex_read(at + SPAN_ID_AT, sizeof span_id, OTELI_HEX_LOWER, span_id) ||
        !oteli_hex_read(at + FLAGS_AT, 1, OTELI_HEX_LOWER, &flags))
        return false;
    *span = oteli_span_of_remote(trace_id, span_id, oteli_ref_of_flags(flags));
    return oteli_span_is_valid(span);
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
    otel_slice rest;
    otel_slice member;
    while (lines < TRACESTATE_LINES && oteli_headers_next(&headers, &rest)) {
        lines += rest.length + 1;
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
    otel_span remote;
    struct oteli_headers headers = {.reader = reader, .name = "traceparent"};
    otel_slice text;
    if (!oteli_headers_next(&headers, &text) || !parse_traceparent(text, &remote))
        return *context;
    if (oteli_headers_next(&headers, &text))
        return *context; /* two of them, which differ: neither can be trusted */
    const uint8_t *const trace_id = (const uint8_t *)remote.opaque;
    remote.opaque[3] |= oteli_ref_of_tracestate(extract_tracestate(reader, trace_id));
    return oteli_context_with_found(context, remote, OTELI_KEPT_FROM_B3);
}

static void inject(const void *state, const otel_context *context, otel_set_header *set,
                   void *carrier)
{
    (void)state;
    if (!oteli_span_is_to_send(context))
        return;
    const uint64_t ref = context->span.opaque[3];
    char text[TRACEPARENT_LENGTH + 1] = "00-";
    char *at = oteli_ids_put(text + TRACE_ID_AT, context, '-');
    const char rest[] = {'-', '0', (char)('0' + oteli_ref_flags(ref)), '\0'};
    memcpy(at, rest, sizeof rest);
    set(carrier, "traceparent", text, TRACEPARENT_LENGTH);

    char tracestate[OTELI_TRACESTATE_BYTES + 1];
    const size_t length =
        oteli_tracestate_copy(oteli_ref_tracestate(ref), (const uint8_t *)context->span.opaque,
                              tracestate, sizeof tracestate);
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
