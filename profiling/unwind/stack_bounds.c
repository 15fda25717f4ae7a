/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/unwind/stack_bounds.c - see stack_bounds.h. Owns the tables. */
#include "profiling/unwind/stack_bounds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { FIRST_REGIONS = 256, MOST_REGIONS = 1 << 16, LINE_BYTES = 512 };

static const uint64_t most_main_stack = UINT64_C(1) << 30;

uint64_t oteli_stack_bounds_find(struct oteli_stack_bounds *bounds, uint64_t address)
{
    const struct oteli_stack_table *table = OTELI_LOAD_ACQUIRE_PTR(&bounds->table);
    size_t low = 0;
    size_t high = table != NULL ? table->count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (address < table->regions[middle].low)
            high = middle;
        else if (address >= table->regions[middle].high)
            low = middle + 1;
        else
            return table->regions[middle].high;
    }
    oteli_add_full_32(&bounds->unknown, 1);
    return 0;
}

bool oteli_stack_bounds_is_stale(const struct oteli_stack_bounds *bounds)
{
    return oteli_load_relaxed_32(&bounds->unknown) != bounds->unknown_seen;
}

/* "LOW-HIGH rwxp …". NULL: no such line; else where its rights are. */
static const char *parse_range(const char *line, struct oteli_stack_region *region)
{
    char *end;
    region->low = strtoull(line, &end, 16);
    if (end == line || *end != '-')
        return NULL;
    const char *high = end + 1;
    region->high = strtoull(high, &end, 16);
    return end != high && *end == ' ' && region->low < region->high ? end + 1 : NULL;
}

bool oteli_stack_region_of_line(const char *line, struct oteli_stack_region *region, bool *is_main)
{
    const char *rights = parse_range(line, region);
    if (rights == NULL || strlen(rights) < 4 || strncmp(rights, "rw", 2) != 0 || rights[3] != 'p')
        return false;
    *is_main = strstr(rights, "[stack]") != NULL;
    return true;
}

/* The main thread's region grows downward as it is used, as far as its limit. */
static void extend_main(struct oteli_stack_region *region, uint64_t floor)
{
    struct rlimit limit;
    uint64_t most = most_main_stack;
    if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < most)
        most = limit.rlim_cur;
    uint64_t low = region->high > most ? region->high - most : 0;
    if (low < floor)
        low = floor;
    if (low < region->low)
        region->low = low;
}

static struct oteli_stack_table *grown(struct oteli_stack_table *table, size_t *room)
{
    const size_t wanted = table != NULL ? *room * 2 : FIRST_REGIONS;
    struct oteli_stack_table *larger =
        realloc(table, sizeof *larger + wanted * sizeof larger->regions[0]);
    if (larger == NULL)
        return NULL;
    if (table == NULL)
        larger->count = 0;
    *room = wanted;
    return larger;
}

/* Lines may be longer than ours: what is behind the first LINE_BYTES is a file's name. */
static bool read_line(FILE *file, char *line)
{
    if (fgets(line, LINE_BYTES, file) == NULL)
        return false;
    if (strchr(line, '\n') == NULL) {
        int next;
        do
            next = getc(file);
        while (next != '\n' && next != EOF);
    }
    return true;
}

static struct oteli_stack_table *read_table(FILE *file)
{
    size_t room = 0;
    struct oteli_stack_table *table = grown(NULL, &room);
    char line[LINE_BYTES];
    uint64_t floor = 0;
    while (table != NULL && table->count < MOST_REGIONS && read_line(file, line)) {
        struct oteli_stack_region region;
        bool is_main;
        if (!oteli_stack_region_of_line(line, &region, &is_main)) {
            if (parse_range(line, &region) != NULL)
                floor = region.high;
            continue;
        }
        if (is_main)
            extend_main(&region, floor);
        floor = region.high;
        if (table->count == room) {
            struct oteli_stack_table *larger = grown(table, &room);
            if (larger == NULL)
                break; /* what there is is right */
            table = larger;
        }
        table->regions[table->count++] = region;
    }
    return table;
}

bool oteli_stack_bounds_read(struct oteli_stack_bounds *bounds)
{
    if (bounds->retired != NULL)
        return false;
    bounds->unknown_seen = oteli_load_relaxed_32(&bounds->unknown);
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL)
        return false;
    struct oteli_stack_table *table = read_table(file);
    fclose(file);
    if (table == NULL)
        return false;
    bounds->retired = bounds->table;
    OTELI_STORE_RELEASE_PTR(&bounds->table, table);
    return true;
}

void oteli_stack_bounds_settle(struct oteli_stack_bounds *bounds)
{
    free(bounds->retired);
    bounds->retired = NULL;
}

void oteli_stack_bounds_fini(struct oteli_stack_bounds *bounds)
{
    free(bounds->retired);
    free(bounds->table);
    *bounds = (struct oteli_stack_bounds){0};
}
