/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_elf.h - the little of an ELF file that finding a thread-local variable
 * takes: its symbol among those for the dynamic linker, the segment it is in, and the places that
 * the dynamic linker fills in for it. Only program headers and the dynamic segment are read, as
 * section headers may be stripped.
 *
 * Threads:  any; a file is one thread's.
 * Source:   System V ABI, ELF; "ELF handling for thread-local storage". */
#ifndef OTELI_TESTS_CONTEXT_ELF_H
#define OTELI_TESTS_CONTEXT_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
    const uint8_t *bytes;
    size_t size;
    Elf64_Ehdr header;
    uint64_t tags[64]; /* of the dynamic segment, by DT_*; and */
    uint64_t gnu_hash; /* of DT_GNU_HASH */
    bool is_dynamic;
};

/* Memory of the file until elf_close. False: it is no 64-bit ELF file of a processor known here. */
bool elf_open(struct elf_file *file, const char *path);
void elf_close(struct elf_file *file);

/* The defined dynamic symbol of this name and its number. False: there is none. */
bool elf_find_symbol(const struct elf_file *file, const char *name, Elf64_Sym *symbol,
                     uint32_t *number);

/* The segment with this type, the first one. */
bool elf_find_segment(const struct elf_file *file, uint32_t type, Elf64_Phdr *segment);

/* How far addresses in memory are from those in the file, when what is at `offset` of the file has
 * been mapped at `start`. */
bool elf_bias(const struct elf_file *file, uint64_t offset, uint64_t start, uint64_t *bias);

enum elf_tls_kind {
    ELF_TLS_OFFSET,     /* a word: how far it is from the thread pointer (initial-exec) */
    ELF_TLS_DESCRIPTOR, /* two words: a function, and its argument (TLSDESC) */
    ELF_TLS_MODULE      /* two words: its module, and where in that (the traditional way) */
};
struct elf_tls_slot {
    enum elf_tls_kind kind;
    uint64_t address; /* in the file's address space */
};

/* The slots of a symbol that is `at` that place of its segment, at most `most`; how many there are.
 * Relocations name the symbol, or only its place if the library was bound to its own. */
size_t elf_find_slots(const struct elf_file *file, uint32_t symbol, uint64_t at,
                      struct elf_tls_slot *slots, size_t most);

#endif
