/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/otlp_json.c - the contracts are in otlp_json.h. One thread at a time; owns the memory of
 * its encoder, borrows the batch for the call. */
#include "exporters/json/otlp_json.h"

#include "common/wire.h"
#include "exporters/json/json_value.h"
#include <stdlib.h>

enum {
    RESOURCE_DROPPED_ATTRIBUTES = 2,
    RESOURCE_ENTITY = 3,
    SCOPE_DROPPED_ATTRIBUTES = 4,
    ENTITY_SCHEMA_URL = 1,
    ENTITY_TYPE = 2,
    ENTITY_ID_KEY = 3,
    ENTITY_DESCRIPTION_KEY = 4
};

enum {
    USUAL_BYTES_MAX = 1024 * 1024, /* of requests with more than one span */
    ALWAYS_KEPT = 64 * 1024        /* a text of this size is never given back */
};

/* Some spans of a batch, and how long their text may become. */
struct part {
    const otel_batch *batch;
    size_t first;
    size_t count;
    size_t max_bytes;
};

void oteli_otlp_json_fini(struct oteli_otlp_json *encoder)
{
    oteli_json_fini(&encoder->text);
    free(encoder->groups);
    free(encoder->next);
    *encoder = (struct oteli_otlp_json){0};
}

/* ---- members of objects, each behind a comma ------------------------------------------ */

#define MEMBER(json, name) OTELI_JSON_ADD(json, ",\"" name "\":")

static void add_count(struct oteli_json *json, const char *member, uint64_t count)
{
    if (count == 0)
        return;
    oteli_json_add(json, member, strlen(member));
    oteli_json_add_unsigned(json, count);
}

static void add_text(struct oteli_json *json, const char *member, otel_slice text)
{
    if (text.length == 0)
        return;
    oteli_json_add(json, member, strlen(member));
    oteli_json_add_string(json, text);
}

static void add_time(struct oteli_json *json, const char *member, uint64_t ns)
{
    if (ns == 0)
        return;
    oteli_json_add(json, member, strlen(member));
    OTELI_JSON_ADD(json, "\"");
    oteli_json_add_unsigned(json, ns);
    OTELI_JSON_ADD(json, "\"");
}

static void add_id(struct oteli_json *json, const char *member, const uint8_t *id, size_t bytes)
{
    if (id == NULL)
        return;
    oteli_json_add(json, member, strlen(member));
    oteli_json_add_hex(json, id, bytes);
}

static void add_attributes(struct oteli_json *json, otel_slice attributes, uint32_t field)
{
    if (attributes.length == 0)
        return;
    MEMBER(json, "attributes");
    OTELI_JSON_ADD(json, "[");
    oteli_json_add_attributes(json, attributes, field, OTELI_JSON_OTLP);
    OTELI_JSON_ADD(json, "]");
}

/* ---- spans ---------------------------------------------------------------------------- */

static void add_events(struct oteli_json *json, otel_slice events)
{
    otel_event_view event;
    bool is_first = true;
    while (otel_event_next(&events, &event)) {
        if (is_first)
            MEMBER(json, "events");
        oteli_json_add(json, is_first ? "[" : ",", 1);
        is_first = false;
        const size_t object = oteli_json_open(json);
        add_time(json, ",\"timeUnixNano\":", event.time_ns);
        add_text(json, ",\"name\":", event.name);
        add_attributes(json, event.attributes, OTEL_FIELD_EVENT_ATTRIBUTE);
        add_count(json, ",\"droppedAttributesCount\":", event.dropped_attributes_count);
        oteli_json_close(json, object);
    }
    if (!is_first)
        OTELI_JSON_ADD(json, "]");
}

static void add_links(struct oteli_json *json, otel_slice links)
{
    otel_link_view link;
    bool is_first = true;
    while (otel_link_next(&links, &link)) {
        if (is_first)
            MEMBER(json, "links");
        oteli_json_add(json, is_first ? "[" : ",", 1);
        is_first = false;
        const size_t object = oteli_json_open(json);
        add_id(json, ",\"traceId\":", link.trace_id, 16);
        add_id(json, ",\"spanId\":", link.span_id, 8);
        add_text(json, ",\"traceState\":", link.tracestate);
        add_attributes(json, link.attributes, OTEL_FIELD_LINK_ATTRIBUTE);
        add_count(json, ",\"droppedAttributesCount\":", link.dropped_attributes_count);
        add_count(json, ",\"flags\":", link.flags);
        oteli_json_close(json, object);
    }
    if (!is_first)
        OTELI_JSON_ADD(json, "]");
}

