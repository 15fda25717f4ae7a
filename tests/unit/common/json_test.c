/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/json_test.c - OTLP/JSON, type by type, as exact text. */
#include "proto/json.h"

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Common__V1__AnyValue any_value;
typedef Opentelemetry__Proto__Common__V1__KeyValue key_value;
typedef Opentelemetry__Proto__Trace__V1__Span otlp_span;

#define ANY(member, tag, value)                                                                    \
    ((any_value){                                                                                  \
        .base = PROTOBUF_C_MESSAGE_INIT(&opentelemetry__proto__common__v1__any_value__descriptor), \
        .value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##tag,                    \
        .member = value})

struct line {
    ProtobufCBuffer base;
    char text[4096];
    size_t length;
};

static void append(ProtobufCBuffer *base, size_t length, const uint8_t *data)
{
    struct line *line = (struct line *)base;
    assert_true(line->length + length < sizeof line->text);
    memcpy(line->text + line->length, data, length);
    line->length += length;
}

static void assert_json(const ProtobufCMessage *message, const char *expected)
{
    struct line line = {.base.append = append};
    oteli_leaks_begin();
    assert_true(oteli_json_print(message, &line.base));
    oteli_leaks_check();
    assert_string_equal(line.text, expected);
}

#define assert_any_json(member, tag, value, expected) \
    assert_json(&ANY(member, tag, value).base, expected)

TEST(a_span_with_no_field_and_with_every_field)
{
    uint8_t trace_id[16] = {0x5b, 0x8e, 0xff, 0xf7, 0x98, 0x03, 0x81, 0x03,
                            0xd2, 0x69, 0xb6, 0x33, 0x81, 0x3f, 0xc6, 0x0c};
    uint8_t span_id[8] = {0xee, 0xe1, 0x9b, 0x7e, 0xc3, 0xc1, 0xb1, 0x74};
    uint8_t parent_id[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    Opentelemetry__Proto__Trace__V1__Span__Event event =
        OPENTELEMETRY__PROTO__TRACE__V1__SPAN__EVENT__INIT;
    event.time_unix_nano = 3;
    event.name = (char[]){"retry"};
    Opentelemetry__Proto__Trace__V1__Span__Link link =
        OPENTELEMETRY__PROTO__TRACE__V1__SPAN__LINK__INIT;
    link.trace_id = (ProtobufCBinaryData){16, trace_id};
    link.span_id = (ProtobufCBinaryData){8, span_id};
    link.flags = 769;
    Opentelemetry__Proto__Trace__V1__Status status = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__INIT;
    status.message = (char[]){"declined"};
    status.code = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
    any_value value = ANY(int_value, INT_VALUE, 1299);
    key_value attribute = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
    attribute.key = (char[]){"cents"};
    attribute.value = &value;
    otlp_span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    assert_json(&span.base, "{}");
    span.trace_id = link.trace_id;
    span.span_id = link.span_id;
    span.parent_span_id = (ProtobufCBinaryData){8, parent_id};
    span.trace_state = (char[]){"a=b"};
    span.flags = 257;
    span.name = (char[]){"charge"};
    span.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    span.start_time_unix_nano = 1;
    span.end_time_unix_nano = UINT64_MAX;
    span.n_attributes = 1;
    span.attributes = (key_value *[]){&attribute};
    span.dropped_attributes_count = UINT32_MAX;
    span.n_events = 1;
    span.events = (Opentelemetry__Proto__Trace__V1__Span__Event *[]){&event};
    span.dropped_events_count = 5;
    span.n_links = 1;
    span.links = (Opentelemetry__Proto__Trace__V1__Span__Link *[]){&link};
    span.dropped_links_count = 6;
    span.status = &status;

    assert_json(&span.base,
                "{\"traceId\":\"5b8efff798038103d269b633813fc60c\",\"spanId\":\"eee19b7ec3c1b174\","
                "\"traceState\":\"a=b\",\"parentSpanId\":\"0000000000000001\",\"name\":\"charge\","
                "\"kind\":2,\"startTimeUnixNano\":\"1\","
                "\"endTimeUnixNano\":\"18446744073709551615\","
                "\"attributes\":[{\"key\":\"cents\",\"value\":{\"intValue\":\"1299\"}}],"
                "\"droppedAttributesCount\":4294967295,"
                "\"events\":[{\"timeUnixNano\":\"3\",\"name\":\"retry\"}],"
                "\"droppedEventsCount\":5,"
                "\"links\":[{\"traceId\":\"5b8efff798038103d269b633813fc60c\","
                "\"spanId\":\"eee19b7ec3c1b174\",\"flags\":769}],\"droppedLinksCount\":6,"
                "\"status\":{\"message\":\"declined\",\"code\":2},\"flags\":257}");
}

TEST(scalar_values_and_members_of_a_oneof_also_with_their_default)
{
    assert_any_json(string_value, STRING_VALUE, (char[]){"text"}, "{\"stringValue\":\"text\"}");
    assert_any_json(string_value, STRING_VALUE, (char[]){""}, "{\"stringValue\":\"\"}");
    assert_any_json(bool_value, BOOL_VALUE, 1, "{\"boolValue\":true}");
    assert_any_json(bool_value, BOOL_VALUE, 0, "{\"boolValue\":false}");
    assert_any_json(int_value, INT_VALUE, INT64_MIN, "{\"intValue\":\"-9223372036854775808\"}");
    assert_any_json(int_value, INT_VALUE, 0, "{\"intValue\":\"0\"}");
    assert_any_json(int_value, _NOT_SET, 7, "{}");
    assert_any_json(string_value_strindex, STRING_VALUE_STRINDEX, -1,
                    "{\"stringValueStrindex\":-1}");
}

TEST(doubles_are_short_and_exact)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0, "0"},
                {0.1, "0.1"},
                {-1.5e300, "-1.5e+300"},
                {1.0 / 3.0, "0.3333333333333333"},
                {(double)NAN, "\"NaN\""},
                {(double)INFINITY, "\"Infinity\""},
                {(double)-INFINITY, "\"-Infinity\""}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "{\"doubleValue\":%s}", rows[i].text);
        assert_any_json(double_value, DOUBLE_VALUE, rows[i].value, expected);
    }
}

