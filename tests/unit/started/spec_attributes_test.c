/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/spec_attributes_test.c - what the OpenTelemetry specification says of
 * attributes, events, links, status and names of spans, seen by a strict receiver. */
#include "tests/support/received.h"
#include "tests/support/strict.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { ATTRIBUTES = 9, EVENTS = 11, LINKS = 13, EVENT_ATTRIBUTES = 3, LINK_ATTRIBUTES = 4 };

static otel_tracer *tracer(void)
{
    return otel_tracer_get("spec.attributes", NULL);
}

static otel_span enter(void)
{
    return otel_span_enter(tracer(), "span", NULL);
}

static void check(otel_slice message, uint32_t number, const char *key, otel_value value)
{
    received_check(message, number, key, value, SIZE_MAX, 64);
}

/* That a value arrives as itself: set on a span, given at its start, of an event, of a link. */
static void check_arrives(otel_value value)
{
    const otel_attribute attribute = otel_attribute_of("given.key", value);
    const size_t index = received_count();
    const otel_span span = otel_span_enter(
        tracer(), "span", OTEL_SPAN_OPTIONS(.attributes = &attribute, .attribute_count = 1));
    const otel_link link = {otel_span_get_context(span), &attribute, 1};
    otel_span_set_value(span, "set.key", value);
    otel_span_add_event(span, "event", &attribute, 1);
    otel_span_add_link(span, &link);
    otel_span_end(span);

    otel_slice part = {NULL, 0};
    check(received_bytes(index), ATTRIBUTES, "given.key", value);
    check(received_bytes(index), ATTRIBUTES, "set.key", value);
    assert_true(received_part(received_bytes(index), EVENTS, 0, &part));
    check(part, EVENT_ATTRIBUTES, "given.key", value);
    assert_true(received_part(received_bytes(index), LINKS, 0, &part));
    check(part, LINK_ATTRIBUTES, "given.key", value);
}

static const char *const strings[] = {"", "two", "\xE2\x82\xAC"};
static const bool booleans[] = {true, false};
static const int64_t integers[] = {0, -1, INT64_MAX, INT64_MIN};
static const double reals[] = {0.0, -0.0, 1.5e300, NAN, INFINITY, -INFINITY};

/* spec: A14 common/README.md#anyvalue MUST stable */
TEST(A14_single_values_and_arrays_of_one_type_arrive)
{
    check_arrives(otel_value_string("text"));
    check_arrives(otel_value_bool(true));
    for (size_t i = 0; i < COUNT(integers); i++)
        check_arrives(otel_value_int(integers[i]));
    for (size_t i = 0; i < COUNT(reals); i++)
        check_arrives(otel_value_double(reals[i]));
    check_arrives(otel_value_string_array(strings, COUNT(strings)));
    check_arrives(otel_value_bool_array(booleans, COUNT(booleans)));
    check_arrives(otel_value_int_array(integers, COUNT(integers)));
    check_arrives(otel_value_double_array(reals, COUNT(reals)));
}

/* spec: A14 common/README.md#anyvalue MUST stable */
TEST(A14_bytes_empty_values_and_nested_ones_arrive)
{
    const otel_value inner[] = {otel_value_int(1), otel_value_string_array(strings, 3),
                                otel_value_empty(), otel_value_bytes("\0\xff", 2)};
    const otel_attribute entries[] = {otel_attribute_of("list", otel_value_array(inner, 4)),
                                      otel_attribute_of("Key", otel_value_bool(false)),
                                      otel_attribute_of("key", otel_value_double(0.5))};
    const otel_value outer[] = {otel_value_map(entries, 3), otel_value_array(inner, 4),
                                otel_value_map(NULL, 0)};
    check_arrives(otel_value_bytes("\0\1\xff", 3));
    check_arrives(otel_value_empty());
    check_arrives(otel_value_array(inner, 4));
    check_arrives(otel_value_map(entries, 3));
    check_arrives(otel_value_array(outer, 3));
}

