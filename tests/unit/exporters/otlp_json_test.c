/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/otlp_json_test.c - specification of exporters/json: OTLP/JSON as exact text, and
 * the same as what protobuf-c's structs give when the descriptor printer prints them. */
#include "exporters/json/otlp_json.h"

#include "exporters/json/json_value.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/json.h"
#include "sdk/view.h"
#include "tests/support/batch_double.h"
#include "tests/support/json_check.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans resource_spans;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans scope_spans;
typedef Opentelemetry__Proto__Trace__V1__Span otlp_span;
typedef Opentelemetry__Proto__Trace__V1__Span__Event span_event;
typedef Opentelemetry__Proto__Trace__V1__Span__Link span_link;
typedef Opentelemetry__Proto__Resource__V1__Resource resource_message;
typedef Opentelemetry__Proto__Common__V1__InstrumentationScope scope_message;
typedef Opentelemetry__Proto__Common__V1__AnyValue any_value;
typedef Opentelemetry__Proto__Common__V1__ArrayValue array_value;
typedef Opentelemetry__Proto__Common__V1__KeyValueList map_value;
typedef Opentelemetry__Proto__Common__V1__KeyValue key_value;

#define ANY(member, tag, value)                                                                    \
    (&(any_value){                                                                                 \
        .base = PROTOBUF_C_MESSAGE_INIT(&opentelemetry__proto__common__v1__any_value__descriptor), \
        .value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_##tag,                    \
        .member = value})
#define TEXT(string) ANY(string_value, STRING_VALUE, (char[]){string})
#define PAIR(name, any)                                                                            \
    (&(key_value){                                                                                 \
        .base = PROTOBUF_C_MESSAGE_INIT(&opentelemetry__proto__common__v1__key_value__descriptor), \
        .key = (char[]){name},                                                                     \
        .value = any})

static void assert_text(const struct oteli_json *json, const char *expected)
{
    assert_false(json->failed);
    assert_true(json_is_valid(json->data, json->length));
    assert_int_equal(json->length, strlen(expected));
    assert_memory_equal(json->data, expected, json->length);
}

static void add_message(struct batch_double *batch, const otel_scope_view *scope,
                        const otlp_span *span)
{
    static uint8_t bytes[4096];
    assert_true(opentelemetry__proto__trace__v1__span__get_packed_size(span) <= sizeof bytes);
    batch_double_add(batch, scope, bytes, opentelemetry__proto__trace__v1__span__pack(span, bytes));
}

/* ---- values --------------------------------------------------------------------------- */

static void assert_double(double number, const char *expected)
{
    struct oteli_json json = {0};
    oteli_json_add_double(&json, number);
    assert_text(&json, expected);
    oteli_json_fini(&json);
}

/* spec: X20 */
TEST(doubles_are_as_short_as_they_read_back)
{
    assert_double(0, "0");
    assert_double(-0.0, "-0.0");
    assert_double(0.1, "0.1");
    assert_double(-2.5, "-2.5");
    assert_double(1e15, "1e+15");
    assert_double(123456789, "123456789");
    assert_double(1.0 / 3, "0.3333333333333333");
    assert_double(0.1 + 0.2, "0.30000000000000004");
    assert_double(5e-324, "5e-324");
    assert_double(1.7976931348623157e308, "1.7976931348623157e+308");
    assert_double((double)NAN, "\"NaN\"");
    assert_double((double)INFINITY, "\"Infinity\"");
    assert_double(-(double)INFINITY, "\"-Infinity\"");
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
    struct oteli_json json = {0};

    oteli_json_add_string(&json, (otel_slice){string, sizeof string - 1});

    assert_text(&json, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f é\\ufffd\\ufffd\\ufffd\\ufffd"
                       "\xf0\x9f\x90\xa2\"");
    oteli_json_fini(&json);
}

