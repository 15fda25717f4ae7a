/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/lanes_test.c - specification of exporters/file/lanes.h: who shares a track. */
#include "exporters/file/lanes.h"

#include "tests/support/leaks.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

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

static void test_children_lie_on_their_parents(void **state)
{
    (void)state;
    assert_string_equal(
        LANES({0, 10, ROOT, 0, 0}, {1, 9, 0, 0, 0}, {2, 4, 1, 0, 0}, {4, 8, 1, 0, 0}), "0000");
}

static void test_brothers_that_overlap_do_not_share(void **state)
{
    (void)state;
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}, {1, 6, 0, 0, 0}, {2, 4, 0, 0, 0},
                              {3, 8, 0, 0, 0}, {6, 9, 0, 0, 0}),
                        "00120");
}

static void test_grandchildren_follow_their_parents_elsewhere(void **state)
{
    (void)state;
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}, {1, 9, 0, 0, 0}, {2, 8, 0, 0, 0},
                              {3, 7, 2, 0, 0}, {3, 5, 1, 0, 0}),
                        "00110");
}

static void test_what_outlives_its_parent_has_a_lane_of_its_own(void **state)
{
    (void)state;
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}, {5, 15, 0, 0, 0}, {6, 12, 1, 0, 0}), "011");
}

static void test_what_starts_before_its_parent_does_too(void **state)
{
    (void)state;
    assert_string_equal(LANES({0, 4, 1, 0, 0}, {2, 10, ROOT, 0, 0}, {5, 6, 1, 0, 0}), "011");
}

static void test_what_begins_when_its_parent_has_ended_stands_behind_it(void **state)
{
    (void)state;
    assert_string_equal(LANES({0, 4, ROOT, 0, 0}, {4, 4, 0, 0, 0}, {5, 9, 0, 0, 0}), "000");
}

static void test_lanes_are_used_again(void **state)
{
    (void)state;
    assert_string_equal(LANES({0, 10, ROOT, 0, 0}), "0");
    assert_string_equal(LANES({10, 20, ROOT, 0, 0}), "0");
    assert_string_equal(LANES({5, 30, ROOT, 0, 0}), "1");  /* both were going on */
    assert_string_equal(LANES({30, 40, ROOT, 0, 0}), "1"); /* the freshest */
    assert_string_equal(LANES({20, 41, ROOT, 0, 0}), "0");
    assert_string_equal(LANES({0, 50, ROOT, 0, 0}), "2");
}

static void test_a_span_without_duration_is_not_in_the_way(void **state)
{
    (void)state;
    assert_string_equal(
        LANES({0, 10, ROOT, 0, 0}, {3, 3, 0, 0, 0}, {3, 3, 0, 0, 0}, {4, 5, 0, 0, 0}), "0000");
}

static void test_without_memory_it_says_so(void **state)
{
    (void)state;
    struct oteli_lane_span span = {0, 1, ROOT, 0, 0};
    oteli_leaks_fail_at(1);

    assert_false(oteli_lanes_assign(&lanes, &span, 1));
    assert_true(oteli_lanes_assign(&lanes, &span, 1));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_children_lie_on_their_parents),
        CASE(test_brothers_that_overlap_do_not_share),
        CASE(test_grandchildren_follow_their_parents_elsewhere),
        CASE(test_what_outlives_its_parent_has_a_lane_of_its_own),
        CASE(test_what_starts_before_its_parent_does_too),
        CASE(test_what_begins_when_its_parent_has_ended_stands_behind_it),
        CASE(test_lanes_are_used_again),
        CASE(test_a_span_without_duration_is_not_in_the_way),
        CASE(test_without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
