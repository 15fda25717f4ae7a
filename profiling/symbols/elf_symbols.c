/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/symbols/elf_symbols.c - the contracts are in elf_symbols.h. Any thread; owns nothing
 * between calls.
 *
 * Places are sorted by address; each symbol looks by bisection for the first place that is not
 * before it. What covers that place and those behind it is noted there.
 *
 * Source: elf(5). */
#include "profiling/symbols/elf_symbols.h"

#include "common/clock/clock.h"
#include "common/clock/thread_time.h"
#include "profiling/symbols/elf_image.h"

#include <stdlib.h>
#include <string.h>

enum { SYMBOLS = 2048 /* that are read at once */, UNDERSCORES = 8 };

/* A part of the file. */
struct extent {
    uint64_t offset;
    uint64_t size;
};

struct reader {
    int fd;
    Elf64_Ehdr head;
    Elf64_Phdr segments[OTELI_ELF_SEGMENTS_MAX];
    struct extent symbols;
    struct extent strings;
    struct oteli_elf_place *places;
    size_t count; /* of those that are in code */
    const struct oteli_elf_limit *limit;
    Elf64_Sym buffer[SYMBOLS];
    char name[OTELI_SYMBOL_NAME_MAX + 1];
};

bool oteli_elf_is_late(const struct oteli_elf_limit *limit)
{
    return oteli_thread_time_ns() >= limit->cpu_ns || oteli_monotonic_ns() >= limit->deadline_ns;
}

/* ---- tables ------------------------------------------------------------------------------- */

/* Whether it is a table of symbols that has its strings. */
static bool is_table(const Elf64_Shdr *sections, size_t count, size_t index, uint32_t type)
{
    const Elf64_Shdr *table = &sections[index];
    return table->sh_type == type && table->sh_entsize == sizeof(Elf64_Sym) &&
           table->sh_size >= sizeof(Elf64_Sym) && table->sh_link < count &&
           sections[table->sh_link].sh_type == SHT_STRTAB && sections[table->sh_link].sh_size != 0;
}

static bool find_table(struct reader *reader)
{
    const size_t count = reader->head.e_shnum;
    Elf64_Shdr *sections = calloc(count + 1, sizeof *sections);
    size_t found = count;
    if (sections != NULL && reader->head.e_shoff != 0 &&
        reader->head.e_shentsize == sizeof *sections &&
        oteli_elf_read(reader->fd, reader->head.e_shoff, sections, count * sizeof *sections))
        for (size_t i = count; i-- != 0;)
            if (is_table(sections, count, i, SHT_SYMTAB) ||
                (found == count && is_table(sections, count, i, SHT_DYNSYM)))
                found = i;
    if (found != count) {
        const Elf64_Shdr *strings = &sections[sections[found].sh_link];
        reader->symbols = (struct extent){sections[found].sh_offset, sections[found].sh_size};
        reader->strings = (struct extent){strings->sh_offset, strings->sh_size};
    }
    free(sections);
    return found != count;
}

/* ---- places ------------------------------------------------------------------------------- */

/* Its address in the file's own counting; UINT64_MAX: it is in no code. */
static uint64_t address_of(const struct reader *reader, uint64_t offset)
{
    for (size_t i = 0; i < reader->head.e_phnum; i++) {
        const Elf64_Phdr *segment = &reader->segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 &&
            offset >= segment->p_offset && offset - segment->p_offset < segment->p_filesz)
            return offset - segment->p_offset + segment->p_vaddr;
    }
    return UINT64_MAX;
}

static int compare_places(const void *one, const void *other)
{
    const struct oteli_elf_place *left = one;
    const struct oteli_elf_place *right = other;
    return (left->address > right->address) - (left->address < right->address);
}

static void sort_places(struct reader *reader, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct oteli_elf_place *place = &reader->places[i];
        place->address = address_of(reader, place->offset);
        place->found = (struct oteli_elf_function){0};
    }
    qsort(reader->places, count, sizeof *reader->places, compare_places);
    while (count != 0 && reader->places[count - 1].address == UINT64_MAX)
        count--;
    reader->count = count;
}

