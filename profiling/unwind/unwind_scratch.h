/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/unwind/unwind_scratch.h - where signal handlers put a stack that they walk: a handler's
 * own may be small. There are more than handlers run at a time; who finds all of them taken does
 * without.
 *
 * Threads:  take and give any thread, also in a signal handler; init and fini one at a time. */
#ifndef OTELI_UNWIND_SCRATCH_H
#define OTELI_UNWIND_SCRATCH_H

#include "profiling/sample.h"
#include "profiling/unwind/frame_walk.h"

struct oteli_walk_room {
    struct oteli_stack_view view;
    uint64_t frames[OTELI_FRAMES_MAX];
};

struct oteli_walk_rooms {
    struct oteli_walk_room *all;
    unsigned count;
    uint64_t taken; /* a bit each; full */
};

enum { OTELI_WALK_ROOMS_MOST = 64 };

/* In memory that is written here for the first time. False: no memory. */
bool oteli_walk_rooms_init(struct oteli_walk_rooms *rooms, unsigned count);
void oteli_walk_rooms_fini(struct oteli_walk_rooms *rooms);

/* NULL: all are taken. */
struct oteli_walk_room *oteli_walk_rooms_take(struct oteli_walk_rooms *rooms);
void oteli_walk_rooms_give(struct oteli_walk_rooms *rooms, const struct oteli_walk_room *room);

#endif
