/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/spool/spool_part_test.c - specification of exporters/otlp/spool_part.c: parts of a request
 * have its spans, once each, with their resources and scopes, as protobuf-c reads them. */
#include "exporters/otlp/spool_part.h"

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest request_pb;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans resource_spans_pb;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans scope_spans_pb;
typedef Opentelemetry__Proto__Trace__V1__Span span_pb;

enum { RESOURCES = 3, SCOPES = 2, SPANS = 4, ALL = RESOURCES * SCOPES * SPANS };

/* Spans are called 0, 1, …; schema URLs say whose they are. One scope has none. */
static uint8_t *make(size_t *length)
{
    static char names[ALL][24];
    static char urls[RESOURCES * SCOPES][24];
    static span_pb spans[ALL];
    static span_pb *span_at[ALL];
    static scope_spans_pb scopes[RESOURCES * SCOPES + 1];
    static scope_spans_pb *scope_at[RESOURCES * SCOPES + 1];
    static resource_spans_pb resources[RESOURCES];
    static resource_spans_pb *resource_at[RESOURCES];
    request_pb request;
    for (size_t i = 0; i < ALL; i++) {
        opentelemetry__proto__trace__v1__span__init(&spans[i]);
        snprintf(names[i], sizeof names[i], "%zu", i);
        spans[i].name = names[i];
        span_at[i] = &spans[i];
    }
    for (size_t i = 0; i <= RESOURCES * SCOPES; i++) {
        opentelemetry__proto__trace__v1__scope_spans__init(&scopes[i]);
        scope_at[i] = &scopes[i];
        if (i == RESOURCES * SCOPES)
            break;
        snprintf(urls[i], sizeof urls[i], "s%zu", i);
        scopes[i].schema_url = urls[i];
        scopes[i].spans = &span_at[i * SPANS];
        scopes[i].n_spans = SPANS;
    }
    for (size_t i = 0; i < RESOURCES; i++) {
        opentelemetry__proto__trace__v1__resource_spans__init(&resources[i]);
        resources[i].schema_url = urls[i * SCOPES];
        resources[i].scope_spans = &scope_at[i * SCOPES];
        resources[i].n_scope_spans = SCOPES + (i + 1 == RESOURCES);
        resource_at[i] = &resources[i];
    }
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__init(&request);
    request.resource_spans = resource_at;
    request.n_resource_spans = RESOURCES;
    uint8_t *bytes = malloc(
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__get_packed_size(
            &request));
    *length = opentelemetry__proto__collector__trace__v1__export_trace_service_request__pack(
        &request, bytes);
    return bytes;
}

static void check_scope(const scope_spans_pb *scope, const char *resource_url, size_t *next)
{
    assert_true(scope->n_spans != 0);
    for (size_t i = 0; i < scope->n_spans; i++, ++*next) {
        char wanted[24];
        snprintf(wanted, sizeof wanted, "%zu", *next);
        assert_string_equal(scope->spans[i]->name, wanted);
        snprintf(wanted, sizeof wanted, "s%zu", *next / SPANS);
        assert_string_equal(scope->schema_url, wanted);
        snprintf(wanted, sizeof wanted, "s%zu", *next / SPANS / SCOPES * SCOPES);
        assert_string_equal(resource_url, wanted);
    }
}

/* The part has spans `first` to `end`, and nothing that has none. */
static void check_part(const uint8_t *bytes, size_t length, size_t first, size_t end)
{
    uint8_t *part = malloc(length);
    const size_t size = oteli_spool_part(bytes, length, first, end - first, part);
    assert_int_equal(size, oteli_spool_part(bytes, length, first, end - first, NULL));
    assert_true(size <= length);
    request_pb *request =
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(NULL, size,
                                                                                         part);
    assert_non_null(request);
    for (size_t i = 0; i < request->n_resource_spans; i++) {
        const resource_spans_pb *resource = request->resource_spans[i];
        assert_true(resource->n_scope_spans != 0);
        for (size_t k = 0; k < resource->n_scope_spans; k++)
            check_scope(resource->scope_spans[k], resource->schema_url, &first);
    }
    assert_int_equal(first, end);
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__free_unpacked(request,
                                                                                            NULL);
    free(part);
}

TEST(any_part_has_its_spans_with_their_resources_and_scopes)
{
    size_t length;
    uint8_t *bytes = make(&length);
    assert_int_equal(oteli_spool_spans(bytes, length), ALL);
    for (size_t first = 0; first < ALL; first++)
        for (size_t end = first + 1; end <= ALL; end++)
            check_part(bytes, length, first, end);
    free(bytes);
}

TEST(beyond_its_spans_there_is_no_part)
{
    size_t length;
    uint8_t *bytes = make(&length);
    assert_int_equal(oteli_spool_part(bytes, length, ALL, 1, NULL), 0);
    assert_int_equal(oteli_spool_part(bytes, length, 0, 0, NULL), 0);
    assert_int_equal(oteli_spool_spans(bytes, 0), 0);
    free(bytes);
}

/* A cut between two resources leaves a request; any other leaves none. */
TEST(what_is_cut_short_has_no_parts)
{
    size_t length;
    uint8_t *bytes = make(&length);
    size_t requests = 0;
    for (size_t cut = 1; cut < length; cut++) {
        uint8_t *exact = malloc(cut);
        memcpy(exact, bytes, cut);
        requests += oteli_spool_spans(exact, cut) != 0;
        free(exact);
    }
    assert_int_equal(requests, RESOURCES - 1);
    free(bytes);
}
