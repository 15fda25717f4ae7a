/* SPDX-License-Identifier: Apache-2.0 */
/* examples/encode_only.c - an exporter with a socket of its own: the program does all I/O, and the
 * library makes the bytes of requests and says what answers mean.
 *
 *     cc encode_only.c -o encode_only $(pkg-config --cflags --libs otel-otlp)
 *     ./encode_only 127.0.0.1 4318         the address of a collector
 *     ./encode_only --demo                 answers itself
 *
 * For programs that have an HTTP client, a message queue or an event loop which telemetry has to
 * go through as well. Here it is one socket that never blocks: what it waits for, an epoll
 * descriptor says, which the SDK hands on to the program's loop (otel_poll_fd). For brevity there
 * is one attempt for each request, and an answer has a Content-Length or no body. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strcasestr, accept4 */
#endif
#include <otel/otel.h>
#include <otel/otlp_encode.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 16 * 1024, HEAD_MAX = 1024, SPANS = 20 };

/* ---- the exporter
 * ------------------------------------------------------------------------------ */

struct exporter {
    struct sockaddr_in address;
    otel_otlp_encoder *encoder;
    int epoll;
    int socket; /* -1: not connected */

    size_t first; /* span of the request on its way */
    size_t count; /* spans in it */
    char head[HEAD_MAX];
    size_t head_length;
    otel_slice body;
    size_t sent; /* of both */
    char answer[ANSWER_MAX + 1];
    size_t received;
};

static void watch(struct exporter *exporter, int operation, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = exporter->socket};
    epoll_ctl(exporter->epoll, operation, exporter->socket, &event);
}

static void disconnect(struct exporter *exporter)
{
    if (exporter->socket >= 0)
        close(exporter->socket); /* epoll forgets it by itself */
    exporter->socket = -1;
}

static void connect_to_collector(struct exporter *exporter)
{
    char byte;
    if (exporter->socket >= 0 && recv(exporter->socket, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN)
        return; /* kept from the request before, and the collector has not closed it */
    disconnect(exporter);
    exporter->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(exporter->socket, (const struct sockaddr *)&exporter->address,
                sizeof exporter->address) != 0 &&
        errno != EINPROGRESS)
        disconnect(exporter);
    else
        watch(exporter, EPOLL_CTL_ADD, EPOLLOUT);
}

static void write_head(struct exporter *exporter)
{
    size_t count;
    const otel_otlp_header *headers = otel_otlp_encoder_headers(exporter->encoder, &count);
    int length = snprintf(exporter->head, HEAD_MAX,
                          "POST /v1/traces HTTP/1.1\r\nHost: collector\r\nContent-Length: %zu\r\n",
                          exporter->body.length);
    for (size_t i = 0; i < count; i++)
        length += snprintf(exporter->head + length, HEAD_MAX - (size_t)length, "%s: %s\r\n",
                           headers[i].name, headers[i].value);
    length += snprintf(exporter->head + length, HEAD_MAX - (size_t)length, "\r\n");
    exporter->head_length = (size_t)length;
}

/* Make the next request of the batch and begin to send it. DONE: there is none. */
static otel_export_result begin(struct exporter *exporter, otel_export *call)
{
    const size_t size = otel_batch_size(call->batch);
    exporter->sent = 0;
    exporter->received = 0;
    for (; exporter->first < size; exporter->first += exporter->count) {
        if (otel_otlp_encode(exporter->encoder, call->batch, exporter->first, SIZE_MAX,
                             &exporter->count, &exporter->body) != OTEL_OK) {
            otel_export_drop(call, OTEL_DROP_NO_MEMORY, size - exporter->first);
            return OTEL_EXPORT_DONE;
        }
        if (exporter->body.length != 0) {
            write_head(exporter);
            connect_to_collector(exporter);
            if (exporter->socket >= 0)
                watch(exporter, EPOLL_CTL_MOD, EPOLLOUT);
            return OTEL_EXPORT_PENDING;
        }
        otel_export_drop(call, OTEL_DROP_TOO_LARGE, exporter->count);
    }
    return OTEL_EXPORT_DONE;
}

/* A request has been answered, or never will be: account for its spans, and go on with the next. */
static otel_export_result settle(struct exporter *exporter, otel_export *call, int status,
                                 const char *body, size_t body_length)
{
    otel_otlp_answer answer = {.size = sizeof answer};
    otel_otlp_read_answer(OTEL_OTLP_HTTP_PROTOBUF,
                          OTEL_OTLP_RESPONSE(.http_status = status,
                                             .may_have_arrived = exporter->sent != 0,
                                             .body = {body, body_length}),
                          &answer);
    if (answer.text[0] != '\0')
        fprintf(stderr, "the collector says: %s\n", answer.text);
    if (answer.verdict == OTEL_OTLP_DELIVERED)
        otel_export_reject(call, answer.rejected < exporter->count ? (size_t)answer.rejected
                                                                   : exporter->count);
    else if (answer.verdict != OTEL_OTLP_RETRY)
        otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, exporter->count);
    else
        otel_export_drop(
            call, answer.may_have_arrived ? OTEL_DROP_UNCONFIRMED : OTEL_DROP_RETRY_EXHAUSTED,
            exporter->count);
    exporter->first += exporter->count;
    return begin(exporter, call);
}

static otel_export_result fail(struct exporter *exporter, otel_export *call)
{
    disconnect(exporter);
    return settle(exporter, call, 0, "", 0);
}

