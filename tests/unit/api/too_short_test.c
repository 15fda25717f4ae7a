/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/too_short_test.c - specification of otel_span_end_unless_shorter: which spans it
 * withholds, and which it leaves to their children. */
#include "tests/support/traced.h"
#include "tests/support/unit.h"
#include <otel/ffi.h>
#include <otel/fibre.h>

#include <pthread.h>
#include <string.h>

#define LONG_NS UINT64_C(3600000000000)

static otel_span enter(const char *name)
{
    return otel_span_enter(traced.tracer, name, NULL);
}

static otel_span begin(const char *name)
{
    return otel_span_start(traced.tracer, name, NULL);
}

static void end(otel_span span)
{
    otel_span_end_unless_shorter(span, LONG_NS);
}

static void short_one(const char *name)
{
    end(enter(name));
}

static otel_span begin_under(otel_span parent, const char *name)
{
    const otel_context context = {.span = parent};
    return otel_span_start(traced.tracer, name, OTEL_SPAN_OPTIONS(.parent = &context));
}

static void assert_withheld(uint64_t count)
{
    assert_only_withheld(OTEL_WITHHELD_TOO_SHORT, count);
}

AROUND_EACH(traced_setup, traced_teardown);

/* --- spans without children --- */

TEST_QUEUED_TOO(a_short_span_is_withheld)
{
    const otel_span root = enter("root");
    short_one("entered");
    end(begin("detached"));
    end(otel_span_enter_address(traced.tracer, (const void *)(uintptr_t)enter));
    const otel_span span = enter("by pointer");
    otel_span_end_unless_shorter_p(&span, LONG_NS);
    otel_span_end(root);
    end(enter("a root"));
    end(begin("a detached root"));

    assert_string_equal(traced_tree(), "root");
    assert_withheld(6);
}

TEST_QUEUED_TOO(what_took_as_long_is_exported)
{
    otel_span_end_unless_shorter(enter("entered"), 0);
    otel_span_end_unless_shorter(begin("detached"), 0);
    assert_string_equal(traced_tree(), "entered detached");
    assert_withheld(0);
}

TEST_QUEUED_TOO(what_was_set_on_it_goes_with_it)
{
    for (int i = 0; i < 2; i++) {
        const otel_span span = i == 0 ? enter("entered") : begin("detached");
        otel_span_set_string(span, "key", "value");
        otel_span_add_event(span, "event", NULL, 0);
        otel_span_fail(span, "an error");
        otel_span_update_name(span,
                              "a name that does not fit into the place of a span on the stack");
        end(span);
        otel_span_end(span);
    }
    assert_string_equal(traced_tree(), "");
    assert_withheld(2);
}

TEST(a_start_that_is_given_counts)
{
    const uint64_t now_ns = otel_now_ns();
    otel_span_options *options = OTEL_SPAN_OPTIONS(.start_ns = now_ns - 2 * LONG_NS);
    end(otel_span_enter(traced.tracer, "long", options));
    end(otel_span_start(traced.tracer, "as long", options));
    end(otel_span_enter(traced.tracer, "short", OTEL_SPAN_OPTIONS(.start_ns = now_ns - 1000)));
    end(otel_span_start(traced.tracer, "as short", OTEL_SPAN_OPTIONS(.start_ns = now_ns - 1000)));
    assert_string_equal(traced_tree(), "long as long");
    assert_withheld(2);
}

/* --- what was started in an entered span --- */

TEST_QUEUED_TOO(a_span_with_a_child_is_exported)
{
    const otel_span a = enter("a");
    traced_touch("b");
    end(a);
    const otel_span c = enter("c");
    otel_span_end(begin("d"));
    end(c);
    assert_string_equal(traced_tree(), "a(b) c(d)");
    assert_withheld(0);
}

TEST_QUEUED_TOO(a_child_that_is_open_is_one)
{
    const otel_span a = enter("a");
    const otel_span b = enter("b");
    end(a);
    otel_span_end(b);
    const otel_span c = enter("c");
    const otel_span d = begin("d");
    end(c);
    otel_span_end(d);
    assert_string_equal(traced_tree(), "a(b) c(d)");
    assert_withheld(0);
}

