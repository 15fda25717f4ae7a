/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/unwind/leaf_return_address.h - the caller that a chain of frame pointers skips.
 *
 * A function that has made no frame (a leaf that compilers give none, or the first instructions of
 * any) has its return address right at the stack pointer, and the chain goes on with its caller's
 * caller. What is at the stack pointer may be anything, so it counts only when it follows a direct
 * call whose target is a little below the leaf's address: that is the function which the leaf is
 * in.
 *
 * Code is read by a system call, because it may have been unmapped since; so what has been read is
 * remembered for a while.
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_LEAF_RETURN_ADDRESS_H
#define OTELI_LEAF_RETURN_ADDRESS_H

#include "profiling/sample.h"

enum { OTELI_CALLS = 256 };

/* Where the direct calls lead to that return to an address; each has one place. Zero: nothing is
 * known yet. */
struct oteli_calls {
    uint64_t since_ns; /* of samples */
    struct oteli_call {
        uint64_t returns_to;
        uint64_t target; /* 0: it is no such address */
    } known[OTELI_CALLS];
};

/* The return address that is missing between the leaf and the next frame; false: none is. Needs
 * bytes of the stack. Only on x86-64. */
bool oteli_missing_caller(struct oteli_calls *calls, const struct oteli_sample *sample,
                          uint64_t *caller);

#endif
