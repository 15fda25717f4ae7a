/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view/span_view.c - what exporters see of a span: fields, attributes, events, links. Any
 * thread.
 *
 * Everything that is read here was written by api/, so nothing is checked. Repeated fields
 * of one number stand together in our messages; a slice spans all of them.
 *
 * Source: opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto. */
#include "sdk/view/span_view.h"
#include "common/wire.h"

#include <string.h>

/* A slice of nothing can be compared, copied and printed like any other. */
static const otel_slice nothing = {"", 0};

static otel_slice bytes_of(const struct oteli_field *field)
{
    return (otel_slice){(const char *)field->bytes, field->length};
}

/* Let a slice of repeated fields begin at, or grow to the end of, this one. */
static void extend(otel_slice *slice, const struct oteli_field *field)
{
    if (slice->length == 0)
        slice->data = (const char *)field->start;
    slice->length = (size_t)((const char *)(field->bytes + field->length) - slice->data);
}

static void read_status(otel_span_view *span, otel_slice status)
{
    const uint8_t *at = (const uint8_t *)status.data;
    const uint8_t *end = at + status.length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        if (field.number == 2)
            span->status_message = bytes_of(&field);
        else if (field.number == 3)
            span->status = (otel_span_status)field.value;
    }
}

static void read_bytes_field(otel_span_view *span, const struct oteli_field *field)
{
    switch (field->number) {
    case 1:
        span->trace_id = field->bytes;
        break;
    case 2:
        span->span_id = field->bytes;
        break;
    case 3:
        span->tracestate = bytes_of(field);
        break;
    case 4:
        span->parent_span_id = field->bytes;
        break;
    case 5:
        span->name = bytes_of(field);
        break;
    case OTEL_FIELD_SPAN_ATTRIBUTE:
        extend(&span->attributes, field);
        break;
    case 11:
        extend(&span->events, field);
        break;
    case 13:
        extend(&span->links, field);
        break;
    case 15:
        read_status(span, bytes_of(field));
        break;
    default:
        break;
    }
}

static void read_number_field(otel_span_view *span, const struct oteli_field *field)
{
    switch (field->number) {
    case 6:
        span->kind = (otel_span_kind)(field->value - 1);
        break;
    case 7:
        span->start_ns = field->value;
        break;
    case 8:
        span->end_ns = field->value;
        break;
    case 10:
        span->dropped_attributes_count = (uint32_t)field->value;
        break;
    case 12:
        span->dropped_events_count = (uint32_t)field->value;
        break;
    case 14:
        span->dropped_links_count = (uint32_t)field->value;
        break;
    case 16:
        span->flags = (uint32_t)field->value;
        break;
    default:
        break;
    }
}

void oteli_span_view_fill(otel_span_view *span, otel_slice otlp, const otel_scope_view *scope)
{
    *span = (otel_span_view){
        .size = sizeof *span,
        .tracestate = nothing,
        .name = nothing,
        .status_message = nothing,
        .attributes = nothing,
        .events = nothing,
        .links = nothing,
    };
    span->otlp = otlp;
    span->scope = scope;
    const uint8_t *at = (const uint8_t *)otlp.data;
    const uint8_t *end = at + otlp.length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        if (field.wire_type == OTELI_WIRE_BYTES)
            read_bytes_field(span, &field);
        else
            read_number_field(span, &field);
    }
}

/* The next field of this number at the front of `rest`. */
static bool next_of(otel_slice *rest, uint32_t number, struct oteli_field *field)
{
    if (rest->length == 0)
        return false;
    const uint8_t *at = (const uint8_t *)rest->data;
    const uint8_t *end = at + rest->length;
    do {
        if (!oteli_next_field(&at, end, field)) {
            rest->length = 0;
            return false;
        }
    } while (field->number != number);
    rest->length = (size_t)(end - at);
    rest->data = (const char *)at;
    return true;
}

static void read_value(otel_value_view *value, otel_slice any_value)
{
    *value = (otel_value_view){.slice = nothing};
    const uint8_t *at = (const uint8_t *)any_value.data;
    struct oteli_field field;
    if (any_value.length == 0 || !oteli_next_field(&at, at + any_value.length, &field))
        return;
    if (field.bytes != NULL)
        value->slice = bytes_of(&field);
    switch (field.number) {
    case 1:
        value->type = OTEL_VALUE_STRING;
        break;
    case 2:
        value->type = OTEL_VALUE_BOOL;
        value->boolean = field.value != 0;
        break;
    case 3:
        value->type = OTEL_VALUE_INT;
        value->integer = (int64_t)field.value;
        break;
    case 4:
        value->type = OTEL_VALUE_DOUBLE;
        memcpy(&value->real, &field.value, sizeof value->real);
        break;
    case 5:
        value->type = OTEL_VALUE_STRING_ARRAY;
        break;
    case 6:
        value->type = OTEL_VALUE_MAP;
        break;
    case 7:
        value->type = OTEL_VALUE_BYTES;
        break;
    default:
        break;
    }
}

bool otel_attribute_next(otel_slice *rest, uint32_t number, otel_attribute_view *attribute)
{
    struct oteli_field key_value;
    if (!next_of(rest, number, &key_value))
        return false;
    *attribute = (otel_attribute_view){.key = nothing, .value.slice = nothing};
    const uint8_t *at = key_value.bytes;
    const uint8_t *end = at + key_value.length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        if (field.number == 1)
            attribute->key = bytes_of(&field);
        else if (field.number == 2)
            read_value(&attribute->value, bytes_of(&field));
    }
    return true;
}

bool otel_array_next(otel_slice *rest, otel_value_view *element)
{
    struct oteli_field field;
    if (!next_of(rest, 1, &field))
        return false;
    read_value(element, bytes_of(&field));
    return true;
}

bool otel_event_next(otel_slice *rest, otel_event_view *event)
{
    struct oteli_field message;
    if (!next_of(rest, 11, &message))
        return false;
    *event = (otel_event_view){.name = nothing, .attributes = nothing};
    const uint8_t *at = message.bytes;
    const uint8_t *end = at + message.length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        if (field.number == 1)
            event->time_ns = field.value;
        else if (field.number == 2)
            event->name = bytes_of(&field);
        else if (field.number == OTEL_FIELD_EVENT_ATTRIBUTE)
            extend(&event->attributes, &field);
        else if (field.number == 4)
            event->dropped_attributes_count = (uint32_t)field.value;
    }
    return true;
}

bool otel_link_next(otel_slice *rest, otel_link_view *link)
{
    struct oteli_field message;
    if (!next_of(rest, 13, &message))
        return false;
    *link = (otel_link_view){.tracestate = nothing, .attributes = nothing};
    const uint8_t *at = message.bytes;
    const uint8_t *end = at + message.length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        switch (field.number) {
        case 1:
            link->trace_id = field.bytes;
            break;
        case 2:
            link->span_id = field.bytes;
            break;
        case 3:
            link->tracestate = bytes_of(&field);
            break;
        case OTEL_FIELD_LINK_ATTRIBUTE:
            extend(&link->attributes, &field);
            break;
        case 5:
            link->dropped_attributes_count = (uint32_t)field.value;
            break;
        case 6:
            link->flags = (uint32_t)field.value;
            break;
        default:
            break;
        }
    }
    return true;
}
