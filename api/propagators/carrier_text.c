/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/carrier_text.c - the contracts are in api/propagators/carrier_text.h. Any
 * thread. */
#include "api/propagators/carrier_text.h"

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

bool oteli_span_is_to_send(const otel_context *context)
{
    return oteli_span_is_valid(&context->span) && !oteli_span_is_collected(&context->span);
}

char *oteli_ids_put(char *out, const otel_context *context, char mark)
{
    const uint64_t *ids = context->span.opaque;
    oteli_hex_put(out, (const uint8_t *)ids, OTELI_TRACE_ID_TEXT / 2);
    out[OTELI_TRACE_ID_TEXT] = mark;
    oteli_hex_put(out + OTELI_TRACE_ID_TEXT + 1, (const uint8_t *)&ids[2], OTELI_SPAN_ID_TEXT / 2);
    return out + OTELI_IDS_TEXT;
}

static otel_slice get(const otel_carrier_reader *reader, const char *name, size_t index)
{
    otel_slice value = {NULL, 0};
    value.data = reader->get(reader->carrier, name, index, &value.length);
    return value.data != NULL ? oteli_trim(value) : (otel_slice){NULL, 0};
}

bool oteli_headers_next(struct oteli_headers *headers, otel_slice *value)
{
    for (unsigned repeats = 0; repeats < MOST_REPEATS; repeats++) {
        *value = get(headers->reader, headers->name, headers->index);
        if (value->data == NULL)
            return false;
        const uint64_t hash = oteli_hash(OTELI_HASH_BEGIN, value->data, value->length);
        if (headers->index++ != 0 && headers->length == value->length && headers->hash == hash)
            continue;
        headers->length = value->length;
        headers->hash = hash;
        return true;
    }
    return false;
}

otel_slice oteli_header(const otel_carrier_reader *reader, const char *name)
{
    return get(reader, name, 0);
}

size_t oteli_split(otel_slice text, char mark, otel_slice *parts, size_t most)
{
    const char *const end = text.data + text.length;
    const char *next;
    size_t count = 0;
    do {
        next = memchr(text.data, mark, (size_t)(end - text.data));
        if (count < most)
            parts[count] =
                (otel_slice){text.data, (size_t)((next != NULL ? next : end) - text.data)};
        count++;
        text.data = next != NULL ? next + 1 : end;
    } while (next != NULL);
    return count;
}
