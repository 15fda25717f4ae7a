/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/spec_api_test.c - the rows of the specification about tracers and spans as
 * programs see them, with the real SDK behind. */
#include "tests/support/traced.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

static const uint8_t remote_trace_id[16] = {7};
static const uint8_t remote_span_id[8] = {9};

static otel_context remote(const char *tracestate)
{
    const otel_span_context context = otel_span_context_make(
        remote_trace_id, remote_span_id, OTEL_TRACE_FLAG_SAMPLED, true, tracestate);
    return (otel_context){.span = otel_span_wrap(&context)};
}

static otel_span_view exported(size_t index)
{
    otel_span_view span;
    assert_int_not_equal(otel_flush(60000), OTEL_ERROR_TIMEOUT);
    assert_true(otel_memory_span(traced.memory, index, &span));
    return span;
}

static bool is_text(otel_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.data, text, slice.length) == 0;
}

static void assert_same_ids(otel_span a, otel_span b)
{
    const otel_span_context of_a = otel_span_get_context(a);
    const otel_span_context of_b = otel_span_get_context(b);
    assert_memory_equal(&of_a, &of_b, sizeof of_a);
}

/* --- tracers --- */

AROUND_EACH(traced_setup, traced_teardown);

static unsigned started;

static void count_start(void *state, otel_span span, const otel_context *parent)
{
    (void)state;
    (void)span;
    (void)parent;
    started++;
}

/* spec: A1 trace/api.md#tracerprovider SHOULD stable */
/* spec: A4 trace/sdk.md#configuration MUST stable */
TEST_WITH(traced_setup_without_sdk, traced_teardown,
          A4_a_tracer_sees_each_configuration_that_came_after_it)
{
    otel_tracer *tracer = otel_tracer_get("a", "1");
    assert_false(otel_span_is_recording(otel_span_enter(tracer, "before", NULL)));
    traced_start(&(otel_sdk_options){.simple = true});
    otel_span_end(otel_span_enter(tracer, "first", NULL));
    assert_true(is_text(exported(0).scope->name, "a"));
    traced_stop();
    const otel_processor processor = OTEL_PROCESSOR(.on_start = count_start);
    started = 0;

    traced_start(&(otel_sdk_options){.processors = &processor, .processor_count = 1});
    otel_span_end(otel_span_enter(tracer, "second", NULL));

    assert_ptr_equal(otel_tracer_get("a", "1"), tracer);
    assert_int_equal(started, 1);
    assert_string_equal(traced_tree(), "first second");
}

/* --- tracers that are not enabled --- */

static struct {
    bool is_enabled;
    unsigned asked;
    char name[32];
} configurator;

static bool is_enabled(void *state, const otel_scope_view *scope)
{
    assert_ptr_equal(state, &configurator);
    configurator.asked++;
    snprintf(configurator.name, sizeof configurator.name, "%.*s", (int)scope->name.length,
             scope->name.data);
    return configurator.is_enabled || !is_text(scope->name, "quiet");
}

static otel_tracer *quiet;

/* A tracer "quiet" that is disabled. */
static void start_configured(otel_sdk_options *options)
{
    memset(&configurator, 0, sizeof configurator);
    options->tracer_enabled = is_enabled;
    options->tracer_enabled_state = &configurator;
    traced_start(options);
    quiet = otel_tracer_get("quiet", NULL);
}

/* spec: A5 trace/sdk.md#enabled MUST development */
TEST_WITH(traced_setup_without_sdk, traced_teardown,
          A5_a_tracer_is_enabled_when_somebody_sees_its_spans)
{
    const otel_processor processor = OTEL_PROCESSOR(.name = "sees nothing");
    assert_false(otel_tracer_enabled(traced.tracer));
    assert_int_equal(otel_start_with(NULL), OTEL_OK);
    assert_false(otel_tracer_enabled(traced.tracer));
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_int_equal(
        otel_start_with(OTEL_SDK_OPTIONS(.processors = &processor, .processor_count = 1)), OTEL_OK);
    assert_true(otel_tracer_enabled(traced.tracer));
    assert_int_equal(otel_shutdown(60000), OTEL_OK);
    assert_false(otel_tracer_enabled(traced.tracer));

    start_configured(&(otel_sdk_options){.simple = true});
    assert_true(otel_tracer_enabled(traced.tracer));
    assert_false(otel_tracer_enabled(quiet));
    assert_true(otel_tracer_enabled(NULL));
}

