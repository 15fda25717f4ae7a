/* SPDX-License-Identifier: Apache-2.0 */
/* config/read_resource.c - the resource: typed attributes, a list of texts, and the detectors that
 * may run; see settings.h. Start/stop only. */
#include "config/settings.h"

#include <string.h>

/* The elements of a list in the form that an attribute has them; those of one that is `real` may be
 * integers. */
static otel_value array_of(const struct oteli_node *list, bool is_real, struct oteli_file *file)
{
    const size_t count = list->count;
    void *elements = oteli_file_take(file, count, sizeof(int64_t));
    if (elements == NULL)
        return otel_value_empty();
    const enum oteli_node_kind kind = is_real ? OTELI_NODE_FLOAT : list->items->value->kind;
    size_t i = 0;
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next, i++) {
        if (kind == OTELI_NODE_TEXT)
            ((const char **)elements)[i] = item->value->text;
        else if (kind == OTELI_NODE_BOOL)
            ((bool *)elements)[i] = item->value->boolean;
        else if (kind == OTELI_NODE_INT)
            ((int64_t *)elements)[i] = item->value->integer;
        else
            ((double *)elements)[i] = item->value->real;
    }
    if (kind == OTELI_NODE_TEXT)
        return otel_value_string_array(elements, count);
    if (kind == OTELI_NODE_BOOL)
        return otel_value_bool_array(elements, count);
    if (kind == OTELI_NODE_INT)
        return otel_value_int_array(elements, count);
    return otel_value_double_array(elements, count);
}

static otel_value value_of(const struct oteli_node *node, bool is_real, struct oteli_file *file)
{
    if (node->kind == OTELI_NODE_SEQUENCE)
        return array_of(node, is_real, file);
    if (node->kind == OTELI_NODE_TEXT)
        return otel_value_string_n(node->text, node->length);
    if (node->kind == OTELI_NODE_BOOL)
        return otel_value_bool(node->boolean);
    return is_real ? otel_value_double(node->real) : otel_value_int(node->integer);
}

static void read_attributes(const struct oteli_node *resource, struct oteli_file *file,
                            struct oteli_settings *settings)
{
    size_t count;
    const struct oteli_item *item = oteli_read_list(resource, "attributes", &count);
    otel_attribute *attributes =
        item != NULL ? oteli_file_take(file, count, sizeof *attributes) : NULL;
    for (; item != NULL && attributes != NULL; item = item->next) {
        const struct oteli_node *value = oteli_node_value(item->value, "value");
        const char *type = oteli_read_text(item->value, "type");
        const bool is_real = type != NULL && strncmp(type, "double", strlen("double")) == 0;
        if (value != NULL)
            attributes[settings->attribute_count++] = otel_attribute_of(
                oteli_read_text(item->value, "name"), value_of(value, is_real, file));
    }
    settings->attributes = attributes;
}

void oteli_resource_read(const struct oteli_node *resource, struct oteli_file *file,
                         struct oteli_settings *settings)
{
    const struct oteli_node *detection = oteli_node_value(resource, "detection/development");
    settings->options.resource_attributes = oteli_read_text(resource, "attributes_list");
    settings->options.resource_schema_url = oteli_read_text(resource, "schema_url");
    read_attributes(resource, file, settings);
    const char *detectors = oteli_read_keys(detection, "detectors", file);
    settings->options.resource_detectors = detectors;
    settings->detects_service = detectors != NULL && strstr(detectors, "service") != NULL;
}
