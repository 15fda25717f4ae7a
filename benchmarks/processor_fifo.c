/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/processor_fifo.c - two designs of the queue study around a lock-free list, which is
 * Java's ConcurrentLinkedQueue and here Concurrency Kit's ck_fifo_mpmc; both are the queue of
 * Michael and Scott.
 *
 *   fifo_signal   the worker is woken for every span that finds it asleep
 *   fifo_batched  it is woken when a batch is there
 *
 * The list has no bound and does not know its length, so a count beside it has both.
 *
 * Java's nodes come from an allocator that costs next to nothing and are collected later.
 * Here each thread has nodes of its own, and the worker sends them home after an export,
 * as many as there are with one atomic operation a thread. Nothing is copied on the way: a
 * batch points into the nodes. */

/* The list needs an operation on two words, which Concurrency Kit hides from analysers. */
#define CK_USE_CC_BUILTINS 0
#include "benchmarks/processor_rival.h"

#include <ck_fifo.h>
#include <stdlib.h>

enum { NODES = PROCESSOR_QUEUE + 2 * PROCESSOR_BATCH };
enum { CHUNK = 64 }; /* spans that the worker takes before it counts them */

struct node {
    _Alignas(OTELI_CACHELINE) ck_fifo_mpmc_entry_t entry;
    struct node *next; /* while it is free; the entry's own is left alone for late readers */
    struct processor_nodes *home;
    struct processor_span span;
};

/* Of one producing thread. */
struct processor_nodes {
    struct node *free; /* of the thread */
    struct node *fresh;
    size_t fresh_count;
    _Alignas(OTELI_CACHELINE) struct node *returned; /* the worker puts, the thread takes all */
    _Alignas(OTELI_CACHELINE) struct node *first;    /* of the worker: to be returned */
    struct node *last;
    struct node *memory;
};

struct fifo_queue {
    struct processor_rival rival;
    struct processor_gate gate;
    _Alignas(OTELI_CACHELINE) uint64_t size;
    _Alignas(OTELI_CACHELINE) ck_fifo_mpmc_t fifo;
    _Alignas(OTELI_CACHELINE) struct node *used[PROCESSOR_BATCH]; /* since the last export */
    size_t used_count;
    struct node stub;
    unsigned count;
    struct processor_nodes *nodes; /* of each thread */
};

static struct fifo_queue *queue_of(struct processor_rival *rival)
{
    return (struct fifo_queue *)(void *)rival;
}

static void init(struct processor_rival *rival, struct processor_thread *threads, unsigned count)
{
    struct fifo_queue *queue = queue_of(rival);
    processor_gate_init(&queue->gate);
    ck_fifo_mpmc_init(&queue->fifo, &queue->stub.entry);
    queue->count = count;
    queue->nodes = processor_memory(count * sizeof *queue->nodes);
    for (unsigned i = 0; i < count; i++) {
        struct processor_nodes *nodes = &queue->nodes[i];
        nodes->memory = processor_memory(NODES * sizeof *nodes->memory);
        nodes->fresh = nodes->memory;
        nodes->fresh_count = NODES;
        threads[i].nodes = nodes;
    }
}

static void fini(struct processor_rival *rival)
{
    struct fifo_queue *queue = queue_of(rival);
    for (unsigned i = 0; i < queue->count; i++)
        free(queue->nodes[i].memory);
    free(queue->nodes);
}

/* A free node: one that was used lately, or one never used. */
static OTELI_INLINE struct node *get_node(struct processor_nodes *nodes)
{
    if (nodes->free == NULL && OTELI_LOAD_RELAXED_PTR(&nodes->returned) != NULL) {
        void *all;
        do
            all = OTELI_LOAD_ACQUIRE_PTR(&nodes->returned);
        while (!OTELI_CAS_FULL_PTR(&nodes->returned, all, NULL));
        nodes->free = all;
    }
    struct node *node = nodes->free;
    if (node != NULL) {
        nodes->free = node->next;
        return node;
    }
    if (nodes->fresh_count == 0)
        return NULL;
    nodes->fresh_count--;
    node = nodes->fresh++;
    node->home = nodes;
    return node;
}

