/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/active_span.c - collect what is said about an open span, in wire form and under the
 * limits: name, events, links, status. Attributes are in active_attributes.c. Runs on the app
 * thread that owns the slot. */
#include "api/active/active_span.h"
#include "api/context/tracestate_pool.h"
#include "api/encode/key_value.h"
#include "common/base/alloc.h"
#include "common/clock/clock.h"
#include "common/log.h"
#include "common/text/utf8.h"
#include "common/wire.h"

#include <stdlib.h>
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
enum { LARGEST_BUFFER = 1 << 30 };

uint8_t *oteli_buffer_grow(struct oteli_buffer *buffer, size_t more)
{
    if (more > LARGEST_BUFFER - (size_t)buffer->length)
        return NULL;
    const size_t needed = buffer->length + more;
    size_t capacity = buffer->capacity != 0 ? buffer->capacity : OTELI_BUFFER_FIRST;
    while (capacity < needed)
        capacity *= 2;
    uint8_t *data = oteli_realloc(buffer->data, capacity);
    if (data == NULL)
        return NULL;
    buffer->data = data;
    buffer->capacity = (uint32_t)capacity;
    return data + buffer->length;
}

void oteli_buffer_fini(struct oteli_buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct oteli_buffer){0};
}

static void shrink(struct oteli_buffer *buffer)
{
    if (buffer->capacity > OTELI_BUFFER_KEPT)
        oteli_buffer_fini(buffer);
}

/* An attached context only mentions its tracestate; an open span holds it, and is unusual. */
static void let_tracestate_go(struct oteli_active_span *active)
{
    if (OTELI_LIKELY((active->self.opaque[3] & OTELI_REF_TRACESTATE) == 0))
        return;
    if (active->traits.is_unusual && (active->self.opaque[3] & OTELI_REF_ATTACHED) == 0)
        oteli_tracestate_release(oteli_active_tracestate(active));
    active->self.opaque[3] &= ~OTELI_REF_TRACESTATE;
}

void oteli_active_lighten(struct oteli_active_span *active)
{
    struct oteli_unusual *unusual = &active->unusual;
    let_tracestate_go(active);
    struct oteli_buffer *const buffers[] = {&unusual->name, &unusual->events, &unusual->links,
                                            &unusual->message, &active->attributes};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++) {
        shrink(buffers[i]);
        buffers[i]->length = 0;
    }
    memset(unusual, 0, offsetof(struct oteli_unusual, name));
    active->traits.is_unusual = false;
}

void oteli_active_forget(struct oteli_active_span *active)
{
    struct oteli_unusual *unusual = &active->unusual;
    unusual->name.length = unusual->events.length = unusual->links.length = 0;
    unusual->message.length = 0;
    oteli_active_no_attributes(active);
    memset(unusual, 0, offsetof(struct oteli_unusual, name));
    active->traits.is_unusual = false;
}

void oteli_active_leave(struct oteli_active_span *active)
{
    if (active->traits.is_unusual)
        oteli_active_lighten(active);
    oteli_active_no_attributes(active);
    if (active->below == OTELI_PASSED)
        active->below = OTELI_NOT_A_COVER;
    active->self = (otel_span){{0, 0, 0, 0}};
}

void oteli_active_fini(struct oteli_active_span *active)
{
    let_tracestate_go(active);
    oteli_buffer_fini(&active->attributes);
    oteli_buffer_fini(&active->unusual.events);
    oteli_buffer_fini(&active->unusual.links);
    oteli_buffer_fini(&active->unusual.message);
    oteli_buffer_fini(&active->unusual.name);
    memset(active, 0, sizeof *active);
}

void oteli_active_set_long_name(struct oteli_active_span *active, const char *name, size_t length)
{
    active->traits.is_unusual = true;
    active->traits.bits &= (uint8_t)~OTELI_NAME_IS_ADDRESS;
    const size_t size = oteli_text_size(name, length);
    if (size <= OTELI_NAME_INLINE) {
        oteli_text_put((uint8_t *)active->name, name, length, size);
        active->name_length = (uint32_t)size;
        return;
    }
    active->unusual.name.length = 0;
    uint8_t *at = oteli_buffer_room(&active->unusual.name, size);
    if (at == NULL) {
        active->name_length = 0;
        return;
    }
    oteli_text_put(at, name, length, size);
    active->name_length = (uint32_t)size;
}

void oteli_active_warn(struct oteli_active_span *active, enum oteli_warning_about about)
{
    active->traits.is_unusual = true;
    if (active->unusual.has_warned)
        return;
    active->unusual.has_warned = true;
    active->unusual.warning = (uint8_t)about;
}

