/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/json_test.c - specification of proto/json.h: values as exact text. Whole
 * requests are compared in tests/unit/exporters/otlp_json_test.c. */
#include "proto/json.h"

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef Opentelemetry__Proto__Common__V1__AnyValue any_value;

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
