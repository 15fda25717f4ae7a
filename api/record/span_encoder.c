/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/span_encoder.c - write the record of any span, the unusual ones included. On the
 * thread that ends it.
 *
 * Source: opentelemetry/proto/trace/v1/trace.proto (field numbers, flags). */
#include "api/record/span_encoder.h"
#include "api/context/tracestate_pool.h"
#include "api/record/raw_record.h"

enum {
    TRACE_STATE = 3,
    DROPPED_ATTRIBUTES = 10,
    DROPPED_EVENTS = 12,
    DROPPED_LINKS = 14,
    STATUS = 15
};
enum { STATUS_MESSAGE = 2, STATUS_CODE = 3 };

static uint8_t *put_tracestate(uint8_t *at, const struct oteli_active_span *active)
{
    char text[OTELI_TRACESTATE_BYTES + 1];
    const size_t length = oteli_tracestate_copy(
        oteli_active_tracestate(active), (const uint8_t *)active->self.opaque, text, sizeof text);
    return length != 0 ? oteli_put_bytes_field(at, TRACE_STATE, text, length) : at;
}

static uint8_t *put_count(uint8_t *at, uint32_t field, uint32_t count)
{
    return count != 0 ? oteli_put_varint_field(at, field, count) : at;
}

static uint8_t *put_status(uint8_t *at, const struct oteli_active_span *active)
{
    if (active->unusual.status == OTEL_SPAN_STATUS_UNSET)
        return at;
    const size_t length = active->unusual.message.length;
    at = oteli_put_bytes_head(
        at, STATUS, (length != 0 ? oteli_bytes_field_size(STATUS_MESSAGE, length) : 0) + 2);
    if (length != 0)
        at = oteli_put_bytes_field(at, STATUS_MESSAGE, active->unusual.message.data, length);
    return oteli_put_varint_field(at, STATUS_CODE, active->unusual.status);
}

/* What is between attributes and flags. `*events`: where they would be. */
static uint8_t *put_rest(uint8_t *at, const struct oteli_active_span *active, uint8_t **events)
{
    const struct oteli_unusual *unusual = &active->unusual;
    at = put_count(at, DROPPED_ATTRIBUTES, unusual->dropped_attributes);
    *events = at;
    at = oteli_put_bytes(at, unusual->events.data, unusual->events.length);
    at = put_count(at, DROPPED_EVENTS, unusual->dropped_events);
    at = oteli_put_bytes(at, unusual->links.data, unusual->links.length);
    at = put_count(at, DROPPED_LINKS, unusual->dropped_links);
    return put_status(at, active);
}

uint32_t oteli_raw_write_more(struct oteli_raw *raw, const struct oteli_active_span *active,
                              uint64_t end)
{
    const uint32_t name_length = active->name_length;
    uint8_t *const attributes = raw->name + name_length;
    uint8_t *events;
    if (!active->traits.is_lent) {
        oteli_raw_write_rest(raw, active);
        if (name_length > OTELI_NAME_INLINE)
            memcpy(raw->name, active->unusual.name.data, name_length);
    }
    const uint8_t *behind = put_rest(attributes + active->attributes.length, active, &events);
    const size_t length = (size_t)(behind - attributes);
    const size_t size = oteli_raw_size_of(name_length, length);
    oteli_raw_write_head(raw, active, size, length, end);
    raw->traits.is_unusual = active->unusual.events.length != 0;
    raw->events_at = (uint32_t)(events - attributes);
    return (uint32_t)size;
}

uint32_t oteli_compose(struct oteli_record *record, const struct oteli_active_span *active,
                       uint64_t end)
{
    uint8_t *const message = (uint8_t *)(record + 1);
    uint8_t *at = oteli_put_short(message, OTELI_SPAN_TRACE_ID, active->self.opaque, 16);
    at = oteli_put_short(at, OTELI_SPAN_SPAN_ID, &active->self.opaque[2], 8);
    if (oteli_active_tracestate(active) != 0) /* few have one, and the call would cost each span */
        at = put_tracestate(at, active);
    if (active->parent_id != 0)
        at = oteli_put_short(at, OTELI_SPAN_PARENT_SPAN_ID, &active->parent_id, 8);
    if (active->name_length != 0)
        at = oteli_put_bytes_field(at, OTELI_SPAN_NAME, oteli_active_name(active),
                                   active->name_length);
    *at++ = OTELI_TAG(OTELI_SPAN_KIND, OTELI_WIRE_VARINT);
    *at++ = active->traits.wire_kind;
    record->times_at = (uint32_t)(at - message);
    *at++ = OTELI_TAG(OTELI_SPAN_START_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, oteli_active_start(active));
    *at++ = OTELI_TAG(OTELI_SPAN_END_TIME, OTELI_WIRE_FIXED64);
    at = oteli_put_fixed64(at, end);
    at = oteli_compose_attributes(at, active);
    uint8_t *events;
    at = put_rest(at, active, &events);
    record->events_at = active->unusual.events.length != 0 ? (uint32_t)(events - message) : 0;
    at = oteli_compose_flags(at, active->traits.wire_flags);
    record->length = (uint32_t)(at - message);
    record->size = (uint32_t)((sizeof *record + record->length + 7) & ~(size_t)7);
    record->epoch = active->epoch;
    record->what =
        (active->traits.bits & OTELI_NAME_IS_ADDRESS) != 0 ? (uint32_t)OTELI_RECORD_ADDRESS : 0;
    record->tracer = active->tracer;
    return record->size;
}
