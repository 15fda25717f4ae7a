/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_padded.c - three designs of the queue study around a ring that is made in
 * advance and padded, with a number in every slot that says whether it is filled.
 *
 *   padded_block   the Disruptor whose worker blocks with a timeout, and is woken for every
 *                  span that finds it asleep (its "lite" form, which locks only then)
 *   padded_sleep   the Disruptor whose worker spins, then yields, then sleeps for short times,
 *                  and is never woken
 *   mpsc_batched   JCTools' MpscArrayQueue with a signal for a batch: the winner of DoorDash's
 *                  study, and what Java ships
 *
 * A producer takes a place by compare-and-swap of the head, once it knows that there is room
 * behind a limit that it looks up only when that is reached. The worker gives back all it
 * has taken at once. The Disruptor and JCTools differ in this only by name. */
#include "benchmarks/processor_rival.h"

#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { CHUNK = 64 }; /* spans that the worker takes before it gives their places back */

/* The Disruptor's own numbers. */
enum { SPINS = 100, YIELDS = 100, SLEEP_NS = 100 };

struct slot {
    _Alignas(OTELI_CACHELINE) uint64_t sequence; /* ticket + 1 once it is filled; release */
    struct processor_span span;
};
_Static_assert(sizeof(struct slot) == 128, "two cache lines");

struct padded_queue {
    struct processor_rival rival;
    struct processor_gate gate;
    pthread_mutex_t mutex; /* of padded_block, as is what follows */
    pthread_cond_t changed;
    bool is_signalled;
    _Alignas(OTELI_CACHELINE) uint64_t head;  /* of the producers */
    _Alignas(OTELI_CACHELINE) uint64_t limit; /* of the producers: head may reach it, and more */
    _Alignas(OTELI_CACHELINE) uint64_t tail;  /* of the worker; release */
    _Alignas(OTELI_CACHELINE) struct slot *slots;
};

static struct padded_queue *queue_of(struct processor_rival *rival)
{
    return (struct padded_queue *)(void *)rival;
}

static void init(struct processor_rival *rival, struct processor_thread *threads, unsigned count)
{
    struct padded_queue *queue = queue_of(rival);
    (void)threads;
    (void)count;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&queue->mutex, NULL);
    processor_gate_init(&queue->gate);
    queue->limit = PROCESSOR_QUEUE;
    queue->slots = processor_memory(PROCESSOR_QUEUE * sizeof *queue->slots);
}

static void fini(struct processor_rival *rival)
{
    struct padded_queue *queue = queue_of(rival);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->mutex);
    free(queue->slots);
}

/* --- the ring --- */

static OTELI_INLINE bool find_room(struct padded_queue *queue, uint64_t head)
{
    if (OTELI_LIKELY(head < oteli_load_relaxed_64(&queue->limit)))
        return true;
    const uint64_t limit = oteli_load_acquire_64(&queue->tail) + PROCESSOR_QUEUE;
    oteli_store_relaxed_64(&queue->limit, limit);
    return head < limit;
}

/* False: there is no room. *head is where the span is. */
static OTELI_INLINE bool put(struct padded_queue *queue, struct processor_thread *thread,
                             uint64_t *head)
{
    processor_complete(thread);
    do {
        *head = oteli_load_relaxed_64(&queue->head);
        if (!find_room(queue, *head))
            return false;
    } while (!oteli_cas_full_64(&queue->head, *head, *head + 1));
    struct slot *slot = &queue->slots[*head % PROCESSOR_QUEUE];
    slot->span = thread->span;
    oteli_store_release_64(&slot->sequence, *head + 1);
    return true;
}

static size_t take(struct processor_rival *rival)
{
    struct padded_queue *queue = queue_of(rival);
    struct processor_batch *batch = &rival->batch;
    const uint64_t tail = queue->tail;
    size_t count = 0;
    while (count < CHUNK && batch->count < PROCESSOR_BATCH) {
        const struct slot *slot = &queue->slots[(tail + count) % PROCESSOR_QUEUE];
        if (oteli_load_acquire_64(&slot->sequence) != tail + count + 1)
            break;
        batch->copies[batch->count++] = slot->span;
        count++;
    }
    if (count != 0)
        oteli_store_release_64(&queue->tail, tail + count);
    return count;
}

/* Spans whose place is taken, filled or not. Worker. */
static uint64_t size_of(const struct padded_queue *queue)
{
    return oteli_load_relaxed_64(&queue->head) - queue->tail;
}

/* --- mpsc_batched --- */

