/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/tree.h - who is whose child, among spans in any order.
 *
 *     nodes, sorted by start:  [0] root   [1] a   [2] b   [3] a's child
 *     first_child:                  1         3
 *     next_sibling:                           2
 *
 * Every span is in the tree once. A span whose parent is not among them is a root, and
 * so is one span of every cycle.
 * Threads:  one thread at a time; the tree borrows the spans. */
#ifndef OTELI_CONSOLE_TREE_H
#define OTELI_CONSOLE_TREE_H

#include <otel/exporter.h>

/* How much of a span it is worth keeping for its drawing, in bytes and pieces. */
enum {
    OTELI_RENDER_TEXT_MAX = 256,
    OTELI_RENDER_ATTRIBUTES_MAX = 24,
    OTELI_RENDER_EVENTS_MAX = 16,
    OTELI_RENDER_LINKS_MAX = 16
};

struct oteli_render_event {
    uint64_t time_ns;
    otel_slice name;
    otel_slice attributes; /* "key=value, key=value" */
};

struct oteli_render_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    otel_slice tracestate;
    otel_slice attributes; /* "key=value, key=value" */
};

struct oteli_render_span {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t parent_id[8];
    bool has_parent;
    otel_span_kind kind;
    otel_span_status status;
    uint64_t start_ns; /* Unix time; 0: not known */
    uint64_t end_ns;
    otel_slice service;
    otel_slice name;
    otel_slice status_message;
    const otel_slice *attributes; /* "key=value" each */
    size_t attribute_count;
    size_t attributes_left_out; /* there are so many more */
    const struct oteli_render_event *events;
    size_t event_count;
    size_t events_left_out;
    const struct oteli_render_link *links;
    size_t link_count;
    size_t links_left_out;
    otel_slice tracestate;
};

#define OTELI_TREE_NONE UINT32_MAX

enum oteli_tree_place {
    OTELI_TREE_CHILD,
    OTELI_TREE_ROOT,
    OTELI_TREE_ORPHAN, /* has a parent, which is not here */
    OTELI_TREE_CYCLE   /* is its own ancestor */
};

struct oteli_tree_node {
    const struct oteli_render_span *span;
    uint32_t parent;
    uint32_t first_child;
    uint32_t next_sibling; /* of roots: the next root */
    uint32_t walk;         /* while building: the last walk that came along */
    enum oteli_tree_place place;
};

struct oteli_tree {
    struct oteli_tree_node *nodes;
    uint32_t count;
    uint32_t first_root;
};

/* Build the tree, sorting `spans`. False: no memory, or too many spans. */
bool oteli_tree_init(struct oteli_tree *tree, const struct oteli_render_span **spans, size_t count);
void oteli_tree_fini(struct oteli_tree *tree);

/* The node that is drawn after this one, NONE after the last; `depth` follows. */
uint32_t oteli_tree_next(const struct oteli_tree *tree, uint32_t node, uint32_t *depth);

#endif
