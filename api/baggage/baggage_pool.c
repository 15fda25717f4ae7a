/* SPDX-License-Identifier: Apache-2.0 */
/* api/baggage/baggage_pool.c - the places where entries of baggages lie. Any thread, lock-free.
 *
 *     small   8,192 places of 256 bytes     allocated 64 KiB at a time,
 *     medium  1,024 places of 1 KiB         when they are first needed;
 *     large     256 places of 9 KiB         5.2 MiB in all
 *
 * The places of a size are a ring: one that nobody holds is filled again, oldest first. Each has
 * a word, which all threads change by compare-and-swap only:
 *
 *     bit 24-63  how often it was filled; a baggage's number has to agree
 *     bit 23     it is being filled, by one thread
 *     bit  0-22  how many hold it; once that is full, it is held for ever
 *
 * Words are static, and entries are touched by those only who hold the place or are filling it.
 * So a number that is old finds that it is, whatever happened to the place. */
#include "api/baggage/baggage_pool.h"
#include "common/base/slot_pool.h"
#include "common/log.h"
#include "common/os/fork.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL = 8192, MEDIUM = 1024, LARGE = 256, PLACES = SMALL + MEDIUM + LARGE };
enum { SMALL_PARTS = 32, MEDIUM_PARTS = 16, LARGE_PARTS = 32 };
enum { PARTS = SMALL_PARTS + MEDIUM_PARTS + LARGE_PARTS };
enum { FILLED_SHIFT = 24, BEING_FILLED = 1 << 23, MOST_HOLD = BEING_FILLED - 1 };
enum { IN_USE = BEING_FILLED | MOST_HOLD };
enum { NUMBER_SHIFT = 16 }; /* of a baggage: how often above, which place below */

struct place {
    uint32_t keeps; /* those of its holds that are the program's; atomic */
    uint32_t spare;
    struct oteli_baggage_entries entries;
};

static const struct ring {
    uint32_t first; /* place */
    uint32_t count; /* of places: a power of two */
    uint32_t size;  /* of a place */
    uint32_t first_part;
    uint32_t per_part; /* places */
} rings[] = {
    {0, SMALL, 256, 0, SMALL / SMALL_PARTS},
    {SMALL, MEDIUM, 1024, SMALL_PARTS, MEDIUM / MEDIUM_PARTS},
    {SMALL + MEDIUM, LARGE, sizeof(struct place) + OTELI_BAGGAGE_ROOM, SMALL_PARTS + MEDIUM_PARTS,
     LARGE / LARGE_PARTS},
};
enum { RINGS = sizeof rings / sizeof rings[0] };
_Static_assert(sizeof(struct place) % 8 == 0 && OTELI_BAGGAGE_ROOM % 8 == 0, "places are aligned");
_Static_assert(PLACES < 1 << NUMBER_SHIFT, "a number has room for all of them");

static uint64_t words[PLACES];
static uint32_t next[RINGS]; /* where each ring goes on; it counts on and on */
static void *parts[PARTS];

static const struct ring *ring_of(uint32_t index)
{
    const struct ring *ring = &rings[RINGS - 1];
    while (index < ring->first)
        ring--;
    return ring;
}

static uint8_t *part_of(const struct ring *ring, uint32_t index, bool make)
{
    void **part = &parts[ring->first_part + (index - ring->first) / ring->per_part];
    if (make && OTELI_LOAD_ACQUIRE_PTR(part) == NULL)
        oteli_fork_add(oteli_baggages_forget); /* a program may need nothing else of the API */
    return make ? oteli_part_make(part, ring->per_part, ring->size) : OTELI_LOAD_ACQUIRE_PTR(part);
}

static struct place *place_at(uint32_t index, bool make)
{
    const struct ring *ring = ring_of(index);
    uint8_t *part = part_of(ring, index, make);
    if (part == NULL)
        return NULL;
    const size_t offset = (size_t)((index - ring->first) % ring->per_part) * ring->size;
    return (struct place *)(void *)(part + offset);
}

/* The oldest place of a ring that nobody holds, passing by those that are held; its word is
 * BEING_FILLED then. The word is read before the place is looked for, so that a place which is
 * freed meanwhile is noticed. */
static struct place *claim(const struct ring *ring, uint32_t *index)
{
    uint32_t *const at = &next[ring - rings];
    for (;;) {
        const uint32_t from = oteli_load_acquire_32(at);
        uint32_t passed = 0;
        uint64_t word;
        do {
            *index = ring->first + (from + passed) % ring->count;
            word = oteli_load_acquire_64(&words[*index]);
        } while ((word & IN_USE) != 0 && ++passed < ring->count);
        if (passed == ring->count)
            return NULL;
        if (!oteli_cas_full_32(at, from, from + passed + 1))
            continue;
        struct place *place = place_at(*index, true);
        if (place == NULL)
            return NULL;
        const uint64_t filled = (word >> FILLED_SHIFT) + 1;
        if (oteli_cas_full_64(&words[*index], word, filled << FILLED_SHIFT | BEING_FILLED))
            return place;
    }
}

