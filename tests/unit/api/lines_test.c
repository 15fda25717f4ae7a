/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/lines_test.c - specification of otel/lines.h: collected stretches, taken traces,
 * and what mounting makes of them. More of what belongs to a stretch is in property_test.c. */
#include "tests/support/carrier.h"
#include "tests/support/fake_exporter.h"
#include "tests/support/leaks.h"
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <string.h>

enum { PARENTS = 20 };

static otel_span enter(const char *name)
{
    return otel_span_enter(traced.tracer, name, NULL);
}

static const uint8_t remote_span_id[8] = {8};

static otel_span remote(uint8_t flags)
{
    const uint8_t trace_id[16] = {7};
    const otel_span_context context =
        otel_span_context_make(trace_id, remote_span_id, flags, true, NULL);
    return otel_span_wrap(&context);
}

/* a(b) and c. */
static otel_lines *collect_three(void)
{
    otel_lines_begin();
    const otel_span a = enter("a");
    traced_touch("b");
    otel_span_end(a);
    traced_touch("c");
    return otel_lines_end();
}

static void mount_and_free(otel_lines *lines, otel_span parent)
{
    otel_lines_mount(lines, &parent, 1, NULL);
    otel_lines_free(lines);
}

/* --- stretches --- */

AROUND_EACH(traced_setup, traced_teardown);

TEST_QUEUED_TOO(a_stretch_is_collected_and_not_exported)
{
    otel_lines *lines = collect_three();
    size_t cursor = 0;
    otel_span_view view;

    assert_int_equal(otel_lines_size(lines), 3);
    static const char names[] = "bac";
    for (int i = 0; i < 3; i++) {
        assert_true(otel_lines_next(lines, &cursor, &view));
        assert_int_equal(view.name.data[0], names[i]);
        assert_true(view.end_ns >= view.start_ns && view.start_ns > UINT64_C(1500000000000000000));
    }
    assert_false(otel_lines_next(lines, &cursor, &view));
    assert_string_equal(traced_tree(), "");
    assert_int_equal(traced_stats().open, 3);

    otel_lines_free(lines);
    assert_only_withheld(OTEL_WITHHELD_UNMOUNTED, 3);
    assert_int_equal(traced_stats().open, 0);
}

TEST_QUEUED_TOO(it_goes_on_when_a_span_around_it_ends)
{
    const otel_span outer = enter("outer");
    otel_lines_begin();
    const otel_context request = {.span = outer};
    const otel_span other =
        otel_span_enter(traced.tracer, "other", OTEL_SPAN_OPTIONS(.parent = &request));
    otel_span_end(outer);
    traced_touch("collected");
    otel_lines *lines = otel_lines_end();
    otel_span_end(other);

    assert_int_equal(otel_lines_size(lines), 1);
    otel_lines_free(lines);
    assert_string_equal(traced_tree(), "outer(other)");
}

static size_t headers_of(const otel_context *context)
{
    static struct carrier out;
    out.count = 0;
    otel_propagator_inject(otel_propagator_trace_context(), context, carrier_set, &out);
    return out.count;
}

TEST_QUEUED_TOO(nothing_is_told_to_others_in_it)
{
    assert_int_equal(headers_of(NULL), 0);
    const otel_span root = enter("root");
    assert_int_equal(headers_of(NULL), 1);
    otel_lines_begin();
    assert_int_equal(headers_of(NULL), 0);
    const otel_span a = enter("a");
    assert_int_equal(headers_of(NULL), 0);
    const otel_context saved = otel_current_context();
    otel_span_end(a);
    assert_int_equal(headers_of(&saved), 0);
    otel_lines_free(otel_lines_end());
    assert_int_equal(headers_of(NULL), 1);
    otel_span_end(root);
}

static void *mount_without_memory(void *lines)
{
    const otel_span parent = remote(OTEL_TRACE_FLAG_SAMPLED);
    oteli_leaks_fail_at(1);
    otel_lines_mount(lines, &parent, 1, NULL);
    assert_true(oteli_leaks_failed());
    return NULL;
}

TEST(a_thread_without_memory_for_its_state_mounts_nothing)
{
    otel_lines_begin();
    traced_touch("a");
    otel_lines *lines = otel_lines_end();
    traced_thread(mount_without_memory, lines);
    otel_lines_free(lines);
    assert_string_equal(traced_tree(), "");
    assert_only_withheld(OTEL_WITHHELD_UNMOUNTED, 1);
}

