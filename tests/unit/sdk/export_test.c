/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/export_test.c - specification of sdk/worker/export.c: how exporters are driven,
 * and how their answers are counted; of sdk/worker/simple_export.c; and of the exporter of
 * otel/memory.h. */
#include "common/log.h"
#include "sdk/stats/stats.h"

#include "tests/support/faked.h"
#include "tests/support/unit.h"
#include "tests/support/warnings.h"

#include <otel/memory.h>
#include <stdio.h>
#include <string.h>

/* Two pipelines, 100 ms for an export; 10 spans have ended. */
static int begin(void **state)
{
    faked_begin(state);
    by_hand(2, &(otel_sdk_options){.bsp_export_timeout = 100});
    hand_spans(&hand, "a", 10);
    return 0;
}

AROUND_EACH(begin, by_hand_end);

/* What exporters are told, and what became of ten spans. */
struct answer {
    size_t reject, spool, drop;
    otel_drop_reason reason;
    uint64_t pending, poll_takes_ms;
    bool ignores_abandon;
};

static void tell(struct fake_exporter *exporter, const struct answer *answer)
{
    exporter->reject = answer->reject;
    exporter->spool = answer->spool;
    exporter->drop = answer->drop;
    exporter->drop_reason = answer->reason;
    exporter->pending = answer->pending;
    exporter->poll_takes_ns = answer->poll_takes_ms * NS_PER_MS;
    exporter->ignores_abandon = answer->ignores_abandon;
}

/* What became of the spans that have ended. */
static const char *fate(size_t pipeline)
{
    return strchr(faked_sums(pipeline), ':') + 2;
}

/* Ten spans: what became of them in both pipelines, and how the first exporter was called. */
static void check(struct answer first, struct answer second, const char *expected)
{
    char text[300];
    tell(&fakes[0], &first);
    tell(&fakes[1], &second);
    hand_flush(&hand);
    const int length = snprintf(text, sizeof text, "%s | ", fate(0));
    snprintf(text + length, sizeof text - (size_t)length, "%s | %s", fate(1), fakes[0].calls);
    assert_string_equal(text, expected);
    assert_string_equal(fakes[0].text, fakes[1].text);
    assert_int_equal(hand.engine->pipelines[0].batches, 1);
    by_hand_end(NULL);
    begin(NULL);
}

/* spec: P6 P15 P16 */
TEST(answers_are_counted_for_each_pipeline)
{
    static const struct answer none;
    check(none, none, "delivered 10, dropped 0 | delivered 10, dropped 0 | EF");
    check((struct answer){.reject = 4},
          (struct answer){.drop = 3, .reason = OTEL_DROP_PERMANENT_ERROR},
          "delivered 6, rejected 4, dropped 0 | delivered 7, dropped 3 (permanent_error 3) | EF");
    /* not more than there are */
    check((struct answer){.reject = 8, .drop = 8, .reason = OTEL_DROP_RETRY_EXHAUSTED}, none,
          "delivered 0, rejected 8, dropped 2 (retry_exhausted 2) | delivered 10, dropped 0 | EF");
    check((struct answer){.reject = 1, .spool = 7}, none,
          "delivered 2, rejected 1, spooled 7, dropped 0 | delivered 10, dropped 0 | EF");
    /* for reasons of a later version, for instance */
    check((struct answer){.drop = 1, .reason = OTEL_DROP_REASON_COUNT},
          (struct answer){.drop = 2, .reason = (otel_drop_reason)-1},
          "delivered 9, dropped 1 (permanent_error 1) | "
          "delivered 8, dropped 2 (permanent_error 2) | EF");
    check((struct answer){.pending = 5, .poll_takes_ms = 10}, none,
          "delivered 10, dropped 0 | delivered 10, dropped 0 | EoooooF");
    /* abandoned when it takes too long: it may say why, or ignore that */
    struct answer slow = {
        .pending = 1000, .poll_takes_ms = 30, .drop = 10, .reason = OTEL_DROP_UNCONFIRMED};
    check(slow, none,
          "delivered 0, dropped 10 (unconfirmed 10) | delivered 10, dropped 0 | EooooAF");
    slow.ignores_abandon = true;
    check(slow, none,
          "delivered 0, dropped 10 (export_timeout 10) | delivered 10, dropped 0 | EooooAF");
}

