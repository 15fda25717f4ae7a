/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/request_encode.c - requests and answers for programs that do their own I/O: the
 * contracts are in otel/otlp_encode.h. One thread at a time; owns the request of its encoder. */
#include "common/base/sized.h"
#include "exporters/otlp/call/retry.h"
#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/encode/request.h"
#include "exporters/otlp/otlp_options.h"
#include "exporters/otlp/protocol/protocol.h"

#include <otel/otlp_encode.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct otel_otlp_encoder {
    struct oteli_request request;
    otel_otlp_header headers[OTELI_PROTOCOL_HEADERS];
    size_t header_count;
};

otel_status otel_otlp_encoder_new(const otel_otlp_options *options, otel_otlp_encoder **encoder)
{
    otel_otlp_options chosen;
    *encoder = NULL;
    if (!oteli_options_take(&chosen, options))
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (!oteli_compression_is_known(chosen.compression))
        return OTEL_ERROR_UNSUPPORTED;
    struct otel_otlp_encoder *made = calloc(1, sizeof *made);
    if (made == NULL || !oteli_request_init(&made->request, chosen.protocol, chosen.compression,
                                            chosen.max_request_bytes)) {
        free(made);
        return OTEL_ERROR_NO_MEMORY;
    }
    made->header_count = oteli_protocol_headers(chosen.protocol, chosen.compression, made->headers);
    *encoder = made;
    return OTEL_OK;
}

void otel_otlp_encoder_free(otel_otlp_encoder *encoder)
{
    if (encoder == NULL)
        return;
    oteli_request_fini(&encoder->request);
    free(encoder);
}

const otel_otlp_header *otel_otlp_encoder_headers(const otel_otlp_encoder *encoder, size_t *count)
{
    *count = encoder->header_count;
    return encoder->headers;
}

otel_status otel_otlp_encode(otel_otlp_encoder *encoder, const otel_batch *batch, size_t first,
                             size_t max_spans, size_t *count, otel_slice *request)
{
    *count = 0;
    *request = (otel_slice){.data = ""};
    if (first >= otel_batch_size(batch) || max_spans == 0)
        return OTEL_ERROR_INVALID_ARGUMENT;
    switch (oteli_request_make(&encoder->request, batch, first, max_spans)) {
    case OTELI_ENCODE_OK:
        *count = encoder->request.spans;
        *request = (otel_slice){encoder->request.bytes, encoder->request.length};
        return OTEL_OK;
    case OTELI_ENCODE_TOO_LARGE:
        *count = 1;
        return OTEL_OK;
    case OTELI_ENCODE_NO_MEMORY:
        break;
    }
    return OTEL_ERROR_NO_MEMORY;
}

static const otel_otlp_verdict verdicts[] = {
    [OTELI_VERDICT_DELIVERED] = OTEL_OTLP_DELIVERED, [OTELI_VERDICT_RETRY] = OTEL_OTLP_RETRY,
    [OTELI_VERDICT_TOO_LARGE] = OTEL_OTLP_TOO_LARGE, [OTELI_VERDICT_HOPELESS] = OTEL_OTLP_REFUSED,
    [OTELI_VERDICT_FINAL] = OTEL_OTLP_REFUSED,
};

void otel_otlp_read_answer(otel_otlp_protocol protocol, const otel_otlp_response *response,
                           otel_otlp_answer *answer)
{
    otel_otlp_response known;
    const otel_otlp_response *given = oteli_sized(response, response->size, &known, sizeof known);
    const char *body = given->body.data != NULL ? given->body.data : "";
    const struct oteli_transport_response read = {
        .status = given->http_status,
        .body_was_sent = given->may_have_arrived,
        .body = {(const uint8_t *)body, given->body.length, given->body_is_cut},
        .retry_after = given->retry_after,
        .content_type = given->content_type,
        .grpc_status = given->grpc_status,
        .grpc_message = given->grpc_message,
        .grpc_details = given->grpc_status_details_bin,
    };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct oteli_outcome outcome;
    oteli_protocol_read(protocol, &read, &outcome);
    oteli_retry_read(&outcome, now.tv_sec);

    otel_otlp_answer made = {
        .size = answer->size,
        .verdict = verdicts[outcome.verdict],
        .may_have_arrived = outcome.may_have_arrived,
        .retry_after_ms = outcome.asked_ms,
        .rejected = outcome.rejected,
    };
    const bool is_delivered = made.verdict == OTEL_OTLP_DELIVERED;
    const char *text = is_delivered ? outcome.message : outcome.problem;
    memcpy(made.text, text, strlen(text));
    memcpy(answer, &made, answer->size < sizeof made ? answer->size : sizeof made);
}
