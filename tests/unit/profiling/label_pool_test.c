/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/label_pool_test.c - specification of profiling/label_pool.h. */
#include "profiling/label_pool.h"
#include "tests/support/unit.h"

#include <string.h>

static struct oteli_label_pool pool;

static int end_pool(void **state)
{
    (void)state;
    memset(&pool, 0, sizeof pool);
    return 0;
}

AROUND_EACH(NULL, end_pool);

TEST(a_zeroed_pool_is_full_and_keeps_the_order)
{
    for (int i = 0; i < OTELI_TRAMPOLINES; i++)
        assert_int_equal(oteli_label_pool_take(&pool), i);
    assert_int_equal(oteli_label_pool_take(&pool), OTELI_NO_TRAMPOLINE);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++)
            oteli_label_pool_give(&pool, (i + 7) % OTELI_TRAMPOLINES);
        for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++)
            assert_int_equal(oteli_label_pool_take(&pool), (i + 7) % OTELI_TRAMPOLINES);
        assert_int_equal(oteli_label_pool_take(&pool), OTELI_NO_TRAMPOLINE);
    }
}

TEST(a_giver_that_was_preempted_hides_what_was_given_after_it)
{
    for (int i = 0; i < OTELI_TRAMPOLINES; i++)
        (void)oteli_label_pool_take(&pool);
    const uint64_t ticket = oteli_add_full_64(&pool.given, 1) + OTELI_TRAMPOLINES;
    oteli_label_pool_give(&pool, 5);
    assert_int_equal(oteli_label_pool_take(&pool), OTELI_NO_TRAMPOLINE);

    oteli_store_release_64(&pool.slots[ticket % OTELI_TRAMPOLINES],
                           (ticket + 1) << OTELI_LABEL_POOL_SHIFT | 4);

    assert_int_equal(oteli_label_pool_take(&pool), 4);
    assert_int_equal(oteli_label_pool_take(&pool), 5);
}

static bool is_odd(unsigned index)
{
    return index % 2 == 1;
}

TEST(a_pool_is_rebuilt_of_what_is_free)
{
    for (int i = 0; i < 700; i++)
        (void)oteli_label_pool_take(&pool);
    (void)oteli_add_full_64(&pool.given, 1); /* by a thread that is no more */

    oteli_label_pool_rebuild(&pool, is_odd);

    for (int i = 1; i < OTELI_TRAMPOLINES; i += 2)
        assert_int_equal(oteli_label_pool_take(&pool), i);
    assert_int_equal(oteli_label_pool_take(&pool), OTELI_NO_TRAMPOLINE);
    oteli_label_pool_give(&pool, 8);
    assert_int_equal(oteli_label_pool_take(&pool), 8);
    assert_int_equal(oteli_label_pool_take(&pool), OTELI_NO_TRAMPOLINE);
}