TEST_QUEUED_TOO(a_child_that_was_withheld_is_none)
{
    const otel_span a = enter("a");
    short_one("b");
    const otel_span c = enter("c");
    short_one("d");
    const otel_span e = enter("e");
    short_one("f");
    end(e);
    short_one("g");
    end(c);
    short_one("h");
    end(a);
    assert_string_equal(traced_tree(), "");
    assert_withheld(8);
}

TEST_QUEUED_TOO(one_child_that_is_left_is_enough)
{
    for (int left = 0; left < 4; left++) {
        const otel_span a = enter("a");
        const otel_span b = enter("b");
        for (int i = 0; i < 4; i++)
            otel_span_end_unless_shorter(enter("c"), i == left ? 0 : LONG_NS);
        end(b);
        short_one("d");
        end(a);
    }
    assert_string_equal(traced_tree(), "a(b(c)) a(b(c)) a(b(c)) a(b(c))");
    assert_withheld(4 * 4);
}

TEST_QUEUED_TOO(a_root_inside_that_was_withheld_is_none)
{
    const otel_span a = enter("a");
    end(otel_span_enter(traced.tracer, "root", OTEL_SPAN_OPTIONS(.root = true)));
    end(a);
    assert_withheld(2);
}

TEST_QUEUED_TOO(a_context_in_between_hides_no_child)
{
    static otel_context_value place;
    const otel_context_key key = otel_context_create_key("key");
    for (int i = 0; i < 2; i++) {
        const otel_span a = enter("a");
        const otel_context_token token = otel_context_attach(
            otel_context_with_value(otel_current_context(), key, &place, &place));
        otel_span_end_unless_shorter(enter("b"), i == 0 ? LONG_NS : 0);
        (void)otel_context_detach(token);
        end(a);
    }
    assert_string_equal(traced_tree(), "a(b)");
    assert_withheld(2);
}

TEST(what_is_mounted_under_it_is_a_child)
{
    otel_lines_begin();
    traced_touch("c");
    otel_lines *lines = otel_lines_end();
    const otel_span a = enter("a");
    otel_lines_mount(lines, &a, 1, NULL);
    end(a);
    const otel_span b = begin("b");
    otel_lines_mount(lines, &b, 1, NULL);
    end(b);
    otel_lines_free(lines);
    assert_string_equal(traced_tree(), "a(c) b(c)");
    assert_withheld(0);
}

/* --- what was started under a detached span --- */

static void *touch_under(void *span)
{
    otel_span_end(begin_under(*(otel_span *)span, "of a thread"));
    return NULL;
}

TEST_QUEUED_TOO(a_detached_span_with_a_child_is_exported)
{
    otel_span a = begin("a");
    otel_span_end(begin_under(a, "b"));
    end(a);
    otel_span c = begin("c");
    traced_thread(touch_under, &c);
    end(c);
    const otel_span d = begin("d");
    const otel_context_token token = otel_context_attach((otel_context){.span = d});
    traced_touch("e");
    (void)otel_context_detach(token);
    end(d);
    assert_string_equal(traced_tree(), "a(b) c(of a thread) d(e)");
    assert_withheld(0);
}

TEST_QUEUED_TOO(what_is_started_beside_a_detached_span_is_no_child)
{
    const otel_span a = begin("a");
    const otel_span b = begin("b");
    traced_touch("c");
    end(a);
    end(b);
    assert_string_equal(traced_tree(), "c");
    assert_withheld(2);
}

static void *end_it(void *span)
{
    end(*(otel_span *)span);
    return NULL;
}

TEST_QUEUED_TOO(another_thread_can_withhold_a_detached_span)
{
    otel_span withheld = begin("withheld");
    traced_thread(end_it, &withheld);
    otel_span parent = begin("parent");
    otel_span_end(begin_under(parent, "child"));
    traced_thread(end_it, &parent);
    otel_span entered = enter("entered");
    traced_thread(end_it, &entered); /* it is not that thread's */
    otel_span_end(entered);
    assert_string_equal(traced_tree(), "parent(child) entered");
    assert_withheld(1);
}

