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

const struct oteli_item *oteli_read_list(const struct oteli_node *mapping, const char *key,
                                         size_t *count)
{
    const struct oteli_node *list = oteli_node_value(mapping, key);
    *count = list != NULL ? list->count : 0;
    return list != NULL ? list->items : NULL;
}

const char *const *oteli_read_texts(const struct oteli_node *mapping, const char *key,
                                    struct oteli_file *file, size_t *count)
{
    const struct oteli_item *item = oteli_read_list(mapping, key, count);
    const char **texts = *count != 0 ? oteli_file_take(file, *count, sizeof *texts) : NULL;
    for (size_t i = 0; texts != NULL && item != NULL; item = item->next)
        texts[i++] = item->value->text;
    return texts;
}

char *oteli_read_keys(const struct oteli_node *mapping, const char *key, struct oteli_file *file)
{
    size_t size = 0;
    size_t count;
    const struct oteli_item *const first = oteli_read_list(mapping, key, &count);
    for (const struct oteli_item *item = first; item != NULL; item = item->next)
        size += strlen(item->value->items->key) + 1;
    char *const keys = size != 0 ? oteli_file_take(file, size, 1) : NULL;
    char *end = keys;
    for (const struct oteli_item *item = first; keys != NULL && item != NULL; item = item->next) {
        if (end != keys)
            *end++ = ',';
        end = stpcpy(end, item->value->items->key);
    }
    return keys;
}
