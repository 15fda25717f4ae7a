/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/resource/resource.c - gather the resource's attributes and encode them. Start/stop only. */
#include "sdk/resource/resource.h"
#include "api/encode/key_value.h"
#include "common/text/text.h"
#include "common/text/utf8.h"
#include "common/wire.h"
#include "sdk/resource/detectors.h"
#include "sdk/resource/entities.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char INSTANCE[] = "service.instance.id";

static void set_defaults(struct oteli_facts *facts)
{
    static const char unknown[] = "unknown_service";
    const char *name = oteli_detect_executable(facts);
    const size_t size = sizeof unknown + 1 + strlen(name);
    char *service = oteli_facts_keep(facts, size);
    if (service != NULL) {
        snprintf(service, size, "%s%s%s", unknown, name[0] != '\0' ? ":" : "", name);
        oteli_facts_set(facts, "service.name", otel_value_string(service));
    }
    oteli_facts_set(facts, "telemetry.sdk.language", otel_value_string("c"));
    oteli_facts_set(facts, "telemetry.sdk.name", otel_value_string("otel-c"));
    oteli_facts_set(facts, "telemetry.sdk.version", otel_value_string(OTEL_VERSION));
}

/* What people said, in the environment and in code: it weighs more than what was found. */
static void gather_said(struct oteli_facts *said, const struct oteli_config *config,
                        const otel_attribute *attributes, size_t count)
{
    struct oteli_facts code = {.schema_url = config->resource_schema_url};
    oteli_detect_variable(said, oteli_config_called(config, &config->resource_attributes),
                          config->resource_attributes);
    if (config->service_name != NULL)
        oteli_facts_set(said, "service.name", otel_value_string(config->service_name));
    for (size_t i = 0; attributes != NULL && i < count; i++)
        oteli_facts_set(&code, attributes[i].key, attributes[i].value);
    oteli_facts_merge(said, &code);
}

/* The URL is a string of protobuf, so it has to be UTF-8. */
static char *encode_schema_url(const char *url)
{
    const size_t length = strlen(url);
    const size_t size = oteli_utf8_replace(url, length, NULL);
    char *copy = malloc(size + 1);
    if (copy == NULL)
        return NULL;
    oteli_utf8_replace(url, length, copy);
    copy[size] = '\0';
    return copy;
}

static bool encode(struct oteli_resource *resource, const struct oteli_facts *facts,
                   const struct oteli_entities *entities)
{
    uint32_t dropped;
    const size_t size =
        oteli_key_values_size(facts->attributes, facts->count, UINT32_MAX, SIZE_MAX, &dropped) +
        oteli_entities_size(entities);
    resource->pid = getpid();
    resource->otlp = malloc(size);
    if (resource->otlp == NULL)
        return false;
    resource->otlp_length = size;
    uint8_t *at = oteli_key_values_put((uint8_t *)resource->otlp, OTEL_FIELD_RESOURCE_ATTRIBUTE,
                                       facts->attributes, facts->count, UINT32_MAX, SIZE_MAX);
    oteli_entities_put(at, entities);
    if (facts->schema_url == NULL)
        return true;
    resource->schema_url = encode_schema_url(facts->schema_url);
    return resource->schema_url != NULL;
}

static void remember_instance(struct oteli_resource *resource, const struct oteli_facts *found)
{
    const otel_value *id = oteli_facts_get(found, INSTANCE);
    if (id != NULL && id->type == OTEL_VALUE_STRING && id->length < sizeof resource->instance)
        memcpy(resource->instance, id->as.string, id->length);
}

