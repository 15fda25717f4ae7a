/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/pb_tree.c - requests through protobuf-c: pb_tree.h says why. */
#include "benchmarks/pb_tree.h"
#include "benchmarks/bench.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"

#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request_message;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans resource_spans_message;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans scope_spans_message;
typedef Opentelemetry__Proto__Trace__V1__Span span_message;
typedef Opentelemetry__Proto__Common__V1__KeyValue key_value_message;
typedef Opentelemetry__Proto__Common__V1__AnyValue any_value_message;
typedef Opentelemetry__Proto__Common__V1__InstrumentationScope scope_message;
typedef Opentelemetry__Proto__Resource__V1__Resource resource_message;

enum { MOST_ATTRIBUTES = 8, LONGEST_TEXT = 48, ARENA_BYTES_A_SPAN = 2048 };

struct value {
    char key[LONGEST_TEXT];
    char string[LONGEST_TEXT];
    int64_t integer;
    bool is_string;
};

struct values {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    char name[LONGEST_TEXT];
    uint32_t flags;
    otel_span_kind kind;
    uint64_t start_ns;
    uint64_t end_ns;
    size_t attribute_count;
    struct value attributes[MOST_ATTRIBUTES];
};

struct bench_pb {
    struct values *spans;
    size_t count;
    resource_message *resource;
    char schema_url[LONGEST_TEXT]; /* of the resource */
    scope_message *scope;
    uint8_t *arena;
    size_t arena_used;
    uint8_t *bytes;
    size_t byte_room;
};

struct bench_pb *bench_pb_new(size_t most_spans)
{
    struct bench_pb *pb = calloc(1, sizeof *pb);
    if (pb == NULL)
        bench_fail("no memory");
    pb->spans = calloc(most_spans, sizeof *pb->spans);
    pb->arena = malloc((most_spans + 1) * ARENA_BYTES_A_SPAN);
    if (pb->spans == NULL || pb->arena == NULL)
        bench_fail("no memory");
    return pb;
}

static void free_envelope(struct bench_pb *pb)
{
    opentelemetry__proto__resource__v1__resource__free_unpacked(pb->resource, NULL);
    opentelemetry__proto__common__v1__instrumentation_scope__free_unpacked(pb->scope, NULL);
}

void bench_pb_free(struct bench_pb *pb)
{
    free_envelope(pb);
    free(pb->spans);
    free(pb->arena);
    free(pb->bytes);
    free(pb);
}

static void copy_text(char text[LONGEST_TEXT], otel_slice from)
{
    if (from.length >= LONGEST_TEXT)
        bench_fail("a text of %zu bytes is not what this benchmark makes", from.length);
    memcpy(text, from.data, from.length);
    text[from.length] = '\0';
}

static void load_span(struct values *values, const otel_span_view *view)
{
    memcpy(values->trace_id, view->trace_id, sizeof values->trace_id);
    memcpy(values->span_id, view->span_id, sizeof values->span_id);
    copy_text(values->name, view->name);
    values->flags = view->flags;
    values->kind = view->kind;
    values->start_ns = view->start_ns;
    values->end_ns = view->end_ns;
    values->attribute_count = 0;
    otel_slice rest = view->attributes;
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute)) {
        if (values->attribute_count == MOST_ATTRIBUTES)
            bench_fail("more attributes than this benchmark makes");
        struct value *value = &values->attributes[values->attribute_count++];
        copy_text(value->key, attribute.key);
        value->is_string = attribute.value.type == OTEL_VALUE_STRING;
        value->integer = attribute.value.integer;
        if (value->is_string)
            copy_text(value->string, attribute.value.slice);
    }
}

