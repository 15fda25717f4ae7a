/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/gather_span.c - from a span in OTLP to the model of a drawing:
 * oteli_gather_keep of exporters/console/gather.h. */
#include "exporters/console/gather.h"

#include <string.h>

/* Nobody shows more, so that more need not pass through the scratch text. */
static otel_slice beginning(otel_slice text)
{
    text.length = text.length < 2 * OTELI_RENDER_TEXT_MAX ? text.length : 2 * OTELI_RENDER_TEXT_MAX;
    return text;
}

static void add_scalar(struct oteli_text *text, const otel_value_view *value)
{
    const otel_slice slice = beginning(value->slice);
    switch (value->type) {
    case OTEL_VALUE_STRING:
        oteli_text_add_quoted(text, slice);
        break;
    case OTEL_VALUE_BOOL:
        oteli_text_add_string(text, value->boolean ? "true" : "false");
        break;
    case OTEL_VALUE_INT:
        oteli_text_add_format(text, "%lld", (long long)value->integer);
        break;
    case OTEL_VALUE_DOUBLE:
        oteli_text_add_double(text, value->real);
        break;
    case OTEL_VALUE_BYTES:
        oteli_text_add_string(text, "0x");
        oteli_text_add_hex(text, slice.data, slice.length);
        break;
    case OTEL_VALUE_EMPTY:
        oteli_text_add_string(text, "null");
        break;
    default: /* arrays and maps are no scalars */
        break;
    }
}

static void add_key(struct oteli_text *text, otel_slice key)
{
    key = beginning(key);
    oteli_text_add(text, key.data, key.length);
    oteli_text_add_string(text, "=");
}

/* An array or a map on the way to where we are; nobody reads what is nested deeper. */
enum { NESTING_MAX = 8 };
struct level {
    otel_slice rest;
    bool is_map;
    bool is_first;
};

/* The next element of a level, with what stands in front of it; false: there is none. */
static bool next_element(struct oteli_text *text, struct level *level, otel_value_view *value)
{
    const bool is_map = level->is_map;
    otel_attribute_view entry;
    if (text->length >= 4 * OTELI_RENDER_TEXT_MAX ||
        !(is_map ? otel_attribute_next(&level->rest, OTEL_FIELD_MAP_ENTRY, &entry)
                 : otel_array_next(&level->rest, value)))
        return false;
    oteli_text_add_string(text, level->is_first ? "" : ", ");
    level->is_first = false;
    if (!is_map)
        return true;
    add_key(text, entry.key);
    *value = entry.value;
    return true;
}

/* Append "key=value", arrays as [1, 2], maps as {a=1, b=2}. */
static void describe_attribute(struct oteli_text *text, const otel_attribute_view *attribute)
{
    struct level levels[NESTING_MAX];
    size_t depth = 0;
    otel_value_view value = attribute->value;
    add_key(text, attribute->key);
    for (;;) {
        const bool is_map = value.type == OTEL_VALUE_MAP;
        if (!is_map && value.type != OTEL_VALUE_STRING_ARRAY) {
            add_scalar(text, &value);
        } else if (depth == NESTING_MAX) {
            oteli_text_add_string(text, "…");
        } else {
            oteli_text_add_string(text, is_map ? "{" : "[");
            levels[depth++] = (struct level){value.slice, is_map, true};
        }
        while (depth > 0 && !next_element(text, &levels[depth - 1], &value))
            oteli_text_add_string(text, levels[--depth].is_map ? "}" : "]");
        if (depth == 0)
            return;
    }
}

static size_t count_attributes(otel_slice rest, uint32_t field)
{
    size_t count = 0;
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, field, &attribute))
        count++;
    return count;
}

static void copy_attributes(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                            struct oteli_render_span *span, const otel_span_view *view)
{
    const size_t count = count_attributes(view->attributes, OTEL_FIELD_SPAN_ATTRIBUTE);
    const size_t kept = count < OTELI_RENDER_ATTRIBUTES_MAX ? count : OTELI_RENDER_ATTRIBUTES_MAX;
    otel_slice *attributes =
        kept != 0 ? oteli_gather_allocate(gather, trace, kept * sizeof *attributes) : NULL;
    otel_slice rest = view->attributes;
    otel_attribute_view attribute;
    while (attributes != NULL && span->attribute_count < kept &&
           otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute)) {
        gather->scratch.length = 0;
        describe_attribute(&gather->scratch, &attribute);
        attributes[span->attribute_count++] = oteli_gather_copy(
            gather, trace, (otel_slice){gather->scratch.data, gather->scratch.length});
    }
    span->attributes = attributes;
    span->attributes_left_out = count - span->attribute_count + view->dropped_attributes_count;
}

