/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/spec_processor_test.c - what span processors are told, what they may do then, to
 * their span, their thread and their process, and which spans never end for them: the rows of the
 * specification, and otel/processor.h. */
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/unit.h"
#include "tests/support/watcher.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* End a span of this thread, and one that is detached. */
static void touch_both(void)
{
    otel_span_end(watcher_enter("a"));
    otel_span_end(watcher_begin("b"));
}

AROUND_EACH(watcher_setup, traced_teardown);

/* spec: P1 trace/sdk.md#span-processor MUST stable */
TEST(P1_processors_are_called_in_the_order_of_their_registration)
{
    watcher_start(2, &(otel_sdk_options){0});

    const otel_span entered = watcher_enter("a");
    assert_string_equal(watcher_journal(), "+ +2 ");
    const otel_span started = watcher_begin("b");
    assert_string_equal(watcher_journal(), "+ +2 ");
    otel_span_end(started);
    assert_string_equal(watcher_journal(), "! !2 -b -2b ");
    otel_span_end(entered);
    assert_string_equal(watcher_journal(), "! !2 -a -2a ");

    assert_string_equal(traced_tree(), "a(b)");
}

static otel_context_key key;
static void *value_of_parent;
static otel_span parent_of_start;

static void change(otel_span span, const otel_context *parent)
{
    assert_true(otel_span_is_recording(span));
    otel_span_set_string(span, "set.in.start", "x");
    otel_span_update_name(span, "renamed");
    otel_span_add_event(span, "event", NULL, 0);
    value_of_parent = otel_context_get_value(parent, key);
    parent_of_start = parent->span;
}

static otel_span_view view_of_end;

static void keep_view(const otel_span_view *span)
{
    assert_true(watcher_has_attribute(span, "set.in.start"));
    assert_true(watcher_has_attribute(span, "set.later"));
    assert_int_equal(span->size, sizeof *span);
    assert_memory_equal(span->scope->name.data, "traced", 6);
    assert_true(otel_span_view_resource(span).length != 0);
    view_of_end = *span;
}

/* spec: P1 trace/sdk.md#onstart MUST stable */
TEST(P1_on_start_can_change_the_span_and_knows_its_context)
{
    int value;
    otel_context_value place;
    key = otel_context_create_key("k");
    first.in_start = change;
    first.in_end = keep_view;
    watcher_start(1, &(otel_sdk_options){.simple = true});
    const uint8_t trace_id[16] = {7};
    const uint8_t span_id[8] = {9};
    const otel_span_context remote =
        otel_span_context_make(trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED, true, "a=1");
    const otel_context parent = otel_context_with_value(
        (otel_context){.span = otel_span_wrap(&remote)}, key, &value, &place);
    const otel_span_options *options =
        OTEL_SPAN_OPTIONS(.parent = &parent, .kind = OTEL_SPAN_KIND_CLIENT, .start_ns = 1000);

    for (unsigned way = 0; way < 2; way++) {
        value_of_parent = NULL;
        const otel_span span = way == 0 ? otel_span_enter(traced.tracer, "name", options)
                                        : otel_span_start(traced.tracer, "name", options);
        assert_memory_equal(&span, &seen, sizeof span);
        assert_ptr_equal(value_of_parent, &value);
        assert_memory_equal(otel_span_get_context(parent_of_start).span_id, span_id, 8);
        otel_span_set_int(span, "set.later", 1);
        otel_span_fail(span, "why");
        otel_span_end_at(span, 3000);
        assert_string_equal(watcher_journal(), "+ ! -renamed ");
        assert_int_equal(view_of_end.start_ns, 1000);
        assert_int_equal(view_of_end.end_ns, 3000);
        assert_int_equal(view_of_end.kind, OTEL_SPAN_KIND_CLIENT);
        assert_int_equal(view_of_end.status, OTEL_SPAN_STATUS_ERROR);
        assert_int_equal(view_of_end.flags, 0x301);
        assert_true(watcher_exported(way, "set.in.start"));
    }
}

/* spec: P1 trace/sdk.md#onstart MUST stable */
TEST(P1_spans_that_do_not_record_are_not_told_of)
{
    watcher_start(1, &(otel_sdk_options){.traces_sampler = "always_off"});
    touch_both();
    assert_string_equal(watcher_journal(), "");
}

