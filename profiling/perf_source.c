/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf_source.c - samples from the kernel's perf events: a ring for each processor, to which
 * the events of all threads write that run on it.
 *
 *                    cpu 0     cpu 1
 *     ring             ▲         ▲        of an event of our own that never happens
 *     thread 1012 ─────┤         │        an event for each thread that was there at the start, on
 *                 ─────┼─────────┤        each processor; threads that these create inherit theirs
 *     thread 1013 ─────┤         │
 *                 ─────┼─────────┘
 *
 * Threads that appear while we look for those that are there may have inherited from one that already
 * had events, wholly, on some processors, or not at all. They get events of their own, and when a
 * sample shows that there was an inherited one, their own is closed again.
 *
 * Kernels that cannot have threads alone inherit get a ring for each thread (perf_threads.c).
 *
 * Threads:  the profiler's thread, which is not sampled.
 * Owns:     descriptors, CLOEXEC; mappings, which a forked child does not get. */
#include "profiling/perf_source.h"
#include "profiling/thread_list.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOOKS = 16 };

/* A thread with events of our making, one a ring; -1: none. */
struct watched {
    pid_t thread;
    bool is_doubtful; /* it may have inherited others before */
    int *events;
};

struct perf_source {
    struct oteli_source_options options;
    void *per_thread; /* the other way of doing it, or NULL */

    unsigned ring_count;
    struct oteli_perf_ring *rings;
    int *cpus; /* of each ring */
    struct watched *watched;
    size_t watched_count;
    size_t watched_room;
    struct oteli_thread_list found; /* at the last look */

    uint64_t lost;
    unsigned draining; /* that ring */
    oteli_take_sample *take;
    void *take_state;
    struct oteli_perf_reader reader;
};

/* --- start --- */

static int open_rings(struct perf_source *source)
{
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    if (cpus <= 0)
        return -ENOSYS;
    source->rings = calloc((size_t)cpus, sizeof *source->rings);
    source->cpus = calloc((size_t)cpus, sizeof *source->cpus);
    if (source->rings == NULL || source->cpus == NULL)
        return -ENOMEM;
    for (int cpu = 0; cpu < cpus; cpu++) {
        const int event = oteli_perf_open_silent(cpu);
        if (event == -ENODEV) /* it is switched off */
            continue;
        if (event < 0)
            return event;
        struct oteli_perf_ring *ring = &source->rings[source->ring_count];
        const int result = oteli_perf_ring_map(ring, event, source->options.ring_bytes);
        if (result != 0) {
            oteli_perf_close(event);
            return result;
        }
        source->cpus[source->ring_count++] = cpu;
    }
    return 0;
}

static struct watched *new_watched(struct perf_source *source)
{
    if (source->watched_count == source->watched_room) {
        const size_t room = source->watched_room == 0 ? 16 : 2 * source->watched_room;
        struct watched *larger = realloc(source->watched, room * sizeof *larger);
        if (larger == NULL)
            return NULL;
        source->watched = larger;
        source->watched_room = room;
    }
    int *events = malloc(source->ring_count * sizeof *events);
    if (events == NULL)
        return NULL;
    for (unsigned i = 0; i < source->ring_count; i++)
        events[i] = -1;
    struct watched *watched = &source->watched[source->watched_count++];
    *watched = (struct watched){.events = events};
    return watched;
}

static int watch(struct perf_source *source, pid_t thread, bool is_doubtful)
{
    if ((source->watched_count + 2) * source->ring_count > oteli_perf_budget())
        return -EMFILE;
    struct watched *watched = new_watched(source);
    if (watched == NULL)
        return -ENOMEM;
    watched->thread = thread;
    watched->is_doubtful = is_doubtful;
    for (unsigned i = 0; i < source->ring_count; i++) {
        const int event = oteli_perf_open(&source->options, thread, source->cpus[i], true);
        if (event == -ESRCH) /* it has ended */
            return 0;
        if (event == -ENODEV)
            continue;
        if (event < 0)
            return event;
        watched->events[i] = event;
        if (ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, source->rings[i].event) != 0)
            return -errno;
    }
    return 0;
}

static bool is_watched(const struct perf_source *source, size_t count, pid_t thread)
{
    for (size_t i = 0; i < count; i++) {
        if (source->watched[i].thread == thread)
            return true;
    }
    return false;
}

/* Those that are there, and then those that came meanwhile, until none does. A thread's id may
 * have been another's at the look before; then it inherited, or comes from a doubtful one. */
