/* SPDX-License-Identifier: Apache-2.0 */
/* tests/stress/seeded_race.c - would ThreadSanitizer notice if an ordering of the ring were
 * missing? A copy of oteli_ring_put that publishes without release must be reported; that the ring
 * as it is must not be is shown by all other programs here. */
#include "sdk/pipeline/ring.h"

#include <pthread.h>
#include <sched.h>

enum { PUTS = 2000 };

static struct oteli_ring ring;
static uint32_t taken; /* atomic */

static void put_without_release(struct oteli_line *line)
{
    const uint64_t ticket = oteli_add_full_64(&ring.head, 1);
    struct oteli_ring_slot *slot = &ring.slots[ticket & ring.mask];
    slot->line = line;
    oteli_store_relaxed_64(&slot->sequence, ticket + 1);
}

static void *produce(void *argument)
{
    struct oteli_line *line = argument;
    for (uint32_t i = 0; i < PUTS; i++) {
        while (oteli_load_acquire_32(&taken) != i)
            sched_yield();
        line->index = i;
        put_without_release(line);
    }
    return NULL;
}

int main(void)
{
    static struct oteli_line line;
    pthread_t producer;
    if (!oteli_ring_init(&ring, 1, 0) || pthread_create(&producer, NULL, produce, &line) != 0)
        return 1;
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < PUTS; i++) {
        const struct oteli_line *found;
        while ((found = oteli_ring_take(&ring)) == NULL)
            sched_yield();
        wrong += found->index != i;
        oteli_store_release_32(&taken, i + 1);
    }
    pthread_join(producer, NULL);
    oteli_ring_fini(&ring);
    return wrong != 0;
}
