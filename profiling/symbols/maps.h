/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/maps.h - /proc/self/maps, line by line: proc_pid_maps(5).
 *
 * Threads:  any; no state. */
#ifndef OTELI_MAPS_H
#define OTELI_MAPS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oteli_maps_range {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    uint64_t inode; /* 0: no file */
    uint32_t device_major;
    uint32_t device_minor;
    bool is_executable;
    char path[PATH_MAX]; /* as the kernel writes it, with new lines instead of \012; empty: none */
};

/* Read one line, without its end. false: it is none of that file. */
bool oteli_maps_parse(const char *line, size_t length, struct oteli_maps_range *range);

/* Call `take` for each range in the file. false: it cannot be read. */
typedef void oteli_maps_take(void *state, const struct oteli_maps_range *range);
bool oteli_maps_read(const char *file, oteli_maps_take *take, void *state);

#endif
