/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/hold_test.c - specification of api/held/span_set.h: roots that hold their
 * descendants back. Who belongs to them, and what becomes of those, is in property_test.c. */
#include "api/held/span_set.h"
#include "api/record/hold_table.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <unistd.h>

enum { LIMIT = 16 * 1024 };

static otel_span hold_local(const char *name)
{
    return otel_span_enter(traced.tracer, name, OTEL_SPAN_OPTIONS(.hold = true));
}

static otel_span hold_detached(const char *name)
{
    return otel_span_start(traced.tracer, name, OTEL_SPAN_OPTIONS(.hold = true));
}

static otel_span child_of(otel_span parent, const char *name)
{
    const otel_context context = {.span = parent};
    return otel_span_start(traced.tracer, name, OTEL_SPAN_OPTIONS(.parent = &context));
}

/* --- the decision --- */

AROUND_EACH(traced_setup, traced_teardown);

TEST_QUEUED_TOO(nothing_is_exported_before_the_root_ends)
{
    const otel_span root = hold_local("root");
    traced_touch("a");
    traced_touch("b");
    assert_string_equal(traced_tree(), "");
    assert_int_equal(traced_stats().open, 3);

    otel_span_end(root);

    assert_string_equal(traced_tree(), "root(a b)");
    assert_int_equal(traced_stats().delivered, 3);
}

/* --- rules --- */

static void restart(otel_sdk_options *options)
{
    options->simple = true;
    traced_stop();
    traced_start(options);
}

static void root_of_ns(const char *name, uint64_t duration_ns)
{
    const uint64_t start_ns = UINT64_C(1700000000000000000);
    const otel_span root =
        otel_span_enter(traced.tracer, name, OTEL_SPAN_OPTIONS(.start_ns = start_ns));
    traced_touch("below");
    otel_span_end_at(root, start_ns + duration_ns);
}

TEST(slow_roots_are_kept)
{
    restart(&(otel_sdk_options){.tail_keep_slower_than = 5});
    root_of_ns("fast", 4999999);
    root_of_ns("slow", 5000000);

    assert_string_equal(traced_tree(), "slow(below)");
    assert_only_withheld(OTEL_WITHHELD_NOT_KEPT, 2);
}

TEST(traces_with_an_error_are_kept)
{
    restart(&(otel_sdk_options){.tail_keep_errors = "true"});
    root_of_ns("fine", 1);
    const otel_span root = otel_span_enter(traced.tracer, "root", NULL);
    const otel_span failed = otel_span_enter(traced.tracer, "failed", NULL);
    otel_span_fail(failed, NULL);
    otel_span_end(failed);
    otel_span_end(root);
    const otel_span alone = otel_span_start(traced.tracer, "alone", NULL);
    otel_span_fail(alone, NULL);
    otel_span_end(alone);

    assert_string_equal(traced_tree(), "root(failed) alone");
    assert_only_withheld(OTEL_WITHHELD_NOT_KEPT, 2);
}

struct asked {
    int times;
    otel_tail tail;
    char name[16];
    bool answer;
};

static bool ask(void *state, const otel_tail *tail)
{
    struct asked *asked = state;
    asked->times++;
    asked->tail = *tail;
    snprintf(asked->name, sizeof asked->name, "%.*s", (int)tail->name.length, tail->name.data);
    traced_touch("inside"); /* is refused: the thread is in the middle of an end */
    return asked->answer;
}

TEST(the_program_is_asked_with_what_is_known)
{
    struct asked asked = {.answer = true};
    restart(&(otel_sdk_options){.tail_keep = ask, .tail_keep_state = &asked});
    root_of_ns("root", 77);

    assert_int_equal(asked.times, 1);
    assert_string_equal(asked.name, "root");
    assert_int_equal(asked.tail.size, sizeof asked.tail);
    assert_int_equal(asked.tail.duration_ns, 77);
    assert_int_equal(asked.tail.span_count, 2);
    assert_false(asked.tail.has_error);
    assert_string_equal(traced_tree(), "root(below)");
    assert_only_lost(OTEL_DROP_REENTRANT, 1);

    asked.answer = false;
    root_of_ns("root", 1);
    assert_string_equal(traced_tree(), "root(below)");
    assert_int_equal(traced_stats().withheld[OTEL_WITHHELD_NOT_KEPT], 2);
}

/* --- memory --- */

/* The set of a root that was kept is that of the root around it from then on. */
TEST(what_starts_below_a_kept_root_waits_for_the_root_around_it)
{
    const otel_span outer = hold_local("outer");
    const otel_span inner = hold_local("inner");
    const otel_span left = child_of(inner, "left");
    otel_span_end(inner);
    otel_span_end(child_of(left, "late"));
    otel_span_end(left);
    assert_string_equal(traced_tree(), "");
    otel_span_cancel(hold_detached("another"));

    otel_span_end(outer);

    assert_string_equal(traced_tree(), "outer(inner(left(late)))");
    assert_int_equal(traced_stats().open, 0);
}

