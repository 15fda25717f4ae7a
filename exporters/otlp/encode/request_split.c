/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/request_split.c - see request_split.h. A message is copied field by field,
 * but for messages with spans, which get a new length, and are left out when they have none that
 * count.
 *
 * Source: opentelemetry-proto, collector/trace/v1/trace_service.proto and trace/v1/trace.proto. */
#include "exporters/otlp/encode/request_split.h"
#include "exporters/otlp/protocol/protobuf_reader.h"

#include <stdbool.h>
#include <string.h>

enum { RESOURCE_SPANS = 1, SCOPE_SPANS = 2, SPANS = 2 };

struct cut {
    uint64_t first;
    uint64_t count;
    uint64_t seen; /* spans so far … */
    uint64_t kept; /* … and those of them that count */
    bool is_broken;
};

/* Take the next field of a message; false: that was the last one, or the message is broken. */
static bool next(struct cut *cut, struct oteli_protobuf_reader *rest, struct oteli_field *field)
{
    const enum oteli_protobuf_step step = oteli_protobuf_next(rest, field);
    cut->is_broken |= step != OTELI_PROTOBUF_FIELD && step != OTELI_PROTOBUF_END;
    return step == OTELI_PROTOBUF_FIELD && !cut->is_broken;
}

static bool is_message(const struct oteli_field *field, uint32_t number)
{
    return field->number == number && field->wire_type == OTELI_WIRE_BYTES;
}

/* Copy the field that ends where `rest` begins. */
static size_t copy(const struct oteli_field *field, const struct oteli_protobuf_reader *rest,
                   uint8_t *out)
{
    const size_t length = (size_t)(rest->at - field->start);
    if (out != NULL)
        memcpy(out, field->start, length);
    return length;
}

typedef size_t cut_message(struct cut *cut, struct oteli_protobuf_reader rest, uint8_t *out);

/* A field that is a message with spans somewhere in it. */
static size_t cut_field(struct cut *cut, const struct oteli_field *field, cut_message *inner,
                        uint8_t *out)
{
    struct cut ahead = *cut;
    const struct oteli_protobuf_reader message = oteli_protobuf_into(field);
    const size_t length = inner(&ahead, message, NULL);
    const bool has_some = ahead.kept != cut->kept;
    if (has_some && out != NULL)
        (void)inner(cut, message, oteli_put_bytes_head(out, field->number, length));
    *cut = ahead;
    return has_some ? oteli_bytes_field_size(field->number, length) : 0;
}

static size_t cut_scope_spans(struct cut *cut, struct oteli_protobuf_reader rest, uint8_t *out)
{
    size_t size = 0;
    struct oteli_field field;
    while (next(cut, &rest, &field)) {
        if (is_message(&field, SPANS)) {
            const uint64_t number = cut->seen++;
            if (number < cut->first || number - cut->first >= cut->count)
                continue;
            cut->kept++;
        }
        size += copy(&field, &rest, out != NULL ? out + size : NULL);
    }
    return size;
}

/* A message in which field `number` has the spans, at some depth. */
static size_t cut_outer(struct cut *cut, struct oteli_protobuf_reader rest, uint32_t number,
                        cut_message *inner, uint8_t *out)
{
    size_t size = 0;
    struct oteli_field field;
    while (next(cut, &rest, &field)) {
        uint8_t *to = out != NULL ? out + size : NULL;
        size += is_message(&field, number) ? cut_field(cut, &field, inner, to)
                                           : copy(&field, &rest, to);
    }
    return size;
}

static size_t cut_resource_spans(struct cut *cut, struct oteli_protobuf_reader rest, uint8_t *out)
{
    return cut_outer(cut, rest, SCOPE_SPANS, cut_scope_spans, out);
}

static size_t cut_request(struct cut *cut, struct oteli_protobuf_reader rest, uint8_t *out)
{
    return cut_outer(cut, rest, RESOURCE_SPANS, cut_resource_spans, out);
}

size_t oteli_request_part(const void *request, size_t length, uint64_t first, uint64_t count,
                          uint8_t *out)
{
    const struct oteli_protobuf_reader whole = {request, (const uint8_t *)request + length};
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

uint64_t oteli_request_spans(const void *request, size_t length)
{
    const struct oteli_protobuf_reader whole = {request, (const uint8_t *)request + length};
    struct cut cut = {.count = UINT64_MAX};
    (void)cut_request(&cut, whole, NULL);
    return cut.is_broken ? 0 : cut.seen;
}
