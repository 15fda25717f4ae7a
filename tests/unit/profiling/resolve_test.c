/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/resolve_test.c - specification of what a sample's labels, span and frames are. The
 * trampolines and what they stood for are made here: number i is code at CODE + 32 i, functions
 * return to 18 bytes behind that, and its marker is 22 bytes behind it. */
#include "profiling/missing_caller.h"
#include "profiling/sample.h"
#include "profiling/trampolines.h"
#include "tests/support/unit.h"

#include <string.h>

enum { CODE = 0x10000, SIZE = 32, RETURN = 18, MARKER = 22, KNOWN = 20, TIME = 1000 };

static struct oteli_sample sample;

/* --- the stand-ins --- */

int oteli_trampoline_of(uint64_t address)
{
    return address >= CODE && address < CODE + (uint64_t)SIZE * OTELI_TRAMPOLINES
               ? (int)((address - CODE) / SIZE)
               : OTELI_NO_TRAMPOLINE;
}

int oteli_trampoline_of_marker(uint64_t address)
{
    return address % SIZE == MARKER ? oteli_trampoline_of(address) : OTELI_NO_TRAMPOLINE;
}

uint64_t oteli_trampoline_unify(uint64_t address)
{
    return CODE + (address - CODE) % SIZE;
}

/* As its words say: the numbers of trampolines. */
size_t oteli_trampolines_scan(const void *bytes, size_t size, uint64_t address, int *found,
                              size_t most)
{
    const uint64_t *words = bytes;
    assert_int_equal(address, 0x7000);
    for (size_t i = 0; i < size / sizeof *words && i < most; i++)
        found[i] = (int)words[i];
    return size / sizeof *words;
}

static struct oteli_label known[KNOWN];
static bool is_known[KNOWN];

bool oteli_labels_find(unsigned index, uint64_t time_ns, struct oteli_label *label)
{
    assert_int_equal(time_ns, sample.time_ns);
    if (index >= KNOWN || !is_known[index])
        return false;
    *label = known[index];
    return true;
}

bool oteli_labels_find_span(const uint8_t span_id[8], uint64_t time_ns, struct oteli_label *label)
{
    for (unsigned i = 0; i < KNOWN; i++) {
        if (is_known[i] && memcmp(known[i].span_id, span_id, sizeof known[i].span_id) == 0)
            return oteli_labels_find(i, time_ns, label);
    }
    return false;
}

/* --- hands --- */

static uint64_t frames[OTELI_FRAMES_MAX];
static uint64_t stack[16];
static struct oteli_calls calls;
static struct oteli_resolved resolved;

static uint64_t marker(unsigned index)
{
    return CODE + SIZE * index + MARKER;
}

static uint64_t inside(unsigned index)
{
    return CODE + SIZE * index + RETURN;
}

/* It stands for span `span` of trace `span`, whose local root is `root`. */
static void know(unsigned index, uint8_t span, uint8_t root)
{
    is_known[index] = true;
    known[index] = (struct oteli_label){.start_ns = index};
    known[index].trace_id[0] = span;
    known[index].span_id[0] = span;
    known[index].root_id[0] = root;
}

static int set_up(void **state)
{
    (void)state;
    memset(is_known, 0, sizeof is_known);
    memset(&resolved, 0xAA, sizeof resolved);
    memset(&calls, 0, sizeof calls);
    sample = (struct oteli_sample){.time_ns = TIME, .periods = 1, .frames = frames};
    return 0;
}

#define RESOLVE(...) resolve((const uint64_t[]){__VA_ARGS__, 0})
static void resolve(const uint64_t *chain)
{
    for (sample.depth = 0; chain[sample.depth] != 0; sample.depth++)
        frames[sample.depth] = chain[sample.depth];
    oteli_resolve(&sample, &calls, &resolved);
    assert_ptr_equal(resolved.sample, &sample);
}

#define CHECK_FRAMES(...) check_frames((const uint64_t[]){__VA_ARGS__, 0})
static void check_frames(const uint64_t *expected)
{
    size_t depth = 0;
    while (expected[depth] != 0)
        depth++;
    assert_int_equal(resolved.depth, depth);
    for (size_t i = 0; i < depth; i++)
        assert_int_equal(resolved.frames[i], expected[i]);
}