TEST(what_does_not_fit_is_counted_and_the_root_is_not_lost)
{
    restart(&(otel_sdk_options){.held_max_bytes = LIMIT});
    const otel_span root = hold_local("root");
    for (int i = 0; i < 1000; i++)
        traced_touch("a");
    otel_span_end(root);

    const otel_stats stats = traced_stats();
    const uint64_t lost = stats.dropped[OTEL_DROP_HELD_LIMIT];
    assert_in_range(lost, 1, 999);
    assert_int_equal(stats.delivered, 1001 - lost);
    otel_span_view last;
    assert_true(otel_memory_span(traced.memory, stats.delivered - 1, &last));
    assert_memory_equal(last.name.data, "root", 4);
}

TEST(without_any_memory_allowed_only_roots_are_left)
{
    restart(&(otel_sdk_options){.held_max_bytes = 1});
    const otel_span root = hold_local("root");
    traced_touch("a");
    otel_span_end(root);
    otel_span_cancel(hold_local("gone"));

    assert_string_equal(traced_tree(), "root");
    assert_int_equal(traced_stats().dropped[OTEL_DROP_HELD_LIMIT], 2);
}

static void fill(otel_span root)
{
    for (int i = 0; i < 1000; i++)
        otel_span_end(child_of(root, "a"));
}

TEST(sets_share_one_limit_and_give_back_what_they_had)
{
    restart(&(otel_sdk_options){.held_max_bytes = LIMIT});
    const otel_span first = hold_detached("first");
    fill(first);
    const uint64_t lost = traced_stats().dropped[OTEL_DROP_HELD_LIMIT];
    const otel_span second = hold_detached("second");
    fill(second);
    assert_int_equal(traced_stats().dropped[OTEL_DROP_HELD_LIMIT], lost + 1000);
    otel_span_end(first);
    otel_span_end(second);

    const otel_span third = hold_detached("third"); /* has the buffer of one of them */
    const otel_span fourth = hold_detached("fourth");
    fill(fourth);
    assert_int_equal(traced_stats().dropped[OTEL_DROP_HELD_LIMIT], 2 * lost + 1000);
    otel_span_end(third);
    otel_span_end(fourth);
}

TEST(without_memory_a_root_holds_nothing_and_nothing_is_lost)
{
    size_t failures = 0;
    traced_touch("warm");
    for (size_t nth = 1;; nth++) {
        oteli_leaks_fail_at(nth);
        const otel_span root = hold_local("root");
        traced_touch("a");
        otel_span_end(root);
        const bool all_tried = !oteli_leaks_failed();
        (void)traced_stats();
        if (all_tried)
            break;
        failures++;
    }
    assert_in_range(failures, 1, 100);
}

TEST(sets_of_sets_that_were_given_up_are_used_again)
{
    for (int i = 0; i < 200; i++) { /* more than a part of the pool */
        if (i == 1)
            oteli_leaks_fail_at(1);
        const otel_span outer = hold_local("outer");
        otel_span_cancel(hold_local("inner"));
        otel_span_cancel(outer);
    }
    assert_false(oteli_leaks_failed());
}

/* --- SDKs come and go --- */

TEST_WITH(traced_setup_without_sdk, traced_teardown, without_an_sdk_all_is_harmless)
{
    const otel_span root = hold_local("root");
    traced_touch("a");
    otel_span_cancel(root);
    otel_span_cancel((otel_span){{0}});
    assert_null(otel_span_collect(root));
    assert_null(otel_span_collect((otel_span){{0}}));
    assert_string_equal(traced_tree(), "");
}

TEST_QUEUED_TOO(a_root_that_outlives_its_sdk_is_counted_there)
{
    const otel_span root = hold_local("root");
    traced_touch("a");
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    otel_span_end(root);

    assert_string_equal(traced_tree(), "");
    assert_only_lost(OTEL_DROP_ALREADY_SHUTDOWN, 2);
    assert_int_equal(traced_stats().open, 0);
}

TEST(a_root_of_a_former_sdk_holds_nothing_of_the_next)
{
    const otel_span local = hold_local("local");
    const otel_span detached = hold_detached("detached");
    traced_touch("old");
    restart(&(otel_sdk_options){0});
    traced_touch("a");
    otel_span_end(child_of(detached, "b"));
    otel_span_end(detached);
    otel_span_end(local);
    otel_span_end(child_of(detached, "c"));

    assert_string_equal(traced_tree(), "?a ?b ?c");
    const otel_stats stats = traced_stats();
    assert_int_equal(stats.started, 3);
    assert_int_equal(stats.ended, 3);
    assert_int_equal(stats.delivered, 3);
}

