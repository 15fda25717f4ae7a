/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_grpc.c - an OTLP/gRPC receiver on loopback, on libnghttp2.
 *
 * Runs on otel-view's only thread; owns the connections, and for each open stream the call and what
 * has come of its message.
 * Source: grpc/doc/PROTOCOL-HTTP2.md; opentelemetry-proto docs/specification.md "OTLP/gRPC". */
#include "tools/view/view_grpc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    CONNECTIONS_MAX = 256,
    STREAMS_MAX = 100,
    WINDOW_BYTES = 1 << 20,
    PREFIX_BYTES = 5,
    LINGER_MS = 200 /* how long clients may take at the end to read the last answers */
};

#define EXPORT_PATH "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
#define GRPC_TYPE "application/grpc"

/* google.rpc.Code */
enum {
    RPC_INVALID_ARGUMENT = 3,
    RPC_RESOURCE_EXHAUSTED = 8,
    RPC_UNIMPLEMENTED = 12,
    RPC_UNAVAILABLE = 14
};

struct view_grpc_connection {
    struct view_grpc *grpc;
    nghttp2_session *session;
    int fd;
    struct call *calls; /* of streams that are open */
    struct view_grpc_connection *next;
};

/* A call, from the first header of its stream until the stream is closed. */
struct call {
    struct view_body body;
    enum view_encoding encoding;
    bool is_export;
    bool is_grpc;
    bool is_encoding_known;
    struct call *next;
};

static bool is_text(const uint8_t *bytes, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(bytes, text, length) == 0;
}

/* ---- answers -------------------------------------------------------------------------- */

static nghttp2_nv field(const char *name, const char *value)
{
    /* libnghttp2 copies both; its members lack the const. */
    return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)(uintptr_t)value,
                        .valuelen = strlen(value)};
}

/* An ExportTraceServiceResponse without fields: not compressed, of no bytes. */
static ssize_t send_message(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room,
                            uint32_t *flags, nghttp2_data_source *source, void *state)
{
    (void)source;
    (void)state;
    if (room < PREFIX_BYTES)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    memset(out, 0, PREFIX_BYTES);
    const nghttp2_nv trailer = field("grpc-status", "0");
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (nghttp2_submit_trailer(session, stream, &trailer, 1) != 0)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    return PREFIX_BYTES;
}

static int accept_call(nghttp2_session *session, int32_t stream)
{
    const nghttp2_nv head[] = {field(":status", "200"), field("content-type", GRPC_TYPE)};
    const nghttp2_data_provider message = {.read_callback = send_message};
    return nghttp2_submit_response(session, stream, head, 2, &message);
}

/* All reasons are ASCII without a percent sign, so that nothing of them has to be encoded. */
static int refuse_call(nghttp2_session *session, int32_t stream, struct view_refusal refusal)
{
    const int code = refusal.status == 413   ? RPC_RESOURCE_EXHAUSTED
                     : refusal.status == 503 ? RPC_UNAVAILABLE
                     : refusal.status == 400 ? RPC_INVALID_ARGUMENT
                                             : RPC_UNIMPLEMENTED;
    char number[12];
    snprintf(number, sizeof number, "%d", code);
    const nghttp2_nv head[] = {field(":status", "200"), field("content-type", GRPC_TYPE),
                               field("grpc-status", number), field("grpc-message", refusal.why)};
    return nghttp2_submit_response(session, stream, head, 4, NULL);
}

/* ---- calls ---------------------------------------------------------------------------- */

/* What is wrong with the call, from its head and the prefix of its message. */
static struct view_refusal check_call(const struct call *call)
{
    const struct view_body *body = &call->body;
    if (!call->is_export)
        return (struct view_refusal){404, "otel-view takes traces only: TraceService.Export"};
    if (body->refusal.status != 0)
        return body->refusal;
    if (body->length < PREFIX_BYTES)
        return (struct view_refusal){400, "the call has no message"};
    uint32_t length;
    memcpy(&length, body->bytes + 1, sizeof length);
    if (ntohl(length) != body->length - PREFIX_BYTES)
        return (struct view_refusal){400, "the call is not one whole message"};
    if (body->bytes[0] != 0 && (!call->is_encoding_known || call->encoding == VIEW_IDENTITY))
        return (struct view_refusal){415, "the grpc-encoding has to be gzip, zstd or identity"};
    return (struct view_refusal){0};
}

static int answer_call(struct view_grpc *grpc, nghttp2_session *session, int32_t stream,
                       struct call *call)
{
    char why[VIEW_WHY_BYTES] = "";
    struct view_body *body = &call->body;
    if (!call->is_grpc) {
        const nghttp2_nv status = field(":status", "415");
        return nghttp2_submit_response(session, stream, &status, 1, NULL);
    }
    view_body_close(body);
    struct view_refusal refusal = check_call(call);
    if (refusal.status == 0)
        refusal = view_body_give(&grpc->taker, body->bytes[0] != 0 ? call->encoding : VIEW_IDENTITY,
                                 body->bytes + PREFIX_BYTES, body->length - PREFIX_BYTES, why);
    return refusal.status != 0 ? refuse_call(session, stream, refusal)
                               : accept_call(session, stream);
}

