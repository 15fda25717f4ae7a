/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_source.h - the two ways of oteli_perf_source (sample.h), which takes the first one
 * that the kernel knows: rings of processors, or rings of threads.
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_PERF_SOURCE_H
#define OTELI_PERF_SOURCE_H

#include "profiling/perf/perf_ring.h"

/* A ring for each thread, whatever the kernel knows. */
extern const struct oteli_source oteli_perf_thread_source;

#endif
