/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_source.c - oteli_perf_source of profiling/base/sample.h: samples from
 * the kernel's perf events: a ring for each processor, to which the events of all threads write
 * that run on it.
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
#include "profiling/base/thread_list.h"
#include "profiling/perf/perf_ring.h"

#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "common/log.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PROCESSORS_MOST = 8192, EVENTS_MOST = 1 << 20, LOOKS = 16, LOOK_NS = 1000 * 1000 * 1000 };

/* An event of our making: of a thread, on the processor of a ring. */
struct watched {
    pid_t thread;
    unsigned ring;
    int event;        /* -1: none, because the thread has ended, or has inherited another */
    bool is_doubtful; /* it may have inherited others before */
};

struct perf_source {
    struct oteli_source_options options;

    /* In memory that stays where it is: a forked child looks at it at any moment. */
    unsigned ring_count;
    size_t watched_count;
    size_t watched_most;
    struct watched *watched;
    struct oteli_perf_ring rings[PROCESSORS_MOST];

    bool is_known[PROCESSORS_MOST]; /* whether there is a ring, or it was refused */
    uint64_t least_ring;            /* in bytes */
    uint64_t next_look_ns;          /* which processors are on */
    size_t doubt_from;              /* from this one on some are doubtful */
    struct oteli_thread_list found; /* at the last look */

    uint64_t lost;
    unsigned draining; /* that ring */
    oteli_take_sample *take;
    void *take_state;
    struct oteli_perf_reader reader;
};

/* --- rings and events --- */

/* Of one processor, without any event that writes to it. -ENODEV: it is off. */
static int open_ring(struct perf_source *source, unsigned cpu)
{
    struct oteli_perf_ring *ring = &source->rings[source->ring_count];
    const int event = oteli_perf_open_silent((int)cpu);
    if (event < 0)
        return event;
    const int result = oteli_perf_ring_map(ring, event, source->options.ring_bytes);
    if (result != 0) {
        oteli_perf_close(event);
        return result;
    }
    ring->cpu = cpu;
    if (source->ring_count == 0 || ring->size < source->least_ring)
        source->least_ring = ring->size;
    oteli_fence_before_stores();
    source->ring_count++;
    return 0;
}

/* For the processors that are on and have not been before. */
static int open_rings(struct perf_source *source)
{
    char online[OTELI_PERF_ONLINE_BYTES];
    oteli_perf_online(online);
    for (char *at = online; *at >= '0' && *at <= '9'; at += *at == ',') {
        unsigned long cpu = strtoul(at, &at, 10);
        const unsigned long last = *at == '-' ? strtoul(at + 1, &at, 10) : cpu;
        for (; cpu <= last && cpu < PROCESSORS_MOST; cpu++) {
            const int result = source->is_known[cpu] ? 0 : open_ring(source, (unsigned)cpu);
            if (result == -ENODEV)
                continue;
            source->is_known[cpu] = true; /* what is refused is asked for once */
            if (result != 0)
                return result;
        }
    }
    return 0;
}

/* Give a thread an event of a ring. 0, or -errno. */
static int watch(struct perf_source *source, pid_t thread, unsigned ring, bool is_doubtful)
{
    int event = oteli_perf_open(&source->options, thread, (int)source->rings[ring].cpu);
    if (event == -ESRCH || event == -ENODEV)
        event = -1;
    else if (event < 0)
        return event;
    source->watched[source->watched_count] = (struct watched){thread, ring, event, is_doubtful};
    oteli_fence_before_stores();
    source->watched_count++;
    if (event >= 0 && ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, source->rings[ring].event) != 0)
        return -errno;
    return 0;
}

/* Among the first so many. */
static bool is_watched(const struct perf_source *source, size_t count, pid_t thread, unsigned ring)
{
    for (size_t i = 0; i < count; i++)
        if (source->watched[i].thread == thread && source->watched[i].ring == ring)
            return true;
    return false;
}

/* Give those of the threads that were found events of the rings from `first` on which have none.
 * How many there were, or -errno. */
static int watch_found(struct perf_source *source, unsigned first, bool is_doubtful)
{
    const size_t known = source->watched_count;
    int count = 0;
    if (is_doubtful && source->doubt_from > known)
        source->doubt_from = known;
    for (size_t i = 0; i < source->found.count; i++)
        for (unsigned ring = first; ring < source->ring_count; ring++) {
            if (is_watched(source, known, source->found.ids[i], ring))
                continue;
            if (source->watched_count + source->ring_count >= source->watched_most)
                return -EMFILE;
            const int result = watch(source, source->found.ids[i], ring, is_doubtful);
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

static int start_with_rings(struct perf_source *source)
{
    int result = -oteli_perf_clock_offset(&source->reader.format.clock_offset_ns);
    if (result == 0)
        result = open_rings(source);
    source->next_look_ns = oteli_monotonic_ns() + LOOK_NS;
    return result != 0 ? result : watch_all(source, 0);
}

/* --- drain --- */

/* A doubtful thread's sample from an event that is not its own, on a processor where it has one: it
 * would be counted twice. */
static void settle_doubt(struct perf_source *source, uint64_t event, pid_t thread)
{
    for (size_t i = source->doubt_from; i < source->watched_count; i++) {
        struct watched *own = &source->watched[i];
        uint64_t id;
        if (own->is_doubtful && own->thread == thread && own->ring == source->draining &&
            own->event >= 0 && ioctl(own->event, PERF_EVENT_IOC_ID, &id) == 0 && id != event) {
            const int closed = own->event;
            own->event = -1; /* first: its number may be another's afterwards, also in a child */
            oteli_perf_close(closed);
        }
    }
}

static void take_from_ring(void *state, uint64_t event, const struct oteli_sample *sample)
{
    struct perf_source *source = state;
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

/* --- stop and start --- */

static void stop(void *state)
{
    struct perf_source *source = state;
    for (size_t i = 0; i < source->watched_count; i++)
        oteli_perf_close(source->watched[i].event);
    for (unsigned i = 0; i < source->ring_count; i++)
        oteli_perf_ring_close(&source->rings[i]);
    free(source->watched);
    oteli_thread_list_fini(&source->found);
    free(source);
}

/* The child does not have the mappings, and other memory may be at their addresses: they are not
 * unmapped. What is allocated stays: this may run where nothing can be freed. */
static void forget(void *state)
{
    struct perf_source *source = state;
    for (size_t i = 0; i < source->watched_count; i++)
        if (source->watched[i].event >= 0)
            close(source->watched[i].event);
    for (unsigned i = 0; i < source->ring_count; i++)
        close(source->rings[i].event);
}

static int start(const struct oteli_source_options *options, void **state)
{
    struct perf_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return ENOMEM;
    source->watched_most = oteli_perf_budget();
    if (source->watched_most > EVENTS_MOST)
        source->watched_most = EVENTS_MOST;
    source->watched = calloc(source->watched_most + 1, sizeof *source->watched);
    if (source->watched == NULL) {
        free(source);
        return ENOMEM;
    }
    source->options = *options;
    source->doubt_from = SIZE_MAX;
    source->reader.format = oteli_perf_format(options);
    source->reader.take = take_from_ring;
    source->reader.state = source;
    source->reader.lost = &source->lost;
    const int result = -start_with_rings(source);
    if (result != 0) {
        stop(source);
        return result;
    }
    *state = source;
    return 0;
}

const struct oteli_source oteli_perf_source = {start, drain, stop, forget};
