/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/deadline.c - see deadline.h. Any thread; owns nothing. */
#include "sdk/deadline.h"
#include "common/clock.h"

#include <time.h>

enum { NS_PER_MS = 1000000 };
#define NS_PER_S UINT64_C(1000000000)

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

/* In wall time, the only one that every libc offers for it. */
bool oteli_deadline_lock(pthread_mutex_t *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_mutex_lock(mutex) == 0;
    const uint64_t left = left_ns(deadline_ns);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t ns = (uint64_t)until.tv_nsec + left % NS_PER_S;
    until.tv_sec += (time_t)(left / NS_PER_S + ns / NS_PER_S);
    until.tv_nsec = (long)(ns % NS_PER_S);
    return pthread_mutex_timedlock(mutex, &until) == 0;
}
