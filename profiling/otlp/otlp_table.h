/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_table.h - a table of an OTLP dictionary: rows of bytes, each once, in the
 * order in which they came. What makes two rows equal is that they are encoded equally, so that a
 * row that refers to rows of other tables is equal to another by what it says, all the way down.
 *
 * Once memory is missing every row has number 0, and `failed` says so.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_OTLP_TABLE_H
#define OTELI_OTLP_TABLE_H

#include "profiling/profile/interner.h"

/* All zero: without rows and memory. */
struct oteli_otlp_table {
    struct oteli_interner rows;
    bool failed;
};

/* Forget all rows, and put the empty one, which is number 0 of every table. */
void oteli_otlp_table_begin(struct oteli_otlp_table *table);
void oteli_otlp_table_fini(struct oteli_otlp_table *table);

/* The number of this row, which is copied if it is new. */
uint32_t oteli_otlp_table_put(struct oteli_otlp_table *table, const void *bytes, size_t length);

static inline const uint8_t *oteli_otlp_table_row(const struct oteli_otlp_table *table,
                                                  size_t index, size_t *length)
{
    *length = table->rows.rows[index].length;
    return oteli_interner_at(&table->rows, (uint32_t)index);
}

/* As a repeated field of bytes. */
size_t oteli_otlp_table_size(const struct oteli_otlp_table *table, uint32_t field);
uint8_t *oteli_otlp_table_write(uint8_t *at, const struct oteli_otlp_table *table, uint32_t field);

#endif
