/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/spin_lock.h - a lock of one word, 0 when free, that is held for the few instructions
 * of one call. Any thread.
 *
 * A thread that does not get it soon sleeps for 16 us, then for longer, up to 1 ms. It does not
 * call sched_yield: that lets no thread of a lower priority run, so a real-time thread would wait
 * for ever for a holder of a lower priority on its own core. A wait lasts until the holder has run
 * those instructions, whatever the priorities of the threads that wait. */
#ifndef OTELI_SPIN_LOCK_H
#define OTELI_SPIN_LOCK_H

#include "common/base/atomic.h"
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { OTELI_SPIN_TURNS = 100, OTELI_SPIN_SLEEP_NS = 1 << 14, OTELI_SPIN_DOUBLINGS = 6 };

static OTELI_COLD void oteli_spin_sleep(unsigned before)
{
    const int saved_errno = errno;
    const unsigned doublings = before < OTELI_SPIN_DOUBLINGS ? before : OTELI_SPIN_DOUBLINGS;
    const struct timespec pause = {0, (long)OTELI_SPIN_SLEEP_NS << doublings};
    syscall(SYS_nanosleep, &pause, NULL); /* no point at which a thread is cancelled */
    errno = saved_errno;
}

/* Wait between one look at a word of another thread and the next; `turn` counts from 0. */
static inline void oteli_spin_wait(unsigned turn)
{
    if (turn % OTELI_SPIN_TURNS != OTELI_SPIN_TURNS - 1)
        oteli_stall();
    else
        oteli_spin_sleep(turn / OTELI_SPIN_TURNS);
}

static inline bool oteli_spin_try_lock(uint32_t *lock)
{
    return oteli_load_relaxed_32(lock) == 0 && oteli_exchange_full_32(lock, 1) == 0;
}

static inline void oteli_spin_lock(uint32_t *lock)
{
    for (unsigned turn = 0; !oteli_spin_try_lock(lock); turn++)
        oteli_spin_wait(turn);
}

static inline void oteli_spin_unlock(uint32_t *lock)
{
    oteli_store_release_32(lock, 0);
}

#endif
