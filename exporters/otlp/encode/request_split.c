/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/request_split.c - see request_split.h. A message is copied field by field, but for
 * messages with spans, which get a new length, and are left out when they have none that count.
 *
 * Source: opentelemetry-proto, collector/trace/v1/trace_service.proto and trace/v1/trace.proto. */
#include "exporters/otlp/encode/request_split.h"
#include "common/wire.h"

#include <stdbool.h>
#include <string.h>

enum { RESOURCE_SPANS = 1, SCOPE_SPANS = 2, SPANS = 2 };

struct piece {
    const uint8_t *at;
    const uint8_t *end;
};

struct cut {
    uint64_t first;
    uint64_t count;
    uint64_t seen; /* spans so far … */
    uint64_t kept; /* … and those of them that count */
    bool is_broken;
};

static bool take_varint(struct piece *rest, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && rest->at != rest->end; shift += 7) {
        const uint8_t byte = *rest->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0)
            return true;
    }
    return false;
}

/* Take a field from the front; `whole` has its tag, `inside` what is in it if it has a length. */
static bool take_field(struct piece *rest, uint64_t *tag, struct piece *whole, struct piece *inside)
{
    uint64_t length = 0;
    *whole = *rest;
    if (!take_varint(rest, tag))
        return false;
    switch (*tag & 7) {
    case OTELI_WIRE_VARINT:
        if (!take_varint(rest, &length))
            return false;
        length = 0;
        break;
    case OTELI_WIRE_FIXED64:
        length = 8;
        break;
    case OTELI_WIRE_FIXED32:
        length = 4;
        break;
    case OTELI_WIRE_BYTES:
        if (!take_varint(rest, &length))
            return false;
        break;
    default:
        return false;
    }
    if (length > (uint64_t)(rest->end - rest->at))
        return false;
    inside->at = rest->at;
    rest->at += length;
    inside->end = whole->end = rest->at;
    return true;
}

static size_t copy(const struct piece *piece, uint8_t *out)
{
    const size_t length = (size_t)(piece->end - piece->at);
    if (out != NULL)
        memcpy(out, piece->at, length);
    return length;
}

typedef size_t cut_message(struct cut *cut, struct piece message, uint8_t *out);

/* A field that is a message with spans somewhere in it. */
static size_t cut_field(struct cut *cut, uint32_t field, struct piece message, cut_message *inner,
                        uint8_t *out)
{
    struct cut ahead = *cut;
    const size_t length = inner(&ahead, message, NULL);
    const bool has_some = ahead.kept != cut->kept;
    if (has_some && out != NULL)
        (void)inner(cut, message, oteli_put_bytes_head(out, field, length));
    *cut = ahead;
    return has_some ? oteli_bytes_field_size(field, length) : 0;
}

static size_t cut_scope_spans(struct cut *cut, struct piece rest, uint8_t *out)
{
    size_t size = 0;
    uint64_t tag;
    struct piece whole;
    struct piece inside;
    while (rest.at != rest.end && !cut->is_broken) {
        cut->is_broken = !take_field(&rest, &tag, &whole, &inside);
        if (cut->is_broken)
            break;
        if (tag == OTELI_TAG(SPANS, OTELI_WIRE_BYTES)) {
            const uint64_t number = cut->seen++;
            if (number < cut->first || number - cut->first >= cut->count)
                continue;
            cut->kept++;
        }
        size += copy(&whole, out != NULL ? out + size : NULL);
    }
    return size;
}

/* A message in which `field` has the spans, at some depth. */
static size_t cut_outer(struct cut *cut, struct piece rest, uint32_t field, cut_message *inner,
                        uint8_t *out)
{
    size_t size = 0;
    uint64_t tag;
    struct piece whole;
    struct piece inside;
    while (rest.at != rest.end && !cut->is_broken) {
        uint8_t *to = out != NULL ? out + size : NULL;
        cut->is_broken = !take_field(&rest, &tag, &whole, &inside);
        if (!cut->is_broken && tag == OTELI_TAG(field, OTELI_WIRE_BYTES))
            size += cut_field(cut, field, inside, inner, to);
        else if (!cut->is_broken)
            size += copy(&whole, to);
    }
    return size;
}

static size_t cut_resource_spans(struct cut *cut, struct piece rest, uint8_t *out)
{
    return cut_outer(cut, rest, SCOPE_SPANS, cut_scope_spans, out);
}

static size_t cut_request(struct cut *cut, struct piece rest, uint8_t *out)
{
    return cut_outer(cut, rest, RESOURCE_SPANS, cut_resource_spans, out);
}

size_t oteli_spool_part(const void *request, size_t length, uint64_t first, uint64_t count,
                        uint8_t *out)
{
    const struct piece whole = {request, (const uint8_t *)request + length};
    struct cut cut = {.first = first, .count = count};
    const size_t size = cut_request(&cut, whole, NULL);
    if (cut.is_broken || cut.kept == 0)
        return 0;
    if (out != NULL) {
        cut = (struct cut){.first = first, .count = count};
        (void)cut_request(&cut, whole, out);
    }
    return size;
}

uint64_t oteli_spool_spans(const void *request, size_t length)
{
    const struct piece whole = {request, (const uint8_t *)request + length};
    struct cut cut = {.count = UINT64_MAX};
    (void)cut_request(&cut, whole, NULL);
    return cut.is_broken ? 0 : cut.seen;
}
