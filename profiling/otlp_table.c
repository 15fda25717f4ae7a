/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp_table.c - the contracts are in otlp_table.h. One thread at a time; owns the rows. */
#include "profiling/otlp_table.h"

#include "common/wire.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64, FIRST_BYTES = 1024 };

/* FNV-1a. */
static uint64_t hash_of(const uint8_t *bytes, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* Make room for one row more. */
static bool make_room(struct oteli_otlp_table *table, size_t length)
{
    if (table->count == table->room) {
        const size_t room = table->room != 0 ? 2 * table->room : FIRST_ROOM;
        struct oteli_otlp_row *rows = realloc(table->rows, room * sizeof *rows);
        if (rows == NULL)
            return false;
        table->rows = rows;
        table->room = room;
    }
    if (table->bytes == NULL || length > table->byte_room - table->byte_count) {
        size_t room = table->byte_room != 0 ? table->byte_room : FIRST_BYTES;
        while (room - table->byte_count < length)
            room *= 2;
        uint8_t *bytes = realloc(table->bytes, room);
        if (bytes == NULL)
            return false;
        table->bytes = bytes;
        table->byte_room = room;
    }
    return true;
}

/* Where the row is, or where it would be. */
static uint32_t *slot_of(const struct oteli_otlp_table *table, const uint8_t *bytes, size_t length,
                         uint64_t hash)
{
    size_t at = (size_t)hash & (table->slot_count - 1);
    while (table->slots[at] != 0) {
        const struct oteli_otlp_row *row = &table->rows[table->slots[at] - 1];
        if (row->hash == hash && row->length == length &&
            (length == 0 || memcmp(table->bytes + row->start, bytes, length) == 0))
            break;
        at = (at + 1) & (table->slot_count - 1);
    }
    return &table->slots[at];
}

/* At most half of the slots are taken. */
static bool make_slots(struct oteli_otlp_table *table)
{
    if (table->slots != NULL && 2 * (table->count + 1) <= table->slot_count)
        return true;
    const size_t count = table->slot_count != 0 ? 2 * table->slot_count : 2 * (size_t)FIRST_ROOM;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (slots == NULL)
        return false;
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    for (size_t i = 0; i < table->count; i++) {
        const struct oteli_otlp_row *row = &table->rows[i];
        *slot_of(table, table->bytes + row->start, row->length, row->hash) = (uint32_t)i + 1;
    }
    return true;
}

void oteli_otlp_table_begin(struct oteli_otlp_table *table)
{
    table->count = 0;
    table->byte_count = 0;
    table->failed = false;
    if (table->slots != NULL)
        memset(table->slots, 0, table->slot_count * sizeof *table->slots);
    (void)oteli_otlp_table_put(table, "", 0);
}

void oteli_otlp_table_fini(struct oteli_otlp_table *table)
{
    free(table->bytes);
    free(table->rows);
    free(table->slots);
    *table = (struct oteli_otlp_table){0};
}

uint32_t oteli_otlp_table_put(struct oteli_otlp_table *table, const void *bytes, size_t length)
{
    /* Numbers are int32 in OTLP. */
    if (table->failed || table->count >= INT32_MAX || !make_slots(table)) {
        table->failed = true;
        return 0;
    }
    const uint64_t hash = hash_of(bytes, length);
    uint32_t *slot = slot_of(table, bytes, length, hash);
    if (*slot != 0)
        return *slot - 1;
    if (!make_room(table, length)) {
        table->failed = true;
        return 0;
    }
    table->rows[table->count] = (struct oteli_otlp_row){table->byte_count, length, hash};
    oteli_put_bytes(table->bytes + table->byte_count, bytes, length);
    table->byte_count += length;
    table->count++;
    *slot = (uint32_t)table->count;
    return *slot - 1;
}

size_t oteli_otlp_table_size(const struct oteli_otlp_table *table, uint32_t field)
{
    size_t size = 0;
    for (size_t i = 0; i < table->count; i++)
        size += oteli_bytes_field_size(field, table->rows[i].length);
    return size;
}

uint8_t *oteli_otlp_table_write(uint8_t *at, const struct oteli_otlp_table *table, uint32_t field)
{
    for (size_t i = 0; i < table->count; i++) {
        size_t length;
        const uint8_t *bytes = oteli_otlp_table_row(table, i, &length);
        at = oteli_put_bytes_field(at, field, bytes, length);
    }
    return at;
}
