/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/thread_time.h - what the calling thread has had of the processors, in nanoseconds;
 * others may have kept it from them for longer. A system call. Any thread. */
#ifndef OTELI_THREAD_TIME_H
#define OTELI_THREAD_TIME_H

#include "common/clock/time_units.h"

static inline uint64_t oteli_thread_time_ns(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return oteli_timespec_ns(now);
}

#endif
