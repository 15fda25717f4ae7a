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
#include "common/text/text.h"

#include <string.h>

enum {
    TRACE_ID_TEXT = 32,
    SPAN_ID_TEXT = 16,
    LONGEST_SINGLE = TRACE_ID_TEXT + 1 + SPAN_ID_TEXT + 1 + 1 + 1 + SPAN_ID_TEXT
};

/* What `sampling` is as bits of a handle. */
#define DENY UINT64_C(0)
#define ACCEPT OTELI_REF_SAMPLED
#define DEBUG (OTELI_REF_DEBUG | OTELI_REF_SAMPLED)
#define DEFER OTELI_REF_DEFERRED

static bool has_bits(const uint8_t *bytes, size_t count)
{
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++)
        any |= bytes[i];
    return any != 0;
}

/* 32 digits, or 16, in front of which zeros are missing. */
static bool read_trace_id(const char *text, size_t length, uint8_t trace_id[16])
{
    memset(trace_id, 0, 16);
    if (length != TRACE_ID_TEXT && length != TRACE_ID_TEXT / 2)
        return false;
    const size_t bytes = length / 2;
    return oteli_hex_read(text, bytes, OTELI_HEX_LOWER, trace_id + 16 - bytes) &&
           has_bits(trace_id, 16);
}

static bool read_span_id(const char *text, size_t length, uint8_t span_id[8])
{
    return length == SPAN_ID_TEXT && oteli_hex_read(text, 8, OTELI_HEX_LOWER, span_id) &&
           has_bits(span_id, 8);
}

static bool read_sampling(const char *text, size_t length, uint64_t *bits)
{
    if (length != 1)
        return false;
    switch (text[0]) {
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

/* What may stand behind the ids: the sampling, the parent's id, or one behind the other. */
static bool read_rest(const char *text, const char *end, uint64_t *bits)
{
    const char *part;
    size_t length;
    uint8_t ignored[8];
    *bits = DEFER;
    if (!oteli_part_next(&text, end, '-', &part, &length))
        return true;
    if (!read_sampling(part, length, bits))
        return text == NULL && read_span_id(part, length, ignored);
    return !oteli_part_next(&text, end, '-', &part, &length) ||
           (text == NULL && read_span_id(part, length, ignored));
}

/* False: it cannot be understood. */
static bool read_single(const char *text, size_t length, otel_span *span)
{
    uint64_t bits;
    if (length > LONGEST_SINGLE)
        return false;
    if (read_sampling(text, length, &bits)) {
        *span = oteli_span_of_decision(bits);
        return true;
    }
    const char *const end = text + length;
    const char *part;
    size_t part_length;
    uint8_t trace_id[16];
    uint8_t span_id[8];
    if (!oteli_part_next(&text, end, '-', &part, &part_length) ||
        !read_trace_id(part, part_length, trace_id) ||
        !oteli_part_next(&text, end, '-', &part, &part_length) ||
        !read_span_id(part, part_length, span_id) || !read_rest(text, end, &bits))
        return false;
    *span = oteli_span_of_remote(trace_id, span_id, bits);
    return true;
}

/* --- several headers --- */

/* The decision that headers of their own tell. False: it is malformed. */
static bool read_several_sampling(const otel_carrier_reader *reader, uint64_t *bits)
{
    size_t length;
    const char *text = oteli_header(reader, "x-b3-flags", &length);
    *bits = DEBUG;
    if (text != NULL && length == 1 && text[0] == '1')
        return true;
    text = oteli_header(reader, "x-b3-sampled", &length);
    *bits = DEFER;
    if (text == NULL || length == 0)
        return true;
    const otel_slice word = {.data = text, .length = length};
    *bits = ACCEPT; /* words are what some wrote before there was a specification */
    if (oteli_is_word(word, "1") || oteli_is_word(word, "true"))
        return true;
    *bits = DENY;
    return oteli_is_word(word, "0") || oteli_is_word(word, "false");
}

static bool read_several(const otel_carrier_reader *reader, otel_span *span)
{
    uint8_t trace_id[16];
    uint8_t span_id[8];
    size_t length;
    const char *text = oteli_header(reader, "x-b3-traceid", &length);
    const bool has_trace_id = text != NULL;
    if (has_trace_id && !read_trace_id(text, length, trace_id))
        return false;
    text = oteli_header(reader, "x-b3-spanid", &length);
    if (has_trace_id != (text != NULL))
        return false;
    if (has_trace_id && !read_span_id(text, length, span_id))
        return false;
    uint64_t bits;
    if (!read_several_sampling(reader, &bits) || (!has_trace_id && bits == DEFER))
        return false;
    *span =
        has_trace_id ? oteli_span_of_remote(trace_id, span_id, bits) : oteli_span_of_decision(bits);
    return true;
}

static otel_context extract(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader)
{
    (void)state;
    otel_span span;
    size_t length;
    const char *text = oteli_header(reader, "b3", &length);
    if ((text == NULL || !read_single(text, length, &span)) && !read_several(reader, &span))
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
    char text[LONGEST_SINGLE + 1];
    size_t length = 0;
    otel_span_context span;
    if (oteli_span_to_send(context, &span)) {
        otel_trace_id_hex(&span, text);
        text[TRACE_ID_TEXT] = '-';
        otel_span_id_hex(&span, text + TRACE_ID_TEXT + 1);
        length = TRACE_ID_TEXT + 1 + SPAN_ID_TEXT;
        if (sampling_of(context) != '\0')
            text[length++] = '-';
    } else if (!oteli_span_is_decision(&context->span)) {
        return;
    }
    if (sampling_of(context) != '\0')
        text[length++] = sampling_of(context);
    text[length] = '\0';
    set(carrier, "b3", text, length);
}

static void inject_several(const void *state, const otel_context *context, otel_set_header *set,
                           void *carrier)
{
    (void)state;
    otel_span_context span;
    if (oteli_span_to_send(context, &span)) {
        char text[TRACE_ID_TEXT + 1];
        otel_trace_id_hex(&span, text);
        set(carrier, "x-b3-traceid", text, TRACE_ID_TEXT);
        otel_span_id_hex(&span, text);
        set(carrier, "x-b3-spanid", text, SPAN_ID_TEXT);
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
