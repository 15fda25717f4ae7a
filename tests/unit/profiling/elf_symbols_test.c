/* SPDX-License-Identifier: Apache-2.0 */
/* Which function lies where in an ELF file: of images that are made by hand, of this program itself,
 * and of files that are cut off or broken. */
#include "profiling/elf_symbols.h"

#include "common/clock.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- an image ----------------------------------------------------------------------------- */

enum {
    CODE_OFFSET = 0x1000,  /* in the file */
    CODE_ADDRESS = 0x7000, /* in the file's own counting */
    CODE_SIZE = 0x9000,    /* .text has the first half, .other what is behind it */
    TEXT = 1,
    OTHER,
    SYMTAB,
    STRTAB,
    DYNSYM,
    DYNSTR,
    SECTIONS,
    SYMBOLS_MOST = 8192,
    STRINGS_MOST = 256 * 1024
};

struct table {
    Elf64_Sym symbols[SYMBOLS_MOST];
    size_t count;
    char strings[STRINGS_MOST];
    size_t length;
};

static struct image {
    Elf64_Ehdr head;
    Elf64_Phdr segments[2];
    Elf64_Shdr sections[SECTIONS];
    struct table tables[2]; /* .symtab and .dynsym */
} image;

static void image_begin(void)
{
    memset(&image, 0, sizeof image);
    const Elf64_Ehdr head = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_phoff = offsetof(struct image, segments),
        .e_shoff = offsetof(struct image, sections),
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = 2,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = SECTIONS};
    image.head = head;
    image.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0xffff};
    image.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                     .p_flags = PF_R | PF_X,
                                     .p_offset = CODE_OFFSET,
                                     .p_vaddr = CODE_ADDRESS,
                                     .p_filesz = CODE_SIZE};
    for (size_t i = TEXT; i <= OTHER; i++)
        image.sections[i] = (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                                         .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                         .sh_addr = CODE_ADDRESS + (i - TEXT) * CODE_SIZE / 2,
                                         .sh_size = CODE_SIZE / 2};
    for (size_t i = 0; i < 2; i++)
        image.tables[i].count = image.tables[i].length = 1;
}

/* A symbol at this place of the code. */
static void add_to(struct table *table, const char *name, uint64_t place, uint64_t size,
                   unsigned bind, unsigned type, uint16_t section)
{
    const size_t length = strlen(name) + 1;
    assert_true(table->count < SYMBOLS_MOST && table->length + length <= STRINGS_MOST);
    table->symbols[table->count++] = (Elf64_Sym){.st_name = (uint32_t)table->length,
                                                 .st_info = (uint8_t)ELF64_ST_INFO(bind, type),
                                                 .st_shndx = section,
                                                 .st_value = CODE_ADDRESS + place,
                                                 .st_size = size};
    memcpy(table->strings + table->length, name, length);
    table->length += length;
}

static void add(const char *name, uint64_t place, uint64_t size, unsigned bind)
{
    add_to(&image.tables[0], name, place, size, bind, STT_FUNC, TEXT);
}

/* The image as a file; tables without symbols are not in it. */
static int image_file(void)
{
    for (size_t i = 0; i < 2; i++) {
        const struct table *table = &image.tables[i];
        const size_t at = offsetof(struct image, tables) + i * sizeof *table;
        if (table->count == 1)
            continue;
        image.sections[SYMTAB + 2 * i] =
            (Elf64_Shdr){.sh_type = i == 0 ? SHT_SYMTAB : SHT_DYNSYM,
                         .sh_offset = at + offsetof(struct table, symbols),
                         .sh_size = table->count * sizeof(Elf64_Sym),
                         .sh_link = (uint32_t)(STRTAB + 2 * i),
                         .sh_entsize = sizeof(Elf64_Sym)};
        image.sections[STRTAB + 2 * i] =
            (Elf64_Shdr){.sh_type = SHT_STRTAB,
                         .sh_offset = at + offsetof(struct table, strings),
                         .sh_size = table->length};
    }
    const int fd = memfd_create("image", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, &image, sizeof image, 0), (ssize_t)sizeof image);
    return fd;
}