/* ---- what libnghttp2 calls ------------------------------------------------------------ */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *state)
{
    struct view_grpc_connection *connection = state;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct call *call = malloc(sizeof *call);
    if (call == NULL)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    *call = (struct call){.is_encoding_known = true, .next = connection->calls};
    connection->calls = call;
    connection->grpc->in_flight++;
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_length, const uint8_t *value, size_t length, uint8_t flags,
                     void *state)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags;
    (void)state;
    if (call == NULL)
        return 0;
    if (is_text(name, name_length, ":path"))
        call->is_export = is_text(value, length, EXPORT_PATH);
    else if (is_text(name, name_length, "content-type"))
        call->is_grpc =
            length >= strlen(GRPC_TYPE) && memcmp(value, GRPC_TYPE, strlen(GRPC_TYPE)) == 0;
    else if (is_text(name, name_length, "grpc-encoding"))
        call->is_encoding_known = view_encoding_of((const char *)value, length, &call->encoding);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t length, void *state)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags;
    (void)state;
    if (call != NULL)
        view_body_add(&call->body, data, length);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *state)
{
    const struct view_grpc_connection *connection = state;
    if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0)
        return 0;
    struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    return call != NULL ? answer_call(connection->grpc, session, frame->hd.stream_id, call) : 0;
}

static void end_call(struct view_grpc_connection *connection, struct call *call)
{
    struct call **link = &connection->calls;
    while (*link != call)
        link = &(*link)->next;
    *link = call->next;
    connection->grpc->in_flight--;
    view_body_fini(&call->body);
    free(call);
}

static int on_stream_close(nghttp2_session *session, int32_t stream, uint32_t error, void *state)
{
    struct call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)error;
    if (call != NULL)
        end_call(state, call);
    return 0;
}

static ssize_t receive(nghttp2_session *session, uint8_t *out, size_t room, int flags, void *state)
{
    const struct view_grpc_connection *connection = state;
    (void)session;
    (void)flags;
    const ssize_t length = recv(connection->fd, out, room, MSG_DONTWAIT);
    if (length > 0)
        return length;
    return length == 0                         ? NGHTTP2_ERR_EOF
           : errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK
                                               : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static ssize_t transmit(nghttp2_session *session, const uint8_t *bytes, size_t length, int flags,
                        void *state)
{
    const struct view_grpc_connection *connection = state;
    (void)session;
    (void)flags;
    const ssize_t sent = send(connection->fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK
                                             : NGHTTP2_ERR_CALLBACK_FAILURE;
}

/* ---- connections ---------------------------------------------------------------------- */

/* Some versions close a connection on which many calls are reset, and libcurl 7.88 resets each when
 * it is over. Older ones have no such limit. */
static int new_session(nghttp2_session **session, const nghttp2_session_callbacks *calls,
                       struct view_grpc_connection *connection)
{
    nghttp2_option *option;
    const int error = nghttp2_option_new(&option);
    if (error != 0)
        return error;
#ifdef OTEL_VIEW_HAS_RESET_LIMIT
    nghttp2_option_set_stream_reset_rate_limit(option, UINT32_MAX, UINT32_MAX);
#endif
    const int made = nghttp2_session_server_new2(session, calls, connection, option);
    nghttp2_option_del(option);
    return made;
}

static nghttp2_session *open_session(struct view_grpc_connection *connection)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES}};
    nghttp2_session_callbacks *calls;
    nghttp2_session *session = NULL;
    if (nghttp2_session_callbacks_new(&calls) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_stream_close);
    nghttp2_session_callbacks_set_recv_callback(calls, receive);
    nghttp2_session_callbacks_set_send_callback(calls, transmit);
    const int error = new_session(&session, calls, connection);
    nghttp2_session_callbacks_del(calls);
    if (error != 0)
        return NULL;
    if (nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
        nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, WINDOW_BYTES) == 0)
        return session;
    nghttp2_session_del(session);
    return NULL;
}

static void close_connection(struct view_grpc_connection *connection)
{
    struct view_grpc *grpc = connection->grpc;
    struct view_grpc_connection **link = &grpc->connections;
    while (*link != connection)
        link = &(*link)->next;
    *link = connection->next;
    grpc->connection_count--;
    while (connection->calls != NULL)
        end_call(connection, connection->calls);
    nghttp2_session_del(connection->session);
    close(connection->fd);
    free(connection);
}

