/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/trace/trace_tree.h - which span is the child of which, among those of a trace.
 *
 *     nodes, sorted by start:  [0] root   [1] a   [2] b   [3] a's child
 *     first_child:                  1         3
 *     next_sibling:                           2
 *
 * Of those that start together the longest comes first, and then the parent before its child. Every
 * span is in the tree once. A span whose parent is not among them is a root, and so is one span of
 * every cycle.
 *
 * Threads:  one thread at a time; the tree borrows the spans. */
#ifndef OTELI_TRACE_TREE_H
#define OTELI_TRACE_TREE_H

#include "exporters/trace/trace_buffer.h"

#define OTELI_TREE_NONE UINT32_MAX

enum oteli_tree_place {
    OTELI_TREE_CHILD,
    OTELI_TREE_ROOT,
    OTELI_TREE_ORPHAN, /* has a parent, which is not here */
    OTELI_TREE_CYCLE   /* is its own ancestor */
};

struct oteli_tree_node {
    const otel_span_view *view;
    otel_slice service;
    const struct oteli_kept_resource *resource; /* may be NULL */
    uint32_t parent;
    uint32_t first_child;
    uint32_t next_sibling; /* of roots: the next root */
    uint32_t depth;        /* of a root: 0 */
    enum oteli_tree_place place;

    /* While the tree is built. */
    uint32_t number; /* of the span among those given */
    uint32_t walk;   /* the last walk that came along */
};

struct oteli_tree {
    struct oteli_tree_node *nodes;
    uint32_t count;
    uint32_t first_root;
};

/* False: no memory, or too many spans. */
bool oteli_tree_init(struct oteli_tree *tree, const struct oteli_waiting_trace *trace);
void oteli_tree_fini(struct oteli_tree *tree);

/* The node that is drawn after this one, NONE after the last. */
uint32_t oteli_tree_next(const struct oteli_tree *tree, uint32_t node);

/* When a span has ended, which is not before its start. */
uint64_t oteli_span_end_ns(const otel_span_view *view);

#endif
