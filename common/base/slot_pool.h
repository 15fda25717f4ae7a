/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/slot_pool.h - slots that are allocated in parts, when they are first needed, and keep
 * their address: an old index can be looked up without harm. Free slots are listed by their index
 * (free_list.h).
 *
 * Threads:  any; oteli_slots_free and oteli_slots_forget while no other thread uses the pool. */
#ifndef OTELI_SLOT_POOL_H
#define OTELI_SLOT_POOL_H

#include "common/base/free_list.h"

#include <stddef.h>

struct oteli_slot_pool {
    void **parts;        /* part_count, all NULL at first; filled from the first on */
    uint32_t part_count; /* constant, as those below but for the last */
    uint32_t slots_a_part;
    size_t slot_size;
    void *(*new_part)(size_t slots, size_t slot_size); /* as calloc, for free() */
    uint32_t count;                                    /* slots that were ever given out; atomic */
};

/* The part in this place, made by `new_part` when it is not there. Where two threads
 * make it one of the two is kept. NULL: no memory. */
void *oteli_part_make(void **part, void *(*new_part)(size_t slots, size_t slot_size), size_t slots,
                      size_t slot_size);

/* The index of a slot that was never given out; OTELI_NO_SLOT: there is none. */
uint32_t oteli_slot_new(struct oteli_slot_pool *pool);

/* The slot of a pool with these numbers, which callers know as constants. NULL: it is of before a
 * fork in a signal handler, from which the child went on. */
static inline void *oteli_slot_at(void *const *parts, uint32_t slots_a_part, size_t slot_size,
                                  uint32_t index)
{
    char *part = OTELI_LOAD_ACQUIRE_PTR(&parts[index / slots_a_part]);
    return part != NULL ? part + (index % slots_a_part) * slot_size : NULL;
}

/* The member of such a slot, at `offset`, that links it into a free list. Of a slot that is not
 * there: a word that is never read, so the slot is lost. */
static inline uint32_t *oteli_slot_link(void *const *parts, uint32_t slots_a_part, size_t slot_size,
                                        size_t offset, uint32_t index)
{
    static uint32_t nowhere;
    char *slot = oteli_slot_at(parts, slots_a_part, slot_size, index);
    return slot != NULL ? (uint32_t *)(void *)(slot + offset) : &nowhere;
}

/* In a forked child: there are no slots. Stores only. */
void oteli_slots_forget(struct oteli_slot_pool *pool);

/* Give all parts back, after `fini` (or NULL) of each slot. */
void oteli_slots_free(struct oteli_slot_pool *pool, void (*fini)(void *slot));

#endif