/* spec: A14 common/README.md#mapstring-anyvalue MUST stable */
TEST(A14_a_map_has_each_key_once_with_its_last_value)
{
    const otel_attribute entries[] = {
        otel_attribute_of("a", otel_value_int(1)),  otel_attribute_of("A", otel_value_int(2)),
        otel_attribute_of("a", otel_value_int(3)),  otel_attribute_of("\xff", otel_value_int(4)),
        otel_attribute_of("b", otel_value_int(5)),  otel_attribute_of("\xfe", otel_value_int(6)),
        otel_attribute_of("", otel_value_int(7)),   otel_attribute_of(NULL, otel_value_int(8)),
        otel_attribute_of("ab", otel_value_int(9)),
    };
    const otel_span span = enter();
    otel_span_set_value(span, "map", otel_value_map(entries, COUNT(entries)));
    otel_span_end(span);

    static const struct {
        const char *key;
        int value;
    } kept[] = {{"A", 2}, {"a", 3}, {"b", 5}, {"\xef\xbf\xbd", 6}, {"", 8}, {"ab", 9}};
    const received_pb_key_value *map = received_span(0)->attributes[0];
    assert_int_equal(map->value->kvlist_value->n_values, COUNT(kept));
    for (size_t i = 0; i < COUNT(kept); i++) {
        assert_string_equal(map->value->kvlist_value->values[i]->key, kept[i].key);
        assert_int_equal(map->value->kvlist_value->values[i]->value->int_value, kept[i].value);
    }
}

/* spec: A14 common/attribute-type-mapping.md#string-values SHOULD stable */
TEST(A14_a_string_that_is_no_utf8_becomes_bytes_wherever_it_is)
{
    static const char *const bad[] = {"\xff", "a\x80z", "\xed\xa0\x80", "\xc0\xaf", "\xe2\x82"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        const otel_value value = otel_value_string(bad[i]);
        const otel_attribute entry = otel_attribute_of("key", value);
        check_arrives(value);
        check_arrives(otel_value_string_array(&bad[i], 1));
        check_arrives(otel_value_array(&value, 1));
        check_arrives(otel_value_map(&entry, 1));
    }
    const received_pb_key_value *last = received_span(0)->attributes[0];
    assert_int_equal(last->value->value_case,
                     OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BYTES_VALUE);
}

/* spec: A15 trace/api.md#set-attributes SHOULD stable */
TEST(A15_the_last_value_of_a_key_counts_whatever_its_type)
{
    const otel_attribute start[] = {otel_attribute_of("first.key", otel_value_int(1)),
                                    otel_attribute_of("first.key", otel_value_string("second"))};
    const otel_span span = otel_span_enter(
        tracer(), "span", OTEL_SPAN_OPTIONS(.attributes = start, .attribute_count = 2));
    otel_span_set_string(span, "other.key", "text");
    otel_span_set_int(span, "first.key", 3);
    otel_span_set_double(span, "other.key", 4);
    otel_span_set_bool(span, "first.key", true);
    otel_span_set_string_array(span, "other.key", strings, 3);
    otel_span_set_value(span, "first.key", otel_value_array(NULL, 0));
    otel_span_end(span);

    assert_int_equal(received_span(0)->n_attributes, 2);
    assert_int_equal(received_span(0)->dropped_attributes_count, 0);
    check(received_bytes(0), ATTRIBUTES, "first.key", otel_value_array(NULL, 0));
    check(received_bytes(0), ATTRIBUTES, "other.key", otel_value_string_array(strings, 3));
}

/* spec: A15 common/README.md#attribute-collections MUST stable */
TEST(A15_keys_are_unique_in_events_links_scopes_and_the_resource)
{
    const otel_attribute twice[] = {otel_attribute_of("a", otel_value_int(1)),
                                    otel_attribute_of("b", otel_value_int(2)),
                                    otel_attribute_of("a", otel_value_int(3))};
    received_stop();
    received_start(OTEL_SDK_OPTIONS(.resource = twice, .resource_count = 3));
    otel_tracer *scoped = otel_tracer_get_with(
        "twice", NULL, OTEL_TRACER_OPTIONS(.attributes = twice, .attribute_count = 3));
    const otel_span span = otel_span_enter(scoped, "span", NULL);
    const otel_link link = {otel_span_get_context(span), twice, 3};
    otel_span_add_event(span, "event", twice, 3);
    otel_span_add_link(span, &link);
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    assert_int_equal(got->events[0]->n_attributes, 2);
    assert_int_equal(got->links[0]->n_attributes, 2);
    assert_int_equal(got->events[0]->dropped_attributes_count, 0);
    otel_slice part = {NULL, 0};
    assert_true(received_part(received_bytes(0), EVENTS, 0, &part));
    check(part, EVENT_ATTRIBUTES, "a", otel_value_int(3));
    assert_true(received_part(received_bytes(0), LINKS, 0, &part));
    check(part, LINK_ATTRIBUTES, "a", otel_value_int(3));
    check(received_scope(), OTEL_FIELD_SCOPE_ATTRIBUTE, "a", otel_value_int(3));
    assert_true(received_part(received_scope(), OTEL_FIELD_SCOPE_ATTRIBUTE, 1, &part));
    assert_false(received_part(received_scope(), OTEL_FIELD_SCOPE_ATTRIBUTE, 2, &part));
    check(received_resource(), OTEL_FIELD_RESOURCE_ATTRIBUTE, "a", otel_value_int(3));
}

