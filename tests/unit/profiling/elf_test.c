/* SPDX-License-Identifier: Apache-2.0 */
/* Which function lies where in an ELF file: of images that are made by hand, and of
 * files that are cut off or broken. Build ids from notes of any shape, and hashes that anybody can
 * compute again. This program itself, and what is mapped into it, is in mappings_test.c. */
#include "profiling/symbols/elf_image.h"
#include "profiling/symbols/elf_symbols.h"
#include "profiling/symbols/sha256.h"

#include "common/clock/clock.h"
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

static int fd = -1; /* of the file */

static int image_begin(void **state)
{
    (void)state;
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
    return 0;
}

static int image_end(void **state)
{
    (void)state;
    if (fd >= 0)
        close(fd);
    fd = -1;
    return 0;
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

static void write_image(void)
{
    (void)image_end(NULL);
    fd = memfd_create("image", MFD_CLOEXEC);
    assert_int_equal(pwrite(fd, &image, sizeof image, 0), (ssize_t)sizeof image);
}

/* The image as a file; tables without symbols are not in it. */
static void image_file(void)
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
    write_image();
}

/* ---- asking ------------------------------------------------------------------------------- */

enum { ASKED_MOST = 8192, NAME_MOST = OTELI_SYMBOL_NAME_MAX + 1 };

static const struct oteli_elf_limit endless = {UINT64_MAX, UINT64_MAX};
static char names[ASKED_MOST][64];
static size_t longest;

static void take(void *state, const struct oteli_elf_place *place, const char *name, size_t length)
{
    const uint32_t index = place->index;
    (void)state;
    assert_true(index < ASKED_MOST);
    assert_int_equal(strlen(name), length);
    assert_string_equal(names[index], ""); /* once */
    snprintf(names[index], sizeof names[index], "%s", name);
    longest = length > longest ? length : longest;
}

static enum oteli_elf_outcome ask(const uint64_t *offsets, size_t count)
{
    struct oteli_elf_place *places = calloc(count + 1, sizeof *places);
    assert_non_null(places);
    memset(names, 0, sizeof names);
    for (size_t i = 0; i < count; i++) {
        places[i].offset = offsets[i];
        places[i].index = (uint32_t)i;
    }
    const enum oteli_elf_outcome outcome =
        oteli_elf_find_functions(fd, places, count, &endless, take, NULL);
    free(places);
    return outcome;
}

/* What is said of this place of the image's code. */
static void assert_name(uint64_t place, const char *expected)
{
    const uint64_t offset = CODE_OFFSET + place;
    assert_int_equal(ask(&offset, 1), OTELI_ELF_DONE);
    if (strcmp(names[0], expected) != 0)
        fail_msg("%#lx is %s, not %s", (unsigned long)place, names[0], expected);
}

/* ---- images made by hand -------------------------------------------------------------------- */

static const struct symbol {
    const char *name;
    uint64_t place, size;
    unsigned bind, type;
    uint16_t section;
} symbols[] = {
    {"second", 0x200, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"first", 0x100, 0x20, STB_LOCAL, STT_FUNC, TEXT},
    {"local", 0x500, 0x10, STB_LOCAL, STT_FUNC, TEXT},
    {"weak", 0x500, 0x10, STB_WEAK, STT_FUNC, TEXT},
    {"global", 0x500, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"weak_too", 0x500, 0x10, STB_WEAK, STT_FUNC, TEXT},
    {"__libc_malloc", 0x600, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"malloc", 0x600, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"_malloc", 0x600, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"one_of_two", 0x700, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"other", 0x700, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"endless", 0x800, 0, STB_GLOBAL, STT_FUNC, TEXT},
    {"chosen", 0x880, 0x10, STB_GLOBAL, STT_GNU_IFUNC, TEXT},
    {"object", 0x900, 0x10, STB_GLOBAL, STT_OBJECT, TEXT},
    {"label", 0x900, 0x10, STB_GLOBAL, STT_NOTYPE, TEXT},
    {"elsewhere", 0x900, 0x10, STB_GLOBAL, STT_FUNC, SHN_UNDEF},
    {"", 0x900, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"memcpy@@GLIBC_2.14", 0xb00, 0x10, STB_GLOBAL, STT_FUNC, TEXT},
    {"outer", 0x1080, 0x300, STB_GLOBAL, STT_FUNC, TEXT},
    {"inner", 0x1100, 0x40, STB_LOCAL, STT_FUNC, TEXT},
};

static void add_symbols(void)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        add_to(&image.tables[0], symbols[i].name, symbols[i].place, symbols[i].size,
               symbols[i].bind, symbols[i].type, symbols[i].section);
}

AROUND_EACH(image_begin, image_end);

