/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/trampolines.h - the block of trampolines: which label an address on a stack
 * stands for.
 *
 * The block is code (trampolines-x86_64.S, trampolines-aarch64.S): OTELI_TRAMPOLINES pieces of the
 * same size behind one symbol, otel_profile_trampoline. Each pushes, between its caller's frame and
 * the function's, a frame record that proves itself: {address of the frame above, address of the
 * marker inside this trampoline}, at a distance from it that nothing else has; and wipes it before
 * it returns.
 *
 * Threads:  any; constant. */
#ifndef OTELI_TRAMPOLINES_H
#define OTELI_TRAMPOLINES_H

#include "profiling/labels/trampolines_shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTELI_TRAMPOLINES = OTELI_TRAMPOLINE_COUNT, OTELI_NO_TRAMPOLINE = -1 };

/* The trampoline that an address of code lies in, from 0; OTELI_NO_TRAMPOLINE: none. */
int oteli_trampoline_of(uint64_t address);

/* The same only for exact markers. */
int oteli_trampoline_of_marker(uint64_t address);

/* The same place in the first trampoline: so that stacks are equal that differ in labels only. */
uint64_t oteli_trampoline_unify(uint64_t address);

/* Look through `size` bytes of a stack that lie at `address` upward for records of trampolines that
 * are still in use; innermost first. Gives how many were found, of which `most` are in `found`. */
size_t oteli_trampolines_scan(const void *bytes, size_t size, uint64_t address, int *found,
                              size_t most);

/* For labels.c: the function that is trampoline number `index`. */
typedef void *oteli_trampoline(void *argument, void *(*function)(void *));
oteli_trampoline *oteli_trampoline_at(unsigned index);

#endif
