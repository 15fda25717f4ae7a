/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_http.c - an OTLP/HTTP receiver on loopback, on libmicrohttpd.
 *
 * Runs on otel-view's only thread; owns the daemon and the bodies being received.
 * Source: opentelemetry-proto docs/specification.md "OTLP/HTTP". */
#include "tools/view/view_http.h"

#include "common/wire.h"
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    CONNECTIONS_MAX = 256,
    CONNECTION_TIMEOUT_S = 120 /* exporters keep connections between two batches */
};

#define OTLP_TYPE "application/x-protobuf"

/* google.rpc.Code */
enum { RPC_INVALID_ARGUMENT = 3, RPC_UNAVAILABLE = 14 };

struct request {
    struct view_body body;
    enum view_encoding encoding;
    bool is_answered;
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

/* A sender of OTLP gets a google.rpc.Status: code = 1, message = 2. Any other gets a text. */
static enum MHD_Result refuse(struct MHD_Connection *connection, struct view_refusal refusal)
{
    uint8_t bytes[VIEW_WHY_BYTES + 16];
    const unsigned status = refusal.status;
    if (status == MHD_HTTP_NOT_FOUND || status == MHD_HTTP_METHOD_NOT_ALLOWED ||
        status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE) {
        const int length = snprintf((char *)bytes, sizeof bytes, "%s\n", refusal.why);
        return answer(connection, status, "text/plain; charset=utf-8", bytes, (size_t)length);
    }
    uint8_t *end =
        oteli_put_varint_field(bytes, 1, status >= 500 ? RPC_UNAVAILABLE : RPC_INVALID_ARGUMENT);
    end = oteli_put_bytes_field(end, 2, refusal.why, strnlen(refusal.why, VIEW_WHY_BYTES));
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

/* Whether the body is worth receiving. */
static struct view_refusal check_head(struct MHD_Connection *connection, const char *url,
                                      const char *method, enum view_encoding *encoding)
{
    const char *type = header(connection, MHD_HTTP_HEADER_CONTENT_TYPE);
    if (strcmp(url, "/v1/traces") != 0)
        return (struct view_refusal){MHD_HTTP_NOT_FOUND,
                                     "otel-view takes traces only: POST /v1/traces"};
    if (strcmp(method, MHD_HTTP_METHOD_POST) != 0)
        return (struct view_refusal){MHD_HTTP_METHOD_NOT_ALLOWED,
                                     "otel-view takes traces by POST only"};
    if (is_type(type, "application/json"))
        return (struct view_refusal){MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                     "otel-view does not read OTLP/JSON: set "
                                     "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf in the sender"};
    if (!is_type(type, OTLP_TYPE))
        return (struct view_refusal){MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                     "the Content-Type has to be " OTLP_TYPE};
    const char *name = header(connection, MHD_HTTP_HEADER_CONTENT_ENCODING);
    if (!view_encoding_of(name, strlen(name), encoding))
        return (struct view_refusal){MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                                     "the Content-Encoding has to be gzip, zstd or identity"};
    return (struct view_refusal){0};
}

/* ---- a request's body ----------------------------------------------------------------- */

static enum MHD_Result take_in(struct view_http *http, struct MHD_Connection *connection,
                               struct request *request)
{
    char why[VIEW_WHY_BYTES] = "";
    struct view_body *body = &request->body;
    view_body_close(body);
    struct view_refusal refusal = body->refusal;
    if (refusal.status == 0)
        refusal = view_body_give(&http->taker, request->encoding, body->bytes, body->length, why);
    if (refusal.status != 0)
        return refuse(connection, refusal);
    return answer(connection, MHD_HTTP_OK, OTLP_TYPE, "", 0); /* no partial_success: no bytes */
}

/* Called for the head, for each piece of the body, and at its end. */
static enum MHD_Result on_request(void *state, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data,
                                  size_t *data_length, void **slot)
{
    struct view_http *http = state;
    struct request *request = *slot;
    (void)version;
    if (request == NULL) {
        request = calloc(1, sizeof *request);
        if (request == NULL)
            return MHD_NO;
        *slot = request;
        http->in_flight++;
        const struct view_refusal refusal = check_head(connection, url, method, &request->encoding);
        request->is_answered = refusal.status != 0;
        return request->is_answered ? refuse(connection, refusal) : MHD_YES;
    }
    if (*data_length != 0) {
        const size_t length = *data_length;
        *data_length = 0;
        if (!request->is_answered)
            view_body_add(&request->body, data, length);
        return MHD_YES;
    }
    if (request->is_answered)
        return MHD_YES;
    request->is_answered = true;
    return take_in(http, connection, request);
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
    view_body_fini(&request->body);
    free(request);
    *slot = NULL;
}

/* ---- the daemon ----------------------------------------------------------------------- */

bool view_http_start(struct view_http *http, uint16_t port, struct view_taker taker)
{
    *http = (struct view_http){.taker = taker};
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
