/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/frame_walk_test.c - specification of profiling/frame_walk.h and stack_bounds.h: what a
 * signal handler may read of a stack, and what it finds there. */
#include "profiling/frame_walk.h"
#include "profiling/stack_bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { PAGE = 4096, WORDS = PAGE / 8, CODE = 0x400000, MOST = 10 };

static uint64_t *stack; /* two pages, of which the second cannot be read */
static uint64_t found[MOST];

static int begin(void **state)
{
    (void)state;
    void *pages =
        mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 1;
    stack = pages;
    memset(found, 0, sizeof found);
    return mprotect(stack + WORDS, PAGE, PROT_NONE);
}

static int end(void **state)
{
    (void)state;
    return munmap(stack, (size_t)2 * PAGE);
}

static uint64_t address_of(size_t word)
{
    return (uint64_t)(uintptr_t)(stack + word);
}

/* A record at a word: of whoever called from CODE + word. */
static void put_record(size_t at, size_t next)
{
    stack[at] = address_of(next);
    stack[at + 1] = CODE + at;
}

static void take(void *state, size_t index, uint64_t frame)
{
    (void)state;
    assert_true(index < MOST);
    found[index] = frame;
}

static size_t walk(size_t sp, uint64_t fp, size_t high)
{
    const struct oteli_registers registers = {.pc = CODE, .sp = address_of(sp), .fp = fp};
    return oteli_frame_walk(&registers, address_of(high), MOST, take, NULL);
}

static void test_follows_the_records_upward(void **state)
{
    (void)state;
    put_record(10, 20);
    put_record(20, 30);
    put_record(30, 0);
    stack[30] = 0;
    assert_int_equal(walk(4, address_of(10), WORDS), 3);
    assert_true(found[0] == CODE + 10 && found[1] == CODE + 20 && found[2] == CODE + 30);
}

static void test_a_frame_pointer_that_is_none_gives_nothing(void **state)
{
    (void)state;
    put_record(10, 20);
    assert_int_equal(walk(12, address_of(10), WORDS), 0);       /* below the stack pointer */
    assert_int_equal(walk(4, address_of(10) + 1, WORDS), 0);    /* not aligned */
    assert_int_equal(walk(4, address_of(10), 11), 0);           /* not all of it on the stack */
    assert_int_equal(walk(4, address_of(WORDS), 2 * WORDS), 0); /* … nor in memory */
    assert_int_equal(walk(4, 0, WORDS), 0);
    assert_int_equal(walk(4, UINT64_MAX - 7, WORDS), 0);
}

static void test_ends_where_records_do_not_go_upward(void **state)
{
    (void)state;
    put_record(10, 20);
    put_record(20, 10);
    assert_int_equal(walk(4, address_of(10), WORDS), 2);
    put_record(20, 20);
    assert_int_equal(walk(4, address_of(10), WORDS), 2);
}

static void test_ends_at_what_is_no_code(void **state)
{
    (void)state;
    put_record(10, 20);
    put_record(20, 30);
    stack[21] = 7;
    assert_int_equal(walk(4, address_of(10), WORDS), 1);
}

static void test_ends_at_a_page_that_cannot_be_read_whatever_the_bounds_say(void **state)
{
    (void)state;
    put_record(10, WORDS - 2);
    put_record(WORDS - 2, WORDS);
    assert_int_equal(walk(4, address_of(10), (size_t)2 * WORDS), 2);
    stack[10] = address_of(WORDS - 1); /* half of this record is on the other page */
    stack[WORDS - 1] = address_of(WORDS);
    assert_int_equal(walk(4, address_of(10), (size_t)2 * WORDS), 1);
}

static void test_takes_no_more_than_there_is_room_for(void **state)
{
    (void)state;
    for (size_t i = 0; i < 40; i++)
        put_record(10 + 2 * i, 12 + 2 * i);
    assert_int_equal(walk(4, address_of(10), WORDS), MOST);
}

static void test_a_word_is_read_only_where_there_is_one(void **state)
{
    uint64_t word = 1;
    (void)state;
    stack[3] = 99;
    assert_true(oteli_word_at(address_of(3), &word));
    assert_true(word == 99);
    assert_false(oteli_word_at(address_of(3) + 4, &word));
    assert_false(oteli_word_at(address_of(WORDS), &word));
}

