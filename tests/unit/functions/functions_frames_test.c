/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/functions/functions_frames_test.c - specification of functions/frames.h.
 *
 * A function is a letter, and the heights of the stack are made up. */
#include "functions/frames.h"

#include "api/thread/thread_state.h"
#include "common/clock/clock.h"
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/leaks.h"
#include "tests/support/span_tree.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { US = 1000 };

static otel_memory *memory;
static otel_tracer *tracer;
static struct oteli_frames frames;
static struct oteli_frames_limits limits;
static const char code[4096]; /* addresses to return to, and of instructions */

/* "a" is the function at address 'a'. */
static size_t name_of(const void *address, char *name, size_t size)
{
    if (size != 0)
        snprintf(name, size, "%c", (char)(uintptr_t)address);
    return 1;
}

static int begin(void **state)
{
    (void)state;
    oteli_leaks_begin();
    memory = otel_memory_new();
    assert_non_null(memory);
    const otel_exporter exporter = otel_memory_exporter(memory);
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .simple = true, .clock = "fake")),
                     OTEL_OK);
    otel_set_name_resolver(name_of);
    tracer = otel_tracer_get("frames", NULL);
    memset(&frames, 0, sizeof frames);
    limits = (struct oteli_frames_limits){.min_ns = 0, .max_depth = 16};
    return 0;
}

static int end(void **state)
{
    (void)state;
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    otel_set_name_resolver(NULL);
    otel_memory_free(memory);
    oteli_lifecycle_reset();
    oteli_api_reset();
    oteli_leaks_check();
    return 0;
}

/* A function that is called: from a place of its own, at this height. */
static struct oteli_caller call(char function, uintptr_t at)
{
    return (struct oteli_caller){.function = (const void *)(uintptr_t)function,
                                 .site = code + function,
                                 .instruction = code + 1024 + function,
                                 .at = at};
}

/* One that the compiler has put into another: it returns where that one does. */
static struct oteli_caller inlined(char function, char into, uintptr_t at)
{
    struct oteli_caller caller = call(function, at);
    caller.site = code + into;
    return caller;
}

/* What happens, in words: "a900" is a call of a at this height, "b:a900" of one that is inlined
 * into a,
 * "-a900" a return; "+9" is a time of 9 us. */
static void play(const char *script)
{
    for (const char *word = script; word != NULL; word = strchr(word, ' ')) {
        word += *word == ' ';
        const bool is_exit = *word == '-';
        const char *name = word + is_exit;
        if (*word == '+') {
            oteli_fake_clock.ticks += strtoull(word + 1, NULL, 10) * US;
            continue;
        }
        const bool is_inlined = name[1] == ':';
        const uintptr_t at = strtoul(name + (is_inlined ? 3 : 1), NULL, 10);
        const struct oteli_caller caller =
            is_inlined ? inlined(name[0], name[2], at) : call(name[0], at);
        if (is_exit)
            oteli_frames_exit(&frames, &limits, &caller, false);
        else
            oteli_frames_enter(&frames, &limits, tracer, &caller);
    }
}

static void assert_tree(const char *script, const char *expected)
{
    char text[1024];
    span_tree_text(memory, text, sizeof text);
    if (strcmp(text, expected) != 0)
        fail_msg("%s: %s, not %s", script, text, expected);
    assert_int_equal(frames.depth, 0);
}

AROUND_EACH(begin, end);

static const struct {
    uint32_t max_depth;
    uint64_t min_us;
    const char *script;
    const char *tree;
} rows[] = {
    {16, 0, "a900 b800 -b800 c800 d700 -d700 -c800 -a900", "a(b c(d))"},
    /* One that calls itself is one span a call. */
    {16, 0, "f900 f800 f700 f600 -f600 -f700 -f800 -f900", "f(f(f(f)))"},
    /* What longjmp left ends with its caller, and is no parent of what its caller calls: d is as
     * high as b was, but from another place. */
    {16, 0, "a900 b800 c700 -a900", "a(b(c))"},
    {16, 0, "a900 b800 c700 d800 -d800 -a900", "a(b(c) d)"},
    /* Inlined functions are children at the same height, and end with the one that they are in. */
    {16, 0, "a900 b:a900 c:a900 -c:a900 -b:a900 -a900", "a(b(c))"},
    {16, 0, "a900 b:a900 -a900", "a(b)"},
    {16, 0, "a900 b600 -b600 -a700", "a(b)"}, /* there was an alloca */
    /* Functions below the limit have no span; it holds again after longjmp. */
    {2, 0, "a900 f800 f700 f600 -f600 -f700 -f800 b800 -b800 -a900", "a(f b)"},
    {2, 0, "a900 b800 c700 d850 -d850 -a900", "a(b d)"},
    /* Exits without an entry: of what began before there was an SDK, or is excluded. */
    {16, 0, "-z900 a900 -y800 -a900 -a900", "a"},
    /* Short ones have no span unless something in them has. */
    {16, 10, "a900 b800 c700 +9 -c700 -b800 e800 d700 +11 -d700 -e800 -a900", "a(e(d))"},
};

TEST(functions_are_children_of_their_callers)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        otel_memory_clear(memory);
        limits = (struct oteli_frames_limits){.min_ns = rows[i].min_us * US,
                                              .max_depth = rows[i].max_depth};
        play(rows[i].script);
        assert_tree(rows[i].script, rows[i].tree);
    }
}

TEST(the_same_call_again_is_another_one)
{
    play("a900");
    for (int i = 0; i < 100; i++) /* a loop around a call that never returns */
        play("b800");
    assert_int_equal(frames.depth, 2);
    play("-a900");

    assert_int_equal(otel_memory_count(memory), 101);
    assert_int_equal(frames.depth, 0);
}

TEST(all_end_with_their_thread)
{
    play("a900 b800");

    oteli_frames_clear(&frames, &limits);

    assert_tree("clear", "a(b)");
    assert_int_equal(otel_current_span().opaque[2], 0);
}

TEST(without_an_sdk_nothing_happens)
{
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    play("a900 b800 -b800 -a900");
    assert_tree("no SDK", "");
    assert_int_equal(otel_start_with(NULL), OTEL_OK);
}
