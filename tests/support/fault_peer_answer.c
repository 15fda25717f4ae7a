/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_answer.c - what an answer of the script is in protobuf, JSON or gRPC,
 * written out by hand: no code of otel-c is in it. The contracts are in fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* ---- protobuf --------------------------------------------------------------------------- */

static void put_varint(struct fault_bytes *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        const uint8_t byte = (uint8_t)(value | 0x80);
        fault_append(out, &byte, 1);
    }
    const uint8_t last = (uint8_t)value;
    fault_append(out, &last, 1);
}

static void put_number(struct fault_bytes *out, uint32_t field, uint64_t value)
{
    put_varint(out, field << 3);
    put_varint(out, value);
}

static void put_part(struct fault_bytes *out, uint32_t field, const void *bytes, size_t length)
{
    put_varint(out, field << 3 | 2);
    put_varint(out, length);
    fault_append(out, bytes, length);
}

static void put_message(struct fault_bytes *out, uint32_t field, struct fault_bytes *part)
{
    put_part(out, field, part->data, part->length);
    fault_clear(part);
}

/* ExportTraceServiceResponse */
static void put_success(struct fault_bytes *out, const struct fault_answer *answer)
{
    struct fault_bytes partial = {0};
    if (answer->rejected == 0 && answer->message == NULL)
        return;
    if (answer->rejected != 0)
        put_number(&partial, 1, (uint64_t)answer->rejected);
    if (answer->message != NULL)
        put_part(&partial, 2, answer->message, strlen(answer->message));
    put_message(out, 1, &partial);
}

/* google.rpc.Status, with google.rpc.RetryInfo as an Any. */
static void put_status(struct fault_bytes *out, const struct fault_answer *answer)
{
    static const char retry_info[] = "type.googleapis.com/google.rpc.RetryInfo";
    struct fault_bytes delay = {0};
    struct fault_bytes info = {0};
    struct fault_bytes any = {0};
    if (answer->rpc_code != 0)
        put_number(out, 1, (uint64_t)(int64_t)answer->rpc_code);
    if (answer->message != NULL)
        put_part(out, 2, answer->message, strlen(answer->message));
    if (!answer->has_retry_info)
        return;
    put_number(&delay, 1, (uint64_t)(answer->retry_info_ms / 1000));
    put_number(&delay, 2, (uint64_t)(answer->retry_info_ms % 1000 * 1000000));
    put_message(&info, 1, &delay);
    put_part(&any, 1, retry_info, sizeof retry_info - 1);
    put_message(&any, 2, &info);
    put_message(out, 3, &any);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void put_json_text(struct fault_bytes *out, const char *text)
{
    char escaped[8];
    fault_append_text(out, "\"");
    for (; *text != '\0'; text++) {
        const bool is_plain = (unsigned char)*text >= 0x20 && *text != '"' && *text != '\\';
        snprintf(escaped, sizeof escaped, is_plain ? "%c" : "\\u%04x", (unsigned char)*text);
        fault_append_text(out, escaped);
    }
    fault_append_text(out, "\"");
}

static void put_json_success(struct fault_bytes *out, const struct fault_answer *answer)
{
    char number[64];
    if (answer->rejected == 0 && answer->message == NULL) {
        fault_append_text(out, "{}");
        return;
    }
    snprintf(number, sizeof number, "{\"partialSuccess\":{\"rejectedSpans\":\"%" PRId64 "\"",
             answer->rejected);
    fault_append_text(out, number);
    if (answer->message != NULL) {
        fault_append_text(out, ",\"errorMessage\":");
        put_json_text(out, answer->message);
    }
    fault_append_text(out, "}}");
}

static void put_json_status(struct fault_bytes *out, const struct fault_answer *answer)
{
    char text[160];
    snprintf(text, sizeof text, "{\"code\":%d,\"message\":", answer->rpc_code);
    fault_append_text(out, text);
    put_json_text(out, answer->message != NULL ? answer->message : "");
    if (answer->has_retry_info) {
        const int64_t ms = answer->retry_info_ms;
        snprintf(text, sizeof text,
                 ",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\","
                 "\"retryDelay\":\"%s%" PRId64 ".%03ds\"}]",
                 ms < 0 ? "-" : "", ms < 0 ? -ms / 1000 : ms / 1000,
                 (int)(ms < 0 ? -ms % 1000 : ms % 1000));
        fault_append_text(out, text);
    }
    fault_append_text(out, "}");
}

/* ---- gRPC ------------------------------------------------------------------------------- */

static void put_frame(struct fault_bytes *out, const struct fault_bytes *message)
{
    const size_t length = message->length;
    const uint8_t head[5] = {0, (uint8_t)(length >> 24), (uint8_t)(length >> 16),
                             (uint8_t)(length >> 8), (uint8_t)length};
    fault_append(out, head, sizeof head);
    fault_append(out, message->data, length);
}

static void put_base64(struct fault_bytes *out, const struct fault_bytes *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes->length; i += 3) {
        const size_t left = bytes->length - i;
        const uint32_t group = (uint32_t)bytes->data[i] << 16 |
                               (left > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0) |
                               (left > 2 ? bytes->data[i + 2] : 0u);
        const char four[4] = {digits[group >> 18 & 63], digits[group >> 12 & 63],
                              digits[group >> 6 & 63], digits[group & 63]};
        fault_append(out, four, left > 2 ? 4 : left + 1); /* gRPC leaves padding out */
    }
}

