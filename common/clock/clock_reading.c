/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/clock_reading.c - which counter to trust, and readings of it and of the kernel's
 * clocks. */
#include "common/clock/clock_reading.h"
#include "common/clock/clock.h"
#include "common/clock/clock_offsets.h"
#include "common/clock/time_units.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { READINGS = 4 }; /* of which the one with the narrowest window counts */

struct oteli_clock oteli_clock;
struct oteli_fake_clock oteli_fake_clock;

/* What CLOCK_MONOTONIC is moved by, to go on where the counter was that is trusted no more.
 * Relaxed; released with the source. */
static uint64_t moved_by;

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return oteli_timespec_ns(now);
}

uint64_t oteli_monotonic_ns(void)
{
    if (oteli_clock_source() == OTELI_CLOCK_FAKE)
        return oteli_fake_clock.monotonic_ns;
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t oteli_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

uint64_t oteli_ticks_slow(void)
{
    /* Pairs with the releases of measure_offsets and of oteli_clock_leave_counter: the table and
     * the distance are there. */
    switch ((enum oteli_clock_source)oteli_load_acquire_32(&oteli_clock.source)) {
    case OTELI_CLOCK_FAKE:
        return oteli_fake_clock.ticks;
    case OTELI_CLOCK_COARSE:
        return clock_ns(CLOCK_MONOTONIC_COARSE);
    case OTELI_CLOCK_COUNTER_BY_CORE:
#if defined(__x86_64__)
        return oteli_ticks_of_reference();
#endif
    case OTELI_CLOCK_MONOTONIC:
    case OTELI_CLOCK_COUNTER:
        break;
    }
    return clock_ns(CLOCK_MONOTONIC) + oteli_load_relaxed_64(&moved_by);
}

#if defined(__x86_64__)
/* Whether the kernel keeps time with the TSC; `unknown` where it does not say. */
static bool kernel_trusts_tsc(bool unknown)
{
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file == NULL)
        return unknown;
    char line[32] = "";
    const bool is_read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return is_read ? strcmp(line, "tsc") == 0 : unknown;
}
#endif

const char *oteli_clock_counter_distrust(void)
{
#if defined(__x86_64__)
    enum { INVARIANT_TSC = 1 << 8 };
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    if (__get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) == 0 || (edx & INVARIANT_TSC) == 0)
        return "the processor does not call its TSC invariant";
    if (!kernel_trusts_tsc(false))
        return "the kernel does not keep time with the TSC";
    return NULL;
#elif defined(__aarch64__)
    return NULL;
#else
    return "there is no counter that programs can read on this processor";
#endif
}

const char *oteli_clock_choose(const char *wish)
{
    const char *refused = NULL;
    enum oteli_clock_source source = OTELI_CLOCK_MONOTONIC;
    if (strcmp(wish, "fake") == 0) {
        source = OTELI_CLOCK_FAKE;
    } else if (strcmp(wish, "coarse") == 0) {
        source = OTELI_CLOCK_COARSE;
    } else if (strcmp(wish, "monotonic") != 0) {
        const char *distrust = oteli_clock_counter_distrust();
        if (distrust == NULL)
            source = OTELI_CLOCK_COUNTER;
        else if (strcmp(wish, "tsc") == 0)
            refused = distrust;
    }
    oteli_store_relaxed_64(&moved_by, 0);
    oteli_store_relaxed_32(&oteli_clock.source, source);
    return refused;
}

bool oteli_clock_counter_is_given_up(void)
{
#if defined(__x86_64__)
    const enum oteli_clock_source source = oteli_clock_source();
    const bool is_tsc = source == OTELI_CLOCK_COUNTER || source == OTELI_CLOCK_COUNTER_BY_CORE;
    return is_tsc && !kernel_trusts_tsc(true);
#else
    return false;
#endif
}

void oteli_clock_leave_counter(uint64_t ticks)
{
    oteli_store_relaxed_64(&moved_by, ticks - clock_ns(CLOCK_MONOTONIC));
    oteli_store_release_32(&oteli_clock.source, OTELI_CLOCK_MONOTONIC);
}

