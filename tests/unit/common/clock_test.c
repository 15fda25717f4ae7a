/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/clock_test.c - specification of common/clock.h: one straight line for one epoch,
 * whatever the wall clock does. Real clocks are only asked whether they go forward. */
#include "common/clock.h"
#include "tests/support/unit.h"

#include <stddef.h>

enum { RENEWALS = 600, HOUR_S = 3600 };
#define SECOND_NS UINT64_C(1000000000)
#define WALL_NS (UINT64_C(1700000000) * SECOND_NS)

static int start_fake(void **state)
{
    (void)state;
    oteli_fake_clock.ticks = 1000000 * SECOND_NS;
    oteli_fake_clock.monotonic_ns = 5 * SECOND_NS;
    oteli_fake_clock.wall_ns = WALL_NS;
    assert_null(oteli_clock_start("fake"));
    return 0;
}

/* Time passes on all clocks alike. */
static void pass(uint64_t ns)
{
    oteli_fake_clock.ticks += ns;
    oteli_fake_clock.monotonic_ns += ns;
    oteli_fake_clock.wall_ns += ns;
}

static uint64_t now_stored(void)
{
    return oteli_ticks() | OTELI_TICKS_BIT;
}

AROUND_EACH(start_fake, NULL);

TEST(ticks_become_wall_time)
{
    const uint32_t epoch = oteli_clock_epoch();
    assert_true(oteli_clock_to_ns(now_stored(), epoch) == WALL_NS);
    pass(123456789);
    assert_true(oteli_clock_to_ns(now_stored(), epoch) == WALL_NS + 123456789);
    assert_true(oteli_clock_to_ns((oteli_ticks() - SECOND_NS) | OTELI_TICKS_BIT, epoch) ==
                WALL_NS + 123456789 - SECOND_NS);
    assert_true(oteli_monotonic_ns() == 5 * SECOND_NS + 123456789);
}

TEST(times_of_the_user_stay_as_they_are)
{
    static const uint64_t times[] = {0, 1, WALL_NS, INT64_MAX};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        assert_true(oteli_clock_to_ns(times[i], oteli_clock_epoch()) == times[i]);
}

TEST(an_anchor_that_holds_is_not_renewed)
{
    const uint32_t epoch = oteli_clock_epoch();
    pass(10 * SECOND_NS);
    oteli_clock_renew();
    assert_int_equal(oteli_clock_epoch(), epoch);
    oteli_fake_clock.wall_ns += 500;
    oteli_clock_renew();
    assert_int_equal(oteli_clock_epoch(), epoch);
    oteli_fake_clock.wall_ns += 1;
    oteli_clock_renew();
    assert_int_equal(oteli_clock_epoch(), epoch + 1);
    assert_true(oteli_clock_to_ns(now_stored(), epoch + 1) == oteli_fake_clock.wall_ns);
}

TEST(a_step_of_the_wall_clock_bends_no_trace)
{
    static const int64_t steps_s[] = {HOUR_S, -HOUR_S, 1, -1, -10 * HOUR_S};
    for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++) {
        const uint32_t epoch = oteli_clock_epoch();
        const uint64_t parent_start = now_stored();
        pass(1000);
        const uint64_t child_start = now_stored();
        const uint64_t parent_start_ns = oteli_clock_to_ns(parent_start, epoch);
        oteli_fake_clock.wall_ns += (uint64_t)(steps_s[i] * (int64_t)SECOND_NS);
        oteli_clock_renew();
        assert_int_equal(oteli_clock_epoch(), epoch + 1);
        pass(1000);
        const uint64_t child_end_ns = oteli_clock_to_ns(now_stored(), epoch);
        oteli_clock_renew();
        pass(1000);
        const uint64_t parent_end_ns = oteli_clock_to_ns(now_stored(), epoch);

        assert_true(oteli_clock_to_ns(parent_start, epoch) == parent_start_ns);
        assert_true(oteli_clock_to_ns(child_start, epoch) - parent_start_ns == 1000);
        assert_true(child_end_ns - parent_start_ns == 2000);
        assert_true(parent_end_ns - parent_start_ns == 3000);
        assert_true(oteli_clock_to_ns(now_stored(), oteli_clock_epoch()) ==
                    oteli_fake_clock.wall_ns);
    }
}