static void put_percent(struct fault_bytes *out, const char *text)
{
    char escaped[8];
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        const bool is_plain = byte >= 0x20 && byte < 0x7f && byte != '%';
        snprintf(escaped, sizeof escaped, is_plain ? "%c" : "%%%02X", byte);
        fault_append_text(out, escaped);
    }
}

static void make_grpc(struct fault_reply *reply, const struct fault_answer *answer,
                      struct fault_bytes *body)
{
    char line[48];
    struct fault_bytes *lines = answer->in_trailers_only ? &reply->headers : &reply->trailers;
    reply->is_grpc = true;
    reply->has_trailers = !answer->in_trailers_only && !answer->has_no_trailers;
    snprintf(line, sizeof line, "grpc-status: %d\r\n", answer->rpc_code);
    fault_append_text(lines, line);
    if (answer->rpc_code != 0 && answer->message != NULL) {
        fault_append_text(lines, "grpc-message: ");
        put_percent(lines, answer->message);
        fault_append_text(lines, "\r\n");
    }
    if (answer->has_retry_info) {
        struct fault_bytes status = {0};
        put_status(&status, answer);
        fault_append_text(lines, "grpc-status-details-bin: ");
        put_base64(lines, &status);
        fault_append_text(lines, "\r\n");
        fault_clear(&status);
    }
    if (answer->rpc_code == 0 && !answer->in_trailers_only) {
        struct fault_bytes message = {0};
        put_success(&message, answer);
        put_frame(body, &message);
        fault_clear(&message);
    }
}

/* ---- bodies ----------------------------------------------------------------------------- */

static void deflate_into(z_stream *stream, const struct fault_bytes *from, int flush,
                         struct fault_bytes *out)
{
    uint8_t piece[16 * 1024];
    stream->next_in = from->data;
    stream->avail_in = (unsigned)from->length;
    do {
        stream->next_out = piece;
        stream->avail_out = sizeof piece;
        fault_must(deflate(stream, flush) != Z_STREAM_ERROR);
        fault_append(out, piece, sizeof piece - stream->avail_out);
    } while (stream->avail_out == 0);
}

/* A gzip file of the piece so many times, of which only one is ever compressed: after a full
 * flush the same bytes may be written again. */