/* spec: P1 trace/sdk.md#shutdown-1 MUST stable */
TEST(P1_flush_and_shutdown_reach_processors)
{
    watcher_start(2, &(otel_sdk_options){0});
    const otel_span open = watcher_begin("open");

    assert_int_equal(otel_flush(60000), OTEL_OK);
    assert_int_equal(first.flushes, 1);
    assert_in_range(first.flush_timeout_ms, 1, 60000);
    second.flush_status = OTEL_ERROR_EXPORT_FAILED;
    assert_int_equal(otel_flush(60000), OTEL_ERROR_EXPORT_FAILED);
    second.flush_status = OTEL_ERROR_TIMEOUT;
    assert_int_equal(otel_flush(60000), OTEL_ERROR_TIMEOUT);
    second.flush_status = OTEL_OK;
    assert_int_equal(first.frees, 0);

    traced_stop();

    assert_int_equal(first.flushes, 4);
    assert_int_equal(first.frees, 1);
    assert_int_equal(second.frees, 1);
    (void)watcher_journal();
    otel_span_end(open);
    otel_span_end(watcher_enter("later"));
    assert_string_equal(watcher_journal(), "");
}

/* spec: P1 trace/sdk.md#span-processor MUST stable */
TEST(P1_processors_are_adopted_also_when_nothing_is_started)
{
    watcher_start(1, &(otel_sdk_options){0});
    const otel_processor unused = watcher_processor(&second);
    const otel_status status =
        otel_start_with(OTEL_SDK_OPTIONS(.processors = &unused, .processor_count = 1));
    assert_int_equal(status, OTEL_ERROR_ALREADY_STARTED);
    assert_int_equal(second.frees, 1);
    assert_int_equal(first.frees, 0);
}

static void start_spans(otel_span span, const otel_context *parent)
{
    (void)span;
    (void)parent;
    otel_span_end(watcher_enter("inner"));
    otel_span_end(watcher_begin("inner"));
}

static void start_spans_at_ending(otel_span span, uint64_t end_ns)
{
    (void)end_ns;
    start_spans(span, NULL);
}

static void start_spans_at_end(const otel_span_view *span)
{
    (void)span;
    for (unsigned depth = 0; depth < 40; depth++) /* beyond the places that there are at first */
        (void)watcher_enter("deep");
    for (unsigned depth = 0; depth < 40; depth++)
        otel_span_end(otel_current_span());
}

/* spec: P1 trace/sdk.md#span-processor MUST stable */
TEST(P1_spans_of_a_processor_are_exported_and_not_told_of)
{
    first.in_start = start_spans;
    first.in_ending = start_spans_at_ending;
    first.in_end = start_spans_at_end;
    watcher_start(1, &(otel_sdk_options){0});

    const otel_span a = watcher_enter("a");
    otel_span_end(watcher_begin("b"));
    otel_span_end(a);
    otel_span_end(watcher_enter("c"));

    assert_string_equal(watcher_journal(), "+ + ! -b ! -a + ! -c ");
    assert_int_equal(traced_stats().delivered, 3 + 3 * (2 + 2 + 40));
    assert_int_equal(otel_current_span().opaque[2], 0);
}

static void end_it_again(otel_span span, uint64_t end_ns)
{
    (void)end_ns;
    otel_span_end(span);
    otel_span_end(span);
}

static void end_seen(const otel_span_view *span)
{
    (void)span;
    assert_false(otel_span_is_recording(seen));
    otel_span_set_int(seen, "too.late", 1);
    otel_span_end(seen);
}

/* spec: A21 trace/api.md#end MUST stable */
TEST(a_span_that_ends_in_its_own_end_ends_once)
{
    first.in_ending = end_it_again;
    first.in_end = end_seen;
    watcher_start(1, &(otel_sdk_options){.simple = true});
    touch_both();
    assert_string_equal(watcher_journal(), "+ ! -a + ! -b ");
    assert_string_equal(traced_tree(), "a b");
    assert_false(watcher_exported(0, "too.late") || watcher_exported(1, "too.late"));
}

static void end_at_start(otel_span span, const otel_context *parent)
{
    (void)parent;
    otel_span_end(span);
}

TEST(a_span_can_be_ended_when_it_starts)
{
    first.in_start = end_at_start;
    watcher_start(1, &(otel_sdk_options){0});
    const otel_span a = watcher_enter("a");
    assert_false(otel_span_is_recording(a));
    assert_int_equal(otel_current_span().opaque[2], 0);
    otel_span_end(a);
    otel_span_end(watcher_begin("b"));
    assert_string_equal(watcher_journal(), "+ ! -a + ! -b ");
    assert_string_equal(traced_tree(), "a b");
}

/* --- P2 --- */

static uint64_t ending_ns;
static uint64_t ended_ns; /* of the first span */

static void set_at_ending(otel_span span, uint64_t end_ns)
{
    assert_true(otel_span_is_recording(span));
    otel_span_set_int(span, "set.in.ending", 1);
    otel_span_set_string(span, "another", "value");
    otel_span_update_name(span, "a name that is too long to be kept in the place of its span");
    ending_ns = end_ns;
}

