/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/ring_test.c - specification of what producers and worker meet in and what batches
 * are made of: sdk/pipeline/ring.h, sdk/pipeline/waker.h and sdk/pipeline/arena.h. */
#include "sdk/pipeline/ring.h"

#include "sdk/pipeline/arena.h"
#include "sdk/pipeline/waker.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <string.h>

static struct oteli_ring ring;
static struct oteli_waker waker;
static struct oteli_arena arena;

static int begin(void **state)
{
    (void)state;
    memset(&ring, 0, sizeof ring);
    memset(&arena, 0, sizeof arena);
    oteli_waker_init(&waker);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_ring_fini(&ring);
    oteli_arena_fini(&arena);
    oteli_leaks_check();
    return 0;
}

AROUND_EACH(begin, end);

/* ---- ring
 * --------------------------------------------------------------------------------------- */

static uint64_t places[100]; /* the ring never looks at lines */

static struct oteli_line *line(unsigned index)
{
    return (struct oteli_line *)(void *)&places[index];
}

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

static void fill_and_empty(unsigned count)
{
    for (unsigned k = 0; k < count; k++)
        oteli_ring_put(&ring, line(k));
    for (unsigned k = 0; k < count; k++)
        assert_ptr_equal(oteli_ring_take(&ring), line(k));
    assert_null(oteli_ring_take(&ring));
}

TEST(lines_come_out_in_the_order_of_their_tickets_wherever_these_begin)
{
    static const uint64_t firsts[] = {0, 1, (UINT64_C(1) << 32) - 3, UINT64_MAX - 2, UINT64_MAX};
    for (unsigned i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        assert_true(oteli_ring_init(&ring, 65, firsts[i]));
        assert_true(ring.mask + 1 >= 65);
        assert_int_equal(ring.mask & (ring.mask + 1), 0);
        assert_null(oteli_ring_take(&ring));
        for (uint64_t k = 0; k <= ring.mask; k++)
            assert_null(oteli_ring_peek(&ring, firsts[i] + k));
        for (unsigned round = 0; round < 5; round++)
            fill_and_empty(65);
        oteli_ring_fini(&ring);
    }
    assert_true(oteli_ring_init(&ring, 10, 0));
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
    fill_and_empty(64);

    const uint64_t late = claim();
    assert_null(oteli_ring_peek(&ring, late));
    publish(late, line(1));
    assert_ptr_equal(oteli_ring_take(&ring), line(1));
}

/* ---- waker: what the worker says before it sleeps (`wanted`) is said by hand
 * --------------------- */

static void announce(uint64_t spans, uint64_t rings)
{
    oteli_waker_announce(&waker, spans);
    assert_int_equal(waker.wakes, rings);
}

/* spec: P13 */
TEST(the_span_that_makes_a_batch_rings_and_once_a_sleep)
{
    assert_true(oteli_waker_arm(&waker, 100));
    announce(60, 0);
    announce(39, 0);
    for (unsigned i = 0; i < 100; i++) {
        announce(i == 0 ? 1 : 100, 1);
        oteli_waker_request_drain(&waker);
    }
}

/* A producer was stopped before it rang, and the worker has woken and sleeps anew. */
TEST(nobody_rings_for_an_earlier_sleep)
{
    assert_true(oteli_waker_arm(&waker, 10));
    const uint64_t before = waker.wanted;
    oteli_waker_disarm(&waker);
    assert_true(oteli_waker_arm(&waker, 10));

    assert_true(waker.wanted != before);
    assert_true((uint32_t)waker.wanted == (uint32_t)before);
}

TEST(the_number_of_the_sleep_may_wrap)
{
    waker.wanted = UINT64_MAX;
    assert_true(oteli_waker_arm(&waker, 10));
    assert_true(waker.wanted == 10);
    announce(10, 1);
}

TEST(spans_that_are_taken_do_not_wait_also_when_they_are_announced_later)
{
    announce(90, 0);
    oteli_waker_taken(&waker, 140);
    assert_int_equal(oteli_waker_waiting(&waker), -50);
    assert_true(oteli_waker_arm(&waker, 10));
    announce(50, 0);
    announce(9, 0);
    announce(1, 1);
}

/* Each of these would hang if it were not so: there is no deadline. */
TEST(a_worker_does_not_sleep_when_enough_is_there)
{
    announce(10, 0);
    oteli_waker_sleep(&waker, oteli_waker_listen(&waker), 10, UINT64_MAX);
    assert_false(oteli_waker_is_armed(&waker));
}

TEST(a_worker_does_not_sleep_when_it_was_rung_since_it_listened_also_when_the_word_wraps)
{
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t word = i == 0 ? 0 : UINT32_MAX;
        waker.word = word;
        const uint32_t heard = oteli_waker_listen(&waker);
        oteli_waker_wake(&waker);
        assert_true(waker.word == word + 1);
        oteli_waker_sleep(&waker, heard, 10, UINT64_MAX);
    }
    assert_int_equal(waker.wakes, 2);
}

TEST(a_worker_does_not_sleep_when_a_drain_was_requested)
{
    oteli_waker_request_drain(&waker);
    oteli_waker_sleep(&waker, oteli_waker_listen(&waker), 10, UINT64_MAX);
    assert_int_equal(waker.wakes, 0);
    assert_true(oteli_waker_take_drain_request(&waker));
    assert_false(oteli_waker_take_drain_request(&waker));
}

TEST(a_worker_sleeps_no_longer_than_its_deadline_and_errno_stays)
{
    errno = 4711;
    oteli_waker_wake(&waker);
    oteli_waker_sleep(&waker, oteli_waker_listen(&waker) - 1, 10, UINT64_MAX);
    oteli_waker_sleep(&waker, oteli_waker_listen(&waker), 10, 1);
    assert_false(oteli_waker_is_armed(&waker));
    assert_int_equal(errno, 4711);
}

/* ---- arena
 * -------------------------------------------------------------------------------------- */

static uint8_t *take(size_t size)
{
    uint8_t *at = oteli_arena_room(&arena, size);
    assert_non_null(at);
    assert_int_equal((uintptr_t)at % 8, 0);
    memset(at, 0x5a, size);
    oteli_arena_keep(&arena, size);
    return at;
}

TEST(a_reset_gives_back_what_is_too_much)
{
    take(2 * OTELI_ARENA_KEPT);
    take(8);
    for (unsigned i = 0; i < 40; i++)
        take(OTELI_ARENA_CHUNK);

    oteli_arena_reset(&arena);

    size_t kept = 0;
    for (const struct oteli_arena_chunk *at = arena.first; at != NULL; at = at->next)
        kept += at->capacity;
    assert_int_equal(kept, OTELI_ARENA_KEPT);
    assert_int_equal(oteli_leaks_live(), OTELI_ARENA_KEPT / OTELI_ARENA_CHUNK);
}