/* Those of an event or a link. */
static otel_slice copy_list(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                            otel_slice rest, uint32_t field)
{
    struct oteli_text *text = &gather->scratch;
    otel_attribute_view attribute;
    text->length = 0;
    while (text->length < OTELI_RENDER_TEXT_MAX && otel_attribute_next(&rest, field, &attribute)) {
        oteli_text_add_string(text, text->length != 0 ? ", " : "");
        describe_attribute(text, &attribute);
    }
    return oteli_gather_copy(gather, trace, (otel_slice){text->data, text->length});
}

static void copy_events(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                        struct oteli_render_span *span, const otel_span_view *view)
{
    size_t count = 0;
    otel_event_view event;
    otel_slice rest = view->events;
    while (otel_event_next(&rest, &event))
        count++;
    const size_t kept = count < OTELI_RENDER_EVENTS_MAX ? count : OTELI_RENDER_EVENTS_MAX;
    struct oteli_render_event *events =
        kept != 0 ? oteli_gather_allocate(gather, trace, kept * sizeof *events) : NULL;
    rest = view->events;
    while (events != NULL && span->event_count < kept && otel_event_next(&rest, &event)) {
        struct oteli_render_event *to = &events[span->event_count++];
        to->time_ns = event.time_ns;
        to->name = oteli_gather_copy(gather, trace, event.name);
        to->attributes = copy_list(gather, trace, event.attributes, OTEL_FIELD_EVENT_ATTRIBUTE);
    }
    span->events = events;
    span->events_left_out = count - span->event_count + view->dropped_events_count;
}

static void copy_links(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                       struct oteli_render_span *span, const otel_span_view *view)
{
    size_t count = 0;
    otel_link_view link;
    otel_slice rest = view->links;
    while (otel_link_next(&rest, &link))
        count++;
    const size_t kept = count < OTELI_RENDER_LINKS_MAX ? count : OTELI_RENDER_LINKS_MAX;
    struct oteli_render_link *links =
        kept != 0 ? oteli_gather_allocate(gather, trace, kept * sizeof *links) : NULL;
    rest = view->links;
    while (links != NULL && span->link_count < kept && otel_link_next(&rest, &link)) {
        if (link.trace_id == NULL || link.span_id == NULL)
            continue; /* of another sender: it says nothing */
        struct oteli_render_link *to = &links[span->link_count++];
        memcpy(to->trace_id, link.trace_id, sizeof to->trace_id);
        memcpy(to->span_id, link.span_id, sizeof to->span_id);
        to->tracestate = oteli_gather_copy(gather, trace, link.tracestate);
        to->attributes = copy_list(gather, trace, link.attributes, OTEL_FIELD_LINK_ATTRIBUTE);
    }
    span->links = links;
    span->links_left_out = count - span->link_count + view->dropped_links_count;
}

struct oteli_gather_trace *oteli_gather_keep(struct oteli_gather *gather,
                                             const otel_span_view *view, otel_slice service)
{
    gather->scratch.failed = false;
    struct oteli_gather_trace *trace = oteli_gather_open(gather, view->trace_id);
    if (trace == NULL)
        return NULL;
    struct oteli_render_span *span = oteli_gather_add(gather, trace);
    if (span == NULL) {
        if (trace->span_count == 0)
            oteli_gather_remove(gather, trace);
        return NULL;
    }
    memcpy(span->span_id, view->span_id, sizeof span->span_id);
    span->has_parent = view->parent_span_id != NULL;
    if (span->has_parent)
        memcpy(span->parent_id, view->parent_span_id, sizeof span->parent_id);
    span->kind = view->kind;
    span->status = view->status;
    span->start_ns = view->start_ns;
    span->end_ns = view->end_ns;
    span->service = oteli_gather_copy(gather, trace, service);
    span->name = oteli_gather_copy(gather, trace, view->name);
    span->status_message = oteli_gather_copy(gather, trace, view->status_message);
    copy_attributes(gather, trace, span, view);
    copy_events(gather, trace, span, view);
    copy_links(gather, trace, span, view);
    span->tracestate = oteli_gather_copy(gather, trace, view->tracestate);
    return trace;
}

otel_slice oteli_gather_service(otel_slice resource)
{
    otel_attribute_view attribute;
    while (otel_attribute_next(&resource, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute))
        if (attribute.value.type == OTEL_VALUE_STRING &&
            attribute.key.length == strlen("service.name") &&
            memcmp(attribute.key.data, "service.name", attribute.key.length) == 0)
            return attribute.value.slice;
    return (otel_slice){0};
}
