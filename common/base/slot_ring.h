/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/slot_ring.h - slots of one size that are filled again, oldest first, unless they are
 * held. What a slot was filled with is named by the slot's index and by how often the slot had been
 * filled; so an old name finds nothing, whatever happened to the slot.
 *
 * Each slot has a word, which all threads change by compare-and-swap only:
 *
 *     bit 24-63  how often it was filled
 *     bit 23     it is being filled, by one thread
 *     bit  0-22  how many hold it; once that is full, it is held for ever
 *
 * Words are static. Slots are allocated in parts, when they are first needed, and are touched only
 * by threads that hold them or fill them.
 *
 * Threads:  any, lock-free; oteli_slot_ring_free when no other thread uses the ring. */
#ifndef OTELI_SLOT_RING_H
#define OTELI_SLOT_RING_H

#include "common/base/atomic.h"
#include <stddef.h>

struct oteli_slot_ring {
    uint64_t *words;  /* `count` zeros at first */
    void **parts;     /* NULL at first */
    uint32_t count;   /* of slots: a power of two */
    uint32_t a_part;  /* slots in a part */
    size_t slot_size; /* constant, as all of the above */
    uint64_t most;    /* how often a slot can be filled before its count begins again with 1 */
    uint32_t next;    /* monotonic cursor, taken modulo `count`; atomic */
};

/* Take the oldest slot that is not held, to be filled. NULL: all are held, or no memory. */
void *oteli_slot_claim(struct oteli_slot_ring *ring, uint32_t *index);

/* It is filled and can be held from now on. Returns how often it was, which is never 0. */
uint64_t oteli_slot_publish(struct oteli_slot_ring *ring, uint32_t index);

/* Hold a slot; NULL: it has been filled again, or was never filled. Each hold needs a release. */
void *oteli_slot_hold(const struct oteli_slot_ring *ring, uint32_t index, uint64_t filled);

/* Does nothing for a hold that a fork has undone. */
void oteli_slot_release(const struct oteli_slot_ring *ring, uint32_t index, uint64_t filled);

/* In a forked child: no thread fills or holds a slot, but for as many holds as `kept` (or NULL)
 * says of it. Stores only. */
void oteli_slot_ring_forget(struct oteli_slot_ring *ring, uint32_t (*kept)(const void *slot));

/* Give parts back of which no slot is held. */
void oteli_slot_ring_free(struct oteli_slot_ring *ring);

#endif
