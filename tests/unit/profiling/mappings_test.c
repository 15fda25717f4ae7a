/* SPDX-License-Identifier: Apache-2.0 */
/* Whose code lies at an address: the program's, a library's, the kernel's, that of a file which is
 * deleted or was unmapped a moment ago; and lines of /proc/self/maps of any kind. */
#include "profiling/mappings.h"

#include "common/clock.h"
#include "profiling/maps.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define A_WHILE_NS (UINT64_C(10) * 1000 * 1000 * 1000)

/* ---- lines -------------------------------------------------------------------------------- */

static bool parse(const char *line, struct oteli_maps_range *range)
{
    return oteli_maps_parse(line, strlen(line), range);
}

TEST(lines_of_the_kernel_are_read)
{
    struct oteli_maps_range range;
    assert_true(parse("55a1c0400000-55a1c0452000 r-xp 00002000 fd:01 1573211"
                      "                    /usr/bin/a program\\012with a line",
                      &range));
    assert_int_equal(range.start, 0x55a1c0400000);
    assert_int_equal(range.limit, 0x55a1c0452000);
    assert_true(range.is_executable);
    assert_int_equal(range.file_offset, 0x2000);
    assert_int_equal(range.device_major, 0xfd);
    assert_int_equal(range.device_minor, 1);
    assert_int_equal(range.inode, 1573211);
    assert_string_equal(range.path, "/usr/bin/a program\nwith a line");

    assert_true(parse("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ", &range));
    assert_false(range.is_executable);
    assert_string_equal(range.path, "");
    assert_true(parse("7f0000000000-7f0000001000 rw-p 00000000 00:00 0", &range));
    assert_true(
        parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]", &range));
    assert_true(range.is_executable);
}

TEST(other_lines_are_refused)
{
    static const char *const lines[] = {
        "",
        "-",
        "1000",
        "1000-2000",
        "1000-2000 r-xp",
        "1000-2000 r-xp 0 0:0",
        "1000-2000 r-xp 0 0:0 ",
        "1000-2000 r-x 0 0:0 0",
        "2000-1000 r-xp 0 0:0 0",
        "1000-1000 r-xp 0 0:0 0",
        "1000-2000 r-xp 0 0-0 0",
        "1000-2000 r-xp 0 0:0 0x",
        "1000-2000 r-xp 0 0:0 99999999999999999999999",
        "10000000000000000-20000000000000000 r-xp 0 0:0 0",
        "1000-2000 r-xp 0 100000000:0 0",
        " 1000-2000 r-xp 0 0:0 0",
    };
    struct oteli_maps_range range;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_false(parse(lines[i], &range));
}