TEST(the_innermost_stretch_ends_without_memory_for_another)
{
    traced_touch("warm");
    oteli_leaks_fail_at(1);
    otel_lines_begin();
    assert_true(oteli_leaks_failed());
    traced_touch("a");

    assert_null(otel_lines_end());
    assert_int_equal(traced_stats().delivered, 2);
}

/* --- mounts --- */

TEST_QUEUED_TOO(a_mount_is_a_tree_below_each_parent)
{
    otel_span parents[PARENTS];
    char expected[512] = "";
    for (int i = 0; i < PARENTS; i++)
        parents[i] = otel_span_start(traced.tracer, "p", NULL);
    otel_lines *lines = collect_three();
    otel_lines_mount(lines, parents, PARENTS, OTEL_MOUNT_OPTIONS(.linked = NULL));
    otel_lines_free(lines);
    for (int i = 0; i < PARENTS; i++) {
        otel_span_end(parents[i]);
        strcat(expected, i == 0 ? "p(a(b) c)" : " p(a(b) c)");
    }

    assert_string_equal(traced_tree(), expected);
    const otel_stats stats = traced_stats();
    assert_int_equal(stats.started, PARENTS + 3 * PARENTS);
    assert_int_equal(stats.delivered, PARENTS + 3 * PARENTS);
}

TEST_QUEUED_TOO(a_mount_under_nobody_is_none)
{
    otel_lines *lines = collect_three();
    const otel_span unsampled = remote(0);
    const otel_span none = {{0}};
    otel_lines_begin();
    const otel_span collected = otel_current_span();
    otel_lines_mount(lines, NULL, 1, NULL);
    otel_lines_mount(lines, &unsampled, 0, NULL);
    otel_lines_mount(lines, &unsampled, 1, NULL);
    otel_lines_mount(lines, &none, 1, NULL);
    otel_lines_mount(lines, &collected, 1, NULL);
    assert_null(otel_lines_end());
    otel_lines_free(lines);

    assert_string_equal(traced_tree(), "");
    assert_only_withheld(OTEL_WITHHELD_UNMOUNTED, 3);
}

static void *free_lines(void *lines)
{
    otel_lines_free(lines);
    return NULL;
}

static void *mount_lines(void *lines)
{
    const otel_span parent = remote(OTEL_TRACE_FLAG_SAMPLED);
    otel_lines_mount(lines, &parent, 1, NULL);
    return NULL;
}

TEST_QUEUED_TOO(lines_go_from_thread_to_thread)
{
    otel_lines *lines = collect_three();
    traced_thread(mount_lines, lines);
    traced_thread(free_lines, lines);

    assert_string_equal(traced_tree(), "?a(b) ?c");
    assert_only_withheld(OTEL_WITHHELD_LATE, 0);
}

TEST(a_mount_that_the_queue_has_no_room_for_is_counted)
{
    traced_stop();
    traced_start(&(otel_sdk_options){
        .bsp_max_queue_size = 2, .bsp_max_export_batch_size = 1, .bsp_schedule_delay = 60000});
    const otel_span parents[] = {remote(1), remote(1)};
    otel_lines *lines = collect_three();
    otel_lines_mount(lines, parents, 2, NULL);
    otel_lines_free(lines);

    assert_only_lost(OTEL_DROP_QUEUE_FULL, 6);
    assert_int_equal(traced_stats().open, 0);
}

/* As many as fit into the memory: trees are trees also at the limit. */
TEST(at_the_limit_trees_are_still_trees)
{
    traced_stop();
    traced_start(&(otel_sdk_options){.simple = true, .held_max_bytes = 4096});
    otel_lines_begin();
    for (int i = 0; i < 100; i++) {
        const otel_span outer = enter("outer");
        traced_touch("inner");
        otel_span_end(outer);
    }
    otel_lines *lines = otel_lines_end();
    assert_in_range(traced_stats().dropped[OTEL_DROP_HELD_LIMIT], 1, 199);
    mount_and_free(lines, remote(OTEL_TRACE_FLAG_SAMPLED));
    (void)traced_tree();

    otel_span_view view;
    size_t outermost = 0;
    size_t inner = 0;
    for (size_t i = 0; otel_memory_span(traced.memory, i, &view); i++) {
        inner += view.name.data[0] == 'i';
        outermost += memcmp(view.parent_span_id, remote_span_id, 8) == 0;
    }
    assert_in_range(inner, 2, 100);
    assert_in_range(outermost, 1, inner + 1);
}

