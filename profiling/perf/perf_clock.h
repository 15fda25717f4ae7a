/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_clock.h - from the times of perf events to those of this process.
 *
 * Threads:  any. */
#ifndef OTELI_PERF_CLOCK_H
#define OTELI_PERF_CLOCK_H

#include <stdint.h>

/* Nanoseconds by which CLOCK_MONOTONIC is ahead here: the kernel stamps events with its own, and
 * a container may have a time namespace, where another time is told. 0, or an errno; EOPNOTSUPP: it
 * cannot be known. */
int oteli_perf_clock_offset(int64_t *offset_ns);

#endif
