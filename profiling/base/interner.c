/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/base/interner.c - the contracts are in interner.h. One thread at a time; owns the
 * memory of its table. Slots are probed one after the other, and at most half of them are taken. */
#include "profiling/base/interner.h"

#include "common/text/text.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_BYTES = 4096, LEAST_ROWS = 64 };

void oteli_interner_init(struct oteli_interner *table, uint32_t most_rows, uint32_t most_bytes,
                         uint32_t tail_size, uint32_t seed)
{
    *table = (struct oteli_interner){
        .most_rows = most_rows, .most_bytes = most_bytes, .tail_size = tail_size, .seed = seed};
}

void oteli_interner_fini(struct oteli_interner *table)
{
    free(table->bytes);
    free(table->rows);
    free(table->slots);
    oteli_interner_init(table, table->most_rows, table->most_bytes, table->tail_size, table->seed);
}

static uint32_t hash_of(const struct oteli_interner *table, const void *key, size_t length)
{
    const uint64_t hash = oteli_hash(OTELI_HASH_BEGIN ^ table->seed, key, length);
    return (uint32_t)(hash >> 32 ^ hash);
}

/* The slot of this key, or the free one where it would be. There are free ones. */
static uint32_t slot_of(const struct oteli_interner *table, uint32_t hash, const void *key,
                        size_t length)
{
    const uint32_t mask = table->slot_count - 1;
    uint32_t slot = hash & mask;
    for (; table->slots[slot] != 0; slot = (slot + 1) & mask) {
        const struct oteli_interner_row *row = &table->rows[table->slots[slot] - 1];
        if (row->hash == hash && row->length == length &&
            (length == 0 || memcmp(table->bytes + row->offset, key, length) == 0))
            break;
    }
    return slot;
}

static bool find_hashed(const struct oteli_interner *table, uint32_t hash, const void *key,
                        size_t length, uint32_t *index)
{
    if (table->slot_count == 0)
        return false;
    const uint32_t slot = slot_of(table, hash, key, length);
    if (table->slots[slot] == 0)
        return false;
    *index = table->slots[slot] - 1;
    return true;
}

bool oteli_interner_find(const struct oteli_interner *table, const void *key, size_t length,
                         uint32_t *index)
{
    return find_hashed(table, hash_of(table, key, length), key, length, index);
}

/* All rows into `slot_count` free slots. */
static bool use_slots(struct oteli_interner *table, uint32_t slot_count)
{
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < table->count; i++) {
        uint32_t slot = table->rows[i].hash & (slot_count - 1);
        while (slots[slot] != 0)
            slot = (slot + 1) & (slot_count - 1);
        slots[slot] = i + 1;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = slot_count;
    return true;
}

/* Room for `needed` things of this size; never less than there is. */
static bool have_room(void **memory, uint32_t *room, size_t needed, size_t size, uint32_t least)
{
    if (needed <= *room)
        return true;
    size_t larger = *room != 0 ? *room : least;
    while (larger < needed)
        larger *= 2;
    if (larger > UINT32_MAX)
        return false;
    void *moved = realloc(*memory, larger * size);
    if (moved == NULL)
        return false;
    *memory = moved;
    *room = (uint32_t)larger;
    return true;
}

static bool make_room(struct oteli_interner *table, size_t length)
{
    void *bytes = table->bytes;
    void *rows = table->rows;
    /* A byte more, so that rows without any have an address, too. */
    const bool has_bytes =
        have_room(&bytes, &table->room, (size_t)table->used + length + 1, 1, LEAST_BYTES);
    table->bytes = bytes;
    const bool has_rows = have_room(&rows, &table->row_room, (size_t)table->count + 1,
                                    sizeof *table->rows, LEAST_ROWS);
    table->rows = rows;
    if (!has_bytes || !has_rows)
        return false;
    if (table->slot_count >= 2 * (table->count + 1))
        return true;
    return use_slots(table, table->slot_count != 0 ? table->slot_count * 2 : 2 * LEAST_ROWS);
}

bool oteli_interner_add(struct oteli_interner *table, const void *key, size_t length,
                        uint32_t *index)
{
    const uint32_t hash = hash_of(table, key, length);
    if (find_hashed(table, hash, key, length, index))
        return true;
    const size_t whole = length + table->tail_size;
    if (table->count >= table->most_rows || whole > table->most_bytes - table->used ||
        !make_room(table, whole))
        return false;
    const uint32_t slot = slot_of(table, hash, key, length);
    uint8_t *at = table->bytes + table->used;
    if (length != 0)
        memcpy(at, key, length);
    memset(at + length, 0, table->tail_size);
    table->rows[table->count] = (struct oteli_interner_row){
        .offset = table->used, .length = (uint32_t)length, .hash = hash};
    table->used += (uint32_t)whole;
    *index = table->count++;
    table->slots[slot] = table->count;
    return true;
}
