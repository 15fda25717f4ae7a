/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/trampolines_test.c - specification of profiling/labels/trampolines.h, and of
 * the code that it is about. On machines without trampolines there is only the last case. */
#include "profiling/labels/trampolines.h"
#include "profiling/labels/trampolines_shape.h"
#include "tests/support/dead_records.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <string.h>
#include <unwind.h>

enum { DEPTH = 5, MOST_WORDS = 8192 };

static uint64_t start_of(unsigned index)
{
    return (uint64_t)(uintptr_t)oteli_trampoline_at(index);
}

TEST(addresses_belong_to_their_trampoline_and_one_of_each_is_its_marker)
{
    const uint64_t first = start_of(0);
    const uint64_t others[] = {first - 1, 0, UINT64_MAX,
                               first + (uint64_t)OTELI_TRAMPOLINES * OTELI_TRAMPOLINE_STRIDE,
                               first + OTELI_TRAMPOLINE_MARKER - OTELI_TRAMPOLINE_STRIDE};
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++) {
        for (unsigned k = 0; k < OTELI_TRAMPOLINE_STRIDE; k++) {
            const bool is_marker = k == OTELI_TRAMPOLINE_MARKER;
            assert_int_equal(oteli_trampoline_of(start_of(i) + k), i);
            assert_int_equal(oteli_trampoline_of_marker(start_of(i) + k),
                             is_marker ? (int)i : OTELI_NO_TRAMPOLINE);
            assert_int_equal(oteli_trampoline_unify(start_of(i) + k), first + k);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(oteli_trampoline_of(others[i]), OTELI_NO_TRAMPOLINE);
        assert_int_equal(oteli_trampoline_of_marker(others[i]), OTELI_NO_TRAMPOLINE);
        assert_int_equal(oteli_trampoline_unify(others[i]), others[i]);
    }
}

/* --- the code --- */

static void *same(void *argument)
{
    return argument;
}

TEST(each_calls_the_function_and_returns_what_it_does)
{
    for (unsigned i = 0; i < OTELI_TRAMPOLINES; i++)
        assert_ptr_equal(oteli_trampoline_at(i)(&i, same), &i);
}

/* What a function sees of the trampolines that it was called through. */
struct seen {
    const void *top; /* of the stack, as far as it is looked at */
    unsigned depth;
    jmp_buf way_out;
    bool jumps;
    uintptr_t misalignment;
    int by_return;
    size_t count;
    int found[2 * DEPTH];
    int unwound[2 * DEPTH];
    size_t unwound_count;
    bool reached_the_test;
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *state)
{
    struct seen *seen = state;
    const uint64_t address = _Unwind_GetIP(context) - 1;
    const int index = oteli_trampoline_of(address);
    if (index != OTELI_NO_TRAMPOLINE && seen->unwound_count < sizeof seen->unwound / sizeof(int))
        seen->unwound[seen->unwound_count++] = index;
    if (_Unwind_GetRegionStart(context) != 0 && index == OTELI_NO_TRAMPOLINE &&
        seen->unwound_count == DEPTH)
        seen->reached_the_test = true;
    return _URC_NO_REASON;
}

/* A stack is looked through as a profiler does: a copy, from here up. Sanitizers guard what lies
 * between variables, so word by word, and not by a function that they watch. */
__attribute__((no_sanitize("address"))) static void look_up_the_stack(struct seen *seen)
{
    static uint64_t copy[MOST_WORDS];
    const volatile uint64_t *from = __builtin_frame_address(0);
    const size_t count = (size_t)((const volatile uint64_t *)seen->top - from);
    assert_in_range(count, DEPTH, MOST_WORDS);
    for (size_t i = 0; i < count; i++)
        copy[i] = from[i];
    seen->count = oteli_trampolines_scan(copy, count * sizeof copy[0], (uint64_t)(uintptr_t)from,
                                         seen->found, sizeof seen->found / sizeof seen->found[0]);
}

__attribute__((noinline)) static void *look(void *argument)
{
    struct seen *seen = argument;
    __attribute__((aligned(16))) volatile char aligned[16];
    aligned[0] = 0;
    seen->misalignment = (uintptr_t)aligned % 16;
    seen->by_return = oteli_trampoline_of(
        (uint64_t)(uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)));
    look_up_the_stack(seen);
    _Unwind_Backtrace(take_frame, seen);
    if (seen->jumps)
        longjmp(seen->way_out, 1);
    return seen;
}

