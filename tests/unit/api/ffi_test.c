/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/ffi_test.c - specification of otel/ffi.h: a call with `_p` does what the call
 * without does, and takes of a text what its length says. */
#include "tests/support/carrier.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <otel/ffi.h>
#include <string.h>

enum { NAME = 5, ATTRIBUTES = 9, EVENTS = 11, LINKS = 13, STATUS = 15 };

AROUND_EACH(recorder_setup, recorder_teardown);

/* The text in the argument, with more behind it, and its length. */
#define TEXT(text) text "and more", sizeof text - 1

static otel_tracer *tracer(void)
{
    return otel_tracer_get("ffi", "1.0");
}

/* Two spans have the same in a field that may be there several times. */
static void assert_same_field(size_t a, size_t b, uint32_t number)
{
    const struct recorded_span spans[] = {recorder_span(a), recorder_span(b)};
    const size_t count = recorder_count(a, number);
    assert_int_not_equal(count, 0);
    assert_int_equal(recorder_count(b, number), count);
    for (size_t nth = 0; nth < count; nth++) {
        struct oteli_field fields[2];
        for (size_t i = 0; i < 2; i++)
            recorder_find(spans[i].message, spans[i].length, number, nth, &fields[i]);
        assert_int_equal(fields[0].length, fields[1].length);
        assert_memory_equal(fields[0].bytes, fields[1].bytes, fields[0].length);
    }
}

static void assert_same_description(size_t a, size_t b)
{
    assert_same_field(a, b, NAME);
    assert_same_field(a, b, ATTRIBUTES);
    assert_same_field(a, b, STATUS);
}

static void describe(otel_span span)
{
    otel_span_set_string(span, "string", "value");
    otel_span_set_int(span, "int", -7);
    otel_span_set_double(span, "double", 0.5);
    otel_span_set_bool(span, "bool", true);
    otel_span_set_value(span, "list", otel_value_int_array((const int64_t[]){1, 2}, 2));
    otel_span_update_name(span, "another name");
    otel_span_fail(span, "it broke");
}

static void describe_p(const otel_span *span)
{
    static const int64_t numbers[] = {1, 2};
    otel_value list;
    otel_value_p(&list, OTEL_VALUE_INT_ARRAY, numbers, 2);
    otel_span_set_string_p(span, TEXT("string"), TEXT("value"));
    otel_span_set_int_p(span, TEXT("int"), -7);
    otel_span_set_double_p(span, TEXT("double"), 0.5);
    otel_span_set_bool_p(span, TEXT("bool"), true);
    otel_span_set_value_p(span, TEXT("list"), &list);
    otel_span_update_name_p(span, TEXT("another name"));
    otel_span_fail_p(span, TEXT("it broke"));
}

TEST_FAST_TOO(a_span_says_the_same_either_way)
{
    otel_span entered;
    otel_span started;
    const otel_span plain = otel_span_enter(tracer(), "span", NULL);
    describe(plain);
    otel_span_end(plain);
    otel_span_enter_p(&entered, tracer(), TEXT("span"), NULL);
    describe_p(&entered);
    otel_span_end_p(&entered, 0);
    otel_span_start_p(&started, tracer(), TEXT("span"), NULL);
    describe_p(&started);
    assert_true(otel_span_is_recording_p(&started));
    otel_span_end_p(&started, 0);
    assert_false(otel_span_is_recording_p(&started));

    assert_same_description(0, 1);
    assert_same_description(0, 2);
}

TEST(events_and_links_are_the_same_either_way)
{
    const otel_attribute attribute = otel_attribute_of("key", otel_value_int(1));
    const uint8_t id[16] = {1};
    const otel_link link = {.context = otel_span_context_make(id, id, 1, false, NULL)};
    const otel_span plain = otel_span_enter(tracer(), "span", NULL);
    otel_span_add_event_at(plain, "event", 5, &attribute, 1);
    otel_span_record_exception(plain, "Type", "message", NULL, &attribute, 1);
    otel_span_add_link(plain, &link);
    otel_span_end(plain);
    otel_span span;
    otel_span_enter_p(&span, tracer(), "span", 4, NULL);
    otel_span_add_event_p(&span, TEXT("event"), 5, &attribute, 1);
    otel_span_record_exception_p(&span, TEXT("Type"), TEXT("message"), NULL, 0, &attribute, 1);
    otel_span_add_link_p(&span, &link);
    otel_span_end_p(&span, 9);

    assert_same_field(0, 1, EVENTS);
    assert_same_field(0, 1, LINKS);
}

/* Attributes of all places, with keys that go on behind their length, or that end with a NUL. */
static void describe_with(const otel_attribute *attributes, size_t count)
{
    const uint8_t id[16] = {1};
    const otel_link link = {.context = otel_span_context_make(id, id, 1, false, NULL),
                            .attributes = attributes,
                            .attribute_count = count};
    otel_context_attributes place;
    otel_context context = otel_current_context();
    context = otel_context_with_attributes(context, attributes, count, &place);
    const otel_span child =
        otel_span_enter(tracer(), "span", OTEL_SPAN_OPTIONS(.parent = &context));
    otel_span_end(child);
    const otel_span span =
        otel_span_enter(tracer(), "span",
                        OTEL_SPAN_OPTIONS(.attributes = attributes, .attribute_count = count,
                                          .links = &link, .link_count = 1));
    otel_span_add_event(span, "event", attributes, count);
    otel_span_record_exception(span, "Type", NULL, NULL, attributes, count);
    otel_span_set_value(span, "map", otel_value_map(attributes, count));
    otel_span_end(span);
}