static OTELI_INLINE bool put_and_tell(struct processor_thread *thread)
{
    struct padded_queue *queue = thread->queue;
    uint64_t head;
    if (!put(queue, thread, &head))
        return false;
    if (processor_gate_is_shut(&queue->gate))
        processor_gate_tell(&queue->gate, &queue->rival,
                            head + 1 - oteli_load_relaxed_64(&queue->tail));
    return true;
}

static void wait_at_gate(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    struct padded_queue *queue = queue_of(rival);
    const uint32_t heard = processor_gate_shut(&queue->gate, needed);
    if (size_of(queue) >= needed)
        processor_rival_be_patient(rival);
    else if (!processor_is_stopping(rival))
        processor_gate_sleep(&queue->gate, heard, deadline_ns);
    processor_gate_open(&queue->gate);
}

static void wake_at_gate(struct processor_rival *rival)
{
    processor_gate_wake(&queue_of(rival)->gate);
}

/* --- padded_block --- */

static OTELI_COLD void signal_worker(struct padded_queue *queue)
{
    if (oteli_exchange_full_64(&queue->gate.needed, PROCESSOR_NEVER) == PROCESSOR_NEVER)
        return;
    pthread_mutex_lock(&queue->mutex);
    queue->is_signalled = true;
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_signal(&queue->changed);
    oteli_add_full_64(&queue->rival.signals, 1);
}

static OTELI_INLINE bool put_and_signal(struct processor_thread *thread)
{
    struct padded_queue *queue = thread->queue;
    uint64_t head;
    if (!put(queue, thread, &head))
        return false;
    if (processor_gate_is_shut(&queue->gate))
        signal_worker(queue);
    return true;
}

static void block(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    struct padded_queue *queue = queue_of(rival);
    const struct timespec deadline = {(time_t)(deadline_ns / 1000000000),
                                      (long)(deadline_ns % 1000000000)};
    (void)needed;
    pthread_mutex_lock(&queue->mutex);
    queue->is_signalled = false;
    processor_gate_shut(&queue->gate, 1);
    const bool is_empty = size_of(queue) == 0;
    while (is_empty && !queue->is_signalled && !processor_is_stopping(rival))
        if (pthread_cond_timedwait(&queue->changed, &queue->mutex, &deadline) != 0)
            break;
    processor_gate_open(&queue->gate);
    pthread_mutex_unlock(&queue->mutex);
    if (!is_empty)
        processor_rival_be_patient(rival);
}

static void unblock(struct processor_rival *rival)
{
    struct padded_queue *queue = queue_of(rival);
    pthread_mutex_lock(&queue->mutex);
    queue->is_signalled = true;
    pthread_mutex_unlock(&queue->mutex);
    pthread_cond_signal(&queue->changed);
}

/* --- padded_sleep --- */

static OTELI_INLINE bool put_only(struct processor_thread *thread)
{
    uint64_t head;
    return put(thread->queue, thread, &head);
}

static void spin_yield_sleep(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    static const struct timespec shortly = {0, SLEEP_NS};
    (void)needed;
    (void)deadline_ns;
    rival->fruitless++;
    if (rival->fruitless > SPINS + YIELDS)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &shortly, NULL);
    else if (rival->fruitless > SPINS)
        sched_yield();
    else
        oteli_stall();
}

static void wake_nobody(struct processor_rival *rival)
{
    (void)rival;
}

/* --- the three --- */

static void padded_block_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, put_and_signal);
}

static void padded_sleep_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, put_only);
}

static void mpsc_batched_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, put_and_tell);
}

static const struct processor_rules padded_block_rules = {
    .size = sizeof(struct padded_queue),
    .init = init,
    .take = take,
    .wait = block,
    .wake = unblock,
    .fini = fini,
};

static const struct processor_rules padded_sleep_rules = {
    .size = sizeof(struct padded_queue),
    .init = init,
    .take = take,
    .wait = spin_yield_sleep,
    .wake = wake_nobody,
    .fini = fini,
};

static const struct processor_rules mpsc_batched_rules = {
    .size = sizeof(struct padded_queue),
    .init = init,
    .take = take,
    .wait = wait_at_gate,
    .wake = wake_at_gate,
    .fini = fini,
};

PROCESSOR_RIVAL(padded_block, put_and_signal, "padded ring, a signal for every span");
PROCESSOR_RIVAL(padded_sleep, put_only, "padded ring, the worker spins, yields and sleeps");
PROCESSOR_RIVAL(mpsc_batched, put_and_tell, "padded ring, a signal for a batch");
