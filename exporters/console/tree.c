/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/tree.c - who is whose child, among spans in any order.
 *
 * Runs on the thread that draws; owns the nodes. Everything is a loop over arrays, because
 * depth and shape come from the network. */
#include "exporters/console/tree.h"

#include <stdlib.h>
#include <string.h>

static int by_start(const void *left, const void *right)
{
    const struct oteli_render_span *a = *(const struct oteli_render_span *const *)left;
    const struct oteli_render_span *b = *(const struct oteli_render_span *const *)right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return memcmp(a->span_id, b->span_id, sizeof a->span_id);
}

struct entry {
    uint8_t span_id[8];
    uint32_t node;
};

static int by_span_id(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    const int order = memcmp(a->span_id, b->span_id, sizeof a->span_id);
    return order != 0 ? order : (a->node > b->node) - (a->node < b->node);
}

/* The first node with this span id: twins are told apart by their place only. */
static uint32_t find(const struct entry *entries, uint32_t count, const uint8_t *span_id)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (memcmp(entries[middle].span_id, span_id, sizeof entries->span_id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && memcmp(entries[low].span_id, span_id, sizeof entries->span_id) == 0)
        return entries[low].node;
    return OTELI_TREE_NONE;
}

/* By sorting and not by hashing: its time cannot be made long by chosen ids. */
static bool find_parents(struct oteli_tree *tree)
{
    struct entry *entries = malloc(tree->count * sizeof *entries);
    if (entries == NULL)
        return false;
    for (uint32_t i = 0; i < tree->count; i++) {
        memcpy(entries[i].span_id, tree->nodes[i].span->span_id, sizeof entries->span_id);
        entries[i].node = i;
    }
    qsort(entries, tree->count, sizeof *entries, by_span_id);
    for (uint32_t i = 0; i < tree->count; i++) {
        struct oteli_tree_node *node = &tree->nodes[i];
        if (!node->span->has_parent)
            continue;
        node->parent = find(entries, tree->count, node->span->parent_id);
        node->place = node->parent == OTELI_TREE_NONE ? OTELI_TREE_ORPHAN : OTELI_TREE_CHILD;
    }
    free(entries);
    return true;
}

/* Each walk goes up until a root or ground that was walked before; meeting its own
 * footprints means a cycle, which is cut there. */
static void cut_cycles(struct oteli_tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        uint32_t at = i;
        while (at != OTELI_TREE_NONE && tree->nodes[at].walk == 0) {
            tree->nodes[at].walk = i + 1;
            at = tree->nodes[at].parent;
        }
        if (at != OTELI_TREE_NONE && tree->nodes[at].walk == i + 1) {
            tree->nodes[at].parent = OTELI_TREE_NONE;
            tree->nodes[at].place = OTELI_TREE_CYCLE;
        }
    }
}

/* From the last to the first, so that putting each in front leaves them in order. */
static void link_children(struct oteli_tree *tree)
{
    for (uint32_t i = tree->count; i-- > 0;) {
        struct oteli_tree_node *node = &tree->nodes[i];
        uint32_t *head = node->parent == OTELI_TREE_NONE ? &tree->first_root
                                                         : &tree->nodes[node->parent].first_child;
        node->next_sibling = *head;
        *head = i;
    }
}

bool oteli_tree_init(struct oteli_tree *tree, const struct oteli_render_span **spans, size_t count)
{
    *tree = (struct oteli_tree){.first_root = OTELI_TREE_NONE};
    if (count >= OTELI_TREE_NONE / 4)
        return false;
    if (count == 0)
        return true;
    tree->nodes = malloc(count * sizeof *tree->nodes);
    if (tree->nodes == NULL)
        return false;
    tree->count = (uint32_t)count;
    qsort(spans, count, sizeof *spans, by_start);
    for (size_t i = 0; i < count; i++)
        tree->nodes[i] = (struct oteli_tree_node){.span = spans[i],
                                                  .parent = OTELI_TREE_NONE,
                                                  .first_child = OTELI_TREE_NONE,
                                                  .next_sibling = OTELI_TREE_NONE,
                                                  .place = OTELI_TREE_ROOT};
    if (!find_parents(tree)) {
        oteli_tree_fini(tree);
        return false;
    }
    cut_cycles(tree);
    link_children(tree);
    return true;
}

void oteli_tree_fini(struct oteli_tree *tree)
{
    free(tree->nodes);
    *tree = (struct oteli_tree){.first_root = OTELI_TREE_NONE};
}

uint32_t oteli_tree_next(const struct oteli_tree *tree, uint32_t node, uint32_t *depth)
{
    if (tree->nodes[node].first_child != OTELI_TREE_NONE) {
        ++*depth;
        return tree->nodes[node].first_child;
    }
    while (tree->nodes[node].next_sibling == OTELI_TREE_NONE) {
        node = tree->nodes[node].parent;
        if (node == OTELI_TREE_NONE)
            return OTELI_TREE_NONE;
        --*depth;
    }
    return tree->nodes[node].next_sibling;
}