/* --- traces that are taken --- */

TEST_QUEUED_TOO(a_held_trace_can_be_taken)
{
    const otel_span root = otel_span_enter(traced.tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    traced_touch("a");
    const otel_span_context ids = otel_span_get_context(root);
    otel_lines *lines = otel_span_collect(root);

    otel_span_view view;
    size_t cursor = 0;
    assert_int_equal(otel_lines_size(lines), 2);
    assert_true(otel_lines_next(lines, &cursor, &view));
    assert_memory_equal(view.trace_id, ids.trace_id, 16);
    assert_memory_equal(view.parent_span_id, ids.span_id, 8);
    assert_string_equal(traced_tree(), "");
    assert_only_withheld(OTEL_WITHHELD_COLLECTED, 2);

    mount_and_free(lines, remote(OTEL_TRACE_FLAG_SAMPLED));
    assert_string_equal(traced_tree(), "?root(a)");
    assert_int_equal(traced_stats().started, 4);
}

/* --- SDKs come and go --- */

TEST_WITH(traced_setup_without_sdk, traced_teardown, null_and_no_sdk_are_harmless)
{
    size_t cursor = 0;
    otel_span_view view;
    const otel_span parent = remote(OTEL_TRACE_FLAG_SAMPLED);
    otel_lines_begin();
    traced_touch("a");
    assert_null(otel_lines_end());
    assert_int_equal(otel_lines_size(NULL), 0);
    assert_false(otel_lines_next(NULL, &cursor, &view));
    otel_lines_mount(NULL, &parent, 1, NULL);
    otel_lines_mount(NULL, NULL, 0, NULL);
    otel_lines_free(NULL);
    assert_string_equal(traced_tree(), "");
}

TEST_QUEUED_TOO(lines_that_outlive_their_sdk_are_counted_there)
{
    otel_lines *lines = collect_three();
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    traced_thread(mount_lines, lines);
    assert_int_equal(otel_lines_size(lines), 3);
    traced_thread(free_lines, lines);

    assert_string_equal(traced_tree(), "");
    assert_only_withheld(OTEL_WITHHELD_UNMOUNTED, 3);
    assert_int_equal(traced_stats().open, 0);
}

TEST_QUEUED_TOO(lines_of_a_former_sdk_are_not_mounted_in_the_next)
{
    otel_lines *lines = collect_three();
    traced_stop();
    traced_start(&(otel_sdk_options){.simple = true});
    mount_and_free(lines, remote(OTEL_TRACE_FLAG_SAMPLED));

    assert_string_equal(traced_tree(), "");
    assert_int_equal(traced_stats().started, 0);
    assert_int_equal(traced_stats().ended, 0);
}

TEST_QUEUED_TOO(a_stretch_of_a_former_sdk_collects_nothing_of_the_next)
{
    otel_lines_begin();
    traced_touch("old");
    traced_stop();
    traced_start(&(otel_sdk_options){.simple = true});
    traced_touch("new");
    otel_lines *lines = otel_lines_end();
    assert_int_equal(otel_lines_size(lines), 1);
    otel_lines_free(lines);

    assert_only_withheld(OTEL_WITHHELD_LATE, 1);
    assert_int_equal(traced_stats().open, 0);
}

static void hold_two(bool are_kept)
{
    const otel_span root = otel_span_enter(traced.tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    traced_touch("a");
    if (are_kept)
        otel_span_end(root);
    else
        otel_span_cancel(root);
}

TEST(after_the_first_time_nothing_is_allocated)
{
    static struct fake_exporter fake; /* the SDK runs until the case is over */
    const otel_exporter exporter = fake_exporter(&fake);
    otel_span parents[PARENTS];
    size_t allocations = 0;
    traced_stop();
    assert_int_equal(otel_start_with(OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                                      .simple = true)),
                     OTEL_OK);
    for (int i = 0; i < PARENTS; i++)
        parents[i] = remote(OTEL_TRACE_FLAG_SAMPLED);
    for (int i = 0; i < 200; i++) {
        otel_lines *lines = collect_three();
        otel_lines_mount(lines, parents, PARENTS, NULL);
        otel_lines_free(lines);
        hold_two(i % 2 == 0);
        if (i == 20)
            allocations = oteli_leaks_count();
    }
    assert_int_equal(oteli_leaks_count(), allocations);
    assert_int_equal(traced_stats().delivered, 200 * 3 * PARENTS + 100 * 2);
}
