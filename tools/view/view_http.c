/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_http.c - an OTLP/HTTP receiver on loopback, on libmicrohttpd.
 *
 * Runs on otel-view's only thread; owns the daemon and the bodies being received.
 * Source: opentelemetry-proto docs/specification.md "OTLP/HTTP". */
#include "tools/view/view_http.h"

#include "common/wire.h"
#include "tools/view/view_inflate.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    BODY_MAX = 64 << 20, /* one request, also after decompression: OTLP's limit */
    CONNECTIONS_MAX = 256,
    CONNECTION_TIMEOUT_S = 120, /* exporters keep connections between two batches */
    WHY_BYTES = 200
};

#define OTLP_TYPE "application/x-protobuf"

/* google.rpc.Code */
enum { RPC_INVALID_ARGUMENT = 3, RPC_UNAVAILABLE = 14 };

struct request {
    FILE *stream; /* of what has come of the body; NULL: nothing, or all */
    char *body;
    size_t length;
    enum view_encoding encoding;
    bool is_answered;
    unsigned refused; /* the status to answer once the rest of the body has passed by; or 0 */
};

/* ---- answers -------------------------------------------------------------------------- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              const void *body, size_t length)
{
    /* libmicrohttpd copies with MUST_COPY; its parameter lacks the const. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(length, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);
    if (response == NULL)
        return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_POST);
    const enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
                                   const char *text)
{
    return answer(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* A google.rpc.Status: code = 1, message = 2. */
static enum MHD_Result answer_status(struct MHD_Connection *connection, unsigned status,
                                     const char *why)
{
    uint8_t bytes[WHY_BYTES + 16];
    const bool is_ours = status >= 500;
    uint8_t *end =
        oteli_put_varint_field(bytes, 1, is_ours ? RPC_UNAVAILABLE : RPC_INVALID_ARGUMENT);
    end = oteli_put_bytes_field(end, 2, why, strnlen(why, WHY_BYTES));
    return answer(connection, status, OTLP_TYPE, bytes, (size_t)(end - bytes));
}

/* ---- a request's head ----------------------------------------------------------------- */

static const char *header(struct MHD_Connection *connection, const char *name)
{
    const char *value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
    return value != NULL ? value : "";
}

/* Without parameters such as "; charset=utf-8", in any case. */
static bool is_type(const char *value, const char *type)
{
    const size_t length = strcspn(value, "; \t");
    return length == strlen(type) && strncasecmp(value, type, length) == 0;
}

static bool read_encoding(const char *value, enum view_encoding *encoding)
{
    *encoding = VIEW_IDENTITY;
    if (strcasecmp(value, "gzip") == 0)
        *encoding = VIEW_GZIP;
    else if (strcasecmp(value, "zstd") == 0)
        *encoding = VIEW_ZSTD;
    else
        return *value == '\0' || strcasecmp(value, "identity") == 0;
    return true;
}

/* Whether the body is worth receiving; otherwise `*result` has the answer's. */
static bool accept_head(struct MHD_Connection *connection, struct request *request, const char *url,
                        const char *method, enum MHD_Result *result)
{
    const char *type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *encoding = header(connection, MHD_HTTP_HEADER_CONTENT_ENCODING);
    if (strcmp(url, "/v1/traces") != 0)
        *result = answer_text(connection, MHD_HTTP_NOT_FOUND,
                              "otel-view takes traces only: POST /v1/traces\n");
    else if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        *result = answer_text(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "otel-view takes traces by POST only\n");
    else if (is_type(type, "application/json"))
        *result = answer_text(connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "otel-view does not read OTLP/JSON: set "
                              "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf in the sender\n");
    else if (!is_type(type, OTLP_TYPE))
        *result = answer_text(connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "the Content-Type has to be " OTLP_TYPE "\n");
    else if (!read_encoding(encoding, &request->encoding))
        *result = answer_text(connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "the Content-Encoding has to be gzip, zstd or identity\n");
    else if (strtoull(header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH), NULL, 10) > BODY_MAX)
        *result = answer_text(connection, MHD_HTTP_CONTENT_TOO_LARGE,
                              "a request may have 64 MiB at most\n");
    else
        return true;
    return false;
}

/* ---- a request's body ----------------------------------------------------------------- */

/* Returns the status to refuse the request with, or 0. */
static unsigned append(struct request *request, const char *data, size_t length)
{
    if (request->stream == NULL)
        request->stream = open_memstream(&request->body, &request->length);
    if (request->stream == NULL)
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    if ((size_t)ftell(request->stream) + length > BODY_MAX)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    return fwrite(data, 1, length, request->stream) == length ? 0 : MHD_HTTP_SERVICE_UNAVAILABLE;
}

