/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/api/describe_test.c - specification of what can be said about a span: unique keys,
 * exact limits, the order of statuses, and that nothing here ever fails. */
#include "api/handle.h"
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

/* The value of a string or an integer attribute, as text. */
static void put_value(char *out, size_t size, const struct oteli_field *any)
{
    struct oteli_field value;
    if (recorder_find(any->bytes, any->length, 1, 0, &value))
        snprintf(out, size, "%.*s", (int)value.length, (const char *)value.bytes);
    else if (recorder_find(any->bytes, any->length, 3, 0, &value))
        snprintf(out, size, "%lld", (long long)value.value);
    else
        snprintf(out, size, "?");
}

/* The attributes of a message as "key=value key=value ". */
static void list(const uint8_t *message, size_t length, uint32_t number, char *out, size_t size)
{
    struct oteli_field pair;
    struct oteli_field key;
    struct oteli_field any;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; recorder_find(message, length, number, i, &pair); i++) {
        char value[64];
        assert_true(recorder_find(pair.bytes, pair.length, 1, 0, &key));
        assert_true(recorder_find(pair.bytes, pair.length, 2, 0, &any));
        put_value(value, sizeof value, &any);
        used += (size_t)snprintf(out + used, size - used, "%.*s=%s ", (int)key.length,
                                 (const char *)key.bytes, value);
        assert_true(used < size);
    }
}

static const char *attributes_of(size_t index)
{
    static char out[8192];
    const struct recorded_span span = recorder_span(index);
    list(span.message, span.length, ATTRIBUTES, out, sizeof out);
    return out;
}

static uint64_t number_of(size_t index, uint32_t field)
{
    return recorder_has_field(index, field) ? recorder_field(index, field).value : 0;
}

static size_t count_of(size_t index, uint32_t number)
{
    const struct recorded_span span = recorder_span(index);
    struct oteli_field field;
    size_t count = 0;
    while (recorder_find(span.message, span.length, number, count, &field))
        count++;
    return count;
}

AROUND_EACH(recorder_setup, recorder_teardown);

/* First: the log says a line of one kind once in ten seconds. */
TEST(the_attribute_limit_is_exact_and_replacing_is_no_drop)
{
    recorder.sdk.limits.attributes = 2;
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_int(span, "a", 1);
    otel_span_set_int(span, "b", 2);
    otel_span_set_int(span, "c", 3);
    otel_span_set_string(span, "d", "4");
    otel_span_set_double(span, "e", 5);
    otel_span_set_int(span, "a", 6);
    otel_span_end(span);

    assert_string_equal(attributes_of(0), "b=2 a=6 ");
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 3);
    assert_int_equal(recorder.logs, 1);
}

TEST_FAST_TOO(a_key_is_there_once_with_its_last_value)
{
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_int(span, "a", 1);
    otel_span_set_string(span, "bb", "two");
    otel_span_set_int(span, "ccc", 3);
    otel_span_set_string(span, "a", "one");
    otel_span_set_int(span, "ccc", 33);
    otel_span_set_string(span, "bb", "a longer two");
    otel_span_set_int(span, "xbb", 4);
    otel_span_end(span);

    assert_string_equal(attributes_of(0), "a=one ccc=33 bb=a longer two xbb=4 ");
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 0);
}

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

    assert_int_equal(count_of(0, ATTRIBUTES), 6);
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
        snprintf(expected, sizeof expected, "%s", attributes_of(2 * round + 1));
        assert_string_equal(attributes_of(2 * round), expected);
        assert_int_equal(number_of(2 * round, DROPPED_ATTRIBUTES),
                         number_of(2 * round + 1, DROPPED_ATTRIBUTES));
    }
}

TEST_FAST_TOO(start_attributes_can_be_replaced_too)
{
    const otel_attribute attributes[] = {otel_attribute_of("a", otel_value_int(1)),
                                         otel_attribute_of("b", otel_value_int(2)),
                                         otel_attribute_of("a", otel_value_int(3))};
    const otel_span span = otel_span_start(
        tracer(), "span", OTEL_SPAN_OPTIONS(.attributes = attributes, .attribute_count = 3));
    otel_span_set_int(span, "b", 4);
    otel_span_end(span);

    assert_string_equal(attributes_of(0), "a=3 b=4 ");
}

TEST(empty_keys_are_left_out_and_said)
{
    const otel_attribute attributes[] = {otel_attribute_of(NULL, otel_value_int(1)),
                                         otel_attribute_of("", otel_value_int(2))};
    const otel_span span = otel_span_enter(
        tracer(), "span", OTEL_SPAN_OPTIONS(.attributes = attributes, .attribute_count = 2));
    otel_span_set_int(span, "", 1);
    otel_span_set_string(span, NULL, "x");
    otel_span_set_bool(span, "", true);
    otel_span_end(span);

    assert_int_equal(count_of(0, ATTRIBUTES), 0);
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 0);
    assert_int_equal(recorder.logs, 1);
}

