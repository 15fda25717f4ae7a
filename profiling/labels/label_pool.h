/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/labels/label_pool.h - the trampolines that are free, in the order in which they became
 * so.
 *
 *     head                          tail
 *      v                             v
 *     ... | index | index | index |  free slots ...        all of them are in it at first
 *
 * First in, first out: the one that is taken has been idle for longest. A slot is one word, its
 * ticket and the index, so that a taker reads both at once, and what it has read is right if head
 * has not moved when it takes the ticket. A giver takes its ticket with one atomic addition: there
 * is a slot for every index that can come back. One that is preempted between the two delays those
 * only who have taken everything before it; they find the pool empty.
 *
 * Memory that is zero is a full pool.
 *
 * Threads:  any; oteli_label_pool_rebuild when there is only one. */
#ifndef OTELI_LABEL_POOL_H
#define OTELI_LABEL_POOL_H

#include "common/base/atomic.h"
#include "profiling/labels/trampolines.h"

enum { OTELI_LABEL_POOL_SHIFT = 10 };
_Static_assert(1 << OTELI_LABEL_POOL_SHIFT == OTELI_TRAMPOLINES, "an index is the low bits");
#define OTELI_LABEL_POOL_NOTHING UINT64_MAX

struct oteli_label_pool {
    _Alignas(OTELI_CACHELINE) uint64_t head;
    _Alignas(OTELI_CACHELINE) uint64_t given; /* tail, less those that were there at first */
    /* (ticket + 1) << shift | index; zero in the first round: index == ticket. Release by the
     * giver, acquire by takers */
    _Alignas(OTELI_CACHELINE) uint64_t slots[OTELI_TRAMPOLINES];
};

/* The index that a slot has for a ticket; OTELI_NO_TRAMPOLINE: it has not been given yet. */
static inline int oteli_label_pool_index(uint64_t word, uint64_t ticket)
{
    if (word == 0 && ticket < OTELI_TRAMPOLINES)
        return (int)ticket;
    return word >> OTELI_LABEL_POOL_SHIFT == ticket + 1 ? (int)(word % OTELI_TRAMPOLINES)
                                                        : OTELI_NO_TRAMPOLINE;
}

/* OTELI_NO_TRAMPOLINE: all are in use. */
static inline int oteli_label_pool_take(struct oteli_label_pool *pool)
{
    for (;;) {
        const uint64_t head = oteli_load_acquire_64(&pool->head);
        const uint64_t word = oteli_load_acquire_64(&pool->slots[head % OTELI_TRAMPOLINES]);
        const int index = oteli_label_pool_index(word, head);
        if (index == OTELI_NO_TRAMPOLINE) {
            if (oteli_load_acquire_64(&pool->head) == head)
                return OTELI_NO_TRAMPOLINE;
        } else if (oteli_cas_full_64(&pool->head, head, head + 1)) {
            return index;
        }
    }
}

static inline void oteli_label_pool_give(struct oteli_label_pool *pool, unsigned index)
{
    const uint64_t ticket = oteli_add_full_64(&pool->given, 1) + OTELI_TRAMPOLINES;
    oteli_store_release_64(&pool->slots[ticket % OTELI_TRAMPOLINES],
                           (ticket + 1) << OTELI_LABEL_POOL_SHIFT | index);
}

/* Put in those that `is_free` says, and no others. */
static inline void oteli_label_pool_rebuild(struct oteli_label_pool *pool,
                                            bool (*is_free)(unsigned index))
{
    uint64_t count = 0;
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++)
        if (is_free(i)) {
            pool->slots[count] = (count + 1) << OTELI_LABEL_POOL_SHIFT | i;
            count++;
        }
    pool->head = 0;
    pool->given = count - OTELI_TRAMPOLINES;
    while (count < OTELI_TRAMPOLINES)
        pool->slots[count++] = OTELI_LABEL_POOL_NOTHING;
}

#endif
