/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol.c - the contracts are in protocol.h. Any thread; owns nothing. */
#include "exporters/otlp/protocol.h"

#include "exporters/otlp/retry.h"
#include "exporters/otlp/transport.h"

#include <stdio.h>
#include <string.h>

static enum oteli_verdict verdict_of(int status)
{
    switch (status) {
    case 429:
    case 502:
    case 503:
    case 504:
        return OTELI_VERDICT_RETRY;
    case 413:
        return OTELI_VERDICT_TOO_LARGE;
    default:
        return status >= 200 && status < 300 ? OTELI_VERDICT_DELIVERED : OTELI_VERDICT_FINAL;
    }
}

static void read_nothing(const struct oteli_transport_answer *answer, struct oteli_outcome *outcome)
{
    outcome->verdict = answer->is_hopeless ? OTELI_VERDICT_HOPELESS : OTELI_VERDICT_RETRY;
    outcome->may_have_arrived = answer->body_was_sent;
    snprintf(outcome->problem, sizeof outcome->problem, "%s", answer->problem);
}

static void read_http(const struct oteli_transport_answer *answer, int64_t now_unix_s,
                      struct oteli_outcome *outcome)
{
    outcome->verdict = verdict_of(answer->status);
    if (outcome->verdict == OTELI_VERDICT_DELIVERED) {
        const struct oteli_partial_success partial = oteli_answer_partial_success(&answer->body);
        outcome->rejected = partial.rejected_spans;
        oteli_answer_printable(partial.message, outcome->message, sizeof outcome->message);
        return;
    }
    char text[sizeof outcome->message];
    oteli_answer_printable(oteli_answer_status_message(&answer->body), text, sizeof text);
    snprintf(outcome->problem, sizeof outcome->problem, "HTTP status %d%s%s%s", answer->status,
             answer->is_too_long ? " with an endless answer" : "", *text != '\0' ? ": " : "", text);
    if (answer->is_too_long && outcome->verdict == OTELI_VERDICT_RETRY)
        outcome->verdict = OTELI_VERDICT_FINAL;
    outcome->is_throttled =
        (answer->status == 429 || answer->status == 503) && answer->retry_after != NULL &&
        oteli_retry_after_ms(answer->retry_after, now_unix_s, &outcome->asked_ms);
}

void oteli_protocol_read(otel_otlp_protocol protocol, const struct oteli_transport_answer *answer,
                         int64_t now_unix_s, struct oteli_outcome *outcome)
{
    (void)protocol;
    memset(outcome, 0, sizeof *outcome);
    if (answer->status == 0)
        read_nothing(answer, outcome);
    else
        read_http(answer, now_unix_s, outcome);
}

size_t oteli_protocol_headers(otel_otlp_protocol protocol, otel_otlp_compression compression,
                              otel_otlp_header headers[OTELI_PROTOCOL_HEADERS])
{
    static const char *const types[] = {
        [OTEL_OTLP_HTTP_PROTOBUF] = "application/x-protobuf",
        [OTEL_OTLP_HTTP_JSON] = "application/json",
        [OTEL_OTLP_GRPC] = "application/grpc",
    };
    const bool is_grpc = protocol == OTEL_OTLP_GRPC;
    size_t count = 0;
    headers[count++] = (otel_otlp_header){"Content-Type", types[protocol]};
    if (is_grpc)
        headers[count++] = (otel_otlp_header){"TE", "trailers"};
    if (compression == OTEL_OTLP_COMPRESSION_NONE)
        return count;
    const char *encoding = compression == OTEL_OTLP_COMPRESSION_GZIP ? "gzip" : "zstd";
    headers[count++] = (otel_otlp_header){is_grpc ? "grpc-encoding" : "Content-Encoding", encoding};
    if (is_grpc)
        headers[count++] = (otel_otlp_header){"grpc-accept-encoding", encoding};
    return count;
}
