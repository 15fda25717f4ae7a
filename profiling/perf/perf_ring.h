/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_ring.h - the door to perf_event_open: events that sample a thread's processor
 * time, rings of memory that they write to, and what the kernel writes there: samples, and how many
 * there was no room for.
 *
 *      tail                    head                      records are 8 bytes aligned, and may
 *       │ record │ record │ …  │                         go over the end of the ring
 *     ──┴────────┴────────┴────┴──────────── size
 *
 * The kernel is trusted to write whole records. A length that would lead out of the ring, or
 * nowhere, ends the reading at the ring's head.
 *
 * Threads:  the profiler's thread.
 * Source:   perf_event_open(2), "MMAP layout". */
#ifndef OTELI_PERF_RING_H
#define OTELI_PERF_RING_H

#include "profiling/base/sample.h"

enum { OTELI_PERF_RECORD_MAX = 65536 };

/* What samples have in them, and what only we can know of. */
struct oteli_perf_format {
    pid_t process;           /* samples of others are left out */
    bool has_stack;          /* they end with the stack pointer and bytes of the stack */
    int64_t clock_offset_ns; /* of this process's clock; is added to their times */
};

/* `event`: the number of the event that the sample is from, the first one of a family. */
typedef void oteli_perf_take(void *state, uint64_t event, const struct oteli_sample *sample);

struct oteli_perf_reader {
    struct oteli_perf_format format;
    oteli_perf_take *take;
    void *state;
    uint64_t *lost; /* grows by what there was no room or no time for */
    uint64_t scratch[OTELI_PERF_RECORD_MAX / sizeof(uint64_t)];
};

/* Hand out everything between tail and head, which are positions in the endless stream of which
 * `ring`, `size` bytes (a power of two) that are 8 bytes aligned, holds the end. */
void oteli_perf_read(struct oteli_perf_reader *reader, const void *ring, uint64_t size,
                     uint64_t tail, uint64_t head);

enum { OTELI_PERF_ONLINE_BYTES = 4096 }; /* what the kernel gives of such a file */

/* A ring, and the event whose it is. */
struct oteli_perf_ring {
    unsigned cpu;
    int event;
    void *page; /* the kernel's page, and behind it `size` bytes; NULL: none */
    uint64_t size;
};

/* A thread on one processor, and the threads that it creates, which needs Linux 5.13 (EINVAL). An
 * open descriptor, or -errno. */
int oteli_perf_open(const struct oteli_source_options *options, pid_t thread, int cpu);

/* An event of the calling thread that never happens, to have a ring for others. */
int oteli_perf_open_silent(int cpu);

/* Give an event a ring of so many bytes, or of less where that is refused. 0, or -errno. */
int oteli_perf_ring_map(struct oteli_perf_ring *ring, int event, uint64_t bytes);

/* Hand out what is in it, and make room. */
void oteli_perf_ring_read(const struct oteli_perf_ring *ring, struct oteli_perf_reader *reader);

/* Unmap it, and close its event. */
void oteli_perf_ring_close(struct oteli_perf_ring *ring);

/* No more samples, also where a forked child still has the descriptor; and close it. -1: none. */
void oteli_perf_close(int event);

/* What its samples have in them. */
struct oteli_perf_format oteli_perf_format(const struct oteli_source_options *options);

/* Nanoseconds by which CLOCK_MONOTONIC is ahead here: the kernel stamps events with its own, and a
 * container may have a time namespace, where another time is told. 0, or an errno; EOPNOTSUPP: it
 * cannot be known. */
int oteli_perf_clock_offset(int64_t *offset_ns);

/* The processors that are on now, as the kernel writes them: "0-3,8,10-11". Where it does not say,
 * as many as the C library knows, of which some may be off. */
void oteli_perf_online(char text[OTELI_PERF_ONLINE_BYTES]);

/* How many events a process may have before they take the descriptors that it needs itself. */
size_t oteli_perf_budget(void);

#endif
