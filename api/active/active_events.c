/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/active_events.c - events and links of open spans, in wire form and under the limits.
 *
 * Runs on the thread that owns the place, or has the lock of the detached span.
 *
 * Source: opentelemetry/proto/trace/v1/trace.proto (field numbers). */
#include "api/active/fast_attribute.h"
#include "api/context/tracestate_pool.h"
#include "api/encode/key_value.h"
#include "api/encode/plain_value.h"

#include <string.h>

enum { SPAN_EVENTS = 11, SPAN_LINKS = 13 };
enum { EVENT_TIME = 1, EVENT_NAME = 2, EVENT_ATTRIBUTES = 3, EVENT_DROPPED = 4 };
enum {
    LINK_TRACE_ID = 1,
    LINK_SPAN_ID = 2,
    LINK_TRACE_STATE = 3,
    LINK_ATTRIBUTES = 4,
    LINK_DROPPED = 5,
    LINK_FLAGS = 6
};

/* An event that is said to happen at `time`. */
struct event {
    otel_slice name;
    uint64_t time;
    const otel_attribute *attributes;
    size_t count;
};

/* In one pass: an event whose texts are UTF-8 and not cut, with attributes that have keys of their
 * own and simple values. False: it takes put_planned_event. */
static bool put_plain_event(struct oteli_buffer *events, const struct oteli_limits *limits,
                            const struct event *event)
{
    enum { HEAD = 2, MOST_OF_HEAD = 6, FIXED = MOST_OF_HEAD + 9 + 6 };
    const uint32_t start = events->length;
    uint8_t *at = oteli_buffer_room(events, FIXED + event->name.length);
    if (at == NULL || event->count > limits->event_attributes)
        return false;
    at = oteli_put_tag(at + HEAD, EVENT_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, event->time);
    if (event->name.length != 0)
        at = oteli_text_copy(oteli_put_bytes_head(at, EVENT_NAME, event->name.length),
                             event->name.data, event->name.length);
    uint64_t filter = 0;
    for (size_t i = 0; at != NULL && i < event->count; i++) {
        const otel_value *value = &event->attributes[i].value;
        const otel_slice key = oteli_key_of(&event->attributes[i]);
        const size_t room = oteli_plain_room(key, value, limits->value_length);
        const uint64_t bit = oteli_key_bit(key.data, key.length);
        if (room == 0 || (filter & bit) != 0)
            return false;
        filter |= bit;
        events->length = (uint32_t)(at - events->data);
        at = oteli_buffer_room(events, MOST_OF_HEAD + room);
        if (at != NULL)
            at = oteli_plain_put(at, EVENT_ATTRIBUTES, key, value);
    }
    if (at == NULL)
        return false;
    uint8_t *const head = events->data + start;
    const size_t size = (size_t)(at - head) - HEAD;
    const size_t more = oteli_varint_size(size) - 1; /* than one byte for the length */
    if (more != 0)
        memmove(head + HEAD + more, head + HEAD, size);
    oteli_put_bytes_head(head, SPAN_EVENTS, size);
    events->length = (uint32_t)(at - events->data) + (uint32_t)more;
    return true;
}

/* Any event. False: no memory. */
static OTELI_COLD bool put_planned_event(struct oteli_active_span *active,
                                         const struct oteli_limits *limits,
                                         const struct event *event)
{
    const size_t name_size = oteli_text_size(event->name.data, event->name.length);
    const struct oteli_list_limits list_limits = {limits->event_attributes, limits->value_depth,
                                                  limits->value_length};
    uint32_t dropped;
    const size_t attribute_bytes =
        oteli_list_size(event->attributes, event->count, &list_limits, &dropped);
    if (dropped != 0)
        oteli_active_warn(active, OTELI_TOO_MANY_EVENT_ATTRIBUTES);
    const size_t size = 9 + (name_size ? oteli_bytes_field_size(EVENT_NAME, name_size) : 0) +
                        attribute_bytes +
                        (dropped ? oteli_varint_field_size(EVENT_DROPPED, dropped) : 0);
    uint8_t *at =
        oteli_buffer_room(&active->unusual.events, oteli_bytes_field_size(SPAN_EVENTS, size));
    if (at == NULL)
        return false;
    at = oteli_put_bytes_head(at, SPAN_EVENTS, size);
    at = oteli_put_fixed64(oteli_put_tag(at, EVENT_TIME, OTELI_WIRE_FIXED64), event->time);
    if (name_size != 0) {
        at = oteli_put_bytes_head(at, EVENT_NAME, name_size);
        at = oteli_text_put(at, event->name.data, event->name.length, name_size);
    }
    at = oteli_list_put(at, EVENT_ATTRIBUTES, event->attributes, event->count, &list_limits);
    if (dropped != 0)
        at = oteli_put_varint_field(at, EVENT_DROPPED, dropped);
    active->unusual.events.length = (uint32_t)(at - active->unusual.events.data);
    return true;
}

