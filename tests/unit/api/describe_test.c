/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/describe_test.c - specification of what can be said about a span: unique keys,
 * exact limits, the order of statuses, and that nothing here ever fails. */
#include "api/context/handle.h"
#include "tests/support/leaks.h"
#include "tests/support/recorder.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { NAME = 5, ATTRIBUTES = 9, DROPPED_ATTRIBUTES = 10, EVENTS = 11, DROPPED_EVENTS = 12 };
enum { LINKS = 13, DROPPED_LINKS = 14, STATUS = 15 };

static otel_tracer *tracer(void)
{
    return otel_tracer_get("describe", NULL);
}

static uint64_t number_of(size_t index, uint32_t field)
{
    return recorder_has_field(index, field) ? recorder_field(index, field).value : 0;
}

AROUND_EACH(recorder_setup, recorder_teardown);

TEST_FAST_TOO(keys_that_only_look_alike_are_different)
{
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_int(span, "http.a", 1);
    otel_span_set_int(span, "xttp.a", 2);
    otel_span_set_int(span, "a", 3);
    otel_span_set_int(span, "A", 4);
    otel_span_set_int_n(otel_span_ref_of(&span), "a\0b", 3, 5);
    otel_span_set_int_n(otel_span_ref_of(&span), "a\0c", 3, 6);
    otel_span_end(span);

    assert_int_equal(recorder_count(0, ATTRIBUTES), 6);
}

/* Keys that come again, in an order that has nothing to do with it: of the two spans, one is
 * told everything by the functions for each type, the other as a value of any type. */
TEST_FAST_TOO(keys_that_come_again_are_found_either_way)
{
    uint32_t seed = 1;
    for (size_t round = 0; round < 100; round++) {
        recorder.sdk.limits.attributes = round % 2 == 0 ? 128 : 20;
        const otel_span by_type = otel_span_enter(tracer(), "span", NULL);
        const otel_span by_value =
            otel_span_start(tracer(), "span", OTEL_SPAN_OPTIONS(.root = true));
        for (size_t i = 0; i < 200; i++) {
            char key[32];
            seed = seed * 1664525 + 1013904223;
            snprintf(key, sizeof key, "%.*s%u", (int)(seed >> 28), "service.instance",
                     seed >> 16 & 63);
            if ((seed >> 8 & 1) != 0) {
                otel_span_set_int(by_type, key, seed);
                otel_span_set_value(by_value, key, otel_value_int(seed));
            } else {
                otel_span_set_string(by_type, key, &key[seed >> 9 & 1]);
                otel_span_set_value(by_value, key, otel_value_string(&key[seed >> 9 & 1]));
            }
        }
        otel_span_end(by_type);
        otel_span_end(by_value);

        char expected[8192];
        snprintf(expected, sizeof expected, "%s", recorder_span_attributes(2 * round + 1));
        assert_string_equal(recorder_span_attributes(2 * round), expected);
        assert_int_equal(number_of(2 * round, DROPPED_ATTRIBUTES),
                         number_of(2 * round + 1, DROPPED_ATTRIBUTES));
    }
}

TEST_FAST_TOO(a_bad_key_is_known_by_what_it_becomes_at_the_limit_too)
{
    recorder.sdk.limits.attributes = 1;
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_int(span, "a\xff", 1);
    otel_span_set_int(span, "a\xfe", 2);
    otel_span_set_string(span, "a\xff", "three");
    otel_span_end(span);
    const otel_attribute same[] = {
        otel_attribute_of("\xef\xbfk", otel_value_int(1)), /* differ first at a k */
        otel_attribute_of("\xef\xbf\xbd\xffk", otel_value_int(2))};
    const otel_span other = otel_span_enter(tracer(), "span", NULL);
    otel_span_add_event(other, "event", same, 2);
    otel_span_end(other);

    assert_string_equal(recorder_span_attributes(0), "a\xef\xbf\xbd=three ");
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 0);
    const struct oteli_field event = recorder_field(1, EVENTS);
    assert_string_equal(recorder_attributes(event.bytes, event.length, 3),
                        "\xef\xbf\xbd\xef\xbf\xbdk=2 ");
}

