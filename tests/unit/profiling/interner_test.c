/* SPDX-License-Identifier: Apache-2.0 */
/* Equal rows have one index, rows stand behind each other, and what was added last can go again. */
#include "profiling/interner.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdint.h>
#include <string.h>

enum { MANY = 5000, NO_LIMIT = 1 << 24 };

static struct oteli_interner table;

static uint32_t add(const char *text)
{
    uint32_t index = UINT32_MAX;
    assert_true(oteli_interner_add(&table, text, strlen(text), &index));
    return index;
}

TEST(equal_rows_are_one)
{
    oteli_leaks_begin();
    oteli_interner_init(&table, NO_LIMIT, NO_LIMIT, 0, 7);
    uint32_t index;

    assert_int_equal(add("one"), 0);
    assert_int_equal(add(""), 1);
    assert_int_equal(add("other"), 2);
    assert_int_equal(add("one"), 0);
    assert_int_equal(add(""), 1);

    assert_int_equal(table.count, 3);
    assert_true(oteli_interner_find(&table, "other", 5, &index));
    assert_int_equal(index, 2);
    assert_false(oteli_interner_find(&table, "othe", 4, &index));
    assert_memory_equal(table.bytes, "oneother", 8);
    oteli_interner_fini(&table);
    oteli_leaks_check();
}

TEST(tails_are_zeros_that_do_not_count)
{
    oteli_interner_init(&table, NO_LIMIT, NO_LIMIT, sizeof(uint64_t), 7);
    static const char zeros[sizeof(uint64_t)];

    const uint32_t first = add("abcdefgh");
    char *row = oteli_interner_at(&table, first);
    assert_memory_equal(row + 8, zeros, sizeof zeros);
    memset(row + 8, 0xff, sizeof zeros);

    assert_int_equal(add("abcdefgh"), first);
    assert_int_equal(add("ABCDEFGH"), first + 1);
    assert_memory_equal((char *)oteli_interner_at(&table, first + 1) + 8, zeros, sizeof zeros);
    oteli_interner_fini(&table);
}

TEST(what_was_added_last_is_taken_back)
{
    oteli_interner_init(&table, NO_LIMIT, NO_LIMIT, 0, 7);
    uint32_t index;
    for (uint32_t i = 0; i < MANY; i++)
        assert_true(oteli_interner_add(&table, &i, sizeof i, &index));

    oteli_interner_rewind(&table, MANY / 2);

    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(oteli_interner_find(&table, &i, sizeof i, &index), i < MANY / 2);
    assert_int_equal(table.used, MANY / 2 * sizeof(uint32_t));
    assert_int_equal(add("new!"), MANY / 2);
    oteli_interner_fini(&table);
}

TEST(a_full_table_takes_only_what_it_has)
{
    uint32_t index;
    oteli_interner_init(&table, 2, NO_LIMIT, 0, 7);
    add("a");
    add("b");
    assert_false(oteli_interner_add(&table, "c", 1, &index));
    assert_int_equal(add("b"), 1);
    oteli_interner_fini(&table);

    oteli_interner_init(&table, NO_LIMIT, 8, 2, 7);
    add("abcd");
    assert_false(oteli_interner_add(&table, "x", 1, &index));
    assert_int_equal(add("abcd"), 0);
    oteli_interner_fini(&table);
}

TEST(an_emptied_table_keeps_its_memory_until_it_is_far_too_much)
{
    oteli_leaks_begin();
    oteli_interner_init(&table, NO_LIMIT, NO_LIMIT, 0, 7);
    uint32_t index;
    for (uint32_t i = 0; i < MANY; i++)
        assert_true(oteli_interner_add(&table, &i, sizeof i, &index));
    oteli_interner_clear(&table);
    const size_t before = oteli_leaks_count();
    for (uint32_t i = 0; i < MANY; i++)
        assert_true(oteli_interner_add(&table, &i, sizeof i, &index));
    assert_int_equal(oteli_leaks_count(), before);

    const uint32_t room = table.room;
    for (unsigned i = 0; i < 20; i++)
        oteli_interner_clear(&table);

    assert_true(table.room < room / 2);
    assert_int_equal(add("after"), 0);
    oteli_interner_fini(&table);
    oteli_leaks_check();
}

TEST(no_memory_changes_nothing)
{
    bool all_tried = false;
    for (size_t nth = 1; !all_tried; nth++) {
        oteli_leaks_begin();
        oteli_interner_init(&table, NO_LIMIT, NO_LIMIT, 0, 7);
        oteli_leaks_fail_at(nth);
        uint32_t taken = 0;
        for (uint32_t i = 0; i < 200; i++) {
            uint32_t index;
            const uint32_t count = table.count;
            if (oteli_interner_add(&table, &i, sizeof i, &index))
                taken++;
            else
                assert_int_equal(table.count, count);
        }
        all_tried = !oteli_leaks_failed();
        assert_int_equal(table.count, taken);
        assert_int_equal(taken, all_tried ? 200 : 199);
        oteli_interner_fini(&table);
        oteli_leaks_check();
    }
}
