/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/line.c - the pool of lines: a table, and a list of the free ones in it. Any thread
 * takes and gives. The table's slots are filled once and keep their lines.
 *
 * The first lines are allocated one by one, because most programs never need more. Where many
 * spans wait, lines are made in huge pages. */
#include "api/record/line.h"
#include "common/base/free_list.h"
#include "common/os/huge_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { TABLE_PART = 1024, TABLE_PARTS = OTELI_LINE_MAX_COUNT / TABLE_PART };
enum { PIECE_LINES = OTELI_HUGE_PAGE_BYTES / OTELI_LINE_BYTES, FEW_LINES = 256, MAPPED_UNITS = 8 };

static struct {
    struct oteli_free_list free;
    uint64_t units_used;  /* lines outside the pool, in OTELI_LINE_BYTES … */
    uint64_t units_kept;  /* … and the one of each thread among them, which is no limit's */
    uint64_t units_total; /* pooled lines that exist, and units of large ones */
    uint64_t units_limit;
    uint32_t count;            /* slots of the table that were given out */
    struct oteli_line *pieces; /* a list through the first lines of huge pages */
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
    const uint64_t most = limit > existing ? limit : existing;
    return most < OTELI_LINE_MAX_COUNT ? most : OTELI_LINE_MAX_COUNT;
}

/* NULL: it is of before a fork in a signal handler, from which the child went on. */
static struct oteli_line *table_get(uint32_t index)
{
    struct oteli_line **part = OTELI_LOAD_ACQUIRE_PTR(&parts[index / TABLE_PART]);
    return part != NULL ? OTELI_LOAD_ACQUIRE_PTR(&part[index % TABLE_PART]) : NULL;
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
            const int saved_errno = errno;
            struct oteli_line **part = calloc(TABLE_PART, sizeof *part);
            errno = saved_errno;
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
    static uint32_t nowhere;
    struct oteli_line *line = table_get(index);
    return line != NULL ? &line->free_next : &nowhere;
}

static bool is_within_limit(uint64_t units)
{
    return units <=
           oteli_load_relaxed_64(&pool.units_limit) + oteli_load_relaxed_64(&pool.units_kept);
}

/* Not below zero: after a fork, what is given back may have been counted before it. */
static void sub(uint64_t *units, uint64_t less)
{
    uint64_t before;
    do {
        before = oteli_load_relaxed_64(units);
    } while (before >= less && !oteli_cas_full_64(units, before, before - less));
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
    const int saved_errno = errno;
    void *memory = is_mapped(units) ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                    : aligned_alloc(OTELI_CACHELINE, bytes);
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
    sub(&pool.units_total, units);
    return NULL;
}

static struct oteli_line *line_in(void *piece, unsigned number)
{
    struct oteli_line *line =
        (struct oteli_line *)(void *)((uint8_t *)piece + (size_t)number * OTELI_LINE_BYTES);
    init(line, OTELI_LINE_BYTES, 1);
    line->is_in_piece = true;
    return line;
}

static void keep_piece(struct oteli_line *first)
{
    do {
        first->next_piece = OTELI_LOAD_ACQUIRE_PTR(&pool.pieces);
    } while (!OTELI_CAS_FULL_PTR(&pool.pieces, first->next_piece, first));
}

/* A line, and many free ones. NULL: there are few lines yet, or there is no room for many. */
static OTELI_COLD struct oteli_line *make_many(void)
{
    if (oteli_load_relaxed_64(&pool.units_total) < FEW_LINES ||
        !add_within_limit(&pool.units_total, PIECE_LINES))
        return NULL;
    void *const piece = oteli_huge_page_new();
    struct oteli_line *const first = piece != NULL ? line_in(piece, 0) : NULL;
    if (first == NULL || !table_add(first)) {
        if (piece != NULL)
            oteli_huge_page_free(piece);
        sub(&pool.units_total, PIECE_LINES);
        return NULL;
    }
    keep_piece(first);
    for (unsigned i = 1; i < PIECE_LINES; i++) {
        struct oteli_line *line = line_in(piece, i);
        if (table_add(line)) /* or it is never used */
            oteli_free_list_push(&pool.free, link_of, line->index);
    }
    return first;
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
    struct oteli_line *line = NULL;
    if (index != OTELI_NO_PLACE)
        line = table_get(index);
    else if (units == 1)
        line = make_many();
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
        if (OTELI_LIKELY(table_get(line->index) == line))
            oteli_free_list_push(&pool.free, link_of, line->index);
        return;
    }
    sub(&pool.units_total, line->units);
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

/* Free it unless it is part of a huge page. */
static void free_line(struct oteli_line *line)
{
    if (!line->is_in_piece)
        free(line);
}

void oteli_lines_free(void)
{
    for (uint32_t i = 0; i < pool.count && i < OTELI_LINE_MAX_COUNT; i++)
        if (parts[i / TABLE_PART] != NULL && parts[i / TABLE_PART][i % TABLE_PART] != NULL)
            free_line(parts[i / TABLE_PART][i % TABLE_PART]);
    while (pool.pieces != NULL) {
        struct oteli_line *const piece = pool.pieces;
        pool.pieces = piece->next_piece;
        oteli_huge_page_free(piece);
    }
    for (uint32_t i = 0; i < TABLE_PARTS; i++) {
        free(parts[i]);
        parts[i] = NULL;
    }
    oteli_lines_forget();
}

void oteli_lines_forget(void)
{
    for (uint32_t i = 0; i < TABLE_PARTS && parts[i] != NULL; i++)
        parts[i] = NULL; /* the first is there before the second */
    pool.free.head = 0;
    pool.units_used = 0;
    pool.units_kept = 0;
    pool.units_total = 0;
    pool.count = 0;
    pool.pieces = NULL;
}
