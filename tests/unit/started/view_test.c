/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/view_test.c - specification of sdk/view.c and sdk/batch.c: what exporters see
 * of a span is what protobuf-c unpacks from its bytes. */
#include "sdk/view.h"

#include "opentelemetry/proto/trace/v1/trace.pb-c.h"
#include "tests/support/hand_engine.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <otel/otel.h>
#include <string.h>

typedef Opentelemetry__Proto__Trace__V1__Span Span;
typedef Opentelemetry__Proto__Common__V1__AnyValue AnyValue;
typedef Opentelemetry__Proto__Common__V1__KeyValue KeyValue;

static bool is(otel_slice slice, const char *text)
{
    return slice.length == strlen(text) && memcmp(slice.data, text, slice.length) == 0;
}

static void compare_attributes(otel_slice rest, uint32_t field, KeyValue **pairs, size_t count);

static void compare_value(otel_value_view view, const AnyValue *value)
{
    otel_value_view element;
    switch (value->value_case) {
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE:
        assert_int_equal(view.type, OTEL_VALUE_STRING);
        assert_true(is(view.slice, value->string_value));
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE:
        assert_int_equal(view.type, OTEL_VALUE_BOOL);
        assert_int_equal(view.boolean, value->bool_value);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE:
        assert_int_equal(view.type, OTEL_VALUE_INT);
        assert_true(view.integer == value->int_value);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE:
        assert_int_equal(view.type, OTEL_VALUE_DOUBLE);
        assert_memory_equal(&view.real, &value->double_value, sizeof view.real);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BYTES_VALUE:
        assert_int_equal(view.type, OTEL_VALUE_BYTES);
        assert_int_equal(view.slice.length, value->bytes_value.len);
        assert_memory_equal(view.slice.data, value->bytes_value.data, view.slice.length);
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE:
        assert_int_equal(view.type, OTEL_VALUE_STRING_ARRAY);
        for (size_t i = 0; i < value->array_value->n_values; i++) {
            assert_true(otel_array_next(&view.slice, &element));
            compare_value(element, value->array_value->values[i]);
        }
        assert_false(otel_array_next(&view.slice, &element));
        break;
    case OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_KVLIST_VALUE:
        assert_int_equal(view.type, OTEL_VALUE_MAP);
        compare_attributes(view.slice, OTEL_FIELD_MAP_ENTRY, value->kvlist_value->values,
                           value->kvlist_value->n_values);
        break;
    default:
        assert_int_equal(view.type, OTEL_VALUE_EMPTY);
        break;
    }
}

static void compare_attributes(otel_slice rest, uint32_t field, KeyValue **pairs, size_t count)
{
    otel_attribute_view view;
    for (size_t i = 0; i < count; i++) {
        assert_true(otel_attribute_next(&rest, field, &view));
        assert_true(is(view.key, pairs[i]->key));
        compare_value(view.value, pairs[i]->value);
    }
    assert_false(otel_attribute_next(&rest, field, &view));
}

static uint64_t event_times[2]; /* of the last span */

static void compare_events(const otel_span_view *view, const Span *span)
{
    otel_slice rest = view->events;
    otel_event_view event;
    for (size_t i = 0; i < span->n_events; i++) {
        assert_true(otel_event_next(&rest, &event));
        assert_true(event.time_ns == span->events[i]->time_unix_nano);
        assert_true(is(event.name, span->events[i]->name));
        if (i < 2)
            event_times[i] = event.time_ns;
        assert_int_equal(event.dropped_attributes_count, span->events[i]->dropped_attributes_count);
        compare_attributes(event.attributes, OTEL_FIELD_EVENT_ATTRIBUTE,
                           span->events[i]->attributes, span->events[i]->n_attributes);
    }
    assert_false(otel_event_next(&rest, &event));
}

