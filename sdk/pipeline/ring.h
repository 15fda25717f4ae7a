/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/ring.h - lines on their way to the worker: many producers, one consumer.
 *
 *         tail (worker)                    head (tickets given out)
 *          v                                v
 *     ... | line | line | (claimed) | line |  free ...
 *
 * A producer takes a ticket with one atomic addition and publishes its slot on its own:
 * one that is preempted between the two delays no other producer, and the worker can look past it
 * (oteli_ring_peek). This is where ck_ring differs, whose producers publish in order and wait for
 * each other.
 *
 * The ring never is full: it has a slot for every line that can exist, and a line is in it
 * at most once. So a slot is free again long before its turn comes round.
 *
 * Source: the slots' sequence numbers are those of D. Vyukov's bounded queue, and of
 * JCTools' MpscArrayQueue, which won DoorDash's study. */
#ifndef OTELI_RING_H
#define OTELI_RING_H

#include "api/record/line.h"

struct oteli_ring_slot {
    uint64_t sequence; /* ticket + 1 once the line is there; release by the producer */
    struct oteli_line *line;
};

struct oteli_ring {
    _Alignas(OTELI_CACHELINE) uint64_t head; /* of the producers */
    _Alignas(OTELI_CACHELINE) uint64_t tail; /* of the worker */
    uint64_t mask;
    struct oteli_ring_slot *slots;
};

/* A ring for up to `lines` lines whose first ticket is `first` (0 but in tests). */
bool oteli_ring_init(struct oteli_ring *ring, uint64_t lines, uint64_t first);
void oteli_ring_fini(struct oteli_ring *ring);

/* App threads: wait-free. */
static inline void oteli_ring_put(struct oteli_ring *ring, struct oteli_line *line)
{
    const uint64_t ticket = oteli_add_full_64(&ring->head, 1);
    struct oteli_ring_slot *slot = &ring->slots[ticket & ring->mask];
    slot->line = line;
    oteli_store_release_64(&slot->sequence, ticket + 1); /* pairs with the load of peek */
}

/* Worker: how far tickets have been given out. */
static inline uint64_t oteli_ring_head(const struct oteli_ring *ring)
{
    return oteli_load_acquire_64(&ring->head);
}

/* Worker: the line of a ticket from tail to head; NULL: its producer is not done yet. */
static inline struct oteli_line *oteli_ring_peek(const struct oteli_ring *ring, uint64_t ticket)
{
    const struct oteli_ring_slot *slot = &ring->slots[ticket & ring->mask];
    return oteli_load_acquire_64(&slot->sequence) == ticket + 1 ? slot->line : NULL;
}

/* Worker: take the oldest line out; NULL: none, or its producer is not done yet. */
static inline struct oteli_line *oteli_ring_take(struct oteli_ring *ring)
{
    struct oteli_line *line = oteli_ring_peek(ring, ring->tail);
    if (line != NULL)
        ring->tail++;
    return line;
}

#endif
