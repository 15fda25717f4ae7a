/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/lanes_test.c - specification of exporters/file/lanes.h: who shares a track. */
#include "exporters/file/lanes.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <stdio.h>

#define ROOT OTELI_LANE_NONE

static struct oteli_lanes lanes;

static int begin(void **state)
{
    (void)state;
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_lanes_fini(&lanes);
    oteli_leaks_check();
    return 0;
}

/* The lanes of a tree as digits. */
static const char *lanes_of(struct oteli_lane_span *spans, uint32_t count)
{
    static char digits[64];
    assert_true(oteli_lanes_assign(&lanes, spans, count));
    for (uint32_t i = 0; i < count; i++)
        snprintf(digits + i, sizeof digits - i, "%u", spans[i].lane);
    return digits;
}

#define LANES(...)                                    \
    lanes_of((struct oteli_lane_span[]){__VA_ARGS__}, \
             sizeof((struct oteli_lane_span[]){__VA_ARGS__}) / sizeof(struct oteli_lane_span))

AROUND_EACH(begin, end);

TEST(children_lie_on_their_parents)
{
    assert_string_equal(
        LANES({0, 10, ROOT, 0, 0}, {1, 9, 0, 0, 0}, {2, 4, 1, 0, 0}, {4, 8, 1, 0, 0}), "0000");
}

TEST(brothers_that_overlap_do_not_share)
{
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}, {1, 6, 0, 0, 0}, {2, 4, 0, 0, 0},
                              {3, 8, 0, 0, 0}, {6, 9, 0, 0, 0}),
                        "00120");
}

TEST(grandchildren_follow_their_parents_elsewhere)
{
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}, {1, 9, 0, 0, 0}, {2, 8, 0, 0, 0},
                              {3, 7, 2, 0, 0}, {3, 5, 1, 0, 0}),
                        "00110");
}

TEST(what_outlives_its_parent_has_a_lane_of_its_own)
{
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}, {5, 15, 0, 0, 0}, {6, 12, 1, 0, 0}), "011");
}

TEST(what_starts_before_its_parent_does_too)
{
    assert_string_equal(LANES({0, 4, 1, 0, 0}, {2, 10, ROOT, 0, 0}, {5, 6, 1, 0, 0}), "011");
}

TEST(what_begins_when_its_parent_has_ended_stands_behind_it)
{
    assert_string_equal(LANES({0, 4, ROOT, 0, 0}, {4, 4, 0, 0, 0}, {5, 9, 0, 0, 0}), "000");
}

TEST(lanes_are_used_again)
{
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}), "0");
    assert_string_equal(LANES({10, 20, ROOT, 0, 0}), "0");
    assert_string_equal(LANES({5, 30, ROOT, 0, 0}), "1");  /* both were going on */
    assert_string_equal(LANES({30, 40, ROOT, 0, 0}), "1"); /* the freshest */
    assert_string_equal(LANES({20, 41, ROOT, 0, 0}), "0");
    assert_string_equal(LANES({0, 50, ROOT, 0, 0}), "2");
}

TEST(a_span_without_duration_is_not_in_the_way)
{
    assert_string_equal(
        LANES({0, 10, ROOT, 0, 0}, {3, 3, 0, 0, 0}, {3, 3, 0, 0, 0}, {4, 5, 0, 0, 0}), "0000");
}

TEST(without_memory_it_says_so)
{
    struct oteli_lane_span span = {0, 1, ROOT, 0, 0};
    oteli_leaks_fail_at(1);

    assert_false(oteli_lanes_assign(&lanes, &span, 1));
    assert_true(oteli_lanes_assign(&lanes, &span, 1));
}