TEST_FAST_TOO(a_bad_key_is_known_by_what_it_becomes_at_the_limit_too)
{
    recorder.sdk.limits.attributes = 1;
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_int(span, "a\xff", 1);
    otel_span_set_int(span, "a\xfe", 2);
    otel_span_set_string(span, "a\xff", "three");
    otel_span_end(span);

    assert_string_equal(attributes_of(0), "a\xef\xbf\xbd=three ");
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 0);
}

TEST_FAST_TOO(limits_of_zero_leave_everything_out)
{
    recorder.sdk.limits = (struct oteli_limits){.value_length = SIZE_MAX};
    const otel_link link = {otel_span_get_context(otel_span_enter(tracer(), "outer", NULL)), NULL,
                            0};
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    otel_span_set_int(span, "a", 1);
    otel_span_add_event(span, "e", NULL, 0);
    otel_span_add_link(span, &link);
    otel_span_end(span);

    assert_int_equal(count_of(0, ATTRIBUTES) + count_of(0, EVENTS) + count_of(0, LINKS), 0);
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 1);
    assert_int_equal(number_of(0, DROPPED_EVENTS), 1);
    assert_int_equal(number_of(0, DROPPED_LINKS), 1);
}

TEST_FAST_TOO(the_value_length_limit_counts_characters)
{
    recorder.sdk.limits.value_length = 3;
    const otel_attribute attribute = otel_attribute_of("k", otel_value_string("abcdef"));
    const otel_span span =
        otel_span_enter(tracer(), "the name is not cut",
                        OTEL_SPAN_OPTIONS(.attributes = &attribute, .attribute_count = 1));
    otel_span_set_string(span, "ascii", "abcdef");
    otel_span_set_string(span, "exact", "abc");
    otel_span_set_string(span, "wide", "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac");
    otel_span_add_event(span, "event name", &attribute, 1);
    otel_span_end(span);

    assert_string_equal(attributes_of(0),
                        "k=abc ascii=abc exact=abc wide=\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac ");
    assert_int_equal(recorder_field(0, NAME).length, strlen("the name is not cut"));
    const struct oteli_field event = recorder_field(0, EVENTS);
    char text[64];
    list(event.bytes, event.length, 3, text, sizeof text);
    assert_string_equal(text, "k=abc ");
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

    assert_int_equal(count_of(0, ATTRIBUTES), 1000);
    assert_int_equal(number_of(0, DROPPED_ATTRIBUTES), 0);
}

static const struct {
    otel_span_status set[3];
    const char *description[3];
    otel_span_status kept;
    const char *message;
} statuses[] = {
    {{OTEL_SPAN_STATUS_UNSET}, {"x"}, OTEL_SPAN_STATUS_UNSET, ""},
    {{OTEL_SPAN_STATUS_ERROR}, {"x"}, OTEL_SPAN_STATUS_ERROR, "x"},
    {{OTEL_SPAN_STATUS_ERROR}, {NULL}, OTEL_SPAN_STATUS_ERROR, ""},
    {{OTEL_SPAN_STATUS_ERROR, OTEL_SPAN_STATUS_UNSET}, {"x", "y"}, OTEL_SPAN_STATUS_ERROR, "x"},
    {{OTEL_SPAN_STATUS_ERROR, OTEL_SPAN_STATUS_ERROR}, {"xx", "y"}, OTEL_SPAN_STATUS_ERROR, "y"},
    {{OTEL_SPAN_STATUS_ERROR, OTEL_SPAN_STATUS_OK}, {"x", "y"}, OTEL_SPAN_STATUS_OK, ""},
    {{OTEL_SPAN_STATUS_OK, OTEL_SPAN_STATUS_ERROR}, {"x", "y"}, OTEL_SPAN_STATUS_OK, ""},
    {{OTEL_SPAN_STATUS_OK, OTEL_SPAN_STATUS_UNSET}, {"x", "y"}, OTEL_SPAN_STATUS_OK, ""},
    {{OTEL_SPAN_STATUS_OK}, {"x"}, OTEL_SPAN_STATUS_OK, ""},
    {{(otel_span_status)7, OTEL_SPAN_STATUS_ERROR}, {"x", "z"}, OTEL_SPAN_STATUS_ERROR, "z"},
};

