/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/line_test.c - specification of the pool of lines. */
#include "api/line.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <string.h>

enum { LIMIT = 64, THREADS = 4, ROUNDS = 20000 };

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

TEST(a_line_is_empty_and_aligned)
{
    struct oteli_line *line = oteli_line_get(NULL, 100);
    assert_int_equal(line->committed + line->consumed + line->pins, 0);
    assert_false(line->retired);
    assert_int_equal(line->capacity, OTELI_LINE_BYTES - sizeof *line);
    assert_int_equal((uintptr_t)line->records % 8, 0);
    assert_int_equal((uintptr_t)line % OTELI_CACHELINE, 0);
    memset(line->records, 0xa5, line->capacity);
    oteli_line_put(line);
}

TEST(lines_come_back_clean_and_without_allocating)
{
    struct oteli_line *line = oteli_line_get(NULL, 1);
    line->committed = line->consumed = 77;
    oteli_line_put(line);
    const size_t before = oteli_leaks_count();
    for (int i = 0; i < 100; i++) {
        struct oteli_line *again = oteli_line_get(NULL, 1);
        assert_ptr_equal(again, line);
        assert_int_equal(again->committed + again->consumed, 0);
        oteli_line_put(again);
    }
    assert_int_equal(oteli_leaks_count(), before);
}

TEST(the_limit_is_exact)
{
    struct oteli_line *lines[LIMIT];
    for (size_t i = 0; i < LIMIT; i++) {
        assert_int_equal(oteli_lines_bytes(), i * OTELI_LINE_BYTES);
        lines[i] = oteli_line_get(NULL, 1);
        assert_non_null(lines[i]);
    }
    assert_null(oteli_line_get(NULL, 1));
    oteli_line_put(lines[0]);
    lines[0] = oteli_line_get(NULL, 1);
    assert_non_null(lines[0]);
    for (size_t i = 0; i < LIMIT; i++)
        oteli_line_put(lines[i]);
    assert_int_equal(oteli_lines_bytes(), 0);
    assert_int_equal(oteli_lines_most(), LIMIT);
    oteli_lines_set_limit(0);
    assert_int_equal(oteli_lines_most(), LIMIT);
}

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

TEST(a_smaller_limit_holds_for_lines_that_exist_already)
{
    struct oteli_line *lines[LIMIT];
    for (unsigned i = 0; i < LIMIT; i++)
        lines[i] = oteli_line_get(NULL, 1);
    for (unsigned i = 0; i < LIMIT; i++)
        oteli_line_put(lines[i]);

    oteli_lines_set_limit(2 * OTELI_LINE_BYTES);

    lines[0] = oteli_line_get(NULL, 1);
    lines[1] = oteli_line_get(NULL, 1);
    assert_null(oteli_line_get(NULL, 1));
    oteli_line_put(lines[0]);
    oteli_line_put(lines[1]);
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
    oteli_line_put(pooled);
}

TEST(without_memory_nothing_is_used_up)
{
    for (size_t nth = 1; nth <= 2; nth++) {
        oteli_leaks_fail_at(nth);
        assert_null(oteli_line_get(NULL, 1));
        assert_null(oteli_lines_bytes() ? "used" : NULL);
    }
    for (int i = 0; i < 2000; i++) {
        oteli_leaks_fail_at(1);
        assert_null(oteli_line_get(NULL, 1));
    }
    oteli_leaks_fail_at(0);
    struct oteli_line *line = oteli_line_get(NULL, 1);
    assert_int_equal(line->index, 0);
    oteli_line_put(line);
}

TEST(many_lines_come_in_huge_pages)
{
    enum { MANY = 600 };
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
    unsigned in_pieces = 0;
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(lines[i]->records[0], (uint8_t)i);
        assert_int_equal(lines[i]->records[lines[i]->capacity - 1], (uint8_t)i);
        in_pieces += lines[i]->is_in_piece;
        oteli_line_put(lines[i]);
    }
    assert_true(in_pieces >= 128);
    for (unsigned i = 0; i < MANY; i++)
        assert_non_null(lines[i] = oteli_line_get(NULL, 1));
    assert_int_equal(oteli_leaks_count(), allocated);
    for (unsigned i = 0; i < MANY; i++)
        oteli_line_put(lines[i]);
}

static void *take_and_give(void *argument)
{
    struct oteli_line *held[3];
    for (int i = 0; i < ROUNDS; i++) {
        for (size_t k = 0; k < 3; k++) {
            held[k] = oteli_line_get(argument, 1);
            assert_non_null(held[k]);
            held[k]->records[0] = (uint8_t)k;
            held[k]->pins = (uint32_t)k;
        }
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(held[k]->records[0], k);
            assert_ptr_equal(held[k]->owner, argument);
            oteli_line_put(held[k]);
        }
    }
    return NULL;
}

TEST(threads_never_get_the_same_line)
{
    pthread_t threads[THREADS];
    static uint64_t owners[THREADS]; /* only their addresses count */
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &owners[i]), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(oteli_lines_bytes(), 0);
}
