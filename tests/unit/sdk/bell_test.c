/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/bell_test.c - specification of sdk/bell.h. The worker's sleep is taken apart:
 * what it says before (`wanted`) is said by hand. */
#include "sdk/bell.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stddef.h>

static struct oteli_bell bell;

static int begin(void **state)
{
    (void)state;
    oteli_bell_init(&bell);
    return 0;
}

static void say_wanted(int64_t wanted)
{
    assert_true(oteli_bell_arm(&bell, wanted));
}

AROUND_EACH(begin, NULL);

TEST(nobody_rings_for_a_worker_that_is_awake)
{
    oteli_bell_announce(&bell, 1000000);
    oteli_bell_knock(&bell);

    assert_int_equal(bell.rings, 0);
    assert_int_equal(oteli_bell_waiting(&bell), 1000000);
}

TEST(the_span_that_makes_a_batch_rings)
{
    say_wanted(100);

    oteli_bell_announce(&bell, 60);
    assert_int_equal(bell.rings, 0);
    oteli_bell_announce(&bell, 39);
    assert_int_equal(bell.rings, 0);
    oteli_bell_announce(&bell, 1);
    assert_int_equal(bell.rings, 1);
}

/* spec: P13 */
TEST(the_bell_is_rung_once_a_sleep)
{
    say_wanted(10);

    for (unsigned i = 0; i < 100; i++) {
        oteli_bell_announce(&bell, 10);
        oteli_bell_knock(&bell);
    }

    assert_int_equal(bell.rings, 1);
}

TEST(a_bell_that_was_rung_by_others_is_not_rung_again)
{
    say_wanted(10);

    oteli_bell_ring(&bell);
    oteli_bell_announce(&bell, 10);
    oteli_bell_knock(&bell);

    assert_int_equal(bell.rings, 1);
}

/* A producer was stopped before it rang, and the worker has woken and sleeps anew. */
TEST(nobody_rings_for_an_earlier_sleep)
{
    say_wanted(10);
    const uint64_t seen = bell.wanted;
    oteli_bell_disarm(&bell);
    say_wanted(10);

    assert_true(bell.wanted != seen);
    assert_true((uint32_t)bell.wanted == (uint32_t)seen);
}

TEST(the_number_of_the_sleep_may_wrap)
{
    bell.wanted = UINT64_MAX;
    say_wanted(10);
    assert_true(bell.wanted == 10);

    oteli_bell_announce(&bell, 10);

    assert_int_equal(bell.rings, 1);
}

TEST(spans_that_are_taken_do_not_wait)
{
    oteli_bell_announce(&bell, 90);
    oteli_bell_taken(&bell, 90);
    say_wanted(100);

    oteli_bell_announce(&bell, 90);

    assert_int_equal(bell.rings, 0);
}

TEST(spans_may_be_taken_before_they_are_announced)
{
    oteli_bell_taken(&bell, 50);
    assert_int_equal(oteli_bell_waiting(&bell), -50);
    say_wanted(10);

    oteli_bell_announce(&bell, 50);
    assert_int_equal(bell.rings, 0);
    oteli_bell_announce(&bell, 10);

    assert_int_equal(bell.rings, 1);
}

/* Each of these would hang if it were not so: there is no deadline. */
TEST(a_worker_does_not_sleep_when_enough_is_there)
{
    oteli_bell_announce(&bell, 10);

    oteli_bell_sleep(&bell, oteli_bell_listen(&bell), 10, UINT64_MAX);

    assert_false(oteli_bell_is_armed(&bell));
}

TEST(a_worker_does_not_sleep_when_it_was_rung_since_it_listened)
{
    const uint32_t heard = oteli_bell_listen(&bell);
    oteli_bell_ring(&bell);

    oteli_bell_sleep(&bell, heard, 10, UINT64_MAX);

    assert_int_equal(bell.rings, 1);
}

TEST(a_worker_does_not_sleep_when_it_was_knocked_at)
{
    oteli_bell_knock(&bell);

    oteli_bell_sleep(&bell, oteli_bell_listen(&bell), 10, UINT64_MAX);

    assert_int_equal(bell.rings, 0);
    assert_true(oteli_bell_was_knocked(&bell));
    assert_false(oteli_bell_was_knocked(&bell));
}

TEST(a_worker_sleeps_no_longer_than_its_deadline)
{
    oteli_bell_sleep(&bell, oteli_bell_listen(&bell), 10, 1);

    assert_false(oteli_bell_is_armed(&bell));
}

TEST(ringing_and_sleeping_leave_errno_alone)
{
    errno = 4711;

    oteli_bell_ring(&bell);
    oteli_bell_sleep(&bell, oteli_bell_listen(&bell) - 1, 10, UINT64_MAX);
    oteli_bell_sleep(&bell, oteli_bell_listen(&bell), 10, 1);

    assert_int_equal(errno, 4711);
}

TEST(the_word_may_wrap)
{
    bell.word = UINT32_MAX;
    const uint32_t heard = oteli_bell_listen(&bell);
    oteli_bell_ring(&bell);
    assert_int_equal(bell.word, 0);

    oteli_bell_sleep(&bell, heard, 10, UINT64_MAX);
}