/* All of the body has come. */
static void close_body(struct request *request)
{
    if (request->stream != NULL && fclose(request->stream) != 0)
        request->refused = MHD_HTTP_SERVICE_UNAVAILABLE;
    request->stream = NULL;
}

static enum MHD_Result answer_refusal(struct MHD_Connection *connection, unsigned status)
{
    if (status == MHD_HTTP_CONTENT_TOO_LARGE)
        return answer_text(connection, status, "a request may have 64 MiB at most\n");
    return answer_status(connection, status, "no memory for this request now");
}

static enum MHD_Result take_plain(struct view_http *http, struct MHD_Connection *connection,
                                  const uint8_t *body, size_t length)
{
    char why[WHY_BYTES] = "";
    const unsigned status = http->take(http->state, body, length, why, sizeof why);
    if (status != MHD_HTTP_OK)
        return answer_status(connection, status, why);
    return answer(connection, MHD_HTTP_OK, OTLP_TYPE, "", 0); /* no partial_success: no bytes */
}

static enum MHD_Result take_compressed(struct view_http *http, struct MHD_Connection *connection,
                                       const struct request *request)
{
    uint8_t *body;
    size_t length;
    enum MHD_Result result;
    switch (view_inflate(request->encoding, (const uint8_t *)request->body, request->length,
                         BODY_MAX, &body, &length)) {
    case VIEW_INFLATE_DONE:
        result = take_plain(http, connection, body, length);
        free(body);
        return result;
    case VIEW_INFLATE_TOO_LARGE:
        return answer_text(connection, MHD_HTTP_CONTENT_TOO_LARGE,
                           "a request may have 64 MiB at most, also when decompressed\n");
    case VIEW_INFLATE_BAD:
        return answer_status(connection, MHD_HTTP_BAD_REQUEST,
                             "the body is not whole, or not of its Content-Encoding");
    case VIEW_INFLATE_ABSENT:
        return answer_text(connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                           "this otel-view was built without that Content-Encoding\n");
    default:
        return answer_status(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory");
    }
}

/* Called for the head, for each piece of the body, and at its end. */
static enum MHD_Result on_request(void *state, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_length, void **slot)
{
    struct view_http *http = state;
    struct request *request = *slot;
    enum MHD_Result result;
    (void)version;
    if (request == NULL) {
        request = calloc(1, sizeof *request);
        if (request == NULL)
            return MHD_NO;
        *slot = request;
        http->in_flight++;
        if (accept_head(connection, request, url, method, &result))
            return MHD_YES;
        request->is_answered = true;
        return result;
    }
    if (*data_length != 0) {
        const size_t length = *data_length;
        *data_length = 0;
        if (!request->is_answered && request->refused == 0)
            request->refused = append(request, data, length);
        return MHD_YES;
    }
    if (request->is_answered)
        return MHD_YES;
    request->is_answered = true;
    close_body(request);
    if (request->refused != 0)
        return answer_refusal(connection, request->refused);
    if (request->encoding != VIEW_IDENTITY)
        return take_compressed(http, connection, request);
    const char *body = request->body != NULL ? request->body : "";
    return take_plain(http, connection, (const uint8_t *)body, request->length);
}

static void on_completed(void *state, struct MHD_Connection *connection, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct view_http *http = state;
    struct request *request = *slot;
    (void)connection;
    (void)code;
    if (request == NULL)
        return;
    http->in_flight--;
    close_body(request);
    free(request->body);
    free(request);
    *slot = NULL;
}

/* ---- the daemon ----------------------------------------------------------------------- */

bool view_http_start(struct view_http *http, uint16_t port, view_take *take, void *state)
{
    *http = (struct view_http){.take = take, .state = state};
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    errno = 0;
    http->daemon = MHD_start_daemon(
        MHD_USE_EPOLL, port, NULL, NULL, on_request, http, MHD_OPTION_SOCK_ADDR,
        (struct sockaddr *)&address, MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
    if (http->daemon == NULL)
        return false;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_BIND_PORT);
    http->port = info != NULL ? info->port : port;
    return true;
}

void view_http_stop(struct view_http *http)
{
    if (http->daemon != NULL)
        MHD_stop_daemon(http->daemon);
    http->daemon = NULL;
}

int view_http_fd(const struct view_http *http)
{
    return MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int view_http_timeout_ms(const struct view_http *http, int limit_ms)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms;
    if (MHD_get_timeout(http->daemon, &timeout_ms) != MHD_YES ||
        timeout_ms > (MHD_UNSIGNED_LONG_LONG)limit_ms)
        return limit_ms;
    return (int)timeout_ms;
}

void view_http_run(struct view_http *http)
{
    (void)MHD_run(http->daemon);
}