/* ---- asking ------------------------------------------------------------------------------- */

enum { ASKED_MOST = 8192, NAME_MOST = OTELI_SYMBOL_NAME_MAX + 1 };

static const struct oteli_elf_limit endless = {UINT64_MAX, UINT64_MAX};
static char names[ASKED_MOST][64];
static size_t longest;

static void take(void *state, uint32_t index, const char *name, size_t length)
{
    (void)state;
    assert_true(index < ASKED_MOST);
    assert_int_equal(strlen(name), length);
    assert_string_equal(names[index], ""); /* once */
    snprintf(names[index], sizeof names[index], "%s", name);
    longest = length > longest ? length : longest;
}

static enum oteli_elf_outcome ask(int fd, const uint64_t *offsets, size_t count,
                                  const struct oteli_elf_limit *limit)
{
    struct oteli_elf_place *places = calloc(count + 1, sizeof *places);
    assert_non_null(places);
    memset(names, 0, sizeof names);
    for (size_t i = 0; i < count; i++) {
        places[i].offset = offsets[i];
        places[i].index = (uint32_t)i;
    }
    const enum oteli_elf_outcome outcome =
        oteli_elf_find_functions(fd, places, count, limit, take, NULL);
    free(places);
    return outcome;
}

/* What is said of this place of the image's code. */
static void assert_name(int fd, uint64_t place, const char *expected)
{
    const uint64_t offset = CODE_OFFSET + place;
    assert_int_equal(ask(fd, &offset, 1, &endless), OTELI_ELF_DONE);
    assert_string_equal(names[0], expected);
}

/* ---- images made by hand -------------------------------------------------------------------- */

TEST(a_function_covers_its_size)
{
    image_begin();
    add("second", 0x200, 0x10, STB_GLOBAL);
    add("first", 0x100, 0x20, STB_LOCAL);
    const int fd = image_file();

    assert_name(fd, 0x0ff, "");
    assert_name(fd, 0x100, "first");
    assert_name(fd, 0x11f, "first");
    assert_name(fd, 0x120, "");
    assert_name(fd, 0x20f, "second");
    assert_name(fd, 0x210, "");
    close(fd);
}

TEST(places_that_are_no_code_have_no_name)
{
    const uint64_t offsets[] = {CODE_OFFSET, CODE_OFFSET - 1, 0, UINT64_MAX,
                                CODE_OFFSET + CODE_SIZE};
    image_begin();
    add("all", 0, UINT64_MAX / 2, STB_GLOBAL);
    const int fd = image_file();

    assert_int_equal(ask(fd, offsets, 5, &endless), OTELI_ELF_DONE);

    assert_string_equal(names[0], "all");
    for (size_t i = 1; i < 5; i++)
        assert_string_equal(names[i], "");
    close(fd);
}

TEST(one_without_a_size_goes_on_to_the_next_or_the_end_of_its_section)
{
    image_begin();
    add("assembler", 0x100, 0, STB_LOCAL);
    add("behind", 0x180, 0x10, STB_LOCAL);
    add("last", 0x300, 0, STB_GLOBAL);
    const int fd = image_file();

    assert_name(fd, 0x0ff, "");
    assert_name(fd, 0x100, "assembler");
    assert_name(fd, 0x17f, "assembler");
    assert_name(fd, 0x180, "behind");
    assert_name(fd, 0x190, ""); /* not the one before that */
    assert_name(fd, 0x300, "last");
    assert_name(fd, CODE_SIZE / 2 - 1, "last");
    assert_name(fd, CODE_SIZE / 2, "");
    close(fd);
}

