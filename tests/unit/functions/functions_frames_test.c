/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/functions/functions_frames_test.c - specification of functions/frames.h.
 *
 * A function is a letter, and the heights of the stack are made up. */
#include "functions/frames.h"

#include "api/thread.h"
#include "common/clock.h"
#include "sdk/engine.h"
#include "tests/support/leaks.h"
#include "tests/support/span_tree.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <stdio.h>
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

static void enter(struct oteli_caller caller)
{
    oteli_frames_enter(&frames, &limits, tracer, &caller);
}

static void leave(struct oteli_caller caller)
{
    oteli_frames_exit(&frames, &limits, &caller, false);
}

static void assert_tree(const char *expected)
{
    char text[1024];
    span_tree_text(memory, text, sizeof text);
    assert_string_equal(text, expected);
    assert_int_equal(frames.depth, 0);
}

AROUND_EACH(begin, end);

TEST(functions_are_children_of_their_callers)
{
    enter(call('a', 900));
    enter(call('b', 800));
    leave(call('b', 800));
    enter(call('c', 800));
    enter(call('d', 700));
    leave(call('d', 700));
    leave(call('c', 800));
    leave(call('a', 900));

    assert_tree("a(b c(d))");
}

TEST(a_function_that_calls_itself_is_one_span_a_call)
{
    for (uintptr_t at = 900; at > 500; at -= 100)
        enter(call('f', at));
    for (uintptr_t at = 600; at < 1000; at += 100)
        leave(call('f', at));

    assert_tree("f(f(f(f)))");
}

TEST(what_longjmp_left_ends_with_its_caller)
{
    enter(call('a', 900));
    enter(call('b', 800));
    enter(call('c', 700));
    leave(call('a', 900));

    assert_tree("a(b(c))");
}

TEST(what_longjmp_left_is_no_parent_of_what_its_caller_calls)
{
    enter(call('a', 900));
    enter(call('b', 800));
    enter(call('c', 700));
    enter(call('d', 800)); /* as high as b was, but from another place */
    leave(call('d', 800));
    leave(call('a', 900));

    assert_tree("a(b(c) d)");
}

TEST(the_same_call_again_is_another_one)
{
    enter(call('a', 900));
    for (int i = 0; i < 100; i++) /* a loop around a call that never returns */
        enter(call('b', 800));
    assert_int_equal(frames.depth, 2);
    leave(call('a', 900));

    assert_int_equal(otel_memory_count(memory), 101);
    assert_int_equal(frames.depth, 0);
}

TEST(inlined_functions_are_children_at_the_same_height)
{
    enter(call('a', 900));
    enter(inlined('b', 'a', 900));
    enter(inlined('c', 'a', 900));
    leave(inlined('c', 'a', 900));
    leave(inlined('b', 'a', 900));
    leave(call('a', 900));

    assert_tree("a(b(c))");
}

TEST(an_inlined_function_that_was_left_ends_with_the_one_it_is_in)
{
    enter(call('a', 900));
    enter(inlined('b', 'a', 900));
    leave(call('a', 900));

    assert_tree("a(b)");
}

TEST(a_function_may_have_made_room_on_its_stack)
{
    enter(call('a', 900));
    enter(call('b', 600)); /* called after alloca */
    leave(call('b', 600));
    leave(call('a', 700));

    assert_tree("a(b)");
}

TEST(functions_below_the_limit_have_no_span)
{
    limits.max_depth = 2;
    enter(call('a', 900));
    enter(call('f', 800));
    enter(call('f', 700));
    enter(call('f', 600));
    leave(call('f', 600));
    leave(call('f', 700));
    leave(call('f', 800));
    enter(call('b', 800));
    leave(call('b', 800));
    leave(call('a', 900));

    assert_tree("a(f b)");
}

TEST(the_limit_holds_again_after_longjmp)
{
    limits.max_depth = 2;
    enter(call('a', 900));
    enter(call('b', 800));
    enter(call('c', 700));
    enter(call('d', 850));
    leave(call('d', 850));
    leave(call('a', 900));

    assert_tree("a(b d)");
}

TEST(an_exit_without_an_entry_means_nothing)
{
    leave(call('z', 900));
    enter(call('a', 900));
    leave(call('y', 800)); /* it began before there was an SDK, or is excluded */
    leave(call('a', 900));
    leave(call('a', 900));

    assert_tree("a");
}

TEST(short_functions_have_no_span_unless_something_in_them_has)
{
    limits.min_ns = 10 * US;
    enter(call('a', 900));
    enter(call('b', 800));
    enter(call('c', 700));
    oteli_fake_clock.ticks += 9 * US;
    leave(call('c', 700));
    leave(call('b', 800));
    enter(call('e', 800));
    enter(call('d', 700));
    oteli_fake_clock.ticks += 11 * US;
    leave(call('d', 700));
    leave(call('e', 800));
    leave(call('a', 900));

    assert_tree("a(e(d))");
}

TEST(all_end_with_their_thread)
{
    enter(call('a', 900));
    enter(call('b', 800));

    oteli_frames_clear(&frames, &limits);

    assert_tree("a(b)");
    assert_int_equal(otel_current_span().opaque[2], 0);
}

TEST(without_an_sdk_nothing_happens)
{
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    enter(call('a', 900));
    enter(call('b', 800));
    leave(call('b', 800));
    leave(call('a', 900));

    assert_tree("");
    assert_int_equal(otel_start_with(NULL), OTEL_OK);
}
