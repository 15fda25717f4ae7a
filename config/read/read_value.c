/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/read_value.c - the contracts are in config/read/read_value.h. Start/stop only. */
#include "config/read/read_value.h"

#include <otel/config.h>
#include <string.h>

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

void *oteli_read_array(struct oteli_pool *pool, struct oteli_faults *faults, size_t count,
                       size_t size)
{
    void *array = oteli_pool_array(pool, count, size);
    if (array == NULL)
        oteli_fault_no_memory(faults);
    return array;
}

const char *const *oteli_read_texts(const struct oteli_node *mapping, const char *key,
                                    struct oteli_pool *pool, struct oteli_faults *faults,
                                    size_t *count)
{
    const struct oteli_node *list = oteli_node_value(mapping, key);
    *count = 0;
    if (list == NULL)
        return NULL;
    const char **texts = oteli_read_array(pool, faults, list->count, sizeof *texts);
    if (texts == NULL)
        return NULL;
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
    char *const keys = oteli_read_array(pool, faults, size, 1);
    if (keys == NULL)
        return NULL;
    char *end = keys;
    for (const struct oteli_item *item = list->items; item != NULL; item = item->next) {
        if (end != keys)
            *end++ = ',';
        end = stpcpy(end, item->value->items->key);
    }
    return keys;
}