/* spec: A6 trace/sdk.md#tracerconfigurator MUST development */
TEST_WITH(traced_setup_without_sdk, traced_teardown,
          A6_spans_of_a_disabled_tracer_are_as_without_an_sdk)
{
    start_configured(&(otel_sdk_options){.simple = true});
    const otel_span outer = otel_span_enter(traced.tracer, "outer", NULL);

    const otel_span entered = otel_span_enter(quiet, "entered", NULL);
    const otel_span begun = otel_span_start(quiet, "started", NULL);
    assert_false(otel_span_is_recording(entered));
    assert_false(otel_span_is_recording(begun));
    assert_same_ids(entered, outer);
    assert_same_ids(begun, outer);
    otel_span_set_int(entered, "k", 1);
    traced_touch("inner");
    otel_span_end(begun);
    otel_span_end(entered);
    otel_span_end(outer);

    assert_string_equal(traced_tree(), "outer(inner)");
    assert_int_equal(exported(1).attributes.length, 0);
    assert_int_equal(traced_stats().started, 2);
    const otel_span root = otel_span_start(quiet, "root", OTEL_SPAN_OPTIONS(.root = true));
    assert_int_equal(root.opaque[2], 0);
}

/* spec: A6 trace/sdk.md#tracerconfigurator MUST development */
TEST_WITH(traced_setup_without_sdk, traced_teardown,
          A6_a_disabled_tracer_passes_a_parent_on_that_it_is_given)
{
    start_configured(&(otel_sdk_options){.simple = true});
    const otel_context parent = remote("a=1");

    const otel_span entered =
        otel_span_enter(quiet, "entered", OTEL_SPAN_OPTIONS(.parent = &parent));
    assert_same_ids(entered, parent.span);
    assert_same_ids(otel_current_span(), parent.span);
    traced_touch("inner");
    otel_span_end(entered);

    assert_int_equal(otel_current_span().opaque[2], 0);
    assert_memory_equal(exported(0).trace_id, remote_trace_id, 16);
    assert_memory_equal(exported(0).parent_span_id, remote_span_id, 8);
    assert_true(is_text(exported(0).tracestate, "a=1"));
}

/* spec: A6 trace/sdk.md#tracerconfigurator MUST development */
TEST_WITH(traced_setup_without_sdk, traced_teardown,
          A6_what_is_held_back_is_so_below_a_disabled_tracer)
{
    start_configured(&(otel_sdk_options){.simple = true});
    const otel_span root = otel_span_start(traced.tracer, "root", OTEL_SPAN_OPTIONS(.hold = true));
    const otel_context parent = {.span = root};
    const otel_span entered =
        otel_span_enter(quiet, "entered", OTEL_SPAN_OPTIONS(.parent = &parent));
    traced_touch("inner");
    otel_span_end(entered);
    assert_string_equal(traced_tree(), "");

    otel_span_cancel(root);

    assert_string_equal(traced_tree(), "");
    assert_only_withheld(OTEL_WITHHELD_CANCELLED, 2);
}

/* spec: A6 trace/sdk.md#tracerconfigurator MUST development */
TEST_WITH(traced_setup_without_sdk, traced_teardown,
          A6_each_tracer_is_asked_for_once_until_it_is_configured_anew)
{
    start_configured(&(otel_sdk_options){.simple = true});
    for (unsigned i = 0; i < 3; i++) {
        otel_span_end(otel_span_enter(quiet, "a", NULL));
        otel_span_end(otel_span_start(quiet, "a", NULL));
    }
    assert_int_equal(configurator.asked, 1);
    assert_string_equal(configurator.name, "quiet");
    otel_span_end(otel_span_enter(otel_tracer_get("loud", NULL), "loud", NULL));
    assert_int_equal(configurator.asked, 2);
    assert_string_equal(configurator.name, "loud");

    configurator.is_enabled = true;
    otel_span_end(otel_span_enter(quiet, "still quiet", NULL));
    otel_tracers_reconfigure();
    otel_span_end(otel_span_enter(quiet, "b", NULL));
    otel_span_end(otel_span_start(quiet, "c", NULL));

    assert_int_equal(configurator.asked, 3);
    assert_true(otel_tracer_enabled(quiet));
    assert_string_equal(traced_tree(), "loud b c");
}

/* --- spans --- */

/* spec: A12 trace/api.md#get-context MUST stable */
TEST(A12_a_span_has_the_same_context_for_ever)
{
    const otel_context parent = remote("a=1");
    const otel_span_options *under = OTEL_SPAN_OPTIONS(.parent = &parent);
    for (unsigned way = 0; way < 2; way++) {
        const otel_span span = way == 0 ? otel_span_enter(traced.tracer, "a", under)
                                        : otel_span_start(traced.tracer, "a", under);
        const otel_span_context before = otel_span_get_context(span);
        otel_span_end(span);
        traced_touch("in its place");
        const otel_span_context after = otel_span_get_context(span);
        char text[8];
        assert_memory_equal(&before, &after, sizeof before);
        assert_int_equal(otel_span_context_tracestate(&after, text, sizeof text), 3);
        assert_string_equal(text, "a=1");
    }
}

