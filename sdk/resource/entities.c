/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/entities.c - see entities.h. Start/stop only. */
#include "sdk/resource/entities.h"
#include "common/log.h"
#include "common/text/text.h"
#include "common/wire.h"

#include <string.h>

enum { MOST_ENTITIES = 64, MOST_FACTS = 128 };

enum { RESOURCE_ENTITY_REFS = 3 };
enum { REF_SCHEMA_URL = 1, REF_TYPE = 2, REF_ID_KEYS = 3, REF_DESCRIPTION_KEYS = 4 };

static void complain(const char *setting, otel_slice about, const char *why)
{
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s: \"%.*s\" %s", setting,
                     (int)(about.length < 100 ? about.length : 100), about.data, why);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* [a-zA-Z][a-zA-Z0-9._-]* */
static bool is_name(const char *text)
{
    return strspn(text, LETTERS) != 0 && text[strspn(text, LETTERS DIGITS "._-")] == '\0';
}

/* A scheme, a colon, and something printable. */
static bool is_url(const char *text)
{
    const size_t scheme = strspn(text, LETTERS DIGITS "+-.");
    const char *at = text + scheme;
    if (strspn(text, LETTERS) == 0 || at[0] != ':' || at[1] == '\0')
        return false;
    while (*at > ' ' && *at <= '~')
        at++;
    return *at == '\0';
}

static struct oteli_entity_fact *find(const struct oteli_entity *entity, const char *key)
{
    for (size_t i = 0; i < entity->count; i++)
        if (strcmp(entity->facts[i].key, key) == 0)
            return &entity->facts[i];
    return NULL;
}

/* Add one key=value. False: it is malformed, or the entity has this key. */
static bool add_fact(struct oteli_entity *entity, struct oteli_facts *memory, otel_slice member)
{
    struct oteli_entity_fact *fact = &entity->facts[entity->count];
    otel_slice key;
    otel_slice value;
    if (entity->count == MOST_FACTS || !oteli_cut(member, '=', &key, &value) ||
        (value.length != 0 && memchr(value.data, '=', value.length) != NULL))
        return false;
    char *text = oteli_facts_copy(memory, value);
    fact->key = oteli_facts_copy(memory, key);
    if (text == NULL || fact->key == NULL || !is_name(fact->key))
        return false;
    fact->value.data = text;
    fact->is_out = false;
    if (!oteli_percent_decode(text, value.length, text, &fact->value.length) ||
        find(entity, fact->key) != NULL)
        return false;
    entity->count++;
    return true;
}

/* Read "{…}" or "[…]" at the front of `rest`. */
static bool take_facts(struct oteli_entity *entity, struct oteli_facts *memory, otel_slice *rest,
                       char close)
{
    const char *end = memchr(rest->data, close, rest->length);
    if (end == NULL)
        return false;
    otel_slice list = {rest->data + 1, (size_t)(end - rest->data) - 1};
    const size_t length = list.length + 2;
    for (size_t i = 0; i < list.length; i++)
        if (memchr("{}[]@", list.data[i], 5) != NULL)
            return false;
    otel_slice member;
    while (oteli_list_next(&list, &member))
        if (!add_fact(entity, memory, member))
            return false;
    *rest = oteli_trim((otel_slice){rest->data + length, rest->length - length});
    return true;
}

/* Read one entity; false: it is malformed. */
static bool parse(const char *setting, struct oteli_entity *entity, struct oteli_facts *memory,
                  otel_slice text)
{
    const char *begin = memchr(text.data, '{', text.length);
    const size_t length = begin != NULL ? (size_t)(begin - text.data) : text.length;
    const otel_slice type = oteli_trim((otel_slice){text.data, length});
    *entity = (struct oteli_entity){.schema_url = "", .type = oteli_facts_copy(memory, type)};
    entity->facts = oteli_facts_keep(memory, (MOST_FACTS + 1) * sizeof *entity->facts);
    if (begin == NULL || entity->facts == NULL || entity->type == NULL || !is_name(entity->type))
        return false;
    otel_slice rest = {begin, text.length - length};
    if (!take_facts(entity, memory, &rest, '}') || entity->count == 0)
        return false;
    entity->identifying = entity->count;
    if (rest.length != 0 && rest.data[0] == '[' && !take_facts(entity, memory, &rest, ']'))
        return false;
    if (rest.length == 0)
        return true;
    if (rest.data[0] != '@')
        return false;
    const otel_slice url = oteli_trim((otel_slice){rest.data + 1, rest.length - 1});
    const char *copy = oteli_facts_copy(memory, url);
    if (copy != NULL && is_url(copy))
        entity->schema_url = copy;
    else if (copy != NULL && url.length != 0)
        complain(setting, url, "is no URL of a schema; its entity goes without one");
    return copy != NULL;
}

/* What identifies one entity cannot be shared, unless it is the same; what describes one goes
 * to the last that says it. */