otel_baggage oteli_baggage_store(const struct oteli_baggage_entries *entries)
{
    const size_t size = sizeof(struct place) + entries->length;
    uint32_t index = 0;
    struct place *place = NULL;
    for (const struct ring *ring = rings; ring < rings + RINGS && place == NULL; ring++)
        if (size <= ring->size)
            place = claim(ring, &index);
    if (place == NULL) {
        OTELI_LOG(OTEL_LOG_WARN,
                  "there is no place for a baggage: are those that are kept let go?");
        return otel_baggage_none();
    }
    memcpy(&place->entries, entries, sizeof *entries + entries->length);
    const uint64_t word = oteli_load_relaxed_64(&words[index]) & ~(uint64_t)BEING_FILLED;
    oteli_store_release_64(&words[index], word); /* pairs with the load of hold */
    return (otel_baggage){word >> FILLED_SHIFT << NUMBER_SHIFT | index};
}

static bool is_of(uint64_t word, otel_baggage baggage)
{
    return word >> FILLED_SHIFT == baggage.opaque >> NUMBER_SHIFT && (word & BEING_FILLED) == 0;
}

static uint32_t index_of(otel_baggage baggage)
{
    return (uint32_t)baggage.opaque & ((1u << NUMBER_SHIFT) - 1);
}

static struct place *hold(otel_baggage baggage)
{
    const uint32_t index = index_of(baggage);
    if (baggage.opaque == 0 || index >= PLACES)
        return NULL;
    for (;;) {
        const uint64_t word = oteli_load_acquire_64(&words[index]);
        if (!is_of(word, baggage)) {
            OTELI_LOG(OTEL_LOG_WARN,
                      "a baggage is asked for that is gone: keep those of contexts that "
                      "wait (otel_baggage_keep)");
            return NULL;
        }
        struct place *place = place_at(index, false);
        if (place == NULL)
            return NULL;
        if ((word & MOST_HOLD) == MOST_HOLD || oteli_cas_full_64(&words[index], word, word + 1))
            return place;
    }
}

const struct oteli_baggage_entries *oteli_baggage_hold(otel_baggage baggage)
{
    const struct place *place = hold(baggage);
    return place != NULL ? &place->entries : NULL;
}

/* Nobody holds it any more where a fork was in between. */
void oteli_baggage_release(otel_baggage baggage)
{
    const uint32_t index = index_of(baggage);
    uint64_t word;
    if (baggage.opaque == 0 || index >= PLACES)
        return;
    do {
        word = oteli_load_acquire_64(&words[index]);
        const uint64_t holds = word & MOST_HOLD;
        if (!is_of(word, baggage) || holds == 0 || holds == MOST_HOLD)
            return;
    } while (!oteli_cas_full_64(&words[index], word, word - 1));
}

/* There never are more keeps than holds: one is held first, and released last. */
otel_baggage otel_baggage_keep(otel_baggage baggage)
{
    struct place *place = hold(baggage);
    if (place == NULL)
        return otel_baggage_none();
    oteli_add_full_32(&place->keeps, 1);
    return baggage;
}

static bool take_keep(struct place *place)
{
    uint32_t keeps;
    do {
        keeps = oteli_load_relaxed_32(&place->keeps);
    } while (keeps != 0 && !oteli_cas_full_32(&place->keeps, keeps, keeps - 1));
    return keeps != 0;
}

/* Whoever lets go more often than it kept takes nothing from others but their keeps: the place
 * is held meanwhile, so it is the same baggage. */
void otel_baggage_let_go(otel_baggage baggage)
{
    struct place *place = hold(baggage);
    if (place == NULL)
        return;
    if (take_keep(place))
        oteli_baggage_release(baggage);
    oteli_baggage_release(baggage);
}

void oteli_baggages_forget(void)
{
    for (uint32_t index = 0; index < PLACES; index++) {
        const uint64_t word = words[index];
        if ((word & IN_USE) == 0)
            continue; /* a page that is not written to is shared */
        const struct place *place = place_at(index, false);
        const uint64_t keeps = place != NULL ? place->keeps : 0;
        words[index] = (word & ~(uint64_t)IN_USE) | (keeps < MOST_HOLD ? keeps : MOST_HOLD);
    }
}

/* Close the places of a part to others. False: some are held, and it is left as it is. */
static bool close_all(uint32_t first, uint32_t count)
{
    uint32_t closed = 0;
    for (; closed < count; closed++) {
        const uint64_t word = oteli_load_acquire_64(&words[first + closed]);
        const uint64_t filled = (word >> FILLED_SHIFT) + 1;
        if ((word & IN_USE) != 0 ||
            !oteli_cas_full_64(&words[first + closed], word, filled << FILLED_SHIFT | BEING_FILLED))
            break;
    }
    if (closed == count)
        return true;
    while (closed-- > 0)
        oteli_store_release_64(&words[first + closed],
                               words[first + closed] & ~(uint64_t)BEING_FILLED);
    return false;
}

void oteli_baggages_free(void)
{
    for (const struct ring *ring = rings; ring < rings + RINGS; ring++) {
        for (uint32_t at = ring->first; at < ring->first + ring->count; at += ring->per_part) {
            uint8_t *part = part_of(ring, at, false);
            if (part == NULL || !close_all(at, ring->per_part))
                continue;
            OTELI_STORE_RELEASE_PTR(&parts[ring->first_part + (at - ring->first) / ring->per_part],
                                    NULL);
            free(part);
            for (uint32_t i = 0; i < ring->per_part; i++) /* pairs with the load of claim */
                oteli_store_release_64(&words[at + i], words[at + i] & ~(uint64_t)BEING_FILLED);
        }
    }
}