TEST(bytes_are_base64)
{
    static const char *const expected[] = {"\"\"", "\"/w==\"", "\"/wA=\"", "\"/wAB\"",
                                           "\"/wAB+g==\""};
    for (size_t length = 0; length < sizeof expected / sizeof *expected; length++) {
        struct oteli_json json = {0};
        oteli_json_add_base64(&json, (otel_slice){"\xff\x00\x01\xfa", length});
        assert_text(&json, expected[length]);
        oteli_json_fini(&json);
    }
}

TEST(whole_numbers_to_their_limits)
{
    struct oteli_json json = {0};
    OTELI_JSON_ADD(&json, "[");
    oteli_json_add_signed(&json, INT64_MIN);
    OTELI_JSON_ADD(&json, ",");
    oteli_json_add_unsigned(&json, UINT64_MAX);
    OTELI_JSON_ADD(&json, ",");
    oteli_json_add_signed(&json, 0);
    OTELI_JSON_ADD(&json, "]");

    assert_text(&json, "[-9223372036854775808,18446744073709551615,0]");
    oteli_json_fini(&json);
}

/* The value of the first attribute of a span, in this form. */
static void assert_value(any_value *any, enum oteli_json_form form, const char *expected)
{
    otlp_span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    static uint8_t bytes[16384];
    span.attributes = (key_value *[]){PAIR("k", any)};
    span.n_attributes = 1;
    const size_t length = opentelemetry__proto__trace__v1__span__pack(&span, bytes);
    otel_span_view view;
    otel_attribute_view attribute;
    oteli_span_view_fill(&view, (otel_slice){(const char *)bytes, length}, NULL);
    assert_true(otel_attribute_next(&view.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute));
    struct oteli_json json = {0};
    oteli_json_add_value(&json, &attribute.value, form);
    assert_text(&json, expected);
    oteli_json_fini(&json);
}

/* spec: X20 */
TEST(values_nest)
{
    array_value empty = OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    array_value list = OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    map_value map = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE_LIST__INIT;
    map_value no_entries = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE_LIST__INIT;
    list.values = (any_value *[]){ANY(int_value, INT_VALUE, -1), ANY(int_value, _NOT_SET, 0),
                                  ANY(array_value, ARRAY_VALUE, &empty),
                                  ANY(kvlist_value, KVLIST_VALUE, &no_entries)};
    list.n_values = 4;
    map.values = (key_value *[]){PAIR("a", ANY(array_value, ARRAY_VALUE, &list)),
                                 PAIR("", ANY(bool_value, BOOL_VALUE, 1)), PAIR("b", TEXT("x"))};
    map.n_values = 3;

    assert_value(
        ANY(kvlist_value, KVLIST_VALUE, &map), OTELI_JSON_OTLP,
        "{\"kvlistValue\":{\"values\":[{\"key\":\"a\",\"value\":{\"arrayValue\":{\"values\":"
        "[{\"intValue\":\"-1\"},{},{\"arrayValue\":{\"values\":[]}},{\"kvlistValue\":{\"values\":[]}}]}}},"
        "{\"value\":{\"boolValue\":true}},{\"key\":\"b\",\"value\":{\"stringValue\":\"x\"}}]}}");
    assert_value(ANY(kvlist_value, KVLIST_VALUE, &map), OTELI_JSON_PLAIN,
                 "{\"a\":[-1,null,[],{}],\"\":true,\"b\":\"x\"}");
}

