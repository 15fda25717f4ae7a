/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/functions/functions_symbols_test.c - specification of functions/symbols.h. */
#include "functions/symbols.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *name_of(const void *address)
{
    static char name[256];
    const size_t length = oteli_symbols_name(address, name, sizeof name - 1);
    assert_in_range(length, 1, sizeof name - 1);
    name[length] = '\0';
    return name;
}

TEST(a_static_function_has_a_name)
{
    const void *address = (const void *)(uintptr_t)&test_a_static_function_has_a_name;

    assert_string_equal(name_of(address), "test_a_static_function_has_a_name");
    assert_string_equal(name_of((const char *)address + 1), "test_a_static_function_has_a_name");
}

TEST(a_function_of_a_library_has_a_name)
{
    assert_string_equal(name_of(dlsym(RTLD_DEFAULT, "elf_begin")), "elf_begin");
}

TEST(an_address_without_a_symbol_is_a_place_in_its_module)
{
    extern const char __executable_start[]; /* of no size: behind it there is no symbol */
    char expected[32];
    snprintf(expected, sizeof expected, "%s+0x8", program_invocation_short_name);

    assert_string_equal(name_of(__executable_start + 8), expected);
}

TEST(an_address_of_nothing_has_no_name)
{
    char name[8] = "before";
    assert_int_equal(oteli_symbols_name((const void *)(uintptr_t)16, name, sizeof name), 0);
    assert_string_equal(name, "before");
}

/* The directory with this program and, beside it, the library that it loads. */
static void *load_library(void)
{
    char path[512];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    assert_true(length > 0);
    path[length] = '\0';
    strcpy(strrchr(path, '/'), "/libfunctions_loaded.so");
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

TEST(a_library_that_is_loaded_later_has_names_and_keeps_them)
{
    void *library = load_library();
    assert_non_null(library);
    void *work = dlsym(library, "loaded_work");
    void *(*get_hidden)(void);
    *(void **)&get_hidden = dlsym(library, "loaded_hidden_address");
    void *hidden = get_hidden();
    const uint64_t serial = oteli_symbols_serial();

    assert_string_equal(name_of(work), "loaded_work");
    assert_string_equal(name_of(hidden), "loaded_hidden");
    dlclose(library);
    assert_true(oteli_symbols_serial() > serial);
    assert_string_equal(name_of(hidden), "loaded_hidden");
}

static size_t count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    size_t count = 0;
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

TEST(no_descriptor_stays_open)
{
    const size_t before = count_descriptors();
    oteli_symbols_fini();
    name_of((const void *)(uintptr_t)&count_descriptors);
    name_of(dlsym(RTLD_DEFAULT, "elf_begin"));

    assert_int_equal(count_descriptors(), before);
}

struct seen {
    size_t functions;
    bool has_static;
    bool has_other;
};

static void see_function(void *state, const char *name, struct oteli_range function)
{
    struct seen *seen = state;
    const uint64_t address = (uintptr_t)&see_function;
    seen->functions++;
    if (strcmp(name, "see_function") == 0)
        seen->has_static = function.begin == address && function.end > address;
    if (strcmp(name, "elf_begin") == 0)
        seen->has_other = function.begin == (uintptr_t)dlsym(RTLD_DEFAULT, "elf_begin");
}

TEST(all_functions_of_all_modules_can_be_visited)
{
    struct seen seen = {0};
    oteli_symbols_each(see_function, &seen);

    assert_true(seen.functions > 100);
    assert_true(seen.has_static);
    assert_true(seen.has_other);
}

TEST(a_child_starts_afresh)
{
    const void *address = (const void *)(uintptr_t)&test_a_child_starts_afresh;
    name_of(address);
    const pid_t child = fork();
    if (child == 0) {
        char name[64];
        oteli_symbols_forget();
        const size_t length = oteli_symbols_name(address, name, sizeof name);
        _exit(length != strlen("test_a_child_starts_afresh") ||
              memcmp(name, "test_a_child_starts_afresh", length) != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int end(void **state)
{
    (void)state;
    oteli_symbols_fini();
    return 0;
}

AROUND_ALL(NULL, end);
