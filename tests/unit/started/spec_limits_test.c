/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/spec_limits_test.c - what the OpenTelemetry specification says of the limits
 * of spans and attributes, seen by a strict receiver. */
#include "tests/support/received.h"
#include "tests/support/strict.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { ATTRIBUTES = 9, EVENTS = 11, LINKS = 13, EVENT_ATTRIBUTES = 3, LINK_ATTRIBUTES = 4 };
enum { NO_LIMIT = 31 }; /* of the depth, for what is exempt: receivers can read no more */

static otel_tracer *tracer(void)
{
    return otel_tracer_get("spec.limits", NULL);
}

static otel_span enter(void)
{
    return otel_span_enter(tracer(), "span", NULL);
}

/* That everything that can have attributes and has limits has what these leave of the value. */
static void check_everywhere(otel_value value, size_t length_limit, unsigned depth_limit)
{
    const otel_attribute attribute = otel_attribute_of("the.key", value);
    const size_t index = received_count();
    otel_span span = otel_span_enter(
        tracer(), "span", OTEL_SPAN_OPTIONS(.attributes = &attribute, .attribute_count = 1));
    const otel_link link = {otel_span_get_context(span), &attribute, 1};
    otel_span_add_event(span, "event", &attribute, 1);
    otel_span_add_link(span, &link);
    otel_span_end(span);
    span = otel_span_start(tracer(), "span", NULL);
    otel_span_set_value(span, "the.key", value);
    otel_span_end(span);

    otel_slice part = {NULL, 0};
    received_check(received_bytes(index), ATTRIBUTES, "the.key", value, length_limit, depth_limit);
    received_check(received_bytes(index + 1), ATTRIBUTES, "the.key", value, length_limit,
                   depth_limit);
    assert_true(received_part(received_bytes(index), EVENTS, 0, &part));
    received_check(part, EVENT_ATTRIBUTES, "the.key", value, length_limit, depth_limit);
    assert_true(received_part(received_bytes(index), LINKS, 0, &part));
    received_check(part, LINK_ATTRIBUTES, "the.key", value, length_limit, depth_limit);
}

static void restart(otel_sdk_options *options)
{
    received_stop();
    received_start(options);
}

enum { MANY = 140 };
static char keys[MANY][16];
static otel_attribute many[MANY];

static void make_many(void)
{
    for (size_t i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "many.%zu", i);
        many[i] = otel_attribute_of(keys[i], otel_value_int((int64_t)i));
    }
}

/* A span with `count` of everything, set one by one. */
static void say_so_many(size_t count)
{
    const otel_span span = enter();
    const otel_link link = {otel_span_get_context(span), many, count};
    for (size_t i = 0; i < count; i++) {
        otel_span_set_int(span, keys[i], 1);
        otel_span_add_event(span, "event", many, count);
        otel_span_add_link(span, &link);
    }
    otel_span_end(span);
}

/* What L7 says is left out: the kinds are lines of their own, and come in any order. */
static void leave_out(otel_span span, unsigned kind)
{
    const otel_link link = {otel_span_get_context(span), many, kind == 3 ? 2 : 0};
    if (kind == 0)
        otel_span_set_int(span, "another", 1);
    else if (kind == 1)
        otel_span_add_event(span, "another", NULL, 0);
    else if (kind == 2)
        otel_span_add_event(span, "event", many, 2);
    else
        otel_span_add_link(span, &link);
}

/* First: the log says a line of one kind once in ten seconds. */
/* spec: L7 trace/sdk.md#span-limits MUST stable */
TEST(L7_a_span_says_at_most_once_that_something_is_left_out)
{
    for (unsigned first = 0; first < 4; first++) {
        restart(OTEL_SDK_OPTIONS(.attribute_count_limit = OTEL_ZERO,
                                 .span_event_count_limit = first == 2 ? 1 : OTEL_ZERO,
                                 .event_attribute_count_limit = 1,
                                 .link_attribute_count_limit = 1));
        const otel_span span = first % 2 == 0 ? enter() : otel_span_start(tracer(), "span", NULL);
        leave_out(span, first);
        assert_int_equal(received_logs(), 1);
        for (unsigned i = 1; i < 4; i++)
            leave_out(span, (first + i) % 4);
        otel_span_set_int(span, "", 1);
        otel_span_end(span);

        assert_int_equal(received_logs(), 1);
    }
}

