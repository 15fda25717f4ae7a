/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/carrier_text.c - the contracts are in api/propagators/carrier_text.h. Any
 * thread. */
#include "api/propagators/carrier_text.h"
#include "common/text/text.h"

#include <string.h>

enum { MOST_REPEATS = 64 };

/* -1: it is none. */
static int digit(char c, enum oteli_hex_case digits)
{
    return digits == OTELI_HEX_LOWER && c >= 'A' && c <= 'F' ? -1 : oteli_hex_digit(c);
}

bool oteli_hex_read(const char *text, size_t bytes, enum oteli_hex_case digits, uint8_t *out)
{
    for (size_t i = 0; i < bytes; i++) {
        const int high = digit(text[2 * i], digits);
        const int low = digit(text[2 * i + 1], digits);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

otel_span oteli_span_of_remote(const uint8_t trace_id[16], const uint8_t span_id[8], uint64_t bits)
{
    otel_span span = {{0}};
    memcpy(&span.opaque[0], trace_id, 16);
    memcpy(&span.opaque[2], span_id, 8);
    span.opaque[3] = bits | OTELI_REF_REMOTE | OTELI_REF_VALID;
    return span;
}

otel_context oteli_context_with_found(const otel_context *context, otel_span span, uint64_t keep)
{
    const otel_span *before = &context->span;
    if ((before->opaque[3] & OTELI_REF_REMOTE) != 0 &&
        memcmp(before->opaque, span.opaque, 3 * sizeof span.opaque[0]) == 0) {
        span.opaque[3] |= before->opaque[3] & keep;
        if ((span.opaque[3] & OTELI_REF_DEBUG) != 0)
            span.opaque[3] |= OTELI_REF_SAMPLED;
    }
    return otel_context_with_span(*context, span);
}

bool oteli_span_to_send(const otel_context *context, otel_span_context *span)
{
    *span = otel_span_get_context(context->span);
    return otel_span_context_is_valid(span) && !oteli_span_is_collected(&context->span);
}

static uint64_t hash_of(otel_slice text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < text.length; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

const char *oteli_headers_next(struct oteli_headers *headers, size_t *length)
{
    const otel_carrier_reader *reader = headers->reader;
    for (unsigned repeats = 0; repeats < MOST_REPEATS; repeats++) {
        *length = 0;
        const char *text = reader->get(reader->carrier, headers->name, headers->index, length);
        if (text == NULL)
            return NULL;
        const otel_slice trimmed = oteli_trim((otel_slice){text, *length});
        *length = trimmed.length;
        const uint64_t hash = hash_of(trimmed);
        if (headers->index++ != 0 && headers->length == *length && headers->hash == hash)
            continue;
        headers->length = *length;
        headers->hash = hash;
        return trimmed.data;
    }
    return NULL;
}

const char *oteli_header(const otel_carrier_reader *reader, const char *name, size_t *length)
{
    *length = 0;
    const char *text = reader->get(reader->carrier, name, 0, length);
    if (text == NULL)
        return NULL;
    const otel_slice trimmed = oteli_trim((otel_slice){text, *length});
    *length = trimmed.length;
    return trimmed.data;
}

bool oteli_part_next(const char **text, const char *end, char mark, const char **part,
                     size_t *length)
{
    if (*text == NULL)
        return false;
    const char *at = memchr(*text, mark, (size_t)(end - *text));
    *part = *text;
    *length = (size_t)((at != NULL ? at : end) - *text);
    *text = at != NULL ? at + 1 : NULL;
    return true;
}
