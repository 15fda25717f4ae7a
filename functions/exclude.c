/* SPDX-License-Identifier: Apache-2.0 */
/* functions/exclude.c - sorted ranges of addresses, and a table of recent answers.
 *
 * Asked by app threads, without a lock: what they read is immutable once published. A table
 * of ranges that another replaced stays, because somebody may be reading it; there is one
 * for each time that modules were loaded. */
#include "functions/exclude.h"

#include "common/text.h"
#include "functions/symbols.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS = 4096 };

struct ranges {
    struct oteli_range *range; /* sorted and apart from one another once published */
    size_t count;
    size_t capacity;
};

struct table {
    struct table *older;
    struct ranges known;    /* modules whose symbols were read */
    struct ranges excluded; /* functions */
};

uint32_t oteli_exclude_is_on;
static struct table *newest; /* release by update */

/* Twice the address of a function, plus one if it is excluded. Any thread, relaxed. */
static uint64_t answers[ANSWERS];

static uint64_t *answer_of(uint64_t address)
{
    return &answers[(address * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}
_Static_assert(ANSWERS == 1 << (64 - 52), "the index is what the shift leaves");

static bool is_in(const struct ranges *ranges, uint64_t address)
{
    size_t low = 0;
    size_t high = ranges->count;
    while (low != high) {
        const size_t middle = low + (high - low) / 2;
        if (address >= ranges->range[middle].end)
            low = middle + 1;
        else
            high = middle;
    }
    return low != ranges->count && address >= ranges->range[low].begin;
}

bool oteli_is_among_excluded(const void *function)
{
    const uint64_t address = (uintptr_t)function;
    uint64_t *answer = answer_of(address);
    const uint64_t known = oteli_load_relaxed_64(answer);
    if (OTELI_LIKELY(known >> 1 == address))
        return known & 1;
    const struct table *table = OTELI_LOAD_ACQUIRE_PTR(&newest); /* pairs with update */
    if (table == NULL || !is_in(&table->known, address))
        return false;
    const bool is_excluded = is_in(&table->excluded, address);
    oteli_store_relaxed_64(answer, address << 1 | is_excluded);
    return is_excluded;
}

/* ---- looking names up -------------------------------------------------------------------- */

struct search {
    const char *patterns;
    struct table *table;
    bool has_failed;
};

static void add(struct search *search, struct ranges *ranges, struct oteli_range range)
{
    if (ranges->count == ranges->capacity) {
        const size_t capacity = ranges->capacity == 0 ? 64 : ranges->capacity * 2;
        struct oteli_range *more = realloc(ranges->range, capacity * sizeof *more);
        if (more == NULL) {
            search->has_failed = true;
            return;
        }
        ranges->range = more;
        ranges->capacity = capacity;
    }
    ranges->range[ranges->count++] = range;
}

static bool is_match(const char *patterns, const char *name)
{
    char pattern[256];
    otel_slice rest = oteli_slice_of(patterns);
    otel_slice member;
    while (oteli_list_next(&rest, &member)) {
        if (member.length >= sizeof pattern)
            continue;
        memcpy(pattern, member.data, member.length);
        pattern[member.length] = '\0';
        if (fnmatch(pattern, name, 0) == 0)
            return true;
    }
    return false;
}

static void on_module(void *state, struct oteli_range range)
{
    struct search *search = state;
    add(search, &search->table->known, range);
}

static void on_function(void *state, const char *name, struct oteli_range range)
{
    struct search *search = state;
    if (is_match(search->patterns, name))
        add(search, &search->table->excluded, range);
}

static int by_begin(const void *left, const void *right)
{
    const struct oteli_range *a = left;
    const struct oteli_range *b = right;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Sort, and make one of those that overlap: a function can have several names. */
static void tidy(struct ranges *ranges)
{
    if (ranges->count == 0)
        return;
    qsort(ranges->range, ranges->count, sizeof *ranges->range, by_begin);
    size_t last = 0;
    for (size_t i = 1; i < ranges->count; i++) {
        if (ranges->range[i].begin >= ranges->range[last].end)
            ranges->range[++last] = ranges->range[i];
        else if (ranges->range[i].end > ranges->range[last].end)
            ranges->range[last].end = ranges->range[i].end;
    }
    ranges->count = last + 1;
}

static void free_table(struct table *table)
{
    free(table->known.range);
    free(table->excluded.range);
    free(table);
}

void oteli_exclude_update(const char *patterns)
{
    if (patterns == NULL) {
        oteli_store_relaxed_32(&oteli_exclude_is_on, 0);
        return;
    }
    struct table *table = calloc(1, sizeof *table);
    if (table == NULL)
        return;
    struct search search = {.patterns = patterns, .table = table};
    oteli_symbols_each(on_module, on_function, &search);
    if (search.has_failed) {
        free_table(table);
        return;
    }
    tidy(&table->known);
    tidy(&table->excluded);
    table->older = newest;
    OTELI_STORE_RELEASE_PTR(&newest, table);
    for (size_t i = 0; i < ANSWERS; i++)
        oteli_store_relaxed_64(&answers[i], 0);
    oteli_store_relaxed_32(&oteli_exclude_is_on, 1);
}

void oteli_exclude_fini(void)
{
    oteli_exclude_update(NULL);
    while (newest != NULL) {
        struct table *older = newest->older;
        free_table(newest);
        newest = older;
    }
}
