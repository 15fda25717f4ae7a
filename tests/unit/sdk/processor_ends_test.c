/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/processor_ends_test.c - which spans a processor is told have ended (otel/processor.h),
 * and what a processor may do to its thread and its process. */
#include "sdk/engine.h"
#include "tests/support/unit.h"
#include "tests/support/watcher.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

AROUND_EACH(watcher_setup, traced_teardown);

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
    assert_int_equal(traced_stats().withheld[OTEL_WITHHELD_CANCELLED], 3);
    assert_int_equal(traced_stats().withheld[OTEL_WITHHELD_TOO_SHORT], 1);
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

static void *end_local(void *unused)
{
    otel_span_end(watcher_enter("a"));
    return unused;
}

static void *end_detached(void *unused)
{
    otel_span_end(watcher_begin("a"));
    return unused;
}

TEST(a_thread_may_exit_in_a_processor)
{
    first.in_ending = exit_thread;
    watcher_start(1, &(otel_sdk_options){0});
    traced_thread(end_local, NULL);
    traced_thread(end_detached, NULL);
    first.in_ending = NULL;
    traced_thread(end_local, NULL);
    traced_thread(end_detached, NULL);
    assert_string_equal(watcher_journal(), "+ ! + ! + ! -a + ! -a ");
    assert_int_equal(traced_stats().delivered, 2);
    assert_int_equal(traced_stats().dropped[OTEL_DROP_ABANDONED], 1);
    assert_int_equal(traced_stats().open, 1); /* the detached one is nobody's any more */
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

static void run_child(void)
{
    (void)watcher_journal();
    const bool was_parents = strcmp(watcher_journal(), "") == 0;
    otel_span_end(watcher_enter("child"));
    const bool is_told = strcmp(watcher_journal(), "+ ! -child ") == 0;
    const bool is_stopped = otel_shutdown(60000) != OTEL_ERROR_TIMEOUT;
    _exit(was_parents && is_told && is_stopped && first.frees == 1 ? 0 : 1);
}

static int status_of(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

TEST(a_forked_child_keeps_the_processors)
{
    watcher_start(1, &(otel_sdk_options){0});
    const otel_span open = watcher_enter("parents");
    const pid_t child = fork();
    if (child == 0) {
        otel_span_end(open); /* the parent's: not told of here */
        run_child();
    }
    assert_int_equal(status_of(child), 0);
    otel_span_end(open);
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
        assert_int_equal(status_of(forked), 0);
        assert_string_equal(watcher_journal(), "+ ! -a ");
    }
}
