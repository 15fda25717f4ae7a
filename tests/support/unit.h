/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/unit.h - unit tests that register themselves.
 *
 *     AROUND_EACH(set_up, tear_down);        or neither, where a test needs nothing
 *
 *     TEST(an_empty_queue_has_no_first_entry)
 *     {
 *         assert_null(queue_first(*state));
 *     }
 *
 * A program of unit tests has the files of one folder: `unit-common` runs each of its files in a
 * process of its own, `unit-common text` runs text_test.c in this one, `unit-common text TEST`
 * one test of it, and `unit-common --list` says which there are. Within a file tests run in the
 * order in which they are written. Assertions, and `state`, are cmocka's. */
#ifndef OTELI_TESTS_UNIT_H
#define OTELI_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

struct unit_test {
    struct CMUnitTest test;
    bool has_own; /* set_up and tear_down of its own, not those of its file */
    struct unit_test *next;
};

/* The tests of one file. */
struct unit_file {
    const char *path;
    CMFixtureFunction set_up, tear_down;         /* around each test */
    CMFixtureFunction set_up_all, tear_down_all; /* around all of them */
    struct unit_test *first, *last;
    struct unit_file *next;
};

static struct unit_file unit_file __attribute__((unused)) = {.path = __BASE_FILE__};

/* Run a function in a child of a fork, to its end: it answers what it found wrong, 0: nothing. The
 * second for a child of a fork from elsewhere. */
void check_child(int (*life)(void));
void check_forked(pid_t child);

/* Before main, on its thread. */
void unit_add(struct unit_file *file, struct unit_test *test);

#define UNIT_ADD(function, ...)                               \
    __attribute__((constructor)) static void function(void)   \
    {                                                         \
        static struct unit_test test = {.test = __VA_ARGS__}; \
        unit_add(&unit_file, &test);                          \
    }                                                         \
    struct unit_test

/* A test, with what the file has around each. */
#define TEST(name)                                                     \
    static void test_##name(void **state);                             \
    UNIT_ADD(unit_add_##name, {#name, test_##name, NULL, NULL, NULL}); \
    static void test_##name(__attribute__((unused)) void **state)

/* A test with set_up and tear_down of its own; NULL: none. */
#define TEST_WITH(set_up, tear_down, name)                                                     \
    static void test_##name(void **state);                                                     \
    UNIT_ADD(unit_add_##name, {#name, test_##name, set_up, tear_down, NULL}, .has_own = true); \
    static void test_##name(__attribute__((unused)) void **state)

/* The test once more, with these. */
#define TEST_AGAIN(set_up, tear_down, name) \
    UNIT_ADD(unit_add_##name##_##set_up,    \
             {#name ", " #set_up, test_##name, set_up, tear_down, NULL}, .has_own = true)

/* A test with each of two fixtures. */
#define TEST_TWICE(set_up, set_up_again, tear_down, name) \
    static void test_##name(void **state);                \
    TEST_AGAIN(set_up_again, tear_down, name);            \
    TEST_WITH(set_up, tear_down, name)

#define AROUND_EACH(begin, end)                                     \
    __attribute__((constructor)) static void unit_around_each(void) \
    {                                                               \
        unit_file.set_up = (begin);                                 \
        unit_file.tear_down = (end);                                \
    }                                                               \
    struct unit_file

#define AROUND_ALL(begin, end)                                     \
    __attribute__((constructor)) static void unit_around_all(void) \
    {                                                              \
        unit_file.set_up_all = (begin);                            \
        unit_file.tear_down_all = (end);                           \
    }                                                              \
    struct unit_file

#endif
