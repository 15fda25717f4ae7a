/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/otlp/otlp_table.c - the contracts are in otlp_table.h. One thread at a time; owns the
 * rows. */
#include "profiling/otlp/otlp_table.h"

#include "common/wire.h"

void oteli_otlp_table_begin(struct oteli_otlp_table *table)
{
    oteli_interner_clear(&table->rows);
    table->rows.most_rows = INT32_MAX; /* numbers are int32 in OTLP */
    table->rows.most_bytes = UINT32_MAX;
    table->failed = false;
    (void)oteli_otlp_table_put(table, "", 0);
}

void oteli_otlp_table_fini(struct oteli_otlp_table *table)
{
    oteli_interner_fini(&table->rows);
}

uint32_t oteli_otlp_table_put(struct oteli_otlp_table *table, const void *bytes, size_t length)
{
    uint32_t index = 0;
    if (table->failed || !oteli_interner_add(&table->rows, bytes, length, &index)) {
        table->failed = true;
        return 0;
    }
    return index;
}

size_t oteli_otlp_table_size(const struct oteli_otlp_table *table, uint32_t field)
{
    size_t size = 0;
    for (uint32_t i = 0; i < table->rows.count; i++)
        size += oteli_bytes_field_size(field, table->rows.rows[i].length);
    return size;
}

uint8_t *oteli_otlp_table_write(uint8_t *at, const struct oteli_otlp_table *table, uint32_t field)
{
    for (uint32_t i = 0; i < table->rows.count; i++) {
        size_t length;
        const uint8_t *bytes = oteli_otlp_table_row(table, i, &length);
        at = oteli_put_bytes_field(at, field, bytes, length);
    }
    return at;
}
