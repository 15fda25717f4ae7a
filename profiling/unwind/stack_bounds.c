/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/unwind/stack_bounds.c - see stack_bounds.h. Owns the tables. */
#include "profiling/unwind/stack_bounds.h"

#include "profiling/maps.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { FIRST_REGIONS = 256, MOST_REGIONS = 1 << 16 };

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

struct reading {
    struct oteli_stack_table *table;
    size_t room;
    uint64_t floor; /* where the range before ends */
};

static bool have_room(struct reading *reading)
{
    if (reading->table != NULL && reading->table->count < reading->room)
        return true;
    const size_t room = reading->table != NULL ? 2 * reading->room : FIRST_REGIONS;
    struct oteli_stack_table *larger =
        room <= MOST_REGIONS
            ? realloc(reading->table, sizeof *larger + room * sizeof larger->regions[0])
            : NULL;
    if (larger == NULL)
        return false;
    if (reading->table == NULL)
        larger->count = 0;
    reading->table = larger;
    reading->room = room;
    return true;
}

/* One that may be a stack: private, and it can be written. */
static void take_range(void *state, const struct oteli_maps_range *range)
{
    struct reading *reading = state;
    struct oteli_stack_region region = {range->start, range->limit};
    const uint64_t floor = reading->floor;
    reading->floor = range->limit;
    if (strncmp(range->rights, "rw", 2) != 0 || range->rights[3] != 'p')
        return;
    if (strcmp(range->path, "[stack]") == 0)
        extend_main(&region, floor);
    if (have_room(reading))
        reading->table->regions[reading->table->count++] = region;
}

bool oteli_stack_bounds_read(struct oteli_stack_bounds *bounds)
{
    if (bounds->retired != NULL)
        return false;
    bounds->unknown_seen = oteli_load_relaxed_32(&bounds->unknown);
    struct reading reading = {.table = NULL};
    (void)oteli_maps_read("/proc/self/maps", take_range, &reading);
    if (reading.table == NULL)
        return false;
    bounds->retired = bounds->table;
    OTELI_STORE_RELEASE_PTR(&bounds->table, reading.table);
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
