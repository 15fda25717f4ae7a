/* SPDX-License-Identifier: Apache-2.0 */
/* api/baggage/baggage_pool.c - the places where entries of baggages lie. Any thread, lock-free.
 *
 *     small   8,192 places of 256 bytes     allocated 64 KiB at a time,
 *     medium  1,024 places of 1 KiB         when they are first needed;
 *     large     256 places of 9 KiB         5.2 MiB in all
 *
 * The places of a size are a ring (common/base/slot_ring.h). */
#include "api/baggage/baggage_pool.h"
#include "common/base/slot_ring.h"
#include "common/log.h"
#include "common/os/fork.h"

#include <string.h>

enum { SMALL = 8192, MEDIUM = 1024, LARGE = 256, SLOTS = SMALL + MEDIUM + LARGE };
enum { SMALL_PARTS = 32, MEDIUM_PARTS = 16, LARGE_PARTS = 32 };
enum { PARTS = SMALL_PARTS + MEDIUM_PARTS + LARGE_PARTS };
enum { NUMBER_SHIFT = 16 }; /* of a baggage: how often above, which slot below */

struct stored_baggage {
    uint32_t keeps; /* those of its holds that are the program's; atomic */
    uint32_t spare;
    struct oteli_baggage_entries entries;
};
_Static_assert(sizeof(struct stored_baggage) % 8 == 0 && OTELI_BAGGAGE_ROOM % 8 == 0,
               "slots are aligned");
_Static_assert(SLOTS < 1 << NUMBER_SHIFT, "a number has room for all of them");

static uint64_t words[SLOTS];
static void *parts[PARTS];

#define RING(first, places, first_part, part_count, bytes)                                      \
    {                                                                                           \
        .words = words + (first), .parts = parts + (first_part), .count = (places),             \
        .a_part = (places) / (part_count), .slot_size = (bytes), .most = UINT64_C(0xffffffffff) \
    }
static struct oteli_slot_ring rings[] = {
    RING(0, SMALL, 0, SMALL_PARTS, 256),
    RING(SMALL, MEDIUM, SMALL_PARTS, MEDIUM_PARTS, 1024),
    RING(SMALL + MEDIUM, LARGE, SMALL_PARTS + MEDIUM_PARTS, LARGE_PARTS,
         sizeof(struct stored_baggage) + OTELI_BAGGAGE_ROOM),
};
enum { RINGS = sizeof rings / sizeof rings[0] };

otel_baggage oteli_baggage_store(const struct oteli_baggage_entries *entries)
{
    const size_t size = sizeof(struct stored_baggage) + entries->length;
    struct oteli_slot_ring *ring = NULL;
    struct stored_baggage *stored = NULL;
    uint32_t index = 0;
    oteli_fork_add(oteli_baggages_forget); /* the program may use nothing else of the API */
    for (unsigned i = 0; i < RINGS && stored == NULL; i++) {
        ring = &rings[i];
        stored = size <= ring->slot_size ? oteli_slot_claim(ring, &index) : NULL;
    }
    if (stored == NULL) {
        OTELI_LOG(OTEL_LOG_WARN,
                  "the pool of baggages is full: does the program let go of those it keeps?");
        return otel_baggage_none();
    }
    memcpy(&stored->entries, entries, sizeof *entries + entries->length);
    const uint64_t number = (uint64_t)(ring->words - words) + index;
    return (otel_baggage){oteli_slot_publish(ring, index) << NUMBER_SHIFT | number};
}

/* The ring of a baggage, and its slot there; NULL: it is of none. */
static const struct oteli_slot_ring *ring_of(otel_baggage baggage, uint32_t *index)
{
    *index = (uint32_t)baggage.opaque & ((1u << NUMBER_SHIFT) - 1);
    for (unsigned i = 0; i < RINGS; i++) {
        if (*index < rings[i].count)
            return &rings[i];
        *index -= rings[i].count;
    }
    return NULL;
}

static struct stored_baggage *hold(otel_baggage baggage)
{
    uint32_t index;
    const struct oteli_slot_ring *ring = ring_of(baggage, &index);
    if (baggage.opaque == 0 || ring == NULL)
        return NULL;
    struct stored_baggage *stored = oteli_slot_hold(ring, index, baggage.opaque >> NUMBER_SHIFT);
    if (stored == NULL)
        OTELI_LOG(OTEL_LOG_WARN, "a baggage is asked for that is gone: keep those of contexts that "
                                 "wait (otel_baggage_keep)");
    return stored;
}

const struct oteli_baggage_entries *oteli_baggage_hold(otel_baggage baggage)
{
    const struct stored_baggage *stored = hold(baggage);
    return stored != NULL ? &stored->entries : NULL;
}

void oteli_baggage_release(otel_baggage baggage)
{
    uint32_t index;
    const struct oteli_slot_ring *ring = ring_of(baggage, &index);
    if (ring != NULL)
        oteli_slot_release(ring, index, baggage.opaque >> NUMBER_SHIFT);
}

/* There never are more keeps than holds: one is held first, and released last. */
otel_baggage otel_baggage_keep(otel_baggage baggage)
{
    struct stored_baggage *stored = hold(baggage);
    if (stored == NULL)
        return otel_baggage_none();
    oteli_add_full_32(&stored->keeps, 1);
    return baggage;
}

static bool take_keep(struct stored_baggage *stored)
{
    uint32_t keeps;
    do {
        keeps = oteli_load_relaxed_32(&stored->keeps);
    } while (keeps != 0 && !oteli_cas_full_32(&stored->keeps, keeps, keeps - 1));
    return keeps != 0;
}

/* A program that lets go more often than it kept takes nothing from others but their keeps: the
 * slot is held meanwhile, so it is the same baggage. */
void otel_baggage_let_go(otel_baggage baggage)
{
    struct stored_baggage *stored = hold(baggage);
    if (stored == NULL)
        return;
    if (take_keep(stored))
        oteli_baggage_release(baggage);
    oteli_baggage_release(baggage);
}

static uint32_t kept(const void *stored)
{
    return ((const struct stored_baggage *)stored)->keeps;
}

void oteli_baggages_forget(void)
{
    for (unsigned i = 0; i < RINGS; i++)
        oteli_slot_ring_forget(&rings[i], kept);
}

void oteli_baggages_free(void)
{
    for (unsigned i = 0; i < RINGS; i++)
        oteli_slot_ring_free(&rings[i]);
}
