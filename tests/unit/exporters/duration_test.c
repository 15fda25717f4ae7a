/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/duration_test.c - three digits and a unit, also where rounding changes it. */
#include "exporters/console/duration.h"
#include "tests/support/unit.h"

static void assert_duration(uint64_t ns, const char *expected)
{
    char text[OTELI_DURATION_TEXT];
    oteli_format_duration(text, sizeof text, ns);
    assert_string_equal(text, expected);
}

TEST(each_unit)
{
    assert_duration(0, "0 ns");
    assert_duration(999, "999 ns");
    assert_duration(1000, "1.00 µs");
    assert_duration(12345, "12.3 µs");
    assert_duration(182400000, "182 ms");
    assert_duration(1500000000, "1.50 s");
    assert_duration(59900000000, "59.9 s");
    assert_duration(125000000000, "2m05s");
    assert_duration(12000000000000, "3h20m");
}

TEST(rounding_carries_into_the_next_digit_and_unit)
{
    assert_duration(9994, "9.99 µs");
    assert_duration(9995, "10.0 µs");
    assert_duration(99949, "99.9 µs");
    assert_duration(99950, "100 µs");
    assert_duration(999499, "999 µs");
    assert_duration(999500, "1.00 ms");
    assert_duration(999500000, "1.00 s");
    assert_duration(59949999999, "59.9 s");
    assert_duration(59950000000, "1m00s");
    assert_duration(3599499999999, "59m59s");
    assert_duration(3599500000000, "1h00m");
}

TEST(the_longest_of_all)
{
    assert_duration(UINT64_MAX, "5124095h35m");
}
