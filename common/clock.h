/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock.h - ticks on the hot path, Unix nanoseconds off it.
 *
 * A tick is one step of the fastest trustworthy counter: the TSC where the processor says
 * that it is invariant and the kernel itself keeps time with it, CNTVCT_EL0 on AArch64,
 * and otherwise a nanosecond of CLOCK_MONOTONIC. Spans store ticks; the exporter thread
 * turns them into wall time through anchors.
 *
 *     anchor:  (ticks, wall_ns, ns per tick)     wall = wall_ns + (t - ticks) * rate
 *
 * Anchors are numbered by an epoch. A local root takes the epoch that is current when it
 * starts and its children inherit it, so that one trace is converted by one straight
 * line: a duration is never negative and a child never leaves its parent, whatever the
 * wall clock does meanwhile.
 *
 * Threads:  oteli_ticks and oteli_clock_epoch any thread; oteli_clock_start and _renew
 *           one thread at a time (start, then the exporter thread); conversion on the
 *           thread that renews.
 * Source:   TiKV, "How we trace a KV database with less than 5% performance impact";
 *           Intel SDM 17.17 (invariant TSC); Arm ARM D13 (generic timer). */
#ifndef OTELI_CLOCK_H
#define OTELI_CLOCK_H

#include "common/lent.h"
#include "common/atomic.h"
#include <stdbool.h>
#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum oteli_clock_source {
    OTELI_CLOCK_MONOTONIC = 0, /* before any start, and wherever a counter is not trusted */
    OTELI_CLOCK_COUNTER = 1,   /* TSC or CNTVCT_EL0 */
    OTELI_CLOCK_COARSE = 2,
    OTELI_CLOCK_FAKE = 3 /* tests: oteli_fake_clock */
};

struct oteli_clock {
    uint32_t source; /* enum oteli_clock_source; written by start only */
    uint32_t epoch;  /* number of the newest anchor; release by renew */
};
extern struct oteli_clock oteli_clock;

/* A stored time with this bit is ticks; without it, Unix nanoseconds given by the user. */
#define OTELI_TICKS_BIT (UINT64_C(1) << 63)

/* The tests' clock: what oteli_ticks, the monotonic and the wall clock answer. */
struct oteli_fake_clock {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t wall_ns;
};
extern struct oteli_fake_clock oteli_fake_clock;

static inline enum oteli_clock_source oteli_clock_source(void)
{
    return (enum oteli_clock_source)oteli_load_relaxed_32(&oteli_clock.source);
}

uint64_t oteli_ticks_slow(void);

static inline uint64_t oteli_ticks(void)
{
#if defined(__x86_64__)
    if (OTELI_LIKELY(oteli_clock_source() == OTELI_CLOCK_COUNTER))
        return __rdtsc();
#elif defined(__aarch64__)
    if (OTELI_LIKELY(oteli_clock_source() == OTELI_CLOCK_COUNTER)) {
        uint64_t ticks;
        __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks));
        return ticks;
    }
#endif
    return oteli_ticks_slow();
}

static inline uint32_t oteli_clock_epoch(void)
{
    return oteli_load_relaxed_32(&oteli_clock.epoch);
}

/* Choose the source by the word of OTEL_C_CLOCK ("auto", "tsc", "monotonic", "coarse",
 * and "fake" for tests) and set the first anchor. Returns why a wish was not granted, as a
 * static text, or NULL. */
OTELI_LENT const char *oteli_clock_start(const char *wish);

/* Compare the anchor with the wall clock, and set another when it is off by more than the
 * error of measuring, or the rate is known better. Cheap; once a batch. */
OTELI_LENT void oteli_clock_renew(void);

/* Convert a stored time of a span with this epoch to Unix nanoseconds. */
OTELI_LENT uint64_t oteli_clock_to_ns(uint64_t stored, uint32_t epoch);

/* CLOCK_MONOTONIC in nanoseconds: deadlines and schedules. */
OTELI_LENT uint64_t oteli_monotonic_ns(void);

/* Why the counter is not trusted on this machine, as a static text; NULL when it is. */
const char *oteli_clock_counter_distrust(void);

#endif