/* Send what is left of head and body. False: the connection is lost. */
static bool send_some(struct exporter *exporter)
{
    const size_t whole = exporter->head_length + exporter->body.length;
    while (exporter->sent < whole) {
        const bool in_head = exporter->sent < exporter->head_length;
        const char *from = in_head ? exporter->head + exporter->sent
                                   : exporter->body.data + (exporter->sent - exporter->head_length);
        const size_t left = (in_head ? exporter->head_length : whole) - exporter->sent;
        const ssize_t sent = send(exporter->socket, from, left, MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        exporter->sent += (size_t)sent;
    }
    watch(exporter, EPOLL_CTL_MOD, EPOLLIN);
    return true;
}

/* Whether the answer is there as a whole. */
static bool has_answer(struct exporter *exporter, int *status, const char **body,
                       size_t *body_length)
{
    exporter->answer[exporter->received] = '\0';
    const char *end = strstr(exporter->answer, "\r\n\r\n");
    const char *length = strcasestr(exporter->answer, "\r\nContent-Length:");
    if (end == NULL)
        return false;
    *status = (int)strtol(exporter->answer + strlen("HTTP/1.1 "), NULL, 10);
    *body = end + 4;
    *body_length = length != NULL && length < end ? strtoul(length + 17, NULL, 10) : 0;
    return exporter->received - (size_t)(*body - exporter->answer) >= *body_length;
}

static otel_export_result receive_some(struct exporter *exporter, otel_export *call)
{
    const ssize_t received = recv(exporter->socket, exporter->answer + exporter->received,
                                  ANSWER_MAX - exporter->received, 0);
    int status;
    const char *body;
    size_t body_length;
    if (received < 0 && (errno == EAGAIN || errno == EINTR))
        return OTEL_EXPORT_PENDING;
    if (received <= 0) /* closed, or an answer for which there is no room */
        return fail(exporter, call);
    exporter->received += (size_t)received;
    if (has_answer(exporter, &status, &body, &body_length))
        return settle(exporter, call, status, body, body_length);
    return OTEL_EXPORT_PENDING;
}

static otel_export_result poll_export(void *state, otel_export *call, int timeout_ms, bool abandon)
{
    struct exporter *exporter = state;
    struct epoll_event event;
    if (exporter->socket < 0 || abandon)
        return fail(exporter, call);
    if (epoll_wait(exporter->epoll, &event, 1, timeout_ms) != 1)
        return OTEL_EXPORT_PENDING;
    if (event.events & EPOLLOUT)
        return send_some(exporter) ? OTEL_EXPORT_PENDING : fail(exporter, call);
    return receive_some(exporter, call);
}

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct exporter *exporter = state;
    exporter->first = 0;
    return begin(exporter, call);
}

static int descriptor(void *state, int *timeout_ms)
{
    const struct exporter *exporter = state;
    *timeout_ms = exporter->socket >= 0 ? -1 : 0;
    return exporter->epoll;
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Of the demonstration: a collector that is content with everything, in this very loop. */
static void answer_like_a_collector(int listener, int *client)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    char request[64 * 1024];
    if (*client < 0)
        *client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    else if (recv(*client, request, sizeof request, 0) > 0)
        (void)!send(*client, ok, sizeof ok - 1, MSG_NOSIGNAL);
}

static void run_until_delivered(int listener)
{
    otel_stats stats = {.size = sizeof stats};
    int client = -1;
    do {
        struct pollfd watched[] = {{.fd = otel_poll_fd(), .events = POLLIN},
                                   {.fd = client >= 0 ? client : listener, .events = POLLIN}};
        poll(watched, 2, 1000);
        if (watched[0].revents != 0)
            otel_poll(0);
        if (watched[1].revents != 0)
            answer_like_a_collector(listener, &client);
        otel_stats_read(0, &stats);
    } while (stats.queued != 0);
    printf("delivered %d of %d spans\n", (int)stats.delivered, (int)stats.started);
    if (client >= 0)
        close(client);
}

static int listen_on(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(fd, (const struct sockaddr *)address, length) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &length) != 0)
        exit(1);
    return fd;
}

int main(int argc, char **argv)
{
    struct exporter exporter = {.socket = -1, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    exporter.address = (struct sockaddr_in){.sin_family = AF_INET};
    int listener = -1;
    if (argc == 3 && inet_pton(AF_INET, argv[1], &exporter.address.sin_addr) == 1) {
        exporter.address.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
    } else {
        exporter.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        listener = listen_on(&exporter.address);
    }
    const otel_otlp_options *options = OTEL_OTLP_OPTIONS(.compression = OTEL_OTLP_COMPRESSION_GZIP);
    if (otel_otlp_encoder_new(options, &exporter.encoder) != OTEL_OK)
        return 1;
    const otel_exporter of_ours =
        OTEL_EXPORTER(.name = "encode_only", .state = &exporter, .export_batch = export_batch,
                      .poll = poll_export, .descriptor = descriptor);
    const otel_sdk_options *sdk =
        OTEL_SDK_OPTIONS(.service_name = "encode-only", .threadless = true,
                         .bsp_schedule_delay = 10, .exporters = &of_ours, .exporter_count = 1);
    if (otel_start_with(sdk) != OTEL_OK)
        return 1;

    otel_tracer *tracer = otel_tracer_get("example.encode_only", "1.0");
    for (int i = 0; i < SPANS; i++) {
        OTEL_SCOPED(span, tracer, "tick");
        otel_span_set_int(span, "tick.number", i);
    }
    run_until_delivered(listener);

    const otel_status status = otel_shutdown(1000);
    disconnect(&exporter);
    close(exporter.epoll);
    otel_otlp_encoder_free(exporter.encoder);
    return status == OTEL_OK ? 0 : 1;
}
