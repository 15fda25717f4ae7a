/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/ring.c - the memory of the ring. Start/stop only. */
#include "sdk/pipeline/ring.h"

#include <stdlib.h>
#include <string.h>

bool oteli_ring_init(struct oteli_ring *ring, uint64_t lines, uint64_t first)
{
    uint64_t capacity = 64;
    while (capacity < lines)
        capacity *= 2;
    ring->slots = calloc(capacity, sizeof *ring->slots);
    if (ring->slots == NULL)
        return false;
    ring->mask = capacity - 1;
    ring->head = first;
    ring->tail = first;
    /* No slot may look published before its turn: a sequence is its ticket + 1. The zeros are
     * right for the first tickets, and memory that was never touched costs nothing. */
    for (uint64_t i = 0; first != 0 && i < capacity; i++)
        ring->slots[i].sequence = first - capacity;
    return true;
}

void oteli_ring_fini(struct oteli_ring *ring)
{
    free(ring->slots);
    ring->slots = NULL;
}
