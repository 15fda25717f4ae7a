/* SPDX-License-Identifier: Apache-2.0 */
/* functions/exclude.c - sorted ranges of addresses, and a table of recent answers.
 *
 * Asked by app threads, without a lock. There are two tables, which take turns: an update takes
 * the next ticket, fills that ticket's table, and publishes the ticket. A thread that asks reads
 * the table of the published ticket, and asks again when an update has taken that table meanwhile.
 * So memory of tables stays while threads may ask, but it is used again: there is as much as for
 * the largest tables, however often modules come and go.
 *
 *     taken      moves before a table is touched
 *     published  the ticket whose table is valid; 0: none */
#include "functions/exclude.h"

#include "common/log.h"
#include "common/text/text.h"
#include "functions/symbols.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS = 4096 };

struct ranges {
    struct oteli_range *range;
    size_t count;
    size_t capacity;
};

/* Ranges that can be read while they are written, which gives nonsense, but nothing else. */
struct shelf {
    struct shelf *older; /* of all that there are */
    size_t capacity;
    uint64_t count;             /* release by put, acquire by is_in; these as well: */
    struct oteli_range range[]; /* sorted and apart from one another once published */
};

uint32_t oteli_exclude_is_on;
static struct shelf *tables[2]; /* release by put */
static struct shelf *shelves;   /* update's alone */
static uint64_t taken;
static uint64_t published;

/* Twice the address of a function, plus one if it is excluded. Any thread, relaxed. */
static uint64_t answers[ANSWERS];

static uint64_t *answer_of(uint64_t address)
{
    return &answers[(address * UINT64_C(0x9e3779b97f4a7c15)) >> 52];
}
_Static_assert(ANSWERS == 1 << (64 - 52), "the index is what the shift leaves");

static bool is_in(const struct shelf *shelf, uint64_t address)
{
    size_t low = 0;
    const size_t count = oteli_load_acquire_64(&shelf->count);
    size_t high = count;
    while (low != high) {
        const size_t middle = low + (high - low) / 2;
        if (address >= oteli_load_acquire_64(&shelf->range[middle].end))
            low = middle + 1;
        else
            high = middle;
    }
    return low != count && address >= oteli_load_acquire_64(&shelf->range[low].begin);
}

/* Remember an answer of a ticket. Either update sees it behind its fence and clears it, or here it
 * is seen that there is another ticket. */
static void remember(uint64_t *answer, uint64_t value, uint64_t ticket)
{
    oteli_store_relaxed_64(answer, value);
    oteli_fence_full(); /* pairs with publish */
    if (oteli_load_relaxed_64(&published) != ticket)
        oteli_store_relaxed_64(answer, 0);
}

bool oteli_is_among_excluded(const void *function)
{
    const uint64_t address = (uintptr_t)function;
    uint64_t *answer = answer_of(address);
    const uint64_t remembered = oteli_load_relaxed_64(answer);
    if (OTELI_LIKELY(remembered >> 1 == address))
        return remembered & 1;
    for (;;) {
        const uint64_t ticket = oteli_load_acquire_64(&published); /* pairs with publish */
        if (ticket == 0)
            return false;
        const bool is_excluded = is_in(OTELI_LOAD_ACQUIRE_PTR(&tables[ticket % 2]), address);
        /* A thread that has read from a later table sees the ticket of that as well. */
        if (oteli_load_acquire_64(&taken) - ticket >= 2)
            continue;
        remember(answer, address << 1 | is_excluded, ticket);
        return is_excluded;
    }
}

/* Patterns that have matched, a bit for each of the first 64, and that they are known. Any
 * thread. */
static uint64_t matched;
static uint32_t is_matched_known;
enum { MATCHED_BITS = 64 };

/* ---- looking names up -------------------------------------------------------------------- */

struct search {
    const char *patterns;
    uint64_t matched;
    struct ranges excluded;
    bool has_failed;
};

