/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/protocol.c - the contracts are in protocol.h. Any thread; owns nothing.
 *
 *     answer ─┬─ none ──────────────────────────────────────▶ RETRY, HOPELESS
 *             ├─ HTTP ─ status ─────────────────────────────▶ verdict
 *             └─ gRPC ─┬─ grpc-status ──────────────▶ code ─▶ verdict
 *                      └─ HTTP status other than 200 ▶ code ─▶ verdict */
#include "exporters/otlp/protocol/protocol.h"

#include "exporters/otlp/encode/compress.h"
#include "exporters/otlp/encode/grpc_frame.h"
#include "exporters/otlp/protocol/grpc.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DECOMPRESSED_MAX = 4096 }; /* of an answer's message, what is looked at */

/* ---- texts ---------------------------------------------------------------------------- */

/* Whether an error's text is about the size of the request, and not of something in it. */
static bool says_too_large(const char *text)
{
    static const char *const phrases[] = {
        "body too large",
        "body is too large",
        "body exceeds",
        "body size",
        "entity too large",
        "content too large",
        "payload too large",
        "payload size",
        "request too large",
        "request size",
        "request is too large",
        "message too large",
        "message size",
        "message larger than",
        "decompression larger than",
        "message exceeds",
        "message length too large",
    };
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++) {
        if (strcasestr(text, phrases[i]) != NULL)
            return true;
    }
    return false;
}

static bool is_json(otel_otlp_protocol protocol, const char *content_type)
{
    if (content_type != NULL && strcasestr(content_type, "json") != NULL)
        return true;
    if (content_type != NULL && strcasestr(content_type, "protobuf") != NULL)
        return false;
    return protocol == OTEL_OTLP_HTTP_JSON;
}

/* The text of an error's body: of a Status in JSON or protobuf, or else the body itself. What the
 * Content-Type says is not asked, because proxies and frameworks get it wrong. */
static void read_error_text(const struct oteli_response_body *body, char *text, size_t size)
{
    if (oteli_response_json_status_message(body, text, size))
        return;
    otel_slice found = oteli_response_status_message(body);
    if (found.length == 0)
        found = (otel_slice){(const char *)body->bytes, body->length};
    while (found.length != 0 && (unsigned char)*found.data <= ' ') {
        found.data++;
        found.length--;
    }
    oteli_response_printable(found, text, size);
    for (size_t end = strlen(text); end != 0 && text[end - 1] == ' '; end--)
        text[end - 1] = '\0';
}

__attribute__((format(printf, 3, 4))) static void describe(struct oteli_outcome *outcome,
                                                           const char *text, const char *format,
                                                           ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcome->problem, sizeof outcome->problem, format, arguments);
    va_end(arguments);
    const otel_slice made = {outcome->problem, strlen(outcome->problem)};
    oteli_response_printable(made, outcome->problem, sizeof outcome->problem);
    const size_t used = strlen(outcome->problem);
    char *rest = outcome->problem + used;
    if (*text == '\0' || used + 3 >= sizeof outcome->problem)
        return;
    memcpy(rest, ": ", 2);
    oteli_response_printable((otel_slice){text, strlen(text)}, rest + 2,
                             sizeof outcome->problem - used - 2);
}

/* ---- what all of them have in common ----------------------------------------------------- */

static void read_partial_success(bool json, const struct oteli_response_body *body,
                                 struct oteli_outcome *outcome)
{
    if (json) {
        outcome->rejected =
            oteli_response_json_partial_success(body, outcome->message, sizeof outcome->message);
    } else {
        const struct oteli_partial_success partial = oteli_response_partial_success(body);
        outcome->rejected = partial.rejected_spans;
        oteli_response_printable(partial.message, outcome->message, sizeof outcome->message);
    }
}

static void read_no_answer(const struct oteli_transport_response *answer,
                           struct oteli_outcome *outcome)
{
    outcome->connection_refused = answer->connection_refused;
    outcome->verdict = answer->is_hopeless ? OTELI_VERDICT_HOPELESS : OTELI_VERDICT_RETRY;
    outcome->may_have_arrived = answer->body_was_sent;
    if (answer->problem != NULL)
        describe(outcome, "", "%s", answer->problem);
    if (outcome->problem[0] == '\0')
        describe(outcome, "", "no answer");
}

static void read_retry_after(const struct oteli_transport_response *answer,
                             struct oteli_outcome *outcome)
{
    if (answer->status == 429 || answer->status == 503)
        outcome->retry_after = answer->retry_after;
}

/* ---- HTTP ----------------------------------------------------------------------------- */

static enum oteli_verdict http_verdict(int status)
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

static void read_http(otel_otlp_protocol protocol, const struct oteli_transport_response *answer,
                      struct oteli_outcome *outcome)
{
    outcome->verdict = http_verdict(answer->status);
    if (outcome->verdict == OTELI_VERDICT_DELIVERED) {
        read_partial_success(is_json(protocol, answer->content_type), &answer->body, outcome);
        return;
    }
    char text[sizeof outcome->problem];
    read_error_text(&answer->body, text, sizeof text);
    if (answer->status == 400 && says_too_large(text))
        outcome->verdict = OTELI_VERDICT_TOO_LARGE;
    outcome->is_about_content = outcome->verdict == OTELI_VERDICT_FINAL && answer->status == 400;
    outcome->has_no_service = answer->status == 404;
    describe(outcome, text, "HTTP status %d%s", answer->status,
             answer->is_too_long ? " with an endless answer" : "");
    if (outcome->verdict != OTELI_VERDICT_RETRY)
        return;
    if (answer->is_too_long)
        outcome->verdict = OTELI_VERDICT_FINAL;
    else
        read_retry_after(answer, outcome);
}

