/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_variable.c - where the variable of a thread is: the object that defines it,
 * by its symbol among those for the dynamic linker, and the ways to it that the relocations of that
 * object show, which all have to lead to one place. It has to be of the model initial-exec, as
 * otel/thread_context.h says: in memory that every thread has from its beginning.
 *
 * Only program headers and the dynamic segment of the file are read, as section headers may be
 * stripped. Nothing that the file says is believed before it is known to lie inside of it.
 *
 * Threads:  the reader's.
 * Source:   System V ABI, ELF; "ELF handling for thread-local storage". */
#include "tests/support/context_inside.h"

#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    STATIC_MOST = 1 << 24, /* no object has so much thread-local memory */
#if defined(__x86_64__)
    MACHINE = EM_X86_64,
    INITIAL_EXEC = R_X86_64_TPOFF64
#else
    MACHINE = EM_AARCH64,
    INITIAL_EXEC = R_AARCH64_TLS_TPREL
#endif
};

struct object {
    const uint8_t *bytes; /* of the file */
    size_t size;
    Elf64_Ehdr header;
    uint64_t tags[64]; /* of the dynamic segment, by DT_*; and */
    uint64_t gnu_hash; /* of DT_GNU_HASH */
    uint64_t bias;     /* how far addresses in memory are from those in the file */
    bool is_main;
    Elf64_Sym symbol;
    uint32_t number; /* the symbol's */
};

/* ---- the file --------------------------------------------------------------------------- */

static const void *at_offset(const struct object *object, uint64_t offset, uint64_t size)
{
    if (offset > object->size || size > object->size - offset)
        return NULL;
    return object->bytes + offset;
}

static bool segment_at(const struct object *object, size_t index, Elf64_Phdr *segment)
{
    const void *bytes =
        at_offset(object, object->header.e_phoff + index * sizeof *segment, sizeof *segment);
    if (index >= object->header.e_phnum || !bytes)
        return false;
    memcpy(segment, bytes, sizeof *segment);
    return true;
}

static bool find_segment(const struct object *object, uint32_t type, Elf64_Phdr *segment)
{
    for (size_t i = 0; segment_at(object, i, segment); i++) {
        if (segment->p_type == type)
            return true;
    }
    return false;
}

/* A copy of what is at an address of the file. */
static bool read_file(const struct object *object, uint64_t address, void *to, size_t size)
{
    Elf64_Phdr segment;
    for (size_t i = 0; segment_at(object, i, &segment); i++) {
        const uint64_t from = address - segment.p_vaddr;
        if (segment.p_type != PT_LOAD || address < segment.p_vaddr || from >= segment.p_filesz ||
            size > segment.p_filesz - from)
            continue;
        const void *bytes = at_offset(object, segment.p_offset + from, size);
        if (bytes)
            memcpy(to, bytes, size);
        return bytes;
    }
    return false;
}

/* What is at the mapping's offset of the file has been mapped at its start. */
static bool find_bias(struct object *object, const struct context_mapping *mapping)
{
    Elf64_Phdr segment;
    for (size_t i = 0; segment_at(object, i, &segment); i++) {
        const uint64_t into = segment.p_vaddr % PAGE;
        if (segment.p_type == PT_LOAD && segment.p_offset - into == mapping->offset) {
            object->bias = mapping->start - (segment.p_vaddr - into);
            return true;
        }
    }
    return false;
}

static bool read_tags(struct object *object)
{
    Elf64_Phdr segment;
    if (!find_segment(object, PT_DYNAMIC, &segment))
        return false;
    const void *bytes = at_offset(object, segment.p_offset, segment.p_filesz);
    for (uint64_t i = 0; bytes && i < segment.p_filesz / sizeof(Elf64_Dyn); i++) {
        Elf64_Dyn tag;
        memcpy(&tag, (const uint8_t *)bytes + i * sizeof tag, sizeof tag);
        if (tag.d_tag == DT_NULL)
            break;
        if (tag.d_tag > 0 && (size_t)tag.d_tag < sizeof object->tags / sizeof object->tags[0])
            object->tags[tag.d_tag] = tag.d_un.d_val;
        else if (tag.d_tag == DT_GNU_HASH)
            object->gnu_hash = tag.d_un.d_val;
    }
    return true;
}