TEST(many_places_get_what_each_would_get_alone)
{
    enum { STEP = 4, COUNT = 0x400 / STEP };
    static uint64_t offsets[COUNT];
    static char together[COUNT][64];
    image_begin();
    add("outer", 0x80, 0x300, STB_GLOBAL);
    add("inner", 0x100, 0x40, STB_LOCAL);
    add("endless", 0x3a0, 0, STB_LOCAL);
    add("before", 0x40, 0, STB_WEAK);
    add("nothing", 0x44, 0, STB_LOCAL);
    const int fd = image_file();
    for (size_t i = 0; i < COUNT; i++)
        offsets[i] = CODE_OFFSET + (COUNT - 1 - i) * STEP;

    assert_int_equal(ask(fd, offsets, COUNT, &endless), OTELI_ELF_DONE);
    memcpy(together, names, sizeof together);

    for (size_t i = 0; i < COUNT; i++)
        assert_name(fd, offsets[i] - CODE_OFFSET, together[i]);
    assert_string_equal(together[COUNT - 1 - 0x40 / STEP], "before");
    assert_string_equal(together[COUNT - 1 - 0x7c / STEP], "nothing");
    assert_string_equal(together[COUNT - 1 - 0x13c / STEP], "inner");
    assert_string_equal(together[COUNT - 1 - 0x140 / STEP], "outer");
    assert_string_equal(together[COUNT - 1 - 0x380 / STEP], "");
    close(fd);
}

TEST(of_several_the_best_name_is_taken)
{
    image_begin();
    add("local", 0x100, 0x10, STB_LOCAL);
    add("weak", 0x100, 0x10, STB_WEAK);
    add("global", 0x100, 0x10, STB_GLOBAL);
    add("weak_too", 0x100, 0x10, STB_WEAK);
    add("__libc_malloc", 0x200, 0x10, STB_GLOBAL);
    add("malloc", 0x200, 0x10, STB_GLOBAL);
    add("_malloc", 0x200, 0x10, STB_GLOBAL);
    add("first", 0x300, 0x10, STB_GLOBAL);
    add("other", 0x300, 0x10, STB_GLOBAL);
    add("__start", 0x400, 0, STB_GLOBAL);
    add("start", 0x400, 0, STB_LOCAL);
    const int fd = image_file();

    assert_name(fd, 0x108, "global");
    assert_name(fd, 0x208, "malloc");
    assert_name(fd, 0x308, "first");
    assert_name(fd, 0x408, "__start");
    close(fd);
}

