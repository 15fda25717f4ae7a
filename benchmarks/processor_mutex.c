/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_mutex.c - two designs of the queue study around a ring under a mutex,
 * which is Java's ArrayBlockingQueue.
 *
 *   mutex_signal   the worker is woken for every span that finds it asleep: how Java's
 *                  processor began, and what DoorDash's study starts from
 *   mutex_batched  it is woken when a batch is there
 *
 * Better than the original: signals are given after unlocking, only to a worker that
 * waits, and the worker takes many spans under one lock. */
#include "benchmarks/processor_rival.h"

#include <stdlib.h>
#include <time.h>

enum { CHUNK = 64 }; /* spans the worker takes before it lets producers in */

struct mutex_queue {
    struct processor_rival rival;
    _Alignas(OTELI_CACHELINE) pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t needed; /* under the mutex, as are all here */
    uint64_t head;
    uint64_t tail;
    bool is_woken; /* for the end */
    struct processor_span *slots;
};

static struct mutex_queue *queue_of(struct processor_rival *rival)
{
    return (struct mutex_queue *)(void *)rival;
}

static void init(struct processor_rival *rival, struct processor_thread *threads, unsigned count)
{
    struct mutex_queue *queue = queue_of(rival);
    (void)threads;
    (void)count;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&queue->mutex, NULL);
    queue->needed = PROCESSOR_NEVER;
    queue->slots = processor_memory(PROCESSOR_QUEUE * sizeof *queue->slots);
}

static void fini(struct processor_rival *rival)
{
    struct mutex_queue *queue = queue_of(rival);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue->slots);
}

static OTELI_INLINE bool put(struct processor_thread *thread)
{
    struct mutex_queue *queue = thread->queue;
    processor_complete(thread);
    pthread_mutex_lock(&queue->mutex);
    const uint64_t size = queue->head - queue->tail;
    const bool has_room = size < PROCESSOR_QUEUE;
    bool is_signal = false;
    if (has_room) {
        queue->slots[queue->head++ % PROCESSOR_QUEUE] = thread->span;
        is_signal = size + 1 >= queue->needed;
        if (is_signal)
            queue->needed = PROCESSOR_NEVER;
    }
    pthread_mutex_unlock(&queue->mutex);
    if (is_signal) {
        pthread_cond_signal(&queue->changed);
        oteli_add_full_64(&queue->rival.signals, 1);
    }
    return has_room;
}

static size_t take(struct processor_rival *rival)
{
    struct mutex_queue *queue = queue_of(rival);
    struct processor_batch *batch = &rival->batch;
    size_t count = PROCESSOR_BATCH - batch->count;
    if (count > CHUNK)
        count = CHUNK;
    pthread_mutex_lock(&queue->mutex);
    const uint64_t size = queue->head - queue->tail;
    if (count > size)
        count = size;
    for (size_t i = 0; i < count; i++)
        batch->copies[batch->count++] = queue->slots[queue->tail++ % PROCESSOR_QUEUE];
    pthread_mutex_unlock(&queue->mutex);
    return count;
}

static void wait_for(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    struct mutex_queue *queue = queue_of(rival);
    const struct timespec deadline = {(time_t)(deadline_ns / 1000000000),
                                      (long)(deadline_ns % 1000000000)};
    pthread_mutex_lock(&queue->mutex);
    queue->needed = needed;
    while (queue->head - queue->tail < needed && queue->needed == needed && !queue->is_woken)
        if (pthread_cond_timedwait(&queue->changed, &queue->mutex, &deadline) != 0)
            break;
    queue->needed = PROCESSOR_NEVER;
    pthread_mutex_unlock(&queue->mutex);
}

static void wait_for_one(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    (void)needed;
    wait_for(rival, 1, deadline_ns);
}

static void wake(struct processor_rival *rival)
{
    struct mutex_queue *queue = queue_of(rival);
    pthread_mutex_lock(&queue->mutex);
    queue->is_woken = true;
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_signal(&queue->changed);
}

static void mutex_signal_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, put);
}

static void mutex_batched_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, put);
}

static const struct processor_rules mutex_signal_rules = {
    .size = sizeof(struct mutex_queue),
    .init = init,
    .take = take,
    .wait = wait_for_one,
    .wake = wake,
    .fini = fini,
};

static const struct processor_rules mutex_batched_rules = {
    .size = sizeof(struct mutex_queue),
    .init = init,
    .take = take,
    .wait = wait_for,
    .wake = wake,
    .fini = fini,
};

PROCESSOR_RIVAL(mutex_signal, put, "ring under a mutex, a signal for every span");
PROCESSOR_RIVAL(mutex_batched, put, "ring under a mutex, a signal for a batch");
