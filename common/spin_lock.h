/* SPDX-License-Identifier: Apache-2.0 */
/* common/spin_lock.h - a lock of one word, 0 when free, that is held for the few instructions
 * of one call. Who does not get it soon lets others run. Any thread. */
#ifndef OTELI_SPIN_LOCK_H
#define OTELI_SPIN_LOCK_H

#include "common/atomic.h"
#include <sched.h>

enum { OTELI_SPIN_TRIES = 100 };

static inline void oteli_spin_lock(uint32_t *lock)
{
    for (unsigned tries = 0;; tries++) {
        if (oteli_load_relaxed_32(lock) == 0 && oteli_exchange_full_32(lock, 1) == 0)
            return;
        oteli_stall();
        if (tries >= OTELI_SPIN_TRIES)
            sched_yield();
    }
}

static inline void oteli_spin_unlock(uint32_t *lock)
{
    oteli_store_release_32(lock, 0);
}

#endif
