/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/ring_test.c - specification of sdk/ring.h. */
#include "sdk/ring.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"

static struct oteli_ring ring;
static uint64_t places[100]; /* the ring never looks at lines */

static struct oteli_line *line(unsigned index)
{
    return (struct oteli_line *)(void *)&places[index];
}

static int begin(void **state)
{
    (void)state;
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_ring_fini(&ring);
    oteli_leaks_check();
    return 0;
}

/* Where tickets are interesting. */
static const uint64_t firsts[] = {0, 1, (UINT64_C(1) << 32) - 3, UINT64_MAX - 2, UINT64_MAX};
enum { FIRSTS = sizeof firsts / sizeof firsts[0] };

/* A producer that has its ticket and was preempted. */
static uint64_t claim(void)
{
    return oteli_add_full_64(&ring.head, 1);
}

static void publish(uint64_t ticket, struct oteli_line *late)
{
    ring.slots[ticket & ring.mask].line = late;
    oteli_store_release_64(&ring.slots[ticket & ring.mask].sequence, ticket + 1);
}

AROUND_EACH(begin, end);

TEST(a_new_ring_is_empty_wherever_it_begins)
{
    for (unsigned i = 0; i < FIRSTS; i++) {
        assert_true(oteli_ring_init(&ring, 10, firsts[i]));

        assert_null(oteli_ring_take(&ring));
        for (uint64_t k = 0; k <= ring.mask; k++)
            assert_null(oteli_ring_peek(&ring, firsts[i] + k));
        if (i + 1 < FIRSTS)
            oteli_ring_fini(&ring);
    }
}

TEST(lines_come_out_in_the_order_of_their_tickets)
{
    for (unsigned i = 0; i < FIRSTS; i++) {
        assert_true(oteli_ring_init(&ring, 10, firsts[i]));
        for (unsigned round = 0; round < 5; round++) {
            for (unsigned k = 0; k < 50; k++)
                oteli_ring_put(&ring, line(k));

            for (unsigned k = 0; k < 50; k++)
                assert_ptr_equal(oteli_ring_take(&ring), line(k));
            assert_null(oteli_ring_take(&ring));
        }
        if (i + 1 < FIRSTS)
            oteli_ring_fini(&ring);
    }
}

TEST(there_is_room_for_every_line)
{
    assert_true(oteli_ring_init(&ring, 65, 0));
    assert_true(ring.mask + 1 >= 65);
    assert_int_equal(ring.mask & (ring.mask + 1), 0);

    for (unsigned k = 0; k < 65; k++)
        oteli_ring_put(&ring, line(k));

    for (unsigned k = 0; k < 65; k++)
        assert_ptr_equal(oteli_ring_take(&ring), line(k));
}

TEST(a_ticket_without_a_line_holds_up_taking_but_not_looking)
{
    assert_true(oteli_ring_init(&ring, 10, UINT64_MAX));
    const uint64_t late = claim();
    oteli_ring_put(&ring, line(1));

    assert_null(oteli_ring_take(&ring));
    assert_null(oteli_ring_peek(&ring, late));
    assert_ptr_equal(oteli_ring_peek(&ring, late + 1), line(1));
    publish(late, line(0));
    assert_ptr_equal(oteli_ring_take(&ring), line(0));
    assert_ptr_equal(oteli_ring_take(&ring), line(1));
}

TEST(a_slot_is_not_mistaken_for_its_last_time_round)
{
    assert_true(oteli_ring_init(&ring, 64, 0));
    for (unsigned k = 0; k < 64; k++) {
        oteli_ring_put(&ring, line(0));
        assert_non_null(oteli_ring_take(&ring));
    }

    const uint64_t late = claim();
    assert_null(oteli_ring_peek(&ring, late));
    publish(late, line(1));
    assert_ptr_equal(oteli_ring_take(&ring), line(1));
}

TEST(without_memory_there_is_no_ring)
{
    oteli_leaks_fail_at(1);

    assert_false(oteli_ring_init(&ring, 10, 0));
}