static void scan(size_t count, const uint64_t *numbers)
{
    memcpy(stack, numbers, count * sizeof *numbers);
    sample.stack = stack;
    sample.stack_size = count * sizeof *numbers;
    sample.stack_address = 0x7000;
}

static void publish(uint8_t trace, uint8_t span)
{
    sample.has_context = true;
    sample.context = (otel_thread_context_record){.valid = 1};
    sample.context.trace_id[0] = trace;
    sample.context.span_id[0] = span;
}

static void check_span(uint8_t trace, uint8_t span, uint8_t root)
{
    assert_true(resolved.has_span);
    assert_int_equal(resolved.trace_id[0], trace);
    assert_int_equal(resolved.span_id[0], span);
    assert_int_equal(resolved.root_id[0], root);
}

/* --- by the chain --- */

AROUND_EACH(set_up, NULL);

TEST(a_trampoline_on_the_chain_is_the_label)
{
    know(3, 30, 31);
    RESOLVE(0x500, inside(3), marker(3), 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_CHAIN);
    assert_int_equal(resolved.label_count, 1);
    assert_int_equal(resolved.labels[0].start_ns, 3);
    check_span(30, 30, 31);
}

TEST(what_trampolines_add_is_one_frame_the_same_for_all)
{
    know(3, 30, 31);
    know(4, 40, 41);
    RESOLVE(0x500, inside(3), marker(3), 0x600);
    CHECK_FRAMES(0x500, marker(0), 0x600);
    RESOLVE(0x500, marker(4), 0x600);
    CHECK_FRAMES(0x500, marker(0), 0x600);
}

TEST(a_leaf_inside_of_a_trampoline_has_its_label)
{
    know(3, 30, 31);
    RESOLVE(CODE + 3 * SIZE + 5, marker(3), 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_CHAIN);
    assert_int_equal(resolved.label_count, 1);
    CHECK_FRAMES(CODE + 5, 0x600);
}

/* A function's own frame, which is not wiped, may be met when it is over; the marker may not. */
TEST(an_address_in_a_trampoline_without_its_marker_is_no_label)
{
    know(3, 30, 31);
    RESOLVE(0x500, inside(3), 0x600);
    assert_int_equal(resolved.found, OTELI_UNLABELLED);
    assert_int_equal(resolved.label_count, 0);
    assert_false(resolved.has_span);
    CHECK_FRAMES(0x500, inside(0), 0x600);
}

TEST(nested_labels_are_innermost_first)
{
    know(3, 30, 31);
    know(4, 40, 41);
    RESOLVE(0x500, inside(3), marker(3), 0x600, marker(4), 0x700, marker(3), 0x800);
    assert_int_equal(resolved.label_count, 3);
    assert_int_equal(resolved.labels[0].start_ns, 3);
    assert_int_equal(resolved.labels[1].start_ns, 4);
    assert_int_equal(resolved.labels[2].start_ns, 3);
    check_span(30, 30, 31);
    CHECK_FRAMES(0x500, marker(0), 0x600, marker(0), 0x700, marker(0), 0x800);
}

/* One function called the other's trampoline by a jump: there is no frame between the two. */
TEST(trampolines_side_by_side_are_two)
{
    know(3, 30, 31);
    know(4, 40, 41);
    RESOLVE(0x500, inside(3), marker(3), inside(4), marker(4), 0x600);
    assert_int_equal(resolved.label_count, 2);
    CHECK_FRAMES(0x500, marker(0), marker(0), 0x600);
}

TEST(the_innermost_label_with_a_span_gives_the_span)
{
    know(3, 0, 0);
    know(4, 40, 41);
    RESOLVE(0x500, marker(3), 0x600, marker(4));
    assert_int_equal(resolved.label_count, 2);
    check_span(40, 40, 41);
}

TEST(labels_without_a_span_leave_it_open)
{
    know(3, 0, 0);
    RESOLVE(0x500, marker(3), 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_CHAIN);
    assert_false(resolved.has_span);
}

TEST(labels_and_frames_above_the_most_are_left_out)
{
    uint64_t chain[OTELI_FRAMES_MAX + 1] = {0x500};
    for (unsigned i = 0; i < OTELI_FRAMES_MAX - 1; i++)
        chain[1 + i] = i % 2 == 0 ? marker(i / 2 % KNOWN) : 0x600;
    for (unsigned i = 0; i < KNOWN; i++)
        know(i, 1, 2);
    resolve(chain);
    assert_int_equal(resolved.depth, OTELI_FRAMES_MAX);
    assert_int_equal(resolved.label_count, OTELI_LABELS_NESTED);
    assert_int_equal(resolved.labels[7].start_ns, 7);
}

