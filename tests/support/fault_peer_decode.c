/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_decode.c - a request as a strict receiver takes it: compression and
 * frame undone, every byte checked, its spans counted. The contracts are in fault_peer_inside.h. */
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "tests/support/fault_peer_inside.h"
#include "tests/support/json_check.h"
#include "tests/support/strict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#ifdef FAULT_PEER_ZSTD
#include <zstd.h>
#endif

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest pb_request;
typedef Opentelemetry__Proto__Trace__V1__ResourceSpans pb_resource_spans;
typedef Opentelemetry__Proto__Trace__V1__ScopeSpans pb_scope_spans;

enum { PIECE = 64 * 1024, GZIP_WINDOW = 15 + 16 };

/* ---- compression ------------------------------------------------------------------------ */

static bool gunzip(const uint8_t *bytes, size_t length, struct fault_bytes *out)
{
    uint8_t piece[PIECE];
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (unsigned)length};
    fault_must(inflateInit2(&stream, GZIP_WINDOW) == Z_OK);
    int result = Z_OK;
    while (result == Z_OK) {
        stream.next_out = piece;
        stream.avail_out = sizeof piece;
        result = inflate(&stream, Z_NO_FLUSH);
        fault_append(out, piece, sizeof piece - stream.avail_out);
    }
    inflateEnd(&stream);
    return result == Z_STREAM_END && stream.avail_in == 0;
}

#ifdef FAULT_PEER_ZSTD
static bool unzstd(const uint8_t *bytes, size_t length, struct fault_bytes *out)
{
    uint8_t piece[PIECE];
    ZSTD_DStream *stream = ZSTD_createDStream();
    ZSTD_inBuffer in = {bytes, length, 0};
    fault_must(stream != NULL);
    size_t left = 1;
    while (left != 0 && !ZSTD_isError(left)) {
        ZSTD_outBuffer to = {piece, sizeof piece, 0};
        const size_t before = in.pos;
        left = ZSTD_decompressStream(stream, &to, &in);
        fault_append(out, piece, to.pos);
        if (in.pos == before && to.pos == 0)
            break;
    }
    ZSTD_freeDStream(stream);
    return left == 0 && in.pos == in.size;
}
#endif

static bool undo(const char *encoding, const uint8_t *bytes, size_t length, struct fault_bytes *out)
{
    fault_append(out, "", 0);
    if (strcmp(encoding, "gzip") == 0)
        return gunzip(bytes, length, out);
#ifdef FAULT_PEER_ZSTD
    if (strcmp(encoding, "zstd") == 0)
        return unzstd(bytes, length, out);
#endif
    fault_append(out, bytes, length);
    return strcmp(encoding, "identity") == 0;
}

/* ---- spans ------------------------------------------------------------------------------ */

static const char *add_scope_spans(const pb_scope_spans *scope, struct fault_bytes *ids)
{
    for (size_t i = 0; i < scope->n_spans; i++) {
        static const uint8_t none[16];
        const Opentelemetry__Proto__Trace__V1__Span *span = scope->spans[i];
        if (span->trace_id.len != 16 || memcmp(span->trace_id.data, none, 16) == 0)
            return "a trace id that is none";
        if (span->span_id.len != 8 || memcmp(span->span_id.data, none, 8) == 0)
            return "a span id that is none";
        if (span->parent_span_id.len != 0 && span->parent_span_id.len != 8)
            return "a parent's id that is none";
        if (span->end_time_unix_nano < span->start_time_unix_nano)
            return "a span that ends before it starts";
        fault_append(ids, span->span_id.data, 8);
    }
    return NULL;
}

static const char *add_protobuf(const struct fault_peer_request *request, struct fault_bytes *ids)
{
    const char *problem = strict_problem(
        &opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor,
        request->plain, request->plain_length);
    if (problem != NULL)
        return problem;
    pb_request *unpacked =
        opentelemetry__proto__collector__trace__v1__export_trace_service_request__unpack(
            NULL, request->plain_length, request->plain);
    if (unpacked == NULL)
        return "no ExportTraceServiceRequest";
    for (size_t i = 0; i < unpacked->n_resource_spans && problem == NULL; i++) {
        const pb_resource_spans *resource = unpacked->resource_spans[i];
        for (size_t k = 0; k < resource->n_scope_spans && problem == NULL; k++)
            problem = add_scope_spans(resource->scope_spans[k], ids);
    }
    opentelemetry__proto__collector__trace__v1__export_trace_service_request__free_unpacked(
        unpacked, NULL);
    return problem;
}