/* All patterns are tried: each that matches something has to be known. */
static bool is_match(struct search *search, const char *name)
{
    char pattern[256];
    otel_slice rest = oteli_slice_of(search->patterns);
    otel_slice member;
    bool is = false;
    for (unsigned i = 0; oteli_list_next(&rest, &member); i++) {
        if (member.length >= sizeof pattern)
            continue;
        memcpy(pattern, member.data, member.length);
        pattern[member.length] = '\0';
        if (fnmatch(pattern, name, 0) != 0)
            continue;
        is = true;
        if (i < MATCHED_BITS)
            search->matched |= UINT64_C(1) << i;
    }
    return is;
}

static void on_function(void *state, const char *name, struct oteli_range range)
{
    struct search *search = state;
    struct ranges *ranges = &search->excluded;
    if (!is_match(search, name))
        return;
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

/* ---- putting them where they are read ---------------------------------------------------- */

/* Twice what is needed: shelves that became too small are, together, no more than the last. */
static struct shelf *new_shelf(size_t count)
{
    const size_t capacity = 2 * count + 64;
    struct shelf *shelf = malloc(sizeof *shelf + capacity * sizeof shelf->range[0]);
    if (shelf == NULL)
        return NULL;
    *shelf = (struct shelf){.older = shelves, .capacity = capacity};
    shelves = shelf;
    return shelf;
}

/* false: no memory. */
static bool put(struct shelf **place, const struct ranges *ranges)
{
    struct shelf *shelf = *place;
    if (shelf == NULL || shelf->capacity < ranges->count)
        shelf = new_shelf(ranges->count);
    if (shelf == NULL)
        return false;
    for (size_t i = 0; i < ranges->count; i++) {
        oteli_store_release_64(&shelf->range[i].begin, ranges->range[i].begin);
        oteli_store_release_64(&shelf->range[i].end, ranges->range[i].end);
    }
    oteli_store_release_64(&shelf->count, ranges->count);
    OTELI_STORE_RELEASE_PTR(place, shelf);
    return true;
}

/* Without memory the table of before stays; the ticket is taken again the next time. */
static void publish(const struct ranges *excluded)
{
    const uint64_t ticket = published + 1;
    oteli_store_relaxed_64(&taken, ticket);
    if (!put(&tables[ticket % 2], excluded))
        return;
    oteli_store_release_64(&published, ticket); /* pairs with oteli_is_among_excluded */
    oteli_fence_full();                         /* pairs with remember */
    for (size_t i = 0; i < ANSWERS; i++)
        oteli_store_relaxed_64(&answers[i], 0);
    oteli_store_relaxed_32(&oteli_exclude_is_on, 1);
}

void oteli_exclude_update(const char *patterns)
{
    if (patterns == NULL) {
        oteli_store_relaxed_32(&oteli_exclude_is_on, 0);
        return;
    }
    struct search search = {.patterns = patterns};
    oteli_symbols_each(on_function, &search);
    tidy(&search.excluded);
    if (!search.has_failed) {
        publish(&search.excluded);
        oteli_store_relaxed_64(&matched, oteli_load_relaxed_64(&matched) | search.matched);
        oteli_store_release_32(&is_matched_known, 1); /* pairs with oteli_exclude_warn */
    }
    free(search.excluded.range);
}

void oteli_exclude_warn(const char *patterns)
{
    if (patterns == NULL || oteli_load_acquire_32(&is_matched_known) == 0)
        return;
    const uint64_t found = oteli_load_relaxed_64(&matched);
    otel_slice rest = oteli_slice_of(patterns);
    otel_slice member;
    for (unsigned i = 0; oteli_list_next(&rest, &member) && i < MATCHED_BITS; i++)
        if ((found >> i & 1) == 0)
            OTELI_LOG_ALWAYS(
                OTEL_LOG_WARN,
                "OTEL_C_FUNCTIONS_EXCLUDE: \"%.*s\" matches no function that is loaded",
                (int)member.length, member.data);
}

void oteli_exclude_fini(void)
{
    oteli_exclude_update(NULL);
    while (shelves != NULL) {
        struct shelf *older = shelves->older;
        free(shelves);
        shelves = older;
    }
    memset(tables, 0, sizeof tables);
    memset(answers, 0, sizeof answers);
    taken = published = 0;
    matched = 0;
    is_matched_known = 0;
}