TEST(each_place_has_the_best_name_of_the_functions_that_are_there)
{
    static const struct {
        uint64_t place;
        const char *name;
    } expected[] = {
        {0x0ff, ""},           {0x100, "first"},  {0x11f, "first"},  {0x120, ""},
        {0x20f, "second"},     {0x210, ""},       {0x508, "global"}, {0x608, "malloc"},
        {0x708, "one_of_two"}, {0x800, ""},       {0x888, "chosen"}, {0x908, ""},
        {0xb00, "memcpy"},     {0x113c, "inner"}, {0x1140, "outer"}, {0x1380, ""},
    };
    add_symbols();
    image_file();
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_name(expected[i].place, expected[i].name);
}

TEST(places_that_are_no_code_have_no_name)
{
    const uint64_t offsets[] = {CODE_OFFSET, CODE_OFFSET - 1, 0, UINT64_MAX,
                                CODE_OFFSET + CODE_SIZE};
    add("all", 0, UINT64_MAX / 2, STB_GLOBAL);
    image_file();

    assert_int_equal(ask(offsets, 5), OTELI_ELF_DONE);

    assert_string_equal(names[0], "all");
    for (size_t i = 1; i < 5; i++)
        assert_string_equal(names[i], "");
}

TEST(many_places_get_what_each_would_get_alone)
{
    enum { STEP = 20, COUNT = (CODE_SIZE / 2 + 0x100) / STEP };
    static uint64_t offsets[COUNT];
    static char together[COUNT][64];
    add_symbols();
    image_file();
    for (size_t i = 0; i < COUNT; i++)
        offsets[i] = CODE_OFFSET + (COUNT - 1 - i) * STEP;

    assert_int_equal(ask(offsets, COUNT), OTELI_ELF_DONE);
    memcpy(together, names, sizeof together);

    for (size_t i = 0; i < COUNT; i++)
        assert_name(offsets[i] - CODE_OFFSET, together[i]);
}

TEST(what_is_stripped_has_the_names_that_are_exported)
{
    for (int is_stripped = 0; is_stripped < 2; is_stripped++) {
        (void)image_begin(NULL);
        if (!is_stripped)
            add("whole", 0x100, 0x10, STB_LOCAL);
        add_to(&image.tables[1], "exported", 0x100, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
        image_file();
        assert_name(0x100, is_stripped ? "exported" : "whole");
    }
}

TEST(names_that_are_too_long_are_none)
{
    static char text[OTELI_SYMBOL_NAME_MAX + 2];
    static const size_t from[] = {0, 1, sizeof text - 128, sizeof text - 129};
    memset(text, 'x', sizeof text - 1);
    for (size_t i = 0; i < sizeof from / sizeof *from; i++)
        add(text + from[i], 0x100 * i, 0x10, STB_GLOBAL);
    image_file();

    assert_name(0, "");
    longest = 0;
    for (size_t i = 1; i < sizeof from / sizeof *from; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "%s", text + from[i]);
        assert_name(0x100 * i, expected);
    }
    assert_int_equal(longest, OTELI_SYMBOL_NAME_MAX);
}

TEST(a_table_of_many_pieces_is_read_whole)
{
    enum { COUNT = SYMBOLS_MOST - 1 };
    static uint64_t offsets[COUNT];
    image.segments[1].p_filesz = (uint64_t)COUNT * 16;
    for (size_t i = 0; i < COUNT; i++) {
        char name[16];
        const size_t place = (i * 4099) % COUNT; /* in an order of its own */
        snprintf(name, sizeof name, "f%zu", place);
        add(name, place * 16, 16, STB_LOCAL);
        offsets[i] = CODE_OFFSET + i * 16 + 15;
    }
    image_file();

    assert_int_equal(ask(offsets, COUNT), OTELI_ELF_DONE);

    for (size_t i = 0; i < COUNT; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%zu", i);
        assert_string_equal(names[i], name);
    }
}

/* ---- limits and faults ---------------------------------------------------------------------- */

TEST(without_time_nothing_is_said)
{
    static const struct oteli_elf_limit limits[] = {{0, UINT64_MAX}, {UINT64_MAX, 0}};
    add("first", 0x100, 0x10, STB_LOCAL);
    image_file();
    memset(names, 0, sizeof names);
    for (size_t i = 0; i < 2; i++) {
        struct oteli_elf_place place = {.offset = CODE_OFFSET + 0x100};
        assert_int_equal(oteli_elf_find_functions(fd, &place, 1, &limits[i], take, NULL),
                         OTELI_ELF_LATE);
        assert_string_equal(names[0], "");
    }
}

