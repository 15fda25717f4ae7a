/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/frame_walk.h - the chain of frame pointers of the thread that a signal has
 * interrupted.
 *
 *     sp ──────────── end of its page ────────────────────────── high
 *      read as it is │ copied by the kernel, which reads nothing
 *                    │ that is not there, or not any more
 *
 * What a pointer points at may be of another thread, which unmaps it at that moment.
 *
 * Threads:  any, in a signal handler; takes no lock, allocates nothing, changes errno. */
#ifndef OTELI_FRAME_WALK_H
#define OTELI_FRAME_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { OTELI_STACK_COPY_BYTES = 1024 };

/* Where it was interrupted. */
struct oteli_registers {
    uint64_t pc;
    uint64_t sp;
    uint64_t fp;
};

/* A stack that is being read. It is too large for the stack of a signal handler. */
struct oteli_stack_view {
    pid_t process; /* this one: constant, the caller's */
    uint64_t own_low;
    uint64_t own_size;
    uint64_t high;
    uint64_t copied_low;
    uint64_t copied_size;
    uint64_t copy[OTELI_STACK_COPY_BYTES / sizeof(uint64_t)];
};

/* Of the handler's third argument. False: not on this machine. */
bool oteli_registers_of(const void *context, struct oteli_registers *registers);

/* Begin to read the stack of the thread that calls, from `sp` up to `high`. */
void oteli_stack_view_begin(struct oteli_stack_view *view, uint64_t sp, uint64_t high);

/* The word at an address; false: it cannot be read. */
bool oteli_stack_view_word(struct oteli_stack_view *view, uint64_t address, uint64_t *word);

/* Return addresses, innermost first, the leaf not among them: at most `most`. Gives how many there
 * are. */
size_t oteli_frame_walk(const struct oteli_registers *registers, struct oteli_stack_view *view,
                        size_t most, uint64_t *frames);

/* Whether the kernel copies; 0, or an errno. Without, stacks are known to the end of a page. */
int oteli_stack_view_refused(void);

#endif
