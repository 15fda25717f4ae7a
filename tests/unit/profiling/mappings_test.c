/* SPDX-License-Identifier: Apache-2.0 */
/* Whose code lies at an address: the program's, a library's, the kernel's, that of a file which is
 * deleted or was unmapped a moment ago; lines of /proc/self/maps of any kind; and what functions
 * are called. Files that are not what is mapped any more have no names. */
#include "profiling/symbols/mappings.h"

#include "common/clock/clock.h"
#include "profiling/symbols/maps.h"
#include "profiling/symbols/symbolizer.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define A_WHILE_NS (UINT64_C(100) * 1000 * 1000 * 1000)

/* ---- lines -------------------------------------------------------------------------------- */

static bool parse(const char *line, struct oteli_maps_range *range)
{
    static char copy_of_line[256];
    snprintf(copy_of_line, sizeof copy_of_line, "%s", line);
    return oteli_maps_parse(copy_of_line, range);
}

TEST(lines_of_the_kernel_are_read)
{
    static const struct {
        const char *line, *expected;
    } table[] = {
        {"55a1c0400000-55a1c0452000 r-xp 00002000 fd:01 1573211                    /usr/bin/a b\n",
         "55a1c0400000-55a1c0452000 r-xp 2000 fd00000001 1573211 /usr/bin/a b"},
        {"7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n",
         "7f0000000000-7f0000001000 rw-p 0 0 0 "},
        {"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]",
         "ffffffffff600000-ffffffffff601000 --xp 0 0 0 [vsyscall]"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct oteli_maps_range range;
        char text[256];
        assert_true(parse(table[i].line, &range));
        snprintf(text, sizeof text,
                 "%" PRIx64 "-%" PRIx64 " %s %" PRIx64 " %" PRIx64 " %" PRIu64 " %.99s",
                 range.start, range.limit, range.rights, range.file_offset, range.device,
                 range.inode, range.path);
        assert_string_equal(text, table[i].expected);
    }
}

TEST(other_lines_are_refused)
{
    static const char *const lines[] = {
        "",
        "-",
        "1000-2000",
        "1000-2000 r-xp",
        "1000-2000 r-xp 0 0:0",
        "1000-2000 r-x 0 0:0 0 ",
        "2000-1000 r-xp 0 0:0 0 ",
        "1000-1000 r-xp 0 0:0 0 ",
        "1000-2000 r-xp 0 0-0 0 ",
        "1000-2000 r-xp 0 0:0 0x ",
    };
    struct oteli_maps_range range;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_false(parse(lines[i], &range));
}

static void count_ranges(void *state, const struct oteli_maps_range *range)
{
    assert_true(range->start < range->limit);
    ++*(unsigned *)state;
}

TEST(a_file_is_read_whatever_its_lines_are)
{
    char path[] = "/tmp/otel-c-maps-XXXXXX";
    const int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    for (unsigned i = 1; i <= 3000; i++)
        fprintf(file, "%x000-%x800 r-xp 0 1:0 7 /a/path/of/some/length/%u\n", i, i, i);
    for (unsigned i = 0; i < 100000; i++)
        fputc('x', file);
    fprintf(file, "\nf000000-f001000 r-xp 0 1:0 7 /behind\n");
    fclose(file);
    unsigned count = 0;

    assert_true(oteli_maps_read(path, count_ranges, &count));

    assert_int_equal(count, 3001);
    unlink(path);
    assert_false(oteli_maps_read(path, count_ranges, &count));
}

/* ---- addresses ---------------------------------------------------------------------------- */

/* A copy of this program as a file, and its code mapped from there. */
struct copy {
    char path[64];
    uint8_t *image;
    size_t size;
};

static void copy_file(const char *from_path, int to)
{
    char buffer[65536];
    const int from = open(from_path, O_RDONLY | O_CLOEXEC);
    assert_true(from >= 0);
    for (ssize_t got; (got = read(from, buffer, sizeof buffer)) > 0;)
        assert_int_equal(write(to, buffer, (size_t)got), got);
    close(from);
}

static void make_copy(struct copy *one, size_t offset)
{
    struct stat status;
    snprintf(one->path, sizeof one->path, "/tmp/otel-c-copy-XXXXXX");
    const int to = mkostemp(one->path, O_CLOEXEC);
    assert_true(to >= 0);
    copy_file("/proc/self/exe", to);
    assert_int_equal(fstat(to, &status), 0);
    one->size = (size_t)status.st_size - offset;
    one->image = mmap(NULL, one->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, to, (off_t)offset);
    assert_true(one->image != MAP_FAILED);
    close(to);
}

static void unmap(struct copy *one)
{
    assert_int_equal(munmap(one->image, one->size), 0);
}

/* In its place, which nobody else gets, is nothing; and then it is there again. */
static void map_nothing(const struct copy *one)
{
    assert_ptr_equal(
        mmap(one->image, one->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        one->image);
}

static void map_again(const struct copy *one)
{
    const int fd = open(one->path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_ptr_equal(
        mmap(one->image, one->size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0),
        one->image);
    close(fd);
}

static struct oteli_mappings *mappings;
static struct copy copy; /* unmapped and unlinked in the end, if it was made */

static int begin(void **state)
{
    (void)state;
    copy = (struct copy){.image = NULL};
    oteli_leaks_begin();
    (void)oteli_clock_start("fake");
    oteli_fake_clock.monotonic_ns = A_WHILE_NS;
    mappings = oteli_mappings_new();
    assert_non_null(mappings);
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_mappings_free(mappings);
    oteli_leaks_check();
    if (copy.image != NULL)
        unmap(&copy);
    unlink(copy.path);
    return 0;
}

static void a_while_later(void)
{
    oteli_fake_clock.monotonic_ns += A_WHILE_NS;
}

static uint32_t number_of(uintptr_t address)
{
    bool is_code;
    const uint32_t number = oteli_mappings_find(mappings, address, &is_code);
    assert_true(is_code || number == 0);
    return number;
}

static bool is_code(uintptr_t address)
{
    bool is;
    (void)oteli_mappings_find(mappings, address, &is);
    return is;
}

static const struct oteli_known_mapping *look(uintptr_t address)
{
    const uint32_t number = number_of(address);
    if (number == 0)
        return NULL;
    const struct oteli_known_mapping *known = oteli_mappings_at(mappings, number);
    assert_true(known->start <= address && address < known->limit);
    return known;
}

AROUND_EACH(begin, end);

TEST(code_of_the_program_and_of_a_library)
{
    char program[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);

    const struct oteli_known_mapping *ours = look((uintptr_t)look);
    assert_non_null(ours);
    assert_true(ours->is_program);
    assert_string_equal(ours->path, program);
    assert_true(ours->identity.build_id_length >= 8);
    assert_int_equal(number_of((uintptr_t)begin), number_of((uintptr_t)end));

    const struct oteli_known_mapping *libc = look((uintptr_t)getauxval);
    assert_non_null(libc);
    assert_false(libc->is_program);
    assert_non_null(strstr(libc->path, "lib"));
}

TEST(the_kernels_code_has_its_name)
{
    const uintptr_t image = getauxval(AT_SYSINFO_EHDR);
    const struct oteli_known_mapping *vdso = look(image + 64);
    if (image != 0) {
        assert_non_null(vdso);
        assert_string_equal(vdso->path, "[vdso]");
        assert_true(vdso->identity.build_id_length != 0);
        assert_false(vdso->is_program);
    }
}

TEST(what_is_no_file_is_nothing)
{
    void *own = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(own != MAP_FAILED);

    assert_null(look((uintptr_t)own));
    assert_null(look(0));
    assert_null(look(1));
    assert_null(look(UINTPTR_MAX));
    assert_null(look((uintptr_t)&own));
    assert_true(is_code((uintptr_t)own));
    assert_true(is_code((uintptr_t)look));
    assert_false(is_code((uintptr_t)&own));
    assert_false(is_code(UINTPTR_MAX));

    munmap(own, 4096);
}

TEST(what_was_unmapped_is_known_until_it_settles)
{
    make_copy(&copy, 0);
    const uintptr_t image = (uintptr_t)copy.image;
    const uint32_t number = number_of(image + 100);
    assert_int_not_equal(number, 0);

    unmap(&copy);
    unlink(copy.path);
    copy.image = NULL;
    a_while_later();
    assert_null(look(1)); /* is nowhere, so the maps are read again */
    const struct oteli_known_mapping *gone = look(image + 200);
    assert_non_null(gone);
    assert_string_equal(gone->path, copy.path);
    assert_int_equal(number_of(image + 100), number);

    oteli_mappings_settle(mappings);
    assert_null(look(image + 100));
    assert_non_null(look((uintptr_t)look));
}

TEST(what_is_mapped_again_when_it_settles_is_looked_up_again)
{
    make_copy(&copy, 0);
    assert_int_not_equal(number_of((uintptr_t)copy.image), 0);
    map_nothing(&copy);
    a_while_later();
    assert_null(look(1)); /* is nowhere, so the maps are read again */
    map_again(&copy);

    oteli_mappings_settle(mappings);

    assert_non_null(look((uintptr_t)look)); /* gets the first number */
    const struct oteli_known_mapping *again = look((uintptr_t)copy.image);
    assert_non_null(again);
    assert_string_equal(again->path, copy.path);
}

TEST(new_code_is_found_after_a_while)
{
    assert_non_null(look((uintptr_t)look));
    make_copy(&copy, 0);

    assert_null(look((uintptr_t)copy.image)); /* read a moment ago */
    a_while_later();
    assert_non_null(look((uintptr_t)copy.image));
}

TEST(other_code_at_an_old_address_is_another_mapping)
{
    struct copy first;
    struct copy second;
    make_copy(&first, 0);
    make_copy(&second, 0);
    const uint32_t before = number_of((uintptr_t)first.image + 100);

    /* The second file where the first was. */
    assert_true(mremap(second.image, second.size, second.size, MREMAP_MAYMOVE | MREMAP_FIXED,
                       first.image) == first.image);
    a_while_later();
    assert_null(look(1));
    const uint32_t after = number_of((uintptr_t)first.image + 100);

    assert_int_not_equal(before, after);
    assert_string_equal(oteli_mappings_at(mappings, before)->path, first.path);
    assert_string_equal(oteli_mappings_at(mappings, after)->path, second.path);
    unmap(&first);
    unlink(first.path);
    unlink(second.path);
}

/* Where the head is not mapped there is no build id, and the file is said to be deleted. */
TEST(a_deleted_file_has_its_old_name_if_it_has_a_build_id)
{
    for (size_t offset = 0; offset <= 4096; offset += 4096) {
        char expected[128];
        (void)end(NULL);
        (void)begin(NULL);
        make_copy(&copy, offset);
        unlink(copy.path);
        snprintf(expected, sizeof expected, "%s%s", copy.path, offset != 0 ? " (deleted)" : "");

        const struct oteli_known_mapping *known = look((uintptr_t)copy.image);

        assert_non_null(known);
        assert_string_equal(known->path, expected);
        assert_int_equal(known->file_offset, offset);
        assert_false(known->identity.has_htlhash);
        const struct oteli_elf_identity identity = known->identity;
        const struct oteli_known_mapping *ours = look((uintptr_t)look);
        assert_int_equal(identity.build_id_length,
                         offset != 0 ? 0 : ours->identity.build_id_length);
        assert_memory_equal(identity.build_id, ours->identity.build_id, identity.build_id_length);
    }
}

TEST(a_file_without_a_build_id_has_a_hash)
{
    make_copy(&copy, 0);
    unmap(&copy);
    const int fd = open(copy.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "no elf", 6, 0), 6);
    copy.image = mmap(NULL, copy.size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    struct oteli_elf_identity expected = {0};
    assert_true(oteli_elf_read_htlhash(fd, &expected));
    close(fd);

    const struct oteli_known_mapping *known = look((uintptr_t)copy.image);

    assert_non_null(known);
    assert_int_equal(known->identity.build_id_length, 0);
    assert_true(known->identity.has_htlhash);
    assert_memory_equal(known->identity.htlhash, expected.htlhash, sizeof expected.htlhash);
}

/* ---- names -------------------------------------------------------------------------------- */

enum { ENOUGH_NS = 1000 * 1000 * 1000, ASKED_MOST = 16 };

static char told[ASKED_MOST][64];

static void take(void *state, const struct oteli_elf_place *place, const char *name, size_t length)
{
    (void)state;
    assert_true(place->index < ASKED_MOST);
    assert_int_equal(strlen(name), length);
    snprintf(told[place->index], sizeof told[place->index], "%s", name);
}

static struct oteli_elf_place question(uintptr_t address, uint32_t index)
{
    const uint32_t mapping = number_of(address);
    assert_int_not_equal(mapping, 0);
    const struct oteli_known_mapping *known = oteli_mappings_at(mappings, mapping);
    return (struct oteli_elf_place){
        .offset = address - known->start + known->file_offset, .index = index, .mapping = mapping};
}

static void find(struct oteli_elf_place *questions, size_t count, uint64_t budget_ns)
{
    memset(told, 0, sizeof told);
    oteli_symbolizer_find(mappings, questions, count, budget_ns, UINT64_MAX, take, NULL);
}

/* The name of one address; "": it has none. */
static const char *name_of(uintptr_t address)
{
    struct oteli_elf_place one = question(address, 0);
    find(&one, 1, ENOUGH_NS);
    return told[0];
}

static uintptr_t in_libc(const char *name)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(libc);
    const uintptr_t address = (uintptr_t)dlsym(libc, name);
    assert_int_not_equal(address, 0);
    dlclose(libc);
    return address;
}

TEST(the_program_and_its_libraries_are_asked_together)
{
    struct oteli_elf_place questions[] = {
        question(in_libc("qsort") + 1, 2), question((uintptr_t)begin, 0),
        question(in_libc("fopen"), 3), question((uintptr_t)oteli_mappings_new + 1, 1)};

    find(questions, 4, ENOUGH_NS);

    assert_string_equal(told[0], "begin");
    assert_string_equal(told[1], "oteli_mappings_new");
    assert_string_equal(told[2], "qsort");
    assert_non_null(strstr(told[3], "fopen"));
}

TEST(too_little_time_gives_no_names_and_more_gives_them_later)
{
    struct oteli_elf_place one = question((uintptr_t)begin, 0);
    find(&one, 1, 0);
    assert_string_equal(told[0], "");

    a_while_later();

    assert_string_equal(name_of((uintptr_t)begin), "begin");
}

TEST(what_the_kernel_has_mapped_has_no_file)
{
    bool is_code;
    const uintptr_t vdso = (uintptr_t)getauxval(AT_SYSINFO_EHDR);
    const uint32_t mapping = oteli_mappings_find(mappings, vdso, &is_code);
    if (mapping != 0)
        assert_string_equal(name_of(vdso), "");
}

/* Where `begin` lies in the copy, which is mapped as it is in the file. */
static uintptr_t begin_in(const struct copy *one)
{
    const struct oteli_known_mapping *ours =
        oteli_mappings_at(mappings, question((uintptr_t)begin, 0).mapping);
    return (uintptr_t)one->image + ((uintptr_t)begin - ours->start) + ours->file_offset;
}

static void replace_it(const struct copy *one)
{
    char path[80];
    snprintf(path, sizeof path, "%s.new", one->path);
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    copy_file("/bin/true", fd);
    close(fd);
    assert_int_equal(rename(path, one->path), 0);
}

static void delete_it(const struct copy *one)
{
    unlink(one->path);
}

static void cut_it_off(const struct copy *one)
{
    assert_int_equal(truncate(one->path, 100), 0);
}

static void strip_it(const struct copy *one) /* of all sections */
{
    const int fd = open(one->path, O_WRONLY | O_CLOEXEC);
    const uint64_t none = 0;
    assert_int_equal(pwrite(fd, &none, sizeof none, 40), (ssize_t)sizeof none);
    close(fd);
}

TEST(a_file_that_is_another_by_now_has_none)
{
    static void (*const ways[])(const struct copy *) = {replace_it, delete_it, cut_it_off,
                                                        strip_it};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        (void)end(NULL);
        (void)begin(NULL);
        make_copy(&copy, 0);
        struct oteli_elf_place one = question(begin_in(&copy), 0); /* known with its build id */
        if (i == 0) /* before that it has them, wherever it is mapped */
            assert_string_equal(name_of(begin_in(&copy)), "begin");
        ways[i](&copy);

        find(&one, 1, ENOUGH_NS);
        assert_string_equal(told[0], "");
    }
}

TEST(a_file_that_had_no_names_is_tried_again_after_a_while)
{
    char hidden[80];
    make_copy(&copy, 0);
    struct oteli_elf_place one = question(begin_in(&copy), 0);
    snprintf(hidden, sizeof hidden, "%s.hidden", copy.path);
    assert_int_equal(rename(copy.path, hidden), 0);
    find(&one, 1, ENOUGH_NS);
    assert_string_equal(told[0], "");

    assert_int_equal(rename(hidden, copy.path), 0);
    find(&one, 1, ENOUGH_NS);
    assert_string_equal(told[0], "");
    a_while_later();
    find(&one, 1, ENOUGH_NS);
    assert_string_equal(told[0], "begin");
}

/* ---- limits --------------------------------------------------------------------------------- */

/* Whether the mapping is found without memory, and the names of what lies in it. */
TEST(without_memory_there_is_nothing_and_with_it_again_there_is)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        (void)end(NULL);
        (void)begin(NULL);
        oteli_leaks_fail_at(nth);
        memset(told, 0, sizeof told);
        if (number_of((uintptr_t)begin) != 0)
            (void)name_of((uintptr_t)begin);
        all_tried = !oteli_leaks_failed();
        assert_true(told[0][0] == '\0' ? !all_tried : strcmp(told[0], "begin") == 0);

        oteli_mappings_settle(mappings);
        a_while_later();
        assert_string_equal(name_of((uintptr_t)begin), "begin");
    }
}
