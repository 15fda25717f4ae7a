/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/otlp_bytes.c - the contracts are in otlp_bytes.h. Test thread; owns what it has
 * opened until it is closed. */
#include "tests/support/otlp_bytes.h"

#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/fault_peer_inside.h"
#include "tests/support/json_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct otlp_bytes otlp_bytes_open(otel_otlp_protocol protocol, otel_otlp_compression compression,
                                  const void *bytes, size_t length)
{
    static const char *const encodings[] = {[OTEL_OTLP_COMPRESSION_NONE] = "identity",
                                            [OTEL_OTLP_COMPRESSION_GZIP] = "gzip",
                                            [OTEL_OTLP_COMPRESSION_ZSTD] = "zstd"};
    struct fault_peer_request request = {
        .body = bytes,
        .body_length = length,
        .format = protocol == OTEL_OTLP_GRPC ? FAULT_GRPC : FAULT_OTHER,
        .encoding = encodings[compression],
    };
    assert_non_null(bytes);
    if (protocol == OTEL_OTLP_GRPC)
        assert_int_equal(request.body[0], compression != OTEL_OTLP_COMPRESSION_NONE);
    fault_uncover(&request);
    assert_null(request.problem);
    return (struct otlp_bytes){(uint8_t *)(uintptr_t)request.plain, request.plain_length};
}

void otlp_bytes_close(struct otlp_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct otlp_bytes){0};
}

static void note(struct otlp_bytes_spans *spans, const char *name)
{
    char *end;
    const unsigned long number = strtoul(name, &end, 10);
    assert_ptr_not_equal(end, name);
    assert_int_equal(*end, '-');
    assert_true(number < OTLP_BYTES_SPANS);
    spans->times[number]++;
    spans->count++;
}

static void read_protobuf(const struct otlp_bytes *plain, struct otlp_bytes_spans *spans)
{
    Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest *request =
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(
            NULL, plain->length, plain->data);
    assert_non_null(request);
    assert_int_equal(request->n_resource_spans, 1);
    Opentelemetry__Proto__Trace__V1__ResourceSpans *resource = request->resource_spans[0];
    for (size_t i = 0; i < resource->n_scope_spans; i++) {
        for (size_t k = 0; k < resource->scope_spans[i]->n_spans; k++)
            note(spans, resource->scope_spans[i]->spans[k]->name);
    }
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__free_unpacked(request,
                                                                                            NULL);
}

/* The text of a span's id is followed by its name. */
static void read_json(const struct otlp_bytes *plain, struct otlp_bytes_spans *spans)
{
    static const char before[] = "\"spanId\":\"";
    static const char name[] = "\",\"name\":\"";
    assert_true(json_is_valid((const char *)plain->data, plain->length));
    char *text = malloc(plain->length + 1);
    assert_non_null(text);
    memcpy(text, plain->data, plain->length);
    text[plain->length] = '\0';
    for (const char *at = strstr(text, before); at != NULL; at = strstr(at, before)) {
        at += sizeof before - 1 + 16;
        assert_memory_equal(at, name, sizeof name - 1);
        note(spans, at + sizeof name - 1);
    }
    free(text);
}

struct otlp_bytes_spans otlp_bytes_read(otel_otlp_protocol protocol, const struct otlp_bytes *plain)
{
    struct otlp_bytes_spans spans = {0};
    if (protocol == OTEL_OTLP_HTTP_JSON)
        read_json(plain, &spans);
    else
        read_protobuf(plain, &spans);
    return spans;
}
