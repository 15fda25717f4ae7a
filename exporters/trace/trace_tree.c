/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/trace/trace_tree.c - the contracts are in trace_tree.h. One thread at a time; owns the
 * nodes. Everything is a loop over arrays, because depth and shape may come from the network. */
#include "exporters/trace/trace_tree.h"

#include "common/text/text.h"

uint64_t oteli_span_end_ns(const otel_span_view *view)
{
    return view->end_ns > view->start_ns ? view->end_ns : view->start_ns;
}

static int by_start(const void *left, const void *right)
{
    const struct oteli_tree_node *a = left, *b = right;
    const uint64_t end_a = oteli_span_end_ns(a->view), end_b = oteli_span_end_ns(b->view);
    if (a->view->start_ns != b->view->start_ns)
        return a->view->start_ns < b->view->start_ns ? -1 : 1;
    if (end_a != end_b)
        return end_a > end_b ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return memcmp(a->view->span_id, b->view->span_id, 8);
}

static int by_span_id(const void *left, const void *right)
{
    const struct oteli_tree_node *a = *(struct oteli_tree_node *const *)left;
    const struct oteli_tree_node *b = *(struct oteli_tree_node *const *)right;
    const int order = memcmp(a->view->span_id, b->view->span_id, 8);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/* The first of the sorted nodes with this span id: twins are told apart by their place only. */
static uint32_t find(struct oteli_tree_node *const *sorted, uint32_t count, const uint8_t *span_id)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (memcmp(sorted[middle]->view->span_id, span_id, 8) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && memcmp(sorted[low]->view->span_id, span_id, 8) == 0)
        return sorted[low]->number;
    return OTELI_TREE_NONE;
}

/* By sorting and not by hashing: its time cannot be made long by chosen ids. */
static bool find_parents(struct oteli_tree *tree)
{
    struct oteli_tree_node **sorted = malloc(tree->count * sizeof *sorted);
    if (sorted == NULL)
        return false;
    for (uint32_t i = 0; i < tree->count; i++)
        sorted[i] = &tree->nodes[i];
    qsort(sorted, tree->count, sizeof *sorted, by_span_id);
    for (uint32_t i = 0; i < tree->count; i++) {
        struct oteli_tree_node *node = &tree->nodes[i];
        if (node->view->parent_span_id == NULL)
            continue;
        node->parent = find(sorted, tree->count, node->view->parent_span_id);
        node->place = node->parent == OTELI_TREE_NONE ? OTELI_TREE_ORPHAN : OTELI_TREE_CHILD;
    }
    free(sorted);
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

/* Each walk goes up to a root, or to a node whose depth is known, and then sets those below it. */
static void find_depths(struct oteli_tree *tree)
{
    struct oteli_tree_node *nodes = tree->nodes;
    for (uint32_t i = 0; i < tree->count; i++) {
        uint32_t at = i, steps = 0;
        for (; nodes[at].depth == 0 && nodes[at].parent != OTELI_TREE_NONE; at = nodes[at].parent)
            steps++;
        const uint32_t top = nodes[at].depth;
        for (at = i; steps != 0; at = nodes[at].parent)
            nodes[at].depth = top + steps--;
    }
}

/* Sort the nodes, whose numbers and parents then are those of their new places. */
static bool sort(struct oteli_tree *tree)
{
    uint32_t *places = malloc(tree->count * sizeof *places);
    if (places == NULL)
        return false;
    qsort(tree->nodes, tree->count, sizeof *tree->nodes, by_start);
    for (uint32_t i = 0; i < tree->count; i++)
        places[tree->nodes[i].number] = i;
    for (uint32_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].parent != OTELI_TREE_NONE)
            tree->nodes[i].parent = places[tree->nodes[i].parent];
    free(places);
    return true;
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

bool oteli_tree_init(struct oteli_tree *tree, const struct oteli_waiting_trace *trace)
{
    *tree = (struct oteli_tree){.first_root = OTELI_TREE_NONE};
    if (trace->count >= OTELI_TREE_NONE / 4)
        return false;
    tree->nodes = malloc(trace->count * sizeof *tree->nodes);
    if (tree->nodes == NULL)
        return false;
    tree->count = (uint32_t)trace->count;
    for (uint32_t i = 0; i < tree->count; i++)
        tree->nodes[i] =
            (struct oteli_tree_node){.view = &trace->spans[i].kept->view,
                                     .service = oteli_slice_of(trace->spans[i].service),
                                     .resource = trace->spans[i].resource,
                                     .parent = OTELI_TREE_NONE,
                                     .first_child = OTELI_TREE_NONE,
                                     .next_sibling = OTELI_TREE_NONE,
                                     .place = OTELI_TREE_ROOT,
                                     .number = i};
    bool is_made = find_parents(tree);
    if (is_made) {
        cut_cycles(tree);
        find_depths(tree);
        is_made = sort(tree);
    }
    if (is_made)
        link_children(tree);
    else
        oteli_tree_fini(tree);
    return is_made;
}

void oteli_tree_fini(struct oteli_tree *tree)
{
    free(tree->nodes);
    *tree = (struct oteli_tree){.first_root = OTELI_TREE_NONE};
}

uint32_t oteli_tree_next(const struct oteli_tree *tree, uint32_t node)
{
    if (tree->nodes[node].first_child != OTELI_TREE_NONE)
        return tree->nodes[node].first_child;
    while (tree->nodes[node].next_sibling == OTELI_TREE_NONE) {
        node = tree->nodes[node].parent;
        if (node == OTELI_TREE_NONE)
            return OTELI_TREE_NONE;
    }
    return tree->nodes[node].next_sibling;
}