/* spec: A16 common/README.md#anyvalue MUST stable */
TEST(A16_what_is_empty_or_zero_is_kept)
{
    static const char *const with_null[] = {"a", NULL, "", NULL};
    check_arrives(otel_value_string(""));
    check_arrives(otel_value_string(NULL));
    check_arrives(otel_value_bytes(NULL, 0));
    check_arrives(otel_value_int(0));
    check_arrives(otel_value_double(0));
    check_arrives(otel_value_bool(false));
    check_arrives(otel_value_string_array(NULL, 0));
    check_arrives(otel_value_int_array(NULL, 0));
    check_arrives(otel_value_array(NULL, 0));
    check_arrives(otel_value_map(NULL, 0));
    check_arrives(otel_value_string_array(with_null, 4));
}

/* spec: A16 common/README.md#attribute MUST stable */
TEST(A16_an_empty_key_is_refused_and_said_once)
{
    const otel_attribute keyless[] = {otel_attribute_of("", otel_value_int(1)),
                                      otel_attribute_of(NULL, otel_value_int(2))};
    const otel_span span = otel_span_enter(
        tracer(), "keyless", OTEL_SPAN_OPTIONS(.attributes = keyless, .attribute_count = 2));
    otel_span_set_string(span, "", "x");
    otel_span_set_int(span, NULL, 1);
    otel_span_set_double(span, "", 1);
    otel_span_set_value(span, NULL, otel_value_map(keyless, 2));
    otel_span_add_event(span, "event", keyless, 2);
    otel_span_end(span);

    assert_int_equal(received_span(0)->n_attributes, 0);
    assert_int_equal(received_span(0)->events[0]->n_attributes, 0);
    assert_int_equal(received_logs(), 1);
    assert_non_null(strstr(received_last_log(), "empty key"));
}

/* Arrays and strings that are not there although something counts them.
 * spec: A16 error-handling.md#basic-error-handling-principles MUST stable */
TEST(A16_nothing_is_read_where_nothing_is)
{
    const otel_attribute nothing[] = {otel_attribute_of("s", otel_value_string_n(NULL, 7)),
                                      otel_attribute_of("y", otel_value_bytes(NULL, 7)),
                                      otel_attribute_of("S", otel_value_string_array(NULL, 7)),
                                      otel_attribute_of("B", otel_value_bool_array(NULL, 7)),
                                      otel_attribute_of("I", otel_value_int_array(NULL, 7)),
                                      otel_attribute_of("D", otel_value_double_array(NULL, 7)),
                                      otel_attribute_of("A", otel_value_array(NULL, 7)),
                                      otel_attribute_of("M", otel_value_map(NULL, 7))};
    const otel_link link = {{{1}, {1}, 1, false, {0}, 0}, NULL, 7};
    const otel_span span = otel_span_enter(
        tracer(), NULL,
        OTEL_SPAN_OPTIONS(.attribute_count = 7, .link_count = 7, .attributes = NULL));
    for (size_t i = 0; i < COUNT(nothing); i++)
        otel_span_set_value(span, nothing[i].key, nothing[i].value);
    otel_span_set_value_n(otel_span_ref_of(&span), "nothing", 7, NULL);
    otel_span_set_value(span, "all", otel_value_map(nothing, COUNT(nothing)));
    otel_span_add_event(span, NULL, NULL, 7);
    otel_span_add_link(span, &link);
    otel_span_set_string(span, "text", NULL);
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    assert_int_equal(got->n_attributes, COUNT(nothing) + 2);
    check(received_bytes(0), ATTRIBUTES, "all", otel_value_map(nothing, COUNT(nothing)));
    for (size_t i = 0; i < COUNT(nothing); i++)
        check(received_bytes(0), ATTRIBUTES, nothing[i].key, nothing[i].value);
    assert_string_equal(got->events[0]->name, "");
    assert_int_equal(got->n_links, 1);
}

/* Keys and values with zero bytes in them are whole texts for those who give a length.
 * spec: A14 common/README.md#anyvalue MUST stable */