/* ---- gRPC ----------------------------------------------------------------------------- */

/* Servers compress an answer as the request was, gRPC's own answer to an empty message too. */
static void read_grpc_message(const struct oteli_response_body *body, struct oteli_outcome *outcome)
{
    bool is_compressed;
    struct oteli_response_body message = oteli_grpc_message(body, &is_compressed);
    uint8_t plain[DECOMPRESSED_MAX];
    if (is_compressed) {
        bool is_whole;
        message.length =
            oteli_decompress(message.bytes, message.length, plain, sizeof plain, &is_whole);
        message.bytes = plain;
        message.is_cut = !is_whole;
    }
    read_partial_success(false, &message, outcome);
}

/* What a code other than OK means, with its text. */
static void read_grpc_code(int code, const struct oteli_transport_response *answer,
                           const char *text, struct oteli_outcome *outcome)
{
    outcome->verdict =
        oteli_grpc_code_is_retryable(code) ? OTELI_VERDICT_RETRY : OTELI_VERDICT_FINAL;
    /* Servers say INTERNAL for what their protobuf cannot read. */
    outcome->is_about_content =
        answer->grpc_status != NULL &&
        (code == OTELI_GRPC_INVALID_ARGUMENT || code == OTELI_GRPC_INTERNAL);
    outcome->has_no_service = code == OTELI_GRPC_UNIMPLEMENTED;
    const bool is_about_size =
        code == OTELI_GRPC_RESOURCE_EXHAUSTED || code == OTELI_GRPC_OUT_OF_RANGE;
    if ((outcome->verdict == OTELI_VERDICT_RETRY || is_about_size) &&
        answer->grpc_details != NULL &&
        oteli_grpc_retry_ms(answer->grpc_details, &outcome->asked_ms)) {
        outcome->verdict = OTELI_VERDICT_RETRY;
        outcome->is_throttled = true;
    } else if ((is_about_size && says_too_large(text)) ||
               (answer->grpc_status == NULL && answer->status == 413)) {
        outcome->verdict = OTELI_VERDICT_TOO_LARGE;
    }
}

static void read_grpc_status(const struct oteli_transport_response *answer,
                             struct oteli_outcome *outcome)
{
    const int code = oteli_grpc_code(answer->grpc_status);
    if (code == OTELI_GRPC_OK) {
        outcome->verdict = OTELI_VERDICT_DELIVERED;
        read_grpc_message(&answer->body, outcome);
        return;
    }
    char text[sizeof outcome->problem] = "";
    if (answer->grpc_message != NULL)
        oteli_grpc_text(answer->grpc_message, text, sizeof text);
    read_grpc_code(code, answer, text, outcome);
    describe(outcome, text, "gRPC status %d (%s)", code, oteli_grpc_code_name(code));
}

static bool speaks_grpc(const char *content_type)
{
    return content_type == NULL || strncasecmp(content_type, "application/grpc", 16) == 0;
}

/* Whether the body is one message and nothing else. */
static bool is_whole_message(const struct oteli_response_body *body)
{
    bool is_compressed;
    const struct oteli_response_body message = oteli_grpc_message(body, &is_compressed);
    return !body->is_cut && message.bytes != body->bytes &&
           body->length == OTELI_GRPC_FRAME + message.length;
}

/* The trailers never came, or a server without gRPC has answered: a proxy, for example. Servers
 * send a message only with OK, so that one which is whole is as good as the trailers; libcurl loses
 * these when a server that is about to stop says so in the same breath. */
static void read_without_grpc_status(const struct oteli_transport_response *answer,
                                     struct oteli_outcome *outcome)
{
    if (answer->status == 200 && speaks_grpc(answer->content_type)) {
        if (is_whole_message(&answer->body)) {
            outcome->verdict = OTELI_VERDICT_DELIVERED;
            read_grpc_message(&answer->body, outcome);
            return;
        }
        outcome->verdict = OTELI_VERDICT_RETRY;
        outcome->may_have_arrived = true;
        describe(outcome, "", "an answer without a gRPC status");
        return;
    }
    char text[sizeof outcome->problem];
    const int code = oteli_grpc_code_of_http(answer->status);
    read_error_text(&answer->body, text, sizeof text);
    read_grpc_code(code, answer, text, outcome);
    describe(outcome, text, "HTTP status %d without a gRPC status (%s)", answer->status,
             oteli_grpc_code_name(code));
    if (outcome->verdict == OTELI_VERDICT_RETRY)
        read_retry_after(answer, outcome);
}

static void read_grpc(const struct oteli_transport_response *answer, struct oteli_outcome *outcome)
{
    if (answer->grpc_status != NULL)
        read_grpc_status(answer, outcome);
    else
        read_without_grpc_status(answer, outcome);
    if (answer->is_too_long && outcome->verdict == OTELI_VERDICT_RETRY) {
        outcome->verdict = OTELI_VERDICT_FINAL;
        outcome->is_throttled = false;
        outcome->asked_ms = 0;
        outcome->retry_after = NULL;
        describe(outcome, "", "HTTP status %d with an endless answer", answer->status);
    }
}

/* ----------------------------------------------------------------------------------------- */

void oteli_protocol_read(otel_otlp_protocol protocol, const struct oteli_transport_response *answer,
                         struct oteli_outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    if (answer->status == 0)
        read_no_answer(answer, outcome);
    else if (protocol == OTEL_OTLP_GRPC)
        read_grpc(answer, outcome);
    else
        read_http(protocol, answer, outcome);
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
