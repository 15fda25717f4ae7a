/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/otlp_json.c - the contracts are in otlp_json.h. One thread at a time; owns
 * nothing, borrows the batch for the call. */
#include "exporters/json/otlp_json.h"

#include "common/wire.h"
#include "exporters/json/json_value.h"

enum {
    RESOURCE_DROPPED_ATTRIBUTES = 2,
    RESOURCE_ENTITY = 3,
    SCOPE_DROPPED_ATTRIBUTES = 4,
    ENTITY_SCHEMA_URL = 1,
    ENTITY_TYPE = 2,
    ENTITY_ID_KEY = 3,
    ENTITY_DESCRIPTION_KEY = 4
};

enum { USUAL_BYTES_MAX = 1024 * 1024 }; /* of requests with more than one span */

/* ---- members of objects, each behind a comma ------------------------------------------ */

#define MEMBER(json, name) OTELI_JSON_ADD(json, ",\"" name "\":")

static void add_count(struct oteli_text *json, const char *member, uint64_t count)
{
    if (count == 0)
        return;
    oteli_text_add(json, member, strlen(member));
    oteli_json_add_unsigned(json, count);
}

static void add_text(struct oteli_text *json, const char *member, otel_slice text)
{
    if (text.length == 0)
        return;
    oteli_text_add(json, member, strlen(member));
    oteli_json_add_string(json, text);
}

static void add_time(struct oteli_text *json, const char *member, uint64_t ns)
{
    if (ns == 0)
        return;
    oteli_text_add(json, member, strlen(member));
    OTELI_JSON_ADD(json, "\"");
    oteli_json_add_unsigned(json, ns);
    OTELI_JSON_ADD(json, "\"");
}

static void add_id(struct oteli_text *json, const char *member, const uint8_t *id, size_t bytes)
{
    if (id == NULL)
        return;
    oteli_text_add(json, member, strlen(member));
    oteli_json_add_hex(json, id, bytes);
}

static void add_attributes(struct oteli_text *json, otel_slice attributes, uint32_t field)
{
    if (attributes.length == 0)
        return;
    MEMBER(json, "attributes");
    OTELI_JSON_ADD(json, "[");
    oteli_json_add_attributes(json, attributes, field, OTELI_JSON_OTLP);
    OTELI_JSON_ADD(json, "]");
}

/* What stands before an element of a list, of which there are `count` so far: `member` before the
 * first; and behind the last. */
static void begin_element(struct oteli_text *json, const char *member, size_t *count)
{
    if ((*count)++ == 0)
        oteli_text_add(json, member, strlen(member));
    else
        OTELI_JSON_ADD(json, ",");
}

static void end_list(struct oteli_text *json, size_t count)
{
    if (count != 0)
        OTELI_JSON_ADD(json, "]");
}

/* ---- spans ---------------------------------------------------------------------------- */

static void add_events(struct oteli_text *json, otel_slice events)
{
    otel_event_view event;
    size_t count = 0;
    while (otel_event_next(&events, &event)) {
        begin_element(json, ",\"events\":[", &count);
        const size_t object = oteli_json_open(json);
        add_time(json, ",\"timeUnixNano\":", event.time_ns);
        add_text(json, ",\"name\":", event.name);
        add_attributes(json, event.attributes, OTEL_FIELD_EVENT_ATTRIBUTE);
        add_count(json, ",\"droppedAttributesCount\":", event.dropped_attributes_count);
        oteli_json_close(json, object);
    }
    end_list(json, count);
}

static void add_links(struct oteli_text *json, otel_slice links)
{
    otel_link_view link;
    size_t count = 0;
    while (otel_link_next(&links, &link)) {
        begin_element(json, ",\"links\":[", &count);
        const size_t object = oteli_json_open(json);
        add_id(json, ",\"traceId\":", link.trace_id, 16);
        add_id(json, ",\"spanId\":", link.span_id, 8);
        add_text(json, ",\"traceState\":", link.tracestate);
        add_attributes(json, link.attributes, OTEL_FIELD_LINK_ATTRIBUTE);
        add_count(json, ",\"droppedAttributesCount\":", link.dropped_attributes_count);
        add_count(json, ",\"flags\":", link.flags);
        oteli_json_close(json, object);
    }
    end_list(json, count);
}

static void add_status(struct oteli_text *json, const otel_span_view *span)
{
    if (span->status == OTEL_SPAN_STATUS_UNSET && span->status_message.length == 0)
        return;
    MEMBER(json, "status");
    const size_t object = oteli_json_open(json);
    add_text(json, ",\"message\":", span->status_message);
    add_count(json, ",\"code\":", (uint64_t)span->status);
    oteli_json_close(json, object);
}