TEST(a_path_that_is_too_long_is_refused)
{
    static struct oteli_maps_range range;
    static char line[2 * PATH_MAX];
    const int head = snprintf(line, sizeof line, "1000-2000 r-xp 0 1:0 1 ");
    memset(line + head, 'x', PATH_MAX - 1);
    assert_true(parse(line, &range));
    assert_int_equal(strlen(range.path), PATH_MAX - 1);
    line[head + PATH_MAX - 1] = 'x';
    assert_false(parse(line, &range));
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
    fprintf(file, "\nf000000-f001000 r-xp 0 1:0 7 /behind\nf001000-f002000 r-xp 0 1:0 7 /cut");
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

static void make_copy(struct copy *copy, size_t offset)
{
    struct stat status;
    const int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    snprintf(copy->path, sizeof copy->path, "/tmp/otel-c-copy-XXXXXX");
    const int to = mkostemp(copy->path, O_CLOEXEC);
    assert_true(from >= 0 && to >= 0);
    assert_int_equal(fstat(from, &status), 0);
    char buffer[65536];
    for (ssize_t got; (got = read(from, buffer, sizeof buffer)) > 0;)
        assert_int_equal(write(to, buffer, (size_t)got), got);
    copy->size = (size_t)status.st_size - offset;
    copy->image = mmap(NULL, copy->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, to, (off_t)offset);
    assert_true(copy->image != MAP_FAILED);
    close(from);
    close(to);
}

static void unmap(struct copy *copy)
{
    assert_int_equal(munmap(copy->image, copy->size), 0);
}

/* In its place, which nobody else gets, is nothing; and then it is there again. */
static void map_nothing(const struct copy *copy)
{
    assert_ptr_equal(
        mmap(copy->image, copy->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        copy->image);
}

static void map_again(const struct copy *copy)
{
    const int fd = open(copy->path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_ptr_equal(
        mmap(copy->image, copy->size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0),
        copy->image);
    close(fd);
}

static struct oteli_mappings *begin(void)
{
    oteli_leaks_begin();
    (void)oteli_clock_start("fake");
    oteli_fake_clock.monotonic_ns = A_WHILE_NS;
    struct oteli_mappings *mappings = oteli_mappings_new();
    assert_non_null(mappings);
    return mappings;
}

static void end(struct oteli_mappings *mappings)
{
    oteli_mappings_free(mappings);
    oteli_leaks_check();
}

static uint32_t number_of(struct oteli_mappings *mappings, uintptr_t address)
{
    bool is_code;
    const uint32_t number = oteli_mappings_find(mappings, address, &is_code);
    assert_true(is_code || number == 0);
    return number;
}

static bool is_code(struct oteli_mappings *mappings, uintptr_t address)
{
    bool is;
    (void)oteli_mappings_find(mappings, address, &is);
    return is;
}

static const struct oteli_known_mapping *look(struct oteli_mappings *mappings, uintptr_t address)
{
    const uint32_t number = number_of(mappings, address);
    if (number == 0)
        return NULL;
    const struct oteli_known_mapping *known = oteli_mappings_at(mappings, number);
    assert_true(known->start <= address && address < known->limit);
    return known;
}

TEST(code_of_the_program_and_of_a_library)
{
    struct oteli_mappings *mappings = begin();
    char program[PATH_MAX] = "";
    assert_true(readlink("/proc/self/exe", program, sizeof program - 1) > 0);

    const struct oteli_known_mapping *ours = look(mappings, (uintptr_t)look);
    assert_non_null(ours);
    assert_true(ours->is_program);
    assert_string_equal(ours->path, program);
    assert_true(ours->identity.build_id_length >= 8);
    assert_int_equal(number_of(mappings, (uintptr_t)begin), number_of(mappings, (uintptr_t)end));

    const struct oteli_known_mapping *libc = look(mappings, (uintptr_t)getauxval);
    assert_non_null(libc);
    assert_false(libc->is_program);
    assert_non_null(strstr(libc->path, "lib"));
    end(mappings);
}

TEST(the_kernels_code_has_its_name)
{
    struct oteli_mappings *mappings = begin();
    const uintptr_t image = getauxval(AT_SYSINFO_EHDR);
    const struct oteli_known_mapping *vdso = look(mappings, image + 64);
    if (image != 0) {
        assert_non_null(vdso);
        assert_string_equal(vdso->path, "[vdso]");
        assert_true(vdso->identity.build_id_length != 0);
        assert_false(vdso->is_program);
    }
    end(mappings);
}

TEST(what_is_no_file_is_nothing)
{
    struct oteli_mappings *mappings = begin();
    void *own = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(own != MAP_FAILED);

    assert_null(look(mappings, (uintptr_t)own));
    assert_null(look(mappings, 0));
    assert_null(look(mappings, 1));
    assert_null(look(mappings, UINTPTR_MAX));
    assert_null(look(mappings, (uintptr_t)&own));
    assert_true(is_code(mappings, (uintptr_t)own));
    assert_true(is_code(mappings, (uintptr_t)look));
    assert_false(is_code(mappings, (uintptr_t)&own));
    assert_false(is_code(mappings, UINTPTR_MAX));

    munmap(own, 4096);
    end(mappings);
}

TEST(what_was_unmapped_is_known_until_it_settles)
{
    struct oteli_mappings *mappings = begin();
    struct copy copy;
    make_copy(&copy, 0);
    const uint32_t number = number_of(mappings, (uintptr_t)copy.image + 100);
    assert_int_not_equal(number, 0);

    unmap(&copy);
    unlink(copy.path);
    oteli_fake_clock.monotonic_ns += A_WHILE_NS;
    assert_null(look(mappings, 1)); /* is nowhere, so the maps are read again */
    const struct oteli_known_mapping *gone = look(mappings, (uintptr_t)copy.image + 200);
    assert_non_null(gone);
    assert_string_equal(gone->path, copy.path);
    assert_int_equal(number_of(mappings, (uintptr_t)copy.image + 100), number);

    oteli_mappings_settle(mappings);
    assert_null(look(mappings, (uintptr_t)copy.image + 100));
    assert_non_null(look(mappings, (uintptr_t)look));
    end(mappings);
}

TEST(what_is_mapped_again_when_it_settles_is_looked_up_again)
{
    struct oteli_mappings *mappings = begin();
    struct copy copy;
    make_copy(&copy, 0);
    assert_int_not_equal(number_of(mappings, (uintptr_t)copy.image), 0);
    map_nothing(&copy);
    oteli_fake_clock.monotonic_ns += A_WHILE_NS;
    assert_null(look(mappings, 1)); /* is nowhere, so the maps are read again */
    map_again(&copy);

    oteli_mappings_settle(mappings);

    assert_non_null(look(mappings, (uintptr_t)look)); /* gets the first number */
    const struct oteli_known_mapping *again = look(mappings, (uintptr_t)copy.image);
    assert_non_null(again);
    assert_string_equal(again->path, copy.path);
    unmap(&copy);
    unlink(copy.path);
    end(mappings);
}

TEST(new_code_is_found_after_a_while)
{
    struct oteli_mappings *mappings = begin();
    struct copy copy;
    assert_non_null(look(mappings, (uintptr_t)look));
    make_copy(&copy, 0);

    assert_null(look(mappings, (uintptr_t)copy.image)); /* read a moment ago */
    oteli_fake_clock.monotonic_ns += A_WHILE_NS;
    assert_non_null(look(mappings, (uintptr_t)copy.image));

    unmap(&copy);
    unlink(copy.path);
    end(mappings);
}

TEST(other_code_at_an_old_address_is_another_mapping)
{
    struct oteli_mappings *mappings = begin();
    struct copy first;
    struct copy second;
    make_copy(&first, 0);
    make_copy(&second, 0);
    const uint32_t before = number_of(mappings, (uintptr_t)first.image + 100);

    /* The second file where the first was. */
    assert_true(mremap(second.image, second.size, second.size, MREMAP_MAYMOVE | MREMAP_FIXED,
                       first.image) == first.image);
    oteli_fake_clock.monotonic_ns += A_WHILE_NS;
    assert_null(look(mappings, 1));
    const uint32_t after = number_of(mappings, (uintptr_t)first.image + 100);

    assert_int_not_equal(before, after);
    assert_string_equal(oteli_mappings_at(mappings, before)->path, first.path);
    assert_string_equal(oteli_mappings_at(mappings, after)->path, second.path);
    unmap(&first);
    unlink(first.path);
    unlink(second.path);
    end(mappings);
}

TEST(a_deleted_file_has_its_old_name_if_it_has_a_build_id)
{
    struct oteli_mappings *mappings = begin();
    struct copy copy;
    make_copy(&copy, 0);
    unlink(copy.path);

    const struct oteli_known_mapping *known = look(mappings, (uintptr_t)copy.image);

    assert_non_null(known);
    assert_string_equal(known->path, copy.path);
    const uint8_t length = known->identity.build_id_length;
    uint8_t id[OTELI_BUILD_ID_BYTES];
    memcpy(id, known->identity.build_id, sizeof id);
    const struct oteli_known_mapping *ours = look(mappings, (uintptr_t)look);
    assert_int_equal(length, ours->identity.build_id_length);
    assert_memory_equal(id, ours->identity.build_id, sizeof id);
    unmap(&copy);
    end(mappings);
}

TEST(a_deleted_file_without_one_is_said_to_be_deleted)
{
    struct oteli_mappings *mappings = begin();
    struct copy copy;
    char expected[128];
    make_copy(&copy, 4096); /* its head is not mapped, and so no id */
    unlink(copy.path);
    snprintf(expected, sizeof expected, "%s (deleted)", copy.path);

    const struct oteli_known_mapping *known = look(mappings, (uintptr_t)copy.image);

    assert_non_null(known);
    assert_string_equal(known->path, expected);
    assert_int_equal(known->file_offset, 4096);
    assert_int_equal(known->identity.build_id_length, 0);
    assert_false(known->identity.has_htlhash);
    unmap(&copy);
    end(mappings);
}

TEST(a_file_without_a_build_id_has_a_hash)
{
    struct oteli_mappings *mappings = begin();
    struct copy copy;
    make_copy(&copy, 0);
    unmap(&copy);
    const int fd = open(copy.path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "no elf", 6, 0), 6);
    copy.image = mmap(NULL, copy.size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    struct oteli_elf_identity expected = {0};
    assert_true(oteli_elf_read_htlhash(fd, &expected));
    close(fd);

    const struct oteli_known_mapping *known = look(mappings, (uintptr_t)copy.image);

    assert_non_null(known);
    assert_int_equal(known->identity.build_id_length, 0);
    assert_true(known->identity.has_htlhash);
    assert_memory_equal(known->identity.htlhash, expected.htlhash, sizeof expected.htlhash);
    unmap(&copy);
    unlink(copy.path);
    end(mappings);
}

TEST(no_memory_is_an_address_of_nothing)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        struct oteli_mappings *mappings = begin();
        oteli_leaks_fail_at(nth);
        const bool is_found = look(mappings, (uintptr_t)look) != NULL;
        all_tried = !oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        if (all_tried)
            assert_true(is_found);
        oteli_mappings_settle(mappings);
        assert_non_null(look(mappings, (uintptr_t)look));
        end(mappings);
    }
}