/* --- by the scan --- */

TEST(the_scan_finds_what_the_chain_does_not_show)
{
    know(3, 30, 31);
    know(4, 40, 41);
    scan(2, (const uint64_t[]){4, 3});
    RESOLVE(0x500, 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_SCAN);
    assert_int_equal(resolved.label_count, 2);
    check_span(40, 40, 41);
    CHECK_FRAMES(0x500, 0x600);
}

TEST(the_chain_comes_before_the_scan)
{
    know(3, 30, 31);
    know(4, 40, 41);
    scan(1, (const uint64_t[]){4});
    RESOLVE(0x500, marker(3), 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_CHAIN);
    assert_int_equal(resolved.label_count, 1);
    check_span(30, 30, 31);
}

TEST(a_scan_may_find_more_than_there_is_room_for)
{
    uint64_t numbers[12];
    for (unsigned i = 0; i < 12; i++) {
        know(i, 1, 2);
        numbers[i] = i;
    }
    scan(12, numbers);
    RESOLVE(0x500);
    assert_int_equal(resolved.label_count, OTELI_LABELS_NESTED);
}

TEST(nothing_found_is_unlabelled)
{
    RESOLVE(0x500, 0x600);
    assert_int_equal(resolved.found, OTELI_UNLABELLED);
    assert_false(resolved.has_span);
    CHECK_FRAMES(0x500, 0x600);
}

/* --- no history --- */

TEST(a_label_of_which_nothing_is_known_has_no_history)
{
    RESOLVE(0x500, marker(3), 0x600);
    assert_int_equal(resolved.found, OTELI_NO_HISTORY);
    scan(1, (const uint64_t[]){3});
    RESOLVE(0x500, 0x600);
    assert_int_equal(resolved.found, OTELI_NO_HISTORY);
    assert_int_equal(resolved.label_count, 0);
    assert_false(resolved.has_span);
}

/* What the outer one says may have been said otherwise by the inner one. */
TEST(an_outer_label_says_nothing_when_the_inner_is_not_known)
{
    know(4, 40, 41);
    RESOLVE(0x500, marker(3), 0x600, marker(4), 0x700);
    assert_int_equal(resolved.found, OTELI_NO_HISTORY);
    assert_int_equal(resolved.label_count, 0);
    assert_false(resolved.has_span);
}

TEST(labels_count_up_to_the_first_that_is_not_known)
{
    know(3, 30, 31);
    know(5, 50, 51);
    RESOLVE(0x500, marker(3), 0x600, marker(4), 0x700, marker(5));
    assert_int_equal(resolved.found, OTELI_FOUND_BY_CHAIN);
    assert_int_equal(resolved.label_count, 1);
    check_span(30, 30, 31);
}

/* --- by the thread --- */

TEST(what_the_thread_publishes_is_the_span_without_labels)
{
    publish(1, 2);
    RESOLVE(0x500, 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_THREAD);
    assert_int_equal(resolved.label_count, 0);
    check_span(1, 2, 0);
}

TEST(what_the_thread_publishes_stands_in_for_a_lost_history)
{
    publish(1, 2);
    RESOLVE(0x500, marker(3), 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_THREAD);
    check_span(1, 2, 0);
}

/* What is said of it elsewhere: its keys, and its local root. */
TEST(the_label_of_the_threads_span_is_added)
{
    know(5, 50, 51);
    publish(50, 50);
    RESOLVE(0x500, 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_THREAD);
    assert_int_equal(resolved.label_count, 1);
    assert_int_equal(resolved.labels[0].start_ns, 5);
    check_span(50, 50, 51);
}

TEST(a_thread_that_works_for_no_span_publishes_nothing)
{
    publish(1, 2);
    sample.context.valid = 0;
    RESOLVE(0x500, 0x600);
    assert_int_equal(resolved.found, OTELI_UNLABELLED);
    know(3, 30, 31);
    RESOLVE(0x500, marker(3));
    check_span(30, 30, 31);
}

