/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_elf.c - see the header. Nothing that the file says is believed before it
 * is known to lie inside of it.
 *
 * Threads:  any; a file is one thread's. */
#include "tests/support/context_elf.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static const void *at_offset(const struct elf_file *file, uint64_t offset, uint64_t size)
{
    if (offset > file->size || size > file->size - offset)
        return NULL;
    return file->bytes + offset;
}

static bool segment_at(const struct elf_file *file, size_t index, Elf64_Phdr *segment)
{
    const void *bytes =
        at_offset(file, file->header.e_phoff + index * sizeof *segment, sizeof *segment);
    if (index >= file->header.e_phnum || !bytes)
        return false;
    memcpy(segment, bytes, sizeof *segment);
    return true;
}

static const void *at_address(const struct elf_file *file, uint64_t address, uint64_t size)
{
    Elf64_Phdr segment;
    for (size_t i = 0; segment_at(file, i, &segment); i++) {
        uint64_t from = address - segment.p_vaddr;
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && from < segment.p_filesz &&
            size <= segment.p_filesz - from)
            return at_offset(file, segment.p_offset + from, size);
    }
    return NULL;
}

bool elf_find_segment(const struct elf_file *file, uint32_t type, Elf64_Phdr *segment)
{
    for (size_t i = 0; segment_at(file, i, segment); i++) {
        if (segment->p_type == type)
            return true;
    }
    return false;
}

bool elf_bias(const struct elf_file *file, uint64_t offset, uint64_t start, uint64_t *bias)
{
    Elf64_Phdr segment;
    for (size_t i = 0; segment_at(file, i, &segment); i++) {
        uint64_t into = segment.p_vaddr % PAGE;
        if (segment.p_type == PT_LOAD && segment.p_offset - into == offset) {
            *bias = start - (segment.p_vaddr - into);
            return true;
        }
    }
    return false;
}

static void read_tags(struct elf_file *file)
{
    Elf64_Phdr segment;
    if (!elf_find_segment(file, PT_DYNAMIC, &segment))
        return;
    const void *bytes = at_offset(file, segment.p_offset, segment.p_filesz);
    for (uint64_t i = 0; bytes && i < segment.p_filesz / sizeof(Elf64_Dyn); i++) {
        Elf64_Dyn tag;
        memcpy(&tag, (const uint8_t *)bytes + i * sizeof tag, sizeof tag);
        if (tag.d_tag == DT_NULL)
            break;
        file->is_dynamic = true;
        if (tag.d_tag > 0 && (size_t)tag.d_tag < sizeof file->tags / sizeof file->tags[0])
            file->tags[tag.d_tag] = tag.d_un.d_val;
        else if (tag.d_tag == DT_GNU_HASH)
            file->gnu_hash = tag.d_un.d_val;
    }
}

bool elf_open(struct elf_file *file, const char *path)
{
    *file = (struct elf_file){.bytes = NULL};
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor < 0)
        return false;
    void *bytes = MAP_FAILED;
    if (!fstat(descriptor, &status) && S_ISREG(status.st_mode) &&
        (size_t)status.st_size >= sizeof file->header)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (bytes == MAP_FAILED)
        return false;
    file->bytes = bytes;
    file->size = (size_t)status.st_size;
    memcpy(&file->header, bytes, sizeof file->header);
    const Elf64_Ehdr *header = &file->header;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_phentsize != sizeof(Elf64_Phdr) ||
        (header->e_machine != EM_X86_64 && header->e_machine != EM_AARCH64)) {
        elf_close(file);
        return false;
    }
    read_tags(file);
    return true;
}

void elf_close(struct elf_file *file)
{
    if (file->bytes)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    file->bytes = NULL;
}

static bool word_at(const struct elf_file *file, uint64_t address, uint32_t *word)
{
    const void *bytes = at_address(file, address, sizeof *word);
    if (bytes)
        memcpy(word, bytes, sizeof *word);
    return bytes;
}

/* The number of a symbol that may be the one, by the first with its hash in the bucket; then the
 * next ones. */
