/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/slot_ring.c - the contracts are in common/base/slot_ring.h. */
#include "common/base/slot_ring.h"
#include "common/base/alloc.h"
#include "common/base/slot_pool.h"

#include <stdlib.h>

enum { FILLED_SHIFT = 24, BEING_FILLED = 1 << 23, MOST_HOLD = BEING_FILLED - 1 };
enum { IN_USE = BEING_FILLED | MOST_HOLD };

static void *slot_at(const struct oteli_slot_ring *ring, uint32_t index)
{
    return oteli_slot_at(ring->parts, ring->a_part, ring->slot_size, index);
}

static uint64_t being_filled(const struct oteli_slot_ring *ring, uint64_t word)
{
    return ((word >> FILLED_SHIFT) % ring->most + 1) << FILLED_SHIFT | BEING_FILLED;
}

/* The word is read before the slot is looked for, so that a part which is freed meanwhile is
 * noticed. */
void *oteli_slot_claim(struct oteli_slot_ring *ring, uint32_t *index)
{
    for (;;) {
        const uint32_t from = oteli_load_acquire_32(&ring->next);
        uint32_t passed = 0;
        uint64_t word;
        do {
            *index = (from + passed) % ring->count;
            word = oteli_load_acquire_64(&ring->words[*index]);
        } while ((word & IN_USE) != 0 && ++passed < ring->count);
        if (passed == ring->count)
            return NULL;
        if (!oteli_cas_full_32(&ring->next, from, from + passed + 1))
            continue;
        if (oteli_part_make(&ring->parts[*index / ring->a_part], oteli_calloc, ring->a_part,
                            ring->slot_size) == NULL)
            return NULL;
        if (oteli_cas_full_64(&ring->words[*index], word, being_filled(ring, word)))
            return slot_at(ring, *index);
    }
}

uint64_t oteli_slot_publish(struct oteli_slot_ring *ring, uint32_t index)
{
    const uint64_t word = oteli_load_relaxed_64(&ring->words[index]) & ~(uint64_t)BEING_FILLED;
    oteli_store_release_64(&ring->words[index], word); /* pairs with the load of hold */
    return word >> FILLED_SHIFT;
}

static bool is_of(uint64_t word, uint64_t filled)
{
    return word >> FILLED_SHIFT == filled && (word & BEING_FILLED) == 0;
}

void *oteli_slot_hold(const struct oteli_slot_ring *ring, uint32_t index, uint64_t filled)
{
    for (;;) {
        const uint64_t word = oteli_load_acquire_64(&ring->words[index]);
        void *slot = filled != 0 && is_of(word, filled) ? slot_at(ring, index) : NULL;
        if (slot == NULL || (word & MOST_HOLD) == MOST_HOLD ||
            oteli_cas_full_64(&ring->words[index], word, word + 1))
            return slot;
    }
}

void oteli_slot_release(const struct oteli_slot_ring *ring, uint32_t index, uint64_t filled)
{
    uint64_t word;
    do {
        word = oteli_load_acquire_64(&ring->words[index]);
        const uint64_t holds = word & MOST_HOLD;
        if (!is_of(word, filled) || holds == 0 || holds == MOST_HOLD)
            return;
    } while (!oteli_cas_full_64(&ring->words[index], word, word - 1));
}

void oteli_slot_ring_forget(struct oteli_slot_ring *ring, uint32_t (*kept)(const void *slot))
{
    for (uint32_t index = 0; index < ring->count; index++) {
        const uint64_t word = ring->words[index];
        if ((word & IN_USE) == 0)
            continue; /* a page that is not written to is shared */
        const void *slot = kept != NULL ? slot_at(ring, index) : NULL;
        const uint64_t holds = slot != NULL ? kept(slot) : 0;
        ring->words[index] =
            (word & ~(uint64_t)IN_USE) | (holds < MOST_HOLD ? holds : (uint64_t)MOST_HOLD);
    }
}

/* Keep others out of a part's slots from `first` on. False: some are held, and nothing changed. */
static bool close_part(struct oteli_slot_ring *ring, uint32_t first)
{
    uint32_t closed = 0;
    for (; closed < ring->a_part; closed++) {
        const uint64_t word = oteli_load_acquire_64(&ring->words[first + closed]);
        if ((word & IN_USE) != 0 ||
            !oteli_cas_full_64(&ring->words[first + closed], word, being_filled(ring, word)))
            break;
    }
    if (closed == ring->a_part)
        return true;
    while (closed-- > 0)
        (void)oteli_slot_publish(ring, first + closed);
    return false;
}

void oteli_slot_ring_free(struct oteli_slot_ring *ring)
{
    for (uint32_t i = 0; i * ring->a_part < ring->count; i++) {
        const uint32_t first = i * ring->a_part;
        void **const part = &ring->parts[i];
        void *const memory = *part;
        if (memory == NULL || !close_part(ring, first))
            continue;
        OTELI_STORE_RELEASE_PTR(part, NULL);
        free(memory);
        for (uint32_t k = 0; k < ring->a_part; k++) /* pairs with the load of claim */
            (void)oteli_slot_publish(ring, first + k);
    }
}