TEST_FAST_TOO(many_attributes_grow_the_span)
{
    recorder.sdk.limits.attributes = 5000;
    const otel_span span = otel_span_start(tracer(), "span", NULL);
    char key[16];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 1000; i++) {
            snprintf(key, sizeof key, "key.%d", i);
            otel_span_set_int(span, key, i);
        }
    otel_span_end(span);

    assert_int_equal(recorder_count(0, ATTRIBUTES), 1000);
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 0);
}

TEST_FAST_TOO(an_exception_is_an_event_with_what_is_known)
{
    const otel_attribute more[] = {otel_attribute_of("mine", otel_value_int(1)),
                                   otel_attribute_of("exception.type", otel_value_string("Mine"))};
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_record_exception(span, "Type", "message", "stack", NULL, 0);
    otel_span_record_exception(span, NULL, "only", NULL, NULL, 0);
    otel_span_record_exception(span, "Type", NULL, NULL, more, 2);
    otel_span_record_exception(span, NULL, NULL, NULL, NULL, 0);
    otel_span_end(span);

    static const char *const expected[] = {
        "exception.type=Type exception.message=message exception.stacktrace=stack ",
        "exception.message=only ", "exception.type=Mine mine=1 ", ""};
    const struct recorded_span recorded = recorder_span(0);
    for (size_t i = 0; i < 4; i++) {
        struct oteli_field event;
        assert_true(recorder_find(recorded.message, recorded.length, EVENTS, i, &event));
        assert_string_equal(recorder_attributes(event.bytes, event.length, 3), expected[i]);
    }
    assert_false(recorder_has_field(0, STATUS));
}

TEST_FAST_TOO(an_exception_with_many_attributes)
{
    otel_attribute many[40];
    char keys[40][8];
    for (size_t i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "k%zu", i);
        many[i] = otel_attribute_of(keys[i], otel_value_int((int64_t)i));
    }
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_record_exception(span, "Type", NULL, NULL, many, 40);
    otel_span_end(span);

    const struct oteli_field event = recorder_field(0, EVENTS);
    struct oteli_field field;
    assert_true(recorder_find(event.bytes, event.length, 3, 40, &field));
    assert_false(recorder_find(event.bytes, event.length, 3, 41, &field));
}

TEST_FAST_TOO(a_link_to_nothing_is_kept_if_it_says_something)
{
    const otel_attribute attribute = otel_attribute_of("why", otel_value_int(1));
    const otel_link nothing = {{{0}, {0}, 0, false, {0}, 0}, NULL, 4};
    const otel_link says = {{{0}, {0}, 0, false, {0}, 0}, &attribute, 1};
    const otel_attribute keyless = otel_attribute_of("", otel_value_int(1));
    const otel_link tries = {{{0}, {0}, 0, false, {0}, 0}, &keyless, 1};
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_add_link(span, NULL);
    otel_span_add_link(span, &nothing);
    otel_span_add_link(span, &says);
    otel_span_add_link(span, &tries);
    otel_span_end(span);

    assert_int_equal(recorder_count(0, LINKS), 2);
    assert_int_equal(number_of(0, DROPPED_LINKS), 0);
}

TEST_FAST_TOO(a_name_can_be_changed_any_number_of_times)
{
    static const char long_name[] =
        "a name that is so long that it does not fit into the span itself";
    static const char *const names[] = {long_name, "short", long_name, "", NULL, "last \xff"};
    for (size_t i = 0; i < 6; i++) {
        const otel_span span = otel_span_enter(tracer(), "first", NULL);
        for (size_t k = 0; k <= i; k++)
            otel_span_update_name(span, names[k]);
        otel_span_end(span);
    }
    assert_int_equal(recorder_field(0, NAME).length, strlen(long_name));
    assert_int_equal(recorder_field(1, NAME).length, 5);
    assert_memory_equal(recorder_field(2, NAME).bytes, long_name, strlen(long_name));
    assert_false(recorder_has_field(3, NAME));
    assert_false(recorder_has_field(4, NAME));
    assert_memory_equal(recorder_field(5, NAME).bytes, "last \xef\xbf\xbd", 8);
}

