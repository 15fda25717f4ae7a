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
#include "profiling/symbols/elf_read.h"

#include <stdlib.h>
#include <string.h>

enum {
    SYMBOLS = 2048, /* that are read at once */
    SECTIONS = 64,  /* the same */
    SECTIONS_MAX = 1 << 17,
    SHORT_NAME = 128,
    UNDERSCORES = 8
};

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
    union {
        Elf64_Sym symbols[SYMBOLS];
        Elf64_Shdr sections[SECTIONS];
        char name[OTELI_SYMBOL_NAME_MAX + 1];
    } buffer;
};

static bool is_late(const struct reader *reader)
{
    return oteli_thread_time_ns() >= reader->limit->cpu_ns ||
           oteli_monotonic_ns() >= reader->limit->deadline_ns;
}

/* ---- tables ------------------------------------------------------------------------------- */

static bool read_section(const struct reader *reader, uint64_t index, Elf64_Shdr *section)
{
    return index < SECTIONS_MAX &&
           oteli_elf_read(reader->fd, reader->head.e_shoff + index * sizeof *section, section,
                          sizeof *section);
}

/* How many there are may be said in the first of them; 0: there are none. */
static size_t count_sections(const struct reader *reader)
{
    Elf64_Shdr first;
    if (reader->head.e_shoff == 0 || reader->head.e_shentsize != sizeof first)
        return 0;
    if (reader->head.e_shnum != 0)
        return reader->head.e_shnum;
    return read_section(reader, 0, &first) && first.sh_size < SECTIONS_MAX ? first.sh_size : 0;
}

/* The table, and the strings that it refers to. */
static bool use_table(struct reader *reader, const Elf64_Shdr *table)
{
    Elf64_Shdr strings;
    if (table->sh_entsize != sizeof(Elf64_Sym) || table->sh_size < sizeof(Elf64_Sym) ||
        !read_section(reader, table->sh_link, &strings) || strings.sh_type != SHT_STRTAB ||
        strings.sh_size == 0)
        return false;
    reader->symbols = (struct extent){table->sh_offset, table->sh_size};
    reader->strings = (struct extent){strings.sh_offset, strings.sh_size};
    return true;
}

static bool find_table(struct reader *reader)
{
    const size_t count = count_sections(reader);
    bool is_found = false;
    for (size_t first = 0; first < count; first += SECTIONS) {
        const size_t some = count - first < SECTIONS ? count - first : SECTIONS;
        Elf64_Shdr *sections = reader->buffer.sections;
        if (!oteli_elf_read(reader->fd, reader->head.e_shoff + first * sizeof *sections, sections,
                            some * sizeof *sections))
            return is_found;
        for (size_t i = 0; i < some; i++) {
            if (sections[i].sh_type == SHT_SYMTAB && use_table(reader, &sections[i]))
                return true;
            if (sections[i].sh_type == SHT_DYNSYM && !is_found)
                is_found = use_table(reader, &sections[i]);
        }
    }
    return is_found;
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
    switch (ELF64_ST_BIND(symbol->st_info)) {
    case STB_GLOBAL:
    case STB_GNU_UNIQUE:
        return 3;
    case STB_WEAK:
        return 2;
    default:
        return 1;
    }
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
    Elf64_Sym *symbols = reader->buffer.symbols;
    const uint64_t count = reader->symbols.size / sizeof *symbols;
    for (uint64_t first = 0; first < count; first += SYMBOLS) {
        const size_t some = count - first < SYMBOLS ? (size_t)(count - first) : SYMBOLS;
        if (is_late(reader))
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
    char *text = reader->buffer.name;
    const uint64_t left = reader->strings.size - name;
    const size_t sizes[] = {SHORT_NAME, sizeof reader->buffer.name};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = left < sizes[i] ? (size_t)left : sizes[i];
        if (!oteli_elf_read_some(reader->fd, reader->strings.offset + name, text, size, &size))
            return 0;
        const char *end = memchr(text, '\0', size);
        if (end == NULL)
            continue;
        const char *version = memchr(text, '@', (size_t)(end - text));
        const size_t length = (size_t)((version != NULL ? version : end) - text);
        text[length] = '\0';
        return length;
    }
    return 0;
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
            take(state, place, reader->buffer.name, length);
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