TEST(values_that_nest_too_deeply_end_empty)
{
    enum { DEPTH = OTELI_JSON_VALUE_DEPTH + 1 };
    array_value lists[DEPTH];
    any_value values[DEPTH + 1];
    char expected[2 * DEPTH + 8];
    values[DEPTH] = *ANY(int_value, INT_VALUE, 1);
    for (size_t i = DEPTH; i-- > 0;) {
        lists[i] = (array_value)OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
        lists[i].n_values = 1;
        lists[i].values = (any_value **)malloc(sizeof(any_value *));
        lists[i].values[0] = &values[i + 1];
        values[i] = *ANY(array_value, ARRAY_VALUE, &lists[i]);
    }
    memset(expected, '[', OTELI_JSON_VALUE_DEPTH);
    memcpy(expected + OTELI_JSON_VALUE_DEPTH, "null", 4);
    memset(expected + OTELI_JSON_VALUE_DEPTH + 4, ']', OTELI_JSON_VALUE_DEPTH);
    expected[2 * OTELI_JSON_VALUE_DEPTH + 4] = '\0';

    assert_value(&values[0], OTELI_JSON_PLAIN, expected);

    for (size_t i = 0; i < DEPTH; i++)
        free(lists[i].values);
}

TEST(plain_integers_that_no_double_holds_are_strings)
{
    assert_value(ANY(int_value, INT_VALUE, INT64_C(1) << 53), OTELI_JSON_PLAIN, "9007199254740992");
    assert_value(ANY(int_value, INT_VALUE, INT64_MAX), OTELI_JSON_PLAIN, "\"9223372036854775807\"");
    assert_value(ANY(int_value, INT_VALUE, INT64_MIN), OTELI_JSON_PLAIN,
                 "\"-9223372036854775808\"");
}

/* ---- requests ------------------------------------------------------------------------- */

static uint8_t trace_id[16] = {0xAB, 1, [15] = 0xFF};
static uint8_t span_id[8] = {0xCD, [7] = 2};
static uint8_t parent_id[8] = {0xEF, [7] = 3};

static key_value **some_attributes(size_t *count)
{
    static array_value list;
    static map_value map;
    static key_value pairs[9];
    static any_value values[9];
    static key_value *pointers[9];
    static any_value *elements[2];
    list = (array_value)OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    map = (map_value)OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE_LIST__INIT;
    static char names[9][3] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"};
    static char text[] = "te\"xt";
    values[0] = *ANY(string_value, STRING_VALUE, text);
    values[1] = *ANY(bool_value, BOOL_VALUE, 0);
    values[2] = *ANY(int_value, INT_VALUE, INT64_MIN);
    values[3] = *ANY(double_value, DOUBLE_VALUE, 0.1);
    values[4] = *ANY(bytes_value, BYTES_VALUE, ((ProtobufCBinaryData){2, span_id}));
    values[5] = *ANY(int_value, _NOT_SET, 0);
    values[6] = *ANY(array_value, ARRAY_VALUE, &list);
    values[7] = *ANY(kvlist_value, KVLIST_VALUE, &map);
    values[8] = *ANY(double_value, DOUBLE_VALUE, (double)NAN);
    for (size_t i = 0; i < 9; i++) {
        pairs[i] = (key_value)OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
        pairs[i].key = names[i];
        pairs[i].value = &values[i];
        pointers[i] = &pairs[i];
    }
    elements[0] = &values[0];
    elements[1] = &values[5];
    list.values = elements;
    list.n_values = 2;
    map.values = pointers + 3;
    map.n_values = 4;
    *count = 9;
    return pointers;
}

/* A span with something in each field. */
static otlp_span full_span(char *name)
{
    static span_event event;
    static span_event *events[] = {&event};
    static span_link link;
    static span_link *links[] = {&link};
    static Opentelemetry__Proto__Trace__V1__Status status;
    static char message[] = "it broke", state[] = "a=1";
    event = (span_event)OPENTELEMETRY__PROTO__TRACE__V1__SPAN__EVENT__INIT;
    link = (span_link)OPENTELEMETRY__PROTO__TRACE__V1__SPAN__LINK__INIT;
    status = (Opentelemetry__Proto__Trace__V1__Status)OPENTELEMETRY__PROTO__TRACE__V1__STATUS__INIT;
    otlp_span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    span.trace_id = link.trace_id = (ProtobufCBinaryData){16, trace_id};
    span.span_id = link.span_id = (ProtobufCBinaryData){8, span_id};
    span.parent_span_id = (ProtobufCBinaryData){8, parent_id};
    span.trace_state = link.trace_state = state;
    span.name = event.name = name;
    span.kind = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER;
    span.start_time_unix_nano = UINT64_C(1785600000123456789);
    span.end_time_unix_nano = UINT64_MAX;
    span.attributes = event.attributes = link.attributes = some_attributes(&span.n_attributes);
    event.n_attributes = link.n_attributes = span.n_attributes;
    span.dropped_attributes_count = 1;
    span.dropped_events_count = 2;
    span.dropped_links_count = UINT32_MAX;
    span.flags = 0x303;
    event.time_unix_nano = 7;
    event.dropped_attributes_count = 4;
    link.dropped_attributes_count = 5;
    link.flags = 0x101;
    span.events = events;
    span.links = links;
    span.n_events = span.n_links = 1;
    status.code = OPENTELEMETRY__PROTO__TRACE__V1__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
    status.message = message;
    span.status = &status;
    return span;
}

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

