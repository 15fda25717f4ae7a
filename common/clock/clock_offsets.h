/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock_offsets.h - by how much the counter of each processor core is ahead.
 *
 * A thread visits the cores that it may run on, one by one, and comes back to a reference
 * each time: a, b, c are readings there, on the other core, and there again.
 *
 *      reference  a ──┐        ┌── c         b was between a and c. By the reference's
 *      core           └── b ───┘             counter b - ahead is, so b - c <= ahead <= b - a
 *
 * Each visit gives such bounds, and the narrowest of all visits remain. They hold whatever
 * the scheduler does: a visit that was interrupted gives wide ones. If 0 is not between
 * them, the core is certainly off, and their middle is wrong by at most half their
 * distance, less than no correction is. If 0 is between them, the difference is less than
 * the error of measuring and is left alone. That is the threshold, and there is no other.
 *
 * TiKV measured by readings of (time, ticks) on each core and a line of a common rate. Where
 * the kernel keeps time with the counter, as it must before we use the counter at all, the
 * time that a core tells is made from its own counter: it is ahead by the same, all lines
 * are one, and the method cannot see a difference. So the only clock here is the order of
 * events. The bounds are tens of microseconds on a virtual machine, a few elsewhere; the
 * kernel has already seen to it that sound machines are within one.
 *
 * Threads:  measuring one thread at a time; the table any thread.
 * Source:   TiKV, minstant's tsc_now; Cristian, "Probabilistic clock synchronization". */
#ifndef OTELI_CLOCK_OFFSETS_H
#define OTELI_CLOCK_OFFSETS_H

#include "common/base/atomic.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum { OTELI_CORES = 4096 }; /* the low 12 bits of TSC_AUX, in which Linux keeps the core */

/* How a core is gone to and its counter read. Tests have their own. */
struct oteli_core_probe {
    bool (*go_to)(uint32_t core);
    uint64_t (*read)(uint32_t *core);
};

extern uint64_t oteli_core_offsets[OTELI_CORES]; /* ticks ahead of the reference; relaxed */

#if defined(__x86_64__)
/* The reference's ticks: core and ticks come from one instruction. */
static inline uint64_t oteli_ticks_of_reference(void)
{
    uint32_t aux;
    const uint64_t ticks = __rdtscp(&aux);
    return ticks - oteli_load_relaxed_64(&oteli_core_offsets[aux % OTELI_CORES]);
}
#endif

/* Visit `cores`, of which the first is the reference, for `budget` ticks and a visit, or until
 * `*stop` (atomic) is not 0, and
 * fill `ahead` with their offsets, which are 0 where nothing was found or measured. True:
 * one is not. */
bool oteli_cores_compare(const struct oteli_core_probe *probe, const uint32_t *cores, size_t count,
                         uint64_t budget, const uint64_t *stop, int64_t *ahead);

/* The same for the cores that this thread may run on, into oteli_core_offsets, with
 * `reference` as the reference if it is one of them. Afterwards the thread's affinity is what it
 * was; if other code changes it meanwhile, the visits end and the new affinity stays. True: one of
 * the cores is off. */
bool oteli_cores_measure(uint32_t reference, uint64_t budget, const uint64_t *stop);

/* The core that this thread runs on. */
uint32_t oteli_core_now(void);

/* For oteli_cores_measure; tests replace it. */
extern struct oteli_core_probe oteli_core_probe;

#endif