static bool is_named(const struct elf_file *file, uint32_t number, const char *name,
                     Elf64_Sym *symbol)
{
    const void *bytes =
        at_address(file, file->tags[DT_SYMTAB] + number * sizeof *symbol, sizeof *symbol);
    if (!bytes)
        return false;
    memcpy(symbol, bytes, sizeof *symbol);
    size_t size = strlen(name) + 1;
    const void *text = at_address(file, file->tags[DT_STRTAB] + symbol->st_name, size);
    return symbol->st_name < file->tags[DT_STRSZ] && text && memcmp(text, name, size) == 0 &&
           symbol->st_shndx != SHN_UNDEF;
}

bool elf_find_symbol(const struct elf_file *file, const char *name, Elf64_Sym *symbol,
                     uint32_t *number)
{
    uint32_t hash = 5381, table[4], word;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (uint8_t)*at;
    if (!file->gnu_hash)
        return false;
    /* How many buckets, the first symbol that is in one, words of the filter, and its shift. */
    for (size_t i = 0; i < 4; i++) {
        if (!word_at(file, file->gnu_hash + i * sizeof word, &table[i]))
            return false;
    }
    uint64_t buckets = file->gnu_hash + sizeof table + (uint64_t)table[2] * sizeof(uint64_t);
    uint64_t chains = buckets + (uint64_t)table[0] * sizeof word;
    if (!table[0] || !word_at(file, buckets + hash % table[0] * sizeof word, number) ||
        *number < table[1])
        return false;
    for (;; ++*number) {
        if (!word_at(file, chains + (uint64_t)(*number - table[1]) * sizeof word, &word))
            return false;
        if ((word | 1) == (hash | 1) && is_named(file, *number, name, symbol))
            return true;
        if (word & 1)
            return false;
    }
}

static bool slot_kind(uint16_t machine, uint64_t type, enum elf_tls_kind *kind)
{
    static const struct {
        uint16_t machine;
        uint32_t type;
        enum elf_tls_kind kind;
    } known[] = {
        {EM_X86_64, R_X86_64_TPOFF64, ELF_TLS_OFFSET},
        {EM_X86_64, R_X86_64_TLSDESC, ELF_TLS_DESCRIPTOR},
        {EM_X86_64, R_X86_64_DTPMOD64, ELF_TLS_MODULE},
        {EM_AARCH64, R_AARCH64_TLS_TPREL, ELF_TLS_OFFSET},
        {EM_AARCH64, R_AARCH64_TLSDESC, ELF_TLS_DESCRIPTOR},
        {EM_AARCH64, R_AARCH64_TLS_DTPMOD, ELF_TLS_MODULE},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].machine == machine && known[i].type == type) {
            *kind = known[i].kind;
            return true;
        }
    }
    return false;
}

static size_t slots_in(const struct elf_file *file, uint64_t table, uint64_t size, uint32_t symbol,
                       int64_t value, struct elf_tls_slot *slots, size_t most)
{
    size_t count = 0;
    for (uint64_t at = 0; at + sizeof(Elf64_Rela) <= size; at += sizeof(Elf64_Rela)) {
        Elf64_Rela relocation;
        const void *bytes = at_address(file, table + at, sizeof relocation);
        enum elf_tls_kind kind;
        if (!bytes)
            break;
        memcpy(&relocation, bytes, sizeof relocation);
        uint64_t own = ELF64_R_SYM(relocation.r_info);
        bool is_it =
            own == 0 ? relocation.r_addend == value : own == symbol && relocation.r_addend == 0;
        if (!is_it || !slot_kind(file->header.e_machine, ELF64_R_TYPE(relocation.r_info), &kind))
            continue;
        if (count < most)
            slots[count] = (struct elf_tls_slot){kind, relocation.r_offset};
        count++;
    }
    return count;
}

size_t elf_find_slots(const struct elf_file *file, uint32_t symbol, uint64_t at,
                      struct elf_tls_slot *slots, size_t most)
{
    int64_t value = (int64_t)at;
    size_t count =
        slots_in(file, file->tags[DT_RELA], file->tags[DT_RELASZ], symbol, value, slots, most);
    size_t room = count < most ? most - count : 0;
    return count + slots_in(file, file->tags[DT_JMPREL], file->tags[DT_PLTRELSZ], symbol, value,
                            slots + (most - room), room);
}
