/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/elf_symbols.h - which functions lie at places of a program or library, by the
 * symbol table in its file: .symtab, and .dynsym where that is stripped.
 *
 * A table is gone through once for all places that are asked for, and nothing of it is kept: a
 * program may have millions of symbols, of which samples hit a few thousand. What is in the file
 * may be anything, and may change while it is read.
 *
 * Threads:  any; no state. */
#ifndef OTELI_ELF_SYMBOLS_H
#define OTELI_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTELI_SYMBOL_NAME_MAX = 4095 }; /* bytes; a longer one counts as none */

/* A function, as the reader knows it. */
struct oteli_elf_function {
    uint64_t start;
    uint32_t name; /* in the table of strings; 0: there is no function */
    uint8_t rank;  /* global 3, weak 2, local 1 */
};

/* A place in the file: the first three are the caller's, all else is the reader's. */
struct oteli_elf_place {
    uint64_t offset;
    uint32_t index;
    uint32_t mapping; /* of oteli_mappings_find; the reader does not look at it */
    uint64_t address; /* as the file counts */
    struct oteli_elf_function found;
};

/* How long it may take. */
struct oteli_elf_limit {
    uint64_t cpu_ns;      /* by oteli_thread_time_ns */
    uint64_t deadline_ns; /* on the monotonic clock */
};
bool oteli_elf_is_late(const struct oteli_elf_limit *limit);

enum oteli_elf_outcome {
    OTELI_ELF_DONE,       /* places without a name are in no function */
    OTELI_ELF_NO_SYMBOLS, /* no image of this machine, or without a table that can be read */
    OTELI_ELF_LATE        /* it took too long, or there is no memory: nothing is known */
};

/* Called for each place that has a name. The name has a NUL behind it, and is valid during the
 * call. */
typedef void oteli_elf_take(void *state, const struct oteli_elf_place *place, const char *name,
                            size_t length);

/* Look for all of these places, which are brought into another order. A function covers its size.
 * Of several the one that begins last counts, then a global before a weak before a local one, then
 * one with fewer underscores in front (malloc, and not __libc_malloc), then the first in the
 * table. */
enum oteli_elf_outcome oteli_elf_find_functions(int fd, struct oteli_elf_place *places,
                                                size_t count, const struct oteli_elf_limit *limit,
                                                oteli_elf_take *take, void *state);

#endif
