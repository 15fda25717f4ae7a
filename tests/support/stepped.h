/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/stepped.h - between any two atomic operations of a source file the test has its
 * turn.
 *
 * What other threads, or a signal handler, could do there happens there in every run. Sources get
 * it by -include; the test says what happens.
 *
 * Threads:  those that run the sources. */
#ifndef TESTS_STEPPED_H
#define TESTS_STEPPED_H

#include "common/base/atomic.h"

/* After each operation, and before its result is looked at. The test's. */
void stepped(void);

#define STEPPED_LOAD(order, kind, type)                              \
    static inline type stepped_load_##order##_##kind(const type *at) \
    {                                                                \
        const type value = oteli_load_##order##_##kind(at);          \
        stepped();                                                   \
        return value;                                                \
    }
#define STEPPED_STORE(order, kind, type)                                    \
    static inline void stepped_store_##order##_##kind(type *at, type value) \
    {                                                                       \
        oteli_store_##order##_##kind(at, value);                            \
        stepped();                                                          \
    }
STEPPED_LOAD(relaxed, 32, uint32_t)
STEPPED_LOAD(relaxed, 64, uint64_t)
STEPPED_LOAD(acquire, 64, uint64_t)
STEPPED_STORE(relaxed, 32, uint32_t)
STEPPED_STORE(relaxed, 64, uint64_t)
STEPPED_STORE(release, 64, uint64_t)

static inline bool stepped_cas_full_64(uint64_t *at, uint64_t expected, uint64_t desired)
{
    const bool done = oteli_cas_full_64(at, expected, desired);
    stepped();
    return done;
}

static inline uint64_t stepped_add_full_64(uint64_t *at, uint64_t more)
{
    const uint64_t before = oteli_add_full_64(at, more);
    stepped();
    return before;
}

#define oteli_load_relaxed_32 stepped_load_relaxed_32
#define oteli_load_relaxed_64 stepped_load_relaxed_64
#define oteli_load_acquire_64 stepped_load_acquire_64
#define oteli_store_relaxed_32 stepped_store_relaxed_32
#define oteli_store_relaxed_64 stepped_store_relaxed_64
#define oteli_store_release_64 stepped_store_release_64
#define oteli_cas_full_64 stepped_cas_full_64
#define oteli_add_full_64 stepped_add_full_64

#endif
