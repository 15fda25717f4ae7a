/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/response.h - read the two messages that a receiver answers with.
 *
 * Bodies come from the receiver, or from a proxy, and may be cut, broken or hostile, so they are
 * walked in place with every length checked: nothing is allocated, and there is no depth to
 * exhaust. (protobuf-c would build a tree from such bytes, and the releases that distributions
 * carry have had memory errors there. The tests hold its opinion against ours.)
 *
 * Threads:  any thread; no state. What is returned points into the body.
 * Source:   opentelemetry-proto, trace_service.proto; google/rpc/status.proto. */
#ifndef OTELI_RESPONSE_H
#define OTELI_RESPONSE_H

#include <otel/exporter.h>

/* A body of which only the beginning was kept is `cut`: what stands in it counts. */
struct oteli_response_body {
    const uint8_t *bytes;
    size_t length;
    bool is_cut;
};

/* ExportTraceServiceResponse.partial_success: how many spans were refused, and what the
 * receiver says about it (or, with none refused, warns of). Nothing at all for a body that
 * is empty, has no such field, or is no such message. */
struct oteli_partial_success {
    uint64_t rejected_spans;
    otel_slice message;
};
struct oteli_partial_success oteli_response_partial_success(const struct oteli_response_body *body);

/* google.rpc.Status.message of an error; empty when the body is no such message. */
otel_slice oteli_response_status_message(const struct oteli_response_body *body);

/* The two messages where a receiver answers in JSON (response_json.c); the names of protobuf itself
 * are understood as well. Of a body that was cut, what stands in it counts. */

/* ExportTraceServiceResponse.partial_success; the message as oteli_response_printable makes it, in
 * `message`, which is "" where there is none. Gives the number of spans that were refused. */
uint64_t oteli_response_json_partial_success(const struct oteli_response_body *body, char *message,
                                             size_t size);

/* google.rpc.Status.message in the same way; false: there is none. */
bool oteli_response_json_status_message(const struct oteli_response_body *body, char *message,
                                        size_t size);

/* Make a message fit for a log line: no control characters, valid UTF-8 up to its end, at
 * most size - 1 bytes and a NUL. Returns `out`. */
const char *oteli_response_printable(otel_slice message, char *out, size_t size);

#endif
