/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/frame_walk_test.c - specification of profiling/signal/frame_walk.h: what a
 * signal handler may read of a stack, and what it finds there. */
#include "profiling/signal/frame_walk.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, WORDS = PAGE / 8, CODE = 0x400000, MOST = 10 };

static uint64_t *stack; /* two pages, of which the second cannot be read */
static uint64_t found[MOST];
static struct oteli_stack_view view;

/* --- the kernel --- */

long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);

static unsigned copies; /* that the kernel was asked for */
static bool is_unmapped_then;

/* What has been copied may be unmapped a moment later. */
long __wrap_syscall(long number, ...)
{
    long word[6];
    va_list arguments;
    va_start(arguments, number);
    for (unsigned i = 0; i < 6; i++)
        word[i] = va_arg(arguments, long);
    va_end(arguments);
    const long result =
        __real_syscall(number, word[0], word[1], word[2], word[3], word[4], word[5]);
    copies += number == SYS_process_vm_readv;
    if (is_unmapped_then)
        assert_int_equal(munmap(stack, PAGE), 0);
    is_unmapped_then = false;
    return result;
}

static int begin(void **state)
{
    (void)state;
    void *pages =
        mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return 1;
    stack = pages;
    memset(found, 0, sizeof found);
    view.process = getpid();
    copies = 0;
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

static size_t walk(size_t sp, uint64_t fp, size_t high)
{
    const struct oteli_registers registers = {.pc = CODE, .sp = address_of(sp), .fp = fp};
    oteli_stack_view_begin(&view, registers.sp, address_of(high));
    return oteli_frame_walk(&registers, &view, MOST, found);
}

AROUND_EACH(begin, end);

enum { BOTH_PAGES = 2 * WORDS, NO_CODE = 7 };

TEST(follows_records_that_go_upward_on_the_stack)
{
    static const struct {
        const char *what;
        size_t at[4]; /* of records, each of which leads to the next; 0: there is none */
        int64_t fp;   /* in bytes from the first of these */
        size_t sp, high, found;
    } table[] = {
        {"three", {10, 20, 30}, 0, 4, WORDS, 3},
        {"one of two that lead to each other", {10, 20, 10}, 0, 4, WORDS, 2},
        {"one that leads to itself", {10, 10}, 0, 4, WORDS, 1},
        {"below the stack pointer", {10, 20}, 0, 12, WORDS, 0},
        {"not aligned", {10, 20}, 1, 4, WORDS, 0},
        {"not all of it on the stack", {10, 20}, 0, 4, 11, 0},
        {"nor in memory", {10}, (WORDS - 10) * 8, 4, BOTH_PAGES, 0},
        {"far above", {10}, INT64_MAX, 4, WORDS, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        memset(stack, 0, PAGE);
        for (size_t k = 0; k < 4 && table[i].at[k] != 0 && stack[table[i].at[k] + 1] == 0; k++) {
            stack[table[i].at[k]] = table[i].at[k + 1] != 0 ? address_of(table[i].at[k + 1]) : 0;
            stack[table[i].at[k] + 1] = CODE + table[i].at[k];
        }
        const size_t count =
            walk(table[i].sp, address_of(table[i].at[0]) + (uint64_t)table[i].fp, table[i].high);
        if (count != table[i].found)
            fail_msg("%s: %zu", table[i].what, count);
        for (size_t k = 0; k < count; k++)
            assert_int_equal(found[k], CODE + table[i].at[k]);
    }
    assert_int_equal(walk(4, 0, WORDS), 0);
}

TEST(ends_at_what_is_no_code_and_where_there_is_no_room)
{
    for (size_t i = 0; i < 40; i++)
        put_record(10 + 2 * i, 12 + 2 * i);
    assert_int_equal(walk(4, address_of(10), WORDS), MOST);
    stack[13] = NO_CODE;
    assert_int_equal(walk(4, address_of(10), WORDS), 1);
}

TEST(ends_at_a_page_that_cannot_be_read_whatever_the_bounds_say)
{
    put_record(10, WORDS - 2);
    put_record(WORDS - 2, WORDS);
    assert_int_equal(walk(4, address_of(10), (size_t)2 * WORDS), 2);
    stack[10] = address_of(WORDS - 1); /* half of this record is on the other page */
    stack[WORDS - 1] = address_of(WORDS);
    assert_int_equal(walk(4, address_of(10), (size_t)2 * WORDS), 1);
}

TEST(a_word_is_read_only_where_there_is_one)
{
    uint64_t word = 1;
    stack[3] = 99;
    oteli_stack_view_begin(&view, address_of(2), address_of((size_t)2 * WORDS));
    assert_true(oteli_stack_view_word(&view, address_of(3), &word));
    assert_true(word == 99);
    assert_false(oteli_stack_view_word(&view, address_of(1), &word));
    assert_false(oteli_stack_view_word(&view, address_of(3) + 4, &word));
    assert_false(oteli_stack_view_word(&view, address_of(WORDS), &word));
    assert_true(oteli_stack_view_word(&view, address_of(WORDS - 1), &word));
}

TEST(what_is_unmapped_while_it_is_looked_at_does_no_harm)
{
    put_record(10, 20);
    put_record(20, 0);
    is_unmapped_then = true;
    assert_int_equal(walk(4, address_of(10), WORDS), 2);
    assert_int_equal(walk(4, address_of(10), WORDS), 0);
}

/* A chain that is longer than what is copied at once. */
TEST(a_chain_is_followed_over_many_pages)
{
    enum { PAGES = 16, FAR = PAGES * WORDS / MOST };
    uint64_t *const usual = stack;
    void *pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    stack = pages;
    for (size_t i = 0; i < MOST; i++)
        put_record(3 + i * FAR, 3 + (i + 1) * FAR);
    assert_int_equal(walk(1, address_of(3), (size_t)PAGES * WORDS), MOST);
    for (size_t i = 0; i < MOST; i++)
        assert_true(found[i] == CODE + 3 + i * FAR);
    stack = usual;
    assert_int_equal(munmap(pages, (size_t)PAGES * PAGE), 0);
}

/* As in a handler that runs on the stack that it looks at; AddressSanitizer puts arrays
 * elsewhere. */
__attribute__((no_sanitize("address")))
TEST(the_page_that_the_stack_pointer_is_in_is_read_without_the_kernel)
{
    _Alignas(PAGE) uint64_t own[2 * WORDS];
    uint64_t *const usual = stack;
    stack = own;
    put_record(10, 20);
    put_record(20, WORDS - 2);
    put_record(WORDS - 2, WORDS);
    put_record(WORDS, WORDS + 10);
    put_record(WORDS + 10, 0);
    assert_int_equal(walk(4, address_of(10), WORDS), 3);
    assert_int_equal(copies, 0);
    assert_int_equal(walk(4, address_of(10), (size_t)2 * WORDS), 5);
    assert_int_equal(copies, 1);
    assert_int_equal(walk(0, address_of(10), WORDS), 3); /* it may be the end of one below */
    assert_true(copies > 1);
    stack = usual;
}