/* spec: A13 trace/api.md#isrecording SHOULD stable */
TEST(A13_a_span_records_until_it_ends)
{
    for (unsigned way = 0; way < 2; way++) {
        const otel_span span = way == 0 ? otel_span_enter(traced.tracer, "a", NULL)
                                        : otel_span_start(traced.tracer, "a", NULL);
        assert_true(otel_span_is_recording(span));
        otel_span_end(span);
        assert_false(otel_span_is_recording(span));
    }
    assert_false(otel_span_is_recording(otel_span_none_()));
    traced_stop();
    traced_start(&(otel_sdk_options){.traces_sampler = "always_off"});
    const otel_span dropped = otel_span_enter(traced.tracer, "a", NULL);
    assert_false(otel_span_is_recording(dropped));
    otel_span_end(dropped);
}

/* spec: A21 trace/api.md#end MUST stable */
TEST(A21_the_first_end_counts_and_nothing_after_it)
{
    for (unsigned way = 0; way < 2; way++) {
        const otel_span span = way == 0 ? otel_span_enter(traced.tracer, "a", NULL)
                                        : otel_span_start(traced.tracer, "a", NULL);
        otel_span_end_at(span, 5000);
        otel_span_end_at(span, 6000);
        otel_span_end(span);
        otel_span_set_int(span, "late", 1);
        otel_span_add_event(span, "late", NULL, 0);
        otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, "late");
        otel_span_update_name(span, "late");
        assert_int_equal(exported(way).end_ns, 5000);
        assert_int_equal(exported(way).attributes.length + exported(way).events.length, 0);
        assert_int_equal(exported(way).status, OTEL_SPAN_STATUS_UNSET);
    }
    assert_string_equal(traced_tree(), "a a");
    assert_int_equal(traced_stats().ended, 2);
}

/* spec: A21 trace/api.md#end MUST stable */
TEST(A21_an_end_leaves_children_alone_and_a_parent_behind)
{
    const otel_span parent = otel_span_start(traced.tracer, "parent", NULL);
    const otel_context context = {.span = parent};
    const otel_span_options *under = OTEL_SPAN_OPTIONS(.parent = &context);
    const otel_span child = otel_span_enter(traced.tracer, "child", under);

    otel_span_end(parent);

    assert_true(otel_span_is_recording(child));
    assert_same_ids(otel_current_span(), child);
    otel_span_end(otel_span_start(traced.tracer, "late", under));
    otel_span_end(child);
    assert_string_equal(traced_tree(), "parent(late child)");
}

/* spec: A21 trace/api.md#end MUST stable */
TEST(A21_a_context_has_its_span_also_when_that_has_ended)
{
    const otel_span span = otel_span_start(traced.tracer, "started", NULL);
    const otel_context_token token = otel_context_attach((otel_context){.span = span});
    otel_span_end(span);
    assert_same_ids(otel_current_span(), span);
    assert_true(otel_context_detach(token));

    const otel_span entered = otel_span_enter(traced.tracer, "entered", NULL);
    const otel_context context = otel_current_context();
    otel_span_end(entered);
    assert_same_ids(context.span, entered);
    const otel_span_context current = otel_span_get_context(otel_current_span());
    assert_false(otel_span_context_is_valid(&current));
}

/* spec: A24 trace/api.md#wrapping-a-spancontext-in-a-span MUST stable */
TEST(A24_a_wrapped_context_is_a_span_that_records_nothing)
{
    const otel_span_context context = otel_span_context_make(remote_trace_id, remote_span_id,
                                                             OTEL_TRACE_FLAG_SAMPLED, true, "a=1");

    const otel_span span = otel_span_wrap(&context);
    const otel_span_context wrapped = otel_span_get_context(span);
    assert_memory_equal(&wrapped, &context, sizeof context);
    const otel_span_context invalid =
        otel_span_context_make((const uint8_t[16]){0}, remote_span_id, 1, true, "a=1");
    assert_int_equal(otel_span_wrap(&invalid).opaque[2], 0);
    assert_false(otel_span_is_recording(span));
    otel_span_set_int(span, "k", 1);
    otel_span_add_event(span, "event", NULL, 0);
    otel_span_set_status(span, OTEL_SPAN_STATUS_ERROR, "no");
    otel_span_cancel(span);
    otel_span_end(span);

    assert_int_equal(otel_memory_count(traced.memory), 0);
    assert_int_equal(traced_stats().started, 0);
}
