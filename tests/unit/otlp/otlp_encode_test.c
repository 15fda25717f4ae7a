/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are byte for byte what protobuf-c makes of the same spans, never above the
 * limit, and cost no allocation once the encoder has seen a batch. */
#include "exporters/otlp/encode/batch_encoder.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/batch_double.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Trace__V1__Span pb_span;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans pb_scope_spans;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans pb_resource_spans;
typedef Opentelemetry__Proto__Common__V1__InstrumentationScope pb_scope;
typedef Opentelemetry__Proto__Resource__V1__Resource pb_resource;
typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest pb_request;

enum { NO_LIMIT = 64 * 1024 * 1024, SCOPES_MAX = 300, NAME_MAX_BYTES = 40000 };

/* A scope with its OTLP bytes, and what protobuf-c is told of it. */
struct scope {
    otel_scope_view view;
    pb_scope message;
    char name[32];
    uint8_t bytes[64];
    char schema_url[32];
};

static struct scope scopes[SCOPES_MAX];

static void make_scopes(void)
{
    for (size_t i = 0; i < SCOPES_MAX; i++) {
        struct scope *scope = &scopes[i];
        if (i % 7 != 0)
            snprintf(scope->name, sizeof scope->name, "scope-%zu", i);
        if (i % 3 != 0)
            snprintf(scope->schema_url, sizeof scope->schema_url, "https://s/%zu", i);
        opentelemetry__proto__common__v1__instrumentation_scope__init(&scope->message);
        scope->message.name = scope->name;
        const size_t length = opentelemetry__proto__common__v1__instrumentation_scope__pack(
            &scope->message, scope->bytes);
        scope->view = (otel_scope_view){
            .schema_url = {scope->schema_url, strlen(scope->schema_url)},
            .otlp = {(const char *)scope->bytes, length},
        };
    }
}

static size_t scope_number(const otel_scope_view *view)
{
    size_t i = 0;
    while (&scopes[i].view != view)
        i++;
    return i;
}

static void add_span(struct batch_double *batch, size_t scope, size_t name_length)
{
    static char name[NAME_MAX_BYTES + 1];
    static uint8_t bytes[NAME_MAX_BYTES + 64];
    uint8_t id[8] = {1, 2, 3, 4, (uint8_t)(batch->size >> 8), (uint8_t)batch->size, 7, 8};
    pb_span span = OPENTELEMETRY__PROTO__TRACE__V1__SPAN__INIT;
    memset(name, 'n', name_length);
    name[name_length] = '\0';
    span.name = name;
    span.span_id = (ProtobufCBinaryData){sizeof id, id};
    span.start_time_unix_nano = 1700000000000000000;
    span.end_time_unix_nano = span.start_time_unix_nano + batch->size;
    const size_t length = opentelemetry__proto__trace__v1__span__pack(&span, bytes);
    batch_double_add(batch, &scopes[scope].view, bytes, length);
}

static pb_resource *resource_of(struct batch_double *batch, uint8_t *bytes, uint32_t dropped)
{
    static pb_resource resource = OPENTELEMETRY__PROTO__RESOURCE__V1__RESOURCE__INIT;
    resource.dropped_attributes_count = dropped;
    const size_t length = opentelemetry__proto__resource__v1__resource__pack(&resource, bytes);
    batch->resource = (otel_slice){(const char *)bytes, length};
    return &resource;
}

/* What protobuf-c makes of the spans [first, first + count): scopes in the order in which
 * they come, spans in the order of the batch. Everything is unpacked first, so that its
 * view of a span, not ours, is what is packed. */
static uint8_t *oracle(const struct batch_double *batch, size_t first, size_t count, size_t *length)
{
    pb_scope_spans *groups = calloc(count, sizeof *groups);
    pb_scope_spans **group_pointers = calloc(count, sizeof *group_pointers);
    pb_span **spans = calloc(count * count, sizeof *spans);
    const otel_scope_view **views = calloc(count, sizeof(*views));
    size_t group_count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct batch_double_span *span = &batch->spans[first + i];
        size_t at = 0;
        while (at < group_count && views[at] != span->scope)
            at++;
        if (at == group_count) {
            struct scope *scope = &scopes[scope_number(span->scope)];
            opentelemetry__proto__trace__v1__scope_spans__init(&groups[at]);
            groups[at].scope = &scope->message;
            groups[at].schema_url = scope->schema_url;
            groups[at].spans = spans + at * count;
            group_pointers[at] = &groups[at];
            views[at] = span->scope;
            group_count++;
        }
        groups[at].spans[groups[at].n_spans++] =
            opentelemetry__proto__trace__v1__span__unpack(NULL, span->length, span->bytes);
    }
    pb_resource_spans resource_spans = OPENTELEMETRY__PROTO__TRACE__V1__RESOURCE_SPANS__INIT;
    pb_resource_spans *resource_pointer = &resource_spans;
    resource_spans.resource = opentelemetry__proto__resource__v1__resource__unpack(
        NULL, batch->resource.length, (const uint8_t *)batch->resource.data);
    resource_spans.n_scope_spans = group_count;
    resource_spans.scope_spans = group_pointers;
    char *schema_url =
        strndup(batch->schema_url.length ? batch->schema_url.data : "", batch->schema_url.length);
    resource_spans.schema_url = schema_url;
    pb_request request =
        OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_REQUEST__INIT;
    request.n_resource_spans = 1;
    request.resource_spans = &resource_pointer;
    uint8_t *bytes = malloc(
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__get_packed_size(
            &request) +
        1);
    *length = opentelemetry__proto__collector__trace__v1__export_trace_service_request__pack(
        &request, bytes);
    for (size_t i = 0; i < group_count; i++) {
        for (size_t k = 0; k < groups[i].n_spans; k++)
            opentelemetry__proto__trace__v1__span__free_unpacked(groups[i].spans[k], NULL);
    }
    opentelemetry__proto__resource__v1__resource__free_unpacked(resource_spans.resource, NULL);
    free(schema_url);
    free(groups);
    free(group_pointers);
    free(spans);
    free(views);
    return bytes;
}