static const char *print_request(resource_spans *all)
{
    static struct printed printed = {.base.append = append};
    request whole = OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_REQUEST__INIT;
    whole.resource_spans = (resource_spans *[]){all};
    whole.n_resource_spans = 1;
    printed.length = 0;
    assert_true(oteli_json_print(&whole.base, &printed.base));
    printed.text[printed.length] = '\0';
    return printed.text;
}

/* spec: X20 */
TEST(a_request_is_what_protobufs_descriptors_say)
{
    static uint8_t resource_bytes[1024], scope_bytes[1024];
    static otlp_span spans[3];
    static char names[][8] = {"first", "second", "third"}, schema[] = "https://example.com/1";
    static char scope_name[] = "scope", version[] = "1.0", type[] = "host", id_key[] = "host.id";
    resource_message resource = OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
    scope_message scope = OPENTELEMETRY__PROTO__COMMON__V1__INSTRUMENTATION_SCOPE__INIT;
    scope_message nothing = OPENTELEMETRY__PROTO__COMMON__V1__INSTRUMENTATION_SCOPE__INIT;
    Opentelemetry__Proto__Common__V1__EntityRef entity =
        OPENTELEMETRY__PROTO__COMMON__V1__ENTITY_REF__INIT;
    entity.type = type;
    entity.schema_url = schema;
    entity.id_keys = entity.description_keys = (char *[]){id_key, type};
    entity.n_id_keys = entity.n_description_keys = 2;
    resource.attributes = scope.attributes = some_attributes(&resource.n_attributes);
    scope.n_attributes = resource.n_attributes;
    resource.dropped_attributes_count = scope.dropped_attributes_count = 9;
    resource.entity_refs = (Opentelemetry__Proto__Common__V1__EntityRef *[]){&entity};
    resource.n_entity_refs = 1;
    scope.name = scope_name;
    scope.version = version;
    for (size_t i = 0; i < 3; i++)
        spans[i] = full_span(names[i]);
    scope_spans groups[] = {OPENTELEMETRY__PROTO__TRACE__V1__SCOPE_SPANS__INIT,
                            OPENTELEMETRY__PROTO__TRACE__V1__SCOPE_SPANS__INIT};
    groups[0].scope = &scope;
    groups[0].spans = (otlp_span *[]){&spans[0], &spans[2]};
    groups[0].n_spans = 2;
    groups[0].schema_url = schema;
    groups[1].scope = &nothing;
    groups[1].spans = (otlp_span *[]){&spans[1]};
    groups[1].n_spans = 1;
    resource_spans all = OPENTELEMETRY__PROTO__TRACE__V1__RESOURCE_SPANS__INIT;
    all.resource = &resource;
    all.scope_spans = (scope_spans *[]){&groups[0], &groups[1]};
    all.n_scope_spans = 2;
    all.schema_url = schema;
    const char *expected = print_request(&all);

    struct batch_double batch = {.schema_url = {schema, strlen(schema)}};
    batch.resource =
        (otel_slice){(const char *)resource_bytes,
                     opentelemetry__proto__resource__v1__resource__pack(&resource, resource_bytes)};
    otel_scope_view views[2] = {{.name = {scope_name, 5}, .version = {version, 3}},
                                {.name = {NULL, 0}}};
    views[0].otlp = views[0].attributes = (otel_slice){
        (const char *)scope_bytes,
        opentelemetry__proto__common__v1__instrumentation_scope__pack(&scope, scope_bytes)};
    views[0].schema_url = batch.schema_url;
    for (size_t i = 0; i < 3; i++)
        add_message(&batch, &views[i & 1], &spans[i]);
    struct oteli_otlp_json encoder = {0};
    assert_true(oteli_otlp_json_add(&encoder, batch_double_view(&batch)));

    assert_text(&encoder.text, expected);
    oteli_otlp_json_fini(&encoder);
    batch_double_fini(&batch);
}

