/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/base/interner.h - a table without equal rows: what is added gets the index that its
 * equal has, or the next one.
 *
 * A row is a key, any number of elements of one size, and behind it `tail_size` bytes that do not
 * count for equality. Rows stand behind each other in one piece of memory, in the order of their
 * indices; so a table whose rows have the same size is an array of structs, and the table of rows
 * that differ is an array of their elements.
 *
 * Threads:  one thread at a time for a table. */
#ifndef OTELI_INTERNER_H
#define OTELI_INTERNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oteli_interner_row {
    uint32_t offset; /* of its bytes */
    uint32_t length; /* of the key in bytes */
    uint32_t hash;
};

struct oteli_interner {
    uint8_t *bytes;
    struct oteli_interner_row *rows;
    uint32_t *slots; /* index + 1; 0: free */
    uint32_t used, room;
    uint32_t count, row_room;
    uint32_t slot_count;            /* a power of two, or 0 */
    uint32_t most_bytes, most_rows; /* what it may hold */
    uint32_t tail_size;
    uint32_t seed;
};

/* Empty, and without memory yet. `seed` makes it different which rows collide. */
void oteli_interner_init(struct oteli_interner *table, uint32_t most_rows, uint32_t most_bytes,
                         uint32_t tail_size, uint32_t seed);

/* It is empty, and without memory, again. */
void oteli_interner_fini(struct oteli_interner *table);

/* The index of this row, which is added with a tail of zeros if it is not there. false: no memory,
 * or the table is full. */
bool oteli_interner_add(struct oteli_interner *table, const void *key, size_t length,
                        uint32_t *index);

/* Whether there is such a row, and its index. */
bool oteli_interner_find(const struct oteli_interner *table, const void *key, size_t length,
                         uint32_t *index);

/* The key of a row, with its tail behind it; until the next one is added. */
static inline void *oteli_interner_at(const struct oteli_interner *table, uint32_t index)
{
    return table->bytes + table->rows[index].offset;
}

/* How many elements of this size the key of a row has. */
static inline uint32_t oteli_interner_elements(const struct oteli_interner *table, uint32_t index,
                                               size_t size)
{
    return (uint32_t)(table->rows[index].length / size);
}

/* The tail, at any address. */
static inline void *oteli_interner_tail(const struct oteli_interner *table, uint32_t index)
{
    return table->bytes + table->rows[index].offset + table->rows[index].length;
}

#endif
