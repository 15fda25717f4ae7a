/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/json/otlp_json.c - the contracts are in otlp_json.h. One thread at a time; owns
 * nothing, borrows the batch for the call.
 *
 * Messages become objects by tables of their fields. Fields stand in the order of their numbers
 * in the bytes that the SDK makes, and so do their members. */
#include "exporters/json/otlp_json.h"

#include "common/wire.h"
#include "exporters/json/json_value.h"

enum { USUAL_BYTES_MAX = 1024 * 1024 }; /* of requests with more than one span */

/* ---- messages ------------------------------------------------------------------------- */

/* What a field of a message becomes in JSON. */
enum form {
    TEXT,
    ID,     /* bytes, in hexadecimal digits */
    NUMBER, /* of 32 bits */
    TIME,   /* a number of 64 bits, which is a string in JSON */
    MESSAGE,
    /* lists */
    TEXTS,
    MESSAGES,
    ATTRIBUTES
};

/* A member of an object, in a table by the numbers of the message's fields. */
struct member {
    const char *name; /* NULL: there is no such field */
    enum form form;
    const struct message *type; /* of messages */
};

struct message {
    const struct member *members;
    uint32_t count;
};

#define MESSAGE_OF(members)                           \
    {                                                 \
        members, sizeof(members) / sizeof(members)[0] \
    }

static const struct member entity_members[] = {
    [1] = {"schemaUrl", TEXT, NULL},
    [2] = {"type", TEXT, NULL},
    [3] = {"idKeys", TEXTS, NULL},
    [4] = {"descriptionKeys", TEXTS, NULL},
};
static const struct message entity_type = MESSAGE_OF(entity_members);

static const struct member resource_members[] = {
    [OTEL_FIELD_RESOURCE_ATTRIBUTE] = {"attributes", ATTRIBUTES, NULL},
    [2] = {"droppedAttributesCount", NUMBER, NULL},
    [3] = {"entityRefs", MESSAGES, &entity_type},
};
static const struct message resource_type = MESSAGE_OF(resource_members);

static const struct member scope_members[] = {
    [1] = {"name", TEXT, NULL},
    [2] = {"version", TEXT, NULL},
    [OTEL_FIELD_SCOPE_ATTRIBUTE] = {"attributes", ATTRIBUTES, NULL},
    [4] = {"droppedAttributesCount", NUMBER, NULL},
};
static const struct message scope_type = MESSAGE_OF(scope_members);

static const struct member event_members[] = {
    [1] = {"timeUnixNano", TIME, NULL},
    [2] = {"name", TEXT, NULL},
    [OTEL_FIELD_EVENT_ATTRIBUTE] = {"attributes", ATTRIBUTES, NULL},
    [4] = {"droppedAttributesCount", NUMBER, NULL},
};
static const struct message event_type = MESSAGE_OF(event_members);

static const struct member link_members[] = {
    [1] = {"traceId", ID, NULL},
    [2] = {"spanId", ID, NULL},
    [3] = {"traceState", TEXT, NULL},
    [OTEL_FIELD_LINK_ATTRIBUTE] = {"attributes", ATTRIBUTES, NULL},
    [5] = {"droppedAttributesCount", NUMBER, NULL},
    [6] = {"flags", NUMBER, NULL},
};
static const struct message link_type = MESSAGE_OF(link_members);

static const struct member status_members[] = {
    [2] = {"message", TEXT, NULL},
    [3] = {"code", NUMBER, NULL},
};
static const struct message status_type = MESSAGE_OF(status_members);

static const struct member span_members[] = {
    [1] = {"traceId", ID, NULL},
    [2] = {"spanId", ID, NULL},
    [3] = {"traceState", TEXT, NULL},
    [4] = {"parentSpanId", ID, NULL},
    [5] = {"name", TEXT, NULL},
    [6] = {"kind", NUMBER, NULL},
    [7] = {"startTimeUnixNano", TIME, NULL},
    [8] = {"endTimeUnixNano", TIME, NULL},
    [OTEL_FIELD_SPAN_ATTRIBUTE] = {"attributes", ATTRIBUTES, NULL},
    [10] = {"droppedAttributesCount", NUMBER, NULL},
    [11] = {"events", MESSAGES, &event_type},
    [12] = {"droppedEventsCount", NUMBER, NULL},
    [13] = {"links", MESSAGES, &link_type},
    [14] = {"droppedLinksCount", NUMBER, NULL},
    [15] = {"status", MESSAGE, &status_type},
    [16] = {"flags", NUMBER, NULL},
};
static const struct message span_type = MESSAGE_OF(span_members);

static void add_message(struct oteli_text *json, const struct message *type, otel_slice message);