TEST(only_functions_that_are_there_count)
{
    struct table *table = &image.tables[0];
    image_begin();
    add_to(table, "object", 0x100, 0x10, STB_GLOBAL, STT_OBJECT, TEXT);
    add_to(table, "label", 0x100, 0x10, STB_GLOBAL, STT_NOTYPE, TEXT);
    add_to(table, "elsewhere", 0x100, 0x10, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
    add_to(table, "", 0x100, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
    add_to(table, "chosen", 0x200, 0x10, STB_GLOBAL, STT_GNU_IFUNC, TEXT);
    const int fd = image_file();

    assert_name(fd, 0x108, "");
    assert_name(fd, 0x208, "chosen");
    close(fd);
}

TEST(what_is_stripped_has_the_names_that_are_exported)
{
    for (int is_stripped = 0; is_stripped < 2; is_stripped++) {
        image_begin();
        if (!is_stripped)
            add("whole", 0x100, 0x10, STB_LOCAL);
        add_to(&image.tables[1], "exported", 0x100, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
        const int fd = image_file();
        assert_name(fd, 0x100, is_stripped ? "exported" : "whole");
        close(fd);
    }
}

TEST(versions_are_no_part_of_a_name_and_too_long_ones_are_none)
{
    static char text[OTELI_SYMBOL_NAME_MAX + 2];
    image_begin();
    add("memcpy@@GLIBC_2.14", 0x100, 0x10, STB_GLOBAL);
    memset(text, 'x', sizeof text - 1);
    add(text, 0x200, 0x10, STB_GLOBAL);
    add(text + 1, 0x300, 0x10, STB_GLOBAL);
    add(text + sizeof text - 128, 0x400, 0x10, STB_GLOBAL);
    add(text + sizeof text - 129, 0x500, 0x10, STB_GLOBAL);
    const int fd = image_file();

    assert_name(fd, 0x100, "memcpy");
    assert_name(fd, 0x200, "");
    longest = 0;
    const uint64_t long_one = CODE_OFFSET + 0x300;
    assert_int_equal(ask(fd, &long_one, 1, &endless), OTELI_ELF_DONE);
    assert_int_equal(longest, OTELI_SYMBOL_NAME_MAX);
    assert_int_not_equal(names[0][0], 0);
    assert_name(fd, 0x400, names[0]);
    assert_name(fd, 0x500, names[0]);
    close(fd);
}

TEST(a_table_of_many_pieces_is_read_whole)
{
    enum { COUNT = SYMBOLS_MOST - 1 };
    static uint64_t offsets[COUNT];
    image_begin();
    image.segments[1].p_filesz = (uint64_t)COUNT * 16;
    for (size_t i = 0; i < COUNT; i++) {
        char name[16];
        const size_t place = (i * 4099) % COUNT; /* in an order of its own */
        snprintf(name, sizeof name, "f%zu", place);
        add(name, place * 16, 16, STB_LOCAL);
        offsets[i] = CODE_OFFSET + i * 16 + 15;
    }
    const int fd = image_file();

    assert_int_equal(ask(fd, offsets, COUNT, &endless), OTELI_ELF_DONE);

    for (size_t i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%zu", i);
        assert_string_equal(names[i], name);
    }
    close(fd);
}

/* ---- limits and faults ---------------------------------------------------------------------- */

TEST(without_time_nothing_is_said)
{
    static const struct oteli_elf_limit no_cpu = {0, UINT64_MAX};
    static const struct oteli_elf_limit no_time = {UINT64_MAX, 0};
    const uint64_t offset = CODE_OFFSET + 0x100;
    image_begin();
    add("first", 0x100, 0x10, STB_LOCAL);
    const int fd = image_file();

    assert_int_equal(ask(fd, &offset, 1, &no_cpu), OTELI_ELF_LATE);
    assert_string_equal(names[0], "");
    assert_int_equal(ask(fd, &offset, 1, &no_time), OTELI_ELF_LATE);
    assert_string_equal(names[0], "");
    assert_name(fd, 0x100, "first");
    close(fd);
}

TEST(without_memory_nothing_is_said)
{
    struct oteli_elf_place place = {.offset = CODE_OFFSET + 0x100};
    image_begin();
    add("first", 0x100, 0x10, STB_LOCAL);
    const int fd = image_file();
    memset(names, 0, sizeof names);

    oteli_leaks_begin();
    oteli_leaks_fail_at(1);
    assert_int_equal(oteli_elf_find_functions(fd, &place, 1, &endless, take, NULL), OTELI_ELF_LATE);
    assert_true(oteli_leaks_failed());
    oteli_leaks_check();

    assert_string_equal(names[0], "");
    close(fd);
}

TEST(a_file_that_is_cut_off_has_no_names_or_the_right_ones)
{
    const uint64_t offsets[] = {CODE_OFFSET + 0x100, CODE_OFFSET + 0x200};
    size_t named = 0;
    image_begin();
    add("first", 0x100, 0x10, STB_LOCAL);
    add("second", 0x200, 0, STB_LOCAL);
    const int fd = image_file();
    for (size_t size = sizeof image; size != 0; size -= size > 4096 ? 512 : 1) {
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        const enum oteli_elf_outcome outcome = ask(fd, offsets, 2, &endless);
        assert_true(outcome == OTELI_ELF_DONE || outcome == OTELI_ELF_NO_SYMBOLS);
        assert_true(names[0][0] == '\0' || strcmp(names[0], "first") == 0);
        assert_true(names[1][0] == '\0' || strcmp(names[1], "second") == 0);
        named += names[1][0] != '\0';
    }
    assert_true(named > 1);
    close(fd);
}

/* Ways to spoil the image. */
static void other_magic(void)
{
    image.head.e_ident[1] = 'e';
}

static void of_32_bits(void)
{
    image.head.e_ident[EI_CLASS] = ELFCLASS32;
}

static void no_sections(void)
{
    image.head.e_shoff = 0;
}

static void other_sections(void)
{
    image.head.e_shentsize = 40;
}

static void no_tables(void)
{
    image.sections[SYMTAB].sh_type = SHT_NULL;
}

static void other_symbols(void)
{
    image.sections[SYMTAB].sh_entsize = 16;
}

static void no_symbols(void)
{
    image.sections[SYMTAB].sh_size = 0;
}

static void symbols_behind_the_end(void)
{
    image.sections[SYMTAB].sh_offset = UINT64_MAX - 8;
}

static void more_symbols_than_there_are(void)
{
    image.sections[SYMTAB].sh_size = UINT64_MAX;
}

static void strings_that_are_none(void)
{
    image.sections[SYMTAB].sh_link = TEXT;
}

static void strings_of_no_section(void)
{
    image.sections[SYMTAB].sh_link = UINT32_MAX;
}

static void (*const ways[])(void) = {other_magic,
                                     of_32_bits,
                                     no_sections,
                                     other_sections,
                                     no_tables,
                                     other_symbols,
                                     no_symbols,
                                     symbols_behind_the_end,
                                     more_symbols_than_there_are,
                                     strings_that_are_none,
                                     strings_of_no_section};

TEST(what_is_broken_has_no_symbols)
{
    const uint64_t offset = CODE_OFFSET + 0x100;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        image_begin();
        add("first", 0x100, 0x10, STB_LOCAL);
        close(image_file());
        ways[i]();
        const int fd = memfd_create("image", MFD_CLOEXEC);
        assert_int_equal(pwrite(fd, &image, sizeof image, 0), (ssize_t)sizeof image);

        assert_int_equal(ask(fd, &offset, 1, &endless), OTELI_ELF_NO_SYMBOLS);
        assert_string_equal(names[0], "");
        close(fd);
    }
}

TEST(names_that_are_not_there_are_none)
{
    const uint64_t offset = CODE_OFFSET + 0x100;
    static const uint64_t sizes[] = {1, 3, 4096}; /* of the strings, of which a name is number 3 */
    for (size_t i = 0; i < 3; i++) {
        image_begin();
        add("a", 0x300, 0x10, STB_LOCAL);
        add("first", 0x100, 0x10, STB_LOCAL);
        close(image_file());
        image.sections[STRTAB].sh_size = sizes[i];
        image.sections[STRTAB].sh_offset = i == 2 ? UINT64_MAX - 5 : sizeof image - 4;
        const int fd = memfd_create("image", MFD_CLOEXEC);
        assert_int_equal(pwrite(fd, &image, sizeof image, 0), (ssize_t)sizeof image);

        assert_int_equal(ask(fd, &offset, 1, &endless), OTELI_ELF_DONE);
        assert_string_equal(names[0], "");
        close(fd);
    }
}

/* ---- this program --------------------------------------------------------------------------- */

/* Where the linker has put the head of the program; segments are as far from it as in the file, but
 * for what is added to each. */
extern const Elf64_Ehdr __ehdr_start;

static uint64_t offset_in_program(const void *function)
{
    const uintptr_t head = (uintptr_t)&__ehdr_start;
    const Elf64_Phdr *segments = (const void *)(head + __ehdr_start.e_phoff);
    uint64_t first = 0;
    for (size_t i = __ehdr_start.e_phnum; i-- != 0;)
        if (segments[i].p_type == PT_LOAD)
            first = segments[i].p_vaddr;
    const uint64_t address = (uintptr_t)function - head + first;
    for (size_t i = 0; i < __ehdr_start.e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && address - segments[i].p_vaddr < segments[i].p_filesz)
            return address - segments[i].p_vaddr + segments[i].p_offset;
    return 0;
}

TEST(functions_of_this_program_are_called_what_they_are)
{
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    const uint64_t offsets[] = {offset_in_program((const void *)(uintptr_t)add_to),
                                offset_in_program((const void *)(uintptr_t)oteli_leaks_begin) + 1};

    assert_int_equal(ask(fd, offsets, 2, &endless), OTELI_ELF_DONE);

    assert_int_equal(strncmp(names[0], "add_to", 6), 0); /* a compiler may add to it */
    assert_string_equal(names[1], "oteli_leaks_begin");
    close(fd);
}
