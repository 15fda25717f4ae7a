/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/support/leaks_test.c - the allocation counter that every other unit test trusts. */
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Compilers know what malloc and free do, and leave out what cannot matter: these
 * are what they cannot see through. */
static void *volatile keep;
static void *(*volatile allocate)(size_t size) = malloc;
static void *(*volatile reallocate)(void *old, size_t size) = realloc;

static void *kept(void *memory)
{
    keep = memory;
    return keep;
}

TEST(counts_every_kind_of_allocation)
{
    oteli_leaks_begin();

    void *aligned = NULL;
    assert_int_equal(posix_memalign(&aligned, 64, 64), 0);
    void *pieces[] = {kept(malloc(1)),      kept(calloc(2, 2)),        kept(realloc(NULL, 3)),
                      kept(strdup("four")), kept(strndup("fives", 4)), kept(aligned_alloc(64, 64)),
                      kept(aligned)};

    const size_t number = sizeof pieces / sizeof pieces[0];
    assert_int_equal(oteli_leaks_live(), number);
    assert_int_equal(oteli_leaks_count(), number);
    for (size_t i = 0; i < number; i++)
        free(pieces[i]);
    oteli_leaks_check();
}

TEST(a_moved_piece_is_one_and_older_ones_are_not_counted)
{
    void *older = kept(malloc(8));
    oteli_leaks_begin();

    free(older);
    char *text = kept(malloc(8));
    text = kept(realloc(text, 1 << 20));

    assert_int_equal(oteli_leaks_live(), 1);
    free(text);
    oteli_leaks_check();
}

TEST(many_pieces_are_all_found_again)
{
    enum { MANY = 5000 };
    static void *pieces[MANY];
    oteli_leaks_begin();

    for (size_t i = 0; i < MANY; i++)
        pieces[i] = malloc(16);
    for (size_t i = 0; i < MANY; i += 2)
        free(pieces[i]);
    assert_int_equal(oteli_leaks_live(), MANY / 2);
    for (size_t i = 1; i < MANY; i += 2)
        free(pieces[i]);

    assert_int_equal(oteli_leaks_count(), MANY);
    oteli_leaks_check();
}

TEST(the_chosen_allocation_fails_once)
{
    oteli_leaks_begin();
    oteli_leaks_fail_at(2);

    void *first = allocate(8);
    assert_non_null(first);
    errno = 0;
    assert_null(reallocate(first, 16)); /* which stays */
    assert_int_equal(errno, ENOMEM);
    assert_true(oteli_leaks_failed());
    oteli_leaks_fail_at(1);
    assert_false(oteli_leaks_failed());
    first = reallocate(first, 16);

    assert_non_null(first);
    assert_int_equal(oteli_leaks_live(), 1);
    free(first);
    oteli_leaks_check();
}

/* Not in the list of tests: the one below runs it, and wants it to fail. */
static void leaks_one_piece(void **state)
{
    (void)state;
    oteli_leaks_begin();
    keep = malloc(8);
    oteli_leaks_check();
}

TEST(a_leak_fails_the_test_that_makes_it)
{
    const struct CMUnitTest inner[] = {cmocka_unit_test(leaks_one_piece)};

    const int failures = _cmocka_run_group_tests("expected to fail", inner, 1, NULL, NULL);

    assert_int_equal(failures, 1);
    free(keep);
}
