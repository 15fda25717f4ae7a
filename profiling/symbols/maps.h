/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/maps.h - /proc/self/maps, line by line: proc_pid_maps(5).
 *
 * Threads:  any; no state. */
#ifndef OTELI_MAPS_H
#define OTELI_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oteli_maps_range {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    uint64_t device;
    uint64_t inode;   /* 0: no file */
    char rights[5];   /* "rwxp" */
    const char *path; /* as the kernel writes it; empty: none */
};

/* Read one line, whose end becomes that of the path, which is valid as long as the line. false: it
 * is none of that file. */
bool oteli_maps_parse(char *line, struct oteli_maps_range *range);

/* Call `take` for each range in the file. false: it cannot be read. */
typedef void oteli_maps_take(void *state, const struct oteli_maps_range *range);
bool oteli_maps_read(const char *file, oteli_maps_take *take, void *state);

#endif
