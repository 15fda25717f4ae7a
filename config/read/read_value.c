/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/read_value.c - the contracts are in config/read/read_value.h. Start/stop only. */
#include "config/read/read_value.h"

#include "config/read/registry.h"

#include <string.h>

struct oteli_component_setting oteli_component_read(otel_component_type type,
                                                    const struct oteli_item *item)
{
    const bool is_given = item->value->kind == OTELI_NODE_MAPPING;
    return (struct oteli_component_setting){
        .provider = oteli_registry_find(type, item->key),
        .properties = is_given ? oteli_properties_of(item->value) : NULL,
    };
}

const char *oteli_read_text(const struct oteli_node *mapping, const char *key)
{
    const struct oteli_node *node = oteli_node_value(mapping, key);
    return node != NULL ? node->text : NULL;
}

bool oteli_read_bool(const struct oteli_node *mapping, const char *key, bool otherwise)
{
    const struct oteli_node *node = oteli_node_value(mapping, key);
    return node != NULL ? node->boolean : otherwise;
}

int64_t oteli_read_number(const struct oteli_node *mapping, const char *key)
{
    const struct oteli_node *node = oteli_node_value(mapping, key);
    if (node == NULL)
        return 0;
    return node->integer == 0 ? OTEL_ZERO : node->integer;
}

const char *const *oteli_read_texts(const struct oteli_node *mapping, const char *key,
                                    struct oteli_pool *pool, struct oteli_faults *faults,
                                    size_t *count)
{
    const struct oteli_node *list = oteli_node_value(mapping, key);
    *count = 0;
    if (list == NULL)
        return NULL;
    const char **texts = oteli_pool_array(pool, list->count, sizeof *texts);
    if (texts == NULL) {
        oteli_fault_no_memory(faults);
        return NULL;
    }
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next)
        texts[(*count)++] = item->value->text;
    return texts;
}

char *oteli_read_keys(const struct oteli_node *list, struct oteli_pool *pool,
                      struct oteli_faults *faults)
{
    size_t size = 1;
    if (list == NULL)
        return NULL;
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next)
        size += strlen(item->value->items->key) + 1;
    char *const keys = oteli_pool_take(pool, size);
    if (keys == NULL) {
        oteli_fault_no_memory(faults);
        return NULL;
    }
    char *end = keys;
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next) {
        if (end != keys)
            *end++ = ',';
        end = stpcpy(end, item->value->items->key);
    }
    return keys;
}
