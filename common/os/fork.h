/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/fork.h - what a child process does about the threads that it does not have.
 *
 * A child gets a copy of the memory and one thread. What the parent's other threads had
 * locked, or had half done, stays so in the copy for ever. A part that keeps such things registers
 * a function that resets them. It runs in the child before fork() returns, and because it may run
 * at any point of any thread it calls nothing that allocates, locks or waits.
 *
 * Orphans. A child that is made without the C library (the system calls clone and fork) or
 * with _Fork() runs no such function. It finds a word of memory empty that the kernel wipes in
 * every child (oteli_fork_wipe). The calls that start, flush and stop, and ends of spans, look at
 * that word first: then the same functions run there. The C library's own locks are as the
 * parent's threads left them, so nothing is started in an orphan that the program does not start.
 *
 * Threads:  any; oteli_fork_watch start/stop only. */
#ifndef OTELI_FORK_H
#define OTELI_FORK_H

#include "common/base/internal_api.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTELI_FORK_PAGE = 4096 };

/* Run `forget` in children from now on, after those that were added before it. The library that
 * contains it stays loaded (library.h). A second registration of it has no effect. */
OTELI_INTERNAL_API void oteli_fork_add(void (*forget)(void));

/* Whether more functions were registered than there is room for: a fault of otel-c's. */
OTELI_INTERNAL_API bool oteli_fork_lacks_slot(void);

/* Whole pages of OTELI_FORK_PAGE bytes in static memory without a value: zero in each child
 * from now on. False: the kernel, or its page size, does not do that. */
bool oteli_fork_wipe(void *at, size_t bytes);

/* A word of wiped memory, by which children are known. oteli_fork_notice sets it to 1. */
void oteli_fork_watch(uint64_t *mark);

/* If this is an orphan that does not know it yet, run the functions that were given to
 * oteli_fork_add. */
OTELI_INTERNAL_API void oteli_fork_notice(void);

/* Whether this is an orphan that has not been given a life of its own yet. */
bool oteli_fork_is_orphan(void);

/* The program starts an SDK in it, so it trusts its C library. */
void oteli_fork_adopt(void);

#endif
