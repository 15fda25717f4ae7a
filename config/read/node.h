/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/node.h - a value of a YAML text, which knows its type and where it stands.
 *
 *     mapping ─ items ─▶ {key, value} ─▶ {key, value}
 *                            │
 *                        sequence ─ items ─▶ {value} ─▶ {value}
 *
 * Threads:  any; no state.
 * Source:   YAML 1.2.2, chapter 10.3 (core schema). */
#ifndef OTELI_NODE_H
#define OTELI_NODE_H

#include "config/read/file.h"

enum oteli_node_kind {
    OTELI_NODE_NULL,
    OTELI_NODE_BOOL,
    OTELI_NODE_INT, /* what fits in 64 bits; other integers are OTELI_NODE_FLOAT */
    OTELI_NODE_FLOAT,
    OTELI_NODE_TEXT,
    OTELI_NODE_SEQUENCE,
    OTELI_NODE_MAPPING
};

struct oteli_node {
    enum oteli_node_kind kind;
    struct oteli_place place;
    const char *text; /* of scalars: after substitution, with a NUL behind it and none inside */
    size_t length;
    bool boolean;
    int64_t integer;
    double real; /* of OTELI_NODE_INT too */
    struct oteli_item *items;
    struct oteli_item *last;
    size_t count;
    size_t weight; /* nodes of this one and below */
    size_t height; /* containers in each other, this one counted */
    bool is_open;  /* its end has not been seen */
};

struct oteli_item {
    struct oteli_item *next;
    const char *key; /* of mappings */
    struct oteli_place key_place;
    const struct oteli_node *value;
};

/* The value of a key in a mapping; NULL: there is none (which is another thing than null). */
const struct oteli_node *oteli_node_find(const struct oteli_node *mapping, const char *key);

/* The same, but NULL also where it is null. */
const struct oteli_node *oteli_node_value(const struct oteli_node *mapping, const char *key);

/* Give a scalar the type that its text has in the core schema: kind and value
 * of `node` are set from its text. */
void oteli_scalar_resolve(struct oteli_node *node);

#endif
