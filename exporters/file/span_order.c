/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/span_order.c - the contract is in span_order.h. One thread at a time; owns
 * nothing between calls. Everything is a loop over arrays, because depth and shape come from
 * the network. */
#include "exporters/file/span_order.h"

struct item {
    struct oteli_kept_span *span;
    uint32_t number; /* where it stood in the beginning */
    uint32_t parent; /* by that number */
    uint32_t walk;   /* the last walk that came by, from 1 */
    uint32_t depth;  /* from 1; 0: not known yet */
};

static uint64_t end_of(const otel_span_view *view)
{
    return view->end_ns > view->start_ns ? view->end_ns : view->start_ns;
}

/* Parents come first where the times do not say who contains whom. */
static int by_start(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    const otel_span_view *of_a = &a->span->view, *of_b = &b->span->view;
    if (of_a->start_ns != of_b->start_ns)
        return of_a->start_ns < of_b->start_ns ? -1 : 1;
    if (end_of(of_a) != end_of(of_b))
        return end_of(of_a) > end_of(of_b) ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int by_span_id(const void *left, const void *right)
{
    const struct item *a = *(const struct item *const *)left;
    const struct item *b = *(const struct item *const *)right;
    const int order = memcmp(a->span->view.span_id, b->span->view.span_id, 8);
    return order != 0 ? order : (a->number > b->number) - (a->number < b->number);
}

/* The first of the sorted with this span id. */
static uint32_t find(struct item *const *sorted, uint32_t count, const uint8_t *span_id)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (memcmp(sorted[middle]->span->view.span_id, span_id, 8) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < count && memcmp(sorted[low]->span->view.span_id, span_id, 8) == 0)
        return sorted[low]->number;
    return OTELI_LANE_NONE;
}

/* By sorting and not by hashing: its time cannot be made long by chosen ids. */
static void find_parents(struct item *items, struct item **sorted, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = &items[i];
    qsort(sorted, count, sizeof *sorted, by_span_id);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *parent = items[i].span->view.parent_span_id;
        items[i].parent = parent != NULL ? find(sorted, count, parent) : OTELI_LANE_NONE;
    }
}

/* Each walk goes up to a root, or to ground whose depth is known; meeting its own footprints
 * means a cycle, which is cut there. Then everything below gets its depth. */
static void find_depths(struct item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i, steps = 0;
        while (items[at].depth == 0 && items[at].parent != OTELI_LANE_NONE) {
            items[at].walk = i + 1;
            const uint32_t parent = items[at].parent;
            if (items[parent].walk == i + 1) {
                items[at].parent = OTELI_LANE_NONE;
                break;
            }
            at = parent;
            steps++;
        }
        if (items[at].depth == 0)
            items[at].depth = 1;
        const uint32_t top = items[at].depth;
        for (at = i; steps != 0; at = items[at].parent)
            items[at].depth = top + steps--;
    }
}

static void fill_places(const struct item *items, uint32_t *position,
                        struct oteli_kept_span **spans, struct oteli_lane_span *places,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        position[items[i].number] = i;
    for (uint32_t i = 0; i < count; i++) {
        const otel_span_view *view = &items[i].span->view;
        const uint32_t parent = items[i].parent;
        spans[i] = items[i].span;
        places[i] = (struct oteli_lane_span){.start_ns = view->start_ns,
                                             .end_ns = end_of(view),
                                             .parent = parent != OTELI_LANE_NONE ? position[parent]
                                                                                 : OTELI_LANE_NONE,
                                             .lane = OTELI_LANE_NONE,
                                             .below = OTELI_LANE_NONE};
    }
}

bool oteli_order_spans(struct oteli_kept_span **spans, struct oteli_lane_span *places,
                       uint32_t count)
{
    struct item *items = malloc(count * sizeof *items);
    struct item **sorted = malloc(count * sizeof *sorted);
    uint32_t *position = malloc(count * sizeof *position);
    const bool has_memory = items != NULL && sorted != NULL && position != NULL;
    if (has_memory) {
        for (uint32_t i = 0; i < count; i++)
            items[i] = (struct item){.span = spans[i], .number = i};
        find_parents(items, sorted, count);
        find_depths(items, count);
        qsort(items, count, sizeof *items, by_start);
        fill_places(items, position, spans, places, count);
    }
    free(items);
    free(sorted);
    free(position);
    return has_memory;
}
