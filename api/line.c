/* SPDX-License-Identifier: Apache-2.0 */
/* api/line.c - the pool of lines: a table, and a list of the free ones in it. Any thread
 * takes and gives. The table's slots are filled once and keep their lines. */
#include "api/line.h"
#include "common/free_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_PART = 1024, TABLE_PARTS = OTELI_LINE_MAX_COUNT / TABLE_PART };

static struct {
    struct oteli_free_list free;
    uint64_t units_used;  /* lines outside the pool, in OTELI_LINE_BYTES … */
    uint64_t units_kept;  /* … and the one of each thread among them, which is no limit's */
    uint64_t units_total; /* pooled lines that exist, and units of large ones */
    uint64_t units_limit;
    uint32_t count; /* slots of the table that were given out */
} pool = {.units_limit = 4096};

static struct oteli_line **parts[TABLE_PARTS]; /* zeros: not in the library's file */

void oteli_lines_set_limit(uint64_t bytes)
{
    uint64_t units = bytes / OTELI_LINE_BYTES;
    if (units == 0)
        units = 1;
    if (units > OTELI_LINE_MAX_COUNT)
        units = OTELI_LINE_MAX_COUNT;
    oteli_store_relaxed_64(&pool.units_limit, units);
}

uint64_t oteli_lines_most(void)
{
    const uint64_t limit = oteli_load_relaxed_64(&pool.units_limit);
    const uint64_t existing = oteli_load_relaxed_64(&pool.units_total);
    return limit > existing ? limit : existing;
}

static struct oteli_line *table_get(uint32_t index)
{
    struct oteli_line **part = OTELI_LOAD_ACQUIRE_PTR(&parts[index / TABLE_PART]);
    return OTELI_LOAD_ACQUIRE_PTR(&part[index % TABLE_PART]);
}

/* Put a new line into the table. A part that two threads make at once is kept once. */
static bool table_add(struct oteli_line *line)
{
    uint32_t index;
    do {
        index = oteli_load_acquire_32(&pool.count);
        if (index >= OTELI_LINE_MAX_COUNT)
            return false;
        struct oteli_line ***slot = &parts[index / TABLE_PART];
        if (OTELI_LOAD_ACQUIRE_PTR(slot) == NULL) {
            struct oteli_line **part = calloc(TABLE_PART, sizeof *part);
            if (part == NULL)
                return false;
            if (!OTELI_CAS_FULL_PTR(slot, NULL, part))
                free(part);
        }
    } while (!oteli_cas_full_32(&pool.count, index, index + 1));
    line->index = index;
    struct oteli_line **part = OTELI_LOAD_ACQUIRE_PTR(&parts[index / TABLE_PART]);
    OTELI_STORE_RELEASE_PTR(&part[index % TABLE_PART], line);
    return true;
}

static uint32_t *link_of(uint32_t index)
{
    return &table_get(index)->free_next;
}

static bool is_within_limit(uint64_t units)
{
    return units <=
           oteli_load_relaxed_64(&pool.units_limit) + oteli_load_relaxed_64(&pool.units_kept);
}

static void sub(uint64_t *units, uint64_t less)
{
    oteli_add_full_64(units, (uint64_t)0 - less);
}

/* Count units that are used or exist from now on, unless they are above the limit. */
static bool add_within_limit(uint64_t *units, uint64_t more)
{
    if (is_within_limit(oteli_add_full_64(units, more) + more))
        return true;
    sub(units, more);
    return false;
}

static OTELI_COLD struct oteli_line *make(size_t bytes, uint32_t units)
{
    if (!add_within_limit(&pool.units_total, units))
        return NULL;
    const int saved_errno = errno;
    struct oteli_line *line = aligned_alloc(OTELI_CACHELINE, bytes);
    if (line != NULL) {
        memset(line, 0, sizeof *line);
        line->capacity = (uint32_t)(bytes - sizeof *line);
        line->units = units;
        if (units > 1 || table_add(line))
            return line;
    }
    free(line);
    errno = saved_errno;
    sub(&pool.units_total, units);
    return NULL;
}

static uint64_t units_for(size_t size)
{
    return size <= OTELI_LINE_BYTES - sizeof(struct oteli_line)
               ? 1
               : (sizeof(struct oteli_line) + size + OTELI_LINE_BYTES - 1) / OTELI_LINE_BYTES;
}

/* A line of so many units, which are counted already. */
static struct oteli_line *take(struct oteli_thread *owner, uint64_t units)
{
    const uint32_t index = units == 1 ? oteli_free_list_pop(&pool.free, link_of) : OTELI_NO_PLACE;
    struct oteli_line *line = index != OTELI_NO_PLACE
                                  ? table_get(index)
                                  : make(units * OTELI_LINE_BYTES, (uint32_t)units);
    if (line == NULL)
        return NULL;
    oteli_store_relaxed_32(&line->committed, 0);
    oteli_store_relaxed_32(&line->consumed, 0);
    line->owner = owner;
    line->pins = 0;
    line->retired = false;
    line->next = NULL;
    return line;
}

struct oteli_line *oteli_line_get(struct oteli_thread *owner, size_t size)
{
    const uint64_t units = units_for(size);
    if (!add_within_limit(&pool.units_used, units))
        return NULL;
    struct oteli_line *line = take(owner, units);
    if (line == NULL)
        sub(&pool.units_used, units);
    return line;
}

/* In this order, so that nobody finds more room than there is. */
struct oteli_line *oteli_line_keep(struct oteli_thread *owner)
{
    oteli_add_full_64(&pool.units_used, 1);
    oteli_add_full_64(&pool.units_kept, 1);
    struct oteli_line *line = take(owner, 1);
    if (line == NULL) {
        oteli_line_keep_no_more();
        sub(&pool.units_used, 1);
    }
    return line;
}

void oteli_line_keep_no_more(void)
{
    sub(&pool.units_kept, 1);
}

void oteli_line_put(struct oteli_line *line)
{
    sub(&pool.units_used, line->units);
    if (line->units == 1) {
        oteli_free_list_push(&pool.free, link_of, line->index);
        return;
    }
    sub(&pool.units_total, line->units);
    free(line);
}

uint64_t oteli_lines_bytes(void)
{
    return oteli_load_relaxed_64(&pool.units_used) * OTELI_LINE_BYTES;
}

uint64_t oteli_lines_queued_bytes(void)
{
    const uint64_t kept = oteli_load_relaxed_64(&pool.units_kept);
    const uint64_t used = oteli_load_relaxed_64(&pool.units_used);
    return used > kept ? (used - kept) * OTELI_LINE_BYTES : 0;
}

void oteli_lines_free(void)
{
    for (uint32_t i = 0; i < pool.count && i < OTELI_LINE_MAX_COUNT; i++)
        if (parts[i / TABLE_PART] != NULL)
            free(parts[i / TABLE_PART][i % TABLE_PART]);
    for (uint32_t i = 0; i < TABLE_PARTS; i++) {
        free(parts[i]);
        parts[i] = NULL;
    }
    oteli_lines_forget();
}

void oteli_lines_forget(void)
{
    memset(parts, 0, sizeof parts);
    pool.free.head = 0;
    pool.units_used = 0;
    pool.units_kept = 0;
    pool.units_total = 0;
    pool.count = 0;
}