/* In a forked child: 0 when all is as it should be. */
static int live_as_child(otel_span root, otel_span late, otel_lines *lines)
{
    if (otel_lines_size(lines) != 1)
        return 1;
    otel_lines_mount(lines, &root, 1, NULL);
    otel_lines_free(lines);
    otel_span_end(root);
    traced_start(&(otel_sdk_options){.simple = true});
    otel_span_end(child_of(root, "below the parent's"));
    otel_span_end(child_of(late, "below the parent's late one"));
    for (int i = 0; i < 200; i++)
        otel_span_end(hold_detached("child's"));
    otel_span_end(child_of(root, "below the parent's"));
    const otel_stats stats = traced_stats();
    return stats.delivered != 203 || stats.open != 0;
}

TEST(a_forked_child_has_none_of_the_sets)
{
    const otel_span root = hold_local("root");
    otel_lines_begin();
    traced_touch("a");
    otel_lines *lines = otel_lines_end();
    const otel_span gone = hold_detached("gone");
    otel_span_cancel(gone);
    const otel_context under_gone = {.span = gone};
    const otel_span late =
        otel_span_enter(traced.tracer, "late", OTEL_SPAN_OPTIONS(.parent = &under_gone));
    const pid_t child = fork();
    if (child == 0)
        _exit(live_as_child(root, late, lines));
    check_forked(child);

    otel_lines_free(lines);
    otel_span_end(late);
    otel_span_end(root);
    assert_string_equal(traced_tree(), "root");
    const otel_stats stats = traced_stats();
    assert_int_equal(stats.withheld[OTEL_WITHHELD_UNMOUNTED], 1);
    assert_int_equal(stats.withheld[OTEL_WITHHELD_LATE], 1);
}

/* --- the table of roots that hold: api/record/hold_table.h --- */

enum { WAYS = 8 }; /* that the table has for one trace */

static struct otel_lines *holder_of(uint64_t trace)
{
    const uint64_t trace_id[2] = {trace, 1};
    struct otel_lines *hold = oteli_hold_new(oteli_self->generation, trace_id);
    assert_non_null(hold);
    oteli_holders_add(hold);
    return hold;
}

static void decide(struct otel_lines *hold, bool kept)
{
    oteli_holders_decide(hold, kept);
    oteli_hold_leave(hold);
}

static struct otel_lines *find(uint64_t trace, uint32_t number, uint8_t *end_as)
{
    const uint64_t trace_id[2] = {trace, 1};
    *end_as = 0;
    return oteli_holders_find(trace_id, number, end_as);
}

/* A state for this thread, of the recorder's SDK. */
static int with_a_state(void **state)
{
    recorder_setup(state);
    assert_non_null(oteli_thread_refresh());
    return 0;
}

TEST_WITH(with_a_state, recorder_teardown,
          the_oldest_verdict_makes_room_and_what_is_undecided_stays)
{
    uint8_t end_as;
    uint32_t numbers[WAYS];
    struct otel_lines *undecided = holder_of(1);
    for (int i = 1; i < WAYS; i++) {
        struct otel_lines *hold = holder_of(1);
        numbers[i] = hold->number;
        decide(hold, false);
    }
    struct otel_lines *newest = holder_of(1);

    assert_null(find(1, numbers[1], &end_as));
    assert_int_equal(end_as, 0); /* forgotten */
    assert_null(find(1, numbers[2], &end_as));
    assert_int_equal(end_as, OTELI_END_LATE);
    assert_ptr_equal(find(1, undecided->number, &end_as), undecided);

    oteli_hold_leave(undecided);
    decide(undecided, true);
    decide(newest, true);
}

TEST_WITH(with_a_state, recorder_teardown, a_root_that_lost_its_place_decides_nothing)
{
    uint8_t end_as;
    struct otel_lines *holds[WAYS + 1];
    for (int i = 0; i <= WAYS; i++)
        holds[i] = holder_of(1);

    assert_null(find(1, holds[0]->number, &end_as));
    assert_int_equal(end_as, 0);
    for (int i = 0; i <= WAYS; i++)
        decide(holds[i], false);

    assert_null(find(1, holds[0]->number, &end_as));
    assert_int_equal(end_as, 0);
    assert_null(find(1, holds[1]->number, &end_as));
    assert_int_equal(end_as, OTELI_END_LATE);
}

TEST_WITH(with_a_state, recorder_teardown, a_number_is_not_used_again_soon)
{
    struct otel_lines *first = holder_of(1);
    const uint32_t number = first->number;
    decide(first, false);
    for (int i = 0; i < OTELI_HOLDER_MAX; i++) {
        struct otel_lines *hold = holder_of(1);
        assert_int_not_equal(hold->number, number);
        assert_in_range(hold->number, 0, OTELI_HOLDER_MAX);
        decide(hold, true);
    }
}
