/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/mappings.h - which file's code lies at an address of this process, or lay there
 * a moment ago.
 *
 * /proc/self/maps is read again when the loader has loaded or unloaded something, and when an
 * address is in nothing that is known (not often: reading it makes the program's own mmap wait).
 * What is not there any more is remembered until it is told to settle.
 *
 * Threads:  the profiler's thread. Owns its memory. */
#ifndef OTELI_MAPPINGS_H
#define OTELI_MAPPINGS_H

#include "profiling/symbols/elf_image.h"

/* Executable memory that came from a file, or is the kernel's [vdso]. */
struct oteli_known_mapping {
    uint64_t start;
    uint64_t limit;
    uint64_t file_offset;
    const char *path; /* of a file that has been deleted: as it was, if the mapping has a build id,
                         which keeps others from taking a new file for it, or was known before; else
                         as the kernel says it */
    bool is_program;  /* the one that was started */
    struct oteli_elf_identity identity;
    uint64_t read_again_ns; /* the symbolizer's: not for names before that */
};

struct oteli_mappings;

/* NULL: no memory. */
struct oteli_mappings *oteli_mappings_new(void);
void oteli_mappings_free(struct oteli_mappings *mappings);

/* Look whether the loader has loaded or unloaded something; cheap, before addresses are looked up
 * that were sampled just now. */
void oteli_mappings_follow(struct oteli_mappings *mappings);

/* The number of the mapping, valid until the next settle; 0: none that is known. *is_code says
 * whether code can lie there at all: also where a program has made it itself, which is no
 * mapping. */
uint32_t oteli_mappings_find(struct oteli_mappings *mappings, uint64_t address, bool *is_code);

/* Of a number other than 0; valid until the next settle. */
struct oteli_known_mapping *oteli_mappings_at(const struct oteli_mappings *mappings,
                                              uint32_t number);

/* Open the file, for the caller to close. -1: it cannot be had, or is another one by now than the
 * one that is mapped. */
int oteli_mappings_open(const struct oteli_known_mapping *known);

/* Forget what is not mapped any more. */
void oteli_mappings_settle(struct oteli_mappings *mappings);

#endif
