/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/context_variable.c - where the variable of a thread is: the object that defines it,
 * and the ways to it that the relocations of that object show. They all have to lead to one place.
 *
 * Threads:  the reader's.
 * Source:   "ELF handling for thread-local storage"; the layout of glibc's DTV. */
#include "tests/support/context_elf.h"
#include "tests/support/context_inside.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SLOTS = 16,
    STATIC_MOST =
        1 << 24, /* no object has so much thread-local memory, and no pointer is so small */
    NO_MODULE_YET = -1
};

struct object {
    struct elf_file file;
    uint64_t bias;
    bool is_main;
    Elf64_Sym symbol;
    uint32_t number;
};

/* The block of a module in a thread, by the table that glibc keeps: pairs of words, of which the
 * first are a generation, and how many there are is before it. */
static enum context_found in_module(struct context_reader *reader, uint64_t pointer,
                                    uint64_t module, uint64_t offset, uint64_t *address)
{
#if defined(__x86_64__)
    uint64_t table_at = pointer + 8;
#else
    uint64_t table_at = pointer;
#endif
    uint64_t table, length, block;
    if (!context_read(reader, table_at, &table, sizeof table) ||
        !context_read(reader, table - 16, &length, sizeof length))
        return context_fault(reader, "the thread's table of modules cannot be read");
    if (module == 0 || module > UINT32_MAX)
        return context_fault(reader, "module %" PRIu64 " cannot be", module);
    if (module > length)
        return CONTEXT_NONE;
    if (!context_read(reader, table + 16 * module, &block, sizeof block))
        return context_fault(reader, "the thread's table of modules is cut");
    /* Zero, where the table is older than the module. */
    if (block == 0 || block == (uint64_t)NO_MODULE_YET)
        return CONTEXT_NONE;
    *address = block + offset;
    return CONTEXT_FOUND;
}

static enum context_found by_slot(struct context_reader *reader, const struct object *object,
                                  uint64_t pointer, const struct elf_tls_slot *slot,
                                  uint64_t *address, enum context_access *access)
{
    uint64_t words[2], pair[2];
    size_t size = slot->kind == ELF_TLS_OFFSET ? 8 : 16;
    if (!context_read(reader, object->bias + slot->address, words, size))
        return context_fault(reader, "a slot cannot be read");
    if (slot->kind == ELF_TLS_MODULE) {
        *access = CONTEXT_BY_MODULE;
        return in_module(reader, pointer, words[0], words[1], address);
    }
    *access = slot->kind == ELF_TLS_OFFSET ? CONTEXT_BY_OFFSET : CONTEXT_BY_DESCRIPTOR;
    int64_t offset = (int64_t)words[size / 8 - 1];
    if (offset > -STATIC_MOST && offset < STATIC_MOST) {
        *address = pointer + (uint64_t)offset;
        return CONTEXT_FOUND;
    }
    if (slot->kind == ELF_TLS_OFFSET || !context_read(reader, words[1], pair, sizeof pair))
        return context_fault(reader, "a slot has %" PRId64 ", which is no offset", offset);
    *access = CONTEXT_BY_DESCRIPTOR_OF_MODULE;
    return in_module(reader, pointer, pair[0], pair[1], address);
}

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
    return alignment > 1 ? (value + alignment - 1) / alignment * alignment : value;
}

/* The main program's block is where the thread pointer is, and its module is the first. */
static enum context_found by_linker(struct context_reader *reader, const struct object *object,
                                    uint64_t pointer, uint64_t *address)
{
    Elf64_Phdr segment;
    uint64_t again;
    if (!elf_find_segment(&object->file, PT_TLS, &segment) ||
        object->symbol.st_value + 8 > segment.p_memsz)
        return context_fault(reader, "the symbol is not in the thread-local segment");
    if (object->file.header.e_machine == EM_X86_64)
        *address = pointer - round_up(segment.p_memsz, segment.p_align) + object->symbol.st_value;
    else
        *address = pointer + round_up(16, segment.p_align) + object->symbol.st_value;
    enum context_found found = in_module(reader, pointer, 1, object->symbol.st_value, &again);
    if (found == CONTEXT_FOUND && again != *address)
        return context_fault(reader, "the thread's table has another place for it");
    return found;
}

static enum context_found locate(struct context_reader *reader, const struct object *object,
                                 uint64_t pointer, uint64_t *address, enum context_access *access)
{
    struct elf_tls_slot slots[SLOTS];
    size_t count =
        elf_find_slots(&object->file, object->number, object->symbol.st_value, slots, SLOTS);
    enum context_found found = CONTEXT_INVISIBLE;
    if (ELF64_ST_TYPE(object->symbol.st_info) != STT_TLS || object->symbol.st_size != 8)
        return context_fault(reader, "the symbol is no thread-local pointer");
    if (object->is_main) {
        *access = CONTEXT_BY_LINKER;
        found = by_linker(reader, object, pointer, address);
    } else if (count == 0) {
        return context_fault(reader, "no relocation names the symbol");
    }
    for (size_t i = 0; i < count && i < SLOTS; i++) {
        uint64_t other = 0;
        enum context_access way = CONTEXT_BY_OFFSET;
        enum context_found again = by_slot(reader, object, pointer, &slots[i], &other, &way);
        if (again == CONTEXT_FAULT || found == CONTEXT_FAULT)
            return CONTEXT_FAULT;
        if (found == CONTEXT_INVISIBLE) {
            *access = way;
            *address = other;
            found = again;
        } else if (found != again || (found == CONTEXT_FOUND && other != *address)) {
            return context_fault(reader, "two ways to the variable lead to two places");
        }
    }
    return found;
}

static bool open_object(struct context_reader *reader, const struct context_mapping *mapping,
                        struct object *object)
{
    char path[PATH_MAX], program[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", reader->process);
    ssize_t length = readlink(path, program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    object->is_main = strcmp(program, mapping->name) == 0;
    snprintf(path, sizeof path, "/proc/%d/root%s", reader->process, mapping->name);
    if (!elf_open(&object->file, reader->is_self ? mapping->name : path))
        return false;
    if (object->file.is_dynamic &&
        elf_bias(&object->file, mapping->offset, mapping->start, &object->bias) &&
        elf_find_symbol(&object->file, "otel_thread_ctx_v1", &object->symbol, &object->number))
        return true;
    elf_close(&object->file);
    return false;
}

enum context_found context_find_variable(struct context_reader *reader,
                                         const struct context_thread *thread, uint64_t *address,
                                         struct context_record *record)
{
    enum context_found found = CONTEXT_INVISIBLE;
    struct context_mapping mapping;
    void *at = NULL;
    while (found != CONTEXT_FAULT && context_next_mapping(reader, &at, &mapping)) {
        struct object object = {.bias = 0};
        uint64_t other = 0;
        enum context_access way = CONTEXT_BY_LINKER;
        if (mapping.name[0] != '/' || !strchr(mapping.permissions, 'x') ||
            !open_object(reader, &mapping, &object))
            continue;
        enum context_found again = locate(reader, &object, thread->pointer, &other, &way);
        elf_close(&object.file);
        if (again == CONTEXT_FAULT) {
            found = again;
        } else if (found == CONTEXT_INVISIBLE) {
            found = again;
            *address = other;
            record->access = way;
            snprintf(record->object, sizeof record->object, "%s", mapping.name);
        } else if (found != again || (found == CONTEXT_FOUND && other != *address)) {
            found = context_fault(reader, "%s and %s have a variable each", record->object,
                                  mapping.name);
        }
    }
    context_end_mappings(&at);
    return found;
}
