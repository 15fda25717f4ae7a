/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_source.c - oteli_perf_source of profiling/sample.h: samples from the kernel's
 * perf events: a ring for each processor, to which the events of all threads write that run on it.
 *
 *                    cpu 0     cpu 1
 *     ring             ▲         ▲        of an event of our own that never happens
 *     thread 1012 ─────┤         │        an event for each thread that was there at the start, on
 *                 ─────┼─────────┤        each processor; threads that these create inherit theirs
 *     thread 1013 ─────┤         │
 *                 ─────┼─────────┘
 *
 * Threads that appear while we look for those that are there may have inherited from one that
 * already had events, wholly, on some processors, or not at all. They get events of their own, and
 * when a sample shows that there was an inherited one, their own is closed again.
 *
 * A processor that is switched on later gets a ring then, and all threads an event there. One that
 * is switched off keeps its own, in which nothing comes until it is on again.
 *
 * That threads alone inherit needs Linux 5.13: older kernels refuse it, and a signal samples there.
 *
 * Threads:  the profiler's thread, which is not sampled.
 * Owns:     descriptors, CLOEXEC; mappings, which a forked child does not get. */
#include "profiling/perf/perf_clock.h"
#include "profiling/perf/perf_ring.h"
#include "profiling/profiler_processors.h"
#include "profiling/signal/thread_list.h"

#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "common/log.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LOOKS = 16, LOOK_NS = 1000 * 1000 * 1000 };

/* A thread with events of our making, one a ring; -1: none. */
struct watched {
    pid_t thread;
    bool is_doubtful; /* it may have inherited others before */
    unsigned rings;   /* the first so many have been looked at for it */
    int *events;
};

struct perf_source {
    struct oteli_source_options options;

    unsigned ring_count;
    struct oteli_perf_ring *rings;
    unsigned *cpus;      /* of each ring */
    uint64_t least_ring; /* in bytes */
    struct oteli_processors known;
    uint64_t next_look_ns; /* which processors are on */
    struct watched *watched;
    size_t watched_count;
    size_t watched_room;
    bool has_doubt;                 /* one of them is doubtful */
    struct oteli_thread_list found; /* at the last look */

    uint64_t lost;
    unsigned draining; /* that ring */
    oteli_take_sample *take;
    void *take_state;
    struct oteli_perf_reader reader;
};

/* --- start --- */

/* Of one processor, without any event that writes to it. -ENODEV: it is off. */
static int open_ring(struct perf_source *source, unsigned cpu)
{
    const size_t count = source->ring_count;
    if (!oteli_perf_move(&source->rings, count * sizeof *source->rings,
                         (count + 1) * sizeof *source->rings) ||
        !oteli_perf_move(&source->cpus, count * sizeof *source->cpus,
                         (count + 1) * sizeof *source->cpus))
        return -ENOMEM;
    const int event = oteli_perf_open_silent((int)cpu);
    if (event < 0)
        return event;
    struct oteli_perf_ring *ring = &source->rings[source->ring_count];
    const int result = oteli_perf_ring_map(ring, event, source->options.ring_bytes);
    if (result != 0) {
        oteli_perf_close(event);
        return result;
    }
    if (source->ring_count == 0 || ring->size < source->least_ring)
        source->least_ring = ring->size;
    source->cpus[source->ring_count++] = cpu;
    return 0;
}

/* For the processors that are on and have not been before. */
static int open_rings(struct perf_source *source)
{
    struct oteli_processors online;
    oteli_processors_online(&online);
    for (unsigned cpu = 0; cpu < OTELI_PROCESSORS_MOST; cpu++) {
        if (!oteli_processors_has(&online, cpu) || oteli_processors_has(&source->known, cpu))
            continue;
        const int result = open_ring(source, cpu);
        if (result == -ENODEV)
            continue;
        oteli_processors_add(&source->known, cpu); /* what is refused is asked for once */
        if (result != 0)
            return result;
    }
    return 0;
}

static struct watched *new_watched(struct perf_source *source, pid_t thread)
{
    if (source->watched_count == source->watched_room) {
        const size_t room = source->watched_room == 0 ? 16 : 2 * source->watched_room;
        if (!oteli_perf_move(&source->watched, source->watched_count * sizeof *source->watched,
                             room * sizeof *source->watched))
            return NULL;
        source->watched_room = room;
    }
    struct watched *watched = &source->watched[source->watched_count];
    *watched = (struct watched){.thread = thread};
    oteli_fence_before_stores();
    source->watched_count++;
    return watched;
}

/* Room for an event of each ring; none in those before `first` that are new for it. */
static bool have_events(struct watched *watched, unsigned first, unsigned ring_count)
{
    if (!oteli_perf_move(&watched->events, watched->rings * sizeof *watched->events,
                         ring_count * sizeof *watched->events))
        return false;
    for (unsigned i = watched->rings; i < ring_count; i++)
        watched->events[i] = -1;
    oteli_fence_before_stores();
    if (watched->rings < first)
        watched->rings = first;
    return true;
}