/* spec: L2 trace/sdk.md#span-limits MUST stable */
TEST(L2_the_defaults_are_128_and_no_length)
{
    static char text[100000];
    memset(text, 'x', sizeof text - 1);
    say_so_many(MANY);
    check_everywhere(otel_value_string(text), SIZE_MAX, 64);

    const received_pb_span *got = received_span(0);
    assert_int_equal(got->n_attributes, 128);
    assert_int_equal(got->n_events, 128);
    assert_int_equal(got->n_links, 128);
    assert_int_equal(got->events[0]->n_attributes, 128);
    assert_int_equal(got->links[0]->n_attributes, 128);
}

/* spec: L2 common/README.md#attribute-limits MUST stable */
TEST(L2_limits_of_zero_keep_nothing)
{
    restart(OTEL_SDK_OPTIONS(.attribute_count_limit = OTEL_ZERO,
                             .span_event_count_limit = OTEL_ZERO,
                             .span_link_count_limit = OTEL_ZERO));
    say_so_many(3);
    restart(OTEL_SDK_OPTIONS(.event_attribute_count_limit = OTEL_ZERO,
                             .link_attribute_count_limit = OTEL_ZERO,
                             .attribute_value_length_limit = OTEL_ZERO,
                             .attribute_value_depth_limit = OTEL_ZERO));
    const otel_span span = enter();
    const otel_link link = {otel_span_get_context(span), many, 3};
    otel_span_set_string(span, "text", "text");
    otel_span_set_bytes(span, "bytes", "bytes", 5);
    otel_span_set_string_array(span, "array", (const char *const[]){"a"}, 1);
    otel_span_set_value(span, "map", otel_value_map(many, 3));
    otel_span_set_int(span, "number", 1000000);
    otel_span_add_event(span, "event", many, 3);
    otel_span_add_link(span, &link);
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    assert_int_equal(got->n_attributes, 5);
    assert_int_equal(got->dropped_attributes_count, 0);
    received_check(received_bytes(0), ATTRIBUTES, "text", otel_value_string(""), 0, 0);
    received_check(received_bytes(0), ATTRIBUTES, "bytes", otel_value_bytes("", 0), 0, 0);
    received_check(received_bytes(0), ATTRIBUTES, "array", otel_value_empty(), 0, 0);
    received_check(received_bytes(0), ATTRIBUTES, "map", otel_value_empty(), 0, 0);
    received_check(received_bytes(0), ATTRIBUTES, "number", otel_value_int(1000000), 0, 0);
    assert_int_equal(got->events[0]->n_attributes + got->links[0]->n_attributes, 0);
    assert_int_equal(got->events[0]->dropped_attributes_count, 3);
    assert_int_equal(got->links[0]->dropped_attributes_count, 3);
}

/* Four characters of one to four bytes each, in all orders, cut at every limit.
 * spec: L3 common/README.md#attribute-limits MUST stable */
