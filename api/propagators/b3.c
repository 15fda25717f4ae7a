/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/b3.c - the two B3 propagators. Any thread.
 *
 *     b3: 0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1-05e3ac9a4f6e3b90
 *         trace id - span id - sampling - span id of the parent
 *
 * or one header for each of them: x-b3-traceid, x-b3-spanid, x-b3-sampled (or x-b3-flags: 1,
 * which is what `d` is in one header), x-b3-parentspanid. A trace id may have 64 bits, the
 * sampling may be missing (not decided yet) or stand alone, and the parent's id is of no
 * use to us. Both propagators read both.
 *
 * Source: B3 Propagation; OpenTelemetry specification, context/api-propagators.md
 *         "B3 Requirements". */
#include "api/propagators/carrier_text.h"

#include <string.h>

enum { LONGEST_SINGLE = OTELI_IDS_TEXT + 1 + 1 + 1 + OTELI_SPAN_ID_TEXT };

/* What `sampling` is as bits of a handle. */
#define DENY UINT64_C(0)
#define ACCEPT OTELI_REF_SAMPLED
#define DEBUG (OTELI_REF_DEBUG | OTELI_REF_SAMPLED)
#define DEFER OTELI_REF_DEFERRED

/* 32 digits, or 16, in front of which zeros are missing. */
static bool read_trace_id(otel_slice text, uint8_t trace_id[16])
{
    const size_t bytes = text.length / 2;
    memset(trace_id, 0, 16);
    return (text.length == OTELI_TRACE_ID_TEXT || text.length == OTELI_TRACE_ID_TEXT / 2) &&
           oteli_hex_read(text.data, bytes, OTELI_HEX_LOWER, trace_id + 16 - bytes);
}

static bool read_span_id(otel_slice text, uint8_t span_id[8])
{
    return text.length == OTELI_SPAN_ID_TEXT &&
           oteli_hex_read(text.data, 8, OTELI_HEX_LOWER, span_id);
}

static bool read_sampling(otel_slice text, uint64_t *bits)
{
    if (text.length != 1)
        return false;
    switch (text.data[0]) {
    case '0':
        *bits = DENY;
        return true;
    case '1':
        *bits = ACCEPT;
        return true;
    case 'd':
        *bits = DEBUG;
        return true;
    default:
        return false;
    }
}

/* --- one header --- */

/* Behind the ids may stand the sampling, the parent's id, or one behind the other. False: it cannot
 * be understood. */
static bool read_single(otel_slice text, otel_span *span)
{
    uint64_t bits = DEFER;
    if (text.length > LONGEST_SINGLE)
        return false;
    if (read_sampling(text, &bits)) {
        *span = oteli_span_of_decision(bits);
        return true;
    }
    otel_slice parts[4];
    const size_t count = oteli_split(text, '-', parts, 4);
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t ignored[8];
    if (count < 2 || count > 4 || !read_trace_id(parts[0], trace_id) ||
        !read_span_id(parts[1], span_id))
        return false;
    const bool has_sampling = count > 2 && read_sampling(parts[2], &bits);
    if (count > (has_sampling ? 3 : 2) && !read_span_id(parts[count - 1], ignored))
        return false;
    if (count == 4 && !has_sampling)
        return false;
    *span = oteli_span_of_remote(trace_id, span_id, bits);
    return oteli_span_is_valid(span);
}

/* --- several headers --- */

/* The decision that headers of their own tell. False: it is malformed. */
static bool read_several_sampling(const otel_carrier_reader *reader, uint64_t *bits)
{
    otel_slice text = oteli_header(reader, "x-b3-flags");
    *bits = DEBUG;
    if (text.length == 1 && text.data[0] == '1')
        return true;
    text = oteli_header(reader, "x-b3-sampled");
    *bits = DEFER;
    if (text.length == 0)
        return true;
    *bits = ACCEPT; /* words are what some wrote before there was a specification */
    if (oteli_is_word(text, "1") || oteli_is_word(text, "true"))
        return true;
    *bits = DENY;
    return oteli_is_word(text, "0") || oteli_is_word(text, "false");
}

