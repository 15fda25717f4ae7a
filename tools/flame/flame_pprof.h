/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_pprof.h - read a pprof file: the profile.proto of google/pprof, gzipped or not,
 * from whatever wrote it.
 *
 * What is wrong with a file is found when it is opened: whatever a profile refers to is there then.
 *
 * Threads:  one. */
#ifndef FLAME_PPROF_H
#define FLAME_PPROF_H

#include "pprof/profile.pb-c.h"

#include <otel/exporter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FLAME_VALUES_MAX = 16, FLAME_LABELS_MAX = 64, FLAME_FRAMES_MAX = 4096 };

struct flame_mapping {
    uint64_t id;
    uint64_t start;
    uint64_t limit;
    uint64_t offset;
    otel_slice file;
    otel_slice build_id; /* hexadecimal; empty: not known */
};

struct flame_function {
    uint64_t id;
    otel_slice name;
};

struct flame_location {
    uint64_t id;
    uint64_t address;
    const struct flame_mapping *mapping; /* NULL: none */
    size_t first_function;               /* in `inlined`, innermost first */
    size_t function_count;               /* 0: its names are in the file of its mapping */
};

struct flame_label {
    otel_slice key;
    otel_slice text;
    int64_t number; /* where there is no text */
    otel_slice unit;
};

struct flame_sample {
    const struct flame_location *frames[FLAME_FRAMES_MAX]; /* leaf first */
    size_t depth;
    int64_t values[FLAME_VALUES_MAX];
    size_t value_count;
    struct flame_label labels[FLAME_LABELS_MAX];
    size_t label_count;
};

struct flame_profile {
    Perftools__Profiles__Profile *file; /* everything below points into it */
    otel_slice *strings;
    size_t string_count;
    struct flame_mapping *mappings;
    size_t mapping_count;
    struct flame_function *functions;
    size_t function_count;
    struct flame_location *locations;
    size_t location_count;
    const struct flame_function **inlined;
    size_t inlined_count;

    otel_slice value_names[FLAME_VALUES_MAX];
    otel_slice value_units[FLAME_VALUES_MAX];
    size_t value_count;
    size_t default_value; /* the one to show */
    int64_t time_ns;      /* since 1970; 0: not known */
    int64_t duration_ns;
};

/* `bytes` are borrowed for the call. NULL: it is read, and flame_profile_fini frees it; otherwise
 * what is wrong, as the end of a sentence that begins with the file's name. */
const char *flame_profile_read(struct flame_profile *profile, const void *bytes, size_t length);
void flame_profile_fini(struct flame_profile *profile);

/* Call `take` with every sample; `sample` is room for one. False: `take` said so. */
bool flame_profile_each(const struct flame_profile *profile, struct flame_sample *sample,
                        bool (*take)(void *state, const struct flame_sample *sample), void *state);

#endif