static bool read_id(const char *digits, const char *end, uint8_t id[8])
{
    if (end - digits < 17 || digits[16] != '"')
        return false;
    for (size_t i = 0; i < 8; i++) {
        char pair[3] = {digits[2 * i], digits[2 * i + 1], '\0'};
        char *rest;
        id[i] = (uint8_t)strtoul(pair, &rest, 16);
        if (*rest != '\0')
            return false;
    }
    return true;
}

/* Behind the string that begins here, with its quotes. */
static const char *behind_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

/* A span's id is a member of an object in an object in an object in the outermost one, with arrays
 * between them; a link's is deeper. */
static const char *add_json(const struct fault_peer_request *request, struct fault_bytes *ids)
{
    static const char key[] = "\"spanId\":\"";
    enum { KEY = sizeof key - 1, DEPTH_OF_SPAN = 7 };
    const char *at = (const char *)request->plain;
    const char *end = at + request->plain_length;
    int depth = 0;
    if (!json_is_valid(at, request->plain_length))
        return "the body is no JSON";
    while (at < end) {
        uint8_t id[8];
        if (*at != '"') {
            depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
            at++;
            continue;
        }
        const bool is_id = depth == DEPTH_OF_SPAN && end - at > KEY && memcmp(at, key, KEY) == 0;
        if (is_id && !read_id(at + KEY, end, id))
            return "a span id that is none";
        if (is_id)
            fault_append(ids, id, 8);
        at = behind_string(at);
    }
    return NULL;
}

static int compare_ids(const void *left, const void *right)
{
    return memcmp(left, right, 8);
}

static const char *look_for_twins(const struct fault_bytes *ids)
{
    const char *problem = NULL;
    uint8_t *sorted = malloc(ids->length + 1);
    fault_must(sorted != NULL);
    if (ids->length != 0)
        memcpy(sorted, ids->data, ids->length);
    qsort(sorted, ids->length / 8, 8, compare_ids);
    for (size_t i = 8; i < ids->length && problem == NULL; i += 8)
        if (memcmp(sorted + i - 8, sorted + i, 8) == 0)
            problem = "a span comes twice in one request";
    free(sorted);
    return problem;
}

/* ---- the request ------------------------------------------------------------------------ */

static const char *take_frame(const struct fault_peer_request *request, const uint8_t **message,
                              size_t *length, bool *is_compressed)
{
    const uint8_t *body = request->body;
    if (request->body_length < 5 || body[0] > 1)
        return "the body is no frame of gRPC";
    *length = (size_t)body[1] << 24 | (size_t)body[2] << 16 | (size_t)body[3] << 8 | body[4];
    *message = body + 5;
    *is_compressed = body[0] == 1;
    return *length == request->body_length - 5 ? NULL : "the frame has another length";
}

static const char *uncover(struct fault_peer_request *request)
{
    const uint8_t *message = request->body;
    size_t length = request->body_length;
    bool is_compressed = true;
    struct fault_bytes plain = {0};
    const char *problem = NULL;
    if (request->format == FAULT_GRPC)
        problem = take_frame(request, &message, &length, &is_compressed);
    if (problem != NULL)
        return problem;
    if (!undo(is_compressed ? request->encoding : "identity", message, length, &plain)) {
        fault_clear(&plain);
        return "the body is not compressed as it says";
    }
    request->plain = plain.data;
    request->plain_length = plain.length;
    return NULL;
}

void fault_uncover(struct fault_peer_request *request)
{
    request->problem = uncover(request);
}

void fault_examine(struct fault_peer_request *request, struct fault_bytes *ids)
{
    if (request->problem == NULL && request->format == FAULT_JSON)
        request->problem = add_json(request, ids);
    else if (request->problem == NULL && request->format != FAULT_OTHER)
        request->problem = add_protobuf(request, ids);
    if (request->problem == NULL)
        request->problem = look_for_twins(ids);
    request->spans = ids->length / 8;
}