TEST(a_span_of_the_thread_wins_over_the_labels_one)
{
    know(3, 30, 31);
    publish(30, 32);
    RESOLVE(0x500, marker(3), 0x600);
    assert_int_equal(resolved.found, OTELI_FOUND_BY_CHAIN);
    assert_int_equal(resolved.label_count, 1);
    check_span(30, 32, 31);

    publish(90, 92); /* of another trace: of its root nothing is known */
    RESOLVE(0x500, marker(3), 0x600);
    check_span(90, 92, 0);
}

TEST(the_local_root_of_the_label_is_outside_of_it)
{
    know(3, 30, 31);
    publish(30, 31);
    RESOLVE(0x500, marker(3), 0x600);
    check_span(30, 30, 31);
}

/* It was current where the label was made, so the label is further in. */
TEST(the_span_that_the_label_was_made_under_is_outside_of_it)
{
    know(3, 30, 31);
    known[3].around_id[0] = 7;
    publish(90, 7);
    RESOLVE(0x500, marker(3), 0x600);
    check_span(30, 30, 31);

    publish(30, 8);
    RESOLVE(0x500, marker(3), 0x600);
    check_span(30, 8, 31);
}

/* --- the missing caller --- */

#if defined(__x86_64__)

/* Code: a direct call at 0 to 64, one at 32 to 0, and an indirect call at 16. */
static uint8_t code[256];

static uint64_t put_call(size_t at, size_t function)
{
    const int32_t distance = (int32_t)function - (int32_t)(at + 5);
    code[at] = 0xE8;
    memcpy(&code[at + 1], &distance, sizeof distance);
    return (uint64_t)(uintptr_t)&code[at + 5];
}

static uint64_t in_code(size_t at)
{
    return (uint64_t)(uintptr_t)&code[at];
}

static void top_of_stack(uint64_t word)
{
    stack[0] = word;
    sample.stack = stack;
    sample.stack_size = sizeof stack[0];
    sample.stack_address = 0x7000;
    is_known[0] = false;
}

TEST(the_caller_of_a_leaf_without_a_frame_is_put_in)
{
    memset(code, 0x90, sizeof code);
    const uint64_t caller = put_call(40, 64);
    const uint64_t next = put_call(8, 32);
    top_of_stack(caller);
    RESOLVE(in_code(70), next);
    CHECK_FRAMES(in_code(70), caller, next);
}

TEST(a_caller_that_is_there_is_not_put_in_again)
{
    memset(code, 0x90, sizeof code);
    const uint64_t caller = put_call(40, 64);
    top_of_stack(caller);
    RESOLVE(in_code(70), caller);
    CHECK_FRAMES(in_code(70), caller);
}

TEST(a_word_that_no_call_returns_to_is_no_caller)
{
    memset(code, 0x90, sizeof code);
    top_of_stack(in_code(45));
    RESOLVE(in_code(70), in_code(100));
    CHECK_FRAMES(in_code(70), in_code(100));
    top_of_stack(12345); /* nothing is there */
    RESOLVE(in_code(70), in_code(100));
    CHECK_FRAMES(in_code(70), in_code(100));
}

TEST(a_call_to_elsewhere_does_not_return_from_the_leaf)
{
    memset(code, 0x90, sizeof code);
    top_of_stack(put_call(40, 80)); /* behind the leaf */
    RESOLVE(in_code(70), in_code(100));
    CHECK_FRAMES(in_code(70), in_code(100));
}

/* The next frame called the leaf itself: the word is an old one, in a variable of the leaf. */
TEST(an_old_return_address_is_no_caller)
{
    memset(code, 0x90, sizeof code);
    const uint64_t old = put_call(40, 50);
    const uint64_t next = put_call(8, 64);
    top_of_stack(old);
    RESOLVE(in_code(70), next);
    CHECK_FRAMES(in_code(70), next);
}

TEST(code_is_read_once_and_again_after_a_second)
{
    memset(code, 0x90, sizeof code);
    const uint64_t caller = put_call(40, 64);
    top_of_stack(caller);
    sample.time_ns = 7000000000;
    RESOLVE(in_code(70), in_code(100));
    memset(code, 0x90, sizeof code);
    sample.time_ns += 999999999;
    RESOLVE(in_code(70), in_code(100));
    CHECK_FRAMES(in_code(70), caller, in_code(100));
    sample.time_ns += 1;
    RESOLVE(in_code(70), in_code(100));
    CHECK_FRAMES(in_code(70), in_code(100));
}

#endif