TEST(a_key_of_an_attribute_ends_where_its_length_says)
{
    static const char keys[] = "retriesurl.pathretries";
    const otel_attribute attributes[] = {
        otel_attribute_n(keys, 7, otel_value_int(1)),
        otel_attribute_n(keys + 7, 8, otel_value_string("/a")),
        otel_attribute_n(keys + 7, 0, otel_value_int(2)), /* an empty key */
        otel_attribute_of("retries", otel_value_int(3)),
        {.key = "other", .value = otel_value_int(4)},
        otel_attribute_n(keys + 15, 7, otel_value_int(5)),
        otel_attribute_n(NULL, 5, otel_value_int(6)), /* no key */
        otel_attribute_n("a\0b", 3, otel_value_int(7)),
        otel_attribute_n("a\0c", 3, otel_value_int(8)),
    };
    enum { COUNT = sizeof attributes / sizeof attributes[0], MANY = 20 * COUNT };
    describe_with(attributes, COUNT);
    assert_int_equal(recorder_count(0, ATTRIBUTES), 5);
    assert_int_equal(recorder_count(1, ATTRIBUTES), 6); /* and the map */
    const struct oteli_field event = recorder_field(1, EVENTS);
    const struct oteli_field link = recorder_field(1, LINKS);
    static const char expected[] = "retries=5 url.path=/a other=4 a=7 a=8 ";
    assert_string_equal(recorder_attributes(event.bytes, event.length, 3), expected);
    assert_string_equal(recorder_attributes(link.bytes, link.length, 4), expected);

    otel_attribute many[MANY]; /* for which there is an index */
    for (size_t i = 0; i < MANY; i++)
        many[i] = attributes[i % COUNT];
    describe_with(many, MANY);
    assert_same_field(0, 2, ATTRIBUTES);
    assert_same_field(1, 3, EVENTS);
    assert_same_field(1, 3, LINKS);
}

TEST(entries_of_a_map_have_the_keys_that_their_lengths_say)
{
    static const char keys[] = "aab";
    const otel_attribute with[] = {otel_attribute_n(keys, 1, otel_value_int(1)),
                                   otel_attribute_n(keys, 0, otel_value_int(2)),
                                   otel_attribute_n(keys + 1, 2, otel_value_int(3)),
                                   otel_attribute_n(keys + 1, 1, otel_value_int(4))};
    const otel_attribute without[] = {otel_attribute_of("", otel_value_int(2)),
                                      otel_attribute_of("ab", otel_value_int(3)),
                                      otel_attribute_of("a", otel_value_int(4))};
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_value(span, "map", otel_value_map(with, 4));
    otel_span_end(span);
    const otel_span other = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_value(other, "map", otel_value_map(without, 3));
    otel_span_end(other);

    assert_same_field(0, 1, ATTRIBUTES);
}

TEST(a_tracer_is_the_same_either_way)
{
    assert_ptr_equal(otel_tracer_get_p(TEXT("ffi"), TEXT("1.0"), NULL), tracer());
    assert_ptr_equal(otel_tracer_get_p(TEXT("ffi"), NULL, 0, NULL), otel_tracer_get("ffi", NULL));
}

TEST(a_span_that_is_cancelled_is_not_exported)
{
    otel_span span;
    otel_span_enter_p(&span, tracer(), "span", 4, NULL);
    otel_span_cancel_p(&span);
    assert_int_equal(recorder.count, 0);
}

TEST(values_of_all_kinds_are_the_same_either_way)
{
    const bool yes = true;
    const int64_t seven = 7;
    const double half = 0.5;
    const otel_value expected[] = {otel_value_string("text"), otel_value_bool(yes),
                                   otel_value_int(seven), otel_value_double(half)};
    const void *const data[] = {expected[0].as.string, &yes, &seven, &half};
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++) {
        otel_value made;
        otel_value_p(&made, expected[i].type, data[i], expected[i].length);
        assert_memory_equal(&made, &expected[i], sizeof made);
    }
}

static void assert_current(const otel_span *span)
{
    otel_span current;
    otel_current_span_p(&current);
    assert_memory_equal(current.opaque, span->opaque, 3 * sizeof span->opaque[0]);
}

