/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/request.h - the bytes of one request: spans of a batch, encoded for a
 * protocol, compressed and framed.
 *
 *                 oteli_request_make            oteli_request_wrap
 *     spans ──────▶ plain OTLP ─┬────────────────┬──────────▶ as it is sent
 *     (a spool) ──▶ plain OTLP ─┘  gzip or zstd, and gRPC's frame
 *
 * All memory is kept from request to request: in the steady state nothing is allocated; after one
 * huge request it is given back.
 *
 * Threads:  a request belongs to one thread at a time. */
#ifndef OTELI_REQUEST_H
#define OTELI_REQUEST_H

#include "exporters/otlp/encode/batch_encoder.h"

#include <otel/otlp.h>

struct oteli_compressor;
struct oteli_text;

struct oteli_request {
    /* Of the request that was made or wrapped last; until the next call. */
    const void *bytes; /* as they are sent; NULL: there is none */
    size_t length;
    const void *plain; /* before compression and frame: what a spool keeps */
    size_t plain_length;
    size_t spans; /* in it */

    otel_otlp_protocol protocol;
    struct oteli_encoder encoder;
    struct oteli_text *json;             /* NULL: the protocol is not JSON */
    struct oteli_compressor *compressor; /* NULL: nothing is compressed */
    struct oteli_reusable_buffer framed; /* a frame, and a copy of plain bytes behind it */
};

/* `max_request_bytes` limits the plain bytes. false: no memory, and there is nothing to free. The
 * compression is one that oteli_compression_is_known. */
bool oteli_request_init(struct oteli_request *request, otel_otlp_protocol protocol,
                        otel_otlp_compression compression, size_t max_request_bytes);
/* Also of one that is all zero. */
void oteli_request_fini(struct oteli_request *request);

/* Make a request of the spans from number `first` on, of as many as one may hold (in JSON perhaps
 * half as many), and of `max_spans` at most: of one at least. `first` is below the batch's size,
 * `max_spans` not 0. */
enum oteli_encode_result oteli_request_make(struct oteli_request *request, const otel_batch *batch,
                                            size_t first, size_t max_spans);

/* Make a request of what was plain bytes of another one with this protocol (or, as gRPC and
 * HTTP/protobuf have the same plain bytes, with the other of these). They stay until the next call.
 * false: no memory. */
bool oteli_request_wrap(struct oteli_request *request, const void *plain, size_t length,
                        size_t spans);

#endif
