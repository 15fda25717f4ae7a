/* SPDX-License-Identifier: Apache-2.0 */
/* What functions are called, of this program and of libraries that are loaded; files that are not what
 * is mapped any more have no names; what is remembered, and what is asked for again. */
#include "profiling/names.h"

#include "common/clock.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define A_SECOND_NS (UINT64_C(1000) * 1000 * 1000)

enum { ENOUGH_NS = 1000 * 1000 * 1000, ASKED_MOST = 16 };

static struct oteli_mappings *mappings;
static struct oteli_names *names;
static char told[ASKED_MOST][64];

static void begin(void)
{
    oteli_leaks_begin();
    (void)oteli_clock_start("fake");
    oteli_fake_clock.monotonic_ns = 100 * A_SECOND_NS;
    mappings = oteli_mappings_new();
    names = oteli_names_new();
    assert_true(mappings != NULL && names != NULL);
}

static void end(void)
{
    oteli_names_free(names);
    oteli_mappings_free(mappings);
    oteli_leaks_check();
}

static void take(void *state, uint32_t index, const char *name, size_t length)
{
    (void)state;
    assert_true(index < ASKED_MOST);
    assert_int_equal(strlen(name), length);
    snprintf(told[index], sizeof told[index], "%s", name);
}

static struct oteli_name_question question(uintptr_t address, uint32_t index)
{
    bool is_code;
    const uint32_t mapping = oteli_mappings_find(mappings, address, &is_code);
    assert_int_not_equal(mapping, 0);
    return (struct oteli_name_question){mapping, index, address};
}

static void find(struct oteli_name_question *questions, size_t count, uint64_t budget_ns)
{
    memset(told, 0, sizeof told);
    oteli_names_find(names, mappings, questions, count, budget_ns, UINT64_MAX, take, NULL);
}

/* The name of one address; "": it has none. */
static const char *name_of(uintptr_t address)
{
    struct oteli_name_question one = question(address, 0);
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

/* ---- names ---------------------------------------------------------------------------------- */

TEST(the_program_and_its_libraries_are_asked_together)
{
    begin();
    struct oteli_name_question questions[] = {
        question(in_libc("qsort") + 1, 2), question((uintptr_t)begin, 0),
        question(in_libc("fopen"), 3), question((uintptr_t)oteli_mappings_new + 1, 1)};

    find(questions, 4, ENOUGH_NS);

    assert_string_equal(told[0], "begin");
    assert_string_equal(told[1], "oteli_mappings_new");
    assert_string_equal(told[2], "qsort");
    assert_non_null(strstr(told[3], "fopen"));
    const struct oteli_names_counts counts = oteli_names_counted(names);
    assert_int_equal(counts.asked, 4);
    assert_int_equal(counts.named, 4);
    assert_int_equal(counts.remembered, 0);
    end();
}

TEST(what_was_found_once_is_remembered_also_that_there_is_nothing)
{
    begin();
    const struct oteli_known_mapping *ours =
        oteli_mappings_at(mappings, question((uintptr_t)begin, 0).mapping);
    const uintptr_t padding = ours->limit - 1; /* a page is seldom full to the last byte */
    for (unsigned i = 0; i < 3; i++) {
        struct oteli_name_question questions[] = {question((uintptr_t)end, 0),
                                                  question(padding, 1)};
        find(questions, 2, i == 0 ? ENOUGH_NS : 0);
        assert_string_equal(told[0], "end");
        assert_string_equal(told[1], "");
        assert_int_equal(oteli_names_counted(names).remembered, 2 * i);
        oteli_mappings_settle(mappings);
    }
    end();
}

TEST(too_little_time_gives_no_names_and_more_gives_them_later)
{
    begin();
    struct oteli_name_question one = question((uintptr_t)begin, 0);
    find(&one, 1, 0);
    assert_string_equal(told[0], "");
    assert_int_equal(oteli_names_counted(names).late, 1);

    oteli_fake_clock.monotonic_ns += 100 * A_SECOND_NS;

    assert_string_equal(name_of((uintptr_t)begin), "begin");
    end();
}

TEST(what_the_kernel_has_mapped_has_no_file)
{
    begin();
    bool is_code;
    const uintptr_t vdso = (uintptr_t)getauxval(AT_SYSINFO_EHDR);
    const uint32_t mapping = oteli_mappings_find(mappings, vdso, &is_code);
    if (mapping != 0)
        assert_string_equal(name_of(vdso), "");
    end();
}

/* ---- files that are not there any more --------------------------------------------------------- */

/* A copy of this program as a file, mapped as a library would be. */
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

static void make_copy(struct copy *copy)
{
    struct stat status;
    snprintf(copy->path, sizeof copy->path, "/tmp/otel-c-names-XXXXXX");
    const int to = mkostemp(copy->path, O_CLOEXEC);
    assert_true(to >= 0);
    copy_file("/proc/self/exe", to);
    assert_int_equal(fstat(to, &status), 0);
    copy->size = (size_t)status.st_size;
    copy->image = mmap(NULL, copy->size, PROT_READ | PROT_EXEC, MAP_PRIVATE, to, 0);
    assert_true(copy->image != MAP_FAILED);
    close(to);
}

static void discard(struct copy *copy)
{
    assert_int_equal(munmap(copy->image, copy->size), 0);
    unlink(copy->path);
}

/* Where `begin` lies in the copy, which is mapped as it is in the file. */
static uintptr_t begin_in(const struct copy *copy)
{
    const struct oteli_known_mapping *ours =
        oteli_mappings_at(mappings, question((uintptr_t)begin, 0).mapping);
    return (uintptr_t)copy->image + ((uintptr_t)begin - ours->start) + ours->file_offset;
}

TEST(a_file_that_is_mapped_anywhere_has_names)
{
    struct copy copy;
    make_copy(&copy);
    begin();

    assert_string_equal(name_of(begin_in(&copy)), "begin");
    assert_string_equal(name_of(begin_in(&copy)), "begin");

    assert_int_equal(oteli_names_counted(names).remembered, 1);
    end();
    discard(&copy);
}

static void replace_it(const struct copy *copy)
{
    char path[80];
    snprintf(path, sizeof path, "%s.new", copy->path);
    const int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    copy_file("/bin/true", fd);
    close(fd);
    assert_int_equal(rename(path, copy->path), 0);
}

static void delete_it(const struct copy *copy)
{
    unlink(copy->path);
}

static void cut_it_off(const struct copy *copy)
{
    assert_int_equal(truncate(copy->path, 100), 0);
}

static void strip_it(const struct copy *copy) /* of all sections */
{
    const int fd = open(copy->path, O_WRONLY | O_CLOEXEC);
    const uint64_t none = 0;
    assert_int_equal(pwrite(fd, &none, sizeof none, 40), (ssize_t)sizeof none);
    close(fd);
}

TEST(a_file_that_is_another_by_now_has_none)
{
    static void (*const ways[])(const struct copy *) = {replace_it, delete_it, cut_it_off,
                                                        strip_it};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct copy copy;
        make_copy(&copy);
        begin();
        struct oteli_name_question one = question(begin_in(&copy), 0); /* known with its build id */
        ways[i](&copy);

        find(&one, 1, ENOUGH_NS);
        assert_string_equal(told[0], "");
        assert_int_equal(oteli_names_counted(names).refused, 1);

        /* It is not tried again at once, but after a while. */
        find(&one, 1, ENOUGH_NS);
        assert_int_equal(oteli_names_counted(names).refused, 1);
        oteli_fake_clock.monotonic_ns += 100 * A_SECOND_NS;
        find(&one, 1, ENOUGH_NS);
        assert_int_equal(oteli_names_counted(names).refused, 2);
        end();
        discard(&copy);
    }
}

