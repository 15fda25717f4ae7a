/* SPDX-License-Identifier: Apache-2.0 */
/* otel/otlp_encode.h - OTLP without a connection, for programs that do their own I/O: spans of a
 * batch into the bytes of a request, and an answer into what it means for them.
 *
 *     otel_otlp_encoder *encoder;
 *     otel_otlp_encoder_new(OTEL_OTLP_OPTIONS(.compression = OTEL_OTLP_COMPRESSION_GZIP),
 *                           &encoder);
 *     ... and in the exporter of the program:
 *     size_t count;
 *     otel_slice body;
 *     for (size_t first = 0; first < otel_batch_size(batch); first += count) {
 *         if (otel_otlp_encode(encoder, batch, first, SIZE_MAX, &count, &body) != OTEL_OK)
 *             break;
 *         ... post `body` with the headers of otel_otlp_encoder_headers
 *     }
 *
 * The bytes are those that the exporter of otel/otlp.h sends. examples/encode_only.c is a whole
 * program.
 *
 * Threads:  one thread at a time for an encoder; otel_otlp_read_answer from any thread.
 * Signals:  never in a handler: they allocate.
 * Errors:   otel_status; otel_otlp_read_answer does not fail.
 * Cost:     memory is kept from request to request, so that in the steady state there is no
 *           allocation.
 * Source:   opentelemetry-proto docs/specification.md (OTLP 1.11). */
#ifndef OTEL_OTLP_ENCODE_H
#define OTEL_OTLP_ENCODE_H

#include <otel/otlp.h>

OTEL_BEGIN_DECLS

typedef struct otel_otlp_encoder otel_otlp_encoder;

/* Make an encoder. Of the options `protocol`, `compression` and `max_request_bytes` count, and they
 * may be NULL. OTEL_ERROR_INVALID_ARGUMENT: a number or an enumeration of the options is out of
 * range, of those too that do not count. OTEL_ERROR_UNSUPPORTED: this build has no zstd.
 * OTEL_ERROR_NO_MEMORY. */
OTEL_API OTEL_MUST_USE otel_status otel_otlp_encoder_new(const otel_otlp_options *options,
                                                         otel_otlp_encoder **encoder);

/* Free an encoder, with the headers and the request that it gave. */
OTEL_API void otel_otlp_encoder_free(otel_otlp_encoder *encoder);

#define OTEL_OTLP_GRPC_PATH "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

/* The headers that a request needs so that it is understood: Content-Type and its like. They stay
 * until the encoder is freed. Missing from them is what belongs to the connection: the path
 * (/v1/traces; for gRPC OTEL_OTLP_GRPC_PATH), host, length, user agent, authorization. */
OTEL_API const otel_otlp_header *otel_otlp_encoder_headers(const otel_otlp_encoder *encoder,
                                                           size_t *count);

/* Make a request of the spans from number `first` on: of as many as one may hold (in JSON perhaps
 * only half as many), and at most of `max_spans`, which is not 0. *count says of how many, *request
 * is the body of the POST (for gRPC with the length in front of the message), and stays until the
 * next call. Of a span that alone is larger than a request may be, *request is empty and *count is
 * 1: it has to be left out.
 * OTEL_ERROR_INVALID_ARGUMENT: there is no such span. OTEL_ERROR_NO_MEMORY. *count is 0 then. */
OTEL_API OTEL_MUST_USE otel_status otel_otlp_encode(otel_otlp_encoder *encoder,
                                                    const otel_batch *batch, size_t first,
                                                    size_t max_spans, size_t *count,
                                                    otel_slice *request);

/* What a receiver answered, as the program's HTTP client has it. */
typedef struct otel_otlp_response {
    size_t size;              /* sizeof(otel_otlp_response) */
    int http_status;          /* 0: there was no answer */
    bool may_have_arrived;    /* no answer, but the request was sent, or some of it */
    otel_slice body;          /* without HTTP's compression; the first few KiB are enough */
    bool body_is_cut;         /* it goes on behind them */
    const char *content_type; /* header fields; NULL: none */
    const char *retry_after;
    const char *grpc_status; /* trailers, or header fields of an answer without a body */
    const char *grpc_message;
    const char *grpc_status_details_bin;
} otel_otlp_response;

#define OTEL_OTLP_RESPONSE(...) \
    (&(otel_otlp_response){.size = sizeof(otel_otlp_response), __VA_ARGS__})

typedef enum otel_otlp_verdict {
    OTEL_OTLP_DELIVERED = 0,
    OTEL_OTLP_RETRY,     /* the same request later: with back-off, and not before retry_after_ms */
    OTEL_OTLP_TOO_LARGE, /* may be taken in requests of fewer spans */
    OTEL_OTLP_REFUSED    /* the same request would be refused again */
} otel_otlp_verdict;

typedef struct otel_otlp_answer {
    size_t size; /* sizeof(otel_otlp_answer), set by the caller */
    otel_otlp_verdict verdict;
    bool may_have_arrived;   /* RETRY: there may be duplicates if it is sent again */
    uint64_t retry_after_ms; /* what the receiver asks for; 0: nothing */
    uint64_t rejected;       /* spans of a delivered request that were not taken, for good */
    char text[320];          /* what the receiver says, or what was wrong; one printable line */
} otel_otlp_answer;

/* Say in `*answer` what a response to a request of this protocol means. */
OTEL_API void otel_otlp_read_answer(otel_otlp_protocol protocol, const otel_otlp_response *response,
                                    otel_otlp_answer *answer);

OTEL_END_DECLS
#endif
