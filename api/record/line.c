/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/line.c - the pool of lines: a table, and a list of the free ones in it. Any thread
 * takes and gives. The table's slots are filled once and keep their lines. */
#include "api/record/line.h"
#include "common/base/alloc.h"
#include "common/base/slot_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TABLE_PART = 1024, TABLE_PARTS = OTELI_LINE_MAX_COUNT / TABLE_PART, MAPPED_UNITS = 8 };

static void *parts[TABLE_PARTS]; /* zeros: not in the library's file */

static struct {
    struct oteli_free_list free;
    uint64_t units_used;  /* lines outside the pool, in OTELI_LINE_BYTES … */
    uint64_t units_kept;  /* … and the one of each thread among them, which is no limit's */
    uint64_t units_total; /* pooled lines that exist, and units of large ones */
    uint64_t units_limit;
    struct oteli_slot_pool table; /* of pointers to lines */
} pool = {.units_limit = 4096,
          .table = {.parts = parts,
                    .part_count = TABLE_PARTS,
                    .slots_a_part = TABLE_PART,
                    .slot_size = sizeof(struct oteli_line *)}};

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
    const uint64_t most = limit > existing ? limit : existing;
    return most < OTELI_LINE_MAX_COUNT ? most : OTELI_LINE_MAX_COUNT;
}

static struct oteli_line **slot_at(uint32_t index)
{
    return oteli_slot_at(parts, TABLE_PART, sizeof(struct oteli_line *), index);
}

/* NULL: it is of before a fork in a signal handler, from which the child went on. */
static struct oteli_line *table_get(uint32_t index)
{
    struct oteli_line **slot = slot_at(index);
    return slot != NULL ? OTELI_LOAD_ACQUIRE_PTR(slot) : NULL;
}

static bool table_add(struct oteli_line *line)
{
    line->index = oteli_slot_new(&pool.table);
    struct oteli_line **slot = line->index != OTELI_NO_SLOT ? slot_at(line->index) : NULL;
    if (slot != NULL)
        OTELI_STORE_RELEASE_PTR(slot, line);
    return slot != NULL;
}

static uint32_t *link_of(uint32_t index)
{
    static uint32_t nowhere;
    struct oteli_line *line = table_get(index);
    return line != NULL ? &line->free_next : &nowhere;
}

static bool is_within_limit(uint64_t units)
{
    return units <=
           oteli_load_relaxed_64(&pool.units_limit) + oteli_load_relaxed_64(&pool.units_kept);
}

/* Count units that are used or exist from now on, unless they are above the limit. */
static bool add_within_limit(uint64_t *units, uint64_t more)
{
    for (;;) {
        const uint64_t before = oteli_load_relaxed_64(units);
        if (!is_within_limit(before + more))
            return false;
        if (oteli_cas_full_64(units, before, before + more))
            return true;
    }
}

static void init(struct oteli_line *line, size_t bytes, uint32_t units)
{
    memset(line, 0, sizeof *line);
    line->capacity = (uint32_t)(bytes - sizeof *line);
    line->units = units;
}

/* Large ones are given back to the system when they are put back, all of them: they are made by
 * one thread and freed by another, which is where allocators keep memory. */
static bool is_mapped(uint32_t units)
{
    return units >= MAPPED_UNITS;
}

static void *allocate(size_t bytes, uint32_t units)
{
    if (!is_mapped(units))
        return oteli_aligned_alloc(OTELI_CACHELINE, bytes);
    const int saved_errno = errno;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    return memory != MAP_FAILED ? memory : NULL;
}

static OTELI_COLD struct oteli_line *make(size_t bytes, uint32_t units)
{
    if (!add_within_limit(&pool.units_total, units))
        return NULL;
    struct oteli_line *line = allocate(bytes, units);
    if (line != NULL) {
        init(line, bytes, units);
        if (units > 1 || table_add(line))
            return line;
        free(line);
    }
    oteli_sub_counted_64(&pool.units_total, units);
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
    const uint32_t index = units == 1 ? oteli_free_list_pop(&pool.free, link_of) : OTELI_NO_SLOT;
    struct oteli_line *line = index != OTELI_NO_SLOT ? table_get(index) : NULL;
    if (line == NULL)
        line = make(units * OTELI_LINE_BYTES, (uint32_t)units);
    if (line == NULL)
        return NULL;
    oteli_store_relaxed_32(&line->committed, 0);
    oteli_store_relaxed_32(&line->consumed, 0);
    line->owner = owner;
    line->pins = 0;
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
        oteli_sub_counted_64(&pool.units_used, units);
    return line;
}

/* In this order, so that no thread finds more room than there is. */
struct oteli_line *oteli_line_keep(struct oteli_thread *owner)
{
    oteli_add_full_64(&pool.units_used, 1);
    oteli_add_full_64(&pool.units_kept, 1);
    struct oteli_line *line = take(owner, 1);
    if (line == NULL) {
        oteli_line_keep_no_more();
        oteli_sub_counted_64(&pool.units_used, 1);
    }
    return line;
}

void oteli_line_keep_no_more(void)
{
    oteli_sub_counted_64(&pool.units_kept, 1);
}

void oteli_line_put(struct oteli_line *line)
{
    oteli_sub_counted_64(&pool.units_used, line->units);
    if (line->units == 1) {
        if (OTELI_LIKELY(table_get(line->index) == line))
            oteli_free_list_push(&pool.free, link_of, line->index);
        return;
    }
    oteli_sub_counted_64(&pool.units_total, line->units);
    if (is_mapped(line->units))
        munmap(line, line->units * (size_t)OTELI_LINE_BYTES);
    else
        free(line);
}

uint64_t oteli_lines_bytes(void)
{
    return oteli_load_relaxed_64(&pool.units_used) * OTELI_LINE_BYTES;
}

/* A thread that begins to keep a line is counted in two steps, between which it looks as if its
 * line was one too many. */
uint64_t oteli_lines_queued_bytes(void)
{
    const uint64_t used = oteli_load_acquire_64(&pool.units_used); /* before, as it is made */
    const uint64_t kept = oteli_load_relaxed_64(&pool.units_kept);
    const uint64_t limit = oteli_load_relaxed_64(&pool.units_limit);
    const uint64_t queued = used > kept ? used - kept : 0;
    return (queued < limit ? queued : limit) * OTELI_LINE_BYTES;
}

static void free_line(void *slot)
{
    free(*(struct oteli_line **)slot);
}

void oteli_lines_free(void)
{
    oteli_slots_free(&pool.table, free_line);
    oteli_lines_forget();
}

void oteli_lines_forget(void)
{
    oteli_slots_forget(&pool.table);
    pool.free.head = 0;
    pool.units_used = 0;
    pool.units_kept = 0;
    pool.units_total = 0;
}