TEST_FAST_TOO(ok_beats_error_beats_unset)
{
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        const otel_span span = otel_span_enter(tracer(), "span", NULL);
        for (size_t k = 0; k < 3; k++)
            otel_span_set_status(span, statuses[i].set[k], statuses[i].description[k]);
        otel_span_end(span);

        if (statuses[i].kept == OTEL_SPAN_STATUS_UNSET) {
            assert_false(recorder_has_field(i, STATUS));
            continue;
        }
        const struct oteli_field status = recorder_field(i, STATUS);
        struct oteli_field part;
        assert_true(recorder_find(status.bytes, status.length, 3, 0, &part));
        assert_int_equal(part.value, statuses[i].kept);
        const bool has_message = recorder_find(status.bytes, status.length, 2, 0, &part);
        assert_int_equal(has_message, statuses[i].message[0] != '\0');
        assert_int_equal(has_message ? part.length : 0, strlen(statuses[i].message));
    }
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
        char text[256];
        assert_true(recorder_find(recorded.message, recorded.length, EVENTS, i, &event));
        list(event.bytes, event.length, 3, text, sizeof text);
        assert_string_equal(text, expected[i]);
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

TEST(events_keep_their_order_and_their_times)
{
    const otel_span span = otel_span_enter(tracer(), "span", NULL);
    recorder_at(42);
    otel_span_add_event(span, "now", NULL, 0);
    otel_span_add_event_at(span, "then", 12345, NULL, 3);
    otel_span_end(span);

    static const uint64_t times[] = {RECORDER_WALL_NS + 42, 12345};
    const struct recorded_span recorded = recorder_span(0);
    for (size_t i = 0; i < 2; i++) {
        struct oteli_field event;
        struct oteli_field time;
        assert_true(recorder_find(recorded.message, recorded.length, EVENTS, i, &event));
        assert_true(recorder_find(event.bytes, event.length, 1, 0, &time));
        assert_true(time.value == times[i]);
    }
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

    assert_int_equal(count_of(0, LINKS), 2);
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
        oteli_leaks_fail_at(0);
        otel_span_end(span);

        assert_int_equal(recorder.count, 1);
        assert_int_equal(errno_after, EPIPE);
        assert_int_equal(count_of(0, ATTRIBUTES) + number_of(0, DROPPED_ATTRIBUTES), 47);
        assert_int_equal(count_of(0, EVENTS) + number_of(0, DROPPED_EVENTS), 2);
        assert_int_equal(count_of(0, LINKS) + number_of(0, DROPPED_LINKS), 1);
        if (!failed)
            break;
    }
}

TEST_FAST_TOO(nothing_is_kept_after_the_end)
{
    const otel_span spans[] = {otel_span_enter(tracer(), "entered", NULL),
                               otel_span_start(tracer(), "started", NULL)};
    for (size_t i = 0; i < 2; i++) {
        assert_true(otel_span_is_recording(spans[i]));
        otel_span_end(spans[i]);
        assert_false(otel_span_is_recording(spans[i]));
    }
    const otel_span next = otel_span_enter(tracer(), "next in the slot", NULL);
    const otel_span other = otel_span_start(tracer(), "next in the pool", NULL);
    for (size_t i = 0; i < 2; i++)
        say_everything(spans[i]);
    otel_span_end(next);
    otel_span_end(other);

    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(count_of(i, ATTRIBUTES) + count_of(i, EVENTS) + count_of(i, LINKS), 0);
        assert_false(recorder_has_field(i, STATUS));
    }
}

TEST_FAST_TOO(handles_of_nothing_are_harmless)
{
    const otel_span_context context = {{1}, {1}, 1, false, {0}, 0};
    const otel_span spans[] = {
        {{0}},
        otel_span_wrap(&context),
        {{1, 2, 3, UINT64_MAX}},
        {{1, 2, 3, oteli_ref_make(0, OTELI_PLACE_LOCAL, true, 0, 0)}},
        {{1, 2, 3, oteli_ref_make(0, OTELI_PLACE_DETACHED, true, OTELI_SLOT_MAX, OTELI_SLOT_MAX)}}};
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        say_everything(spans[i]);
        assert_false(otel_span_is_recording(spans[i]));
        otel_span_end(spans[i]);
        otel_span_end_at(spans[i], 5);
    }
    assert_int_equal(recorder.count, 0);
}

TEST_FAST_TOO(a_span_of_a_former_sdk_is_not_recording)
{
    const otel_span entered = otel_span_enter(tracer(), "entered", NULL);
    const otel_span started = otel_span_start(tracer(), "started", NULL);
    recorder_stop();
    assert_false(otel_span_is_recording(entered));
    assert_false(otel_span_is_recording(started));
    recorder_start();
    assert_false(otel_span_is_recording(entered));
    assert_false(otel_span_is_recording(started));
    say_everything(entered);
    say_everything(started);
    otel_span_end(entered);
    otel_span_end(started);

    assert_int_equal(recorder.count, 0);
    assert_int_equal(recorder_counts().ended, 0);
}