TEST(L3_the_length_of_a_string_is_counted_in_characters)
{
    static const char *const characters[] = {"a", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (int64_t limit = 1; limit <= 5; limit++) {
        restart(OTEL_SDK_OPTIONS(.attribute_value_length_limit = limit));
        for (size_t order = 0; order < 256; order++) {
            char text[17] = "";
            size_t bytes = 0;
            for (size_t i = 0; i < 4; i++) {
                strcat(text, characters[order >> 2 * i & 3]);
                bytes = i < (size_t)limit ? strlen(text) : bytes;
            }
            otel_span span = enter();
            otel_span_set_string(span, "the.key", text);
            otel_span_end(span);

            const received_pb_span *got = received_span(order);
            assert_int_equal(strlen(got->attributes[0]->value->string_value), bytes);
            assert_memory_equal(got->attributes[0]->value->string_value, text, bytes);
        }
    }
}

static const char *const texts[] = {
    "abcd", "\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", NULL, "", "\xff\xfe\xfd\xfc", "\xe2\x82\xac!"};
static const int64_t integers[] = {INT64_MIN, INT64_MAX, 100000};

/* spec: L3 common/README.md#attribute-limits MUST stable */
TEST(L3_the_limit_is_for_each_string_and_bytes_at_any_depth_and_nothing_else)
{
    const otel_value inner[] = {otel_value_string_array(texts, COUNT(texts)),
                                otel_value_bytes("abcdef", 6), otel_value_int_array(integers, 3),
                                otel_value_double(1.0 / 3)};
    const otel_attribute entries[] = {otel_attribute_of("a long key", otel_value_array(inner, 4)),
                                      otel_attribute_of("text", otel_value_string("abcdef"))};
    const otel_value outer[] = {otel_value_map(entries, 2), otel_value_string(texts[1])};
    for (int64_t limit = 1; limit <= 4; limit++) {
        restart(OTEL_SDK_OPTIONS(.attribute_value_length_limit = limit));
        for (size_t i = 0; i < COUNT(inner); i++)
            check_everywhere(inner[i], (size_t)limit, 64);
        for (size_t i = 0; i < COUNT(texts); i++)
            check_everywhere(otel_value_string(texts[i]), (size_t)limit, 64);
        check_everywhere(otel_value_array(outer, 2), (size_t)limit, 64);
    }
}

/* What has no limit of this kind: names, keys, descriptions.
 * spec: L3 common/README.md#attribute-limits MUST stable */
TEST(L3_only_values_of_attributes_are_cut)
{
    restart(OTEL_SDK_OPTIONS(.attribute_value_length_limit = 1));
    const otel_span span = otel_span_enter(tracer(), "the name", NULL);
    otel_span_set_string(span, "the.key", "text");
    otel_span_add_event(span, "the event", NULL, 0);
    otel_span_fail(span, "the description");
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    assert_string_equal(got->name, "the name");
    assert_string_equal(got->attributes[0]->key, "the.key");
    assert_string_equal(got->attributes[0]->value->string_value, "t");
    assert_string_equal(got->events[0]->name, "the event");
    assert_string_equal(got->status->message, "the description");
}

/* spec: L4 common/README.md#attribute-limits MUST stable */
TEST(L4_the_limit_of_spans_beats_the_general_one_in_both_directions)
{
    restart(OTEL_SDK_OPTIONS(.attribute_count_limit = 2, .span_attribute_count_limit = 4,
                             .attribute_value_length_limit = 2,
                             .span_attribute_value_length_limit = 4));
    say_so_many(9);
    assert_int_equal(received_span(0)->n_attributes, 4);
    check_everywhere(otel_value_string("abcdef"), 4, 64);

    restart(OTEL_SDK_OPTIONS(.attribute_count_limit = 4, .span_attribute_count_limit = 2,
                             .attribute_value_length_limit = 4,
                             .span_attribute_value_length_limit = 2));
    say_so_many(9);
    assert_int_equal(received_span(0)->n_attributes, 2);
    check_everywhere(otel_value_string("abcdef"), 2, 64);
}

/* `depth` arrays or maps in one another, with a number at the bottom. */
enum { DEEPEST = 200 };
static otel_value nested[DEEPEST + 1];
static otel_attribute nested_entries[DEEPEST + 1];

static otel_value nest(size_t depth, bool as_maps)
{
    nested[0] = otel_value_int(7);
    for (size_t i = 1; i <= depth; i++) {
        nested_entries[i] = otel_attribute_of("in", nested[i - 1]);
        nested[i] = as_maps && i % 2 == 0 ? otel_value_map(&nested_entries[i], 1)
                                          : otel_value_array(&nested[i - 1], 1);
    }
    return nested[depth];
}

/* spec: L5 common/README.md#attribute-limits MUST stable */
TEST(L5_what_is_deeper_than_the_limit_is_an_empty_value)
{
    const otel_value sides[] = {otel_value_int(1), otel_value_string("two")};
    for (unsigned limit = 1; limit <= 6; limit++) {
        restart(OTEL_SDK_OPTIONS(.attribute_value_depth_limit = (int64_t)limit));
        for (size_t depth = 0; depth < 9; depth++) {
            check_everywhere(nest(depth, false), SIZE_MAX, limit);
            check_everywhere(nest(depth, true), SIZE_MAX, limit);
            const otel_value mixed[] = {sides[0], nest(depth, true), sides[1]};
            check_everywhere(otel_value_array(mixed, 3), SIZE_MAX, limit);
        }
        const otel_value flat = limit % 2 != 0 ? otel_value_int_array(integers, 3)
                                               : otel_value_string_array(texts, COUNT(texts));
        const otel_value in_one = otel_value_array(&flat, 1);
        check_everywhere(otel_value_array(&in_one, 1), SIZE_MAX, limit);
        assert_int_equal(received_span(0)->dropped_attributes_count, 0);
    }
}

/* spec: L5 common/README.md#configurable-parameters SHOULD stable */
TEST(L5_the_limit_is_31_unless_said_otherwise)
{
    for (size_t depth = 28; depth <= 34; depth++)
        check_everywhere(nest(depth, true), SIZE_MAX, 31);
    check_everywhere(nest(DEEPEST, true), SIZE_MAX, 31);
    restart(OTEL_SDK_OPTIONS(.attribute_value_depth_limit = 30));
    check_everywhere(nest(DEEPEST, true), SIZE_MAX, 30);
}

/* A value that contains itself ends where the limit is, also where it branches.
 * spec: L5 common/README.md#attribute-limits SHOULD stable */
TEST(L5_a_value_without_an_end_ends)
{
    otel_value endless[2];
    endless[0] = otel_value_array(endless, 1);
    check_everywhere(endless[0], SIZE_MAX, 31);

    restart(OTEL_SDK_OPTIONS(.attribute_value_depth_limit = 16));
    endless[0] = endless[1] = otel_value_array(endless, 2);
    const otel_span span = enter();
    otel_span_set_value(span, "large", endless[0]);
    otel_span_end(span);

    assert_int_equal(received_span(0)->n_attributes, 1);
    received_check(received_bytes(0), ATTRIBUTES, "large", endless[0], SIZE_MAX, 16);
}

/* spec: L6 trace/sdk.md#additional-span-interfaces MUST stable */
/* spec: L4 trace/sdk.md#span-limits MAY stable */
TEST(L6_everything_that_is_left_out_is_counted_exactly)
{
    restart(OTEL_SDK_OPTIONS(.attribute_count_limit = 3, .span_event_count_limit = 4,
                             .span_link_count_limit = 5, .event_attribute_count_limit = 6,
                             .link_attribute_count_limit = 7));
    for (size_t count = 0; count < 12; count++) {
        say_so_many(count);
        const received_pb_span *got = received_span(count);
        assert_int_equal(got->n_attributes, count < 3 ? count : 3);
        assert_int_equal(got->dropped_attributes_count, count < 3 ? 0 : count - 3);
        assert_int_equal(got->n_events, count < 4 ? count : 4);
        assert_int_equal(got->dropped_events_count, count < 4 ? 0 : count - 4);
        assert_int_equal(got->n_links, count < 5 ? count : 5);
        assert_int_equal(got->dropped_links_count, count < 5 ? 0 : count - 5);
        for (size_t i = 0; i < got->n_events; i++) {
            assert_int_equal(got->events[i]->n_attributes, count < 6 ? count : 6);
            assert_int_equal(got->events[i]->dropped_attributes_count, count < 6 ? 0 : count - 6);
        }
        for (size_t i = 0; i < got->n_links; i++) {
            assert_int_equal(got->links[i]->n_attributes, count < 7 ? count : 7);
            assert_int_equal(got->links[i]->dropped_attributes_count, count < 7 ? 0 : count - 7);
        }
    }
}

/* spec: L6 common/README.md#attribute-limits MUST stable */
TEST(L6_overwriting_at_the_limit_is_no_drop)
{
    restart(OTEL_SDK_OPTIONS(.attribute_count_limit = 2, .event_attribute_count_limit = 2,
                             .link_attribute_count_limit = 2));
    const otel_attribute list[] = {otel_attribute_of("first", otel_value_int(1)),
                                   otel_attribute_of("second", otel_value_int(2)),
                                   otel_attribute_of("third", otel_value_int(3)),
                                   otel_attribute_of("first", otel_value_int(4)),
                                   otel_attribute_of("second", otel_value_string("5"))};
    const otel_span span = otel_span_enter(
        tracer(), "span", OTEL_SPAN_OPTIONS(.attributes = list, .attribute_count = 3));
    const otel_link link = {otel_span_get_context(span), list, 5};
    otel_span_set_int(span, "first", 4);
    otel_span_set_string(span, "second", "5");
    otel_span_add_event(span, "event", list, 5);
    otel_span_add_link(span, &link);
    otel_span_end(span);

    const received_pb_span *got = received_span(0);
    assert_int_equal(got->n_attributes, 2);
    assert_int_equal(got->dropped_attributes_count, 1);
    assert_int_equal(got->events[0]->dropped_attributes_count, 1);
    assert_int_equal(got->links[0]->dropped_attributes_count, 1);
    otel_slice event = {NULL, 0};
    otel_slice to = {NULL, 0};
    assert_true(received_part(received_bytes(0), EVENTS, 0, &event));
    assert_true(received_part(received_bytes(0), LINKS, 0, &to));
    for (size_t i = 3; i < 5; i++) {
        received_check(received_bytes(0), ATTRIBUTES, list[i].key, list[i].value, SIZE_MAX, 64);
        received_check(event, EVENT_ATTRIBUTES, list[i].key, list[i].value, SIZE_MAX, 64);
        received_check(to, LINK_ATTRIBUTES, list[i].key, list[i].value, SIZE_MAX, 64);
    }
}

/* spec: L6 common/README.md#attribute-limits MUST stable */
TEST(L6_the_entries_of_a_map_do_not_count)
{
    restart(OTEL_SDK_OPTIONS(.attribute_count_limit = 1, .event_attribute_count_limit = 1,
                             .link_attribute_count_limit = 1));
    check_everywhere(otel_value_map(many, MANY), SIZE_MAX, 64);

    assert_int_equal(received_span(0)->attributes[0]->value->kvlist_value->n_values, MANY);
    assert_int_equal(received_span(0)->dropped_attributes_count, 0);
}

/* spec: L8 common/README.md#exempt-entities SHOULD stable */
TEST(L8_resource_and_scope_have_no_limits)
{
    static const char long_text[] = "longer than the limit";
    otel_attribute all[MANY + 2];
    memcpy(all, many, sizeof many);
    all[MANY] = otel_attribute_of("text", otel_value_string(long_text));
    all[MANY + 1] = otel_attribute_of("deep", nest(9, true));
    restart(OTEL_SDK_OPTIONS(.attribute_count_limit = 1, .attribute_value_length_limit = 1,
                             .attribute_value_depth_limit = 1, .resource = all,
                             .resource_count = COUNT(all)));
    otel_tracer *scoped = otel_tracer_get_with(
        "limits", NULL, OTEL_TRACER_OPTIONS(.attributes = all, .attribute_count = COUNT(all)));
    otel_span_end(otel_span_enter(scoped, "span", NULL));

    for (size_t i = 0; i < COUNT(all); i++) {
        received_check(received_resource(), OTEL_FIELD_RESOURCE_ATTRIBUTE, all[i].key, all[i].value,
                       SIZE_MAX, NO_LIMIT);
        received_check(received_scope(), OTEL_FIELD_SCOPE_ATTRIBUTE, all[i].key, all[i].value,
                       SIZE_MAX, NO_LIMIT);
    }
}

static int setup(void **state)
{
    (void)state;
    make_many();
    received_start(NULL);
    return 0;
}

AROUND_EACH(setup, received_end);
