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

static const char PID[] = "process.pid";
static const char INSTANCE[] = "service.instance.id";
enum { MOST_OWN = 128 }; /* bytes of the two as attributes */

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

/* What one place says of the resource: code and the environment, or the program's defaults. */
struct said {
    bool is_default;
    const char *service_version;
    const otel_attribute *attributes;
    size_t count;
    const char *schema_url;
};

static void gather(struct oteli_facts *facts, const struct oteli_config *config,
                   const struct said *said)
{
    char *const *list = &config->resource_attributes;
    char *const *name = &config->service_name;
    struct oteli_facts code = {.schema_url = said->schema_url};
    if (oteli_config_is_program_default(config, list) == said->is_default)
        oteli_detect_variable(facts, oteli_config_called(config, list), *list);
    if (*name != NULL && oteli_config_is_program_default(config, name) == said->is_default)
        oteli_facts_set(facts, "service.name", otel_value_string(*name));
    if (said->service_version != NULL && said->service_version[0] != '\0')
        oteli_facts_set(facts, "service.version", otel_value_string(said->service_version));
    for (size_t i = 0; said->attributes != NULL && i < said->count; i++)
        oteli_facts_add(&code, &said->attributes[i]);
    oteli_facts_merge(facts, &code);
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

/* Take out of the facts what was found out of this process alone, unless the program has said
 * something in its place; `found` is the id of the instance, or NULL. */
static void take_own(struct oteli_resource *resource, struct oteli_facts *facts, const char *found)
{
    size_t kept = 0;
    for (size_t i = 0; i < facts->count; i++) {
        const otel_attribute *one = &facts->attributes[i];
        if (oteli_is_text(oteli_key_of(one), PID) && one->value.type == OTEL_VALUE_INT &&
            one->value.as.integer == getpid())
            resource->has_pid = true;
        else if (oteli_is_text(oteli_key_of(one), INSTANCE) && found != NULL &&
                 one->value.as.string == found)
            memcpy(resource->instance, found, sizeof resource->instance);
        else
            facts->attributes[kept++] = *one;
    }
    facts->count = kept;
}

/* An id that cannot be had is left out. */
static uint8_t *put_own(struct oteli_resource *resource)
{
    otel_attribute own[2];
    size_t count = 0;
    if (resource->has_pid)
        own[count++] = otel_attribute_of(PID, otel_value_int(getpid()));
    if (resource->instance[0] != '\0')
        own[count++] = otel_attribute_of(INSTANCE, otel_value_string(resource->instance));
    uint8_t *at = (uint8_t *)resource->otlp;
    uint8_t *end =
        oteli_key_values_put(at, OTEL_FIELD_RESOURCE_ATTRIBUTE, own, count, UINT32_MAX, SIZE_MAX);
    resource->own_length = (size_t)(end - at);
    return end;
}

static bool encode(struct oteli_resource *resource, const struct oteli_facts *facts,
                   const struct oteli_entities *entities)
{
    uint32_t dropped;
    const size_t size =
        oteli_key_values_size(facts->attributes, facts->count, UINT32_MAX, SIZE_MAX, &dropped) +
        oteli_entities_size(entities);
    resource->otlp = malloc(MOST_OWN + size);
    if (resource->otlp == NULL)
        return false;
    uint8_t *at = put_own(resource);
    at = oteli_key_values_put(at, OTEL_FIELD_RESOURCE_ATTRIBUTE, facts->attributes, facts->count,
                              UINT32_MAX, SIZE_MAX);
    oteli_entities_put(at, entities);
    resource->otlp_length = resource->own_length + size;
    if (facts->schema_url == NULL)
        return true;
    resource->schema_url = encode_schema_url(facts->schema_url);
    return resource->schema_url != NULL;
}

otel_status oteli_resource_init(struct oteli_resource *resource, const struct oteli_config *config,
                                const otel_attribute *attributes, size_t count)
{
    const struct said chosen = {
        .service_version = config->service_version,
        .attributes = attributes,
        .count = count,
        .schema_url = config->resource_schema_url,
    };
    const struct said defaults = {
        .is_default = true,
        .service_version = config->program.service_version,
        .attributes = config->program.resource,
        .count = config->program.resource_count,
        .schema_url = chosen.schema_url == NULL || chosen.schema_url[0] == '\0'
                          ? config->program.resource_schema_url
                          : NULL,
    };
    struct oteli_facts facts = {0};
    struct oteli_facts by_default = {0};
    struct oteli_facts said = {0};
    struct oteli_entities entities;
    *resource = (struct oteli_resource){0};
    set_defaults(&facts);
    oteli_detect(&facts, config->resource_detectors);
    const otel_value *instance = oteli_facts_get(&facts, INSTANCE);
    const char *id = instance != NULL ? instance->as.string : NULL;
    gather(&by_default, config, &defaults);
    oteli_facts_merge(&facts, &by_default);
    gather(&said, config, &chosen);
    oteli_entities_parse(&entities, &facts, oteli_config_called(config, &config->entities),
                         config->entities);
    oteli_entities_yield(&entities, &said);
    oteli_entities_apply(&entities, &facts);
    oteli_facts_merge(&facts, &said);
    take_own(resource, &facts, id);
    const bool done = !facts.failed && encode(resource, &facts, &entities);
    if (!done)
        oteli_resource_fini(resource);
    oteli_facts_fini(&facts);
    return done ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
}

otel_status oteli_resource_renew(struct oteli_resource *resource,
                                 const struct oteli_resource *parents)
{
    const size_t shared = parents->otlp_length - parents->own_length;
    *resource = *parents;
    if (parents->instance[0] != '\0' && !oteli_uuid(resource->instance))
        resource->instance[0] = '\0';
    resource->otlp = malloc(MOST_OWN + shared);
    if (parents->schema_url != NULL)
        resource->schema_url = oteli_slice_copy(oteli_slice_of(parents->schema_url));
    if (resource->otlp == NULL || (parents->schema_url != NULL && resource->schema_url == NULL)) {
        oteli_resource_fini(resource);
        return OTEL_ERROR_NO_MEMORY;
    }
    memcpy(put_own(resource), parents->otlp + parents->own_length, shared);
    resource->otlp_length = resource->own_length + shared;
    return OTEL_OK;
}

otel_slice oteli_resource_service(const struct oteli_resource *resource)
{
    otel_slice rest = {resource->otlp, resource->otlp_length};
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute))
        if (oteli_is_text(attribute.key, "service.name") &&
            attribute.value.type == OTEL_VALUE_STRING)
            return attribute.value.slice;
    return (otel_slice){"", 0};
}

void oteli_resource_fini(struct oteli_resource *resource)
{
    free(resource->otlp);
    free(resource->schema_url);
    *resource = (struct oteli_resource){0};
}