/* Whether the symbol of this number, which is copied, is the one. */
static bool is_named(struct object *object, const char *name)
{
    char text[32];
    const size_t size = strlen(name) + 1;
    return read_file(object, object->tags[DT_SYMTAB] + object->number * sizeof object->symbol,
                     &object->symbol, sizeof object->symbol) &&
           object->symbol.st_name < object->tags[DT_STRSZ] && size <= sizeof text &&
           read_file(object, object->tags[DT_STRTAB] + object->symbol.st_name, text, size) &&
           memcmp(text, name, size) == 0 && object->symbol.st_shndx != SHN_UNDEF;
}

/* By the first symbol with its hash in the bucket; then the next ones. */
static bool find_symbol(struct object *object, const char *name)
{
    uint32_t hash = 5381, word;
    struct {
        uint32_t buckets, first, filter_words, shift;
    } table;
    for (const char *at = name; *at; at++)
        hash = hash * 33 + (uint8_t)*at;
    if (!object->gnu_hash || !read_file(object, object->gnu_hash, &table, sizeof table) ||
        !table.buckets)
        return false;
    const uint64_t buckets =
        object->gnu_hash + sizeof table + (uint64_t)table.filter_words * sizeof(uint64_t);
    const uint64_t chains = buckets + (uint64_t)table.buckets * sizeof word;
    if (!read_file(object, buckets + hash % table.buckets * sizeof word, &object->number,
                   sizeof object->number) ||
        object->number < table.first)
        return false;
    for (;; object->number++) {
        const uint64_t index = object->number - table.first;
        if (!read_file(object, chains + index * sizeof word, &word, sizeof word))
            return false;
        if ((word | 1) == (hash | 1) && is_named(object, name))
            return true;
        if (word & 1)
            return false;
    }
}

static bool map_file(struct object *object, const char *path)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (descriptor < 0)
        return false;
    void *bytes = MAP_FAILED;
    if (!fstat(descriptor, &status) && S_ISREG(status.st_mode) &&
        (size_t)status.st_size >= sizeof object->header)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (bytes == MAP_FAILED)
        return false;
    object->bytes = bytes;
    object->size = (size_t)status.st_size;
    memcpy(&object->header, bytes, sizeof object->header);
    return true;
}

static void close_object(const struct object *object)
{
    munmap((void *)(uintptr_t)object->bytes, object->size);
}

/* False: nothing to close, and it does not define the variable. */
static bool open_object(const struct context_reader *reader, const struct context_mapping *mapping,
                        struct object *object)
{
    char path[PATH_MAX], program[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", reader->process);
    const ssize_t length = readlink(path, program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    snprintf(path, sizeof path, "/proc/%d/root%s", reader->process, mapping->name);
    *object = (struct object){.is_main = strcmp(program, mapping->name) == 0};
    if (!map_file(object, path))
        return false;
    const Elf64_Ehdr *header = &object->header;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
        header->e_ident[EI_DATA] == ELFDATA2LSB && header->e_phentsize == sizeof(Elf64_Phdr) &&
        header->e_machine == MACHINE && read_tags(object) && find_bias(object, mapping) &&
        find_symbol(object, "otel_thread_ctx_v1"))
        return true;
    close_object(object);
    return false;
}

/* ---- the variable ----------------------------------------------------------------------- */

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) / alignment * alignment : value;
}

/* The main program's block is where the thread pointer is. */
static enum context_found by_linker(struct context_reader *reader, const struct object *object,
                                    uint64_t pointer, uint64_t *address)
{
    Elf64_Phdr segment;
    if (!find_segment(object, PT_TLS, &segment) || object->symbol.st_value + 8 > segment.p_memsz)
        return context_fault(reader, "the symbol is not in the thread-local segment");
    if (MACHINE == EM_X86_64)
        *address = pointer - round_up(segment.p_memsz, segment.p_align) + object->symbol.st_value;
    else
        *address = pointer + round_up(16, segment.p_align) + object->symbol.st_value;
    return CONTEXT_FOUND;
}

