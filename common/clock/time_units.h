/* SPDX-License-Identifier: Apache-2.0 */
/* common/clock/time_units.h - nanoseconds, as everything here counts, from and to what the system
 * counts in.
 *
 * Threads:  any. */
#ifndef OTELI_TIME_UNITS_H
#define OTELI_TIME_UNITS_H

#include <stdint.h>
#include <time.h>

#define OTELI_NS_PER_US UINT64_C(1000)
#define OTELI_NS_PER_MS UINT64_C(1000000)
#define OTELI_NS_PER_S UINT64_C(1000000000)

static inline uint64_t oteli_timespec_ns(struct timespec time)
{
    return (uint64_t)time.tv_sec * OTELI_NS_PER_S + (uint64_t)time.tv_nsec;
}

static inline struct timespec oteli_ns_timespec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / OTELI_NS_PER_S), (long)(ns % OTELI_NS_PER_S)};
}

/* Milliseconds from `now_ns` until `then_ns`, rounded up, so that a wait of that length ends behind
 * it. */
static inline uint64_t oteli_ms_between(uint64_t now_ns, uint64_t then_ns)
{
    return then_ns > now_ns ? (then_ns - now_ns - 1) / OTELI_NS_PER_MS + 1 : 0;
}

/* `now_ns` and `timeout_ms` more; UINT64_MAX where that is too large. */
static inline uint64_t oteli_ns_after(uint64_t now_ns, uint64_t timeout_ms)
{
    return timeout_ms > (UINT64_MAX - now_ns) / OTELI_NS_PER_MS
               ? UINT64_MAX
               : now_ns + timeout_ms * OTELI_NS_PER_MS;
}

static inline uint64_t oteli_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t oteli_distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

#endif
