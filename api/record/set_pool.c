/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/set_pool.c - the pool of held sets, and their memory under the limit of all of them
 * together. Any thread; the contracts are in api/record/set_pool.h. */
#include "api/record/set_pool.h"
#include "common/base/alloc.h"
#include "common/base/slot_pool.h"
#include "common/base/spin_lock.h"

enum { PART = OTELI_HOLD_PART, PARTS = OTELI_HOLD_PARTS };
enum { LARGEST_SET = 1 << 30 }; /* lengths have 32 bits */

void *oteli_hold_parts[PARTS]; /* zeros: not in the file */

static struct {
    struct oteli_free_list furnished; /* free, with buffers for the next one … */
    struct oteli_free_list bare;      /* … and without */
    uint64_t bytes;                   /* of all buffers */
    uint64_t bytes_limit;
    struct oteli_slot_pool sets;
} pool = {.bytes_limit = UINT64_MAX,
          .sets = {.parts = oteli_hold_parts,
                   .part_count = PARTS,
                   .slots_a_part = PART,
                   .slot_size = sizeof(struct otel_lines),
                   .new_part = oteli_calloc}};

void oteli_holds_set_limit(uint64_t bytes)
{
    oteli_store_relaxed_64(&pool.bytes_limit, bytes);
}

static struct otel_lines *at_index(uint32_t index)
{
    return oteli_slot_at(oteli_hold_parts, PART, sizeof(struct otel_lines), index);
}

static uint32_t *link_of(uint32_t index)
{
    return oteli_slot_link(oteli_hold_parts, PART, sizeof(struct otel_lines),
                           offsetof(struct otel_lines, free_next), index);
}

struct otel_lines *oteli_hold_new(uint64_t generation, const uint64_t trace_id[2])
{
    uint32_t index = oteli_free_list_pop(&pool.furnished, link_of);
    if (index == OTELI_NO_SLOT)
        index = oteli_free_list_pop(&pool.bare, link_of);
    if (index == OTELI_NO_SLOT)
        index = oteli_slot_new(&pool.sets);
    struct otel_lines *hold = index != OTELI_NO_SLOT ? at_index(index) : NULL;
    if (hold == NULL)
        return NULL;
    hold->index = index;
    hold->generation = generation;
    oteli_half_copy(hold->trace_id, trace_id);
    hold->count = 0;
    hold->outer = 0;
    hold->records.length = 0;
    hold->has_error = hold->is_cancelled = hold->is_collected = hold->is_abandoned = false;
    oteli_store_relaxed_32(&hold->is_unaccounted, 1);
    oteli_store_relaxed_32(&hold->state, OTELI_HOLDING);
    oteli_store_release_32(&hold->members, 1);
    return hold;
}

void oteli_hold_set_state(struct otel_lines *hold, enum oteli_hold_state state)
{
    oteli_spin_lock(&hold->lock);
    oteli_store_release_32(&hold->state, (uint32_t)state);
    oteli_spin_unlock(&hold->lock);
}

/* False: it is of before a fork, and the parent's. */
static bool is_in_pool(const struct otel_lines *hold)
{
    return hold == at_index(hold->index);
}

static void strip(struct otel_lines *hold)
{
    oteli_sub_counted_64(&pool.bytes, hold->records.capacity);
    oteli_buffer_fini(&hold->records);
}

void oteli_hold_leave(struct otel_lines *hold)
{
    if (!is_in_pool(hold) || oteli_add_full_32(&hold->members, UINT32_MAX) != 1)
        return;
    const uint32_t outer = hold->outer;
    if (hold->records.capacity > OTELI_BUFFER_KEPT)
        strip(hold);
    oteli_free_list_push(hold->records.capacity != 0 ? &pool.furnished : &pool.bare, link_of,
                         hold->index);
    if (outer != 0)
        oteli_hold_leave(oteli_hold_at(outer));
}

/* Free the buffer of one set that is not in use. */
static bool strip_one(void)
{
    const uint32_t index = oteli_free_list_pop(&pool.furnished, link_of);
    if (index == OTELI_NO_SLOT)
        return false;
    strip(at_index(index));
    oteli_free_list_push(&pool.bare, link_of, index);
    return true;
}

static bool reserve(uint64_t bytes)
{
    for (;;) {
        const uint64_t before = oteli_load_relaxed_64(&pool.bytes);
        const uint64_t limit = oteli_load_relaxed_64(&pool.bytes_limit);
        if (before <= limit && bytes <= limit - before) {
            if (oteli_cas_full_64(&pool.bytes, before, before + bytes))
                return true;
        } else if (!strip_one()) {
            return false;
        }
    }
}

/* A buffer of so many bytes in the place of the one before. */
static bool resize(struct oteli_buffer *records, size_t capacity)
{
    const uint64_t more = capacity - records->capacity;
    if (capacity > LARGEST_SET || !reserve(more))
        return false;
    uint8_t *data = oteli_realloc(records->data, capacity);
    if (data == NULL) {
        oteli_sub_counted_64(&pool.bytes, more);
        return false;
    }
    records->data = data;
    records->capacity = (uint32_t)capacity;
    return true;
}

/* Twice what there was, or a little more than is needed where that is not to be had, or just
 * that. */
uint8_t *oteli_hold_room(struct otel_lines *hold, size_t bytes)
{
    struct oteli_buffer *records = &hold->records;
    const size_t needed = (records->length + bytes + 7) & ~(size_t)7;
    size_t twice = records->capacity != 0 ? records->capacity : OTELI_BUFFER_FIRST;
    while (twice < needed)
        twice *= 2;
    if (needed <= records->capacity || resize(records, twice) ||
        resize(records, needed + needed / 16) || resize(records, needed))
        return records->data + records->length;
    return NULL;
}

static void fini(void *set)
{
    oteli_buffer_fini(&((struct otel_lines *)set)->records);
}

void oteli_holds_free(void)
{
    oteli_slots_free(&pool.sets, fini);
    oteli_holds_forget();
}

void oteli_holds_forget(void)
{
    oteli_slots_forget(&pool.sets);
    pool.furnished.head = 0;
    pool.bare.head = 0;
    pool.bytes = 0;
}
