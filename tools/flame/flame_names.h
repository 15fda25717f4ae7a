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

#include "tools/flame/flame_pprof.h"

struct flame_names;

/* NULL: no memory. */
struct flame_names *flame_names_new(void);
void flame_names_free(struct flame_names *names);

/* The function that is at an address of a mapping, as the linker knows it. An empty text: the file
 * is not there, is another one, or does not say. Stays until flame_names_free. */
otel_slice flame_names_find(struct flame_names *names, const struct flame_mapping *mapping,
                            uint64_t address);

/* What kept names from being found, one sentence for each file: the file, and its reason; NULL
 * behind the last. */
const char *flame_names_fault(const struct flame_names *names, size_t index, otel_slice *file);

#endif
