/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/parents_test.c - specification of otel_parents: spans that are remembered, from
 * any thread and past their end, until lines are mounted under them. */
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <string.h>

static otel_parents *parents;
static char last_log[200];

static void keep_log(void *state, otel_log_level level, const char *message)
{
    (void)state;
    (void)level;
    strncpy(last_log, message, sizeof last_log - 1);
}

static int set_up(void **state)
{
    const int status = traced_setup_queued(state);
    parents = otel_parents_new(3);
    assert_non_null(parents);
    last_log[0] = '\0';
    return status;
}

static int tear_down(void **state)
{
    otel_parents_free(parents);
    return traced_teardown(state);
}

static bool add(otel_span span)
{
    return otel_parents_add(parents, &span);
}

/* A request, which ends before the work that it waits for is exported. */
static bool add_request(const char *name)
{
    const otel_span span = otel_span_enter(traced.tracer, name, NULL);
    const bool is_added = add(span);
    otel_span_end(span);
    return is_added;
}

static otel_lines *work(const char *name)
{
    otel_lines_begin();
    traced_touch(name);
    return otel_lines_end();
}

static void mount(const char *name)
{
    otel_lines *lines = work(name);
    otel_parents_mount(parents, lines, NULL);
    otel_lines_free(lines);
}

AROUND_EACH(set_up, tear_down);

TEST(lines_are_mounted_under_all_that_are_remembered)
{
    assert_true(add_request("a"));
    assert_true(add_request("b"));
    mount("sync");
    assert_true(add_request("c"));
    mount("again");
    mount("for none");
    assert_string_equal(traced_tree(), "a(sync) b(sync) c(again)");
    assert_only_withheld(OTEL_WITHHELD_UNMOUNTED, 1);
}

TEST(a_detached_span_is_mounted_under_before_and_after_its_end)
{
    const otel_span open = otel_span_start(traced.tracer, "open", NULL);
    const otel_span ended = otel_span_start(traced.tracer, "ended", NULL);
    assert_true(add(open));
    assert_true(add(ended));
    otel_span_end(ended);
    mount("sync");
    otel_span_end(open);
    assert_string_equal(traced_tree(), "ended(sync) open(sync)");
}

TEST(outermost_spans_get_the_link_of_the_options)
{
    const otel_span commit = otel_span_enter(traced.tracer, "commit", NULL);
    const otel_span_context shared = otel_span_get_context(commit);
    assert_true(add(otel_span_start(traced.tracer, "open", NULL)));
    otel_lines *lines = work("sync");
    otel_parents_mount(parents, lines, OTEL_MOUNT_OPTIONS(.linked = &shared));
    otel_lines_free(lines);
    otel_span_end(commit);
    otel_span_view view = {.size = sizeof view};
    size_t links = 0;
    (void)traced_tree();
    for (size_t i = 0; otel_memory_span(traced.memory, i, &view); i++)
        links += view.links.length != 0;
    assert_int_equal(links, 1);
}

TEST(one_that_is_added_twice_gets_the_lines_twice)
{
    const otel_span a = otel_span_enter(traced.tracer, "a", NULL);
    assert_true(add(a));
    assert_true(add(a));
    otel_span_end(a);
    mount("sync");
    assert_string_equal(traced_tree(), "a(sync sync)");
}

TEST(what_finds_no_room_is_left_out_and_said)
{
    otel_log_set_handler(keep_log, NULL);
    assert_true(add_request("a"));
    assert_true(add_request("b"));
    assert_true(add_request("c"));
    assert_false(add_request("d"));
    assert_false(add_request("e"));
    mount("sync");
    assert_string_equal(last_log,
                        "2 spans are without the lines that were mounted: an otel_parents "
                        "remembers 3");
    last_log[0] = '\0';
    assert_true(add_request("f")); /* there is room again */
    mount("again");
    assert_string_equal(last_log, "");
    otel_log_set_handler(NULL, NULL);
    assert_int_equal(traced_stats().delivered, 6 + 4);
}