static bool read_several(const otel_carrier_reader *reader, otel_span *span)
{
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint64_t bits;
    otel_slice text = oteli_header(reader, "x-b3-traceid");
    const bool has_ids = text.data != NULL;
    if (has_ids && !read_trace_id(text, trace_id))
        return false;
    text = oteli_header(reader, "x-b3-spanid");
    if (has_ids != (text.data != NULL) || (has_ids && !read_span_id(text, span_id)) ||
        !read_several_sampling(reader, &bits))
        return false;
    *span = has_ids ? oteli_span_of_remote(trace_id, span_id, bits) : oteli_span_of_decision(bits);
    return has_ids ? oteli_span_is_valid(span) : bits != DEFER;
}

static otel_context extract(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader)
{
    (void)state;
    otel_span span;
    const otel_slice text = oteli_header(reader, "b3");
    if ((text.data == NULL || !read_single(text, &span)) && !read_several(reader, &span))
        return *context;
    if (oteli_span_is_decision(&span) && oteli_span_is_valid(&context->span))
        return *context; /* another propagator has found more */
    return oteli_context_with_found(context, span, OTELI_KEPT_FROM_W3C);
}

/* --- out --- */

/* '\0': not decided yet. */
static char sampling_of(const otel_context *context)
{
    const uint64_t bits = context->span.opaque[3];
    if ((bits & OTELI_REF_DEBUG) != 0)
        return 'd';
    if ((bits & OTELI_REF_SAMPLED) != 0)
        return '1';
    return (bits & OTELI_REF_DEFERRED) != 0 ? '\0' : '0';
}

static void inject_single(const void *state, const otel_context *context, otel_set_header *set,
                          void *carrier)
{
    (void)state;
    const char sampling = sampling_of(context);
    char text[LONGEST_SINGLE + 1];
    char *end = text;
    if (oteli_span_is_to_send(context)) {
        end = oteli_ids_put(text, context, '-');
        if (sampling != '\0')
            *end++ = '-';
    } else if (!oteli_span_is_decision(&context->span)) {
        return;
    }
    if (sampling != '\0')
        *end++ = sampling;
    *end = '\0';
    set(carrier, "b3", text, (size_t)(end - text));
}

static void inject_several(const void *state, const otel_context *context, otel_set_header *set,
                           void *carrier)
{
    (void)state;
    if (oteli_span_is_to_send(context)) {
        char ids[OTELI_IDS_TEXT + 1];
        oteli_ids_put(ids, context, '\0');
        set(carrier, "x-b3-traceid", ids, OTELI_TRACE_ID_TEXT);
        set(carrier, "x-b3-spanid", ids + OTELI_TRACE_ID_TEXT + 1, OTELI_SPAN_ID_TEXT);
    } else if (!oteli_span_is_decision(&context->span)) {
        return;
    }
    const char sampling[] = {sampling_of(context), '\0'};
    if (sampling[0] == 'd')
        set(carrier, "x-b3-flags", "1", 1); /* implies that it is sampled */
    else if (sampling[0] != '\0')
        set(carrier, "x-b3-sampled", sampling, 1);
}

const otel_propagator *otel_propagator_b3(void)
{
    static const char *const fields[] = {"b3", NULL};
    static const otel_propagator propagator = OTEL_PROPAGATOR(.name = "b3", .inject = inject_single,
                                                              .extract = extract, .fields = fields);
    return &propagator;
}

const otel_propagator *otel_propagator_b3_multi(void)
{
    static const char *const fields[] = {"x-b3-traceid", "x-b3-spanid", "x-b3-sampled",
                                         "x-b3-flags", NULL};
    static const otel_propagator propagator =
        OTEL_PROPAGATOR(.name = "b3multi", .inject = inject_several, .extract = extract,
                        .fields = fields);
    return &propagator;
}
