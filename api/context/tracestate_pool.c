/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/tracestate_pool.c - the ring of tracestates. Any thread. What a valid one is, is in
 * api/context/tracestate_text.c. */
#include "api/context/tracestate_pool.h"
#include "common/base/slot_ring.h"
#include "common/os/fork.h"
#include "common/text/text.h"

#include <string.h>

/* A reference: how often the slot was filled above its index, 12 bits each. */
enum { SLOTS = 4096, PART = 256, PARTS = SLOTS / PART, MOST_FILLED = 4095 };

struct stored_tracestate {
    uint64_t trace_id[2];
    uint32_t length;
    char text[OTELI_TRACESTATE_BYTES];
};

static uint64_t words[SLOTS];
static void *parts[PARTS];
static struct oteli_slot_ring ring = {.words = words,
                                      .parts = parts,
                                      .count = SLOTS,
                                      .a_part = PART,
                                      .slot_size = sizeof(struct stored_tracestate),
                                      .most = MOST_FILLED};

uint32_t oteli_tracestate_make(const char *text, size_t length, const uint8_t trace_id[16])
{
    char clean[OTELI_TRACESTATE_BYTES];
    uint32_t index;
    const size_t clean_length = oteli_tracestate_clean(text, length, clean);
    oteli_fork_add(oteli_tracestates_forget); /* the program may use nothing else of the API */
    struct stored_tracestate *stored = clean_length != 0 ? oteli_slot_claim(&ring, &index) : NULL;
    if (stored == NULL)
        return 0;
    memcpy(stored->trace_id, trace_id, sizeof stored->trace_id);
    memcpy(stored->text, clean, clean_length);
    stored->length = (uint32_t)clean_length;
    return (uint32_t)oteli_slot_publish(&ring, index) * SLOTS + index;
}

uint32_t oteli_tracestate_retain(uint32_t reference)
{
    return oteli_slot_hold(&ring, reference % SLOTS, reference / SLOTS) != NULL ? reference : 0;
}

void oteli_tracestate_release(uint32_t reference)
{
    oteli_slot_release(&ring, reference % SLOTS, reference / SLOTS);
}

size_t oteli_tracestate_copy(uint32_t reference, const uint8_t trace_id[16], char *text,
                             size_t size)
{
    if (size != 0)
        text[0] = '\0';
    const struct stored_tracestate *stored =
        oteli_slot_hold(&ring, reference % SLOTS, reference / SLOTS);
    if (stored == NULL)
        return 0;
    size_t length = 0;
    if (memcmp(stored->trace_id, trace_id, sizeof stored->trace_id) == 0)
        length = oteli_slice_fit(text, size, (otel_slice){stored->text, stored->length});
    oteli_tracestate_release(reference);
    return length;
}

void oteli_tracestates_forget(void)
{
    oteli_slot_ring_forget(&ring, NULL);
}

void oteli_tracestates_free(void)
{
    oteli_slot_ring_free(&ring);
}
