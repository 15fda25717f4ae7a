/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/leaf_return_address.h - the caller that a chain of frame pointers skips.
 *
 * A function that has made no frame (a leaf that compilers give none, or the first instructions of
 * any) has its return address right at the stack pointer, and the chain goes on with its caller's
 * caller. What is at the stack pointer may be anything, so it counts only when it follows a direct
 * call whose target is a little below the leaf's address: that is the function which the leaf is
 * in.
 *
 * Code is read by a system call, because it may have been unmapped since.
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_LEAF_RETURN_ADDRESS_H
#define OTELI_LEAF_RETURN_ADDRESS_H

#include "profiling/base/sample.h"

/* The return address that is missing between the leaf and the next frame; false: none is. Needs
 * bytes of the stack. Only on x86-64. */
bool oteli_leaf_return_address(const struct oteli_sample *sample, uint64_t *caller);

#endif