void oteli_active_take_warning(struct oteli_active_span *active, struct oteli_warning *warning)
{
    warning->about = (enum oteli_warning_about)active->unusual.warning;
    active->unusual.warning = OTELI_NO_COMPLAINT;
    const size_t size = sizeof warning->name - 1;
    const size_t length = oteli_utf8_valid_prefix(
        oteli_active_name(active), active->name_length < size ? active->name_length : size);
    memcpy(warning->name, oteli_active_name(active), length);
    warning->name[length] = '\0';
}

/* Each kind is a line of its own for the log, which says each at most now and then. */
void oteli_warn_later(const struct oteli_warning *warning)
{
    static struct oteli_log_site sites[OTELI_BAD_ATTRIBUTE + 1];
    static const char *const texts[] = {
        [OTELI_TOO_MANY_ATTRIBUTES] = " has more attributes than its limit; they are left out",
        [OTELI_TOO_MANY_EVENTS] = " has more events than its limit; they are left out",
        [OTELI_TOO_MANY_LINKS] = " has more links than its limit; they are left out",
        [OTELI_TOO_MANY_EVENT_ATTRIBUTES] =
            " has an event with more attributes than its limit; they are left out",
        [OTELI_TOO_MANY_LINK_ATTRIBUTES] =
            " has a link with more attributes than its limit; they are left out",
        [OTELI_BAD_ATTRIBUTE] = ": an attribute with an empty key, or too large, is left out"};
    if (warning->about != OTELI_NO_COMPLAINT)
        oteli_log_write(&sites[warning->about], OTEL_LOG_WARN, 0, "span \"%s\"%s", warning->name,
                        texts[warning->about]);
}

void oteli_active_add_event(struct oteli_active_span *active, const struct oteli_limits *limits,
                            otel_slice name, uint64_t time, const otel_attribute *attributes,
                            size_t count)
{
    active->traits.is_unusual = true;
    if (active->unusual.event_count >= limits->events) {
        active->unusual.dropped_events++;
        oteli_active_warn(active, OTELI_TOO_MANY_EVENTS);
        return;
    }
    if (attributes == NULL)
        count = 0;
    const size_t name_size = oteli_text_size(name.data, name.length);
    const struct oteli_list_limits list_limits = {limits->event_attributes, limits->value_depth,
                                                  limits->value_length};
    uint32_t dropped;
    const size_t attribute_bytes = oteli_list_size(attributes, count, &list_limits, &dropped);
    if (dropped != 0)
        oteli_active_warn(active, OTELI_TOO_MANY_EVENT_ATTRIBUTES);
    const size_t size = 9 + (name_size ? oteli_bytes_field_size(EVENT_NAME, name_size) : 0) +
                        attribute_bytes +
                        (dropped ? oteli_varint_field_size(EVENT_DROPPED, dropped) : 0);
    uint8_t *at =
        oteli_buffer_room(&active->unusual.events, oteli_bytes_field_size(SPAN_EVENTS, size));
    if (at == NULL) {
        active->unusual.dropped_events++;
        return;
    }
    at = oteli_put_bytes_head(at, SPAN_EVENTS, size);
    at = oteli_put_fixed64(oteli_put_tag(at, EVENT_TIME, OTELI_WIRE_FIXED64), time);
    if (name_size != 0) {
        at = oteli_put_bytes_head(at, EVENT_NAME, name_size);
        at = oteli_text_put(at, name.data, name.length, name_size);
    }
    at = oteli_list_put(at, EVENT_ATTRIBUTES, attributes, count, &list_limits);
    if (dropped != 0)
        at = oteli_put_varint_field(at, EVENT_DROPPED, dropped);
    active->unusual.events.length = (uint32_t)(at - active->unusual.events.data);
    active->unusual.event_count++;
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
    active->traits.is_unusual = true;
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

void oteli_active_set_status(struct oteli_active_span *active, otel_span_status status,
                             otel_slice description)
{
    const bool is_known = status == OTEL_SPAN_STATUS_OK || status == OTEL_SPAN_STATUS_ERROR;
    if (!is_known || active->unusual.status == OTEL_SPAN_STATUS_OK)
        return;
    active->traits.is_unusual = true;
    active->unusual.status = (uint8_t)status;
    active->unusual.message.length = 0;
    if (status != OTEL_SPAN_STATUS_ERROR || description.length == 0)
        return;
    const size_t size = oteli_text_size(description.data, description.length);
    uint8_t *at = oteli_buffer_room(&active->unusual.message, size);
    if (at == NULL)
        return;
    oteli_text_put(at, description.data, description.length, size);
    active->unusual.message.length = (uint32_t)size;
}
