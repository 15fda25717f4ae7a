/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/clock_curve_test.c - specification of common/clock/clock_curve.h: what is
 * covered stays, nothing goes down, and the curve comes back to the clock. */
#include "common/clock/clock_curve.h"
#include "tests/support/unit.h"

#include <stddef.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

enum { TOLERANCE_NS = 100, POINTS = 3 * OTELI_KNOTS, SAMPLES = 64 };

static struct oteli_curve curve;

/* One tick is one nanosecond; the curve begins at (1 s, 10 s). */
static int begin(void **state)
{
    (void)state;
    memset(&curve, 0, sizeof curve);
    const struct oteli_knot first = {SECOND, 10 * SECOND, OTELI_RATE_ONE};
    oteli_curve_leap(&curve, &first);
    oteli_curve_cover(&curve, SECOND);
    return 0;
}

static void meet(uint64_t ticks, uint64_t ns)
{
    const struct oteli_knot point = {ticks, ns, OTELI_RATE_ONE};
    oteli_curve_follow(&curve, &point, TOLERANCE_NS);
}

static uint64_t knots(void)
{
    return curve.head % OTELI_KNOTS;
}

static void assert_near(uint64_t ns, uint64_t truth_ns)
{
    assert_true(ns - truth_ns + 2 <= 4);
}

AROUND_EACH(begin, NULL);

TEST(it_is_a_line_at_first_and_does_not_bend_within_the_tolerance)
{
    assert_int_equal(knots(), 1);
    assert_true(oteli_curve_at(&curve, SECOND) == 10 * SECOND);
    assert_true(oteli_curve_at(&curve, SECOND / 2) == 10 * SECOND - SECOND / 2);
    meet(2 * SECOND, 11 * SECOND + TOLERANCE_NS);
    meet(3 * SECOND, 12 * SECOND - TOLERANCE_NS);
    assert_int_equal(knots(), 1);
    assert_true(oteli_curve_at(&curve, 3 * SECOND) == 12 * SECOND);
}

TEST(it_goes_straight_to_a_point_and_on_at_the_rate_of_the_clock)
{
    meet(11 * SECOND, 20 * SECOND + 5000);
    assert_near(oteli_curve_at(&curve, 11 * SECOND), 20 * SECOND + 5000);
    assert_near(oteli_curve_at(&curve, 6 * SECOND), 15 * SECOND + 2500);
    meet(12 * SECOND, 21 * SECOND + 5000);
    assert_true(oteli_curve_at(&curve, 12 * SECOND) == 21 * SECOND + 5000);
}

/* Also to one that is near in time, whatever its distance. */
TEST(it_meets_a_point_that_is_not_before_it)
{
    static const int64_t off_ns[] = {900, -900, 900000, -900000};
    for (size_t i = 0; i < sizeof off_ns / sizeof off_ns[0]; i++) {
        begin(state);
        const uint64_t off = (uint64_t)off_ns[i];
        meet(SECOND + 1000000, 10 * SECOND + 1000000 + off);
        assert_near(oteli_curve_at(&curve, SECOND + 1000000), 10 * SECOND + 1000000 + off);
        oteli_curve_cover(&curve, 3 * SECOND);
        assert_near(oteli_curve_at(&curve, 3 * SECOND), 12 * SECOND + off);
    }
}

TEST(it_leaps_forward_and_stands_still_instead_of_going_back)
{
    const uint64_t first = oteli_curve_covered(&curve);
    const uint64_t first_ns = oteli_curve_at(&curve, first);
    meet(first + 1000, 3600 * SECOND);
    assert_true(oteli_curve_at(&curve, first) == first_ns);
    assert_true(oteli_curve_at(&curve, first + 1000) == 3600 * SECOND);
    assert_true(oteli_curve_at(&curve, first + 600) == 3600 * SECOND - 400);

    const uint64_t second = oteli_curve_covered(&curve);
    const uint64_t second_ns = oteli_curve_at(&curve, second);
    meet(second + SECOND, second_ns - 5);
    assert_true(oteli_curve_at(&curve, second + SECOND / 2) == second_ns);
    assert_true(oteli_curve_at(&curve, second + SECOND) == second_ns);
}

static uint64_t random_below(uint64_t *seed, uint64_t limit)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*seed >> 33) % limit;
}

/* Points that wander, with pauses and leaps between them, more than there are knots. */
TEST(what_is_covered_stays_and_nothing_goes_down)
{
    uint64_t seed = 7;
    uint64_t ticks = SECOND;
    uint64_t clock_ns = 10 * SECOND;
    uint64_t at[SAMPLES];
    uint64_t ns[SAMPLES];
    size_t samples = 0;
    uint64_t bends = 0;
    for (int i = 0; i < POINTS; i++) {
        const uint64_t before = knots();
        const uint64_t step = 1 + random_below(&seed, i % 7 == 0 ? 5 * SECOND : 5000000);
        ticks += step;
        clock_ns += step + random_below(&seed, 4000) - 2000;
        if (random_below(&seed, 100) == 0)
            clock_ns += random_below(&seed, SECOND);
        meet(ticks, clock_ns);
        bends += (knots() - before) % OTELI_KNOTS;
        if (samples == SAMPLES) {
            for (size_t k = 0; k < SAMPLES; k++)
                assert_true(oteli_curve_at(&curve, at[k]) == ns[k]);
            samples = 0;
        }
        at[samples] = ticks - random_below(&seed, step);
        ns[samples] = oteli_curve_at(&curve, at[samples]);
        assert_true(samples == 0 || ns[samples] >= ns[samples - 1]);
        samples++;
    }
    assert_true(bends > 2 * OTELI_KNOTS);
}

/* Bends that are forgotten leave their time to the oldest line that is known. */
TEST(order_holds_beyond_the_oldest_knot)
{
    for (uint64_t i = 1; i <= 2 * OTELI_KNOTS; i++)
        meet((1 + i) * SECOND, (10 + i) * SECOND + i % 2 * 5000);
    uint64_t before_ns = 0;
    for (uint64_t i = 0; i <= 2 * OTELI_KNOTS; i++) {
        const uint64_t ns = oteli_curve_at(&curve, (1 + i) * SECOND);
        assert_true(ns > before_ns);
        before_ns = ns;
    }
}