static void add_span(struct oteli_text *json, const otel_span_view *span)
{
    const size_t object = oteli_json_open(json);
    add_id(json, ",\"traceId\":", span->trace_id, 16);
    add_id(json, ",\"spanId\":", span->span_id, 8);
    add_text(json, ",\"traceState\":", span->tracestate);
    add_id(json, ",\"parentSpanId\":", span->parent_span_id, 8);
    add_text(json, ",\"name\":", span->name);
    add_count(json, ",\"kind\":", (uint32_t)((uint32_t)span->kind + 1));
    add_time(json, ",\"startTimeUnixNano\":", span->start_ns);
    add_time(json, ",\"endTimeUnixNano\":", span->end_ns);
    add_attributes(json, span->attributes, OTEL_FIELD_SPAN_ATTRIBUTE);
    add_count(json, ",\"droppedAttributesCount\":", span->dropped_attributes_count);
    add_events(json, span->events);
    add_count(json, ",\"droppedEventsCount\":", span->dropped_events_count);
    add_links(json, span->links);
    add_count(json, ",\"droppedLinksCount\":", span->dropped_links_count);
    add_status(json, span);
    add_count(json, ",\"flags\":", span->flags);
    oteli_json_close(json, object);
}

/* ---- resource and scope --------------------------------------------------------------- */

/* Take the next field from the front of a message of ours. */
static bool take_field(otel_slice *rest, struct oteli_field *field)
{
    if (rest->length == 0)
        return false;
    const uint8_t *at = (const uint8_t *)rest->data;
    const uint8_t *end = at + rest->length;
    if (!oteli_next_field(&at, end, field))
        return false;
    *rest = (otel_slice){(const char *)at, (size_t)(end - at)};
    return true;
}

static otel_slice text_of(const struct oteli_field *field)
{
    return (otel_slice){(const char *)field->bytes, field->length};
}

/* The number in this field. */
static uint64_t number_in(otel_slice message, uint32_t number)
{
    struct oteli_field field;
    while (take_field(&message, &field))
        if (field.number == number)
            return field.value;
    return 0;
}

static void add_strings(struct oteli_text *json, const char *member, otel_slice message,
                        uint32_t number)
{
    struct oteli_field field;
    size_t count = 0;
    while (take_field(&message, &field)) {
        if (field.number != number)
            continue;
        begin_element(json, member, &count);
        oteli_json_add_string(json, text_of(&field));
    }
    end_list(json, count);
}

static void add_entity(struct oteli_text *json, otel_slice entity)
{
    const size_t object = oteli_json_open(json);
    otel_slice rest = entity;
    struct oteli_field field;
    while (take_field(&rest, &field)) {
        if (field.number == ENTITY_SCHEMA_URL)
            add_text(json, ",\"schemaUrl\":", text_of(&field));
        else if (field.number == ENTITY_TYPE)
            add_text(json, ",\"type\":", text_of(&field));
    }
    add_strings(json, ",\"idKeys\":[", entity, ENTITY_ID_KEY);
    add_strings(json, ",\"descriptionKeys\":[", entity, ENTITY_DESCRIPTION_KEY);
    oteli_json_close(json, object);
}

static void add_entities(struct oteli_text *json, otel_slice resource)
{
    struct oteli_field field;
    size_t count = 0;
    while (take_field(&resource, &field)) {
        if (field.number != RESOURCE_ENTITY)
            continue;
        begin_element(json, ",\"entityRefs\":[", &count);
        add_entity(json, text_of(&field));
    }
    end_list(json, count);
}

static bool has_attributes(otel_slice attributes, uint32_t field)
{
    otel_attribute_view attribute;
    return otel_attribute_next(&attributes, field, &attribute);
}

static void add_resource(struct oteli_text *json, otel_slice resource)
{
    const size_t object = oteli_json_open(json);
    if (has_attributes(resource, OTEL_FIELD_RESOURCE_ATTRIBUTE))
        add_attributes(json, resource, OTEL_FIELD_RESOURCE_ATTRIBUTE);
    add_count(json,
              ",\"droppedAttributesCount\":", number_in(resource, RESOURCE_DROPPED_ATTRIBUTES));
    add_entities(json, resource);
    oteli_json_close(json, object);
}

static void add_scope(struct oteli_text *json, const otel_scope_view *scope)
{
    const size_t object = oteli_json_open(json);
    add_text(json, ",\"name\":", scope->name);
    add_text(json, ",\"version\":", scope->version);
    add_attributes(json, scope->attributes, OTEL_FIELD_SCOPE_ATTRIBUTE);
    add_count(json,
              ",\"droppedAttributesCount\":", number_in(scope->otlp, SCOPE_DROPPED_ATTRIBUTES));
    oteli_json_close(json, object);
}