TEST(A14_a_zero_byte_is_a_character_like_any_other)
{
    const otel_span span = enter();
    const otel_span_ref ref = otel_span_ref_of(&span);
    otel_span_set_string_n(ref, "key\0one", 7, "a\0b", 3);
    otel_span_set_int_n(ref, "key\0two", 7, 2);
    otel_span_set_double_n(ref, "key\0three", 9, 3);
    otel_span_set_bool_n(ref, "key", 3, true);
    otel_span_set_string_n(ref, "key\0one", 7, "c\0d", 3);
    otel_span_end(span);

    otel_slice any = {NULL, 0};
    assert_int_equal(received_span(0)->n_attributes, 4);
    assert_true(received_value(received_bytes(0), ATTRIBUTES, "key\0one", 7, &any));
    assert_int_equal(any.length, 5);
    assert_memory_equal(any.data, "\x0a\3c\0d", 5);
    assert_true(received_value(received_bytes(0), ATTRIBUTES, "key\0three", 9, &any));
    assert_true(received_value(received_bytes(0), ATTRIBUTES, "key", 3, &any));
}

/* spec: A14 common/README.md#attribute-limits SHOULD stable */
TEST(A14_keys_and_values_may_be_large)
{
    enum { LARGE = 64 * 1024 };
    static char key[LARGE + 1];
    memset(key, 'k', LARGE);
    const otel_attribute entry = otel_attribute_of(key, otel_value_string(key));
    const otel_span span = enter();
    otel_span_set_int(span, key, 1);
    otel_span_set_string(span, key, key);
    otel_span_set_value(span, "map", otel_value_map(&entry, 1));
    otel_span_add_event(span, key, &entry, 1);
    otel_span_end(span);

    assert_int_equal(received_span(0)->n_attributes, 2);
    check(received_bytes(0), ATTRIBUTES, key, otel_value_string(key));
    check(received_bytes(0), ATTRIBUTES, "map", otel_value_map(&entry, 1));
}

/* spec: A17 trace/api.md#add-events MUST stable */
TEST(A17_events_have_names_times_attributes_and_their_order)
{
    const otel_attribute attribute = otel_attribute_of("k", otel_value_int(1));
    const otel_span span = enter();
    otel_span_add_event_at(span, "third by time", 300, &attribute, 1);
    otel_span_add_event_at(span, "first by time", 100, NULL, 0);
    otel_span_add_event(span, "now", NULL, 0);
    otel_span_add_event_at(span, "third by time", 300, NULL, 0);
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    assert_int_equal(got->n_events, 4);
    assert_string_equal(got->events[0]->name, "third by time");
    assert_true(got->events[0]->time_unix_nano == 300);
    assert_int_equal(got->events[0]->n_attributes, 1);
    assert_string_equal(got->events[1]->name, "first by time");
    assert_true(got->events[1]->time_unix_nano == 100);
    assert_string_equal(got->events[2]->name, "now");
    assert_true(got->events[2]->time_unix_nano >= got->start_time_unix_nano);
    assert_true(got->events[2]->time_unix_nano <= got->end_time_unix_nano);
    assert_true(got->events[3]->time_unix_nano == 300);
}

/* spec: A18 trace/api.md#link MUST stable */
TEST(A18_links_come_at_the_start_and_later_in_their_order)
{
    const otel_attribute attribute = otel_attribute_of("k", otel_value_int(1));
    const otel_link links[] = {{{{1}, {1}, 1, true, {0}, 0}, NULL, 0},
                               {{{2}, {2}, 0, false, {0}, 0}, &attribute, 1},
                               {{{3}, {3}, 1, false, {0}, 0}, NULL, 0}};
    const otel_span span =
        otel_span_enter(tracer(), "span", OTEL_SPAN_OPTIONS(.links = links, .link_count = 2));
    otel_span_add_link(span, &links[2]);
    otel_span_add_link(span, &links[0]);
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    assert_int_equal(got->n_links, 4);
    static const uint8_t order[] = {1, 2, 3, 1};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(got->links[i]->trace_id.len, 16);
        assert_int_equal(got->links[i]->span_id.len, 8);
        assert_int_equal(got->links[i]->trace_id.data[0], order[i]);
    }
    assert_int_equal(got->links[1]->n_attributes, 1);
    assert_int_equal(got->links[0]->flags, 0x301);
    assert_int_equal(got->links[1]->flags, 0x100);
}