TEST(a_file_that_is_cut_off_has_no_names_or_the_right_ones)
{
    const uint64_t offsets[] = {CODE_OFFSET + 0x100, CODE_OFFSET + 0x200};
    size_t named = 0;
    add("first", 0x100, 0x10, STB_LOCAL);
    add("second", 0x200, 0x10, STB_LOCAL);
    image_file();
    for (size_t size = sizeof image; size != 0; size -= size > 4096 ? 512 : 1) {
        assert_int_equal(ftruncate(fd, (off_t)size), 0);
        const enum oteli_elf_outcome outcome = ask(offsets, 2);
        assert_true(outcome == OTELI_ELF_DONE || outcome == OTELI_ELF_NO_SYMBOLS);
        assert_true(names[0][0] == '\0' || strcmp(names[0], "first") == 0);
        assert_true(names[1][0] == '\0' || strcmp(names[1], "second") == 0);
        named += names[1][0] != '\0';
    }
    assert_true(named > 1);
}

/* Ways to spoil the image. */
#define SPOIL(field, value)                     \
    {                                           \
        &image.field, sizeof image.field, value \
    }

static const struct {
    void *field;
    size_t size;
    uint64_t value;
} ways[] = {
    SPOIL(head.e_ident[EI_MAG1], 'e'),
    SPOIL(head.e_ident[EI_CLASS], ELFCLASS32),
    SPOIL(head.e_shoff, 0),
    SPOIL(head.e_shentsize, 40),
    SPOIL(sections[SYMTAB].sh_type, SHT_NULL),
    SPOIL(sections[SYMTAB].sh_entsize, 16),
    SPOIL(sections[SYMTAB].sh_size, 0),
    SPOIL(sections[SYMTAB].sh_offset, UINT64_MAX - 8),
    SPOIL(sections[SYMTAB].sh_size, UINT64_MAX),
    SPOIL(sections[SYMTAB].sh_link, TEXT),
    SPOIL(sections[SYMTAB].sh_link, UINT32_MAX),
};

TEST(what_is_broken_has_no_symbols)
{
    const uint64_t offset = CODE_OFFSET + 0x100;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        (void)image_begin(NULL);
        add("first", 0x100, 0x10, STB_LOCAL);
        image_file();
        memcpy(ways[i].field, &ways[i].value, ways[i].size);
        write_image();

        assert_int_equal(ask(&offset, 1), OTELI_ELF_NO_SYMBOLS);
        assert_string_equal(names[0], "");
    }
}

TEST(names_that_are_not_there_are_none)
{
    const uint64_t offset = CODE_OFFSET + 0x100;
    static const uint64_t sizes[] = {1, 3, 4096}; /* of the strings, of which a name is number 3 */
    for (size_t i = 0; i < 3; i++) {
        (void)image_begin(NULL);
        add("a", 0x300, 0x10, STB_LOCAL);
        add("first", 0x100, 0x10, STB_LOCAL);
        image_file();
        image.sections[STRTAB].sh_size = sizes[i];
        image.sections[STRTAB].sh_offset = i == 2 ? UINT64_MAX - 5 : sizeof image - 4;
        write_image();

        assert_int_equal(ask(&offset, 1), OTELI_ELF_DONE);
        assert_string_equal(names[0], "");
    }
}

/* ---- identities ----------------------------------------------------------------------------- */

struct notes {
    uint8_t bytes[512];
    size_t size;
};

static void add_note(struct notes *notes, uint32_t type, const char *name, const void *value,
                     uint32_t size, size_t alignment)
{
    const Elf64_Nhdr head = {(uint32_t)strlen(name) + 1, size, type};
    memcpy(notes->bytes + notes->size, &head, sizeof head);
    memcpy(notes->bytes + notes->size + sizeof head, name, head.n_namesz);
    size_t at = (sizeof head + head.n_namesz + alignment - 1) / alignment * alignment;
    memcpy(notes->bytes + notes->size + at, value, size);
    at = (at + size + alignment - 1) / alignment * alignment;
    notes->size += at;
}

static bool find_id(const struct notes *notes, size_t alignment,
                    struct oteli_elf_identity *identity)
{
    *identity = (struct oteli_elf_identity){0};
    return oteli_elf_find_build_id(notes->bytes, notes->size, alignment, identity);
}

static const char id_text[] = "0123456789abcdefghij";

TEST(a_build_id_is_found_among_other_notes)
{
    for (size_t alignment = 4; alignment <= 8; alignment += 4) {
        struct notes notes = {.size = 0};
        struct oteli_elf_identity identity;
        add_note(&notes, NT_GNU_ABI_TAG, "GNU", "abcdefghijklmnop", 16, alignment);
        add_note(&notes, NT_GNU_BUILD_ID, "Go", "no", 2, alignment);
        add_note(&notes, 5, "GNU", "odd", 3, alignment);
        add_note(&notes, NT_GNU_BUILD_ID, "GNU", id_text, 20, alignment);

        assert_true(find_id(&notes, alignment, &identity));

        assert_int_equal(identity.build_id_length, 20);
        assert_memory_equal(identity.build_id, id_text, 20);
    }
}

