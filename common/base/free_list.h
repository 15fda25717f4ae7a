/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/free_list.h - a stack of free slots in a table that keeps its slots.
 *
 * Slots have indexes, and each a word for the index below it. The head carries a count of
 * its changes beside the index, so that a slot which was taken and given back meanwhile is
 * noticed; a stale index can be looked at without harm because slots stay where they are.
 * Treiber's stack. Any thread. */
#ifndef OTELI_FREE_LIST_H
#define OTELI_FREE_LIST_H

#include "common/base/atomic.h"

#define OTELI_NO_SLOT UINT32_MAX

struct oteli_free_list {
    uint64_t head; /* changes in the upper half, index + 1 in the lower; 0: none */
};

/* Where slot `index` keeps what is below it. */
typedef uint32_t *oteli_free_link(uint32_t index);

static inline uint64_t oteli_free_list_next(uint64_t head, uint32_t low)
{
    return ((head >> 32) + 1) << 32 | low;
}

/* The slot that was given back last, or OTELI_NO_SLOT. */
static inline uint32_t oteli_free_list_pop(struct oteli_free_list *list, oteli_free_link *link_of)
{
    for (;;) {
        const uint64_t head = oteli_load_acquire_64(&list->head);
        if ((uint32_t)head == 0)
            return OTELI_NO_SLOT;
        const uint32_t index = (uint32_t)head - 1;
        const uint32_t below = oteli_load_relaxed_32(link_of(index));
        if (oteli_cas_full_64(&list->head, head, oteli_free_list_next(head, below)))
            return index;
    }
}

static inline void oteli_free_list_push(struct oteli_free_list *list, oteli_free_link *link_of,
                                        uint32_t index)
{
    for (;;) {
        const uint64_t head = oteli_load_acquire_64(&list->head);
        oteli_store_relaxed_32(link_of(index), (uint32_t)head);
        if (oteli_cas_full_64(&list->head, head, oteli_free_list_next(head, index + 1)))
            return;
    }
}

#endif
