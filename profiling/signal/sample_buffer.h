/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/sample_buffer.h - samples on their way from signal handlers to the profiler's
 * thread: a bounded ring of slots, one for each sample.
 *
 *     tail            head
 *     │ ready │ ready │ being written │ ready │ free …
 *
 * A handler reserves a slot with one compare-and-swap of `head`, and has all memory in it that it
 * needs: its own stack may be small. The reader stops at a slot that is not ready. No thread waits:
 * a sample that finds no slot is counted and gone.
 *
 * Threads:  reserve and publish any thread, also in a signal handler; all others the profiler's. */
#ifndef OTELI_SAMPLE_BUFFER_H
#define OTELI_SAMPLE_BUFFER_H

#include "common/base/atomic.h"
#include "profiling/base/sample.h"
#include "profiling/signal/frame_walk.h"

struct oteli_sample_slot {
    uint32_t is_ready; /* release by publish, acquire by the reader */
    struct oteli_sample sample;
    uint64_t frames[OTELI_FRAMES_MAX];
    uint64_t stack_top;
    struct oteli_stack_view view; /* of the stack that is being walked */
};

struct oteli_sample_buffer {
    struct oteli_sample_slot *slots;
    uint64_t count;
    __attribute__((aligned(OTELI_CACHELINE))) uint64_t head;
    uint64_t lost;
    __attribute__((aligned(OTELI_CACHELINE))) uint64_t tail;
};

/* As many slots as `bytes` have room for, but some at least; in memory that is written for the
 * first time here, so that a handler never waits for a page. False: no memory. */
bool oteli_sample_buffer_init(struct oteli_sample_buffer *buffer, size_t bytes);
void oteli_sample_buffer_fini(struct oteli_sample_buffer *buffer);

/* NULL: there is none, and the sample is lost. */
struct oteli_sample_slot *oteli_sample_buffer_reserve(struct oteli_sample_buffer *buffer);

/* Its sample is complete. */
void oteli_sample_buffer_publish(struct oteli_sample_slot *slot);

/* The oldest sample, until it is given back; NULL: there is none now. */
const struct oteli_sample *oteli_sample_buffer_oldest(const struct oteli_sample_buffer *buffer);
void oteli_sample_buffer_give_back(struct oteli_sample_buffer *buffer);

#endif
