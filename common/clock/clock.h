/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock.h - ticks on the hot path, Unix nanoseconds off it.
 *
 * A tick is one step of the fastest trustworthy counter: the TSC where the processor says
 * that it is invariant and the kernel itself keeps time with it, CNTVCT_EL0 on AArch64,
 * and otherwise a nanosecond of CLOCK_MONOTONIC. Spans store ticks. They become wall time
 * in two steps:
 *
 *     ticks ──curve──▶ nanoseconds since boot ──+ offset of the epoch──▶ Unix nanoseconds
 *
 * The curve (common/clock/clock_curve.h) follows the kernel's clock as NTP slews it; it never
 * goes down, and what has been converted once stays. Steps of the wall clock are not in
 * it: they make a new epoch, which is a number and the difference of the two clocks from
 * then on. A local root takes the epoch that is current when it starts and its children
 * inherit it. So one trace within a process is converted by one function that never goes
 * down: no duration is negative and no child leaves its parent, whatever the wall clock
 * does meanwhile.
 *
 * Suspend: the curve follows CLOCK_BOOTTIME, which goes on, so a trace that is open then
 * lasts as long as it did on the wall. A counter that went on needs nothing; one that stood
 * still makes the curve leap; of one that began anew at 0, the ticks are moved behind the old ones,
 * and those above the newest reading are of before. Spans that wait for conversion at that moment
 * may be placed on the wrong side of it.
 *
 * A counter that the kernel no longer keeps time with is left when its rate changes as well: ticks
 * go on as nanoseconds of CLOCK_MONOTONIC from where they are, on a line of their own.
 *
 * Threads:  oteli_ticks, oteli_clock_epoch, conversions, oteli_clock_ticks_of_ns any thread,
 *           none of which waits for another; oteli_clock_start one thread at a time;
 *           oteli_clock_renew and _rest the exporter thread, or one at a time;
 *           oteli_clock_measure_offsets the exporter thread.
 * Memory:   the last 4096 epochs and bends; what is older is converted like the oldest.
 * Source:   TiKV, "How we trace a KV database with less than 5% performance impact";
 *           Intel SDM 17.17 (invariant TSC); Arm ARM D13 (generic timer). */
#ifndef OTELI_CLOCK_H
#define OTELI_CLOCK_H

#include "common/base/atomic.h"
#include "common/base/internal_api.h"
#include "common/clock/counter.h"
#include "common/clock/time_units.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum oteli_clock_source {
    OTELI_CLOCK_MONOTONIC = 0, /* before any start, and wherever a counter is not trusted */
    OTELI_CLOCK_COUNTER = 1,   /* TSC or CNTVCT_EL0 */
    OTELI_CLOCK_COARSE = 2,
    OTELI_CLOCK_FAKE = 3,           /* tests: oteli_fake_clock */
    OTELI_CLOCK_COUNTER_BY_CORE = 4 /* TSC, less what this core's is ahead */
};

struct oteli_clock {
    uint32_t source; /* enum oteli_clock_source; written by start, renew and measure_offsets only */
    uint32_t epoch;  /* number of the newest epoch; release by the thread that renews */
};
OTELI_NOT_LENT extern struct oteli_clock oteli_clock;

/* A stored time with this bit is ticks; without it, Unix nanoseconds given by the user. */
#define OTELI_TICKS_BIT (UINT64_C(1) << 63)

/* The tests' clock: what oteli_ticks and the clocks of the kernel answer. */
struct oteli_fake_clock {
    uint64_t ticks;
    uint64_t monotonic_ns;
    uint64_t wall_ns;
    uint64_t suspended_ns;   /* CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC by it */
    bool counts;             /* ticks are a counter's, at a rate that must be measured */
    void (*meanwhile)(void); /* happens once, after a reading and before it is used */
};
extern struct oteli_fake_clock oteli_fake_clock;

static inline enum oteli_clock_source oteli_clock_source(void)
{
    return (enum oteli_clock_source)oteli_load_relaxed_32(&oteli_clock.source);
}

uint64_t oteli_ticks_slow(void);

static inline uint64_t oteli_ticks(void)
{
    if (OTELI_LIKELY(oteli_clock_source() == OTELI_CLOCK_COUNTER))
        return oteli_counter();
    return oteli_ticks_slow();
}

static inline uint32_t oteli_clock_epoch(void)
{
    return oteli_load_relaxed_32(&oteli_clock.epoch);
}

