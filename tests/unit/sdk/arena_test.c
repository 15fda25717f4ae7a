/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/arena_test.c - specification of sdk/arena.h. */
#include "sdk/arena.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <string.h>

static struct oteli_arena arena;

static int begin(void **state)
{
    (void)state;
    memset(&arena, 0, sizeof arena);
    oteli_leaks_begin();
    return 0;
}

static int end(void **state)
{
    (void)state;
    oteli_arena_fini(&arena);
    oteli_leaks_check();
    return 0;
}

static uint8_t *take(size_t size)
{
    uint8_t *at = oteli_arena_room(&arena, size);
    assert_non_null(at);
    assert_int_equal((uintptr_t)at % 8, 0);
    memset(at, 0x5a, size);
    oteli_arena_keep(&arena, size);
    return at;
}

AROUND_EACH(begin, end);

TEST(pieces_stand_one_behind_the_other)
{
    uint8_t *const first = take(13);

    uint8_t *const second = take(8);

    assert_ptr_equal(second, first + 16);
    assert_int_equal(oteli_leaks_count(), 1);
}

TEST(room_that_is_not_kept_is_given_again)
{
    uint8_t *const first = oteli_arena_room(&arena, 1000);
    oteli_arena_keep(&arena, 8);

    assert_ptr_equal(oteli_arena_room(&arena, 1000), first + 8);
    assert_ptr_equal(oteli_arena_room(&arena, 10), first + 8);
}

TEST(what_was_kept_stays_while_the_arena_grows)
{
    uint8_t *pieces[300];
    for (unsigned i = 0; i < 300; i++) {
        pieces[i] = take(1000);
        memset(pieces[i], (int)(i % 251), 1000);
    }
    for (unsigned i = 0; i < 300; i++)
        for (unsigned k = 0; k < 1000; k++)
            assert_int_equal(pieces[i][k], i % 251);
}

TEST(a_piece_may_be_larger_than_a_chunk)
{
    take(8);
    take(3 * OTELI_ARENA_CHUNK);
    take(8);
}

TEST(after_a_reset_the_same_memory_serves_again)
{
    for (unsigned i = 0; i < 500; i++)
        take(2000);
    const size_t allocated = oteli_leaks_count();

    for (unsigned round = 0; round < 10; round++) {
        oteli_arena_reset(&arena);
        for (unsigned i = 0; i < 500; i++)
            take(2000);
    }

    assert_int_equal(oteli_leaks_count(), allocated);
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

TEST(without_memory_there_is_no_room_and_nothing_is_lost)
{
    uint8_t *const first = take(8);
    oteli_leaks_fail_at(1);

    assert_null(oteli_arena_room(&arena, OTELI_ARENA_CHUNK));

    assert_ptr_equal(take(8), first + 8);
    take(OTELI_ARENA_CHUNK);
}
