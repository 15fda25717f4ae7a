/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/record_test.c - specification of otel_span_record beside what it sends: what it
 * counts, whom it asks and tells, and where it does nothing. */
#include "sdk/engine/engine.h"
#include "sdk/lifecycle/lifecycle.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include "tests/support/watcher.h"

#include <errno.h>
#include <otel/record.h>
#include <stdio.h>
#include <string.h>

static const uint8_t trace_id[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
static const uint8_t span_id[8] = {0xa1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t parent_id[8] = {0xb1, 2, 3, 4, 5, 6, 7, 8};

static void record(const char *name)
{
    otel_span_record(traced.tracer,
                     OTEL_FINISHED_SPAN(.flags = 1, .name = name, .start_ns = 1, .end_ns = 2));
}

static void record_unsampled(void)
{
    otel_span_record(traced.tracer, OTEL_FINISHED_SPAN(.name = "unsampled"));
}

AROUND_EACH(traced_setup_without_sdk, traced_teardown);

TEST_WITH(traced_setup, traced_teardown, it_is_counted_as_started_and_ended)
{
    record("a");
    record("b");
    record_unsampled();
    assert_string_equal(traced_tree(), "a b");
    assert_string_equal(traced_sums(), "3 started, 1 unsampled, 2 ended: delivered 2, dropped 0");
}

/* What follows a text in memory is not read. */
TEST_WITH(traced_setup, traced_teardown, texts_end_where_their_lengths_say)
{
    const otel_finished_event event = {.name = "event!", .name_length = 5};
    otel_span_record(traced.tracer,
                     OTEL_FINISHED_SPAN(.flags = 1, .name = "span!", .name_length = 4,
                                        .tracestate = "a=b!", .tracestate_length = 3,
                                        .status = OTEL_SPAN_STATUS_ERROR,
                                        .status_message = "broken!", .status_message_length = 6,
                                        .events = &event, .event_count = 1));

    otel_span_view span;
    assert_true(otel_memory_span(traced.memory, 0, &span));
    assert_int_equal(span.name.length, 4);
    assert_int_equal(span.tracestate.length, 3);
    assert_int_equal(span.status_message.length, 6);
    otel_slice events = span.events;
    otel_event_view received;
    assert_true(otel_event_next(&events, &received));
    assert_int_equal(received.name.length, 5);
}

/* spec: O1 */
TEST_WITH(traced_setup, traced_teardown, O1_origins_are_those_of_the_parent_that_was_given)
{
    for (uint8_t flags = 0; flags < 2; flags++)
        for (unsigned i = 0; i < 6; i++)
            otel_span_record(traced.tracer,
                             OTEL_FINISHED_SPAN(.trace_id = trace_id, .flags = flags,
                                                .parent_span_id = i < 1 ? NULL : parent_id,
                                                .parent_is_remote = i < 3));
    char text[1000] = "";
    size_t at = 0;
    otel_metric metric = {.size = sizeof metric};
    for (size_t cursor = 0; otel_metric_next(&cursor, &metric) && at < sizeof text;)
        if (strcmp(metric.name, "otel.sdk.span.started") == 0 && metric.value != 0)
            at += (size_t)snprintf(text + at, sizeof text - at, "%s %s %d, ",
                                   metric.attributes[0].value, metric.attributes[1].value,
                                   (int)metric.value);
    assert_string_equal(text, "none RECORD_AND_SAMPLE 1, local RECORD_AND_SAMPLE 3, "
                              "remote RECORD_AND_SAMPLE 2, none DROP 1, local DROP 3, "
                              "remote DROP 2, ");
}

TEST_WITH(traced_setup, traced_teardown, nothing_becomes_current_and_nothing_current_is_inherited)
{
    otel_context_attributes place;
    const otel_attribute scoped = otel_attribute_of("scoped", otel_value_int(1));
    const otel_span outer = otel_span_enter(traced.tracer, "outer", NULL);
    const otel_context_token token = otel_context_attach(
        otel_context_with_attributes(otel_current_context(), &scoped, 1, &place));
    const otel_context before = otel_current_context();
    record("recorded");
    const otel_context after = otel_current_context();
    assert_memory_equal(&before, &after, sizeof before);
    traced_touch("inner");
    assert_true(otel_context_detach(token));
    otel_span_end(outer);

    assert_string_equal(traced_tree(), "recorded outer(inner)");
    assert_false(watcher_exported(0, "scoped"));
    assert_true(watcher_exported(1, "scoped")); /* inner */
}

TEST(without_an_sdk_nothing_happens)
{
    record("before");
    otel_span_record(traced.tracer, NULL);
    otel_span_record(NULL, NULL);
    traced_start(&(otel_sdk_options){.simple = true});
    otel_span_record(NULL, OTEL_FINISHED_SPAN(.flags = 1, .name = "nameless"));
    record("after");
    assert_string_equal(traced_tree(), "nameless after");
    assert_int_equal(traced_stats().started, 2);
}

static void *record_on_thread(void *name)
{
    record(name);
    return NULL;
}

TEST_WITH(traced_setup_queued, traced_teardown,
          any_thread_can_record_also_as_the_first_thing_that_it_does)
{
    static char name[] = "elsewhere";
    traced_thread(record_on_thread, name);
    record("here");
    assert_string_equal(traced_tree(), "elsewhere here");
}

TEST_WITH(traced_setup, traced_teardown, after_the_shutdown_it_is_dropped_and_counted)
{
    static char name[] = "on a thread that never traced";
    record("in time");
    traced_stop();
    record("late");
    record_unsampled();
    traced_thread(record_on_thread, name);
    assert_string_equal(traced_sums(), "4 started, 1 unsampled, 3 ended: delivered 1, dropped 2 "
                                       "(already_shutdown 2)");
    traced_start(&(otel_sdk_options){.simple = true}); /* and not with the next one */
    record("again");
    assert_string_equal(traced_sums(), "1 started, 1 ended: delivered 1, dropped 0");
}

TEST(a_full_queue_drops_it)
{
    traced_start(&(otel_sdk_options){.bsp_max_queue_size = 4,
                                     .bsp_max_export_batch_size = 4,
                                     .threadless = true,
                                     .bsp_schedule_delay = 60000});
    for (unsigned i = 0; i < 10; i++)
        record("r");
    assert_only_lost(OTEL_DROP_QUEUE_FULL, 6);
}

/* In the middle of another call: where the program is asked for ids. */
static void make_ids(void *state, uint8_t *trace, uint8_t *span)
{
    (void)state;
    record("inside");
    record_unsampled();
    if (trace != NULL)
        memset(trace, 7, 16);
    if (span != NULL)
        memset(span, 9, 8);
}

TEST(inside_another_call_it_is_refused)
{
    traced_start(&(otel_sdk_options){.generate_ids = make_ids});
    otel_span_end(otel_span_start(traced.tracer, "span", NULL));
    assert_string_equal(traced_tree(), "span");
    assert_only_lost(OTEL_DROP_REENTRANT, 4);
}

/* spec: L1 */
TEST(L1_ids_are_made_as_the_program_makes_them)
{
    static const uint8_t sevens[16] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    static const uint8_t nines[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    otel_span_view span;
    traced_start(&(otel_sdk_options){.generate_ids = make_ids});
    record("r");
    (void)traced_stats();
    assert_true(otel_memory_span(traced.memory, 0, &span));
    assert_memory_equal(span.trace_id, sevens, 16);
    assert_memory_equal(span.span_id, nines, 8);
    assert_int_equal(span.flags, 0x101); /* nobody said that they are random */
}

static bool is_off(void *state, const otel_scope_view *scope)
{
    (void)state;
    return scope->name.length != 3;
}

TEST(samplers_are_not_asked_and_tracers_can_be_disabled)
{
    traced_start(&(otel_sdk_options){.traces_sampler = "always_off", .tracer_enabled = is_off});
    record("r");
    otel_span_record(otel_tracer_get("off", NULL), OTEL_FINISHED_SPAN(.flags = 1, .name = "off"));
    assert_string_equal(traced_tree(), "r");
    assert_int_equal(traced_stats().started, 1);
}

TEST(no_rule_holds_it_back)
{
    traced_start(&(otel_sdk_options){.tail_keep_errors = "true"});
    const otel_span root = otel_span_enter(traced.tracer, "root", NULL);
    const otel_span_context ids = otel_span_get_context(root);
    otel_span_record(traced.tracer,
                     OTEL_FINISHED_SPAN(.trace_id = ids.trace_id, .parent_span_id = ids.span_id,
                                        .flags = 1, .name = "below"));
    record("of its own");
    otel_span_end(root); /* it is not kept */
    assert_string_equal(traced_tree(), "?below of its own");
    assert_only_withheld(OTEL_WITHHELD_NOT_KEPT, 1);
}

/* --- processors --- */

/* spec: P1 */
TEST_WITH(watcher_setup, traced_teardown, P1_processors_see_the_end_alone)
{
    watcher_start(2, &(otel_sdk_options){.bsp_schedule_delay = 60000});
    record("a");
    record_unsampled();
    assert_string_equal(watcher_journal(), "-a -2a ");
    assert_string_equal(traced_tree(), "a");
}

static void trace_in_end(const otel_span_view *span)
{
    assert_memory_equal(span->span_id, span_id, 8);
    assert_int_equal(span->start_ns, 1000);
    assert_true(watcher_has_attribute(span, "k"));
    const otel_span entered = otel_span_enter(traced.tracer, "in a processor", NULL);
    record("recorded there");
    otel_span_end(entered);
}

TEST_WITH(watcher_setup, traced_teardown, a_processor_may_trace_and_record)
{
    const otel_attribute attribute = otel_attribute_of("k", otel_value_int(1));
    first.in_end = trace_in_end;
    watcher_start(1, &(otel_sdk_options){.simple = true});
    otel_span_record(traced.tracer,
                     OTEL_FINISHED_SPAN(.span_id = span_id, .flags = 1, .name = "a",
                                        .start_ns = 1000, .end_ns = 2000, .attributes = &attribute,
                                        .attribute_count = 1));
    assert_string_equal(watcher_journal(), "-a ");
    assert_string_equal(traced_tree(), "recorded there in a processor a");
    assert_true(watcher_exported(2, "k"));
}

static void stop_in_end(const otel_span_view *span)
{
    (void)span;
    first.in_end = NULL;
    (void)!otel_shutdown(0);
}

TEST_WITH(watcher_setup, traced_teardown, a_processor_that_shuts_down_loses_it)
{
    first.in_end = stop_in_end;
    watcher_start(1, &(otel_sdk_options){.bsp_schedule_delay = 60000});
    record("a");
    assert_only_lost(OTEL_DROP_ALREADY_SHUTDOWN, 1);
}

/* --- children --- */

static int record_in_child(void)
{
    record("childs");
    if (otel_flush(60000) != OTEL_OK)
        return 1;
    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) != OTEL_OK || stats.started != 1 || stats.delivered != 1)
        return 2;
    return otel_memory_count(traced.memory) != 1;
}

static int record_in_child_of_none(void)
{
    otel_stats stats = {.size = sizeof stats};
    record("nobodys");
    return otel_stats_read(0, &stats) == OTEL_OK && stats.started != 0;
}

/* spec: P14 */
TEST_WITH(traced_setup_queued, traced_teardown, P14_a_child_records_by_itself)
{
    record("before");
    check_child(record_in_child);
    record("after");
    assert_string_equal(traced_tree(), "before after");
    traced_stop();
    check_child(record_in_child_of_none);
}

/* --- memory --- */

static void record_all(const char *tracestate)
{
    static char text[20000];
    memset(text, 'x', sizeof text - 1);
    const otel_attribute attribute = otel_attribute_of("k", otel_value_string(text));
    const otel_finished_event event = {
        .name = text, .time_ns = 1, .attributes = &attribute, .attribute_count = 1};
    const otel_link link = {otel_span_context_make(trace_id, span_id, 1, true, NULL), &attribute,
                            1};
    otel_span_record(traced.tracer,
                     OTEL_FINISHED_SPAN(.flags = 1, .tracestate = tracestate, .name = text,
                                        .status = OTEL_SPAN_STATUS_ERROR, .status_message = text,
                                        .attributes = &attribute, .attribute_count = 1,
                                        .events = &event, .event_count = 1, .links = &link,
                                        .link_count = 1));
}

TEST(missing_memory_fails_nothing)
{
    for (size_t nth = 1;; nth++) {
        traced_start(&(otel_sdk_options){.bsp_schedule_delay = 60000});
        assert_int_equal(otel_flush(60000), OTEL_OK);
        oteli_leaks_fail_at(nth);
        errno = 77;
        record_all("a=1");
        assert_int_equal(errno, 77);
        const bool all_tried = !oteli_leaks_failed();
        const otel_stats stats = traced_stats();
        assert_int_equal(stats.open, 0);
        assert_true(stats.started == 1 || !all_tried); /* a thread without a state counts nowhere */
        traced_stop();
        oteli_lifecycle_reset();
        otel_memory_clear(traced.memory);
        oteli_api_reset();
        traced.tracer = otel_tracer_get("traced", NULL);
        if (all_tried)
            break;
        assert_true(nth < 100);
    }
}

TEST(a_steady_state_allocates_nothing)
{
    traced_start(&(otel_sdk_options){
        .threadless = true, .bsp_max_queue_size = 64, .bsp_max_export_batch_size = 32});
    for (unsigned i = 0; i < 100; i++)
        record_all("a=1");
    (void)otel_poll(0);
    record("small");
    const size_t before = oteli_leaks_count();
    for (unsigned i = 0; i < 20; i++)
        record("small");
    assert_int_equal(oteli_leaks_count(), before);
}

TEST_AGAIN(traced_setup_queued, traced_teardown, it_is_counted_as_started_and_ended);
TEST_AGAIN(traced_setup_queued, traced_teardown,
           nothing_becomes_current_and_nothing_current_is_inherited);
