/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/batch_encoder.h - turn the spans of a batch into the bytes of a request.
 *
 *     ExportTraceServiceRequest
 *     └─ resource_spans ─┬─ resource
 *                        ├─ scope_spans ─┬─ scope
 *                        │   (one each   ├─ spans, written by the batch
 *                        │    scope)     └─ schema_url
 *                        └─ schema_url
 *
 * One pass finds out how long everything is, a second one writes. The memory is kept from
 * batch to batch, so in the steady state nothing is allocated; after one huge batch it is
 * given back.
 *
 * Threads:  an encoder belongs to one thread at a time.
 * Cost:     two short loops over the records; the benchmark `worker` holds it.
 * Source:   opentelemetry-proto, trace_service.proto and trace.proto. */
#ifndef OTELI_BATCH_ENCODER_H
#define OTELI_BATCH_ENCODER_H

#include "exporters/otlp/encode/reusable_buffer.h"

#include <otel/exporter.h>

/* Spans that follow each other in the batch and have one scope, and which run is the next of the
 * same scope. */
struct oteli_encode_run {
    size_t first; /* span */
    size_t count;
    size_t next;
};

/* The spans of one scope: runs from number `first` to `last`. */
struct oteli_encode_group {
    const otel_scope_view *scope;
    size_t bytes; /* of its spans, with their tags and lengths */
    size_t first;
    size_t last;
};

struct oteli_encoder {
    uint8_t *request; /* what was encoded last; until the next call */
    size_t request_bytes;

    size_t max_request_bytes;
    size_t room_before;         /* bytes in front of a request that are the caller's to write */
    size_t usual_request_bytes; /* above it only a span on its own: a request is a copy */
    struct oteli_reusable_buffer buffer;
    struct oteli_encode_run *runs;
    size_t run_count;
    size_t run_room;
    struct oteli_encode_group *groups;
    size_t group_count;
    size_t group_room;
};

enum oteli_encode_result {
    OTELI_ENCODE_OK,
    OTELI_ENCODE_TOO_LARGE, /* the first span alone makes a request above the limit */
    OTELI_ENCODE_NO_MEMORY
};

/* Nothing is allocated before the first request. */
void oteli_encoder_init(struct oteli_encoder *encoder, size_t max_request_bytes,
                        size_t room_before);
void oteli_encoder_fini(struct oteli_encoder *encoder);

/* Encode the spans of the batch from number `first` on, as many as one request may hold and at
 * most `max_spans`: at least one, and *count says how many. `first` is below the batch's size. */
enum oteli_encode_result oteli_encode(struct oteli_encoder *encoder, const otel_batch *batch,
                                      size_t first, size_t max_spans, size_t *count);

#endif
