/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/symbolizer.h - what functions are called, for receivers that have none of our
 * programs.
 *
 * Names come from the symbol table in the file of a mapping (elf_symbols.h) if that is still what
 * is mapped, which its build id or hash says. Nothing is remembered but which files are not worth
 * another look: those without names, and those that took too long, are left alone for a minute.
 *
 * Threads:  the profiler's thread; no descriptor stays. */
#ifndef OTELI_SYMBOLIZER_H
#define OTELI_SYMBOLIZER_H

#include "profiling/symbols/elf_symbols.h"
#include "profiling/symbols/mappings.h"

/* Find the names of these places, which are brought into another order, within this time: of the
 * thread's on the processor, and until then on the monotonic clock. */
void oteli_symbolizer_find(const struct oteli_mappings *mappings, struct oteli_elf_place *places,
                           size_t count, uint64_t budget_ns, uint64_t deadline_ns,
                           oteli_elf_take *take, void *state);

#endif
