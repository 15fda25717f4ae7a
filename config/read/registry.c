/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/registry.c - names of components, and how their makers read what the file says.
 * Start/stop only. Owns the list; an otel_properties is a node of a document, or an item of a
 * list in one, which looks like a mapping with the property "value". */
#include "config/read/registry.h"

#include <string.h>

enum { MOST = 64 };

static otel_component_provider providers[MOST];
static size_t count;

const otel_component_provider *oteli_registry_find(otel_component_type type, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (providers[i].type == type && strcmp(providers[i].name, name) == 0)
            return &providers[i];
    return NULL;
}

otel_status otel_component_register(const otel_component_provider *provider)
{
    if (provider == NULL ||
        provider->size < offsetof(otel_component_provider, create) + sizeof provider->create ||
        provider->name == NULL || provider->create == NULL ||
        provider->type < OTEL_COMPONENT_EXPORTER || provider->type > OTEL_COMPONENT_SAMPLER ||
        oteli_registry_find(provider->type, provider->name) != NULL)
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (count == MOST)
        return OTEL_ERROR_NO_MEMORY;
    providers[count++] = *provider;
    return OTEL_OK;
}

void oteli_registry_reset(void)
{
    count = 0;
}

const otel_properties *oteli_properties_of(const struct oteli_node *node)
{
    return (const otel_properties *)node;
}

otel_status oteli_registry_create(otel_component_type type, const struct oteli_item *item,
                                  void *component)
{
    const otel_component_provider *provider = oteli_registry_find(type, item->key);
    const bool is_described = item->value->kind == OTELI_NODE_MAPPING;
    return provider->create(provider->state, is_described ? oteli_properties_of(item->value) : NULL,
                            component);
}

static const struct oteli_node *node_of(const otel_properties *properties)
{
    return (const struct oteli_node *)properties;
}

/* The value of a property, if it is of this kind; an element of a list, which is no mapping, is its
 * own "value". */
static const struct oteli_node *value_of(const otel_properties *properties, const char *name,
                                         enum oteli_node_kind kind)
{
    const struct oteli_node *node = node_of(properties);
    if (node == NULL || name == NULL)
        return NULL;
    if (node->kind == OTELI_NODE_MAPPING)
        node = oteli_node_value(node, name);
    else if (strcmp(name, "value") != 0)
        return NULL;
    return node != NULL && node->kind == kind ? node : NULL;
}

bool otel_properties_text(const otel_properties *properties, const char *name, const char **value)
{
    const struct oteli_node *node = value_of(properties, name, OTELI_NODE_TEXT);
    if (node != NULL)
        *value = node->text;
    return node != NULL;
}

bool otel_properties_bool(const otel_properties *properties, const char *name, bool *value)
{
    const struct oteli_node *node = value_of(properties, name, OTELI_NODE_BOOL);
    if (node != NULL)
        *value = node->boolean;
    return node != NULL;
}

bool otel_properties_int(const otel_properties *properties, const char *name, int64_t *value)
{
    const struct oteli_node *node = value_of(properties, name, OTELI_NODE_INT);
    if (node != NULL)
        *value = node->integer;
    return node != NULL;
}

bool otel_properties_double(const otel_properties *properties, const char *name, double *value)
{
    const struct oteli_node *node = value_of(properties, name, OTELI_NODE_FLOAT);
    if (node == NULL)
        node = value_of(properties, name, OTELI_NODE_INT);
    if (node != NULL)
        *value = node->real;
    return node != NULL;
}

const otel_properties *otel_properties_map(const otel_properties *properties, const char *name)
{
    return oteli_properties_of(value_of(properties, name, OTELI_NODE_MAPPING));
}

static const struct oteli_item *item_at(const struct oteli_node *node, size_t index)
{
    const struct oteli_item *item = node->items;
    for (; item != NULL && index != 0; index--)
        item = item->next;
    return item;
}

const char *otel_properties_name(const otel_properties *properties, size_t index, bool *is_null)
{
    const struct oteli_node *node = node_of(properties);
    if (node == NULL || node->kind != OTELI_NODE_MAPPING)
        return NULL;
    const struct oteli_item *item = item_at(node, index);
    if (item != NULL && is_null != NULL)
        *is_null = item->value->kind == OTELI_NODE_NULL;
    return item != NULL ? item->key : NULL;
}

const otel_properties *otel_properties_element(const otel_properties *properties, const char *name,
                                               size_t index)
{
    const struct oteli_node *list = value_of(properties, name, OTELI_NODE_SEQUENCE);
    const struct oteli_item *item = list != NULL ? item_at(list, index) : NULL;
    return item != NULL ? oteli_properties_of(item->value) : NULL;
}
