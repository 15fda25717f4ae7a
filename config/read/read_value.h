/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/read_value.h - single values out of a checked document. Start/stop only. */
#ifndef OTELI_READ_VALUE_H
#define OTELI_READ_VALUE_H

#include "config/read/document.h"

/* Members of a mapping, missing or null as NULL, 0, or what is said. */
const char *oteli_read_text(const struct oteli_node *mapping, const char *key);
bool oteli_read_bool(const struct oteli_node *mapping, const char *key, bool otherwise);
int64_t oteli_read_number(const struct oteli_node *mapping, const char *key);

/* The first element of a list, and how many it has; NULL and 0 where it is missing or null. */
const struct oteli_item *oteli_read_list(const struct oteli_node *mapping, const char *key,
                                         size_t *count);

/* The keys of a list of mappings with one each, as "key,key". NULL: no memory, or no list. */
char *oteli_read_keys(const struct oteli_node *mapping, const char *key, struct oteli_file *file);

/* A list of texts as an array; `count` is 0 without a list. NULL: no memory, or no list. */
const char *const *oteli_read_texts(const struct oteli_node *mapping, const char *key,
                                    struct oteli_file *file, size_t *count);

#endif