TEST(what_is_default_is_left_out)
{
    static const otel_scope_view scope;
    struct batch_double batch = {0};
    otlp_span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    span.trace_id = (ProtobufCBinaryData){16, trace_id};
    span.span_id = (ProtobufCBinaryData){8, span_id};
    add_message(&batch, &scope, &span);
    struct oteli_otlp_json encoder = {0};

    assert_true(oteli_otlp_json_add(&encoder, batch_double_view(&batch)));

    assert_text(&encoder.text,
                "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":[{\"scope\":{},\"spans\":["
                "{\"traceId\":\"ab0100000000000000000000000000ff\",\"spanId\":\"cd00000000000002\","
                "\"kind\":1}]}]}]}");
    oteli_otlp_json_fini(&encoder);
    batch_double_fini(&batch);
}

TEST(scopes_come_in_the_order_of_their_first_spans)
{
    static const otel_scope_view scopes[] = {
        {.name = {"a", 1}}, {.name = {"b", 1}}, {.name = {NULL, 0}}};
    static const unsigned order[] = {1, 0, 2, 1, 0, 1};
    struct batch_double batch = {0};
    char names[6][2];
    otlp_span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    for (size_t i = 0; i < 6; i++) {
        names[i][0] = (char)('0' + i);
        names[i][1] = '\0';
        span.name = names[i];
        add_message(&batch, &scopes[order[i]], &span);
    }
    struct oteli_otlp_json encoder = {0};

    assert_true(oteli_otlp_json_add(&encoder, batch_double_view(&batch)));

    assert_text(&encoder.text, "{\"resourceSpans\":[{\"resource\":{},\"scopeSpans\":["
                               "{\"scope\":{\"name\":\"b\"},\"spans\":[{\"name\":\"0\",\"kind\":1},"
                               "{\"name\":\"3\",\"kind\":1},{\"name\":\"5\",\"kind\":1}]},"
                               "{\"scope\":{\"name\":\"a\"},\"spans\":[{\"name\":\"1\",\"kind\":1},"
                               "{\"name\":\"4\",\"kind\":1}]},"
                               "{\"scope\":{},\"spans\":[{\"name\":\"2\",\"kind\":1}]}]}]}");
    oteli_otlp_json_fini(&encoder);
    batch_double_fini(&batch);
}

TEST(without_memory_it_says_so)
{
    static const otel_scope_view scope;
    static char name[] = "n";
    struct batch_double batch = {0};
    const otlp_span span = full_span(name);
    for (size_t i = 0; i < 20; i++)
        add_message(&batch, &scope, &span);
    for (size_t nth = 1;; nth++) {
        struct oteli_otlp_json encoder = {0};
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const bool is_done = oteli_otlp_json_add(&encoder, batch_double_view(&batch));
        const bool all_tried = !oteli_leaks_failed();
        oteli_otlp_json_fini(&encoder);
        oteli_leaks_check();
        assert_int_equal(is_done, all_tried);
        if (all_tried)
            break;
    }
    batch_double_fini(&batch);
}
