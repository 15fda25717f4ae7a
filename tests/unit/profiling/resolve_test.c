/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/profiling/resolve_test.c - specification of what a sample's labels, span and frames
 * are. The trampolines and what they stood for are made here: number i is code at CODE + 32 i,
 * functions return to 18 bytes behind that, and its marker is 22 bytes behind it. */
#include "profiling/labels/resolve.h"
#include "profiling/labels/trampolines.h"
#include "tests/support/unit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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
        if (is_known[i] &&
            memcmp(known[i].span.span_id, span_id, sizeof known[i].span.span_id) == 0)
            return oteli_labels_find(i, time_ns, label);
    }
    return false;
}

/* --- hands --- */

static uint64_t frames[OTELI_FRAMES_MAX];
static uint64_t stack[16];
static struct oteli_resolved resolved;

static uint64_t marker(unsigned index)
{
    return CODE + SIZE * index + MARKER;
}

/* It stands for span 10 i of trace 10 i, whose local root is 10 i + 1; number 2 for none. */
static void know(unsigned index)
{
    is_known[index] = true;
    known[index] = (struct oteli_label){.start_ns = index};
    if (index == 2)
        return;
    known[index].span.trace_id[0] = known[index].span.span_id[0] = (uint8_t)(10 * index);
    known[index].span.root_id[0] = (uint8_t)(10 * index + 1);
}

static int set_up(void **state)
{
    (void)state;
    memset(is_known, 0, sizeof is_known);
    for (unsigned i = 2; i <= 5; i++)
        know(i);
    memset(&resolved, 0xAA, sizeof resolved);
    sample = (struct oteli_sample){.time_ns = TIME, .periods = 1, .frames = frames};
    return 0;
}

static void publish(uint8_t trace, uint8_t span)
{
    sample.has_context = true;
    sample.context = (otel_thread_context_record){.valid = 1};
    sample.context.trace_id[0] = trace;
    sample.context.span_id[0] = span;
}

/* What is on the stack besides. */
static void scan(unsigned number)
{
    stack[sample.stack_size / sizeof *stack] = number;
    sample.stack = stack;
    sample.stack_size += sizeof *stack;
    sample.stack_address = 0x7000;
}

/* "500" is code that is in no trampoline; of trampoline 3, "m3" is its marker, "r3" where functions
 * return to, and "i3" an instruction. */
static uint64_t frame_of(const char *text)
{
    const unsigned number = (unsigned)strtoul(text + 1, NULL, 10);
    switch (text[0]) {
    case 'm':
        return marker(number);
    case 'r':
        return CODE + SIZE * number + RETURN;
    case 'i':
        return CODE + SIZE * number + 5;
    default:
        return strtoull(text, NULL, 16);
    }
}

static void resolve(const char *chain)
{
    sample.depth = 0;
    for (const char *at = chain; at != NULL; at = strchr(at + 1, ' '))
        frames[sample.depth++] = frame_of(*at == ' ' ? at + 1 : at);
    oteli_resolve(&sample, &resolved);
    assert_ptr_equal(resolved.sample, &sample);
}

/* "chain 3 4, span 30 30 31": how labels were found, which, and the trace, span and root. */
static void assert_found(const char *chain, const char *expected)
{
    static const char *const ways[] = {[OTELI_FOUND_BY_CHAIN] = "chain",
                                       [OTELI_FOUND_BY_SCAN] = "scan",
                                       [OTELI_FOUND_BY_THREAD] = "thread",
                                       [OTELI_UNLABELLED] = "nothing",
                                       [OTELI_NO_HISTORY] = "no history"};
    char text[256];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", ways[resolved.found]);
    for (size_t i = 0; i < resolved.label_count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %u",
                                 (unsigned)resolved.labels[i].start_ns);
    if (resolved.has_span)
        snprintf(text + used, sizeof text - used, ", span %u %u %u", resolved.span.trace_id[0],
                 resolved.span.span_id[0], resolved.span.root_id[0]);
    if (strcmp(text, expected) != 0)
        fail_msg("%s: %s, not %s", chain, text, expected);
}

static void assert_frames(size_t count, const uint64_t *expected)
{
    assert_int_equal(resolved.depth, count);
    assert_memory_equal(resolved.frames, expected, count * sizeof *expected);
}

AROUND_EACH(set_up, NULL);

/* --- labels and spans --- */

static void assert_resolved(const char *chain, const char *found, const char *expected)
{
    size_t depth = 0;
    resolve(chain);
    assert_found(chain, found);
    for (const char *at = expected; at != NULL; at = strchr(at + 1, ' '), depth++)
        assert_int_equal(resolved.frames[depth], frame_of(*at == ' ' ? at + 1 : at));
    assert_int_equal(resolved.depth, depth);
}

