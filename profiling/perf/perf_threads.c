/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_threads.c - samples from the kernel's perf events, with a ring for each thread: for
 * Linux before 5.13. A thread is sampled from the first drain after it was created.
 *
 * Threads:  the profiler's thread, which is not sampled.
 * Owns:     descriptors, CLOEXEC; mappings, which a forked child does not get. */
#include "profiling/perf/perf_source.h"
#include "common/base/atomic.h"
#include "profiling/perf/perf_clock.h"
#include "profiling/signal/thread_list.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

struct watched {
    pid_t thread;
    struct oteli_perf_ring ring;
};

struct thread_source {
    struct oteli_source_options options;
    struct watched *watched;
    size_t watched_count;
    size_t watched_room;
    struct oteli_thread_list found; /* at the last look */
    uint64_t least_ring;            /* in bytes; 0: there was none yet */
    uint64_t lost;
    oteli_take_sample *take;
    void *take_state;
    struct oteli_perf_reader reader;
};

static bool have_room(struct thread_source *source)
{
    if (source->watched_count < source->watched_room)
        return true;
    const size_t room = source->watched_room == 0 ? 16 : 2 * source->watched_room;
    if (!oteli_perf_move(&source->watched, source->watched_count * sizeof *source->watched,
                         room * sizeof *source->watched))
        return false;
    source->watched_room = room;
    return true;
}

static int watch(struct thread_source *source, pid_t thread)
{
    if (source->watched_count >= oteli_perf_budget())
        return -EMFILE;
    if (!have_room(source))
        return -ENOMEM;
    const int event = oteli_perf_open(&source->options, thread, OTELI_PERF_ANY_CPU, false);
    if (event < 0)
        return event == -ESRCH ? 0 : event; /* it has ended */
    struct watched *watched = &source->watched[source->watched_count];
    const int result = oteli_perf_ring_map(&watched->ring, event, source->options.ring_bytes);
    if (result == 0 && (source->least_ring == 0 || watched->ring.size < source->least_ring))
        source->least_ring = watched->ring.size;
    if (result != 0) {
        oteli_perf_close(event);
        return result;
    }
    watched->thread = thread;
    oteli_fence_before_stores();
    source->watched_count++;
    return 0;
}

static bool is_watched(const struct thread_source *source, pid_t thread)
{
    for (size_t i = 0; i < source->watched_count; i++) {
        if (source->watched[i].thread == thread)
            return true;
    }
    return false;
}

/* Threads that are new. The first that is refused is the last that is tried. */
static int watch_new(struct thread_source *source)
{
    int result = -oteli_thread_list_read(&source->found);
    for (size_t i = 0; i < source->found.count && result == 0; i++) {
        if (!is_watched(source, source->found.ids[i]))
            result = watch(source, source->found.ids[i]);
    }
    return result;
}

/* An event hangs up when its thread has ended; its ring has been read by then. Its descriptor may be
 * somebody else's once it is closed: nobody finds it here then, and closes that in a child. */
static void leave_ended(struct thread_source *source, size_t index)
{
    struct oteli_perf_ring ended = source->watched[index].ring;
    oteli_perf_ring_read(&ended, &source->reader);
    source->watched[index] = source->watched[--source->watched_count];
    oteli_perf_ring_close(&ended);
}

static bool has_ended(const struct watched *watched)
{
    struct pollfd event = {.fd = watched->ring.event, .events = POLLIN};
    return poll(&event, 1, 0) == 1 && (event.revents & POLLHUP) != 0;
}

static void take_from_ring(void *state, uint64_t event, const struct oteli_sample *sample)
{
    const struct thread_source *source = state;
    (void)event;
    source->take(source->take_state, sample);
}

static void drain(void *state, oteli_take_sample *take, void *take_state,
                  struct oteli_source_counts *counts)
{
    struct thread_source *source = state;
    source->take = take;
    source->take_state = take_state;
    for (size_t i = source->watched_count; i-- > 0;) {
        oteli_perf_ring_read(&source->watched[i].ring, &source->reader);
        if (has_ended(&source->watched[i]))
            leave_ended(source, i);
    }
    watch_new(source); /* one that is refused now is tried again at the next drain */
    *counts = (struct oteli_source_counts){.lost = source->lost, .ring_bytes = source->least_ring};
}

static void stop(void *state)
{
    struct thread_source *source = state;
    for (size_t i = 0; i < source->watched_count; i++)
        oteli_perf_ring_close(&source->watched[i].ring);
    free(source->watched);
    oteli_thread_list_fini(&source->found);
    free(source);
}

static int start(const struct oteli_source_options *options, void **state)
{
    struct thread_source *source = calloc(1, sizeof *source);
    if (source == NULL)
        return ENOMEM;
    source->options = *options;
    if (options->thread_ring_bytes != 0)
        source->options.ring_bytes = options->thread_ring_bytes;
    source->reader.format = oteli_perf_format(options);
    source->reader.take = take_from_ring;
    source->reader.state = source;
    source->reader.lost = &source->lost;
    int result = oteli_perf_clock_offset(&source->reader.format.clock_offset_ns);
    if (result == 0)
        result = -watch_new(source);
    if (result != 0) {
        stop(source);
        return result;
    }
    *state = source;
    return 0;
}

/* The mappings are not in the child; what is allocated stays, see perf_source.c. */
static void forget(void *state)
{
    const struct thread_source *source = state;
    for (size_t i = 0; i < source->watched_count; i++)
        close(source->watched[i].ring.event);
}

const struct oteli_source oteli_perf_thread_source = {start, drain, stop, forget};