void oteli_active_add_event(struct oteli_active_span *active, const struct oteli_limits *limits,
                            otel_slice name, uint64_t time, const otel_attribute *attributes,
                            size_t count)
{
    struct oteli_unusual *unusual = &active->unusual;
    const struct event event = {name, time, attributes, attributes != NULL ? count : 0};
    active->traits.is_unusual |= OTELI_HAS_MORE;
    if (unusual->event_count >= limits->events) {
        unusual->dropped_events++;
        oteli_active_warn(active, OTELI_TOO_MANY_EVENTS);
        return;
    }
    const uint32_t start = unusual->events.length;
    bool is_there = put_plain_event(&unusual->events, limits, &event);
    if (OTELI_UNLIKELY(!is_there)) {
        unusual->events.length = start;
        is_there = put_planned_event(active, limits, &event);
    }
    unusual->event_count += is_there;
    unusual->dropped_events += !is_there;
}

/* A link as it will be: sizes and what of it is left out. */
struct link_plan {
    struct oteli_list_limits limits;
    char tracestate[OTELI_TRACESTATE_BYTES + 1];
    size_t tracestate_length;
    size_t attribute_count;
    uint32_t dropped;
    size_t bytes; /* of the message */
};

static void plan_link(struct link_plan *plan, const otel_link *link,
                      const struct oteli_limits *limits)
{
    const otel_span_context *to = &link->context;
    plan->limits = (struct oteli_list_limits){limits->link_attributes, limits->value_depth,
                                              limits->value_length};
    plan->attribute_count = link->attributes != NULL ? link->attribute_count : 0;
    plan->tracestate_length = oteli_tracestate_copy(to->tracestate, to->trace_id, plan->tracestate,
                                                    sizeof plan->tracestate);
    plan->bytes =
        18 + 10 + 5 + /* ids and flags */
        oteli_list_size(link->attributes, plan->attribute_count, &plan->limits, &plan->dropped);
    if (plan->tracestate_length != 0)
        plan->bytes += oteli_bytes_field_size(LINK_TRACE_STATE, plan->tracestate_length);
    if (plan->dropped != 0)
        plan->bytes += oteli_varint_field_size(LINK_DROPPED, plan->dropped);
}

static uint8_t *put_link(uint8_t *at, const struct link_plan *plan, const otel_link *link)
{
    const otel_span_context *to = &link->context;
    const uint32_t flags = (uint32_t)to->flags | OTELI_FLAG_HAS_IS_REMOTE |
                           (to->is_remote ? OTELI_FLAG_IS_REMOTE : 0u);
    at = oteli_put_bytes_head(at, SPAN_LINKS, plan->bytes);
    at = oteli_put_bytes_field(at, LINK_TRACE_ID, to->trace_id, sizeof to->trace_id);
    at = oteli_put_bytes_field(at, LINK_SPAN_ID, to->span_id, sizeof to->span_id);
    if (plan->tracestate_length != 0)
        at = oteli_put_bytes_field(at, LINK_TRACE_STATE, plan->tracestate, plan->tracestate_length);
    at =
        oteli_list_put(at, LINK_ATTRIBUTES, link->attributes, plan->attribute_count, &plan->limits);
    if (plan->dropped != 0)
        at = oteli_put_varint_field(at, LINK_DROPPED, plan->dropped);
    return oteli_put_fixed32(oteli_put_tag(at, LINK_FLAGS, OTELI_WIRE_FIXED32), flags);
}

uint32_t oteli_put_link(uint8_t *at, const otel_link *link)
{
    static const struct oteli_limits none;
    struct link_plan plan;
    plan_link(&plan, link, &none);
    return (uint32_t)(put_link(at, &plan, link) - at);
}

void oteli_active_add_link(struct oteli_active_span *active, const struct oteli_limits *limits,
                           const otel_link *link)
{
    struct link_plan plan;
    plan_link(&plan, link, limits);
    if (!otel_span_context_is_valid(&link->context) && plan.attribute_count == 0 &&
        plan.tracestate_length == 0)
        return;
    active->traits.is_unusual |= OTELI_HAS_MORE;
    if (active->unusual.link_count >= limits->links) {
        active->unusual.dropped_links++;
        oteli_active_warn(active, OTELI_TOO_MANY_LINKS);
        return;
    }
    if (plan.dropped != 0)
        oteli_active_warn(active, OTELI_TOO_MANY_LINK_ATTRIBUTES);
    uint8_t *at =
        oteli_buffer_room(&active->unusual.links, oteli_bytes_field_size(SPAN_LINKS, plan.bytes));
    if (at == NULL) {
        active->unusual.dropped_links++;
        return;
    }
    at = put_link(at, &plan, link);
    active->unusual.links.length = (uint32_t)(at - active->unusual.links.data);
    active->unusual.link_count++;
}