static void settle_pair(const char *setting, struct oteli_entity *older, struct oteli_entity *newer)
{
    const otel_slice type = oteli_slice_of(older->type);
    if (strcmp(older->type, newer->type) == 0) {
        complain(setting, type, "is there twice; the last one counts");
        older->is_out = true;
        return;
    }
    for (size_t i = 0; i < older->count && !older->is_out; i++) {
        struct oteli_entity_fact *fact = &older->facts[i];
        const struct oteli_entity_fact *other = find(newer, fact->key);
        if (fact->is_out || other == NULL || oteli_is_same(fact->value, other->value))
            continue;
        complain(setting, oteli_slice_of(fact->key), "has two values; the last one counts");
        fact->is_out = true;
        older->is_out = i < older->identifying;
    }
}

static void settle(struct oteli_entities *entities)
{
    for (size_t newer = 1; newer < entities->count; newer++)
        for (size_t older = 0; older < newer; older++)
            if (!entities->list[older].is_out)
                settle_pair(entities->setting, &entities->list[older], &entities->list[newer]);
}

/* The next entity, trimmed; empty ones are skipped. */
static bool next_entity(otel_slice *rest, otel_slice *entity)
{
    while (oteli_piece_next(rest, ';', entity)) {
        *entity = oteli_trim(*entity);
        if (entity->length != 0)
            return true;
    }
    return false;
}

void oteli_entities_parse(struct oteli_entities *entities, struct oteli_facts *memory,
                          const char *setting, const char *text)
{
    *entities = (struct oteli_entities){.setting = setting};
    if (text == NULL)
        return;
    entities->list = oteli_facts_keep(memory, MOST_ENTITIES * sizeof *entities->list);
    otel_slice rest = oteli_slice_of(text);
    otel_slice one;
    for (size_t seen = 0; !memory->failed && next_entity(&rest, &one); seen++) {
        if (seen == MOST_ENTITIES) {
            complain(setting, one, "and what comes behind it is too much");
            break;
        }
        if (parse(setting, &entities->list[entities->count], memory, one))
            entities->count++;
        else if (!memory->failed)
            complain(setting, one, "is malformed and left out");
    }
    if (memory->failed)
        entities->count = 0;
    settle(entities);
}

static bool is_text(const otel_value *value, otel_slice text)
{
    return value->type == OTEL_VALUE_STRING &&
           oteli_is_same((otel_slice){value->as.string, value->length}, text);
}

void oteli_entities_yield(struct oteli_entities *entities, const struct oteli_facts *loose)
{
    for (size_t i = 0; i < entities->count; i++) {
        struct oteli_entity *entity = &entities->list[i];
        for (size_t k = 0; k < entity->count && !entity->is_out; k++) {
            const otel_value *value = oteli_facts_get(loose, entity->facts[k].key);
            if (value == NULL || entity->facts[k].is_out || is_text(value, entity->facts[k].value))
                continue;
            complain(entities->setting, oteli_slice_of(entity->type),
                     "is left out: one of its attributes is set to something else");
            entity->is_out = true;
        }
    }
}

void oteli_entities_apply(const struct oteli_entities *entities, struct oteli_facts *facts)
{
    for (size_t i = 0; i < entities->count; i++) {
        const struct oteli_entity *entity = &entities->list[i];
        for (size_t k = 0; k < entity->count && !entity->is_out; k++) {
            const struct oteli_entity_fact *fact = &entity->facts[k];
            if (!fact->is_out)
                oteli_facts_set(facts, fact->key,
                                otel_value_string_n(fact->value.data, fact->value.length));
        }
    }
}

static size_t text_size(uint32_t field, const char *text)
{
    return text[0] != '\0' ? oteli_bytes_field_size(field, strlen(text)) : 0;
}

static uint8_t *put_text(uint8_t *at, uint32_t field, const char *text)
{
    return text[0] != '\0' ? oteli_put_bytes_field(at, field, text, strlen(text)) : at;
}

static uint32_t key_field(const struct oteli_entity *entity, size_t index)
{
    return index < entity->identifying ? REF_ID_KEYS : REF_DESCRIPTION_KEYS;
}

static size_t ref_size(const struct oteli_entity *entity)
{
    size_t size = text_size(REF_SCHEMA_URL, entity->schema_url) + text_size(REF_TYPE, entity->type);
    for (size_t i = 0; i < entity->count; i++)
        if (!entity->facts[i].is_out)
            size += text_size(key_field(entity, i), entity->facts[i].key);
    return size;
}

size_t oteli_entities_size(const struct oteli_entities *entities)
{
    size_t size = 0;
    for (size_t i = 0; i < entities->count; i++)
        if (!entities->list[i].is_out)
            size += oteli_bytes_field_size(RESOURCE_ENTITY_REFS, ref_size(&entities->list[i]));
    return size;
}

uint8_t *oteli_entities_put(uint8_t *at, const struct oteli_entities *entities)
{
    for (size_t i = 0; i < entities->count; i++) {
        const struct oteli_entity *entity = &entities->list[i];
        if (entity->is_out)
            continue;
        at = oteli_put_bytes_head(at, RESOURCE_ENTITY_REFS, ref_size(entity));
        at = put_text(at, REF_SCHEMA_URL, entity->schema_url);
        at = put_text(at, REF_TYPE, entity->type);
        for (size_t k = 0; k < entity->count; k++)
            if (!entity->facts[k].is_out)
                at = put_text(at, key_field(entity, k), entity->facts[k].key);
    }
    return at;
}
