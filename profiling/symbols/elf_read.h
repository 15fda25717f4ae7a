/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/elf_read.h - how ELF images are read: piece by piece, into memory of ours. A
 * file that is mapped instead, and cut short by another program, ends the program.
 *
 * Threads:  any; no state. */
#ifndef OTELI_ELF_READ_H
#define OTELI_ELF_READ_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTELI_ELF_SEGMENTS_MAX = 128 };

/* As much as there is; false: an error. */
bool oteli_elf_read_some(int fd, uint64_t offset, void *to, size_t size, size_t *got);

/* All of it; false: it is not there. */
bool oteli_elf_read(int fd, uint64_t offset, void *to, size_t size);

/* The head of an image at this offset, and its e_phnum segments. false: it is none of this kind of
 * machine. */
bool oteli_elf_read_head(int fd, uint64_t offset, Elf64_Ehdr *head,
                         Elf64_Phdr segments[OTELI_ELF_SEGMENTS_MAX]);

#endif