/* `end` is behind the field. */
static void add_value(struct oteli_text *json, const struct member *member,
                      const struct oteli_field *field, const uint8_t *end)
{
    const otel_slice bytes = {(const char *)field->bytes, field->length};
    const otel_slice whole = {(const char *)field->start, (size_t)(end - field->start)};
    switch (member->form) {
    case TEXT:
    case TEXTS:
        oteli_json_add_string(json, bytes);
        break;
    case ID:
        oteli_json_add_hex(json, field->bytes, field->length);
        break;
    case NUMBER:
        oteli_json_add_unsigned(json, field->value);
        break;
    case TIME:
        OTELI_JSON_ADD(json, "\"");
        oteli_json_add_unsigned(json, field->value);
        OTELI_JSON_ADD(json, "\"");
        break;
    case MESSAGE:
    case MESSAGES:
        add_message(json, member->type, bytes);
        break;
    case ATTRIBUTES: /* one of them */
        oteli_json_add_attributes(json, whole, field->number, OTELI_JSON_OTLP);
        break;
    }
}

/* A message as an object. The elements of a list stand together in our messages. */
static void add_message(struct oteli_text *json, const struct message *type, otel_slice message)
{
    const size_t object = oteli_json_open(json);
    const uint8_t *at = (const uint8_t *)message.data;
    const uint8_t *end = message.length != 0 ? at + message.length : at; /* which may be NULL */
    uint32_t list = 0; /* the number of the field whose list is open */
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        static const struct member unknown = {NULL, TEXT, NULL};
        const struct member *member =
            field.number < type->count ? &type->members[field.number] : &unknown;
        const bool is_list = member->form >= TEXTS;
        const bool is_default = !is_list && field.value == 0 && field.length == 0;
        if (member->name == NULL || is_default)
            continue;
        if (list != field.number) {
            oteli_text_add(json, list != 0 ? "],\"" : ",\"", list != 0 ? 3 : 2);
            oteli_text_add(json, member->name, strlen(member->name));
            oteli_text_add(json, "\":[", is_list ? 3 : 2);
            list = is_list ? field.number : 0;
        } else {
            OTELI_JSON_ADD(json, ",");
        }
        add_value(json, member, &field, at);
    }
    if (list != 0)
        OTELI_JSON_ADD(json, "]");
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

static void add_schema_url(struct oteli_text *json, otel_slice url)
{
    if (url.length == 0)
        return;
    OTELI_JSON_ADD(json, ",\"schemaUrl\":");
    oteli_json_add_string(json, url);
}

bool oteli_otlp_json_add(struct oteli_text *json, const otel_batch *batch, size_t first, size_t end,
                         size_t max_bytes)
{
    const size_t most = max_bytes < SIZE_MAX - json->length ? json->length + max_bytes : SIZE_MAX;
    OTELI_JSON_ADD(json, "{\"resourceSpans\":[{\"resource\":");
    add_message(json, &resource_type, otel_batch_resource(batch));
    OTELI_JSON_ADD(json, ",\"scopeSpans\":[");
    for (size_t i = first; i < end && json->length <= most; i++) {
        if (!is_first_of_scope(batch, first, i))
            continue;
        const otel_scope_view *scope = scope_of(batch, i);
        if (i != first)
            OTELI_JSON_ADD(json, ",");
        OTELI_JSON_ADD(json, "{\"scope\":");
        add_message(json, &scope_type, scope->otlp);
        OTELI_JSON_ADD(json, ",\"spans\":[");
        for (size_t k = i; k < end && json->length <= most; k++) {
            const otel_scope_view *other;
            const otel_slice span = otel_batch_span_otlp(batch, k, &other);
            if (other != scope)
                continue;
            if (k != i)
                OTELI_JSON_ADD(json, ",");
            add_message(json, &span_type, span);
        }
        OTELI_JSON_ADD(json, "]");
        add_schema_url(json, scope->schema_url);
        OTELI_JSON_ADD(json, "}");
    }
    OTELI_JSON_ADD(json, "]");
    add_schema_url(json, otel_batch_resource_schema_url(batch));
    OTELI_JSON_ADD(json, "}]}");
    return !json->failed && json->length <= most;
}

/* A request that would be too large is made again, of half of its spans. */
size_t oteli_otlp_json_request(struct oteli_text *json, const otel_batch *batch, size_t first,
                               size_t max_spans, size_t max_bytes)
{
    const size_t usual = max_bytes < USUAL_BYTES_MAX ? max_bytes : USUAL_BYTES_MAX;
    const size_t left = otel_batch_size(batch) - first;
    size_t count = left < max_spans ? left : max_spans;
    oteli_text_reset(json);
    while (!oteli_otlp_json_add(json, batch, first, first + count, count > 1 ? usual : max_bytes)) {
        if (json->failed || count == 1)
            return 0;
        json->length = 0;
        count = (count + 1) / 2;
    }
    return count;
}