/* spec: A18 trace/api.md#link SHOULD stable */
TEST(A18_a_link_to_no_span_is_kept_if_it_says_something)
{
    const otel_attribute attribute = otel_attribute_of("why", otel_value_int(1));
    otel_span_context stated = {{0}, {0}, 0, false, {0}, 0};
    const otel_link nothing = {stated, NULL, 0};
    const otel_link says = {stated, &attribute, 1};
    const otel_link half = {{{1}, {0}, 0, false, {0}, 0}, NULL, 0};
    const otel_span span = enter();
    otel_span_add_link(span, &nothing);
    otel_span_add_link(span, &half);
    otel_span_add_link(span, &says);
    otel_span_end(span);

    assert_int_equal(received_span(0)->n_links, 1);
    assert_int_equal(received_span(0)->links[0]->n_attributes, 1);
    assert_int_equal(received_span(0)->dropped_links_count, 0);
}

static const struct {
    otel_span_status set[3];
    int code; /* of the wire */
    const char *message;
} statuses[] = {
    {{OTEL_SPAN_STATUS_UNSET}, 0, ""},
    {{OTEL_SPAN_STATUS_ERROR}, 2, "0"},
    {{OTEL_SPAN_STATUS_OK}, 1, ""},
    {{OTEL_SPAN_STATUS_ERROR, OTEL_SPAN_STATUS_UNSET}, 2, "0"},
    {{OTEL_SPAN_STATUS_ERROR, OTEL_SPAN_STATUS_ERROR}, 2, "1"},
    {{OTEL_SPAN_STATUS_ERROR, OTEL_SPAN_STATUS_OK}, 1, ""},
    {{OTEL_SPAN_STATUS_OK, OTEL_SPAN_STATUS_ERROR}, 1, ""},
    {{OTEL_SPAN_STATUS_OK, OTEL_SPAN_STATUS_UNSET, OTEL_SPAN_STATUS_ERROR}, 1, ""},
    {{(otel_span_status)-1, OTEL_SPAN_STATUS_ERROR, (otel_span_status)3}, 2, "1"},
};

/* spec: A19 trace/api.md#set-status SHOULD stable */
TEST(A19_ok_beats_error_beats_unset_and_only_errors_have_words)
{
    static const char *const words[] = {"0", "1", "2"};
    for (size_t i = 0; i < COUNT(statuses); i++) {
        const otel_span span = enter();
        for (size_t k = 0; k < 3 && (k == 0 || statuses[i].set[k] != 0 || i >= 7); k++)
            otel_span_set_status(span, statuses[i].set[k], words[k]);
        otel_span_end(span);

        const received_pb_span *got = received_span(i);
        assert_int_equal(got->status != NULL ? (int)got->status->code : 0, statuses[i].code);
        assert_string_equal(got->status != NULL ? got->status->message : "", statuses[i].message);
    }
}

/* spec: A19 trace/api.md#set-status MUST stable */
TEST(A19_a_description_is_utf8_on_the_wire)
{
    const otel_span span = enter();
    otel_span_fail(span, "bad \xff and \xC3");
    otel_span_end(span);

    assert_string_equal(received_span(0)->status->message, "bad \xef\xbf\xbd and \xef\xbf\xbd");
}

/* spec: A20 trace/api.md#updatename MUST stable */
TEST(A20_the_last_name_counts)
{
    const otel_span spans[] = {enter(), otel_span_start(tracer(), "first", NULL)};
    for (size_t i = 0; i < 2; i++) {
        otel_span_update_name(spans[i], "second");
        otel_span_update_name(spans[i], "third \xff");
        otel_span_end(spans[i]);
        otel_span_update_name(spans[i], "fourth");
        assert_string_equal(received_span(i)->name, "third \xef\xbf\xbd");
    }
}

/* spec: A22 trace/api.md#record-exception MUST stable */
TEST(A22_an_exception_is_an_event_and_what_is_said_of_it_wins)
{
    const otel_attribute more[] = {otel_attribute_of("exception.message", otel_value_int(1)),
                                   otel_attribute_of("mine", otel_value_bool(true))};
    const otel_span span = enter();
    otel_span_record_exception(span, "Type", "message", "stack", more, 2);
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    otel_slice part = {NULL, 0};
    assert_int_equal(got->n_events, 1);
    assert_string_equal(got->events[0]->name, "exception");
    assert_int_equal(got->events[0]->n_attributes, 4);
    assert_true(received_part(received_bytes(0), EVENTS, 0, &part));
    check(part, EVENT_ATTRIBUTES, "exception.type", otel_value_string("Type"));
    check(part, EVENT_ATTRIBUTES, "exception.message", otel_value_int(1));
    check(part, EVENT_ATTRIBUTES, "exception.stacktrace", otel_value_string("stack"));
    check(part, EVENT_ATTRIBUTES, "mine", otel_value_bool(true));
    assert_true(got->status == NULL || got->status->code == 0);
}

AROUND_EACH(received_begin, received_end);