void bench_pb_load(struct bench_pb *pb, const otel_batch *batch)
{
    const otel_slice resource = otel_batch_resource(batch);
    otel_span_view view = {0};
    pb->count = otel_batch_size(batch);
    if (pb->count == 0)
        bench_fail("an empty batch");
    for (size_t i = 0; i < pb->count; i++) {
        otel_batch_span(batch, i, &view);
        load_span(&pb->spans[i], &view);
    }
    free_envelope(pb);
    copy_text(pb->schema_url, otel_batch_resource_schema_url(batch));
    pb->resource = opentelemetry__proto__resource__v1__resource__unpack(
        NULL, resource.length, (const uint8_t *)resource.data);
    pb->scope = opentelemetry__proto__common__v1__instrumentation_scope__unpack(
        NULL, view.scope->otlp.length, (const uint8_t *)view.scope->otlp.data);
    if (pb->resource == NULL || pb->scope == NULL)
        bench_fail("protobuf-c cannot read the resource or the scope");
}

static void *take(struct bench_pb *pb, size_t bytes)
{
    void *taken = pb->arena + pb->arena_used;
    pb->arena_used += (bytes + 15) & ~(size_t)15;
    return taken;
}

static key_value_message *build_attribute(struct bench_pb *pb, struct value *value)
{
    key_value_message *pair = take(pb, sizeof *pair);
    any_value_message *any = take(pb, sizeof *any);
    opentelemetry__proto__common__v1__key_value__init(pair);
    opentelemetry__proto__common__v1__any_value__init(any);
    pair->key = value->key;
    pair->value = any;
    if (value->is_string) {
        any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
        any->string_value = value->string;
    } else {
        any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
        any->int_value = value->integer;
    }
    return pair;
}

static span_message *build_span(struct bench_pb *pb, struct values *values)
{
    span_message *span = take(pb, sizeof *span);
    opentelemetry__proto__trace__v1__span__init(span);
    span->trace_id = (ProtobufCBinaryData){sizeof values->trace_id, values->trace_id};
    span->span_id = (ProtobufCBinaryData){sizeof values->span_id, values->span_id};
    span->name = values->name;
    span->flags = values->flags;
    span->kind = (Opentelemetry__Proto__Trace__V1__Span__SpanKind)(values->kind + 1);
    span->start_time_unix_nano = values->start_ns;
    span->end_time_unix_nano = values->end_ns;
    span->n_attributes = values->attribute_count;
    span->attributes = take(pb, values->attribute_count * sizeof(key_value_message *));
    for (size_t i = 0; i < values->attribute_count; i++)
        span->attributes[i] = build_attribute(pb, &values->attributes[i]);
    return span;
}

static request_message *build(struct bench_pb *pb)
{
    pb->arena_used = 0;
    request_message *request = take(pb, sizeof *request);
    resource_spans_message *resource_spans = take(pb, sizeof *resource_spans);
    scope_spans_message *scope_spans = take(pb, sizeof *scope_spans);
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__init(request);
    opentelemetry__proto__trace__v1__resource_spans__init(resource_spans);
    opentelemetry__proto__trace__v1__scope_spans__init(scope_spans);
    request->n_resource_spans = 1;
    request->resource_spans = take(pb, sizeof(resource_spans_message *));
    request->resource_spans[0] = resource_spans;
    resource_spans->resource = pb->resource;
    resource_spans->schema_url = pb->schema_url;
    resource_spans->n_scope_spans = 1;
    resource_spans->scope_spans = take(pb, sizeof(scope_spans_message *));
    resource_spans->scope_spans[0] = scope_spans;
    scope_spans->scope = pb->scope;
    scope_spans->n_spans = pb->count;
    scope_spans->spans = take(pb, pb->count * sizeof(span_message *));
    for (size_t i = 0; i < pb->count; i++)
        scope_spans->spans[i] = build_span(pb, &pb->spans[i]);
    return request;
}

otel_slice bench_pb_encode(struct bench_pb *pb)
{
    const request_message *request = build(pb);
    const size_t size =
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__get_packed_size(
            request);
    if (size > pb->byte_room) {
        free(pb->bytes);
        pb->bytes = malloc(size);
        if (pb->bytes == NULL)
            bench_fail("no memory");
        pb->byte_room = size;
    }
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__pack(request,
                                                                                   pb->bytes);
    return (otel_slice){(const char *)pb->bytes, size};
}
