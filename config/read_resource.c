/* SPDX-License-Identifier: Apache-2.0 */
/* config/read_resource.c - the resource: attributes of a type, a list of texts, and who may
 * find out more; see settings.h. Start/stop only. */
#include "config/settings.h"

#include <string.h>

/* The elements of a list in the form that an attribute has them. */
static otel_value array_of(const struct oteli_node *list, const char *type, struct oteli_pool *pool,
                           struct oteli_faults *faults)
{
    otel_value value = otel_value_empty();
    void *elements = oteli_read_array(pool, faults, list->count, sizeof(int64_t));
    if (elements == NULL)
        return value;
    size_t i = 0;
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next, i++) {
        if (strcmp(type, "string_array") == 0)
            ((const char **)elements)[i] = item->value->text;
        else if (strcmp(type, "bool_array") == 0)
            ((bool *)elements)[i] = item->value->boolean;
        else if (strcmp(type, "int_array") == 0)
            ((int64_t *)elements)[i] = item->value->integer;
        else
            ((double *)elements)[i] = item->value->real;
    }
    if (strcmp(type, "string_array") == 0)
        return otel_value_string_array(elements, list->count);
    if (strcmp(type, "bool_array") == 0)
        return otel_value_bool_array(elements, list->count);
    if (strcmp(type, "int_array") == 0)
        return otel_value_int_array(elements, list->count);
    return otel_value_double_array(elements, list->count);
}

static otel_value value_of(const struct oteli_node *node, const char *type, struct oteli_pool *pool,
                           struct oteli_faults *faults)
{
    if (node->kind == OTELI_NODE_SEQUENCE)
        return array_of(node, type, pool, faults);
    if (strcmp(type, "bool") == 0)
        return otel_value_bool(node->boolean);
    if (strcmp(type, "int") == 0)
        return otel_value_int(node->integer);
    if (strcmp(type, "double") == 0)
        return otel_value_double(node->real);
    return otel_value_string_n(node->text, node->length);
}

static void read_attributes(const struct oteli_node *list, struct oteli_pool *pool,
                            struct oteli_faults *faults, struct oteli_settings *settings)
{
    if (list == NULL)
        return;
    otel_attribute *attributes = oteli_read_array(pool, faults, list->count, sizeof *attributes);
    if (attributes == NULL)
        return;
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next) {
        const struct oteli_node *value = oteli_node_value(item->value, "value");
        const char *type = oteli_read_text(item->value, "type");
        if (value != NULL)
            attributes[settings->attribute_count++] =
                (otel_attribute){oteli_read_text(item->value, "name"),
                                 value_of(value, type != NULL ? type : "string", pool, faults)};
    }
    settings->attributes = attributes;
}

void oteli_resource_read(const struct oteli_node *resource, struct oteli_pool *pool,
                         struct oteli_faults *faults, struct oteli_settings *settings)
{
    const struct oteli_node *detection = oteli_node_value(resource, "detection/development");
    settings->options.resource_attributes = oteli_read_text(resource, "attributes_list");
    settings->options.resource_schema_url = oteli_read_text(resource, "schema_url");
    read_attributes(oteli_node_value(resource, "attributes"), pool, faults, settings);
    const char *detectors = oteli_read_keys(oteli_node_value(detection, "detectors"), pool, faults);
    settings->options.resource_detectors = detectors;
    settings->detects_service = detectors != NULL && strstr(detectors, "service") != NULL;
}