static int watch_all(struct perf_source *source)
{
    for (unsigned look = 0; look < LOOKS; look++) {
        int result = -oteli_thread_list_read(&source->found);
        const size_t known = source->watched_count;
        for (size_t i = 0; i < source->found.count && result == 0; i++) {
            if (!is_watched(source, known, source->found.ids[i]))
                result = watch(source, source->found.ids[i], look != 0);
        }
        if (result != 0 || source->watched_count == known)
            return result;
    }
    return 0;
}

static void stop(void *state);

static int start_with_rings(struct perf_source *source)
{
    const int result = open_rings(source);
    return result != 0 ? result : watch_all(source);
}

static void take_from_ring(void *state, uint64_t event, const struct oteli_sample *sample);

static struct perf_source *new_source(const struct oteli_source_options *options)
{
    struct perf_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return NULL;
    source->options = *options;
    source->reader.format = oteli_perf_format(options);
    source->reader.take = take_from_ring;
    source->reader.state = source;
    source->reader.lost = &source->lost;
    return source;
}

static int start(const struct oteli_source_options *options, void **state)
{
    struct perf_source *source = new_source(options);
    if (source == NULL)
        return ENOMEM;
    int result = -start_with_rings(source);
    if (result == EINVAL || result == E2BIG) { /* the kernel does not know inherit_thread */
        stop(source);
        source = new_source(options);
        if (source == NULL)
            return ENOMEM;
        result = oteli_perf_thread_source.start(options, &source->per_thread);
    }
    if (result != 0) {
        stop(source);
        return result;
    }
    *state = source;
    return 0;
}

/* --- drain --- */

/* A doubtful thread's sample from an event that is not its own, on a processor where it has one: it
 * would be counted twice. */
static void settle_doubt(struct perf_source *source, uint64_t event, pid_t thread)
{
    for (size_t i = 0; i < source->watched_count; i++) {
        struct watched *watched = &source->watched[i];
        int *own = &watched->events[source->draining];
        uint64_t id;
        if (watched->is_doubtful && watched->thread == thread && *own >= 0 &&
            ioctl(*own, PERF_EVENT_IOC_ID, &id) == 0 && id != event) {
            oteli_perf_close(*own);
            *own = -1;
        }
    }
}

static void take_from_ring(void *state, uint64_t event, const struct oteli_sample *sample)
{
    struct perf_source *source = state;
    if (source->watched_count != 0 && source->watched[source->watched_count - 1].is_doubtful)
        settle_doubt(source, event, sample->thread);
    source->take(source->take_state, sample);
}

static void drain(void *state, oteli_take_sample *take, void *take_state,
                  struct oteli_source_counts *counts)
{
    struct perf_source *source = state;
    if (source->per_thread != NULL) {
        oteli_perf_thread_source.drain(source->per_thread, take, take_state, counts);
        return;
    }
    source->take = take;
    source->take_state = take_state;
    for (unsigned i = 0; i < source->ring_count; i++) {
        source->draining = i;
        oteli_perf_ring_read(&source->rings[i], &source->reader);
    }
    *counts = (struct oteli_source_counts){.lost = source->lost};
}

/* --- stop --- */

static void stop(void *state)
{
    struct perf_source *source = state;
    if (source->per_thread != NULL)
        oteli_perf_thread_source.stop(source->per_thread);
    for (size_t i = 0; i < source->watched_count; i++) {
        for (unsigned ring = 0; ring < source->ring_count; ring++)
            oteli_perf_close(source->watched[i].events[ring]);
        free(source->watched[i].events);
    }
    for (unsigned i = 0; i < source->ring_count; i++)
        oteli_perf_ring_close(&source->rings[i]);
    free(source->watched);
    oteli_thread_list_fini(&source->found);
    free(source->rings);
    free(source->cpus);
    free(source);
}

/* The kernel has left the mappings out of the child, and its memory may be anybody's there. What is
 * allocated stays: this may run where nothing can be freed. */
static void forget(void *state)
{
    struct perf_source *source = state;
    if (source->per_thread != NULL)
        oteli_perf_thread_source.forget(source->per_thread);
    for (size_t i = 0; i < source->watched_count; i++) {
        for (unsigned ring = 0; ring < source->ring_count; ring++) {
            if (source->watched[i].events[ring] >= 0)
                close(source->watched[i].events[ring]);
        }
    }
    for (unsigned i = 0; i < source->ring_count; i++)
        close(source->rings[i].event);
}

const struct oteli_source oteli_perf_source = {start, drain, stop, forget};
