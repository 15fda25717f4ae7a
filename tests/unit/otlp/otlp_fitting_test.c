/* SPDX-License-Identifier: Apache-2.0 */
/* What is learnt about how large a request may be. */
#include "exporters/otlp/fitting.h"
#include "tests/support/unit.h"

#include <stdint.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

TEST(at_first_everything_goes)
{
    const struct oteli_fitting fitting = {0};
    assert_int_equal(oteli_fitting_spans(&fitting, 512, 64 * MIB), 512);
}

TEST(what_was_taken_is_the_limit_and_a_little_more)
{
    struct oteli_fitting fitting = {0};

    oteli_fitting_refused(&fitting, 512, 1024 * KIB);
    assert_int_equal(oteli_fitting_spans(&fitting, 512, 1024 * KIB), 511);
    oteli_fitting_refused(&fitting, 256, 512 * KIB);
    oteli_fitting_taken(&fitting, 256 * KIB, true, MIB);

    assert_int_equal(oteli_fitting_spans(&fitting, 144, 288 * KIB), 144);
    assert_int_equal(oteli_fitting_spans(&fitting, 576, 576 * KIB), 288);
    assert_int_equal(oteli_fitting_spans(&fitting, 512, 1024 * KIB), 144);
}

/* The smallest part of a request that was too large is not what the others are measured by. */
TEST(a_small_part_is_no_measure)
{
    struct oteli_fitting fitting = {0};

    oteli_fitting_refused(&fitting, 8, 512 * KIB);
    oteli_fitting_taken(&fitting, 1, true, MIB);

    assert_int_equal(oteli_fitting_spans(&fitting, 4, 256 * KIB), 4);
}

TEST(others_that_are_taken_meanwhile_say_nothing)
{
    struct oteli_fitting fitting = {0};

    oteli_fitting_refused(&fitting, 100, 512 * KIB);
    oteli_fitting_taken(&fitting, 64 * KIB, false, MIB);

    assert_int_equal(oteli_fitting_spans(&fitting, 90, 500 * KIB), 90);
}

TEST(a_single_span_is_always_tried_and_says_nothing)
{
    struct oteli_fitting fitting = {0};

    oteli_fitting_refused(&fitting, 1, 100);
    assert_int_equal(oteli_fitting_spans(&fitting, 10, MIB), 10);
    oteli_fitting_refused(&fitting, 2, 100);

    assert_int_equal(oteli_fitting_spans(&fitting, 1, MIB), 1);
    assert_int_equal(oteli_fitting_spans(&fitting, 2, MIB), 1);
    assert_int_equal(oteli_fitting_spans(&fitting, 1000000, SIZE_MAX), 1);
}

/* Not by small ones, and not beyond what we limit ourselves to. */
TEST(it_grows_back_slowly)
{
    struct oteli_fitting fitting = {0};
    oteli_fitting_refused(&fitting, 512, 1024 * KIB);
    oteli_fitting_taken(&fitting, 64 * KIB, true, 1024 * KIB);
    assert_int_equal(fitting.limit_bytes, 512 * KIB);

    for (int i = 0; i < 10000; i++)
        oteli_fitting_taken(&fitting, 10 * KIB, false, 1024 * KIB);
    assert_int_equal(fitting.limit_bytes, 512 * KIB);
    for (int i = 0; i < 63; i++)
        oteli_fitting_taken(&fitting, 500 * KIB, false, 1024 * KIB);
    assert_int_equal(fitting.limit_bytes, 512 * KIB);
    oteli_fitting_taken(&fitting, 500 * KIB, false, 1024 * KIB);
    assert_int_equal(fitting.limit_bytes, 576 * KIB + 1);
    int successes = 0;
    for (; fitting.limit_bytes != 0 && successes < 10000; successes++)
        oteli_fitting_taken(&fitting, fitting.limit_bytes, false, 1024 * KIB);

    assert_int_equal(successes, 5 * 64);
}

/* Receivers with a limit of their own: after the first few, hardly a request is refused. */
TEST(R27_a_receivers_limit_is_found)
{
    for (size_t limit = 1000; limit < MIB; limit += limit / 3) {
        struct oteli_fitting fitting = {0};
        size_t refused = 0;
        for (int request = 0; request < 2000; request++) {
            size_t spans = oteli_fitting_spans(&fitting, 1024, 1024 * 500);
            bool is_part = false;
            while (spans * 500 > limit && spans > 1) {
                oteli_fitting_refused(&fitting, spans, spans * 500);
                spans = (spans + 1) / 2;
                is_part = true;
                refused++;
            }
            oteli_fitting_taken(&fitting, spans * 500, is_part, MIB);
        }
        assert_in_range(refused, 0, 10 + 2 * 2000 / 64);
    }
}
