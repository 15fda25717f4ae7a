/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/elf_image.h - how ELF images are read, and which build of a program or library
 * one is: its GNU build id, or where it has none a hash of its file.
 *
 * They are read piece by piece, into memory of ours: a file that is mapped instead, and cut short
 * by another program, ends the program. The id is read from the image in memory, which is the one
 * that runs whatever has become of the file, through /proc/self/mem: an image that is unmapped
 * meanwhile is an error then, and no crash.
 *
 * Threads:  any; no state. */
#ifndef OTELI_ELF_IMAGE_H
#define OTELI_ELF_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTELI_ELF_SEGMENTS_MAX = 128, OTELI_BUILD_ID_BYTES = 20, OTELI_HTLHASH_BYTES = 16 };

struct oteli_elf_identity {
    uint8_t build_id_length; /* 0: none */
    uint8_t build_id[OTELI_BUILD_ID_BYTES];
    bool has_htlhash;
    uint8_t htlhash[OTELI_HTLHASH_BYTES];
};

/* Where to read an ELF image: `base` is added to its addresses, or to its offsets. */
struct oteli_elf_source {
    int fd;
    uint64_t base;
    bool is_memory; /* mapped, and not the file */
};

/* As much as there is; false: an error. */
bool oteli_elf_read_some(int fd, uint64_t offset, void *to, size_t size, size_t *got);

/* All of it; false: it is not there. */
bool oteli_elf_read(int fd, uint64_t offset, void *to, size_t size);

/* The head of an image at this offset, and its e_phnum segments. false: it is none of this kind of
 * machine. */
bool oteli_elf_read_head(int fd, uint64_t offset, Elf64_Ehdr *head,
                         Elf64_Phdr segments[OTELI_ELF_SEGMENTS_MAX]);

/* Look for a build id in the notes of a PT_NOTE segment, which are aligned to 4 or 8. Longer ones
 * than there is room for are none. */
bool oteli_elf_find_build_id(const void *notes, size_t size, size_t alignment,
                             struct oteli_elf_identity *identity);

/* The same in an ELF image. false: it is not one, or has none. */
bool oteli_elf_read_build_id(const struct oteli_elf_source *source,
                             struct oteli_elf_identity *identity);

/* SHA-256 of the first and the last 4,096 bytes and the length of a file, cut to 16 bytes. false:
 * it cannot be read. */
bool oteli_elf_read_htlhash(int fd, struct oteli_elf_identity *identity);

#endif
