/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock.c - which counter to trust, and the anchors that turn ticks into wall time.
 *
 * An anchor is never changed once a tick has been converted by it, so that equal ticks of
 * one trace are equal nanoseconds, whenever they are converted. The rate of a counter is
 * measured from the first reading on: the longer the program runs, the better it is known,
 * and an anchor that is still unused, or a later one, takes the better value. */
#include "common/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
    ANCHORS = 256, /* kept: a span that is open over more renewals uses the oldest */
    RATE_SHIFT = 40,
    READINGS = 5,                    /* of which the one with the narrowest window counts */
    TOLERANCE_NS = 500,              /* an anchor that is off by more is replaced */
    WORST_RATE_BASELINE_NS = 2000000 /* a rate measured over less is not yet used */
};

__extension__ typedef unsigned __int128 wide; /* a product of two 64-bit numbers */

/* Ticks and both clocks, read at one moment as nearly as can be. */
struct reading {
    uint64_t ticks;
    uint64_t wall_ns;
    uint64_t monotonic_ns;
};

struct anchor {
    uint64_t ticks;
    uint64_t wall_ns;
    uint64_t rate; /* nanoseconds a tick, times 2^RATE_SHIFT */
    bool is_used;  /* and so for ever as it is */
};

struct oteli_clock oteli_clock;
struct oteli_fake_clock oteli_fake_clock;

static struct anchor anchors[ANCHORS]; /* by epoch; of the thread that renews */
static struct reading first;           /* since when the rate is measured */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t oteli_monotonic_ns(void)
{
    if (oteli_clock_source() == OTELI_CLOCK_FAKE)
        return oteli_fake_clock.monotonic_ns;
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t oteli_ticks_slow(void)
{
    switch (oteli_clock_source()) {
    case OTELI_CLOCK_FAKE:
        return oteli_fake_clock.ticks;
    case OTELI_CLOCK_COARSE:
        return clock_ns(CLOCK_MONOTONIC_COARSE);
    case OTELI_CLOCK_MONOTONIC:
    case OTELI_CLOCK_COUNTER:
        break;
    }
    return clock_ns(CLOCK_MONOTONIC);
}

#if defined(__x86_64__)
static bool kernel_keeps_time_with(const char *name)
{
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    if (file == NULL)
        return false;
    char line[32] = "";
    const bool read = fgets(line, sizeof line, file) != NULL;
    fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return read && strcmp(line, name) == 0;
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
    if (!kernel_keeps_time_with("tsc"))
        return "the kernel does not keep time with the TSC";
    return NULL;
#elif defined(__aarch64__)
    return NULL;
#else
    return "there is no counter that programs can read on this processor";
#endif
}

static struct reading read_once(void)
{
    if (oteli_clock_source() == OTELI_CLOCK_FAKE)
        return (struct reading){oteli_fake_clock.ticks, oteli_fake_clock.wall_ns,
                                oteli_fake_clock.monotonic_ns};
    struct reading best = {0};
    uint64_t narrowest = UINT64_MAX;
    for (unsigned i = 0; i < READINGS; i++) {
        const uint64_t before = oteli_ticks();
        const uint64_t wall_ns = clock_ns(CLOCK_REALTIME);
        const uint64_t between = oteli_ticks();
        const uint64_t monotonic_ns = clock_ns(CLOCK_MONOTONIC);
        const uint64_t after = oteli_ticks();
        if (after - before < narrowest) { /* nobody came in between either of the two */
            narrowest = after - before;
            best.ticks = between;
            best.wall_ns = wall_ns;
            best.monotonic_ns = monotonic_ns;
        }
    }
    return best;
}

/* A counter's rate comes from the monotonic clock, which NTP slews like the wall clock but
 * nobody steps. The other sources already count nanoseconds. */
static uint64_t measured_rate(const struct reading *now)
{
    const uint64_t ticks = now->ticks - first.ticks;
    const uint64_t elapsed_ns = now->monotonic_ns - first.monotonic_ns;
    const bool counts = oteli_clock_source() == OTELI_CLOCK_COUNTER;
    if (!counts || ticks == 0 || elapsed_ns == 0)
        return UINT64_C(1) << RATE_SHIFT;
    return (uint64_t)(((wide)elapsed_ns << RATE_SHIFT) / ticks);
}

static uint64_t convert(const struct anchor *anchor, uint64_t ticks)
{
    const bool later = ticks >= anchor->ticks;
    const uint64_t distance = later ? ticks - anchor->ticks : anchor->ticks - ticks;
    const uint64_t ns = (uint64_t)(((wide)distance * anchor->rate) >> RATE_SHIFT);
    return later ? anchor->wall_ns + ns : anchor->wall_ns - ns;
}

static void publish(const struct reading *now)
{
    const uint32_t epoch = oteli_clock.epoch + 1;
    anchors[epoch % ANCHORS] = (struct anchor){now->ticks, now->wall_ns, measured_rate(now), false};
    oteli_store_release_32(&oteli_clock.epoch, epoch); /* read by oteli_clock_epoch */
}

/* The rate needs some time to pass. A millisecond or two of start-up is enough for an
 * error of a few parts in 100,000, and the first renewals make it better. */
static void wait_for_baseline(void)
{
    while (clock_ns(CLOCK_MONOTONIC) - first.monotonic_ns < WORST_RATE_BASELINE_NS) {
        const struct timespec pause = {0, WORST_RATE_BASELINE_NS / 4};
        nanosleep(&pause, NULL);
    }
}

const char *oteli_clock_start(const char *wish)
{
    const char *refused = NULL;
    oteli_store_relaxed_32(&oteli_clock.source, OTELI_CLOCK_MONOTONIC);
    if (strcmp(wish, "fake") == 0) {
        oteli_store_relaxed_32(&oteli_clock.source, OTELI_CLOCK_FAKE);
    } else if (strcmp(wish, "coarse") == 0) {
        oteli_store_relaxed_32(&oteli_clock.source, OTELI_CLOCK_COARSE);
    } else if (strcmp(wish, "monotonic") != 0) {
        const char *distrust = oteli_clock_counter_distrust();
        if (distrust == NULL)
            oteli_store_relaxed_32(&oteli_clock.source, OTELI_CLOCK_COUNTER);
        else if (strcmp(wish, "tsc") == 0)
            refused = distrust;
    }
    first = read_once();
    if (oteli_clock_source() == OTELI_CLOCK_COUNTER)
        wait_for_baseline();
    const struct reading now = read_once();
    publish(&now);
    return refused;
}

void oteli_clock_renew(void)
{
    const struct reading now = read_once();
    struct anchor *anchor = &anchors[oteli_clock.epoch % ANCHORS];
    if (!anchor->is_used)
        anchor->rate = measured_rate(&now);
    const uint64_t expected = convert(anchor, now.ticks);
    const uint64_t off = expected > now.wall_ns ? expected - now.wall_ns : now.wall_ns - expected;
    if (off > TOLERANCE_NS)
        publish(&now);
}

uint64_t oteli_clock_to_ns(uint64_t stored, uint32_t epoch)
{
    if ((stored & OTELI_TICKS_BIT) == 0)
        return stored;
    const uint32_t newest = oteli_clock.epoch;
    const uint32_t oldest = newest > ANCHORS - 1 ? newest - (ANCHORS - 1) : 1;
    if (epoch < oldest)
        epoch = oldest;
    struct anchor *anchor = &anchors[epoch % ANCHORS];
    anchor->is_used = true;
    return convert(anchor, stored & ~OTELI_TICKS_BIT);
}
