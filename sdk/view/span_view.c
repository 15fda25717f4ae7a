/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view/span_view.c - what exporters see of a span: fields, attributes, events, links. Any
 * thread.
 *
 * Everything that is read here was written by api/, so nothing is checked. Repeated fields
 * of one number stand together in our messages; a slice spans all of them.
 *
 * Source: opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto. */
#include "sdk/view/span_view.h"
#include "api/record/line.h"
#include "api/span/tracer.h"
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

/* What becomes of a field: where it is put in a view, and as what. */
struct place {
    enum {
        LEFT_OUT,
        POINTER, /* to its bytes */
        SLICE,
        REPEATED, /* a slice of this and others of its number */
        NUMBER,
        SHORT_NUMBER,
        KIND,
        STATUS, /* a message with two fields for the same view */
        STATUS_CODE
    } as;
    size_t offset;
};

struct places {
    const struct place *by_number;
    uint32_t count;
};

#define SPAN(as, member)                     \
    {                                        \
        as, offsetof(otel_span_view, member) \
    }
static const struct place span_places[] = {
    [1] = SPAN(POINTER, trace_id),
    [2] = SPAN(POINTER, span_id),
    [3] = SPAN(SLICE, tracestate),
    [4] = SPAN(POINTER, parent_span_id),
    [5] = SPAN(SLICE, name),
    [6] = SPAN(KIND, kind),
    [7] = SPAN(NUMBER, start_ns),
    [8] = SPAN(NUMBER, end_ns),
    [OTEL_FIELD_SPAN_ATTRIBUTE] = SPAN(REPEATED, attributes),
    [10] = SPAN(SHORT_NUMBER, dropped_attributes_count),
    [11] = SPAN(REPEATED, events),
    [12] = SPAN(SHORT_NUMBER, dropped_events_count),
    [13] = SPAN(REPEATED, links),
    [14] = SPAN(SHORT_NUMBER, dropped_links_count),
    [15] = SPAN(STATUS, status),
    [16] = SPAN(SHORT_NUMBER, flags),
};
static const struct place status_places[] = {
    [2] = SPAN(SLICE, status_message),
    [3] = SPAN(STATUS_CODE, status),
};

#define EVENT(as, member)                     \
    {                                         \
        as, offsetof(otel_event_view, member) \
    }
static const struct place event_places[] = {
    [1] = EVENT(NUMBER, time_ns),
    [2] = EVENT(SLICE, name),
    [OTEL_FIELD_EVENT_ATTRIBUTE] = EVENT(REPEATED, attributes),
    [4] = EVENT(SHORT_NUMBER, dropped_attributes_count),
};

#define LINK(as, member)                     \
    {                                        \
        as, offsetof(otel_link_view, member) \
    }
static const struct place link_places[] = {
    [1] = LINK(POINTER, trace_id),
    [2] = LINK(POINTER, span_id),
    [3] = LINK(SLICE, tracestate),
    [OTEL_FIELD_LINK_ATTRIBUTE] = LINK(REPEATED, attributes),
    [5] = LINK(SHORT_NUMBER, dropped_attributes_count),
    [6] = LINK(SHORT_NUMBER, flags),
};

#define PLACES(list) ((struct places){(list), sizeof(list) / sizeof(list)[0]})

static void read_fields(void *view, struct places places, otel_slice message)
{
    const uint8_t *from = (const uint8_t *)message.data;
    const uint8_t *const end = from + message.length;
    struct oteli_field field;
    while (oteli_next_field(&from, end, &field)) {
        const struct place place = field.number < places.count ? places.by_number[field.number]
                                                               : (struct place){LEFT_OUT, 0};
        void *const at = (char *)view + place.offset;
        switch (place.as) {
        case LEFT_OUT:
            break;
        case POINTER:
            *(const uint8_t **)at = field.bytes;
            break;
        case SLICE:
            *(otel_slice *)at = bytes_of(&field);
            break;
        case REPEATED:
            extend(at, &field);
            break;
        case NUMBER:
            *(uint64_t *)at = field.value;
            break;
        case SHORT_NUMBER:
            *(uint32_t *)at = (uint32_t)field.value;
            break;
        case KIND:
            *(otel_span_kind *)at = (otel_span_kind)(field.value - 1);
            break;
        case STATUS:
            read_fields(view, PLACES(status_places), bytes_of(&field));
            break;
        case STATUS_CODE:
            *(otel_span_status *)at = (otel_span_status)field.value;
            break;
        }
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
        .otlp = otlp,
        .scope = scope,
    };
    read_fields(span, PLACES(span_places), otlp);
}

const otel_scope_view *oteli_record_scope(const struct oteli_record *record)
{
    return record->tracer != NULL ? &record->tracer->scope : &oteli_tracer_nameless.scope;
}

void oteli_span_view_of_record(otel_span_view *span, const struct oteli_record *record)
{
    const uint8_t *message = oteli_record_message((struct oteli_record *)(uintptr_t)record);
    const otel_slice otlp = {(const char *)message, record->length};
    oteli_span_view_fill(span, otlp, oteli_record_scope(record));
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
    /* By the number of the field in AnyValue. */
    static const otel_value_type types[] = {
        OTEL_VALUE_EMPTY,  OTEL_VALUE_STRING,       OTEL_VALUE_BOOL, OTEL_VALUE_INT,
        OTEL_VALUE_DOUBLE, OTEL_VALUE_STRING_ARRAY, OTEL_VALUE_MAP,  OTEL_VALUE_BYTES,
    };
    *value = (otel_value_view){.slice = nothing};
    const uint8_t *at = (const uint8_t *)any_value.data;
    struct oteli_field field;
    if (any_value.length == 0 || !oteli_next_field(&at, at + any_value.length, &field))
        return;
    if (field.bytes != NULL)
        value->slice = bytes_of(&field);
    if (field.number < sizeof types / sizeof types[0])
        value->type = types[field.number];
    if (value->type == OTEL_VALUE_BOOL)
        value->boolean = field.value != 0;
    else if (value->type == OTEL_VALUE_INT)
        value->integer = (int64_t)field.value;
    else if (value->type == OTEL_VALUE_DOUBLE)
        memcpy(&value->real, &field.value, sizeof value->real);
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
    read_fields(event, PLACES(event_places), bytes_of(&message));
    return true;
}

bool otel_link_next(otel_slice *rest, otel_link_view *link)
{
    struct oteli_field message;
    if (!next_of(rest, 13, &message))
        return false;
    *link = (otel_link_view){.tracestate = nothing, .attributes = nothing};
    read_fields(link, PLACES(link_places), bytes_of(&message));
    return true;
}
