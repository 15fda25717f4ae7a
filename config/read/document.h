/* SPDX-License-Identifier: Apache-2.0 */
/* config/read/document.h - a YAML text as a tree of typed values that know where they stand.
 *
 * The only place that knows libfyaml: it is asked for events, and the tree is built here, so
 * that its size is bounded. An alias is the node of its anchor, once more; what aliases add up
 * to is bounded like what was written out.
 *
 * Threads:  start/stop only; the tree is immutable and lives in a pool of the caller's.
 * Source:   YAML 1.2.2, chapter 10.3 (core schema). */
#ifndef OTELI_DOCUMENT_H
#define OTELI_DOCUMENT_H

#include "config/read/node.h"

enum {
    OTELI_DOCUMENT_BYTES = 256 << 10, /* the largest file */
    OTELI_DOCUMENT_NODES = 10000,     /* aliases counted with all that they stand for */
    OTELI_DOCUMENT_DEPTH = 48,        /* containers in each other */
    OTELI_DOCUMENT_FILLED = 1 << 20,  /* bytes that come from the environment */
};

/* The root of a text, which must be one document with a mapping. NULL: it has faults, which
 * have been said. */
const struct oteli_node *oteli_document_read(const char *text, size_t length,
                                             struct oteli_file *file);

#endif
