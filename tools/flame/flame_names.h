/* SPDX-License-Identifier: Apache-2.0 */
/* tools/flame/flame_names.h - names of functions, from the symbol tables of the programs and
 * libraries that a profile was made in, and of their files of debug information
 * (/usr/lib/debug/.build-id).
 *
 * A file counts only if it has the build id that the profile says, where it says one: another
 * version of a library would give wrong names.
 *
 * Threads:  one. */
#ifndef FLAME_NAMES_H
#define FLAME_NAMES_H

#include <stdint.h>

enum { FLAME_FAULTS_MAX = 5 };

struct flame_names {
    struct flame_object *objects; /* the one that was looked for last is the first */
    unsigned faults;              /* files that have none, of which stderr says FLAME_FAULTS_MAX */
};

/* A zeroed struct is empty. */
void flame_names_fini(struct flame_names *names);

/* The function that is at a place of a file. `build_id` is in hexadecimal digits; "": not known.
 * NULL: the file is not there, is another one, or does not say. Stays until flame_names_fini. */
const char *flame_names_find(struct flame_names *names, const char *file, const char *build_id,
                             uint64_t offset);

#endif