/* ---- limits --------------------------------------------------------------------------------- */

static void count_names(void *state, uint32_t index, const char *name, size_t length)
{
    (void)index;
    assert_true(name[0] != '\0' && length == strlen(name));
    ++*(size_t *)state;
}

TEST(too_much_to_be_remembered_is_forgotten)
{
    enum { MANY = 150 * 1000, PLACES = 100 * 1000 };
    struct oteli_name_question *questions = calloc(MANY, sizeof *questions);
    assert_non_null(questions);
    begin();
    struct copy copy;
    make_copy(&copy);
    oteli_fake_clock.monotonic_ns += 100 * A_SECOND_NS;
    const struct oteli_name_question first = question((uintptr_t)copy.image, 0);
    assert_true(copy.size > PLACES);
    for (uint64_t round = 0; round < 2; round++) {
        size_t named = 0;
        for (uint32_t i = 0; i < MANY; i++)
            questions[i] = (struct oteli_name_question){
                first.mapping, i, first.address + (uint64_t)i * copy.size / MANY};
        oteli_names_find(names, mappings, questions, MANY, UINT32_MAX, UINT64_MAX, count_names,
                         &named);
        const struct oteli_names_counts counts = oteli_names_counted(names);
        assert_true(named > 0);
        assert_int_equal(counts.asked, (round + 1) * MANY);
        assert_int_equal(counts.forgotten, round);
        oteli_fake_clock.monotonic_ns += 10000 * A_SECOND_NS;
    }
    assert_string_equal(name_of((uintptr_t)begin), "begin");
    end();
    discard(&copy);
    free(questions);
}

TEST(without_memory_there_are_no_names_and_with_it_again_there_are)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        begin();
        struct oteli_name_question questions[] = {question((uintptr_t)begin, 0),
                                                  question((uintptr_t)end, 1)};
        oteli_leaks_fail_at(nth);
        find(questions, 2, ENOUGH_NS);
        all_tried = !oteli_leaks_failed();
        oteli_leaks_fail_at(0);
        assert_true(told[0][0] == '\0' || strcmp(told[0], "begin") == 0);

        oteli_fake_clock.monotonic_ns += 100 * A_SECOND_NS;

        assert_string_equal(name_of((uintptr_t)begin), "begin");
        end();
    }
}
