/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/tracestate_pool.c - the ring of tracestates. Any thread. What a valid one is, is in
 * api/context/tracestate_text.c.
 *
 * A place has one word: how often it was filled (its reference must agree), whether it is
 * being filled, and how many spans hold it. All changes are compare-and-swap of it. */
#include "api/context/tracestate_pool.h"
#include "common/base/slot_pool.h"
#include "common/os/fork.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 4096, PART = 256, PARTS = PLACES / PART, TRIES = 64 };
enum { FILLED_SHIFT = 32, FILLED_MASK = 0xfff, BEING_FILLED = 1 << 30 };

struct place {
    uint64_t word;
    uint64_t trace_id[2];
    uint32_t length;
    char text[OTELI_TRACESTATE_BYTES];
};

static void *parts[PARTS];
static uint32_t next_place;

static uint32_t reference_of(uint32_t index, uint64_t word)
{
    return (uint32_t)(word >> FILLED_SHIFT & FILLED_MASK) << 12 | index;
}

static struct place *part_of(uint32_t index, bool make)
{
    void **part = &parts[index / PART];
    if (make && OTELI_LOAD_ACQUIRE_PTR(part) == NULL)
        oteli_fork_add(oteli_tracestates_forget); /* a program may need nothing else of the API */
    return make ? oteli_part_make(part, PART, sizeof(struct place)) : OTELI_LOAD_ACQUIRE_PTR(part);
}

/* Claim the oldest place that no span holds. Its word is BEING_FILLED then. */
static struct place *claim(uint32_t *index)
{
    for (unsigned i = 0; i < TRIES; i++) {
        *index = oteli_add_full_32(&next_place, 1) % PLACES;
        struct place *part = part_of(*index, true);
        if (part == NULL)
            return NULL;
        struct place *place = &part[*index % PART];
        const uint64_t word = oteli_load_acquire_64(&place->word);
        if ((uint32_t)word != 0)
            continue;
        uint64_t filled = ((word >> FILLED_SHIFT) + 1) & FILLED_MASK;
        if (filled == 0)
            filled = 1;
        if (oteli_cas_full_64(&place->word, word, filled << FILLED_SHIFT | BEING_FILLED))
            return place;
    }
    return NULL;
}

uint32_t oteli_tracestate_make(const char *text, size_t length, const uint8_t trace_id[16])
{
    char clean[OTELI_TRACESTATE_BYTES];
    const size_t clean_length = oteli_tracestate_clean(text, length, clean);
    if (clean_length == 0)
        return 0;
    uint32_t index;
    struct place *place = claim(&index);
    if (place == NULL)
        return 0;
    memcpy(place->trace_id, trace_id, sizeof place->trace_id);
    memcpy(place->text, clean, clean_length);
    place->length = (uint32_t)clean_length;
    const uint64_t word = oteli_load_relaxed_64(&place->word) & ~(uint64_t)BEING_FILLED;
    oteli_store_release_64(&place->word, word); /* pairs with the load of hold */
    return reference_of(index, word);
}

static struct place *hold(uint32_t reference)
{
    if (reference == 0)
        return NULL;
    const uint32_t index = reference % PLACES;
    struct place *part = part_of(index, false);
    if (part == NULL)
        return NULL;
    struct place *place = &part[index % PART];
    for (;;) {
        const uint64_t word = oteli_load_acquire_64(&place->word);
        if (reference_of(index, word) != reference || (word & BEING_FILLED) != 0)
            return NULL;
        if (oteli_cas_full_64(&place->word, word, word + 1))
            return place;
    }
}

/* Nobody holds it any more where a fork was in between. */
static void let_go(struct place *place)
{
    uint64_t word;
    do {
        word = oteli_load_acquire_64(&place->word);
    } while ((uint32_t)word != 0 && !oteli_cas_full_64(&place->word, word, word - 1));
}

uint32_t oteli_tracestate_retain(uint32_t reference)
{
    return hold(reference) != NULL ? reference : 0;
}

void oteli_tracestate_release(uint32_t reference)
{
    if (reference != 0)
        let_go(&part_of(reference % PLACES, false)[reference % PART]);
}

size_t oteli_tracestate_copy(uint32_t reference, const uint8_t trace_id[16], char *text,
                             size_t size)
{
    if (size != 0)
        text[0] = '\0';
    struct place *place = hold(reference);
    if (place == NULL)
        return 0;
    size_t length = 0;
    if (memcmp(place->trace_id, trace_id, sizeof place->trace_id) == 0) {
        length = place->length;
        if (size != 0) {
            const size_t copied = length < size ? length : size - 1;
            memcpy(text, place->text, copied);
            text[copied] = '\0';
        }
    }
    let_go(place);
    return length;
}

void oteli_tracestates_forget(void)
{
    for (unsigned i = 0; i < PARTS; i++) {
        struct place *part = parts[i];
        for (unsigned k = 0; k < PART && part != NULL; k++)
            if ((uint32_t)part[k].word != 0) /* a page that is not written to is shared */
                part[k].word &= ~(uint64_t)UINT32_MAX;
    }
}

void oteli_tracestates_free(void)
{
    for (unsigned i = 0; i < PARTS; i++) {
        free(parts[i]);
        parts[i] = NULL;
    }
}