TEST(short_ids_are_ids_and_long_ones_are_none)
{
    static const struct {
        uint32_t length;
        bool is_id;
    } table[] = {{7, true}, {20, true}, {21, false}, {0, false}};
    for (size_t i = 0; i < 4; i++) {
        struct oteli_elf_identity identity;
        struct notes notes = {.size = 0};
        add_note(&notes, NT_GNU_BUILD_ID, "GNU", id_text, table[i].length, 4);
        assert_int_equal(find_id(&notes, 4, &identity), table[i].is_id);
        assert_int_equal(identity.build_id_length, table[i].is_id ? table[i].length : 0);
    }
}

TEST(notes_that_end_too_early_hold_nothing)
{
    struct notes notes = {.size = 0};
    struct oteli_elf_identity identity;
    add_note(&notes, NT_GNU_BUILD_ID, "GNU", id_text, 20, 4);
    for (size_t size = 0; size < notes.size; size++) {
        uint8_t *copy = malloc(size + 1); /* so that a sanitizer sees its end */
        memcpy(copy, notes.bytes, size);
        identity = (struct oteli_elf_identity){0};
        assert_false(oteli_elf_find_build_id(copy, size, 4, &identity));
        free(copy);
    }
    memset(notes.bytes, 0xff, sizeof(Elf64_Nhdr));
    assert_false(find_id(&notes, 4, &identity));
}

TEST(memory_that_is_not_there_is_no_image)
{
    struct oteli_elf_identity identity = {0};
    struct oteli_elf_source memory = {open("/proc/self/mem", O_RDONLY | O_CLOEXEC), 16, true};
    assert_false(oteli_elf_read_build_id(&memory, &identity));
    memory.base = (uintptr_t)id_text;
    assert_false(oteli_elf_read_build_id(&memory, &identity));
    memory.base = UINT64_MAX - 8;
    assert_false(oteli_elf_read_build_id(&memory, &identity));
    close(memory.fd);
}

TEST(sha256_is_that_of_the_standard)
{
    static const char many[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const struct {
        const char *text;
        size_t length;
        const char *digest;
    } table[] = {
        {"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {many, 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
        {many, 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        uint8_t digest[OTELI_SHA256_BYTES];
        char found[2 * OTELI_SHA256_BYTES + 1];
        oteli_sha256(table[i].text, table[i].length, digest);
        for (size_t k = 0; k < sizeof digest; k++)
            snprintf(found + 2 * k, 3, "%02x", digest[k]);
        assert_string_equal(found, table[i].digest);
    }
}

/* A file of zeros but for its first and its last byte. */
static int make_file(size_t length)
{
    char path[] = "/tmp/otel-c-hash-XXXXXX";
    const int made = mkstemp(path);
    assert_true(made >= 0);
    unlink(path);
    assert_int_equal(ftruncate(made, (off_t)length), 0);
    if (length != 0) {
        assert_int_equal(pwrite(made, "F", 1, 0), 1);
        assert_int_equal(pwrite(made, "L", 1, (off_t)length - 1), 1);
    }
    return made;
}

/* The same made of what the definition says. */
static void expect_hash(size_t length, uint8_t digest[OTELI_SHA256_BYTES])
{
    uint8_t all[2 * 4096 + 8] = {0};
    const size_t part = length < 4096 ? length : 4096;
    if (length != 0) {
        all[0] = 'F';
        all[2 * part - 1] = 'L';
    }
    if (length != 0 && length <= 4096) {
        all[part - 1] = 'L';
        all[part] = part == 1 ? 'L' : 'F';
    }
    if (length == 1)
        all[0] = 'L';
    for (unsigned i = 0; i < 8; i++)
        all[2 * part + i] = (uint8_t)((uint64_t)length >> (56 - 8 * i));
    oteli_sha256(all, 2 * part + 8, digest);
}

TEST(the_hash_of_a_file_is_of_both_ends_and_its_length)
{
    static const size_t lengths[] = {0, 1, 100, 4095, 4096, 4097, 8192, 100000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct oteli_elf_identity identity = {0};
        uint8_t expected[OTELI_SHA256_BYTES];
        fd = make_file(lengths[i]);
        expect_hash(lengths[i], expected);

        assert_true(oteli_elf_read_htlhash(fd, &identity));

        assert_true(identity.has_htlhash);
        assert_memory_equal(identity.htlhash, expected, sizeof identity.htlhash);
        (void)image_end(NULL);
    }
}

TEST(what_is_no_file_has_no_hash)
{
    struct oteli_elf_identity identity = {0};
    fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_false(oteli_elf_read_htlhash(fd, &identity));
    assert_false(identity.has_htlhash);
}