/* By the word that a relocation has the dynamic linker fill in; *address is 0, or what the others
 * say. */
static enum context_found by_slot(struct context_reader *reader, const struct object *object,
                                  uint64_t pointer, const Elf64_Rela *slot, uint64_t *address)
{
    int64_t offset;
    if (!context_read(reader, object->bias + slot->r_offset, &offset, sizeof offset))
        return context_fault(reader, "a slot cannot be read");
    if (offset <= -STATIC_MOST || offset >= STATIC_MOST)
        return context_fault(reader, "a slot has %" PRId64 ", which is no offset", offset);
    const uint64_t found = pointer + (uint64_t)offset;
    if (*address != 0 && *address != found)
        return context_fault(reader, "two ways to the variable lead to two places");
    *address = found;
    return CONTEXT_FOUND;
}

/* Relocations name the symbol, or only its place if the library was bound to its own. */
static enum context_found by_table(struct context_reader *reader, const struct object *object,
                                   const int64_t tags[2], uint64_t pointer, uint64_t *address)
{
    Elf64_Rela slot;
    enum context_found found = CONTEXT_FOUND;
    for (uint64_t at = 0; at + sizeof slot <= object->tags[tags[1]]; at += sizeof slot) {
        if (found == CONTEXT_FAULT ||
            !read_file(object, object->tags[tags[0]] + at, &slot, sizeof slot))
            break;
        const uint64_t symbol = ELF64_R_SYM(slot.r_info);
        const bool is_its_place = slot.r_addend == (int64_t)object->symbol.st_value;
        if (ELF64_R_TYPE(slot.r_info) == INITIAL_EXEC &&
            (symbol == 0 ? is_its_place : symbol == object->number && slot.r_addend == 0))
            found = by_slot(reader, object, pointer, &slot, address);
        else if (symbol == object->number)
            found = context_fault(reader, "a relocation of the symbol is not initial-exec");
    }
    return found;
}

static enum context_found locate(struct context_reader *reader, const struct object *object,
                                 uint64_t pointer, uint64_t *address)
{
    static const int64_t tables[][2] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
    enum context_found found = CONTEXT_FOUND;
    if (ELF64_ST_TYPE(object->symbol.st_info) != STT_TLS || object->symbol.st_size != 8)
        return context_fault(reader, "the symbol is no thread-local pointer");
    if (object->is_main)
        found = by_linker(reader, object, pointer, address);
    for (size_t i = 0; i < 2 && found == CONTEXT_FOUND; i++)
        found = by_table(reader, object, tables[i], pointer, address);
    if (found == CONTEXT_FOUND && *address == 0)
        return context_fault(reader, "no relocation names the symbol");
    return found;
}

enum context_found context_find_variable(struct context_reader *reader,
                                         const struct context_thread *thread, uint64_t *address,
                                         struct context_record *record)
{
    enum context_found found = CONTEXT_INVISIBLE;
    struct context_mapping mapping;
    void *at = NULL;
    while (found != CONTEXT_FAULT && context_next_mapping(reader, &at, &mapping)) {
        struct object object;
        uint64_t other = 0;
        if (mapping.name[0] != '/' || !strchr(mapping.permissions, 'x') ||
            !open_object(reader, &mapping, &object))
            continue;
        const enum context_found again = locate(reader, &object, thread->pointer, &other);
        close_object(&object);
        if (again == CONTEXT_FAULT) {
            found = again;
        } else if (found == CONTEXT_INVISIBLE) {
            found = again;
            *address = other;
            record->is_by_linker = object.is_main;
            snprintf(record->object, sizeof record->object, "%s", mapping.name);
        } else if (other != *address) {
            found = context_fault(reader, "%s and %s have a variable each", record->object,
                                  mapping.name);
        }
    }
    context_end_mappings(&at);
    return found;
}
