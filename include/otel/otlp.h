/* SPDX-License-Identifier: Apache-2.0 */
/* otel/otlp.h - the exporter that posts OTLP over HTTP to a collector.
 *
 * Binary protobuf, one request at a time over a connection that is kept alive. Answers
 * 429, 502, 503, 504 and no answer at all are tried again until the deadline, with
 * jittered back-off and the server's Retry-After; a partial success is counted and never
 * sent again; every other answer is final.
 * Source: opentelemetry-proto docs/specification.md (OTLP 1.11), OpenTelemetry
 * specification protocol/exporter.md. */
#ifndef OTEL_OTLP_H
#define OTEL_OTLP_H

#include <otel/exporter.h>

OTEL_BEGIN_DECLS

typedef struct otel_otlp_header {
    const char *name;
    const char *value; /* as it is sent: nothing is decoded */
} otel_otlp_header;

typedef struct otel_otlp_options {
    size_t size;          /* sizeof(otel_otlp_options) */
    const char *endpoint; /* the full URL; NULL: http://localhost:4318/v1/traces */
    const otel_otlp_header *headers;
    size_t header_count;
    int64_t timeout_ms;       /* of one batch, retries included; 0: 10,000; OTEL_ZERO: none */
    const char *user_agent;   /* goes before ours; may be NULL */
    size_t max_request_bytes; /* 0: 64 MiB. Larger batches are split */
} otel_otlp_options;

#define OTEL_OTLP_OPTIONS(...) \
    (&(otel_otlp_options){.size = sizeof(otel_otlp_options), __VA_ARGS__})

/* Make an exporter; everything in the options is copied, and they may be NULL. Reads no
 * environment but where it names the proxies (http_proxy, https_proxy, all_proxy,
 * no_proxy), here and never again. `*exporter` is filled in on OTEL_OK.
 * OTEL_ERROR_INVALID_ARGUMENT: the endpoint is no http or https URL, a header cannot
 * stand in a request, or the timeout is below OTEL_ZERO. */
OTEL_API OTEL_MUST_USE otel_status otel_otlp_exporter_new(const otel_otlp_options *options,
                                                          otel_exporter *exporter);

OTEL_END_DECLS
#endif