TEST(the_chain_says_which_labels_a_sample_is_under)
{
    static const struct {
        const char *chain, *found, *frames;
    } table[] = {
        {"500 600", "nothing", "500 600"},
        /* What trampolines add is one frame, the same for all. */
        {"500 r3 m3 600", "chain 3, span 30 30 31", "500 m0 600"},
        {"500 m4 600", "chain 4, span 40 40 41", "500 m0 600"},
        {"i3 m3 600", "chain 3, span 30 30 31", "i0 600"},
        /* A function's own frame, which is not wiped, may be met when it is over; not the
         * marker. */
        {"500 r3 600", "nothing", "500 r0 600"},
        {"500 r3 m3 600 m4 700 m3", "chain 3 4 3, span 30 30 31", "500 m0 600 m0 700 m0"},
        /* One function called the other's trampoline by a jump: no frame is between the two. */
        {"500 r3 m3 r4 m4 600", "chain 3 4, span 30 30 31", "500 m0 m0 600"},
        {"500 m2 600 m4", "chain 2 4, span 40 40 41", "500 m0 600 m0"},
        {"500 m2 600", "chain 2", "500 m0 600"},
        /* What the outer one says may have been said otherwise by one that is not known. */
        {"500 m6 600", "no history", "500 m0 600"},
        {"500 m6 600 m4 700", "no history", "500 m0 600 m0 700"},
        {"500 m3 600 m6 700 m5", "chain 3, span 30 30 31", "500 m0 600 m0 700 m0"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_resolved(table[i].chain, table[i].found, table[i].frames);
}

TEST(a_scan_of_the_stack_finds_what_the_chain_does_not_show)
{
    scan(4);
    scan(3);
    assert_resolved("500 600", "scan 4 3, span 40 40 41", "500 600");
    assert_resolved("500 m3 600", "chain 3, span 30 30 31", "500 m0 600");
    sample.stack_size = 0;
    scan(6);
    assert_resolved("500 600", "no history", "500 600");
}

TEST(the_span_that_the_thread_publishes_counts_too)
{
    static const struct {
        uint8_t trace, span;
        const char *chain, *found;
    } table[] = {
        {1, 2, "500 600", "thread, span 1 2 0"},
        {1, 2, "500 m6 600", "thread, span 1 2 0"},
        {50, 50, "500 600", "thread 5, span 50 50 51"}, /* its label is known from elsewhere */
        {30, 32, "500 m3 600", "chain 3, span 30 32 31"},
        {90, 92, "500 m3 600", "chain 3, span 90 92 0"},  /* of another trace */
        {30, 31, "500 m3 600", "chain 3, span 30 30 31"}, /* the root is outside of the label */
        {90, 7, "500 m5 600", "chain 5, span 50 50 51"},  /* as is what it was made under */
        {50, 8, "500 m5 600", "chain 5, span 50 8 51"},
    };
    known[5].around_id[0] = 7;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        publish(table[i].trace, table[i].span);
        resolve(table[i].chain);
        assert_found(table[i].chain, table[i].found);
    }
    sample.context.valid = 0; /* it works for no span */
    assert_resolved("500 600", "nothing", "500 600");
    assert_resolved("500 m3", "chain 3, span 30 30 31", "500 m0");
}

TEST(labels_and_frames_above_the_most_are_left_out)
{
    for (unsigned i = 0; i < KNOWN; i++)
        know(i);
    for (sample.depth = 0; sample.depth < OTELI_FRAMES_MAX; sample.depth++)
        frames[sample.depth] =
            sample.depth % 2 != 0 ? marker((unsigned)sample.depth / 2 % KNOWN) : 0x600;
    oteli_resolve(&sample, &resolved);
    assert_int_equal(resolved.depth, OTELI_FRAMES_MAX);
    assert_int_equal(resolved.label_count, OTELI_LABELS_NESTED);
    assert_int_equal(resolved.labels[7].start_ns, 7);

    for (unsigned i = 0; i < 12; i++)
        scan(i);
    resolve("500");
    assert_int_equal(resolved.found, OTELI_FOUND_BY_SCAN);
    assert_int_equal(resolved.label_count, OTELI_LABELS_NESTED);
}

/* --- the missing caller --- */

#if defined(__x86_64__)

enum { LEAF = 70, NEXT = 100, SOMETHING = 12345 };

static uint8_t code[256];

/* A direct call there. Gives where it returns to. */
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

static void resolve_leaf(uint64_t top_of_stack, uint64_t next)
{
    stack[0] = top_of_stack;
    sample.stack = stack;
    sample.stack_size = sizeof stack[0];
    sample.stack_address = 0x7000;
    frames[0] = in_code(LEAF);
    frames[1] = next;
    sample.depth = 2;
    oteli_resolve(&sample, &resolved);
}

/* The caller of a leaf without a frame is on top of the stack. */
TEST(the_missing_caller_is_put_in_where_it_is_one)
{
    static const struct {
        const char *what;
        size_t called; /* by the call that returns to the word; 0: there is none */
        size_t next_called;
        bool is_put_in;
    } table[] = {
        {"the leaf was called, and its caller by the next", 64, 32, true},
        {"the word is where no call returns to", 0, 0, false},
        {"the call is one of what is behind the leaf", 80, 0, false},
        /* The word is an old one, in a variable of the leaf. */
        {"the next frame called the leaf itself", 50, 64, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        print_message("%s\n", table[i].what);
        (void)set_up(NULL);
        memset(code, 0x90, sizeof code);
        const uint64_t word = table[i].called != 0 ? put_call(40, table[i].called) : in_code(45);
        const uint64_t next =
            table[i].next_called != 0 ? put_call(8, table[i].next_called) : in_code(NEXT);
        resolve_leaf(word, next);
        const uint64_t with[] = {in_code(LEAF), word, next};
        const uint64_t without[] = {in_code(LEAF), next};
        assert_frames(table[i].is_put_in ? 3 : 2, table[i].is_put_in ? with : without);
    }
    resolve_leaf(SOMETHING, in_code(NEXT));
    assert_frames(2, (const uint64_t[]){in_code(LEAF), in_code(NEXT)});
    const uint64_t caller = put_call(40, 64);
    resolve_leaf(caller, caller); /* it is there, and not put in again */
    assert_frames(2, (const uint64_t[]){in_code(LEAF), caller});
}

#endif