static void say_everything(otel_span span)
{
    static char large[3000];
    memset(large, 'x', sizeof large - 1);
    const otel_attribute attribute = otel_attribute_of("k", otel_value_string(large));
    const otel_link link = {otel_span_get_context(span), &attribute, 1};
    otel_attribute many[20];
    for (size_t i = 0; i < 20; i++)
        many[i] = attribute;
    otel_span_set_string(span, "string", large);
    otel_span_set_int(span, "int", 1);
    otel_span_set_double(span, "double", 1);
    otel_span_set_bool(span, "bool", true);
    otel_span_set_bytes(span, large, large, sizeof large);
    otel_span_set_string_n(otel_span_ref_of(&span), "\xff\xff", 2, large, 20);
    char bad_key[400];
    memset(bad_key, 0xff, sizeof bad_key - 1);
    bad_key[sizeof bad_key - 1] = '\0';
    otel_span_set_int(span, bad_key, 1);
    for (int i = 0; i < 40; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%d", i);
        otel_span_set_int(span, key, i);
    }
    otel_span_add_event(span, "event", &attribute, 1);
    otel_span_record_exception(span, "Type", large, NULL, many, 20);
    otel_span_add_link(span, &link);
    otel_span_fail(span, large);
    otel_span_update_name(span, large);
}

static void *leave_open(void *unused)
{
    say_everything(otel_span_enter(tracer(), "left", NULL));
    return unused;
}

static void *touch_one(void *unused)
{
    otel_span_end(otel_span_enter(tracer(), "next", NULL));
    return unused;
}

TEST(nothing_of_a_span_that_its_thread_has_left_is_on_the_next)
{
    recorder_on_thread(leave_open, NULL);
    recorder_on_thread(touch_one, NULL);
    assert_memory_equal(recorder_field(0, NAME).bytes, "next", 4);
    assert_int_equal(recorder_count(0, ATTRIBUTES) + recorder_count(0, EVENTS), 0);
    assert_int_equal(recorder_count(0, LINKS) + recorder_count(0, STATUS), 0);
}

TEST(without_memory_less_is_said_and_all_of_it_is_counted)
{
    for (size_t nth = 1;; nth++) {
        oteli_api_reset();
        oteli_leaks_check();
        oteli_leaks_begin();
        recorder_stop();
        recorder_start();
        const otel_span span = otel_span_start(tracer(), "span", NULL);
        oteli_leaks_fail_at(nth);
        errno = EPIPE;
        say_everything(span);
        const bool failed = oteli_leaks_failed();
        const int errno_after = errno;
        otel_span_end(span);

        assert_int_equal(recorder.count, 1);
        assert_int_equal(errno_after, EPIPE);
        assert_int_equal(recorder_count(0, ATTRIBUTES) + number_of(0, DROPPED_ATTRIBUTES), 47);
        assert_int_equal(recorder_count(0, EVENTS) + number_of(0, DROPPED_EVENTS), 2);
        assert_int_equal(recorder_count(0, LINKS) + number_of(0, DROPPED_LINKS), 1);
        assert_true(recorder_field(0, NAME).length == 2999 ||
                    (failed && recorder_field(0, NAME).length == 48)); /* what has a place */
        if (!failed)
            break;
    }
}

TEST_FAST_TOO(handles_of_nothing_are_harmless)
{
    const otel_span_context context = {{1}, {1}, 1, false, {0}, 0};
    const otel_span spans[] = {
        {{0}},
        otel_span_wrap(&context),
        {{1, 2, 3, UINT64_MAX}},
        {{1, 2, 3, oteli_ref_make(0, OTELI_SPAN_ON_STACK, true, 0, 0)}},
        {{1, 2, 3, oteli_ref_make(0, OTELI_SPAN_IN_POOL, true, OTELI_INDEX_MAX, OTELI_INDEX_MAX)}}};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        say_everything(spans[i]);
        assert_false(otel_span_is_recording(spans[i]));
        otel_span_end(spans[i]);
        otel_span_end_at(spans[i], 5);
    }
    assert_int_equal(recorder.count, 0);
}
