/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/profiled.h - a source of samples that is drained on a thread of its own, as the
 * profiler does it, but with every sample handed out as it is once its labels are known.
 *
 * Threads:  start and stop one thread at a time; `take` on the thread that drains. */
#ifndef OTELI_TESTS_PROFILED_H
#define OTELI_TESTS_PROFILED_H

#include "profiling/sample.h"

#include <pthread.h>

struct profiled {
    const struct oteli_source *source;
    struct oteli_source_options options;
    void (*take)(void *state, const struct oteli_resolved *resolved);
    void *state;
    unsigned drain_us; /* between two drains; 0: 20,000 */

    struct oteli_source_counts counts; /* after the stop */
    pthread_t thread;
    uint32_t phase; /* atomic */
    int error;
    void *running;
};

/* "perf", "perf-threads" or "signal"; NULL: no such source, or not in this build: where there is
 * ThreadSanitizer signals come late, and not where they were sent. */
const struct oteli_source *profiled_source(const char *name);

/* Labels and samples from now on. What the source refuses with, or 0. */
int profiled_start(struct profiled *profiled);

/* No more of both; everything that was sampled has been handed out. */
void profiled_stop(struct profiled *profiled);

/* The value of a key in the innermost label that has it; NULL: none. */
const char *profiled_value(const struct oteli_resolved *resolved, const char *key);

/* Run that in a forked child as an ordinary user, and have its exit status; only root can. */
int profiled_as_nobody(int (*run)(void *), void *argument);

#endif