TEST(the_place_of_each_is_used_again)
{
    for (int i = 0; i < 1000; i++) {
        for (int k = 0; k <= i % 3; k++)
            assert_true(add_request("a"));
        if (i % 2 == 0)
            mount("sync");
        else
            otel_parents_mount(parents, NULL, NULL);
        if (i % 100 == 0)
            assert_int_equal(otel_flush(60000), OTEL_OK);
    }
    otel_span_view view = {.size = sizeof view};
    size_t mounted = 0;
    (void)traced_tree();
    for (size_t i = 0; otel_memory_span(traced.memory, i, &view); i++)
        mounted += view.name.length == 4;
    size_t expected = 0;
    for (size_t i = 0; i < 1000; i += 2)
        expected += i % 3 + 1;
    assert_int_equal(mounted, expected);
}

TEST(more_than_are_mounted_at_once)
{
    enum { MANY = 150 };
    otel_parents *many = otel_parents_new(MANY);
    const otel_span a = otel_span_enter(traced.tracer, "a", NULL);
    for (int i = 0; i < MANY; i++)
        assert_true(otel_parents_add(many, &a));
    assert_false(otel_parents_add(many, &a));
    otel_lines *lines = work("b");
    otel_parents_mount(many, lines, NULL);
    otel_lines_free(lines);
    otel_span_end(a);
    otel_parents_free(many);
    assert_int_equal(traced_stats().delivered, 1 + MANY);
}

TEST(lines_that_are_null_only_forget)
{
    assert_true(add_request("a"));
    otel_parents_mount(parents, NULL, NULL);
    mount("sync");
    assert_string_equal(traced_tree(), "a");
}

TEST(what_is_not_sampled_takes_no_room)
{
    const otel_span_context unsampled = {.trace_id = {1}, .span_id = {1}};
    for (int i = 0; i < 10; i++) {
        assert_true(add(otel_span_wrap(&unsampled)));
        assert_true(add((otel_span){{0}}));
    }
    otel_lines_begin();
    assert_true(add_request("of a stretch, which is no trace"));
    otel_lines_free(otel_lines_end());
    for (int i = 0; i < 3; i++)
        assert_true(add_request("a"));
    assert_false(add_request("a"));
}

/* That of a span is kept while it is open; here it has ended, and thousands have come since. */
TEST(a_tracestate_is_kept_until_the_mount)
{
    const uint8_t trace_id[16] = {7}, span_id[8] = {8};
    const otel_span_context remote =
        otel_span_context_make(trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED, true, "key=value");
    assert_true(add(otel_span_wrap(&remote)));
    for (int i = 0; i < 10000; i++)
        (void)otel_span_context_make(trace_id, span_id, 0, true, "other=1");
    mount("sync");
    (void)traced_tree();
    otel_span_view view = {.size = sizeof view};
    assert_true(otel_memory_span(traced.memory, 0, &view));
    assert_int_equal(view.tracestate.length, 9);
    assert_memory_equal(view.tracestate.data, "key=value", 9);
}

TEST(one_that_could_not_be_made_remembers_nothing)
{
    const otel_span a = otel_span_enter(traced.tracer, "a", NULL);
    assert_null(otel_parents_new(0));
    assert_null(otel_parents_new(SIZE_MAX));
    assert_false(otel_parents_add(NULL, &a));
    otel_span_end(a);
    otel_lines *lines = work("b");
    otel_parents_mount(NULL, lines, NULL);
    otel_lines_free(lines);
    otel_parents_free(NULL);
}

/* --- a forked child --- */

static int forget_and_add(void)
{
    const otel_span_context sampled = {.trace_id = {1}, .span_id = {1}, .flags = 1};
    otel_parents_mount(parents, NULL, NULL);
    int wrong = 0;
    for (int i = 0; i < 3; i++)
        wrong += !add(otel_span_wrap(&sampled));
    return wrong + add(otel_span_wrap(&sampled));
}

TEST(a_child_forgets_what_its_parent_remembers)
{
    assert_true(add_request("a"));
    check_child(forget_and_add);
    mount("sync");
    assert_string_equal(traced_tree(), "a(sync)");
}