TEST(a_fibre_that_comes_to_another_thread_has_what_it_started)
{
    otel_stack *fibre = otel_stack_new();
    (void)otel_stack_switch(fibre);
    const otel_span a = enter("a");
    short_one("b");
    (void)otel_stack_switch(NULL);
    traced_touch("elsewhere");
    (void)otel_stack_switch(fibre);
    end(a); /* whose child is not known from the other span of the thread */
    (void)otel_stack_switch(NULL);
    otel_stack_free(fibre);
    assert_string_equal(traced_tree(), "elsewhere a");
    assert_withheld(1);
}

/* --- held back, unsampled, ids of the program's --- */

static unsigned asked;

static bool keep_none(void *state, const otel_tail *tail)
{
    (void)state;
    (void)tail;
    asked++;
    return false;
}

TEST(a_held_span_is_withheld_from_its_set)
{
    const otel_span root = otel_span_enter(traced.tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    short_one("short");
    end(begin("detached"));
    traced_touch("left");
    otel_span_end(root);
    assert_string_equal(traced_tree(), "root(left)");
    assert_withheld(2);
}

static void *start_and_end_below(void *parent)
{
    const otel_context context =
        otel_context_with_span(otel_current_context(), *(otel_span *)parent);
    otel_span_end(
        otel_span_start(traced.tracer, "elsewhere", OTEL_SPAN_OPTIONS(.parent = &context)));
    return NULL;
}

TEST(a_root_that_holds_spans_of_another_thread_is_not_withheld)
{
    pthread_t thread;
    otel_span root = otel_span_enter(traced.tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    assert_int_equal(pthread_create(&thread, NULL, start_and_end_below, &root), 0);
    pthread_join(thread, NULL);
    end(root);
    assert_string_equal(traced_tree(), "root(elsewhere)");
    assert_withheld(0);
}

TEST(a_finished_span_is_a_child_also_with_ids_of_its_own)
{
    const uint8_t id[8] = {1, 2, 3};
    const otel_span span = enter("parent");
    const otel_span_context context = otel_span_get_context(span);
    otel_span_record(traced.tracer,
                     OTEL_FINISHED_SPAN(.name = "recorded", .trace_id = context.trace_id,
                                        .parent_span_id = context.span_id, .span_id = id,
                                        .flags = OTEL_TRACE_FLAG_SAMPLED, .start_ns = 1));
    end(span);
    assert_string_equal(traced_tree(), "parent(recorded)");
    assert_withheld(0);
}

TEST(a_root_that_holds_is_withheld_and_no_rule_is_asked)
{
    traced_stop();
    traced_start(&(otel_sdk_options){.tail_keep = keep_none, .log_level = "error"});
    asked = 0;
    short_one("root");
    end(begin("detached"));
    end(otel_span_enter(traced.tracer, "root", OTEL_SPAN_OPTIONS(.hold = true)));
    assert_withheld(3);
    assert_int_equal(asked, 0);
}

TEST(an_unsampled_span_just_ends)
{
    traced_stop();
    traced_start(&(otel_sdk_options){.traces_sampler = "always_off"});
    const otel_span span = enter("entered");
    end(span);
    end(begin("detached"));
    assert_false(otel_span_is_recording(span));
    assert_memory_equal(&(otel_span){{0}}, otel_current_span().opaque, sizeof(otel_span));
    assert_string_equal(traced_sums(), "2 started, 2 unsampled, 0 ended: delivered 0, dropped 0");
}

static void make_ids(void *state, uint8_t *trace_id, uint8_t *span_id)
{
    static uint8_t last;
    (void)state;
    *(trace_id != NULL ? trace_id : span_id) = ++last;
}

TEST(with_ids_of_the_programs_too)
{
    traced_stop();
    traced_start(&(otel_sdk_options){.generate_ids = make_ids});
    const otel_span a = enter("a");
    const otel_span b = enter("b");
    short_one("c");
    end(b);
    short_one("d");
    end(a);
    end(begin("e"));
    const otel_span f = enter("f");
    traced_touch("g");
    end(f);
    assert_string_equal(traced_tree(), "f(g)");
    assert_withheld(5);
}