/* Choose the source by the word of OTEL_C_CLOCK ("auto", "tsc", "monotonic", "coarse",
 * and "fake" for tests) and begin an epoch. Takes some 50 us with a counter, to know its
 * rate at all. Returns why a wish was not granted, as a static text, or NULL. */
OTELI_INTERNAL_API const char *oteli_clock_start(const char *wish);

/* The same, without those 50 us where the counter was read as long ago, on this core. */
struct oteli_counter_reading {
    uint64_t ticks;
    uint64_t boot_ns;
    uint32_t core;
};
OTELI_INTERNAL_API struct oteli_counter_reading oteli_clock_mark(void);
OTELI_INTERNAL_API const char *oteli_clock_start_after(const struct oteli_counter_reading *mark,
                                                       const char *wish);

/* Read all clocks and follow them. Cheap; once a batch. True: the kernel has given up the counter,
 * ticks are those of CLOCK_MONOTONIC from now on, and threads that remember that the source is the
 * plain counter must look again. */
OTELI_INTERNAL_API bool oteli_clock_renew(void);

/* No thread will renew the clock for an unknown time. From here on there is an epoch in which
 * nothing has been converted, so that the first renewal afterwards can still correct it, whatever
 * happened to the wall clock meanwhile. */
OTELI_INTERNAL_API void oteli_clock_rest(void);

/* Convert a stored time of a span with this epoch to Unix nanoseconds. Equal times of one epoch
 * give equal answers, on every thread and at any time. A time that no renewal has covered yet makes
 * one. */
uint64_t oteli_clock_to_ns(uint64_t stored, uint32_t epoch);

/* What ticks of now become with this epoch; 0: with the newest. Follows the clocks first where no
 * renewal has covered now, or nothing has been converted in the epoch. In a signal handler, too. */
uint64_t oteli_clock_now_ns(uint32_t epoch);

/* CLOCK_REALTIME in nanoseconds. */
uint64_t oteli_wall_ns(void);

/* The times of a span, as exporters, views and processors get them. What the program gave stays as
 * it is, also an end before the start. Of two measured times the end is not before the start: the
 * counter of another core may be behind, within the error of measuring. */
struct oteli_span_times {
    uint64_t start_ns;
    uint64_t end_ns;
};

struct oteli_span_times oteli_clock_span_times(uint64_t start, uint64_t end, uint32_t epoch);

/* How many ticks a duration is, at the best rate known: for thresholds. */
OTELI_INTERNAL_API uint64_t oteli_clock_ticks_of_ns(uint64_t ns);

/* Compare the counters of the cores that the calling thread may run on, by pinning it to
 * each; its affinity is restored, but if other code has changed it meanwhile the comparison ends
 * and the new affinity stays. Takes up to 5 ms and one more visit of a core, or until `*stop` is
 * not 0, once for each start of the clock; a forked child inherits what its parent has found. True:
 * one is ahead of another by more than the error of measuring, and the source is from now on
 * OTELI_CLOCK_COUNTER_BY_CORE: threads that remember that the source is the plain counter
 * must look again. The reference is the core on which oteli_clock_start ran, so what was
 * read there before stays exact; what was read elsewhere is off by that core's offset. */
OTELI_INTERNAL_API bool oteli_clock_measure_offsets(const uint64_t *stop);

/* In a forked child: a thread that had the lock of the clock does not exist here. Stores only. */
void oteli_clock_forget(void);

/* CLOCK_MONOTONIC in nanoseconds: deadlines and schedules. */
OTELI_INTERNAL_API uint64_t oteli_monotonic_ns(void);

/* Why the counter is not trusted on this machine, as a static text; NULL when it is. */
const char *oteli_clock_counter_distrust(void);

/* Milliseconds from now until `then_ns`, on the monotonic clock, rounded up: for poll and the
 * like. */
static inline int oteli_ms_until(uint64_t then_ns)
{
    const uint64_t ms = oteli_ms_between(oteli_monotonic_ns(), then_ns);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* When a call that may take this long is over, on the monotonic clock; below 0 is 0, UINT64_MAX
 * never. */
static inline uint64_t oteli_deadline_ns(int64_t timeout_ms)
{
    return oteli_ns_after(oteli_monotonic_ns(), timeout_ms > 0 ? (uint64_t)timeout_ms : 0);
}

#endif