TEST(an_epoch_older_than_all_anchors_still_keeps_order)
{
    const uint32_t epoch = oteli_clock_epoch();
    const uint64_t start = now_stored();
    for (int i = 0; i < RENEWALS; i++) {
        pass(SECOND_NS);
        oteli_fake_clock.wall_ns += 1000;
        oteli_clock_renew();
    }
    const uint64_t end = now_stored();
    assert_int_equal(oteli_clock_epoch(), epoch + RENEWALS);
    assert_true(oteli_clock_to_ns(end, epoch) - oteli_clock_to_ns(start, epoch) ==
                RENEWALS * SECOND_NS);
}

TEST(conversion_never_goes_back)
{
    const uint64_t anchor = oteli_ticks();
    uint64_t before = 0;
    for (uint64_t ticks = anchor - 100; ticks < anchor + 100; ticks++) {
        const uint64_t ns = oteli_clock_to_ns(ticks | OTELI_TICKS_BIT, oteli_clock_epoch());
        assert_true(ns >= before);
        before = ns;
    }
}

TEST(each_start_is_an_epoch_of_its_own)
{
    const uint32_t epoch = oteli_clock_epoch();
    oteli_fake_clock.wall_ns += SECOND_NS;
    assert_null(oteli_clock_start("fake"));
    assert_int_equal(oteli_clock_epoch(), epoch + 1);
    assert_true(oteli_clock_to_ns(now_stored(), epoch + 1) == WALL_NS + SECOND_NS);
}

TEST_WITH(NULL, NULL, real_clocks_go_forward)
{
    static const char *const wishes[] = {"auto", "tsc", "monotonic", "coarse"};
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        const char *refused = oteli_clock_start(wishes[i]);
        assert_true(refused == NULL || i == 1);
        const uint32_t epoch = oteli_clock_epoch();
        uint64_t before = oteli_ticks();
        uint64_t before_ns = oteli_clock_to_ns(before | OTELI_TICKS_BIT, epoch);
        assert_true((before & OTELI_TICKS_BIT) == 0);
        assert_true(before_ns > WALL_NS);
        for (int k = 0; k < 1000; k++) {
            const uint64_t ticks = oteli_ticks();
            const uint64_t ns = oteli_clock_to_ns(ticks | OTELI_TICKS_BIT, epoch);
            assert_true(ticks >= before && ns >= before_ns);
            before = ticks;
            before_ns = ns;
        }
        oteli_clock_renew();
        assert_true(oteli_clock_to_ns(before | OTELI_TICKS_BIT, epoch) == before_ns);
    }
}

TEST_WITH(NULL, NULL, a_counter_is_used_where_it_is_trusted)
{
    const char *distrust = oteli_clock_counter_distrust();
    assert_ptr_equal(oteli_clock_start("tsc"), distrust);
    assert_int_equal(oteli_clock.source,
                     distrust == NULL ? OTELI_CLOCK_COUNTER : OTELI_CLOCK_MONOTONIC);
    assert_null(oteli_clock_start("auto"));
    assert_int_equal(oteli_clock.source,
                     distrust == NULL ? OTELI_CLOCK_COUNTER : OTELI_CLOCK_MONOTONIC);
    assert_null(oteli_clock_start("monotonic"));
    assert_int_equal(oteli_clock.source, OTELI_CLOCK_MONOTONIC);
    assert_null(oteli_clock_start("coarse"));
    assert_int_equal(oteli_clock.source, OTELI_CLOCK_COARSE);
}