otel_status oteli_resource_init(struct oteli_resource *resource, const struct oteli_config *config,
                                const otel_attribute *attributes, size_t count)
{
    struct oteli_facts facts = {0};
    struct oteli_facts said = {0};
    struct oteli_entities entities;
    *resource = (struct oteli_resource){0};
    set_defaults(&facts);
    oteli_detect(&facts, config->resource_detectors);
    remember_instance(resource, &facts);
    gather_said(&said, config, attributes, count);
    oteli_entities_parse(&entities, &facts, oteli_config_called(config, &config->entities),
                         config->entities);
    oteli_entities_yield(&entities, &said);
    oteli_entities_apply(&entities, &facts);
    oteli_facts_merge(&facts, &said);
    const bool done = !facts.failed && encode(resource, &facts, &entities);
    if (!done)
        oteli_resource_fini(resource);
    oteli_facts_fini(&facts);
    return done ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}

static bool is_key(const otel_attribute_view *attribute, const char *key)
{
    return attribute->key.length == strlen(key) &&
           memcmp(attribute->key.data, key, attribute->key.length) == 0;
}

/* Whether this is what we found out, and nothing that the program has said in its place. */
static bool is_pid(const otel_attribute_view *attribute, int64_t pid)
{
    return is_key(attribute, "process.pid") && attribute->value.type == OTEL_VALUE_INT &&
           attribute->value.integer == pid;
}

static bool is_instance(const otel_attribute_view *attribute, const char *instance)
{
    const otel_slice value = attribute->value.slice;
    return instance[0] != '\0' && is_key(attribute, INSTANCE) &&
           attribute->value.type == OTEL_VALUE_STRING && value.length == strlen(instance) &&
           memcmp(value.data, instance, value.length) == 0;
}

/* Copy the field, or write in its place what it is here; an id that cannot be had is left out. */
static uint8_t *put_renewed(uint8_t *at, const struct oteli_field *field,
                            const struct oteli_resource *parents,
                            const struct oteli_resource *renewed)
{
    const size_t length = (size_t)(field->bytes + field->length - field->start);
    otel_slice bytes = {(const char *)field->start, length};
    otel_attribute_view attribute;
    otel_attribute own = otel_attribute_of(NULL, otel_value_empty());
    if (field->number == OTEL_FIELD_RESOURCE_ATTRIBUTE &&
        otel_attribute_next(&bytes, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute)) {
        if (is_pid(&attribute, parents->pid))
            own = otel_attribute_of("process.pid", otel_value_int(renewed->pid));
        else if (is_instance(&attribute, parents->instance))
            own = otel_attribute_of(INSTANCE, otel_value_string(renewed->instance));
    }
    if (own.key == NULL)
        return oteli_put_bytes(at, field->start, length);
    if (own.value.type == OTEL_VALUE_STRING && own.value.length == 0)
        return at;
    return oteli_key_values_put(at, OTEL_FIELD_RESOURCE_ATTRIBUTE, &own, 1, 1, SIZE_MAX);
}

otel_status oteli_resource_renew(struct oteli_resource *resource,
                                 const struct oteli_resource *parents)
{
    enum { LONGEST_PID = 48 }; /* what its attribute may need more than the parent's */
    *resource = (struct oteli_resource){.pid = getpid()};
    if (parents->instance[0] != '\0' && !oteli_uuid(resource->instance))
        resource->instance[0] = '\0';
    resource->otlp = malloc(parents->otlp_length + LONGEST_PID);
    if (parents->schema_url != NULL)
        resource->schema_url = oteli_slice_copy(oteli_slice_of(parents->schema_url));
    if (resource->otlp == NULL || (parents->schema_url != NULL && resource->schema_url == NULL)) {
        oteli_resource_fini(resource);
        return OTEL_ERROR_NO_MEMORY;
    }
    const uint8_t *from = (const uint8_t *)parents->otlp;
    const uint8_t *end = from + parents->otlp_length;
    uint8_t *at = (uint8_t *)resource->otlp;
    struct oteli_field field;
    while (oteli_next_field(&from, end, &field))
        at = put_renewed(at, &field, parents, resource);
    resource->otlp_length = (size_t)(at - (uint8_t *)resource->otlp);
    return OTEL_OK;
}

void oteli_resource_fini(struct oteli_resource *resource)
{
    free(resource->otlp);
    free(resource->schema_url);
    *resource = (struct oteli_resource){0};
}
