/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/otlp_json_test.c - specification of exporters/json: OTLP/JSON as exact text,
 * and the same as what protobuf-c's structs give when the descriptor printer prints them. */
#include "exporters/json/otlp_json.h"

#include "exporters/json/json_value.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/json.h"
#include "sdk/view/span_view.h"
#include "tests/support/batch_double.h"
#include "tests/support/json_check.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include "tests/support/wire_text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request;
typedef Opentelemetry__Proto__Trace__V1__Span otlp_span;

static void assert_text(const struct oteli_text *json, const char *expected)
{
    assert_false(json->failed);
    assert_true(json_is_valid(json->data, json->length));
    assert_int_equal(json->length, strlen(expected));
    assert_memory_equal(json->data, expected, json->length);
}

/* ---- values --------------------------------------------------------------------------- */

static void assert_double(double number, const char *expected)
{
    struct oteli_text json = {0};
    oteli_json_add_double(&json, number);
    assert_text(&json, expected);
    oteli_text_fini(&json);
}

/* spec: X20 */
TEST(doubles_are_as_short_as_they_read_back)
{
    static const struct {
        double number;
        const char *expected;
    } table[] = {
        {0, "0"},
        {-0.0, "-0.0"},
        {0.1, "0.1"},
        {-2.5, "-2.5"},
        {1e15, "1e+15"},
        {123456789, "123456789"},
        {1.0 / 3, "0.3333333333333333"},
        {0.1 + 0.2, "0.30000000000000004"},
        {5e-324, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {(double)NAN, "\"NaN\""},
        {(double)INFINITY, "\"Infinity\""},
        {-(double)INFINITY, "\"-Infinity\""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        assert_double(table[i].number, table[i].expected);
}

/* What stands for the point in numbers, as in a locale that may not be installed here. */
static const char *point = ".";

int __wrap_snprintf(char *to, size_t size, const char *format, ...);
double __wrap_strtod(const char *text, char **end);
double __real_strtod(const char *text, char **end);

int __wrap_snprintf(char *to, size_t size, const char *format, ...)
{
    char printed[128];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(printed, sizeof printed, format, arguments);
    va_end(arguments);
    const size_t before = strcspn(printed, ".");
    const char *behind = printed[before] == '.' ? printed + before + 1 : "";
    assert_true(strlen(printed) + strlen(point) < size);
    memcpy(to, printed, before);
    to[before] = '\0';
    if (printed[before] == '.')
        strncat(strncat(to, point, size), behind, size);
    return (int)strlen(to);
}

/* Reads up to a point that is not the locale's, as the real one does. */
double __wrap_strtod(const char *text, char **end)
{
    char usual[128];
    const char *found = strstr(text, point);
    const size_t before = found != NULL ? (size_t)(found - text) : strcspn(text, ".");
    memcpy(usual, text, before);
    usual[before] = '\0';
    if (found != NULL)
        strncat(strncat(usual, ".", 2), found + strlen(point), sizeof usual - before - 2);
    return __real_strtod(usual, end);
}

TEST(doubles_do_not_depend_on_the_locale)
{
    static const char *const points[] = {",", "\xd9\xab"};
    for (size_t i = 0; i < 2; i++) {
        point = points[i];
        assert_double(1234.5, "1234.5");
        assert_double(-1.0 / 3e10, "-3.3333333333333335e-11");
    }
    point = ".";
}

TEST(strings_are_escaped_and_made_utf8)
{
    static const char string[] = "\"\\/\b\f\n\r\t\0\x1f\x7f é\xff\xed\xa0\x80\xf0\x9f\x90\xa2";
    struct oteli_text json = {0};

    oteli_json_add_string(&json, (otel_slice){string, sizeof string - 1});

    assert_text(&json, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f é\\ufffd\\ufffd\\ufffd\\ufffd"
                       "\xf0\x9f\x90\xa2\"");
    oteli_text_fini(&json);
}

TEST(bytes_are_base64)
{
    static const char *const expected[] = {"\"\"", "\"/w==\"", "\"/wA=\"", "\"/wAB\"",
                                           "\"/wAB+g==\""};
    for (size_t length = 0; length < sizeof expected / sizeof *expected; length++) {
        struct oteli_text json = {0};
        oteli_json_add_base64(&json, (otel_slice){"\xff\x00\x01\xfa", length});
        assert_text(&json, expected[length]);
        oteli_text_fini(&json);
    }
}

TEST(whole_numbers_to_their_limits)
{
    struct oteli_text json = {0};
    OTELI_JSON_ADD(&json, "[");
    oteli_json_add_signed(&json, INT64_MIN);
    OTELI_JSON_ADD(&json, ",");
    oteli_json_add_unsigned(&json, UINT64_MAX);
    OTELI_JSON_ADD(&json, ",");
    oteli_json_add_signed(&json, 0);
    OTELI_JSON_ADD(&json, "]");

    assert_text(&json, "[-9223372036854775808,18446744073709551615,0]");
    oteli_text_fini(&json);
}

/* The value of an attribute, in this form. */
static void assert_value(const char *value, enum oteli_json_form form, const char *expected)
{
    otel_span_view view;
    otel_attribute_view attribute;
    oteli_span_view_fill(&view, wire_text("9{1'k' 2{%s}}", value), NULL);
    assert_true(otel_attribute_next(&view.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute));
    struct oteli_text json = {0};
    oteli_json_add_value(&json, &attribute.value, form);
    assert_text(&json, expected);
    oteli_text_fini(&json);
}

/* spec: X20 */
TEST(values_nest)
{
    static const char map[] =
        "6{1{1'a' 2{5{1{3=-1} 1{} 1{5{}} 1{6{}}}}} 1{2{2=1}} 1{1'b' 2{1'x'}}}";
    assert_value(
        map, OTELI_JSON_OTLP,
        "{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":{\"arrayValue\":{\"values\":"
        "[{\"intValue\":\"-1\"},{},{\"arrayValue\":{\"values\":[]}},{\"kvlistValue\":{\"values\":[]}}]}}},"
        "{\"value\":{\"boolValue\":true}},{\"key\":\"b\",\"value\":{\"stringValue\":\"x\"}}]}}");
    assert_value(map, OTELI_JSON_PLAIN, "{\"a\":[-1,null,[],{}],\"\":true,\"b\":\"x\"}");
}

TEST(values_that_nest_too_deeply_end_empty)
{
    enum { DEPTH = OTELI_JSON_VALUE_DEPTH };
    char value[6 * (DEPTH + 1) + 1] = "";
    char expected[2 * DEPTH + 5] = "";
    for (size_t i = 0; i <= DEPTH; i++)
        strcat(value, "5{1{");
    for (size_t i = 0; i <= DEPTH; i++)
        strcat(value, "}}");
    memset(expected, '[', DEPTH);
    strcat(expected, "null");
    memset(expected + DEPTH + 4, ']', DEPTH);
    assert_value(value, OTELI_JSON_PLAIN, expected);
}

TEST(plain_integers_that_no_double_holds_are_strings)
{
    assert_value("3=9007199254740992", OTELI_JSON_PLAIN, "9007199254740992");
    assert_value("3=9223372036854775807", OTELI_JSON_PLAIN, "\"9223372036854775807\"");
    assert_value("3=-9223372036854775808", OTELI_JSON_PLAIN, "\"-9223372036854775808\"");
}

/* ---- requests ------------------------------------------------------------------------- */

/* Attributes of every kind. */
#define SOME                              \
    "{1'k3' 2{4~0.1}} {1'k4' 2{7xcd00}} " \
    "{1'k5' 2{}} {1'k6' 2{5{1{1'te\"xt'} 1{}}}}"
#define ATTRIBUTES                                                                \
    "{1'k0' 2{1'te\"xt'}} {1'k1' 2{2=0}} {1'k2' 2{3=-9223372036854775808}} " SOME \
    " {1'k7' 2{6{1[" SOME "]}}} {1'k8' 2{4~nan}}"

/* A span with something in each field. */
#define IDS "1xab0100000000000000000000000000ff 2xcd00000000000002 "
#define FULL_SPAN(name)                                                          \
    IDS "3'a=1' 4xef00000000000003 5'" name "' 6=2 7@1785600000123456789 8@-1 "  \
        "9[" ATTRIBUTES "] 10=1 11{1@7 2'" name "' 3[" ATTRIBUTES "] 4=4} 12=2 " \
        "13{" IDS "3'a=1' 4[" ATTRIBUTES "] 5=5 6^257} 14=4294967295 "           \
        "15{2'it broke' 3=2} 16^771"

#define SCHEMA "https://example.com/1"
#define RESOURCE \
    "1[" ATTRIBUTES "] 2=9 3{1'" SCHEMA "' 2'host' 3['host.id' 'host'] 4['host.id' 'host']}"
#define SCOPE "1'scope' 2'1.0' 3[" ATTRIBUTES "] 4=9"

struct printed {
    ProtobufCBuffer base;
    char text[16384];
    size_t length;
};

static void append(ProtobufCBuffer *base, size_t length, const uint8_t *data)
{
    struct printed *printed = (struct printed *)base;
    assert_true(printed->length + length < sizeof printed->text);
    memcpy(printed->text + printed->length, data, length);
    printed->length += length;
}

/* What protobuf-c reads, as its descriptors say that it is printed. */
static const char *print_request(otel_slice bytes)
{
    static struct printed printed = {.base.append = append};
    request *whole =
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(
            NULL, bytes.length, (const uint8_t *)bytes.data);
    assert_non_null(whole);
    assert_true(oteli_json_print(&whole->base, &printed.base));
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__free_unpacked(whole,
                                                                                            NULL);
    printed.text[printed.length] = '\0';
    return printed.text;
}

static void add(struct batch_double *batch, const otel_scope_view *scope, otel_slice span)
{
    batch_double_add(batch, scope, span.data, span.length);
}

static void assert_encoded(struct batch_double *batch, const char *expected)
{
    struct oteli_text text = {0};
    assert_true(oteli_otlp_json_add(&text, batch_double_view(batch), 0, batch->size, SIZE_MAX));
    assert_text(&text, expected);
    oteli_text_fini(&text);
    batch_double_fini(batch);
}

/* spec: X20 */
TEST(a_request_is_what_protobufs_descriptors_say)
{
    static const char *const names[] = {"first", "second", "third"};
    static char resource_bytes[1024], scope_bytes[1024];
    const otel_slice schema = {SCHEMA, sizeof SCHEMA - 1};
    const otel_slice resource = wire_text(RESOURCE);
    struct batch_double batch = {
        .schema_url = schema,
        .resource = {memcpy(resource_bytes, resource.data, resource.length), resource.length}};
    const otel_slice scope = wire_text(SCOPE);
    const otel_slice copy = {memcpy(scope_bytes, scope.data, scope.length), scope.length};
    const otel_scope_view views[2] = {{.name = {"scope", 5},
                                       .version = {"1.0", 3},
                                       .otlp = copy,
                                       .attributes = copy,
                                       .schema_url = schema},
                                      {.name = {NULL, 0}}};
    for (size_t i = 0; i < 3; i++)
        add(&batch, &views[i & 1], wire_text(FULL_SPAN("%s"), names[i], names[i]));

    const otel_slice whole =
        wire_text("1{1{" RESOURCE "} 2{1{" SCOPE "} 2[{%s} {%s}] 3'" SCHEMA "'} "
                  "2{1{} 2{%s}} 3'" SCHEMA "'}",
                  FULL_SPAN("first"), FULL_SPAN("third"), FULL_SPAN("second"));
    assert_encoded(&batch, print_request(whole));
}

TEST(what_is_default_is_left_out)
{
    static const otel_scope_view scope;
    struct batch_double batch = {0};
    add(&batch, &scope, wire_text(IDS "3'' 6=1 7@0 10=0 16^0"));
    assert_encoded(
        &batch, "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":["
                "{\"traceId\":\"ab0100000000000000000000000000ff\",\"spanId\":\"cd00000000000002\","
                "\"kind\":1}]}]}]}");
}

TEST(scopes_come_in_the_order_of_their_first_spans)
{
    static const otel_scope_view scopes[] = {{.otlp = {"\x0a\x01"
                                                       "a",
                                                       3}},
                                             {.otlp = {"\x0a\x01"
                                                       "b",
                                                       3}},
                                             {.otlp = {"", 0}}};
    static const unsigned order[] = {1, 0, 2, 1, 0, 1};
    struct batch_double batch = {0};
    for (unsigned i = 0; i < 6; i++)
        add(&batch, &scopes[order[i]], wire_text("5'%u' 6=1", i));
    assert_encoded(&batch, "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":["
                           "{\"scope\":{\"name\":\"b\"},\"spans\":[{\"name\":\"0\",\"kind\":1},"
                           "{\"name\":\"3\",\"kind\":1},{\"name\":\"5\",\"kind\":1}]},"
                           "{\"scope\":{\"name\":\"a\"},\"spans\":[{\"name\":\"1\",\"kind\":1},"
                           "{\"name\":\"4\",\"kind\":1}]},"
                           "{\"scope\":{},\"spans\":[{\"name\":\"2\",\"kind\":1}]}]}]}");
}

TEST(without_memory_it_says_so)
{
    static const otel_scope_view scope;
    struct batch_double batch = {0};
    for (size_t i = 0; i < 20; i++)
        add(&batch, &scope, wire_text(FULL_SPAN("n")));
    for (size_t nth = 1;; nth++) {
        struct oteli_text text = {0};
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const bool is_done =
            oteli_otlp_json_add(&text, batch_double_view(&batch), 0, batch.size, SIZE_MAX);
        const bool all_tried = !oteli_leaks_failed();
        assert_int_equal(is_done, all_tried);
        oteli_text_fini(&text);
        oteli_leaks_check();
        if (all_tried)
            break;
    }
    batch_double_fini(&batch);
}