/* Through trampolines 1 to DEPTH times 100; the outermost is 500. */
static void *descend(void *argument)
{
    struct seen *seen = argument;
    const unsigned depth = seen->depth--;
    return oteli_trampoline_at(depth * 100)(seen, depth == 1 ? look : descend);
}

TEST(a_stack_says_which_trampolines_it_is_under_and_the_unwinder_walks_through_them)
{
    struct seen seen = {.top = __builtin_frame_address(0), .depth = DEPTH};

    assert_ptr_equal(descend(&seen), &seen);

    assert_int_equal(seen.count, DEPTH);
    assert_int_equal(seen.unwound_count, DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        assert_int_equal(seen.found[i], (i + 1) * 100);
        assert_int_equal(seen.unwound[i], (i + 1) * 100);
    }
    assert_int_equal(seen.by_return, 100);
    assert_int_equal(seen.misalignment, 0);
    assert_true(seen.reached_the_test);
}

TEST(longjmp_leaves_trampolines)
{
    struct seen seen = {.top = __builtin_frame_address(0), .depth = DEPTH, .jumps = true};
    volatile unsigned kept = 4711;

    if (setjmp(seen.way_out) == 0) {
        (void)descend(&seen);
        fail();
    }

    assert_int_equal(kept, 4711);
    assert_int_equal(seen.count, DEPTH);
}

/* --- the scan --- */

static uint64_t words[6];

static size_t scan_words(size_t size, int *found)
{
    return oteli_trampolines_scan(words, size, 0x7000, found, 1);
}

TEST(a_record_is_a_distance_and_a_marker)
{
    int found = 4711;
    const uint64_t marker = start_of(7) + OTELI_TRAMPOLINE_MARKER;
    memset(words, 0, sizeof words);
    words[1] = 0x7008 + 16;
    words[2] = marker;
    assert_int_equal(scan_words(sizeof words, &found), 1);
    assert_int_equal(found, 7);

    words[2] = marker + 1;
    assert_int_equal(scan_words(sizeof words, &found), 0);
    words[2] = marker;
    words[1] += 8;
    assert_int_equal(scan_words(sizeof words, &found), 0);
}

/* And one that begins between two words is scanned at words. */
TEST(a_scan_stays_inside_and_counts_what_does_not_fit)
{
    static const struct {
        size_t size, found;
    } table[] = {{sizeof words, 3}, {sizeof words - 1, 2}, {16, 1}, {15, 0}, {0, 0}};
    int found = 4711;
    char copy[4 + 16];
    for (unsigned i = 0; i < 3; i++) {
        words[2 * i] = 0x7000 + 16 * i + 16;
        words[2 * i + 1] = start_of(i + 1) + OTELI_TRAMPOLINE_MARKER;
    }
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_int_equal(scan_words(table[i].size, &found), table[i].found);
    assert_int_equal(found, 1);

    memcpy(copy + 4, words, 16);
    assert_int_equal(oteli_trampolines_scan(copy, sizeof copy, 0x7000 - 4, &found, 1), 1);
    assert_int_equal(found, 1);
}

/* --- what is left behind --- */

TEST(returning_leaves_no_record_behind)
{
    assert_int_equal(dead_records_after(dead_records_work, NULL), 0);
    assert_true(dead_records_returns() > 0);
}

static void *end_thread(void *unused)
{
    (void)unused;
    pthread_exit(NULL);
}

static void *end_inside(void *unused)
{
    return oteli_trampoline_at(3)(unused, end_thread);
}

static void *leave_it(void *argument)
{
    jmp_buf *way_out = argument;
    longjmp(*way_out, 1);
}

static void *jump_out(void *unused)
{
    jmp_buf way_out;
    if (setjmp(way_out) == 0)
        (void)oteli_trampoline_at(3)(&way_out, leave_it);
    return unused;
}

TEST(unwinding_leaves_no_record_behind)
{
    assert_int_equal(dead_records_after(end_inside, NULL), 0);
}

/* That is the one way that is not for labels; and it shows that the others could fail. */
TEST(longjmp_leaves_a_record_behind)
{
    assert_int_equal(dead_records_after(jump_out, NULL), 1);
}

TEST(without_trampolines_nothing_is_one)
{
    int found;
    assert_int_equal(OTELI_HAS_TRAMPOLINES, oteli_trampoline_at(0) != NULL);
    if (OTELI_HAS_TRAMPOLINES)
        return;
    assert_int_equal(oteli_trampoline_of(0), OTELI_NO_TRAMPOLINE);
    assert_int_equal(oteli_trampoline_unify(5), 5);
    assert_int_equal(oteli_trampolines_scan(words, sizeof words, 0x7000, &found, 1), 0);
}
