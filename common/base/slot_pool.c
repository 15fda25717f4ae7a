/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/slot_pool.c - the contracts are in common/base/slot_pool.h. */
#include "common/base/slot_pool.h"

#include <stdlib.h>

void *oteli_part_make(void **part, void *(*new_part)(size_t slots, size_t slot_size), size_t slots,
                      size_t slot_size)
{
    void *there = OTELI_LOAD_ACQUIRE_PTR(part);
    if (there != NULL)
        return there;
    void *made = new_part(slots, slot_size);
    if (made == NULL || OTELI_CAS_FULL_PTR(part, NULL, made))
        return made;
    free(made);
    return OTELI_LOAD_ACQUIRE_PTR(part);
}

uint32_t oteli_slot_new(struct oteli_slot_pool *pool)
{
    for (;;) {
        const uint32_t index = oteli_load_acquire_32(&pool->count);
        const uint32_t part = index / pool->slots_a_part;
        if (part >= pool->part_count ||
            oteli_part_make(&pool->parts[part], pool->new_part, pool->slots_a_part,
                            pool->slot_size) == NULL)
            return OTELI_NO_SLOT;
        if (oteli_cas_full_32(&pool->count, index, index + 1))
            return index;
    }
}

void oteli_slots_forget(struct oteli_slot_pool *pool)
{
    for (uint32_t i = 0; i < pool->part_count && pool->parts[i] != NULL; i++)
        pool->parts[i] = NULL; /* the first is there before the second */
    pool->count = 0;
}

void oteli_slots_free(struct oteli_slot_pool *pool, void (*fini)(void *slot))
{
    for (uint32_t i = 0; i < pool->part_count && pool->parts[i] != NULL; i++) {
        char *part = pool->parts[i];
        for (uint32_t k = 0; fini != NULL && k < pool->slots_a_part; k++)
            fini(part + k * pool->slot_size);
        free(part);
    }
    oteli_slots_forget(pool);
}