/* Something other than HTTP/2 has come. OTLP/HTTP on the wrong port is the likely one. */
static void answer_stranger(const struct view_grpc_connection *connection)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                               "Connection: close\r\n\r\notel-view takes gRPC on this port, and "
                               "http/protobuf on the other one\n";
    fprintf(stderr, "otel-view: refused a request: port %u is for gRPC\n",
            (unsigned)connection->grpc->port);
    (void)!send(connection->fd, text, sizeof text - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(connection->fd, SHUT_WR);
}

static void set_option(int fd, int option, int value)
{
    (void)setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
}

/* All frames that are ready, in one piece and at once. */
static int transmit_all(struct view_grpc_connection *connection)
{
    set_option(connection->fd, TCP_CORK, 1);
    const int error = nghttp2_session_send(connection->session);
    set_option(connection->fd, TCP_CORK, 0);
    return error;
}

static void run_connection(struct view_grpc_connection *connection)
{
    nghttp2_session *session = connection->session;
    int error = nghttp2_session_recv(session);
    if (error == NGHTTP2_ERR_BAD_CLIENT_MAGIC)
        answer_stranger(connection);
    if (error == 0)
        error = transmit_all(connection);
    const bool reads = nghttp2_session_want_read(session) != 0;
    const bool writes = nghttp2_session_want_write(session) != 0;
    struct epoll_event event = {.events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u),
                                .data.ptr = connection};
    if (error != 0 || event.events == 0 ||
        epoll_ctl(connection->grpc->epoll, EPOLL_CTL_MOD, connection->fd, &event) != 0)
        close_connection(connection);
}

static void accept_connection(struct view_grpc *grpc)
{
    const int fd = accept4(grpc->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct view_grpc_connection *connection =
        grpc->connection_count < CONNECTIONS_MAX ? malloc(sizeof *connection) : NULL;
    if (connection == NULL) {
        close(fd);
        return;
    }
    *connection = (struct view_grpc_connection){.grpc = grpc, .fd = fd, .next = grpc->connections};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    set_option(fd, TCP_NODELAY, 1);
    connection->session = open_session(connection);
    grpc->connections = connection;
    grpc->connection_count++;
    if (connection->session == NULL || epoll_ctl(grpc->epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        close_connection(connection);
}

/* ---- the receiver --------------------------------------------------------------------- */

static bool listen_on(struct view_grpc *grpc, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    struct sockaddr *any = (struct sockaddr *)&address;
    const int on = 1;
    grpc->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (grpc->listener < 0 ||
        setsockopt(grpc->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
        bind(grpc->listener, any, size) != 0 || listen(grpc->listener, SOMAXCONN) != 0 ||
        getsockname(grpc->listener, any, &size) != 0)
        return false;
    grpc->port = ntohs(address.sin_port);
    return true;
}

bool view_grpc_start(struct view_grpc *grpc, uint16_t port, struct view_taker taker)
{
    *grpc =
        (struct view_grpc){.taker = taker, .listener = -1, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct epoll_event event = {.events = EPOLLIN};
    if (grpc->epoll >= 0 && listen_on(grpc, port) &&
        epoll_ctl(grpc->epoll, EPOLL_CTL_ADD, grpc->listener, &event) == 0)
        return true;
    const int error = errno;
    view_grpc_stop(grpc);
    errno = error;
    return false;
}

/* To close a connection with bytes that have not been read resets it, and takes answers that the
 * client has not read away from it. So clients close first, if they do it soon. */
static void linger(struct view_grpc *grpc)
{
    char scrap[4096];
    struct epoll_event event;
    for (struct view_grpc_connection *at = grpc->connections; at != NULL; at = at->next) {
        event = (struct epoll_event){.events = EPOLLIN, .data.ptr = at};
        (void)nghttp2_session_terminate_session(at->session, NGHTTP2_NO_ERROR);
        (void)transmit_all(at);
        (void)shutdown(at->fd, SHUT_WR);
        (void)epoll_ctl(grpc->epoll, EPOLL_CTL_MOD, at->fd, &event);
    }
    while (grpc->connections != NULL && epoll_wait(grpc->epoll, &event, 1, LINGER_MS) > 0) {
        struct view_grpc_connection *connection = event.data.ptr;
        if (recv(connection->fd, scrap, sizeof scrap, MSG_DONTWAIT) <= 0)
            close_connection(connection);
    }
}

void view_grpc_stop(struct view_grpc *grpc)
{
    if (grpc->listener >= 0)
        close(grpc->listener);
    linger(grpc);
    while (grpc->connections != NULL)
        close_connection(grpc->connections);
    if (grpc->epoll >= 0)
        close(grpc->epoll);
    grpc->listener = grpc->epoll = -1;
}

void view_grpc_run(struct view_grpc *grpc)
{
    struct epoll_event events[16];
    const int count = epoll_wait(grpc->epoll, events, 16, 0);
    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr == NULL)
            accept_connection(grpc);
        else
            run_connection(events[i].data.ptr);
    }
}