static otel_export_result always_pending(void *state, otel_export *call)
{
    (void)state;
    otel_export_reject(call, 1);
    otel_export_spool(call, 3);
    otel_export_drop(call, OTEL_DROP_QUEUE_FULL, 2); /* the first of the reasons */
    return OTEL_EXPORT_PENDING;
}

TEST(pending_without_a_poll_is_a_timeout_for_what_is_not_reported)
{
    hand.engine->pipelines[0].exporter.export_batch = always_pending;
    hand.engine->pipelines[0].exporter.poll = NULL;
    hand_flush(&hand);
    assert_string_equal(
        fate(0), "delivered 0, rejected 1, spooled 3, dropped 6 (queue_full 2, export_timeout 4)");
}

TEST(each_pipeline_has_the_time_of_the_timeout_for_itself)
{
    fakes[0].export_takes_ns = 70 * NS_PER_MS;
    const uint64_t now_ns = oteli_fake_clock.monotonic_ns;

    hand_flush(&hand);

    assert_true(fakes[0].deadline_ns == now_ns + 100 * NS_PER_MS);
    assert_true(fakes[1].deadline_ns == now_ns + 170 * NS_PER_MS);
}

static void stop_soon(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    hand_ask_to_stop(&hand, oteli_fake_clock.monotonic_ns + 5 * NS_PER_MS);
}

TEST(a_shutdown_makes_also_a_running_export_end_early)
{
    fake->during = stop_soon;
    fake->pending = 1000;
    fake->poll_takes_ns = 2 * NS_PER_MS;
    const uint64_t now_ns = oteli_fake_clock.monotonic_ns;

    hand_flush(&hand);

    assert_int_equal(fake->abandoned, 1);
    assert_true(oteli_fake_clock.monotonic_ns <= now_ns + 10 * NS_PER_MS);
}

/* spec: P16 trace/sdk.md#span-exporter MUST stable */
TEST(a_flush_and_waking_reach_every_exporter_and_failures_are_seen)
{
    oteli_export_wake(hand.engine);
    assert_int_equal(fakes[0].wakes, 1);
    assert_int_equal(fakes[1].wakes, 1);
    fakes[0].flush_status = OTEL_ERROR_SYSTEM;
    hand_flush(&hand);

    assert_int_equal(fakes[0].flushes, 1);
    assert_int_equal(fakes[1].flushes, 1);
    assert_int_equal(fakes[1].flush_timeout_ms, 100);
    assert_int_equal(hand.engine->flush_failures, 1);
}

/* spec: P8 O6 */
TEST(a_loss_is_said_when_it_begins_and_when_it_is_over)
{
    oteli_log_set_level(OTEL_LOG_INFO);
    otel_log_set_handler(warnings_count, NULL);
    warnings = 0;
    fake->drop = 10;
    fake->drop_reason = OTEL_DROP_RETRY_EXHAUSTED;

    hand_flush(&hand);
    assert_int_equal(warnings, 1);
    assert_string_equal(last_warning,
                        "fake_exporter: losing spans (retry_exhausted): 10 spans are lost so far");
    hand_spans(&hand, "a", 10);
    hand_flush(&hand);
    assert_int_equal(warnings, 1);
    fake->drop = 0;
    fake->reject = 10; /* that is no delivery */
    hand_spans(&hand, "a", 10);
    hand_flush(&hand);
    assert_int_equal(warnings, 1);
    fake->reject = 0;
    hand_spans(&hand, "a", 10);
    hand_flush(&hand);

    assert_int_equal(warnings, 2);
    assert_string_equal(last_warning,
                        "fake_exporter: delivering again, 20 spans were lost meanwhile");
    otel_log_set_handler(NULL, NULL);
}

/* ---- exporters that have to be waited for, by somebody who may not wait ------------------- */

TEST(pending_exports_are_looked_at_without_waiting_one_pipeline_after_the_other)
{
    fakes[0].pending = 2;
    fakes[1].pending = 2;
    assert_string_equal(by_hand_play("ask go"), "Eo pending");
    assert_string_equal(fakes[1].calls, "");
    assert_string_equal(by_hand_play("go"), "o pending");
    assert_string_equal(fakes[1].calls, "Eo");
    assert_string_equal(by_hand_play("go"), "F worked");
    assert_string_equal(fakes[1].calls, "EooF");

    assert_int_equal(fakes[0].waits + fakes[1].waits, 0);
    assert_string_equal(fate(0), "delivered 10, dropped 0");
    assert_string_equal(fate(1), "delivered 10, dropped 0");
}

