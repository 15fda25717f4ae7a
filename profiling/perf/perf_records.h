/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/perf/perf_records.h - reads what the kernel writes into a ring of perf events: samples,
 * and how many there was no room for.
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
#ifndef OTELI_PERF_RECORDS_H
#define OTELI_PERF_RECORDS_H

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

#endif
