/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_ring.c - two designs of the queue study around rings for one consumer.
 *
 *   ck_ring_batched  Concurrency Kit's ck_ring, many producers and one consumer, with a signal
 *                    for a batch. Its producers publish in order: one that is preempted
 *                    between taking its place and filling it makes all later ones spin
 *   ring_span        otel-c's ring and waker, as they carry lines, with a span in each slot
 *                    instead, and its way to bound the queue: spans are reserved first. Each
 *                    span costs three atomic additions to memory that all threads share,
 *                    which lines do once in many spans */
#include "benchmarks/processor_rival.h"
#include "sdk/pipeline/waker.h"

#include <ck_ring.h>
#include <stdlib.h>

enum { CHUNK = 64 }; /* spans that the worker takes before it says so */

/* --- ck_ring_batched --- */

CK_RING_PROTOTYPE(spans, processor_span)

struct ck_queue {
    struct processor_rival rival;
    struct processor_gate gate;
    _Alignas(OTELI_CACHELINE) ck_ring_t ring;
    _Alignas(OTELI_CACHELINE) struct processor_span *slots;
};

static struct ck_queue *ck_queue_of(struct processor_rival *rival)
{
    return (struct ck_queue *)(void *)rival;
}

static void ck_init(struct processor_rival *rival, struct processor_thread *threads, unsigned count)
{
    struct ck_queue *queue = ck_queue_of(rival);
    (void)threads;
    (void)count;
    processor_gate_init(&queue->gate);
    ck_ring_init(&queue->ring, PROCESSOR_QUEUE); /* one slot of them stays free */
    queue->slots = processor_memory(PROCESSOR_QUEUE * sizeof *queue->slots);
}

static void ck_fini(struct processor_rival *rival)
{
    free(ck_queue_of(rival)->slots);
}

static OTELI_INLINE bool ck_put(struct processor_thread *thread)
{
    struct ck_queue *queue = thread->queue;
    unsigned size;
    processor_complete(thread);
    if (!ck_ring_enqueue_mpsc_size_spans(&queue->ring, queue->slots, &thread->span, &size))
        return false;
    processor_gate_tell(&queue->gate, &queue->rival, size + UINT64_C(1));
    return true;
}

static size_t ck_take(struct processor_rival *rival)
{
    struct ck_queue *queue = ck_queue_of(rival);
    struct processor_batch *batch = &rival->batch;
    size_t count = 0;
    while (batch->count < PROCESSOR_BATCH &&
           ck_ring_dequeue_mpsc_spans(&queue->ring, queue->slots, &batch->copies[batch->count])) {
        batch->count++;
        count++;
    }
    return count;
}

static void ck_wait(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    struct ck_queue *queue = ck_queue_of(rival);
    const uint32_t heard = processor_gate_shut(&queue->gate, needed);
    /* Places that are taken: that is the atomic operation which orders a producer's enqueue
     * before its look at the gate. */
    const unsigned size = ck_pr_load_uint(&queue->ring.p_head) - queue->ring.c_head;
    if (size >= needed)
        processor_rival_be_patient(rival);
    else if (!processor_is_stopping(rival))
        processor_gate_sleep(&queue->gate, heard, deadline_ns);
    processor_gate_open(&queue->gate);
}

static void ck_wake(struct processor_rival *rival)
{
    processor_gate_wake(&ck_queue_of(rival)->gate);
}

static void ck_ring_batched_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, ck_put);
}

static const struct processor_rules ck_ring_batched_rules = {
    .size = sizeof(struct ck_queue),
    .init = ck_init,
    .take = ck_take,
    .wait = ck_wait,
    .wake = ck_wake,
    .fini = ck_fini,
};

PROCESSOR_RIVAL(ck_ring_batched, ck_put, "Concurrency Kit's ring, a signal for a batch");

/* --- ring_span --- */

struct slot {
    _Alignas(OTELI_CACHELINE) uint64_t sequence; /* ticket + 1 once it is filled; release */
    struct processor_span span;
};

