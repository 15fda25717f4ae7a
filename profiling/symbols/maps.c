/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/maps.c - the contracts are in maps.h. Any thread; owns nothing. */
#include "profiling/symbols/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number, and this mark behind it. */
static bool take_number(char **at, int base, char mark, uint64_t *number)
{
    char *end;
    *number = strtoull(*at, &end, base);
    if (end == *at || *end != mark)
        return false;
    *at = end + 1;
    return true;
}

bool oteli_maps_parse(char *line, struct oteli_maps_range *range)
{
    enum { RIGHTS = sizeof range->rights - 1 };
    uint64_t major;
    uint64_t minor;
    char *at = line;
    line[strcspn(line, "\n")] = '\0';
    if (!take_number(&at, 16, '-', &range->start) || !take_number(&at, 16, ' ', &range->limit) ||
        strlen(at) <= RIGHTS || at[RIGHTS] != ' ')
        return false;
    memcpy(range->rights, at, RIGHTS);
    range->rights[RIGHTS] = '\0';
    at += RIGHTS + 1;
    if (!take_number(&at, 16, ' ', &range->file_offset) || !take_number(&at, 16, ':', &major) ||
        !take_number(&at, 16, ' ', &minor) || !take_number(&at, 10, ' ', &range->inode))
        return false;
    range->device = major << 32 | minor;
    range->path = at + strspn(at, " ");
    return range->start < range->limit;
}

bool oteli_maps_read(const char *file, oteli_maps_take *take, void *state)
{
    struct oteli_maps_range range;
    char *line = NULL;
    size_t room = 0;
    FILE *maps = fopen(file, "re");
    if (maps == NULL)
        return false;
    while (getline(&line, &room, maps) > 0)
        if (oteli_maps_parse(line, &range))
            take(state, &range);
    const bool is_whole = feof(maps) != 0;
    free(line);
    fclose(maps);
    return is_whole;
}