TEST(contexts_are_made_and_attached_by_pointers)
{
    otel_span none;
    otel_span span;
    otel_context context;
    otel_current_span_p(&none);
    otel_span_start_p(&span, tracer(), "span", 4, NULL);
    otel_current_context_p(&context);
    otel_context_with_span_p(&context, &context, &span);
    const uint64_t token = otel_context_attach_p(&context);
    assert_current(&span);
    assert_true(otel_context_detach_p(token));
    assert_current(&none);

    otel_span_context names;
    otel_span_context same;
    otel_span_get_context_p(&names, &span);
    otel_span_context_make_p(&same, names.trace_id, names.span_id, names.flags, true, TEXT("a=b"));
    otel_span_wrap_p(&span, &same);
    otel_span_get_context_p(&same, &span);
    assert_memory_equal(same.span_id, names.span_id, sizeof names.span_id);
    char text[16];
    assert_int_equal(otel_span_context_tracestate(&same, text, sizeof text), 3);
    assert_string_equal(text, "a=b");
}

TEST(a_mark_unwinds_what_came_after_it)
{
    otel_span_mark mark;
    otel_span outer;
    otel_span inner;
    otel_span_enter_p(&outer, tracer(), "outer", 5, NULL);
    otel_span_mark_here_p(&mark);
    otel_span_enter_p(&inner, tracer(), "inner", 5, NULL);
    otel_span_unwind_p(&mark);
    assert_current(&outer);
    otel_span_end_p(&outer, 0);
}

TEST(values_and_attributes_of_a_context_go_by_pointers)
{
    otel_context context = {0};
    otel_context_key key;
    otel_context_value place;
    otel_context_attributes attributes;
    const otel_attribute attribute = otel_attribute_of("key", otel_value_int(1));
    int value = 0;
    otel_context_create_key_p(&key, TEXT("key"));
    otel_context_with_value_p(&context, &context, &key, &value, &place);
    otel_context_with_attributes_p(&context, &context, &attribute, 1, &attributes);
    otel_attribute found;
    assert_ptr_equal(otel_context_get_value_p(&context, &key), &value);
    assert_int_equal(otel_context_get_attributes(&context, &found, 1), 1);
}

static bool count_entries(void *state, const otel_baggage_entry *entry)
{
    assert_int_equal(entry->name.length, 4);
    assert_string_equal(entry->name.data, "user");
    assert_int_equal(entry->value.length, 3);
    assert_string_equal(entry->value.data, "ada");
    assert_int_equal(entry->metadata.length, 3);
    assert_string_equal(entry->metadata.data, "p=1");
    ++*(size_t *)state;
    return true;
}

TEST(baggage_goes_by_pointers)
{
    otel_context context = {0};
    otel_baggage baggage = {0};
    char text[16];
    size_t entries = 0;
    otel_baggage_set_p(&baggage, &baggage, TEXT("user"), TEXT("ada"), TEXT("p=1"));
    otel_baggage_set_p(&baggage, &baggage, TEXT("other"), TEXT("x"), NULL, 0);
    otel_baggage_remove_p(&baggage, &baggage, TEXT("other"));
    otel_baggage_keep_p(&baggage, &baggage);
    otel_context_with_baggage_p(&context, &context, &baggage);
    otel_baggage_let_go_p(&baggage);
    otel_context_baggage_p(&baggage, &context);

    otel_baggage_each_p(&baggage, count_entries, &entries);
    assert_int_equal(entries, 1);
    assert_int_equal(otel_baggage_count_p(&baggage), 1);
    assert_int_equal(otel_baggage_get_p(&baggage, TEXT("user"), text, sizeof text), 3);
    assert_string_equal(text, "ada");
    assert_int_equal(otel_baggage_get_metadata_p(&baggage, TEXT("user"), text, sizeof text), 3);
    assert_string_equal(text, "p=1");
}

/* A list of variables is a carrier without a function of the caller's. */
TEST(a_context_is_extracted_by_pointers)
{
    char parent[] = "TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    char *variables[] = {parent, NULL};
    const otel_carrier_reader reader = {otel_environment_get, otel_environment_list, variables};
    const otel_context none = {0};
    otel_context made[4];
    otel_propagator_set(otel_propagator_trace_context());
    otel_extract_p(&made[0], &none, otel_environment_get, variables);
    otel_extract_from_p(&made[1], &none, &reader);
    otel_propagator_extract_p(&made[2], otel_propagator_get(), &none, otel_environment_get,
                              variables);
    otel_propagator_extract_from_p(&made[3], otel_propagator_get(), &none, &reader);
    for (size_t i = 0; i < 4; i++) {
        otel_span_context context;
        char hex[17];
        otel_span_get_context_p(&context, &made[i].span);
        otel_span_id_hex(&context, hex);
        assert_string_equal(hex, "b7ad6b7169203331");
    }
    static struct carrier carrier;
    otel_inject_p(&made[0], carrier_set, &carrier);
    assert_string_equal(carrier_sent(&carrier, "traceparent"), strchr(parent, '=') + 1);
    otel_extract_environment_p(&made[0], &none); /* of this process: nothing */
    otel_propagator_set(NULL);
}

/* What other languages write down. */
TEST(structs_are_as_long_as_the_header_says)
{
    assert_int_equal(sizeof(otel_span), 32);
    assert_int_equal(sizeof(otel_context), 48);
    assert_int_equal(sizeof(otel_span_context), 32);
    assert_int_equal(sizeof(otel_value), 24);
    assert_int_equal(sizeof(otel_attribute), 40);
    assert_int_equal(sizeof(otel_link), 48);
}