/* Nobody was there when the deadline came. */
TEST(an_export_whose_time_is_over_is_abandoned_when_somebody_comes)
{
    tell(fake, &(struct answer){.pending = 1000, .drop = 10, .reason = OTEL_DROP_UNCONFIRMED});
    assert_string_equal(by_hand_play("ask go"), "Eo pending");
    oteli_fake_clock.monotonic_ns += 100 * NS_PER_MS - 1;
    assert_string_equal(by_hand_play("go"), "o pending");
    oteli_fake_clock.monotonic_ns += 1;
    assert_string_equal(by_hand_play("go"), "AF worked");

    assert_string_equal(fate(0), "delivered 0, dropped 10 (unconfirmed 10)");
    assert_string_equal(fate(1), "delivered 10, dropped 0");
}

/* What an exporter is shown is what it is given next: not before it has this batch. */
TEST_WITH(faked_begin, by_hand_end, an_exporter_is_shown_the_next_batch_once_it_has_this_one)
{
    by_hand(2, &(otel_sdk_options){.bsp_max_export_batch_size = 5});
    fakes[0].pending = 2;
    fakes[1].pending = 2;
    assert_string_equal(by_hand_play("a5 b5 ask go"), "EPo pending");
    assert_string_equal(fakes[1].calls, "");
    assert_string_equal(by_hand_play("go"), "o pending");
    assert_string_equal(fakes[1].calls, "EPo");
    assert_string_equal(by_hand_play("end"), "EooF idle");
    assert_string_equal(fakes[1].calls, "EPooEooF");
}

TEST_WITH(faked_begin, by_hand_end, one_that_was_quick_is_shown_it_while_another_is_waited_for)
{
    by_hand(2, &(otel_sdk_options){.bsp_max_export_batch_size = 5});
    fakes[1].pending = 2;
    assert_string_equal(by_hand_play("a5 b5 ask go"), "EP pending");
    assert_string_equal(fakes[1].calls, "EPo");
}

/* An exporter's own flush may take its time, but not that of a program that only looks in. */
TEST(a_flush_has_no_more_time_than_who_drives)
{
    hand.engine->event_fds.is_chosen = true;
    hand.engine->event_fds.deadline_ns = oteli_fake_clock.monotonic_ns + 30 * NS_PER_MS;

    hand_flush(&hand);

    assert_int_equal(fakes[0].flush_timeout_ms, 30);
    hand.engine->event_fds.is_chosen = false;
}

/* ---- the simple processor
 * ------------------------------------------------------------------------ */

static int begin_simple(void **state)
{
    faked_begin(state);
    by_hand(1, &(otel_sdk_options){.simple = true});
    return 0;
}

#define SIMPLE(name) TEST_WITH(begin_simple, by_hand_end, name)

SIMPLE(each_span_is_exported_when_it_ends_and_addresses_have_names)
{
    const otel_span outer = otel_span_enter(hand.tracer, "outer", NULL);
    const otel_span inner = otel_span_start(hand.tracer, "inner", NULL);
    assert_string_equal(fake->text, "");

    otel_span_end(inner);
    assert_string_equal(fake->text, "inner|");
    otel_span_end(outer);
    otel_span_end(otel_span_enter_address(hand.tracer, (const void *)0x1000));
    assert_string_equal(fake->text, "inner|outer|0x1000|");
}

static void end_another(void *context, otel_export *call)
{
    (void)context;
    (void)call;
    otel_span_end(otel_span_enter(hand.tracer, "of the exporter", NULL));
}

SIMPLE(what_the_exporter_traces_is_refused_and_counted)
{
    fake->during = end_another;

    hand_spans(&hand, "a", 1);

    assert_string_equal(fake->text, "a|");
    assert_int_equal(hand_counts(&hand).dropped[OTEL_DROP_REENTRANT], 1);
    assert_int_equal(hand_counts(&hand).ended, 2);
}

