/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/signal/sample_buffer.h - samples on their way from signal handlers to the profiler's
 * thread: a bounded ring of 64-bit words, in which each sample takes as many as it needs.
 *
 *     0              tail          head
 *     │ ......free   │ 5 a b c d   │ free....... │      a sample's first word is its length
 *
 * A writer reserves words with one compare-and-swap of `head`, fills them in, and stores the length
 * last; the reader stops at a length that is not there yet. It makes words zero before it gives
 * them back, so that what is reserved next has no length. No thread waits: a sample that finds no
 * room is counted and gone.
 *
 * Threads:  reserve, put and publish any thread, also in a signal handler; take the profiler's. */
#ifndef OTELI_SAMPLE_BUFFER_H
#define OTELI_SAMPLE_BUFFER_H

#include "common/base/atomic.h"
#include <stddef.h>

struct oteli_sample_buffer {
    uint64_t *words;
    uint64_t mask;
    __attribute__((aligned(OTELI_CACHELINE))) uint64_t head;
    uint64_t lost;
    __attribute__((aligned(OTELI_CACHELINE))) uint64_t tail;
};

/* At least `bytes`, of zeros; in memory that is written for the first time here, so that a handler
 * never waits for a page. False: no memory. */
bool oteli_sample_buffer_init(struct oteli_sample_buffer *buffer, size_t bytes);
void oteli_sample_buffer_fini(struct oteli_sample_buffer *buffer);

/* Room for `count` words behind the length. False: there is none, and the sample is lost. */
bool oteli_sample_buffer_reserve(struct oteli_sample_buffer *buffer, uint32_t count, uint64_t *at);

static inline void oteli_sample_buffer_put(struct oteli_sample_buffer *buffer, uint64_t at,
                                           uint32_t index, uint64_t word)
{
    buffer->words[(at + 1 + index) & buffer->mask] = word;
}

/* It is complete. */
void oteli_sample_buffer_publish(struct oteli_sample_buffer *buffer, uint64_t at, uint32_t count);

/* The oldest one, of which at most `most` words go to `words`; 0: there is none now. */
uint32_t oteli_sample_buffer_take(struct oteli_sample_buffer *buffer, uint64_t *words,
                                  uint32_t most);

#endif
