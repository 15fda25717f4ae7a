/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/sink.h - a receiver that costs as little as a receiver can: a process of its
 * own on loopback that answers every POST with 200 and looks at nothing but its length.
 *
 * The body is thrown away inside the kernel. So what is measured is the sender, and the
 * sink's own CPU time is not in its figures. One connection after the other. */
#ifndef OTELI_BENCH_SINK_H
#define OTELI_BENCH_SINK_H

#include <stdint.h>
#include <sys/types.h>

/* Shared with the sink's process, which writes them before it answers. */
struct bench_sink_counts {
    uint64_t requests;
    uint64_t bytes; /* of bodies */
};

struct bench_sink {
    pid_t process;
    char url[64];
    volatile struct bench_sink_counts *counts;
};

/* Start it; fails the benchmark when it cannot. Ends by bench_sink_stop, or with us. */
void bench_sink_start(struct bench_sink *sink);
void bench_sink_stop(struct bench_sink *sink);

#endif