TEST(bytes_are_base64)
{
    uint8_t bytes[] = {0xfb, 0xff, 0x00, 0x01};
    const char *expected[] = {"{\"bytesValue\":\"\"}", "{\"bytesValue\":\"+w==\"}",
                              "{\"bytesValue\":\"+/8=\"}", "{\"bytesValue\":\"+/8A\"}",
                              "{\"bytesValue\":\"+/8AAQ==\"}"};
    for (size_t length = 0; length <= sizeof bytes; length++)
        assert_any_json(bytes_value, BYTES_VALUE, ((ProtobufCBinaryData){length, bytes}),
                        expected[length]);
}

TEST(strings_are_escaped_and_what_is_not_utf8_never_reaches_the_output)
{
    assert_any_json(string_value, STRING_VALUE, (char[]){"\"\\/\b\f\n\r\t\x01\x1f\x7fµ語"},
                    "{\"stringValue\":\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7fµ語\"}");
    assert_any_json(string_value, STRING_VALUE, (char[]){"a\xff\xc3µ\xed\xa0\x80"},
                    "{\"stringValue\":\"a\\ufffd\\ufffdµ\\ufffd\\ufffd\\ufffd\"}");
}

TEST(lists_and_maps)
{
    any_value one = ANY(int_value, INT_VALUE, 1);
    any_value none = ANY(int_value, _NOT_SET, 0);
    Opentelemetry__Proto__Common__V1__ArrayValue list =
        OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    list.n_values = 2;
    list.values = (any_value *[]){&one, &none};
    any_value inner = ANY(array_value, ARRAY_VALUE, &list);
    key_value pair = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
    pair.key = (char[]){"k"};
    pair.value = &inner;
    Opentelemetry__Proto__Common__V1__KeyValueList map =
        OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE_LIST__INIT;
    assert_any_json(kvlist_value, KVLIST_VALUE, &map, "{\"kvlistValue\":{}}");
    map.n_values = 2;
    map.values = (key_value *[]){&pair, &pair};

    assert_any_json(
        kvlist_value, KVLIST_VALUE, &map,
        "{\"kvlistValue\":{\"values\":["
        "{\"key\":\"k\",\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{}]}}},"
        "{\"key\":\"k\",\"value\":{\"arrayValue\":{\"values\":[{\"intValue\":\"1\"},{}]}}}"
        "]}}");
}

TEST(repeated_strings)
{
    Opentelemetry__Proto__Common__V1__EntityRef entity =
        OPENTELEMETRY__PROTO__COMMON__V1__ENTITY_REF__INIT;
    entity.type = (char[]){"host"};
    entity.n_id_keys = 2;
    entity.id_keys = (char *[]){(char[]){"host.id"}, (char[]){""}};
    assert_json(&entity.base, "{\"type\":\"host\",\"idKeys\":[\"host.id\",\"\"]}");
}

TEST(a_point_stays_a_point_in_every_locale)
{
    const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ps_AF.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        (void)setlocale(LC_NUMERIC, locales[i]);
        assert_any_json(double_value, DOUBLE_VALUE, 1.5, "{\"doubleValue\":1.5}");
    }
    (void)setlocale(LC_NUMERIC, "C");
}

TEST(nesting_has_a_limit)
{
    enum { LISTS = OTELI_JSON_DEPTH_MAX };
    static any_value values[LISTS + 1];
    static any_value *pointers[LISTS + 1];
    static Opentelemetry__Proto__Common__V1__ArrayValue lists[LISTS];
    values[0] = ANY(bool_value, BOOL_VALUE, 1);
    for (size_t i = 0; i < LISTS; i++) {
        opentelemetry__proto__common__v1__array_value__init(&lists[i]);
        pointers[i] = &values[i];
        lists[i].values = &pointers[i];
        lists[i].n_values = 1;
        values[i + 1] = ANY(array_value, ARRAY_VALUE, &lists[i]);
    }
    struct line line = {.base.append = append};

    /* A list is two messages: itself, and the value that holds it. */
    const size_t most = (OTELI_JSON_DEPTH_MAX - 1) / 2;
    assert_true(oteli_json_print(&values[most].base, &line.base));
    line.length = 0;
    assert_false(oteli_json_print(&values[most + 1].base, &line.base));
}