static void assert_like_oracle(const struct oteli_encoder *encoder,
                               const struct batch_double *batch, size_t first, size_t count)
{
    size_t length;
    uint8_t *expected = oracle(batch, first, count, &length);
    assert_int_equal(encoder->request_bytes, length);
    assert_memory_equal(encoder->request, expected, length);
    free(expected);
}

static void assert_encodes_whole(struct oteli_encoder *encoder, const struct batch_double *batch)
{
    size_t count = 0;
    assert_int_equal(oteli_encode(encoder, batch_double_view(batch), 0, SIZE_MAX, &count),
                     OTELI_ENCODE_OK);
    assert_int_equal(count, batch->size);
    assert_like_oracle(encoder, batch, 0, count);
}

static int prepare(void **state)
{
    (void)state;
    make_scopes();
    return 0;
}

AROUND_ALL(prepare, NULL);

TEST(lengths_around_every_varint_step)
{
    static const size_t names[] = {0,   1,   60,  80,  90,    95,    100,
                                   126, 127, 128, 129, 16000, 16382, 39999};
    struct oteli_encoder encoder;
    oteli_leaks_begin();
    oteli_encoder_init(&encoder, NO_LIMIT, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct batch_double batch = {0};
        uint8_t resource[16];
        resource_of(&batch, resource, (uint32_t)i);
        batch.schema_url = i % 2 ? (otel_slice){"https://r", 9} : (otel_slice){0};
        add_span(&batch, 1 + i, names[i]);
        assert_encodes_whole(&encoder, &batch);
        add_span(&batch, 1 + i, names[i]);
        assert_encodes_whole(&encoder, &batch);
        batch_double_fini(&batch);
    }
    oteli_encoder_fini(&encoder);
    oteli_leaks_check();
}

/* spec: X17 trace.proto MUST stable */
TEST(spans_are_grouped_by_scope_in_order_of_appearance)
{
    struct oteli_encoder encoder;
    oteli_leaks_begin();
    oteli_encoder_init(&encoder, NO_LIMIT, 0);
    for (size_t scope_count = 1; scope_count <= SCOPES_MAX; scope_count += 23) {
        struct batch_double batch = {0};
        for (size_t i = 0; i < 600; i++)
            add_span(&batch, i * i % scope_count, i % 50);
        assert_encodes_whole(&encoder, &batch);
        batch_double_fini(&batch);
    }
    oteli_encoder_fini(&encoder);
    oteli_leaks_check();
}

TEST(a_buffer_that_was_once_huge_is_given_back)
{
    struct oteli_encoder encoder;
    struct batch_double huge = {0};
    struct batch_double small = {0};
    size_t count;
    oteli_encoder_init(&encoder, NO_LIMIT, 0);
    encoder.usual_request_bytes = NO_LIMIT;
    for (size_t i = 0; i < 100; i++)
        add_span(&huge, 1, 30000);
    add_span(&small, 1, 10);
    assert_int_equal(oteli_encode(&encoder, batch_double_view(&huge), 0, SIZE_MAX, &count),
                     OTELI_ENCODE_OK);
    assert_true(encoder.buffer.room >= 3000000);

    for (size_t i = 0; i < 100; i++)
        assert_int_equal(oteli_encode(&encoder, batch_double_view(&small), 0, SIZE_MAX, &count),
                         OTELI_ENCODE_OK);

    assert_true(encoder.buffer.room <= 64 * 1024);
    assert_like_oracle(&encoder, &small, 0, 1);
    oteli_encoder_fini(&encoder);
    batch_double_fini(&huge);
    batch_double_fini(&small);
}