static void add_status(struct oteli_json *json, const otel_span_view *span)
{
    if (span->status == OTEL_SPAN_STATUS_UNSET && span->status_message.length == 0)
        return;
    MEMBER(json, "status");
    const size_t object = oteli_json_open(json);
    add_text(json, ",\"message\":", span->status_message);
    add_count(json, ",\"code\":", (uint64_t)span->status);
    oteli_json_close(json, object);
}

static void add_span(struct oteli_json *json, const otel_span_view *span)
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

static void add_strings(struct oteli_json *json, const char *member, otel_slice message,
                        uint32_t number)
{
    struct oteli_field field;
    bool is_first = true;
    while (take_field(&message, &field)) {
        if (field.number != number)
            continue;
        oteli_json_add(json, is_first ? member : ",", is_first ? strlen(member) : 1);
        oteli_json_add_string(json, text_of(&field));
        is_first = false;
    }
    if (!is_first)
        OTELI_JSON_ADD(json, "]");
}

static void add_entity(struct oteli_json *json, otel_slice entity)
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

static void add_entities(struct oteli_json *json, otel_slice resource)
{
    struct oteli_field field;
    bool is_first = true;
    while (take_field(&resource, &field)) {
        if (field.number != RESOURCE_ENTITY)
            continue;
        if (is_first)
            MEMBER(json, "entityRefs");
        oteli_json_add(json, is_first ? "[" : ",", 1);
        is_first = false;
        add_entity(json, text_of(&field));
    }
    if (!is_first)
        OTELI_JSON_ADD(json, "]");
}

static bool has_attributes(otel_slice attributes, uint32_t field)
{
    otel_attribute_view attribute;
    return otel_attribute_next(&attributes, field, &attribute);
}

static void add_resource(struct oteli_json *json, otel_slice resource)
{
    const size_t object = oteli_json_open(json);
    if (has_attributes(resource, OTEL_FIELD_RESOURCE_ATTRIBUTE))
        add_attributes(json, resource, OTEL_FIELD_RESOURCE_ATTRIBUTE);
    add_count(json,
              ",\"droppedAttributesCount\":", number_in(resource, RESOURCE_DROPPED_ATTRIBUTES));
    add_entities(json, resource);
    oteli_json_close(json, object);
}

static void add_scope(struct oteli_json *json, const otel_scope_view *scope)
{
    const size_t object = oteli_json_open(json);
    add_text(json, ",\"name\":", scope->name);
    add_text(json, ",\"version\":", scope->version);
    add_attributes(json, scope->attributes, OTEL_FIELD_SCOPE_ATTRIBUTE);
    add_count(json,
              ",\"droppedAttributesCount\":", number_in(scope->otlp, SCOPE_DROPPED_ATTRIBUTES));
    oteli_json_close(json, object);
}

/* ---- groups --------------------------------------------------------------------------- */

/* The array with room for `count` elements; false: no memory, and it is as before. */
static bool grow(void **array, size_t *room, size_t count, size_t element_bytes)
{
    if (count <= *room)
        return true;
    void *larger = realloc(*array, (count + count / 2) * element_bytes);
    if (larger == NULL)
        return false;
    *array = larger;
    *room = count + count / 2;
    return true;
}

/* Put span `index` behind the others of its scope. Programs have few scopes, and the span
 * before was mostly of the same: looking from the newest back is quick. */
static bool add_to_group(struct oteli_otlp_json *encoder, const otel_scope_view *scope,
                         size_t index)
{
    size_t at = encoder->group_count;
    while (at != 0 && encoder->groups[at - 1].scope != scope)
        at--;
    encoder->next[index] = SIZE_MAX;
    if (at != 0) {
        struct oteli_json_group *group = &encoder->groups[at - 1];
        encoder->next[group->last] = index;
        group->last = index;
        return true;
    }
    void *groups = encoder->groups;
    const bool has_room =
        grow(&groups, &encoder->group_room, encoder->group_count + 1, sizeof *encoder->groups);
    encoder->groups = groups;
    if (has_room)
        encoder->groups[encoder->group_count++] = (struct oteli_json_group){scope, index, index};
    return has_room;
}

