/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock_reading.h - ticks and the clocks of the kernel, read at one moment.
 *
 * Threads:  any thread. */
#ifndef OTELI_CLOCK_READING_H
#define OTELI_CLOCK_READING_H

#include <stdbool.h>
#include <stdint.h>

struct oteli_reading {
    uint64_t ticks;
    uint64_t boot_ns; /* CLOCK_BOOTTIME: slewed like the wall clock, never stepped */
    uint64_t wall_ns; /* CLOCK_REALTIME */
    uint64_t width;   /* ticks that it took: half of it is the most that it can be off */
};

/* As nearly one moment as can be: the best of several attempts. */
struct oteli_reading oteli_clock_read(void);

/* Choose the source by a word of OTEL_C_CLOCK; see oteli_clock_start. */
const char *oteli_clock_choose(const char *wish);

/* Ticks are a counter's, whose rate must be measured; otherwise they are nanoseconds. */
bool oteli_clock_counts(void);

/* Ticks are the counter's, and the kernel says that it keeps time with another clock now. Reads a
 * file. */
bool oteli_clock_counter_is_given_up(void);

/* Ticks are CLOCK_MONOTONIC's from now on, and go on from these. */
void oteli_clock_leave_counter(uint64_t ticks);

#endif
