/* SPDX-License-Identifier: Apache-2.0 */
/* otel/jaeger_remote.h - a sampler whose rules a Jaeger server keeps, so that operators can change
 * them while programs run.
 *
 * It asks http://localhost:5778/sampling?service=NAME over HTTP, at once and then once a minute,
 * and understands probabilities, rates, and probabilities for each operation (span name). While
 * there is no answer the initial sampler decides; later the last good answer goes on to hold.
 * OTEL_TRACES_SAMPLER=parentbased_jaeger_remote is this sampler for roots. Servers that speak
 * only gRPC cannot be asked: 14250, the port of the specification's `endpoint`, is one of those.
 *
 * Threads:  the sampler: any thread. It has a small thread of its own, "otel-sampler", which
 *           waits for the server, so that no span ever does; a forked child starts one of its own
 *           with the first span that it asks about. Threads that ask at the same moment take turns
 *           (a spin lock, held for one decision).
 * Signals:  never in a handler: it allocates, and starts a thread.
 * Errors:   otel_status; while the server does not answer the sampler goes on as said above.
 * Source:   OpenTelemetry specification, trace/sdk.md "JaegerRemoteSampler"; Jaeger, "Remote
 *           Sampling API". In library `otel-otlp`. */
#ifndef OTEL_JAEGER_REMOTE_H
#define OTEL_JAEGER_REMOTE_H

#include <otel/sampler.h>

OTEL_BEGIN_DECLS

typedef struct otel_jaeger_remote_options {
    size_t size;                 /* sizeof(otel_jaeger_remote_options) */
    const char *endpoint;        /* NULL: http://localhost:5778/sampling; without a path it gets
                                    that one's */
    const char *service_name;    /* whose rules; NULL: "unknown_service" */
    int64_t polling_interval_ms; /* 0: 60,000 */
    int64_t timeout_ms;          /* of one question; 0: 10,000 */
    otel_sampler initial;        /* adopted; zeroed: TraceIdRatioBased{0.001000} */
} otel_jaeger_remote_options;

#define OTEL_JAEGER_REMOTE_OPTIONS(...) \
    (&(otel_jaeger_remote_options){.size = sizeof(otel_jaeger_remote_options), __VA_ARGS__})

/* Make the sampler, which the SDK adopts with otel_sdk_options.sampler; options may be NULL, and
 * are copied. Reads no environment but where it names the proxies. OTEL_ERROR_INVALID_ARGUMENT: the
 * endpoint is no http or https URL, or a time is negative; OTEL_ERROR_SYSTEM: no thread. */
OTEL_API OTEL_MUST_USE otel_status
otel_sampler_jaeger_remote(const otel_jaeger_remote_options *options, otel_sampler *sampler);

OTEL_END_DECLS
#endif
