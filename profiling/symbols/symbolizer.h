/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/symbolizer.h - what functions are called, for receivers that have none of our
 * programs.
 *
 *     places ─▶ what is remembered ─▶ the file's symbol table (elf_symbols.h) ─▶ names
 *
 * Names come from the file of a mapping if that is still what is mapped, which its build id or hash
 * says. What a place is called is remembered by build, path and place, whether it has a name or
 * not, until there is too much of it; then all of it is forgotten.
 *
 * Reading has some processor time an interval, and files that take long are left alone for a
 * multiple of that afterwards, so that all together stay below 1 part in 100. What has no name for
 * that reason is asked for again later.
 *
 * Threads:  the profiler's thread. Owns its memory; no descriptor stays. */
#ifndef OTELI_SYMBOLIZER_H
#define OTELI_SYMBOLIZER_H

#include "profiling/symbols/elf_symbols.h"
#include "profiling/symbols/mappings.h"

struct oteli_symbolizer;

/* NULL: no memory. */
struct oteli_symbolizer *oteli_symbolizer_new(void);
void oteli_symbolizer_free(struct oteli_symbolizer *names);

/* Called with the index of a place that has a name, which is valid during the call. */
typedef void oteli_symbolizer_take(void *state, uint32_t index, const char *name, size_t length);

/* Find the names of these places, which are changed, within this time: of the thread's on the
 * processor, and until then on the monotonic clock. */
void oteli_symbolizer_find(struct oteli_symbolizer *names, const struct oteli_mappings *mappings,
                           struct oteli_elf_place *places, size_t count, uint64_t budget_ns,
                           uint64_t deadline_ns, oteli_symbolizer_take *take, void *state);

#endif