static OTELI_INLINE bool put(struct processor_thread *thread)
{
    struct fifo_queue *queue = thread->queue;
    processor_complete(thread);
    if (oteli_load_relaxed_64(&queue->size) >= PROCESSOR_QUEUE)
        return false;
    struct node *node = get_node(thread->nodes);
    if (node == NULL)
        return false;
    const uint64_t size = oteli_add_full_64(&queue->size, 1) + 1;
    if (size > PROCESSOR_QUEUE) {
        oteli_add_full_64(&queue->size, UINT64_MAX);
        node->next = thread->nodes->free;
        thread->nodes->free = node;
        return false;
    }
    node->span = thread->span;
    ck_fifo_mpmc_enqueue(&queue->fifo, &node->entry, node);
    processor_gate_tell(&queue->gate, &queue->rival, size);
    return true;
}

static size_t take(struct processor_rival *rival)
{
    struct fifo_queue *queue = queue_of(rival);
    struct processor_batch *batch = &rival->batch;
    size_t count = 0;
    while (count < CHUNK && batch->count < PROCESSOR_BATCH) {
        struct node *node;
        ck_fifo_mpmc_entry_t *garbage;
        if (!ck_fifo_mpmc_dequeue(&queue->fifo, &node, &garbage))
            break;
        batch->spans[batch->count++] = &node->span;
        /* The node stays in the list, without its span, until the next one is taken out.
         * Then it goes home with the batch that is being made, which comes later than its own
         * or is its own. */
        struct node *used = (struct node *)(void *)garbage;
        if (used != &queue->stub)
            queue->used[queue->used_count++] = used;
        count++;
    }
    if (count != 0)
        oteli_add_full_64(&queue->size, (uint64_t)0 - count);
    return count;
}

/* Send the nodes home. */
static void exported(struct processor_rival *rival)
{
    struct fifo_queue *queue = queue_of(rival);
    for (size_t i = 0; i < queue->used_count; i++) {
        struct node *node = queue->used[i];
        struct processor_nodes *home = node->home;
        node->next = home->first;
        if (home->first == NULL)
            home->last = node;
        home->first = node;
    }
    queue->used_count = 0;
    for (unsigned i = 0; i < queue->count; i++) {
        struct processor_nodes *home = &queue->nodes[i];
        if (home->first == NULL)
            continue;
        do
            home->last->next = OTELI_LOAD_ACQUIRE_PTR(&home->returned);
        while (!OTELI_CAS_FULL_PTR(&home->returned, home->last->next, home->first));
        home->first = NULL;
    }
}

static void wait_for(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    struct fifo_queue *queue = queue_of(rival);
    const uint32_t heard = processor_gate_shut(&queue->gate, needed);
    if (oteli_load_relaxed_64(&queue->size) >= needed)
        processor_rival_be_patient(rival);
    else if (!processor_is_stopping(rival))
        processor_gate_sleep(&queue->gate, heard, deadline_ns);
    processor_gate_open(&queue->gate);
}

static void wait_for_one(struct processor_rival *rival, uint64_t needed, uint64_t deadline_ns)
{
    (void)needed;
    wait_for(rival, 1, deadline_ns);
}

static void wake(struct processor_rival *rival)
{
    processor_gate_wake(&queue_of(rival)->gate);
}

static void fifo_signal_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, put);
}

static void fifo_batched_burst(struct processor_thread *thread, unsigned spans)
{
    processor_burst(thread, spans, processor_begin, put);
}

static const struct processor_rules fifo_signal_rules = {
    .size = sizeof(struct fifo_queue),
    .init = init,
    .take = take,
    .wait = wait_for_one,
    .wake = wake,
    .exported = exported,
    .fini = fini,
};

static const struct processor_rules fifo_batched_rules = {
    .size = sizeof(struct fifo_queue),
    .init = init,
    .take = take,
    .wait = wait_for,
    .wake = wake,
    .exported = exported,
    .fini = fini,
};

PROCESSOR_RIVAL(fifo_signal, put, "lock-free list, a signal for every span");
PROCESSOR_RIVAL(fifo_batched, put, "lock-free list, a signal for a batch");