static bool group_spans(struct oteli_otlp_json *encoder, const struct part *part)
{
    void *next = encoder->next;
    const bool has_room = grow(&next, &encoder->next_room, part->count, sizeof *encoder->next);
    encoder->next = next;
    encoder->group_count = 0;
    for (size_t i = 0; i < part->count && has_room; i++) {
        const otel_scope_view *scope;
        (void)otel_batch_span_otlp(part->batch, part->first + i, &scope);
        if (!add_to_group(encoder, scope, i))
            return false;
    }
    return has_room;
}

/* Add the spans of a scope until there are too many bytes; gives how many fit. */
static size_t add_scope_spans(struct oteli_otlp_json *encoder, const struct part *part,
                              const struct oteli_json_group *group)
{
    struct oteli_json *json = &encoder->text;
    size_t fitting = 0;
    OTELI_JSON_ADD(json, "{\"scope\":");
    add_scope(json, group->scope);
    MEMBER(json, "spans");
    for (size_t i = group->first; i != SIZE_MAX; i = encoder->next[i]) {
        otel_span_view span;
        otel_batch_span(part->batch, part->first + i, &span);
        oteli_json_add(json, i == group->first ? "[" : ",", 1);
        add_span(json, &span);
        if (json->length > part->max_bytes)
            return fitting;
        fitting++;
    }
    OTELI_JSON_ADD(json, "]");
    add_text(json, ",\"schemaUrl\":", group->scope->schema_url);
    OTELI_JSON_ADD(json, "}");
    return fitting;
}

/* Append the spans; gives how many it could be when the text is too long for all of them. */
static size_t add_part(struct oteli_otlp_json *encoder, const struct part *part)
{
    struct oteli_json *json = &encoder->text;
    size_t fitting = 0;
    if (!group_spans(encoder, part)) {
        json->failed = true;
        return 0;
    }
    OTELI_JSON_ADD(json, "{\"resourceSpans\":[{\"resource\":");
    add_resource(json, otel_batch_resource(part->batch));
    MEMBER(json, "scopeSpans");
    OTELI_JSON_ADD(json, "[");
    for (size_t i = 0; i < encoder->group_count && json->length <= part->max_bytes; i++) {
        if (i != 0)
            OTELI_JSON_ADD(json, ",");
        fitting += add_scope_spans(encoder, part, &encoder->groups[i]);
    }
    OTELI_JSON_ADD(json, "]");
    add_text(json, ",\"schemaUrl\":", otel_batch_resource_schema_url(part->batch));
    OTELI_JSON_ADD(json, "}]}");
    return fitting == part->count && json->length > part->max_bytes ? fitting - 1 : fitting;
}

bool oteli_otlp_json_add(struct oteli_otlp_json *encoder, const otel_batch *batch)
{
    const struct part all = {batch, 0, otel_batch_size(batch), SIZE_MAX};
    (void)add_part(encoder, &all);
    return !encoder->text.failed;
}

static void give_back_what_is_too_much(struct oteli_otlp_json *encoder)
{
    encoder->recent -= encoder->recent / 8;
    if (encoder->text.capacity > ALWAYS_KEPT && encoder->text.capacity / 4 > encoder->recent)
        oteli_json_fini(&encoder->text);
}

/* Spans are sorted by their scopes, so what fits of too many is not simply the beginning of their
 * text: it is made anew, of about as many as fitted. */
size_t oteli_otlp_json_request(struct oteli_otlp_json *encoder, const otel_batch *batch,
                               size_t first, size_t max_spans, size_t max_bytes)
{
    const size_t left = otel_batch_size(batch) - first;
    const size_t usual = max_bytes < USUAL_BYTES_MAX ? max_bytes : USUAL_BYTES_MAX;
    struct part part = {batch, first, left < max_spans ? left : max_spans, usual};
    give_back_what_is_too_much(encoder);
    for (;;) {
        if (part.count == 1)
            part.max_bytes = max_bytes;
        oteli_json_reset(&encoder->text);
        const size_t fitting = add_part(encoder, &part);
        if (encoder->text.length > encoder->recent)
            encoder->recent = encoder->text.length;
        if (encoder->text.failed)
            return 0;
        if (fitting == part.count || part.count == 1)
            return fitting;
        part.count = fitting > 1 ? fitting : 1;
    }
}
