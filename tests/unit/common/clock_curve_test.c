/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/clock_curve_test.c - specification of common/clock/clock_curve.h: what is
 * covered stays, nothing goes down, and the curve comes back to the clock. */
#include "common/clock/clock_curve.h"
#include "tests/support/unit.h"

#include <stddef.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)

enum { TOLERANCE_NS = 100, MOST_PPM = 1000, POINTS = 3 * OTELI_KNOTS, SAMPLES = 64 };

static struct oteli_curve curve;

/* One tick is one nanosecond; the curve begins at (1 s, 10 s). */
static int begin(void **state)
{
    (void)state;
    memset(&curve, 0, sizeof curve);
    oteli_curve_leap(&curve, SECOND, 10 * SECOND, OTELI_RATE_ONE);
    oteli_curve_cover(&curve, SECOND);
    return 0;
}

static uint64_t meet(uint64_t ticks, uint64_t ns)
{
    const struct oteli_curve_point point = {ticks, ns, OTELI_RATE_ONE, TOLERANCE_NS, MOST_PPM};
    const uint64_t ahead_ns = oteli_curve_follow(&curve, &point);
    oteli_curve_cover(&curve, ticks);
    return ahead_ns;
}

AROUND_EACH(begin, NULL);

TEST(it_is_a_line_at_first_and_does_not_bend_within_the_tolerance)
{
    const uint64_t knots = curve.total;
    assert_true(oteli_curve_at(&curve, SECOND) == 10 * SECOND);
    assert_true(oteli_curve_at(&curve, SECOND / 2) == 10 * SECOND - SECOND / 2);
    assert_true(meet(2 * SECOND, 11 * SECOND + TOLERANCE_NS) == 0);
    assert_true(meet(3 * SECOND, 12 * SECOND - TOLERANCE_NS) == 0);
    assert_true(curve.total == knots);
    assert_true(oteli_curve_at(&curve, 3 * SECOND) == 12 * SECOND);
}

TEST(it_goes_straight_through_a_point_that_is_far_away)
{
    assert_true(meet(11 * SECOND, 20 * SECOND + 5000) == 0);
    assert_true(oteli_curve_at(&curve, 11 * SECOND) - (20 * SECOND + 5000) + 1 <= 2);
    assert_true(oteli_curve_at(&curve, 6 * SECOND) - (15 * SECOND + 2500) + 1 <= 2);
    assert_true(meet(12 * SECOND, 21 * SECOND + 5000) == 0); /* and on at the clock's rate */
    assert_true(oteli_curve_at(&curve, 12 * SECOND) == 21 * SECOND + 5000);
}

TEST(it_comes_back_slowly_to_a_point_that_is_near)
{
    static const int64_t off_ns[] = {900, -900, 900000, -900000};
    for (size_t i = 0; i < sizeof off_ns / sizeof off_ns[0]; i++) {
        begin(state);
        const uint64_t off = (uint64_t)off_ns[i];
        assert_true(meet(SECOND + 1000, 10 * SECOND + 1000 + off) == 0);
        assert_true(oteli_curve_at(&curve, SECOND + 1000) - (10 * SECOND + 1000) + 1 <= 3);
        oteli_curve_cover(&curve, 3 * SECOND);
        const uint64_t end_ns = oteli_curve_at(&curve, 3 * SECOND);
        assert_true(end_ns - (12 * SECOND + off) + 2 <= 4);
    }
}

TEST(it_leaps_forward_and_never_back)
{
    assert_true(meet(SECOND + 1000, 3600 * SECOND) == 0);
    assert_true(oteli_curve_at(&curve, SECOND) == 10 * SECOND);
    assert_true(oteli_curve_at(&curve, SECOND + 1000) == 3600 * SECOND);
    assert_true(oteli_curve_at(&curve, SECOND + 600) == 3600 * SECOND - 400);

    assert_true(meet(SECOND + 2000, 3500 * SECOND) == 100 * SECOND + 1000);
    assert_true(oteli_curve_at(&curve, SECOND + 2000) == 3600 * SECOND + 1000);
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
    for (int i = 0; i < POINTS; i++) {
        const uint64_t step = 1 + random_below(&seed, i % 7 == 0 ? 5 * SECOND : 5000000);
        ticks += step;
        clock_ns += step + random_below(&seed, 4000) - 2000;
        if (random_below(&seed, 100) == 0)
            clock_ns += random_below(&seed, SECOND);
        clock_ns += meet(ticks, clock_ns);
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
    assert_true(curve.total > 2 * OTELI_KNOTS);
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