static void check_ended(const otel_span_view *span)
{
    assert_true(watcher_has_attribute(span, "set.in.ending"));
    assert_int_equal(span->end_ns, ending_ns);
    ended_ns = ended_ns != 0 ? ended_ns : span->end_ns;
}

/* spec: P2 trace/sdk.md#onending MUST development */
TEST(P2_on_ending_can_change_the_span_before_any_on_end)
{
    second.in_ending = set_at_ending;
    first.in_end = check_ended;
    ended_ns = 0;
    watcher_start(2, &(otel_sdk_options){0});

    otel_span_end(watcher_enter("a"));
    otel_span_end_at(watcher_begin("b"), 5000);

    assert_int_equal(ending_ns, 5000);
    assert_true(watcher_exported(0, "set.in.ending"));
    assert_true(watcher_exported(1, "set.in.ending"));
    otel_span_view exported;
    otel_memory_span(traced.memory, 1, &exported);
    assert_int_equal(exported.name.length, 59);
    assert_int_equal(exported.end_ns, 5000);
    otel_memory_span(traced.memory, 0, &exported);
    assert_int_equal(exported.end_ns, ended_ns);
    assert_true(exported.end_ns >= exported.start_ns);
}

static void *use_from_elsewhere(void *unused)
{
    assert_false(otel_span_is_recording(seen));
    otel_span_set_int(seen, "set.elsewhere", 1);
    otel_span_set_string(seen, "set.elsewhere", "x");
    otel_span_end_at(seen, 1);
    return unused;
}

static void let_others_try(otel_span span, uint64_t end_ns)
{
    set_at_ending(span, end_ns);
    traced_thread(use_from_elsewhere, NULL);
    otel_span_set_int(span, "set.after", 1);
}

static void let_others_try_at_end(const otel_span_view *span)
{
    (void)span;
    traced_thread(use_from_elsewhere, NULL);
}

/* spec: P2 trace/sdk.md#onending MUST development */
TEST(P2_nobody_else_changes_a_span_that_is_ending)
{
    first.in_ending = let_others_try;
    first.in_end = let_others_try_at_end;
    watcher_start(1, &(otel_sdk_options){0});

    touch_both();

    assert_int_equal(traced_stats().delivered, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_true(watcher_exported(i, "set.in.ending") && watcher_exported(i, "set.after"));
        assert_false(watcher_exported(i, "set.elsewhere"));
    }
}

static void cancel(otel_span span, uint64_t end_ns)
{
    (void)end_ns;
    otel_span_cancel(span);
}

TEST(a_processor_can_cancel_what_is_ending)
{
    first.in_ending = cancel;
    watcher_start(1, &(otel_sdk_options){0});
    touch_both();
    assert_string_equal(watcher_journal(), "+ ! + ! ");
    assert_string_equal(traced_tree(), "");
    assert_only_withheld(OTEL_WITHHELD_CANCELLED, 2);
}

/* --- which spans end --- */

