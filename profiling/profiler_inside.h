/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_inside.h - the profiler between its two files: profiler.c, what the program
 * calls, and profiler_thread.c, what the thread "otel-profiler" does.
 *
 *     source ──drain──▶ resolve ──▶ builder ──export──▶ exporter
 *
 * All of that is the thread's. The program's threads leave requests under the mutex, and wait for
 * the answer as long as they like.
 *
 * Threads:  see each part of the struct. */
#ifndef OTELI_PROFILER_INSIDE_H
#define OTELI_PROFILER_INSIDE_H

#include "common/clock/time_units.h"
#include "profiling/base/sample.h"
#include "profiling/labels/resolve.h"
#include "profiling/profile/profile_builder.h"

#include <pthread.h>

/* What options come to. */
struct oteli_profiler_plan {
    otel_profiler_source wanted;
    struct oteli_source_options source;
    uint32_t max_links;
    uint64_t export_ns;
};

struct otel_profiler {
    /* Constant, but for the size of the rings, which is what the thread has got. */
    struct oteli_profiler_plan plan;
    const struct oteli_source *perf;
    const struct oteli_source *signal;
    otel_profile_exporter exporter;
    uint64_t process;        /* how many forks away from the first */
    uint64_t refused_before; /* labels, until the start */
    uint64_t cut_before;
    pthread_t thread;

    /* Under the mutex; `changed` is broadcast when any of it changes. */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_started; /* or has failed to: then start_status says why */
    bool is_stopping;
    bool is_exporting;
    bool is_last_export;
    bool has_exporter;
    bool is_done;
    bool frees_itself; /* no thread waits for this one: it frees all this */
    bool has_lost;     /* since the stop */
    otel_status start_status;
    uint64_t stop_deadline_ns;
    uint64_t flush_wanted; /* tickets */
    uint64_t flush_done;
    uint64_t flush_lost; /* the last ticket whose samples were not all delivered */
    uint64_t flush_deadline_ns;
    otel_profiler_stats stats;

    /* Used by the profiler's thread, or under `source_mutex` by the thread that stops the source in
     * its place. */
    pthread_mutex_t source_mutex;
    const struct oteli_source *source;
    void *source_state; /* NULL: no source */

    /* The thread's. */
    struct oteli_profile_builder *builder;
    otel_profiler_stats counted;
    struct oteli_resolved resolved;
    unsigned short_drains; /* to come, because samples or labels were lost */
    uint64_t next_drain_ns;
    uint64_t next_export_ns;
};

/* OTEL_ERROR_INVALID_ARGUMENT: there is something in them that cannot be. */
otel_status oteli_profiler_plan(const otel_profiler_options *options,
                                struct oteli_profiler_plan *plan);

/* How long a ring takes to be half full, of deep stacks. */
uint64_t oteli_profiler_half_full_ns(const struct oteli_source_options *source);

/* Why a source is not to be had, in words; for errors of perf_event_open and of the signal
 * source. */
const char *oteli_profiler_reason(otel_profiler_source source, int error);

/* Wait for `changed`, with the mutex. False: the deadline has come. */
bool oteli_profiler_wait(struct otel_profiler *profiler, uint64_t deadline_ns);

void *oteli_profiler_main(void *argument);

/* No samples from here on; again is harmless. A caller that gives the thread up does not wait. */
void oteli_profiler_stop_source(struct otel_profiler *profiler, bool waits);

/* All of it but the thread. */
void oteli_profiler_free(struct otel_profiler *profiler);

/* otel_profiler_start with these two sources instead of the kernel's. */
otel_status oteli_profiler_start_with(const otel_profiler_options *options,
                                      const struct oteli_source *perf,
                                      const struct oteli_source *signal, otel_profiler **profiler);

#endif
