/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/memory_test.c - specification of otel/memory.h. */
#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/memory.h>
#include <otel/otel.h>
#include <stdio.h>
#include <string.h>

static otel_memory *memory;
static struct hand_engine hand;

static int begin(void **state)
{
    (void)state;
    oteli_leaks_begin();
    memory = otel_memory_new();
    assert_non_null(memory);
    const otel_exporter exporter = otel_memory_exporter(memory);
    hand_start(&hand, OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1,
                                       .service_name = "shop", .simple = true, .clock = "fake"));
    return 0;
}

static int end(void **state)
{
    (void)state;
    otel_memory_free(memory);
    hand_stop(&hand);
    oteli_leaks_check();
    return 0;
}

static bool is(otel_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.data, text, slice.length) == 0;
}

AROUND_EACH(begin, end);

/* spec: X21 */
TEST(X21_the_memory_exporter_keeps_spans_in_the_order_of_their_export)
{
    assert_int_equal(otel_memory_count(memory), 0);
    hand_spans(&hand, "a", 1);
    hand_spans(&hand, "b", 1);

    otel_span_view span;
    assert_int_equal(otel_memory_count(memory), 2);
    assert_true(otel_memory_span(memory, 0, &span) && is(span.name, "a"));
    assert_true(otel_memory_span(memory, 1, &span) && is(span.name, "b"));
    assert_false(otel_memory_span(memory, 2, &span));
}

TEST(a_view_stays_while_more_comes)
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

TEST(it_forgets_when_told_to)
{
    hand_spans(&hand, "a", 100);

    otel_memory_clear(memory);

    otel_span_view span;
    assert_int_equal(otel_memory_count(memory), 0);
    assert_false(otel_memory_span(memory, 0, &span));
    hand_spans(&hand, "b", 1);
    assert_true(otel_memory_span(memory, 0, &span) && is(span.name, "b"));
}

TEST(it_has_the_resource_of_the_last_batch)
{
    assert_int_equal(otel_memory_resource(memory).length, 0);
    hand_spans(&hand, "a", 1);

    otel_slice rest = otel_memory_resource(memory);
    otel_attribute_view attribute;
    bool has_name = false;
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute))
        has_name =
            has_name || (is(attribute.key, "service.name") && is(attribute.value.slice, "shop"));
    assert_true(has_name);
}

TEST(spans_it_has_no_memory_for_are_dropped_and_counted)
{
    hand_spans(&hand, "a", 1);
    oteli_leaks_fail_at(2); /* after the copy of the resource */

    hand_spans(&hand, "b", 1);

    assert_true(oteli_leaks_failed());
    assert_int_equal(otel_memory_count(memory), 1);
    assert_int_equal(hand.engine->pipelines[0].dropped[OTEL_DROP_NO_MEMORY], 1);
    assert_int_equal(hand.engine->pipelines[0].delivered, 1);
}

TEST(a_renewed_exporter_fills_the_same_handle)
{
    otel_exporter renewed;
    const otel_exporter exporter = otel_memory_exporter(memory);

    assert_int_equal(exporter.renew(exporter.state, &renewed), OTEL_OK);

    assert_memory_equal(&renewed, &exporter, sizeof exporter);
}

TEST(there_may_be_none_to_free)
{
    otel_memory_free(NULL);
}
