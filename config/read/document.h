/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/document.h - a YAML text as a tree of typed values that know where they stand.
 *
 *     mapping ─ items ─▶ {key, value} ─▶ {key, value}
 *                            │
 *                        sequence ─ items ─▶ {value} ─▶ {value}
 *
 * The only place that knows libfyaml: it is asked for events, and the tree is built here, so
 * that its size is bounded. An alias is the node of its anchor, once more; what aliases add up
 * to is bounded like what was written out.
 *
 * Threads:  start/stop only; the tree is immutable and lives in a pool of the caller's.
 * Source:   YAML 1.2.2, chapter 10.3 (core schema). */
#ifndef OTELI_DOCUMENT_H
#define OTELI_DOCUMENT_H

#include "config/diagnostics.h"
#include "config/pool.h"

enum {
    OTELI_DOCUMENT_BYTES = 256 << 10, /* the largest file */
    OTELI_DOCUMENT_NODES = 10000,     /* aliases counted with all that they stand for */
    OTELI_DOCUMENT_DEPTH = 48,        /* containers in each other */
    OTELI_DOCUMENT_FILLED = 1 << 20,  /* bytes that come from the environment */
};

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

/* The root of a text, which must be one document with a mapping. NULL: it has faults, which
 * have been said. */
const struct oteli_node *oteli_document_read(const char *text, size_t length,
                                             struct oteli_pool *pool, struct oteli_faults *faults);

/* The value of a key in a mapping; NULL: there is none (which is another thing than null). */
const struct oteli_node *oteli_node_find(const struct oteli_node *mapping, const char *key);

/* The same, but NULL also where it is null. */
const struct oteli_node *oteli_node_value(const struct oteli_node *mapping, const char *key);

/* config/read/scalar.c: give a scalar the type that its text has in the core schema: kind and value
 * of `node` are set from its text. */
void oteli_scalar_resolve(struct oteli_node *node);

/* config/read/substitute.c: `input` with references to the environment replaced: ${NAME}, ${env:NAME},
 * ${NAME:-default}; $$ is a $. What comes out of it is not looked at again.
 * OTEL_ERROR_INVALID_ARGUMENT: `culprit` is a reference that is none. OTEL_ERROR_UNSUPPORTED:
 * more than `*budget` bytes have been asked of the environment. OTEL_ERROR_NO_MEMORY. */
otel_status oteli_substitute(otel_slice input, struct oteli_pool *pool, size_t *budget,
                             otel_slice *output, otel_slice *culprit);

#endif