/* ---- a request ------------------------------------------------------------------------ */

static const otel_scope_view *scope_of(const otel_batch *batch, size_t index)
{
    const otel_scope_view *scope;
    (void)otel_batch_span_otlp(batch, index, &scope);
    return scope;
}

/* Whether no span from number `first` on has the scope of this one. Programs have few scopes, so
 * one that has it is mostly near. */
static bool is_first_of_scope(const otel_batch *batch, size_t first, size_t index)
{
    const otel_scope_view *scope = scope_of(batch, index);
    for (size_t i = index; i != first; i--)
        if (scope_of(batch, i - 1) == scope)
            return false;
    return true;
}

static void open_request(struct oteli_text *json, const otel_batch *batch)
{
    OTELI_JSON_ADD(json, "{\"resourceSpans\":[{\"resource\":");
    add_resource(json, otel_batch_resource(batch));
    OTELI_JSON_ADD(json, ",\"scopeSpans\":[");
}

static void close_request(struct oteli_text *json, const otel_batch *batch)
{
    OTELI_JSON_ADD(json, "]");
    add_text(json, ",\"schemaUrl\":", otel_batch_resource_schema_url(batch));
    OTELI_JSON_ADD(json, "}]}");
}

static void open_scope_spans(struct oteli_text *json, const otel_scope_view *scope, bool is_first)
{
    if (!is_first)
        OTELI_JSON_ADD(json, ",");
    OTELI_JSON_ADD(json, "{\"scope\":");
    add_scope(json, scope);
    OTELI_JSON_ADD(json, ",\"spans\":[");
}

static void close_scope_spans(struct oteli_text *json, const otel_scope_view *scope)
{
    OTELI_JSON_ADD(json, "]");
    add_text(json, ",\"schemaUrl\":", scope->schema_url);
    OTELI_JSON_ADD(json, "}");
}

static void add_next_span(struct oteli_text *json, const otel_batch *batch, size_t index,
                          bool is_first)
{
    otel_span_view span;
    otel_batch_span(batch, index, &span);
    if (!is_first)
        OTELI_JSON_ADD(json, ",");
    add_span(json, &span);
}

bool oteli_otlp_json_add(struct oteli_text *json, const otel_batch *batch, size_t first, size_t end,
                         size_t max_bytes)
{
    const size_t most = max_bytes < SIZE_MAX - json->length ? json->length + max_bytes : SIZE_MAX;
    open_request(json, batch);
    for (size_t i = first; i < end && json->length <= most; i++) {
        if (!is_first_of_scope(batch, first, i))
            continue;
        const otel_scope_view *scope = scope_of(batch, i);
        open_scope_spans(json, scope, i == first);
        for (size_t k = i; k < end && json->length <= most; k++)
            if (scope_of(batch, k) == scope)
                add_next_span(json, batch, k, k == i);
        close_scope_spans(json, scope);
    }
    close_request(json, batch);
    return !json->failed && json->length <= most;
}

/* How many spans a request may have that cannot have all. They are written one after the other,
 * with what else a request of them has, to see how long it is: where each belongs shows only when
 * it is known which fit. */
static size_t count_that_fits(struct oteli_text *json, const otel_batch *batch, size_t first,
                              size_t end, size_t usual, size_t max_bytes)
{
    open_request(json, batch);
    close_request(json, batch);
    for (size_t i = first; i < end; i++) {
        const bool is_new = is_first_of_scope(batch, first, i);
        if (is_new) {
            open_scope_spans(json, scope_of(batch, i), i == first);
            close_scope_spans(json, scope_of(batch, i));
        }
        add_next_span(json, batch, i, is_new);
        if (json->length > (i == first ? max_bytes : usual) || json->failed)
            return i - first;
    }
    return end - first;
}

size_t oteli_otlp_json_request(struct oteli_text *json, const otel_batch *batch, size_t first,
                               size_t max_spans, size_t max_bytes)
{
    const size_t usual = max_bytes < USUAL_BYTES_MAX ? max_bytes : USUAL_BYTES_MAX;
    const size_t left = otel_batch_size(batch) - first;
    size_t count = left < max_spans ? left : max_spans;
    oteli_text_reset(json);
    if (oteli_otlp_json_add(json, batch, first, first + count, usual))
        return count;
    json->length = 0;
    count = count_that_fits(json, batch, first, first + count, usual, max_bytes);
    json->length = 0;
    return count != 0 && oteli_otlp_json_add(json, batch, first, first + count, max_bytes) ? count
                                                                                           : 0;
}