static void test_reads_lines_of_maps(void **state)
{
    struct oteli_stack_region region;
    bool is_main;
    (void)state;
    assert_true(oteli_stack_region_of_line("7f1c00000000-7f1c00021000 rw-p 00000000 00:00 0 \n",
                                           &region, &is_main));
    assert_true(region.low == 0x7f1c00000000 && region.high == 0x7f1c00021000);
    assert_false(is_main);
    assert_true(oteli_stack_region_of_line("7ffe1000-7ffe2000 rw-p 00000000 00:00 0   [stack]\n",
                                           &region, &is_main));
    assert_true(is_main);
    assert_false(oteli_stack_region_of_line("400000-401000 r-xp 00000000 08:01 5  /bin/x\n",
                                            &region, &is_main));
    assert_false(oteli_stack_region_of_line("400000-401000 rw-s 00000000 00:05 5  /dev/x\n",
                                            &region, &is_main));
    assert_false(oteli_stack_region_of_line("", &region, &is_main));
    assert_false(oteli_stack_region_of_line("nonsense", &region, &is_main));
}

static void test_knows_how_far_stacks_reach(void **state)
{
    struct oteli_stack_bounds bounds = {0};
    const uint64_t here = (uint64_t)(uintptr_t)&bounds;
    (void)state;
    assert_true(oteli_stack_bounds_find(&bounds, here) == 0);
    assert_true(oteli_stack_bounds_is_stale(&bounds));
    assert_true(oteli_stack_bounds_read(&bounds));
    assert_false(oteli_stack_bounds_is_stale(&bounds));

    assert_true(oteli_stack_bounds_find(&bounds, here) > here);
    assert_true(oteli_stack_bounds_find(&bounds, here - (256 << 10)) > here); /* not used yet */
    const uint64_t high = oteli_stack_bounds_find(&bounds, address_of(0));
    assert_true(high >= address_of(WORDS) && high <= address_of(WORDS));
    assert_true(oteli_stack_bounds_find(&bounds, address_of(WORDS)) == 0);
    assert_true(oteli_stack_bounds_find(&bounds, 8) == 0);
    assert_true(oteli_stack_bounds_find(&bounds, UINT64_MAX) == 0);
    assert_true(oteli_stack_bounds_is_stale(&bounds));
    oteli_stack_bounds_fini(&bounds);
}

static void test_an_old_table_stays_until_nobody_can_be_looking_at_it(void **state)
{
    struct oteli_stack_bounds bounds = {0};
    (void)state;
    assert_true(oteli_stack_bounds_read(&bounds));
    const struct oteli_stack_table *first = bounds.table;
    assert_true(oteli_stack_bounds_read(&bounds));
    assert_ptr_equal(bounds.retired, first);
    assert_false(oteli_stack_bounds_read(&bounds));
    oteli_stack_bounds_settle(&bounds);
    assert_true(oteli_stack_bounds_read(&bounds));
    oteli_stack_bounds_fini(&bounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_follows_the_records_upward, begin, end),
        cmocka_unit_test_setup_teardown(test_a_frame_pointer_that_is_none_gives_nothing, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_ends_where_records_do_not_go_upward, begin, end),
        cmocka_unit_test_setup_teardown(test_ends_at_what_is_no_code, begin, end),
        cmocka_unit_test_setup_teardown(
            test_ends_at_a_page_that_cannot_be_read_whatever_the_bounds_say, begin, end),
        cmocka_unit_test_setup_teardown(test_takes_no_more_than_there_is_room_for, begin, end),
        cmocka_unit_test_setup_teardown(test_a_word_is_read_only_where_there_is_one, begin, end),
        cmocka_unit_test_setup_teardown(test_reads_lines_of_maps, begin, end),
        cmocka_unit_test_setup_teardown(test_knows_how_far_stacks_reach, begin, end),
        cmocka_unit_test_setup_teardown(test_an_old_table_stays_until_nobody_can_be_looking_at_it,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
