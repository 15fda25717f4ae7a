/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/frame_walk.h - the chain of frame pointers of the thread that a signal has interrupted.
 *
 * Threads:  any, in a signal handler; takes no lock, allocates nothing, changes errno. */
#ifndef OTELI_FRAME_WALK_H
#define OTELI_FRAME_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where it was interrupted. */
struct oteli_registers {
    uint64_t pc;
    uint64_t sp;
    uint64_t fp;
};

/* Of the handler's third argument. False: not on this machine. */
bool oteli_registers_of(const void *context, struct oteli_registers *registers);

typedef void oteli_take_frame(void *state, size_t index, uint64_t frame);

/* Return addresses, innermost first, the leaf not among them: at most `most`. Reads nothing below
 * `sp` or from `high` on, and no page that the kernel cannot read. Gives how many there are. */
size_t oteli_frame_walk(const struct oteli_registers *registers, uint64_t high, size_t most,
                        oteli_take_frame *take, void *state);

/* The word at an address, if it can be read. */
bool oteli_word_at(uint64_t address, uint64_t *word);

#endif
