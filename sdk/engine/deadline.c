/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/engine/deadline.c - see deadline.h. Any thread; owns nothing. */
#include "sdk/engine/deadline.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"

#include <errno.h>
#include <time.h>

enum { PAUSE_NS = 200000 };

/* pthread_mutex_timedlock waits in wall time, which may be set back by hours meanwhile, and not
 * every libc has pthread_mutex_clocklock. */
bool oteli_deadline_lock(pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_mutex_lock(mutex) == 0;
    const struct timespec pause = {0, PAUSE_NS};
    while (pthread_mutex_trylock(mutex) != 0) {
        if (oteli_monotonic_ns() >= deadline_ns)
            return false;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
    return true;
}

bool oteli_deadline_wait(pthread_cond_t *changed, pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(changed, mutex) == 0;
    const struct timespec deadline = oteli_ns_timespec(deadline_ns);
    return pthread_cond_timedwait(changed, mutex, &deadline) == 0;
}

void oteli_deadline_sleep(uint64_t deadline_ns)
{
    const struct timespec deadline = oteli_ns_timespec(deadline_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
        continue;
}
