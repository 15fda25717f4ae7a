/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/lanes.c - the contracts are in lanes.h. One thread at a time; owns the lanes. */
#include "exporters/file/lanes.h"

#include <stdlib.h>

void oteli_lanes_fini(struct oteli_lanes *lanes)
{
    free(lanes->lanes);
    *lanes = (struct oteli_lanes){0};
}

static uint32_t new_lane(struct oteli_lanes *lanes)
{
    if (lanes->count == lanes->room) {
        const uint32_t room = lanes->room == 0 ? 16 : lanes->room * 2;
        struct oteli_lane *more = realloc(lanes->lanes, room * sizeof *more);
        if (more == NULL)
            return OTELI_LANE_NONE;
        lanes->lanes = more;
        lanes->room = room;
    }
    lanes->lanes[lanes->count] = (struct oteli_lane){.top = OTELI_LANE_NONE};
    return lanes->count++;
}

/* The innermost span of this tree that is still open on the lane when `start_ns` comes. */
static uint32_t open_at(const struct oteli_lanes *lanes, struct oteli_lane *lane,
                        const struct oteli_lane_span *spans, uint64_t start_ns)
{
    if (lane->tree != lanes->tree) {
        lane->tree = lanes->tree;
        lane->top = OTELI_LANE_NONE;
    }
    while (lane->top != OTELI_LANE_NONE && spans[lane->top].end_ns <= start_ns)
        lane->top = spans[lane->top].below;
    return lane->top;
}

/* Of the lanes that are free, the one that has been for the shortest time: the others are
 * left for what began earlier and has not been seen yet. */
static uint32_t free_lane(struct oteli_lanes *lanes, uint64_t start_ns)
{
    uint32_t best = OTELI_LANE_NONE;
    for (uint32_t i = 0; i < lanes->count; i++) {
        const uint64_t busy_until = lanes->lanes[i].busy_until;
        if (busy_until <= start_ns &&
            (best == OTELI_LANE_NONE || busy_until > lanes->lanes[best].busy_until))
            best = i;
    }
    return best != OTELI_LANE_NONE ? best : new_lane(lanes);
}

static uint32_t choose(struct oteli_lanes *lanes, const struct oteli_lane_span *spans,
                       uint32_t index)
{
    const struct oteli_lane_span *span = &spans[index];
    if (span->parent < index) { /* it has a lane already */
        const struct oteli_lane_span *parent = &spans[span->parent];
        struct oteli_lane *lane = &lanes->lanes[parent->lane];
        const bool is_free = open_at(lanes, lane, spans, span->start_ns) == span->parent;
        if ((is_free && span->end_ns <= parent->end_ns) || lane->busy_until <= span->start_ns)
            return parent->lane;
    }
    return free_lane(lanes, span->start_ns);
}

bool oteli_lanes_assign(struct oteli_lanes *lanes, struct oteli_lane_span *spans, uint32_t count)
{
    lanes->tree++;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t chosen = choose(lanes, spans, i);
        if (chosen == OTELI_LANE_NONE)
            return false;
        struct oteli_lane *lane = &lanes->lanes[chosen];
        spans[i].lane = chosen;
        spans[i].below = open_at(lanes, lane, spans, spans[i].start_ns);
        lane->top = i;
        if (spans[i].end_ns > lane->busy_until)
            lane->busy_until = spans[i].end_ns;
    }
    return true;
}