static void compare_links(const otel_span_view *view, const Span *span)
{
    otel_slice rest = view->links;
    otel_link_view link;
    for (size_t i = 0; i < span->n_links; i++) {
        assert_true(otel_link_next(&rest, &link));
        assert_memory_equal(link.trace_id, span->links[i]->trace_id.data, 16);
        assert_memory_equal(link.span_id, span->links[i]->span_id.data, 8);
        assert_true(is(link.tracestate, span->links[i]->trace_state));
        assert_int_equal(link.flags, span->links[i]->flags);
        assert_int_equal(link.dropped_attributes_count, span->links[i]->dropped_attributes_count);
        compare_attributes(link.attributes, OTEL_FIELD_LINK_ATTRIBUTE, span->links[i]->attributes,
                           span->links[i]->n_attributes);
    }
    assert_false(otel_link_next(&rest, &link));
}

static void compare(const otel_span_view *view)
{
    Span *span = opentelemetry__proto__trace__v1__span__unpack(NULL, view->otlp.length,
                                                               (const uint8_t *)view->otlp.data);
    assert_non_null(span);
    assert_memory_equal(view->trace_id, span->trace_id.data, 16);
    assert_memory_equal(view->span_id, span->span_id.data, 8);
    assert_int_equal(view->parent_span_id != NULL, span->parent_span_id.len != 0);
    if (view->parent_span_id != NULL)
        assert_memory_equal(view->parent_span_id, span->parent_span_id.data, 8);
    assert_true(is(view->tracestate, span->trace_state));
    assert_true(is(view->name, span->name));
    assert_int_equal((int)view->kind + 1, (int)span->kind);
    assert_true(view->start_ns == span->start_time_unix_nano);
    assert_true(view->end_ns == span->end_time_unix_nano);
    assert_int_equal(view->flags, span->flags);
    assert_int_equal(view->status, span->status != NULL ? (int)span->status->code : 0);
    assert_true(is(view->status_message, span->status != NULL ? span->status->message : ""));
    assert_int_equal(view->dropped_attributes_count, span->dropped_attributes_count);
    assert_int_equal(view->dropped_events_count, span->dropped_events_count);
    assert_int_equal(view->dropped_links_count, span->dropped_links_count);
    compare_attributes(view->attributes, OTEL_FIELD_SPAN_ATTRIBUTE, span->attributes,
                       span->n_attributes);
    compare_events(view, span);
    compare_links(view, span);
    opentelemetry__proto__trace__v1__span__free_unpacked(span, NULL);
}

static size_t compared;
static otel_span_view last;

static otel_export_result compare_batch(void *state, otel_export *call)
{
    (void)state;
    for (size_t i = 0; i < otel_batch_size(call->batch); i++) {
        otel_batch_span(call->batch, i, &last);
        compare(&last);
        const otel_scope_view *scope;
        const otel_slice otlp = otel_batch_span_otlp(call->batch, i, &scope);
        assert_ptr_equal(otlp.data, last.otlp.data);
        assert_int_equal(otlp.length, last.otlp.length);
        assert_ptr_equal(scope, last.scope);
        compared++;
    }
    return OTEL_EXPORT_DONE;
}

static struct hand_engine hand;

static int begin(void **state)
{
    (void)state;
    compared = 0;
    oteli_leaks_begin();
    const otel_exporter exporter = OTEL_EXPORTER(.name = "comparer", .export_batch = compare_batch);
    hand_start(&hand,
               OTEL_SDK_OPTIONS(.exporters = &exporter, .exporter_count = 1, .clock = "fake",
                                .log_level = "none", .span_attribute_count_limit = 10,
                                .span_event_count_limit = 2, .span_link_count_limit = 2,
                                .event_attribute_count_limit = 2, .link_attribute_count_limit = 1));
    return 0;
}

static int end(void **state)
{
    (void)state;
    hand_stop(&hand);
    oteli_leaks_check();
    return 0;
}

AROUND_EACH(begin, end);

TEST(a_bare_span)
{
    hand_spans(&hand, "bare", 1);
    hand_spans(&hand, "", 1);

    hand_flush(&hand);

    assert_int_equal(compared, 2);
}

/* {"list": [1, [], {}, "two"], "": null, "map": {"list": …}} */
static otel_value nested_value(void)
{
    static otel_value elements[4];
    static otel_attribute inner;
    static otel_attribute entries[3];
    elements[0] = otel_value_int(1);
    elements[1] = otel_value_array(NULL, 0);
    elements[2] = otel_value_map(NULL, 0);
    elements[3] = otel_value_string("two");
    inner = entries[0] = otel_attribute_of("list", otel_value_array(elements, 4));
    entries[1] = otel_attribute_of("", otel_value_empty());
    entries[2] = otel_attribute_of("map", otel_value_map(&inner, 1));
    return otel_value_map(entries, 3);
}

