/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/lanes.h - which spans share a track, such that what a track shows is true.
 *
 * On one track a viewer shows what lies within something else as its child. So a span is put
 * on the lane of its parent if it lies within it and none of its brothers is in the way, and
 * otherwise on a lane that is free; there it looks like a root, and an arrow from its parent
 * says whose it is:
 *
 *     lane 1  [ request                                  ]  [ request      ]
 *                [ query ][ render       ]
 *     lane 2               [ fetch (beside render) ]
 *
 * Lanes are used again when they are free, as threads are in a pool: there are about as many
 * as there was going on at a time. Asynchronous tracks would need no such choice, but a viewer
 * gives each span one of its own, and shows no nesting.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_FILE_LANES_H
#define OTELI_FILE_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OTELI_LANE_NONE UINT32_MAX

struct oteli_lane_span {
    uint64_t start_ns;
    uint64_t end_ns; /* not before the start */
    uint32_t parent; /* its number; OTELI_LANE_NONE: it is not among them */
    uint32_t lane;   /* the answer */
    uint32_t below;  /* used by oteli_lanes_assign: what it lies on */
};

struct oteli_lanes {
    struct oteli_lane {
        uint64_t busy_until;
        uint32_t top;  /* the innermost span that is open on it */
        uint32_t tree; /* to which `top` belongs */
    } * lanes;
    uint32_t count, room;
    uint32_t tree;
};

void oteli_lanes_fini(struct oteli_lanes *lanes);

/* Give each span of a tree its lane. They are sorted by their start, of those that start
 * together the longest first, and parents before children. Trees come in the order of their
 * ends, or about. False: no memory. */
bool oteli_lanes_assign(struct oteli_lanes *lanes, struct oteli_lane_span *spans, uint32_t count);

#endif
