/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/unwind/stack_bounds.h - how far the stack reaches that an address lies on, for signal
 * handlers.
 *
 * Threads are not asked where their stacks are: each region of memory that is private and can be
 * written may be one. The profiler's thread reads them from /proc/self/maps, when a handler has met
 * an address in none of them. What handlers find may be old by then, so they ask the kernel for
 * each page before they read it (frame_walk.c).
 *
 * Threads:  find: any, also in a signal handler, between enter and leave of the caller's count of
 *           those inside; all others: the profiler's thread. */
#ifndef OTELI_STACK_BOUNDS_H
#define OTELI_STACK_BOUNDS_H

#include "common/base/atomic.h"
#include <stddef.h>

struct oteli_stack_region {
    uint64_t low;
    uint64_t high;
};

struct oteli_stack_table {
    size_t count;
    struct oteli_stack_region regions[]; /* upward, without a common address */
};

struct oteli_stack_bounds {
    struct oteli_stack_table *table;   /* what handlers look at */
    struct oteli_stack_table *retired; /* the one before; a handler may still be looking at it */
    uint32_t unknown;                  /* addresses that were in no region: grows */
    uint32_t unknown_seen;
};

/* The address behind the last one of the region that `address` is in; 0: in none. */
uint64_t oteli_stack_bounds_find(struct oteli_stack_bounds *bounds, uint64_t address);

/* Whether handlers have met something unknown since the last reading. */
bool oteli_stack_bounds_is_stale(const struct oteli_stack_bounds *bounds);

/* Read them anew. Not while there is a retired table. False: that cannot be done. */
bool oteli_stack_bounds_read(struct oteli_stack_bounds *bounds);

/* No handler is inside now: free the retired one. */
void oteli_stack_bounds_settle(struct oteli_stack_bounds *bounds);

void oteli_stack_bounds_fini(struct oteli_stack_bounds *bounds);

#endif
