/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/line_test.c - specification of the pool of lines. */
#include "api/record/line.h"
#include "common/base/free_list.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { LIMIT = 64 };

static int setup(void **state)
{
    (void)state;
    oteli_leaks_begin();
    oteli_lines_set_limit(LIMIT * OTELI_LINE_BYTES);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    oteli_leaks_fail_at(0);
    oteli_lines_free();
    oteli_lines_set_limit(UINT64_C(64) << 20);
    oteli_leaks_check();
    return 0;
}

AROUND_EACH(setup, teardown);

TEST(the_line_that_a_thread_keeps_is_beyond_the_limit)
{
    struct oteli_line *lines[LIMIT + 1];
    for (unsigned i = 0; i < LIMIT; i++)
        lines[i] = oteli_line_get(NULL, 1);
    assert_null(oteli_line_get(NULL, 1));

    lines[LIMIT] = oteli_line_keep(NULL);
    assert_non_null(lines[LIMIT]);
    assert_null(oteli_line_get(NULL, 1));
    assert_int_equal(oteli_lines_queued_bytes(), LIMIT * OTELI_LINE_BYTES);
    assert_int_equal(oteli_lines_bytes(), (LIMIT + 1) * OTELI_LINE_BYTES);

    oteli_line_keep_no_more();
    oteli_line_put(lines[LIMIT]);
    assert_null(oteli_line_get(NULL, 1));
    for (unsigned i = 0; i < LIMIT; i++)
        oteli_line_put(lines[i]);
    assert_int_equal(oteli_lines_queued_bytes(), 0);
}

TEST(one_line_there_always_may_be)
{
    oteli_lines_set_limit(0);
    struct oteli_line *line = oteli_line_get(NULL, 1);
    assert_non_null(line);
    assert_null(oteli_line_get(NULL, 1));
    oteli_line_put(line);
}

TEST(large_lines_count_for_their_size_and_are_given_back)
{
    const size_t fits = OTELI_LINE_BYTES - sizeof(struct oteli_line);
    struct oteli_line *pooled = oteli_line_get(NULL, fits);
    struct oteli_line *large = oteli_line_get(NULL, fits + 1);
    assert_int_equal(pooled->units, 1);
    assert_int_equal(large->units, 2);
    assert_true(large->capacity > fits);
    assert_int_equal(oteli_lines_bytes(), 3 * OTELI_LINE_BYTES);
    assert_null(oteli_line_get(NULL, (LIMIT - 2) * OTELI_LINE_BYTES));
    const size_t live = oteli_leaks_live();
    oteli_line_put(large);
    assert_int_equal(oteli_leaks_live(), live - 1);
    large = oteli_line_get(NULL, (LIMIT - 2) * OTELI_LINE_BYTES);
    assert_non_null(large);
    oteli_line_put(large);
    assert_int_equal(msync(large, 1, MS_ASYNC), -1); /* it is not mapped any more */
    assert_int_equal(errno, ENOMEM);
    oteli_line_put(pooled);
}

TEST(without_memory_nothing_is_used_up)
{
    for (int i = 0; i < 2000; i++) {
        oteli_leaks_fail_at(1);
        errno = EPIPE;
        assert_null(oteli_line_get(NULL, 1));
        assert_int_equal(errno, EPIPE);
        assert_int_equal(oteli_lines_bytes(), 0);
    }
    oteli_leaks_fail_at(0);
    struct oteli_line *line = oteli_line_get(NULL, 1);
    assert_int_equal(line->index, 0);
    oteli_line_put(line);
}

/* A thread that looked at a list's head must notice all that has happened since. */
TEST(no_change_brings_the_head_of_a_list_back)
{
    uint64_t heads[100] = {0};
    for (unsigned i = 1; i < 100; i++) {
        heads[i] = oteli_free_list_next(heads[i - 1], 7);
        assert_int_equal((uint32_t)heads[i], 7);
        for (unsigned k = 0; k < i; k++)
            assert_true(heads[k] != heads[i]);
    }
}

TEST(many_lines_come_in_huge_pages_and_are_used_again)
{
    enum { MANY = 600, HUGE_PAGE = 2 * 1024 * 1024, A_PAGE = HUGE_PAGE / OTELI_LINE_BYTES };
    (void)state;
    static struct oteli_line *lines[MANY];
    oteli_lines_set_limit(MANY * OTELI_LINE_BYTES);
    for (unsigned i = 0; i < MANY; i++) {
        lines[i] = oteli_line_get(NULL, 1);
        assert_non_null(lines[i]);
        assert_int_equal(lines[i]->capacity, lines[0]->capacity);
        memset(lines[i]->records, (int)i, lines[i]->capacity);
    }
    assert_null(oteli_line_get(NULL, 1));
    const size_t allocated = oteli_leaks_count();
    unsigned in_place = 0;
    for (unsigned i = 0; i < MANY; i++) {
        in_place += (uintptr_t)lines[i] % HUGE_PAGE ==
                    (uintptr_t)lines[i]->index % A_PAGE * OTELI_LINE_BYTES;
        assert_int_equal(lines[i]->records[0], (uint8_t)i);
        assert_int_equal(lines[i]->records[lines[i]->capacity - 1], (uint8_t)i);
        oteli_line_put(lines[i]);
    }
    assert_true(in_place >= MANY - 2 * A_PAGE); /* all but the first few */
    for (unsigned i = 0; i < MANY; i++)
        assert_non_null(lines[i] = oteli_line_get(NULL, 1));
    assert_int_equal(oteli_leaks_count(), allocated);
    for (unsigned i = 0; i < MANY; i++)
        oteli_line_put(lines[i]);
}