TEST(what_is_cancelled_or_too_short_does_not_reach_on_end)
{
    watcher_start(1, &(otel_sdk_options){0});
    otel_span_cancel(watcher_enter("a"));
    otel_span_cancel(watcher_begin("b"));
    const otel_span root = otel_span_enter(traced.tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    otel_span_cancel(root);
    const otel_span function = otel_span_enter_address(traced.tracer, (void *)0x1234);
    otel_span_end_unless_shorter(function, UINT64_C(3600000000000));
    assert_string_equal(watcher_journal(), "+ + + + ");

    otel_span_end_unless_shorter(otel_span_enter_address(traced.tracer, (void *)0x1234), 0);

    assert_string_equal(watcher_journal(), "+ ! -0x1234 ");
    assert_string_equal(traced_tree(), "0x1234");
    assert_string_equal(traced_sums(), "5 started, 5 ended: delivered 1, withheld 4 "
                                       "(cancelled 3, too_short 1), dropped 0");
}

TEST(what_is_held_back_reaches_on_end_when_it_ends)
{
    watcher_start(1, &(otel_sdk_options){.tail_keep_errors = "true"});
    const otel_span root = watcher_enter("root");
    otel_span_end(watcher_begin("child"));
    assert_string_equal(watcher_journal(), "+ + ! -child ");
    assert_string_equal(traced_tree(), "");
    otel_span_end(root);
    assert_string_equal(watcher_journal(), "! -root ");
    assert_only_withheld(OTEL_WITHHELD_NOT_KEPT, 2);
}

static void expect_unsampled(const otel_span_view *span)
{
    assert_int_equal(span->flags & OTEL_TRACE_FLAG_SAMPLED, 0);
}

TEST(what_is_collected_is_seen_as_not_sampled)
{
    first.in_end = expect_unsampled;
    watcher_start(1, &(otel_sdk_options){.simple = true});
    otel_lines_begin();
    otel_span_end(watcher_enter("work"));
    otel_lines *work = otel_lines_end();
    first.in_end = NULL;
    const otel_span parent = watcher_begin("parent");
    otel_lines_mount(work, &parent, 1, NULL);
    otel_lines_free(work);
    otel_span_end(parent);
    assert_string_equal(watcher_journal(), "+ ! -work + ! -parent ");
    assert_string_equal(traced_tree(), "parent(work)");
    otel_span_view exported;
    assert_true(otel_memory_span(traced.memory, 0, &exported));
    assert_int_equal(exported.flags & OTEL_TRACE_FLAG_SAMPLED, OTEL_TRACE_FLAG_SAMPLED);
}

static void *leave_open(void *unused)
{
    (void)watcher_enter("a");
    return unused;
}

TEST(what_a_thread_leaves_open_never_ends)
{
    watcher_start(1, &(otel_sdk_options){0});
    traced_thread(leave_open, NULL);
    assert_string_equal(watcher_journal(), "+ ");
    assert_only_lost(OTEL_DROP_ABANDONED, 1);
}

static void exit_thread(otel_span span, uint64_t end_ns)
{
    (void)span;
    (void)end_ns;
    pthread_exit(NULL);
}

static void *touch_in_thread(void *is_local)
{
    otel_span_end(*(bool *)is_local ? watcher_enter("a") : watcher_begin("a"));
    return NULL;
}

TEST(a_thread_may_exit_in_a_processor)
{
    bool ways[] = {true, false};
    first.in_ending = exit_thread;
    watcher_start(1, &(otel_sdk_options){0});
    traced_thread(touch_in_thread, &ways[0]);
    traced_thread(touch_in_thread, &ways[1]);
    first.in_ending = NULL;
    traced_thread(touch_in_thread, &ways[0]);
    traced_thread(touch_in_thread, &ways[1]);
    assert_string_equal(watcher_journal(), "+ ! + ! + ! -a + ! -a ");
    /* the detached one is nobody's any more */
    assert_string_equal(traced_sums(), "4 started, 1 open, 3 ended: delivered 2, dropped 1 "
                                       "(abandoned 1)");
}

static void shut_down(const otel_span_view *span)
{
    (void)span;
    assert_int_equal(otel_shutdown(0), OTEL_ERROR_TIMEOUT); /* we are inside */
    assert_int_equal(first.frees, 0);
}

TEST(a_shutdown_in_a_processor_leaves_it_alive)
{
    first.in_end = shut_down;
    watcher_start(1, &(otel_sdk_options){.simple = true});
    otel_span_end(watcher_enter("a"));
    assert_string_equal(watcher_journal(), "+ ! -a ");
    assert_int_equal(first.frees, 0);
    oteli_lifecycle_reset();
    assert_int_equal(first.frees, 1);
}

static otel_span parents;

static int trace_in_child(void)
{
    otel_span_end(parents); /* not told of here */
    (void)watcher_journal();
    const bool was_parents = strcmp(watcher_journal(), "") == 0;
    otel_span_end(watcher_enter("child"));
    const bool is_told = strcmp(watcher_journal(), "+ ! -child ") == 0;
    const bool is_stopped = otel_shutdown(60000) != OTEL_ERROR_TIMEOUT;
    return was_parents && is_told && is_stopped && first.frees == 1 ? 0 : 1;
}

TEST(a_forked_child_keeps_the_processors)
{
    watcher_start(1, &(otel_sdk_options){0});
    parents = watcher_enter("parents");
    check_child(trace_in_child);
    otel_span_end(parents);
    assert_string_equal(watcher_journal(), "+ ! -parents ");
}

static pid_t forked;

static void fork_in_ending(otel_span span, uint64_t end_ns)
{
    (void)span;
    (void)end_ns;
    forked = fork();
}

TEST(a_processor_may_fork)
{
    first.in_ending = fork_in_ending;
    watcher_start(1, &(otel_sdk_options){0});
    for (unsigned way = 0; way < 2; way++) {
        watcher_journal();
        otel_span_end(way == 0 ? watcher_enter("a") : watcher_begin("a"));
        if (forked == 0) {
            first.in_ending = NULL;
            _exit(strcmp(watcher_journal(), "+ ! ") != 0 || otel_current_span().opaque[2] != 0);
        }
        check_forked(forked);
        assert_string_equal(watcher_journal(), "+ ! -a ");
    }
}
