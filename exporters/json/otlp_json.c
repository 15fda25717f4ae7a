/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/otlp_json.c - the contracts are in otlp_json.h. One thread at a time; owns the
 * memory of its encoder, borrows the batch for the call. */
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

void oteli_otlp_json_fini(struct oteli_otlp_json *encoder)
{
    oteli_text_fini(&encoder->text);
    oteli_text_fini(&encoder->parts);
    free(encoder->groups);
    free(encoder->spans);
    *encoder = (struct oteli_otlp_json){0};
}

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

/* ---- spans ---------------------------------------------------------------------------- */

static void add_events(struct oteli_text *json, otel_slice events)
{
    otel_event_view event;
    bool is_first = true;
    while (otel_event_next(&events, &event)) {
        if (is_first)
            MEMBER(json, "events");
        oteli_text_add(json, is_first ? "[" : ",", 1);
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

static void add_links(struct oteli_text *json, otel_slice links)
{
    otel_link_view link;
    bool is_first = true;
    while (otel_link_next(&links, &link)) {
        if (is_first)
            MEMBER(json, "links");
        oteli_text_add(json, is_first ? "[" : ",", 1);
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
    bool is_first = true;
    while (take_field(&message, &field)) {
        if (field.number != number)
            continue;
        oteli_text_add(json, is_first ? member : ",", is_first ? strlen(member) : 1);
        oteli_json_add_string(json, text_of(&field));
        is_first = false;
    }
    if (!is_first)
        OTELI_JSON_ADD(json, "]");
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
    bool is_first = true;
    while (take_field(&resource, &field)) {
        if (field.number != RESOURCE_ENTITY)
            continue;
        if (is_first)
            MEMBER(json, "entityRefs");
        oteli_text_add(json, is_first ? "[" : ",", 1);
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

/* Room for the spans and their groups, of which there are none yet. */
static bool begin_groups(struct oteli_otlp_json *encoder, size_t span_count)
{
    void *spans = encoder->spans;
    const bool has_room = grow(&spans, &encoder->span_room, span_count, sizeof *encoder->spans);
    encoder->spans = spans;
    encoder->group_count = 0;
    return has_room;
}

/* The group of a scope; NULL: it has none yet. Programs have few scopes, and the span before was
 * mostly of the same: looking from the newest back is quick. */
static struct oteli_json_group *group_of(struct oteli_otlp_json *encoder,
                                         const otel_scope_view *scope)
{
    for (size_t at = encoder->group_count; at != 0; at--) {
        if (encoder->groups[at - 1].scope == scope)
            return &encoder->groups[at - 1];
    }
    return NULL;
}

/* Put span `index` behind the others of its scope. */
static bool add_to_group(struct oteli_otlp_json *encoder, const otel_scope_view *scope,
                         size_t index)
{
    struct oteli_json_group *group = group_of(encoder, scope);
    encoder->spans[index].next = SIZE_MAX;
    if (group != NULL) {
        encoder->spans[group->last].next = index;
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

static bool group_spans(struct oteli_otlp_json *encoder, const otel_batch *batch)
{
    const size_t count = otel_batch_size(batch);
    bool has_room = begin_groups(encoder, count);
    for (size_t i = 0; i < count && has_room; i++) {
        const otel_scope_view *scope;
        (void)otel_batch_span_otlp(batch, i, &scope);
        has_room = add_to_group(encoder, scope, i);
    }
    return has_room;
}

/* ---- what is around the spans ------------------------------------------------------------- */

static void open_scope_spans(struct oteli_text *json, const otel_scope_view *scope)
{
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

/* ---- a whole batch -------------------------------------------------------------------- */

static void add_scope_spans(struct oteli_otlp_json *encoder, const otel_batch *batch,
                            const struct oteli_json_group *group)
{
    struct oteli_text *json = &encoder->text;
    open_scope_spans(json, group->scope);
    for (size_t i = group->first; i != SIZE_MAX; i = encoder->spans[i].next) {
        otel_span_view span;
        otel_batch_span(batch, i, &span);
        if (i != group->first)
            OTELI_JSON_ADD(json, ",");
        add_span(json, &span);
    }
    close_scope_spans(json, group->scope);
}

bool oteli_otlp_json_add(struct oteli_otlp_json *encoder, const otel_batch *batch)
{
    struct oteli_text *json = &encoder->text;
    if (!group_spans(encoder, batch))
        return false;
    open_request(json, batch);
    for (size_t i = 0; i < encoder->group_count; i++) {
        if (i != 0)
            OTELI_JSON_ADD(json, ",");
        add_scope_spans(encoder, batch, &encoder->groups[i]);
    }
    close_request(json, batch);
    return !json->failed;
}

/* ---- a request ------------------------------------------------------------------------ */

/* How many bytes there are around no spans at all: of the request, of a scope. `text` is where
 * it is tried out. */
static size_t request_bytes(struct oteli_text *text, const otel_batch *batch)
{
    oteli_text_reset(text);
    open_request(text, batch);
    close_request(text, batch);
    return text->length;
}

static size_t scope_spans_bytes(struct oteli_text *text, const otel_scope_view *scope)
{
    oteli_text_reset(text);
    open_scope_spans(text, scope);
    close_scope_spans(text, scope);
    return text->length;
}

/* Make the texts of spans, and sort these into groups, until a request of them would be longer
 * than the limits. Gives how many it has. */
static size_t make_parts(struct oteli_otlp_json *encoder, const otel_batch *batch, size_t first,
                         size_t count, size_t max_bytes)
{
    const size_t usual = max_bytes < USUAL_BYTES_MAX ? max_bytes : USUAL_BYTES_MAX;
    struct oteli_text *parts = &encoder->parts;
    size_t total = request_bytes(&encoder->text, batch);
    for (size_t i = 0; i < count && !encoder->text.failed; i++) {
        otel_span_view span;
        const size_t start = parts->length;
        otel_batch_span(batch, first + i, &span);
        add_span(parts, &span);
        size_t more = parts->length - start;
        if (group_of(encoder, span.scope) != NULL)
            more += 1; /* a comma */
        else
            more += scope_spans_bytes(&encoder->text, span.scope) + (encoder->group_count != 0);
        total += more;
        if (total > (i == 0 ? max_bytes : usual) || parts->failed || encoder->text.failed)
            return i;
        encoder->spans[i].end = parts->length;
        if (!add_to_group(encoder, span.scope, i)) {
            parts->failed = true;
            return i;
        }
    }
    return count;
}

static void copy_scope_spans(struct oteli_otlp_json *encoder, const struct oteli_json_group *group)
{
    struct oteli_text *json = &encoder->text;
    open_scope_spans(json, group->scope);
    for (size_t i = group->first; i != SIZE_MAX; i = encoder->spans[i].next) {
        const size_t start = i != 0 ? encoder->spans[i - 1].end : 0;
        if (i != group->first)
            OTELI_JSON_ADD(json, ",");
        oteli_text_add(json, encoder->parts.data + start, encoder->spans[i].end - start);
    }
    close_scope_spans(json, group->scope);
}

static void give_back(struct oteli_text *json, size_t recent)
{
    if (json->capacity > ALWAYS_KEPT && json->capacity / 4 > recent)
        oteli_text_fini(json);
    oteli_text_reset(json);
}

/* Which spans fit is known only when they were made, and their place only when it is known which
 * fit: so each is made once, and copied to its place. */
size_t oteli_otlp_json_request(struct oteli_otlp_json *encoder, const otel_batch *batch,
                               size_t first, size_t max_spans, size_t max_bytes)
{
    struct oteli_text *json = &encoder->text;
    const size_t left = otel_batch_size(batch) - first;
    const size_t most = left < max_spans ? left : max_spans;
    encoder->recent -= encoder->recent / 8;
    give_back(json, encoder->recent);
    give_back(&encoder->parts, encoder->recent);
    json->failed = !begin_groups(encoder, most);
    const size_t count = json->failed ? 0 : make_parts(encoder, batch, first, most, max_bytes);
    const bool has_failed = json->failed || encoder->parts.failed;
    oteli_text_reset(json);
    json->failed = has_failed;
    if (count == 0 || has_failed)
        return 0;
    open_request(json, batch);
    for (size_t i = 0; i < encoder->group_count; i++) {
        if (i != 0)
            OTELI_JSON_ADD(json, ",");
        copy_scope_spans(encoder, &encoder->groups[i]);
    }
    close_request(json, batch);
    if (json->length > encoder->recent)
        encoder->recent = json->length;
    return json->failed ? 0 : count;
}
