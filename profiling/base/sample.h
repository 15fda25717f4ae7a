/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/base/sample.h - one sample, on its way from a source (perf_source.c, signal_source.c)
 * through its labels (resolve.c) into the profile of the interval (profile_builder.h).
 *
 * Threads:  the profiler's thread. */
#ifndef OTELI_SAMPLE_H
#define OTELI_SAMPLE_H

#include <otel/thread_context.h>
#include <stddef.h>
#include <sys/types.h>

enum { OTELI_FRAMES_MAX = 127 };

/* As a source gives it; valid during the call. */
struct oteli_sample {
    uint64_t time_ns; /* CLOCK_MONOTONIC */
    uint64_t periods; /* that it stands for: 1, and those that the timer missed before it */
    pid_t thread;
    const uint64_t *frames; /* leaf first; behind it return addresses as they are on the stack */
    size_t depth;
    const void *stack; /* a copy of the bytes above the stack pointer, or NULL */
    size_t stack_size;
    uint64_t stack_address; /* where they were */
    bool has_context;       /* of the thread: */
    otel_thread_context_record context;
};

/* Where samples come from. */
struct oteli_source_options {
    uint64_t period_ns;
    uint32_t ring_bytes;   /* of a processor */
    uint32_t signal_bytes; /* the same for samples by a signal */
    uint32_t stack_bytes;  /* 0: no copies of stacks */
    uint32_t sample_bytes; /* what a deep one takes of a ring */
    int signal_number;
};
struct oteli_source_counts {
    uint64_t lost;           /* the ring was full */
    uint64_t missed_periods; /* see otel_profiler_stats */
    uint64_t processor_ns;   /* the same */
    uint64_t soon_ns;        /* wants to be drained again in this time; 0: it does not matter */
    uint64_t ring_bytes;     /* of the smallest ring; 0: they are as large as was asked for */
};
typedef void oteli_take_sample(void *state, const struct oteli_sample *sample);

struct oteli_source {
    /* Called on the profiler's thread, which is not sampled itself. An errno, or 0. Threads that
     * are there already and those that come later are sampled from then on. */
    int (*start)(const struct oteli_source_options *options, void **source);
    /* Hand out all that has been sampled up to now, look for new threads, and say what has been
     * lost since the start. */
    void (*drain)(void *source, oteli_take_sample *take, void *state,
                  struct oteli_source_counts *counts);
    void (*stop)(void *source);
    /* In a forked child: close and forget, without a word to the kernel about the parent's. */
    void (*forget)(void *source);
};
extern const struct oteli_source oteli_perf_source;
extern const struct oteli_source oteli_signal_source;

#endif