static void make_gzip(struct fault_reply *reply, const struct fault_bytes *body)
{
    static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    static const uint8_t last_block[] = {3, 0};
    z_stream stream = {0};
    fault_must(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    fault_append(&reply->front, head, sizeof head);
    deflate_into(&stream, body, Z_FULL_FLUSH, &reply->piece);
    deflateEnd(&stream);
    fault_append(&reply->back, last_block, sizeof last_block);
    const uLong one = crc32(0, body->data, (unsigned)body->length);
    uLong all = 0;
    for (size_t i = 0; i < reply->repeats && reply->repeats != FAULT_ENDLESS; i++)
        all = crc32_combine(all, one, (z_off_t)body->length);
    const uint32_t size = (uint32_t)(body->length * reply->repeats);
    for (unsigned i = 0; i < 8; i++) {
        const uint8_t byte = (uint8_t)((i < 4 ? all : size) >> i % 4 * 8);
        fault_append(&reply->back, &byte, 1);
    }
    fault_append_text(&reply->headers, "Content-Encoding: gzip\r\n");
}

static void make_body(struct fault_reply *reply, const struct fault_answer *answer,
                      enum fault_format format, struct fault_bytes *body)
{
    const bool is_success = fault_answer_is_success(answer, format);
    if (answer->body != NULL)
        fault_append(body, answer->body, answer->body_length);
    else if (answer->body_repeats != 0)
        fault_append_text(body, "A text that goes on, and on, and on, and on, and on, and on. ");
    else if (format == FAULT_GRPC && (answer->status == 0 || answer->status == 200))
        return; /* has been made with the trailers */
    else if (format == FAULT_JSON && reply->status != 204 && reply->status != 304)
        (is_success ? put_json_success : put_json_status)(body, answer);
    else if (format == FAULT_PROTOBUF)
        (is_success ? put_success : put_status)(body, answer);
}

static const char *type_of(enum fault_format format)
{
    static const char *const types[] = {"application/x-protobuf", "application/json",
                                        "application/grpc", "text/plain"};
    return types[format];
}

bool fault_answer_is_success(const struct fault_answer *answer, enum fault_format format)
{
    const bool is_fine = answer->status == 0 || (answer->status >= 200 && answer->status < 300);
    return answer->raw == NULL && !answer->resets_stream &&
           answer->goaway != FAULT_GOAWAY_INSTEAD && is_fine &&
           (format != FAULT_GRPC || (answer->rpc_code == 0 && answer->status < 201));
}

void fault_reply_make(struct fault_reply *reply, const struct fault_answer *answer,
                      enum fault_format format)
{
    struct fault_bytes body = {0};
    const char *type = answer->content_type != NULL ? answer->content_type : type_of(format);
    *reply = (struct fault_reply){.status = answer->status != 0 ? answer->status : 200,
                                  .repeats = answer->body_repeats != 0 ? answer->body_repeats : 1};
    if (*type != '\0') {
        fault_append_text(&reply->headers, "Content-Type: ");
        fault_append_text(&reply->headers, type);
        fault_append_text(&reply->headers, "\r\n");
    }
    if (format == FAULT_GRPC && reply->status == 200) {
        struct fault_bytes framed = {0};
        make_grpc(reply, answer, &framed);
        if (answer->body == NULL && answer->body_repeats == 0)
            fault_append(&body, framed.data, framed.length);
        fault_clear(&framed);
    }
    make_body(reply, answer, format, &body);
    if (answer->in_gzip)
        make_gzip(reply, &body);
    else
        fault_append(&reply->piece, body.data, body.length);
    fault_clear(&body);
    reply->length =
        reply->repeats == FAULT_ENDLESS
            ? SIZE_MAX
            : reply->front.length + reply->piece.length * reply->repeats + reply->back.length;
}

void fault_reply_free(struct fault_reply *reply)
{
    fault_clear(&reply->headers);
    fault_clear(&reply->trailers);
    fault_clear(&reply->front);
    fault_clear(&reply->piece);
    fault_clear(&reply->back);
}

/* The part that the next byte is in, and what is left of it. */
static const uint8_t *part_at(const struct fault_reply *reply, size_t *left)
{
    const size_t front = reply->front.length;
    const size_t piece = reply->piece.length;
    if (reply->at < front) {
        *left = front - reply->at;
        return reply->front.data + reply->at;
    }
    const size_t at = reply->at - front;
    if (piece != 0 && (reply->repeats == FAULT_ENDLESS || at < piece * reply->repeats)) {
        *left = piece - at % piece;
        return reply->piece.data + at % piece;
    }
    const size_t behind = at - piece * reply->repeats;
    *left = reply->back.length - behind;
    return *left != 0 ? reply->back.data + behind : NULL;
}

size_t fault_reply_read(struct fault_reply *reply, uint8_t *out, size_t room)
{
    size_t got = 0;
    while (got < room && reply->at < reply->length) {
        size_t left;
        const uint8_t *from = part_at(reply, &left);
        if (left > room - got)
            left = room - got;
        memcpy(out + got, from, left);
        got += left;
        reply->at += left;
    }
    return got;
}