/* The first that is not before this address. */
static size_t first_from(const struct reader *reader, uint64_t address)
{
    size_t low = 0;
    size_t high = reader->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (reader->places[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- symbols ------------------------------------------------------------------------------ */

/* How many stand in front of a name, as far as that matters. */
static size_t underscores(const struct reader *reader, uint32_t name)
{
    char text[UNDERSCORES];
    size_t got;
    size_t count = 0;
    if (!oteli_elf_read_some(reader->fd, reader->strings.offset + name, text, sizeof text, &got))
        return UNDERSCORES;
    while (count < got && text[count] == '_')
        count++;
    return count;
}

static bool is_better(const struct reader *reader, const struct oteli_elf_function *function,
                      const struct oteli_elf_function *known)
{
    if (known->name == 0 || function->start != known->start)
        return known->name == 0 || function->start > known->start;
    if (function->rank != known->rank)
        return function->rank > known->rank;
    return function->name != known->name &&
           underscores(reader, function->name) < underscores(reader, known->name);
}

/* 0: it is no function that is in this file. */
static uint8_t rank_of(const struct reader *reader, const Elf64_Sym *symbol)
{
    const unsigned type = ELF64_ST_TYPE(symbol->st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
        symbol->st_name == 0 || symbol->st_name >= reader->strings.size)
        return 0;
    const unsigned bind = ELF64_ST_BIND(symbol->st_info);
    return bind == STB_WEAK ? 2 : bind == STB_GLOBAL || bind == STB_GNU_UNIQUE ? 3 : 1;
}

static void note(struct reader *reader, const Elf64_Sym *symbol)
{
    const struct oteli_elf_function function = {
        .start = symbol->st_value, .name = symbol->st_name, .rank = rank_of(reader, symbol)};
    size_t i = function.rank != 0 ? first_from(reader, function.start) : reader->count;
    for (; i < reader->count && reader->places[i].address - function.start < symbol->st_size; i++)
        if (is_better(reader, &function, &reader->places[i].found))
            reader->places[i].found = function;
}

/* Not DONE where the file has less than it says, or it takes too long. */
static enum oteli_elf_outcome read_symbols(struct reader *reader)
{
    Elf64_Sym *symbols = reader->buffer;
    const uint64_t count = reader->symbols.size / sizeof *symbols;
    for (uint64_t first = 0; first < count; first += SYMBOLS) {
        const size_t some = count - first < SYMBOLS ? (size_t)(count - first) : SYMBOLS;
        if (oteli_elf_is_late(reader->limit))
            return OTELI_ELF_LATE;
        if (!oteli_elf_read(reader->fd, reader->symbols.offset + first * sizeof *symbols, symbols,
                            some * sizeof *symbols))
            return OTELI_ELF_NO_SYMBOLS;
        for (size_t i = 0; i < some; i++)
            note(reader, &symbols[i]);
    }
    return OTELI_ELF_DONE;
}

/* ---- names -------------------------------------------------------------------------------- */

/* Without the version that a linker has put behind it (memcpy@@GLIBC_2.14). 0: it has no end that
 * is near, or is empty. */
static size_t read_name(struct reader *reader, uint32_t name)
{
    const uint64_t left = reader->strings.size - name;
    size_t size = left < sizeof reader->name ? (size_t)left : sizeof reader->name;
    if (!oteli_elf_read_some(reader->fd, reader->strings.offset + name, reader->name, size, &size))
        return 0;
    const char *end = memchr(reader->name, '\0', size);
    if (end == NULL)
        return 0;
    const size_t length = strcspn(reader->name, "@");
    reader->name[length] = '\0';
    return length;
}

static void tell(struct reader *reader, oteli_elf_take *take, void *state)
{
    uint32_t name = 0;
    size_t length = 0;
    for (size_t i = 0; i < reader->count; i++) {
        const struct oteli_elf_place *place = &reader->places[i];
        if (place->found.name == 0)
            continue;
        if (place->found.name != name)
            length = read_name(reader, place->found.name);
        name = place->found.name;
        if (length != 0)
            take(state, place, reader->name, length);
    }
}

enum oteli_elf_outcome oteli_elf_find_functions(int fd, struct oteli_elf_place *places,
                                                size_t count, const struct oteli_elf_limit *limit,
                                                oteli_elf_take *take, void *state)
{
    struct reader *reader = malloc(sizeof *reader);
    if (reader == NULL)
        return OTELI_ELF_LATE;
    enum oteli_elf_outcome outcome = OTELI_ELF_NO_SYMBOLS;
    reader->fd = fd;
    reader->places = places;
    reader->limit = limit;
    if (oteli_elf_read_head(fd, 0, &reader->head, reader->segments) && find_table(reader)) {
        sort_places(reader, count);
        outcome = read_symbols(reader);
    }
    if (outcome == OTELI_ELF_DONE)
        tell(reader, take, state);
    free(reader);
    return outcome;
}