static void mount(size_t spans)
{
    otel_lines_begin();
    hand_spans(&hand, "m", spans);
    otel_lines *lines = otel_lines_end();
    const otel_span parents[] = {otel_span_start(hand.tracer, "p", NULL),
                                 otel_span_start(hand.tracer, "q", NULL)};
    otel_lines_mount(lines, parents, 2, NULL);
    otel_lines_free(lines);
    otel_span_cancel(parents[0]);
    otel_span_cancel(parents[1]);
}

SIMPLE(a_mount_is_exported_at_once)
{
    mount(1100);

    assert_int_equal(fake->spans, 2200);
    assert_int_equal(fake->batches, 6); /* of 512 at most */
    assert_int_equal(hand.engine->reserved, 0);
}

SIMPLE(what_waited_for_its_turn_through_the_shutdown_is_counted)
{
    hand.engine->done = 1;

    hand_spans(&hand, "a", 1);
    mount(3);

    assert_int_equal(fake->batches, 0);
    assert_int_equal(faked_stats(0).dropped[OTEL_DROP_ALREADY_SHUTDOWN], 7);
}

/* ---- otel/memory.h
 * ------------------------------------------------------------------------------- */

static otel_memory *memory;

static int begin_memory(void **state)
{
    faked_begin(state);
    memory = otel_memory_new();
    assert_non_null(memory);
    const otel_exporter exporter = otel_memory_exporter(memory);
    hand_start(&hand, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                       .service_name = "shop", .simple = true, .clock = "fake"));
    return 0;
}

static int end_memory(void **state)
{
    otel_memory_free(memory);
    otel_memory_free(NULL);
    return by_hand_end(state);
}

#define MEMORY(name) TEST_WITH(begin_memory, end_memory, name)

static bool is(otel_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.data, text, slice.length) == 0;
}

/* spec: X21 */
TEST_WITH(begin_memory, end_memory,
          X21_the_memory_exporter_keeps_spans_in_their_order_until_told_to_forget)
{
    otel_span_view span;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(otel_memory_count(memory), 0);
        assert_false(otel_memory_span(memory, 0, &span));
        hand_spans(&hand, "a", 1);
        hand_spans(&hand, "b", 1);

        assert_int_equal(otel_memory_count(memory), 2);
        assert_true(otel_memory_span(memory, 0, &span) && is(span.name, "a"));
        assert_true(otel_memory_span(memory, 1, &span) && is(span.name, "b"));
        assert_false(otel_memory_span(memory, 2, &span));
        otel_memory_clear(memory);
    }
}

MEMORY(a_view_stays_while_more_comes)
{
    const otel_span parent = otel_span_enter(hand.tracer, "parent", NULL);
    const otel_span child = otel_span_enter(hand.tracer, "child", NULL);
    otel_span_set_string(child, "key", "value");
    otel_span_fail(child, "broken");
    otel_span_add_event(child, "event", NULL, 0);
    otel_span_end(child);
    otel_span_end(parent);
    otel_span_view span;
    assert_true(otel_memory_span(memory, 0, &span));

    hand_spans(&hand, "more", 1000);

    const otel_span_context context = otel_span_get_context(parent);
    otel_attribute_view attribute;
    otel_event_view event;
    assert_true(is(span.name, "child"));
    assert_true(is(span.status_message, "broken"));
    assert_memory_equal(span.trace_id, context.trace_id, 16);
    assert_memory_equal(span.parent_span_id, context.span_id, 8);
    assert_true(otel_attribute_next(&span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute));
    assert_true(is(attribute.key, "key") && is(attribute.value.slice, "value"));
    assert_true(otel_event_next(&span.events, &event) && is(event.name, "event"));
    assert_true(is(span.scope->name, "test"));
    /* All of it points into the copy. */
    assert_in_range((uintptr_t)span.name.data, (uintptr_t)span.otlp.data,
                    (uintptr_t)span.otlp.data + span.otlp.length);
    assert_string_equal(span.tracestate.data, "");
}

MEMORY(spans_it_has_no_memory_for_are_dropped_and_counted)
{
    hand_spans(&hand, "a", 1);
    oteli_leaks_fail_at(2); /* after the copy of the resource */

    hand_spans(&hand, "b", 1);

    assert_true(oteli_leaks_failed());
    assert_int_equal(otel_memory_count(memory), 1);
    assert_string_equal(faked_sums(0), "2 started, 2 ended: delivered 1, dropped 1 (no_memory 1)");
}
