/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/protocol.h - what the three protocols of OTLP have in common: which
 * headers a request has, and what an answer means.
 *
 * Pure functions.
 * Source:   opentelemetry-proto, docs/specification.md "Failures", "OTLP/gRPC Response" and
 *           "OTLP/HTTP Response"; grpc, doc/PROTOCOL-HTTP2.md and
 *           doc/http-grpc-status-mapping.md. */
#ifndef OTELI_PROTOCOL_H
#define OTELI_PROTOCOL_H

#include "exporters/otlp/protocol/http_response.h"

#include <otel/otlp.h>

enum oteli_verdict {
    OTELI_VERDICT_DELIVERED,
    OTELI_VERDICT_RETRY,     /* busy, or no answer at all */
    OTELI_VERDICT_TOO_LARGE, /* it may take half of it */
    OTELI_VERDICT_HOPELESS,  /* no answer, and no retry can help: a bad certificate */
    OTELI_VERDICT_FINAL      /* refused: the same request would fail again */
};

/* What came of an attempt, whatever the protocol. */
struct oteli_outcome {
    enum oteli_verdict verdict;
    bool may_have_arrived;   /* no answer, or one that does not say, after the body was sent */
    bool connection_refused; /* no answer: no process listens there */
    bool is_about_content;   /* FINAL, perhaps for one of the spans only */
    bool has_no_service;     /* FINAL, because nothing is served at this path, or for this method */
    const char *retry_after; /* RETRY: a header field that counts, of the answer; NULL: none */
    bool is_throttled;       /* the receiver said when to come again: */
    uint64_t asked_ms;
    uint64_t rejected; /* spans, of partial success; at most INT64_MAX */
    char message[256]; /* of partial success or a warning with it; printable, "": none */
    char problem[320]; /* why it is not DELIVERED, in words; printable, "" for DELIVERED */
};

/* What Retry-After says is left to oteli_retry_read (call/retry.h). */
void oteli_protocol_read(otel_otlp_protocol protocol, const struct oteli_transport_response *answer,
                         struct oteli_outcome *outcome);

/* The constant headers of a protocol with a compression: Content-Type and its like. Static texts.
 * Gives their number. */
enum { OTELI_PROTOCOL_HEADERS = 4 };
size_t oteli_protocol_headers(otel_otlp_protocol protocol, otel_otlp_compression compression,
                              otel_otlp_header headers[OTELI_PROTOCOL_HEADERS]);

#endif