/* Give a thread events of the rings from `first` on. */
static int watch(struct perf_source *source, struct watched *watched, unsigned first)
{
    if (!have_events(watched, first, source->ring_count))
        return -ENOMEM;
    const unsigned from = watched->rings;
    watched->rings = source->ring_count;
    for (unsigned i = from; i < source->ring_count; i++) {
        const int event = oteli_perf_open(&source->options, watched->thread, (int)source->cpus[i]);
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

/* Among the first so many; NULL: it is not there. */
static struct watched *find_watched(struct perf_source *source, size_t count, pid_t thread)
{
    for (size_t i = 0; i < count; i++) {
        if (source->watched[i].thread == thread)
            return &source->watched[i];
    }
    return NULL;
}

/* Give those of the threads that were found events of the rings from `first` on which have none.
 * How many there were, or -errno. */
static int watch_found(struct perf_source *source, unsigned first, bool is_doubtful)
{
    const size_t known = source->watched_count;
    int count = 0;
    for (size_t i = 0; i < source->found.count; i++) {
        struct watched *watched = find_watched(source, known, source->found.ids[i]);
        if (watched != NULL && watched->rings == source->ring_count)
            continue;
        if ((source->watched_count + 2) * source->ring_count > oteli_perf_budget())
            return -EMFILE;
        if (watched == NULL)
            watched = new_watched(source, source->found.ids[i]);
        if (watched == NULL)
            return -ENOMEM;
        watched->is_doubtful = watched->is_doubtful || is_doubtful;
        source->has_doubt = source->has_doubt || is_doubtful;
        const int result = watch(source, watched, first);
        if (result != 0)
            return result;
        count++;
    }
    return count;
}

/* Those that are there, and then those that came meanwhile, until none does. A thread's id may
 * have been another's at the look before; then it inherited, or comes from a doubtful one. */
static int watch_all(struct perf_source *source, unsigned first)
{
    for (unsigned look = 0; look < LOOKS; look++) {
        const int error = oteli_thread_list_read(&source->found);
        const int count = error != 0 ? -error : watch_found(source, first, look != 0);
        if (count <= 0)
            return count;
    }
    return 0;
}

static void stop(void *state);

static int start_with_rings(struct perf_source *source)
{
    int result = -oteli_perf_clock_offset(&source->reader.format.clock_offset_ns);
    if (result == 0)
        result = open_rings(source);
    source->next_look_ns = oteli_monotonic_ns() + LOOK_NS;
    return result != 0 ? result : watch_all(source, 0);
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
    const int result = -start_with_rings(source);
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
        if (!watched->is_doubtful || watched->thread != thread ||
            source->draining >= watched->rings)
            continue;
        int *own = &watched->events[source->draining];
        uint64_t id;
        if (*own >= 0 && ioctl(*own, PERF_EVENT_IOC_ID, &id) == 0 && id != event) {
            const int closed = *own;
            *own = -1; /* first: its number may be somebody else's afterwards, also in a child */
            oteli_perf_close(closed);
        }
    }
}

static void take_from_ring(void *state, uint64_t event, const struct oteli_sample *sample)
{
    struct perf_source *source = state;
    if (source->has_doubt)
        settle_doubt(source, event, sample->thread);
    source->take(source->take_state, sample);
}

/* Processors that have been switched on since. */
static void look_around(struct perf_source *source)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    const unsigned before = source->ring_count;
    if (now_ns < source->next_look_ns)
        return;
    source->next_look_ns = now_ns + LOOK_NS;
    int result = open_rings(source);
    if (source->ring_count != before) { /* also where others were refused */
        const int watched = watch_all(source, before);
        result = result != 0 ? result : watched;
    }
    if (result != 0)
        OTELI_LOG(OTEL_LOG_WARN,
                  "profiler: not all is sampled on processors that were switched on (errno %d)",
                  -result);
}

static void drain(void *state, oteli_take_sample *take, void *take_state,
                  struct oteli_source_counts *counts)
{
    struct perf_source *source = state;
    source->take = take;
    source->take_state = take_state;
    look_around(source);
    for (unsigned i = 0; i < source->ring_count; i++) {
        source->draining = i;
        oteli_perf_ring_read(&source->rings[i], &source->reader);
    }
    *counts = (struct oteli_source_counts){.lost = source->lost, .ring_bytes = source->least_ring};
}

/* --- stop --- */

static void stop(void *state)
{
    struct perf_source *source = state;
    for (size_t i = 0; i < source->watched_count; i++) {
        for (unsigned ring = 0; ring < source->watched[i].rings; ring++)
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
    for (size_t i = 0; i < source->watched_count; i++) {
        for (unsigned ring = 0; ring < source->watched[i].rings; ring++) {
            if (source->watched[i].events[ring] >= 0)
                close(source->watched[i].events[ring]);
        }
    }
    for (unsigned i = 0; i < source->ring_count; i++)
        close(source->rings[i].event);
}

const struct oteli_source oteli_perf_source = {start, drain, stop, forget};