static void set_every_type(otel_span span)
{
    static const char *const strings[] = {"x", NULL, "", "z"};
    static const int64_t integers[] = {1, -1, INT64_MIN, INT64_MAX, 0};
    static const double reals[] = {0.5, -0.0, 1e300};
    static const bool booleans[] = {true, false};
    otel_span_set_string(span, "string", "text");
    otel_span_set_int(span, "int", -5);
    otel_span_set_double(span, "double", 2.25);
    otel_span_set_bool(span, "bool", false);
    otel_span_set_bytes(span, "bytes", "a\0b", 3);
    otel_span_set_string_array(span, "strings", strings, 4);
    otel_span_set_int_array(span, "ints", integers, 5);
    otel_span_set_double_array(span, "doubles", reals, 3);
    otel_span_set_bool_array(span, "bools", booleans, 2);
    otel_span_set_value(span, "empty", otel_value_empty());
    otel_span_set_string(span, "one too many", "");
    otel_span_set_value(span, "string", nested_value());
}

TEST(a_span_with_everything_and_more)
{
    static const uint8_t trace_id[16] = {1, 2, 3};
    static const uint8_t span_id[8] = {4, 5, 6};
    const otel_span_context remote =
        otel_span_context_make(trace_id, span_id, OTEL_TRACE_FLAG_SAMPLED, true, "vendor=value");
    const otel_context parent =
        otel_context_with_span((otel_context){.baggage = 0}, otel_span_wrap(&remote));
    const otel_attribute three[] = {otel_attribute_of("a", otel_value_int(1)),
                                    otel_attribute_of("b", otel_value_string("2")),
                                    otel_attribute_of("c", otel_value_bool(true))};
    const otel_link link = {.context = remote, .attributes = three, .attribute_count = 3};
    const otel_span span = otel_span_start(
        hand.tracer, "everything",
        OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_CONSUMER, .parent = &parent, .start_ns = 1234));
    set_every_type(span);
    for (unsigned i = 0; i < 3; i++) {
        otel_span_add_event(span, "event", three, 3);
        otel_span_add_link(span, &link);
    }
    otel_span_fail(span, "description");
    oteli_fake_clock.ticks += 1000;
    otel_span_end(span);

    hand_flush(&hand);

    assert_int_equal(compared, 1);
    assert_int_equal(last.dropped_attributes_count, 1);
    assert_int_equal(last.dropped_events_count, 1);
    assert_int_equal(last.dropped_links_count, 1);
    assert_true(last.start_ns == 1234);
}

TEST(every_kind_and_status)
{
    for (int kind = OTEL_SPAN_KIND_INTERNAL; kind <= OTEL_SPAN_KIND_CONSUMER; kind++) {
        for (int status = OTEL_SPAN_STATUS_UNSET; status <= OTEL_SPAN_STATUS_ERROR; status++) {
            const otel_span span =
                otel_span_enter(hand.tracer, "a", OTEL_SPAN_OPTIONS(.kind = (otel_span_kind)kind));
            otel_span_set_status(span, (otel_span_status)status, NULL);
            otel_span_end(span);
            hand_flush(&hand);
            assert_int_equal(last.kind, kind);
            assert_int_equal(last.status, status);
        }
    }
    assert_int_equal(compared, 15);
}

/* Span, events and children are converted along one line. */
TEST(ticks_become_unix_times_wherever_they_stand)
{
    const uint64_t wall_ns = oteli_fake_clock.wall_ns;
    const otel_span span = otel_span_enter(hand.tracer, "a", NULL);
    oteli_fake_clock.ticks += 100;
    otel_span_add_event(span, "then", NULL, 0);
    otel_span_add_event_at(span, "said", 77, NULL, 0);
    oteli_fake_clock.ticks += 100;
    otel_span_end(span);

    hand_flush(&hand);

    assert_true(last.start_ns == wall_ns && last.end_ns == wall_ns + 200);
    assert_true(event_times[0] == wall_ns + 100);
    assert_true(event_times[1] == 77);
}
