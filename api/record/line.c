/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/line.c - the pool of lines, with a list of the free ones. Any thread takes and gives.
 *
 * Lines are allocated 128 at a time, of which a program has those in memory that it needs. Where
 * many spans wait they come in huge pages: to touch 2 MiB of ordinary memory for the first time
 * costs 512 page faults, and the worker finds records in fewer pages. */
#include "api/record/line.h"
#include "common/base/alloc.h"
#include "common/base/slot_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 * 1024 * 1024, PART = HUGE_PAGE / OTELI_LINE_BYTES, FEW_LINES = 2 * PART };
enum { PARTS = OTELI_LINE_MAX_COUNT / PART, MAPPED_UNITS = 8 };

static void *parts[PARTS]; /* zeros: not in the library's file */
static void *new_part(size_t lines, size_t line_size);

static struct {
    struct oteli_free_list free;
    uint64_t units_used;  /* lines outside the pool, in OTELI_LINE_BYTES … */
    uint64_t units_kept;  /* … and the one of each thread among them, which is no limit's */
    uint64_t units_total; /* pooled lines that exist, and units of large ones */
    uint64_t units_limit;
    struct oteli_slot_pool lines;
} pool = {.units_limit = 4096,
          .lines = {.parts = parts,
                    .part_count = PARTS,
                    .slots_a_part = PART,
                    .slot_size = OTELI_LINE_BYTES,
                    .new_part = new_part}};

static void *new_part(size_t lines, size_t line_size)
{
    const bool many = oteli_load_relaxed_32(&pool.lines.count) >= FEW_LINES;
    void *part = oteli_aligned_alloc(many ? HUGE_PAGE : OTELI_CACHELINE, lines * line_size);
    const int saved_errno = errno;
    if (part != NULL && many)
        (void)madvise(part, lines * line_size, MADV_HUGEPAGE); /* ordinary pages do as well */
    errno = saved_errno;
    return part;
}

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

/* NULL: there is none, as for OTELI_NO_SLOT; or it is of before a fork in a signal handler, from
 * which the child went on. */
static struct oteli_line *at_index(uint32_t index)
{
    return index < oteli_load_relaxed_32(&pool.lines.count)
               ? oteli_slot_at(parts, PART, OTELI_LINE_BYTES, index)
               : NULL;
}

static uint32_t *link_of(uint32_t index)
{
    return oteli_slot_link(parts, PART, OTELI_LINE_BYTES, offsetof(struct oteli_line, free_next),
                           index);
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

/* Large ones are given back to the system when they are put back, all of them: they are made by
 * one thread and freed by another, which is where allocators keep memory. */
static bool is_mapped(uint32_t units)
{
    return units >= MAPPED_UNITS;
}

static void *allocate_large(size_t bytes, uint32_t units)
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
    const uint32_t index = units == 1 ? oteli_slot_new(&pool.lines) : OTELI_NO_SLOT;
    struct oteli_line *line = units == 1 ? at_index(index) : allocate_large(bytes, units);
    if (line == NULL) {
        oteli_sub_counted_64(&pool.units_total, units);
        return NULL;
    }
    memset(line, 0, sizeof *line);
    line->capacity = (uint32_t)(bytes - sizeof *line);
    line->units = units;
    line->index = index;
    return line;
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
    struct oteli_line *line = at_index(index);
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
        if (OTELI_LIKELY(at_index(line->index) == line))
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

void oteli_lines_free(void)
{
    oteli_slots_free(&pool.lines, NULL);
    oteli_lines_forget();
}

void oteli_lines_forget(void)
{
    oteli_slots_forget(&pool.lines);
    pool.free.head = 0;
    pool.units_used = 0;
    pool.units_kept = 0;
    pool.units_total = 0;
}
