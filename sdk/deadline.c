/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/deadline.c - see deadline.h. Any thread; owns nothing. */
#include "sdk/deadline.h"
#include "common/clock.h"

#include <time.h>

enum { NS_PER_MS = 1000000, PAUSE_NS = 200000 };

static uint64_t left_ns(uint64_t deadline_ns)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

int64_t oteli_deadline_left_ms(uint64_t deadline_ns)
{
    const uint64_t left = left_ns(deadline_ns);
    return (int64_t)(left / NS_PER_MS + (left % NS_PER_MS != 0));
}

/* pthread_mutex_timedlock waits in wall time, which may be set back by hours meanwhile, and not every
 * libc has pthread_mutex_clocklock. */
bool oteli_deadline_lock(pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_mutex_lock(mutex) == 0;
    const struct timespec pause = {0, PAUSE_NS};
    while (pthread_mutex_trylock(mutex) != 0) {
        if (left_ns(deadline_ns) == 0)
            return false;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return true;
}
