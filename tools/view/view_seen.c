/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_seen.c - which spans have been here already.
 *
 * Runs on otel-view's only thread; owns the two tables. */
#include "tools/view/view_seen.h"

#include "common/base/random.h"
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 * VIEW_SEEN_GENERATION };

bool view_seen_init(struct view_seen *seen)
{
    struct oteli_random random;
    *seen = (struct view_seen){0};
    if (!oteli_random_seed(&random))
        return false;
    seen->seed = oteli_random_next(&random);
    seen->young = calloc(SLOTS, sizeof *seen->young);
    seen->old = calloc(SLOTS, sizeof *seen->old);
    if (seen->young != NULL && seen->old != NULL)
        return true;
    view_seen_fini(seen);
    return false;
}

void view_seen_fini(struct view_seen *seen)
{
    free(seen->young);
    free(seen->old);
    *seen = (struct view_seen){0};
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 32) * UINT64_C(0xd6e8feb86659fd93);
    value = (value ^ value >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return value ^ value >> 32;
}

/* Where the id stands in a table, or the free slot where it would. */
static struct view_seen_id *slot_of(struct view_seen_id *table, uint64_t seed,
                                    const struct view_seen_id *id)
{
    static const struct view_seen_id none;
    uint64_t words[3];
    memcpy(words, id->bytes, sizeof words);
    size_t i = (size_t)mix(mix(mix(words[0] ^ seed) + words[1]) + words[2]) % SLOTS;
    while (memcmp(&table[i], id, sizeof *id) != 0 && memcmp(&table[i], &none, sizeof none) != 0)
        i = (i + 1) % SLOTS;
    return &table[i];
}

bool view_seen_again(struct view_seen *seen, const uint8_t *trace_id, const uint8_t *span_id)
{
    struct view_seen_id id;
    memcpy(id.bytes, trace_id, 16);
    memcpy(id.bytes + 16, span_id, 8);
    if (memcmp(slot_of(seen->old, seen->seed, &id), &id, sizeof id) == 0)
        return true;
    struct view_seen_id *slot = slot_of(seen->young, seen->seed, &id);
    if (memcmp(slot, &id, sizeof id) == 0)
        return true;
    *slot = id;
    if (++seen->young_count == VIEW_SEEN_GENERATION) {
        struct view_seen_id *forgotten = seen->old;
        seen->old = seen->young;
        seen->young = forgotten;
        seen->young_count = 0;
        memset(seen->young, 0, SLOTS * sizeof *seen->young);
    }
    return false;
}
