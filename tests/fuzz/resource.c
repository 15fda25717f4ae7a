/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/resource.c - what a resource is made of: up to the first line break the value of
 * OTEL_RESOURCE_ATTRIBUTES, then that of OTEL_ENTITIES, then what a system's files may say. What
 * comes of it is a message whose attributes are unique and whose entities name attributes. */
#include "sdk/resource/resource.h"
#include "common/wire.h"
#include "tests/fuzz/fuzz.h"

enum { ATTRIBUTE = 1, ENTITY_REF = 3, ID_KEYS = 3, DESCRIPTION_KEYS = 4 };

static size_t count_key(const struct oteli_resource *resource, otel_slice key)
{
    otel_slice rest = {resource->otlp, resource->otlp_length};
    otel_attribute_view attribute;
    size_t count = 0;
    while (otel_attribute_next(&rest, ATTRIBUTE, &attribute))
        count += attribute.key.length == key.length &&
                 memcmp(attribute.key.data, key.data, key.length) == 0;
    return count;
}

static void look_at_entity(const struct oteli_resource *resource, const struct oteli_field *entity)
{
    const uint8_t *at = entity->bytes;
    struct oteli_field field;
    bool is_identified = false;
    while (oteli_next_field(&at, entity->bytes + entity->length, &field)) {
        if (field.number != ID_KEYS && field.number != DESCRIPTION_KEYS)
            continue;
        is_identified |= field.number == ID_KEYS;
        fuzz_check(count_key(resource, (otel_slice){(const char *)field.bytes, field.length}) == 1);
    }
    fuzz_check(is_identified);
}

static void look_at(const struct oteli_resource *resource)
{
    const uint8_t *at = (const uint8_t *)resource->otlp;
    const uint8_t *end = at + resource->otlp_length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        otel_slice one = {(const char *)field.start, (size_t)(at - field.start)};
        otel_attribute_view attribute;
        if (field.number == ENTITY_REF)
            look_at_entity(resource, &field);
        else if (!otel_attribute_next(&one, ATTRIBUTE, &attribute) ||
                 count_key(resource, attribute.key) != 1)
            abort();
    }
    fuzz_check(at == end);
}

static void make(char *attributes, char *entities)
{
    const struct oteli_config config = {.resource_attributes = attributes, .entities = entities};
    struct oteli_resource resource;
    struct oteli_resource renewed;
    fuzz_check(oteli_resource_init(&resource, &config, NULL, 0) == OTEL_OK);
    look_at(&resource);
    fuzz_check(oteli_resource_renew(&renewed, &resource) == OTEL_OK);
    if (renewed.otlp_length != resource.otlp_length ||
        memcmp(renewed.otlp, resource.otlp, renewed.otlp_length) != 0)
        abort();
    oteli_resource_fini(&renewed);
    oteli_resource_fini(&resource);
}

static void look_at_part(otel_slice part, otel_slice whole)
{
    if (part.length != 0 &&
        (part.data < whole.data || part.data + part.length > whole.data + whole.length))
        abort();
}

static void detect(otel_slice text)
{
    struct oteli_facts facts = {0};
    char value[64];
    look_at_part(oteli_container_in_cgroup(text), text);
    look_at_part(oteli_container_in_mounts(text), text);
    look_at_part(oteli_user_name(text, 0), text);
    if (oteli_os_release(text, "NAME", value, sizeof value) && memchr(value, 0, 64) == NULL)
        abort();
    (void)oteli_is_machine_id(text);
    oteli_detect_command(&facts, text);
    oteli_facts_fini(&facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    if (text == NULL)
        return 0;
    fuzz_be_quiet();
    char *entities = strchr(text, '\n');
    char *files = entities != NULL ? strchr(entities + 1, '\n') : NULL;
    if (files != NULL)
        detect((otel_slice){files + 1, size - (size_t)(files + 1 - text)});
    if (files != NULL)
        *files = '\0';
    if (entities != NULL)
        *entities++ = '\0';
    make(text, entities);
    free(text);
    return 0;
}
