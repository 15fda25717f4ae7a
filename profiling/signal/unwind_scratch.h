/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/unwind_scratch.h - where signal handlers put a stack that they walk: a handler's
 * own may be small. There are more than handlers run at a time; if none is free, the sample is
 * lost.
 *
 * Threads:  take and give any thread, also in a signal handler; init and fini one at a time. */
#ifndef OTELI_UNWIND_SCRATCH_H
#define OTELI_UNWIND_SCRATCH_H

#include "profiling/base/sample.h"
#include "profiling/signal/frame_walk.h"

struct oteli_unwind_slot {
    struct oteli_stack_view view;
    uint64_t frames[OTELI_FRAMES_MAX];
};

struct oteli_unwind_scratch {
    struct oteli_unwind_slot *all;
    unsigned count;
    uint64_t taken; /* a bit each; full */
};

enum { OTELI_UNWIND_SLOTS_MOST = 64 };

/* In memory that is written here for the first time. False: no memory. */
bool oteli_unwind_scratch_init(struct oteli_unwind_scratch *scratch, unsigned count);
void oteli_unwind_scratch_fini(struct oteli_unwind_scratch *scratch);

/* NULL: all are taken. */
struct oteli_unwind_slot *oteli_unwind_scratch_take(struct oteli_unwind_scratch *scratch);
void oteli_unwind_scratch_give(struct oteli_unwind_scratch *scratch,
                               const struct oteli_unwind_slot *slot);

#endif