bool oteli_clock_counts(void)
{
    const enum oteli_clock_source source = oteli_clock_source();
    return source == OTELI_CLOCK_COUNTER || source == OTELI_CLOCK_COUNTER_BY_CORE ||
           (source == OTELI_CLOCK_FAKE && oteli_fake_clock.counts);
}

static struct oteli_reading read_fake(void)
{
    struct oteli_fake_clock *fake = &oteli_fake_clock;
    const struct oteli_reading reading = {.ticks = fake->ticks,
                                          .boot_ns = fake->monotonic_ns + fake->suspended_ns,
                                          .wall_ns = fake->wall_ns};
    void (*meanwhile)(void) = fake->meanwhile;
    fake->meanwhile = NULL;
    if (meanwhile != NULL)
        meanwhile();
    return reading;
}

/* The wall clock in the middle, ticks and CLOCK_BOOTTIME symmetrically around it: the middle of
 * each pair is the moment at which the wall clock was read. */
static struct oteli_reading read_once(void)
{
    const uint64_t start = oteli_ticks();
    const uint64_t boot_before_ns = clock_ns(CLOCK_BOOTTIME);
    const uint64_t before = oteli_ticks();
    const uint64_t wall_ns = clock_ns(CLOCK_REALTIME);
    const uint64_t after = oteli_ticks();
    const uint64_t boot_after_ns = clock_ns(CLOCK_BOOTTIME);
    const uint64_t end = oteli_ticks();
    return (struct oteli_reading){
        .ticks = before + (after - before) / 2,
        .boot_ns = boot_before_ns + (boot_after_ns - boot_before_ns) / 2,
        .wall_ns = wall_ns,
        .width = end - start,
    };
}

struct oteli_counter_reading oteli_clock_mark(void)
{
    struct oteli_counter_reading mark = {.core = oteli_core_now()};
    uint64_t narrowest = UINT64_MAX;
    for (unsigned i = 0; i < READINGS; i++) {
        const uint64_t before = oteli_counter();
        const uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME);
        const uint64_t width = oteli_counter() - before;
        if (width < narrowest) {
            narrowest = width;
            mark.ticks = before + width / 2;
            mark.boot_ns = boot_ns;
        }
    }
    return mark;
}

/* The coarse clocks go on together, at the kernel's tick: read in one tick, they agree to
 * the nanosecond, and another attempt is needed only when it has just come. There is no coarse
 * CLOCK_BOOTTIME: it goes on as CLOCK_MONOTONIC does, but for suspends. */
static struct oteli_reading read_coarse(void)
{
    struct oteli_reading reading = {0};
    for (unsigned i = 0; i < READINGS; i++) {
        reading.ticks = clock_ns(CLOCK_MONOTONIC_COARSE);
        reading.wall_ns = clock_ns(CLOCK_REALTIME_COARSE);
        const uint64_t before_ns = clock_ns(CLOCK_MONOTONIC);
        const uint64_t boot_ns = clock_ns(CLOCK_BOOTTIME);
        const uint64_t after_ns = clock_ns(CLOCK_MONOTONIC);
        const uint64_t width = after_ns - before_ns;
        if (i == 0 || width < reading.width) {
            reading.boot_ns = boot_ns - before_ns - width / 2;
            reading.width = width;
        }
        if (clock_ns(CLOCK_MONOTONIC_COARSE) == reading.ticks)
            break;
    }
    reading.boot_ns += reading.ticks;
    return reading;
}

struct oteli_reading oteli_clock_read(void)
{
    if (oteli_clock_source() == OTELI_CLOCK_FAKE)
        return read_fake();
    if (oteli_clock_source() == OTELI_CLOCK_COARSE)
        return read_coarse();
    struct oteli_reading best = read_once();
    for (unsigned i = 1; i < READINGS; i++) {
        const struct oteli_reading reading = read_once();
        if (reading.width < best.width)
            best = reading;
    }
    return best;
}