struct ring_queue {
    struct processor_rival rival;
    _Alignas(OTELI_CACHELINE) uint64_t reserved;
    _Alignas(OTELI_CACHELINE) struct oteli_waker waker;
    _Alignas(OTELI_CACHELINE) uint64_t head;
    _Alignas(OTELI_CACHELINE) uint64_t tail; /* of the worker, as is what follows */
    uint32_t heard;
    struct slot *slots;
};

static struct ring_queue *ring_queue_of(struct processor_rival *rival)
{
    return (struct ring_queue *)(void *)rival;
}

static void ring_init(struct processor_rival *rival, struct processor_thread *threads,
                      unsigned count)
{
    struct ring_queue *queue = ring_queue_of(rival);
    (void)threads;
    (void)count;
    oteli_waker_init(&queue->waker);
    queue->slots = processor_memory(PROCESSOR_QUEUE * sizeof *queue->slots);
}

static void ring_fini(struct processor_rival *rival)
{
    free(ring_queue_of(rival)->slots);
}

static OTELI_INLINE bool ring_put(struct processor_thread *thread)
{
    struct ring_queue *queue = thread->queue;
    processor_complete(thread);
    if (oteli_load_relaxed_64(&queue->reserved) >= PROCESSOR_QUEUE)
        return false;
    if (oteli_add_full_64(&queue->reserved, 1) >= PROCESSOR_QUEUE) {
        oteli_add_full_64(&queue->reserved, UINT64_MAX);
        return false;
    }
    const uint64_t ticket = oteli_add_full_64(&queue->head, 1);
    struct slot *slot = &queue->slots[ticket % PROCESSOR_QUEUE];
    slot->span = thread->span;
    oteli_store_release_64(&slot->sequence, ticket + 1);
    oteli_waker_announce(&queue->waker, 1);
    return true;
}

static size_t ring_take(struct processor_rival *rival)
{
    struct ring_queue *queue = ring_queue_of(rival);
    struct processor_batch *batch = &rival->batch;
    size_t count = 0;
    queue->heard = oteli_waker_listen(&queue->waker);
    while (count < CHUNK && batch->count < PROCESSOR_BATCH) {
        const struct slot *slot = &queue->slots[queue->tail % PROCESSOR_QUEUE];
        if (oteli_load_acquire_64(&slot->sequence) != queue->tail + 1)
            break;
        batch->copies[batch->count++] = slot->span;
        queue->tail++;
        count++;
    }
    if (count != 0) {
        oteli_waker_taken(&queue->waker, count);
        oteli_add_full_64(&queue->reserved, (uint64_t)0 - count);
    }
    return count;
}

static void ring_wait(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    struct ring_queue *queue = ring_queue_of(rival);
    if (oteli_waker_waiting(&queue->waker) >= (int64_t)needed)
        processor_rival_be_patient(rival);
    else if (!processor_is_stopping(rival))
        oteli_waker_sleep(&queue->waker, queue->heard, (int64_t)needed, deadline_ns);
}

static void ring_wake(struct processor_rival *rival)
{
    oteli_waker_wake(&ring_queue_of(rival)->waker);
}

static uint64_t ring_signals(void *queue)
{
    struct ring_queue *ring = queue;
    return oteli_load_relaxed_64(&ring->waker.wakes);
}

static void ring_span_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, ring_put);
}

static const struct processor_rules ring_span_rules = {
    .size = sizeof(struct ring_queue),
    .init = ring_init,
    .take = ring_take,
    .wait = ring_wait,
    .wake = ring_wake,
    .fini = ring_fini,
};

const struct processor_design processor_ring_span = {
    .name = "ring_span",
    .about = "otel-c's ring and waker, a span at a time",
    .start = processor_rival_start,
    .burst = ring_span_burst,
    .end = ring_put,
    .worker = processor_rival_worker,
    .signals = ring_signals,
    .stop = processor_rival_stop,
    .rules = &ring_span_rules,
};
