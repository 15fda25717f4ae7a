/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/http_sink.c - one thread, poll, and a small state for each connection:
 * collect a head, collect its body, answer, write what is queued. The thread owns the
 * connections; one lock guards what the test may ask for. */
#include "tests/support/http_sink.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, PIECE = 64 * 1024, WAIT_S = 60 };

struct buffer {
    uint8_t *bytes;
    size_t length;
    size_t room;
};

struct connection {
    int fd; /* -1: free place */
    size_t number;
    struct buffer in;
    size_t head_length; /* 0: not whole yet */
    size_t body_length;
    struct buffer out;
    size_t out_at;
    struct buffer endless; /* what is queued again whenever all is written; empty: nothing */
    bool is_deaf;          /* reads nothing more */
    bool closes;           /* when all is written */
};

struct http_sink {
    const struct http_sink_answer *script;
    size_t script_count;
    int listener;
    int stop_pipe[2];
    int settle_pipe[2];
    uint16_t port;
    char url[64];
    pthread_t thread;
    struct connection connections[CONNECTIONS_MAX];
    size_t started_count; /* requests whose answer has been chosen */

    pthread_mutex_t lock; /* guards what is below */
    pthread_cond_t changed;
    struct http_sink_request **requests;
    size_t request_count;
    size_t connection_count;
    uint64_t bytes_sent;
    size_t limit;    /* of a body; 0: none */
    size_t settlers; /* of http_sink_settle, that wait */
};

static void must(bool fine)
{
    if (!fine) {
        perror("http_sink");
        abort();
    }
}

static void append(struct buffer *buffer, const void *bytes, size_t length)
{
    if (buffer->length + length + 1 > buffer->room) {
        buffer->room = (buffer->length + length + 1) * 2;
        buffer->bytes = realloc(buffer->bytes, buffer->room);
        must(buffer->bytes != NULL);
    }
    if (length != 0)
        memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = '\0';
}

static void append_text(struct buffer *buffer, const char *text)
{
    append(buffer, text, strlen(text));
}

static void close_connection(struct connection *connection, bool reset)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (reset)
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(connection->fd);
    free(connection->in.bytes);
    free(connection->out.bytes);
    free(connection->endless.bytes);
    *connection = (struct connection){.fd = -1};
}

const char *http_sink_header(const struct http_sink_request *request, const char *name, char *out,
                             size_t size)
{
    const size_t name_length = strlen(name);
    out[0] = '\0';
    for (const char *line = strstr(request->head, "\r\n"); line != NULL && line[2] != '\0';
         line = strstr(line + 2, "\r\n")) {
        const char *value = line + 2 + name_length;
        if (strncasecmp(line + 2, name, name_length) != 0 || *value != ':')
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(value, "\r"), value);
        break;
    }
    return out;
}

static void keep_request(struct http_sink *sink, struct connection *connection, size_t body_length)
{
    struct http_sink_request *request = calloc(1, sizeof *request);
    must(request != NULL);
    request->connection = connection->number;
    request->head = strndup((const char *)connection->in.bytes, connection->head_length);
    request->body = malloc(body_length + 1);
    must(request->head != NULL && request->body != NULL);
    memcpy(request->body, connection->in.bytes + connection->head_length, body_length);
    request->body_length = body_length;
    pthread_mutex_lock(&sink->lock);
    sink->requests = realloc(sink->requests, (sink->request_count + 1) * sizeof(*sink->requests));
    must(sink->requests != NULL);
    sink->requests[sink->request_count++] = request;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

static void queue_endless(struct connection *connection, const struct http_sink_answer *answer,
                          bool in_head)
{
    static const char filler[1024] = {' '};
    char size[32];
    struct buffer *again = &connection->endless;
    if (in_head) {
        append_text(again, "X-More: of the same, and then some, and more, and still more\r\n");
        return;
    }
    const size_t length = answer->body_length != 0 ? answer->body_length : sizeof filler;
    snprintf(size, sizeof size, "%zx\r\n", length);
    append_text(again, size);
    append(again, answer->body_length != 0 ? answer->body : filler, length);
    append_text(again, "\r\n");
}

static void queue_answer(struct connection *connection, const struct http_sink_answer *answer)
{
    struct buffer *out = &connection->out;
    char line[128];
    const bool is_longer =
        answer->then == HTTP_SINK_CUT_BODY || answer->then == HTTP_SINK_STALL_BODY;
    snprintf(line, sizeof line, "HTTP/1.1 %d Scripted\r\n", answer->status ? answer->status : 200);
    append_text(out, line);
    connection->is_deaf = answer->then != HTTP_SINK_KEEP;
    connection->closes = answer->then == HTTP_SINK_CLOSE || answer->then == HTTP_SINK_CUT_HEAD ||
                         answer->then == HTTP_SINK_CUT_BODY;
    if (answer->then == HTTP_SINK_CUT_HEAD)
        return;
    if (answer->headers != NULL)
        append_text(out, answer->headers);
    if (answer->then == HTTP_SINK_ENDLESS_HEAD) {
        queue_endless(connection, answer, true);
        return;
    }
    if (answer->then == HTTP_SINK_ENDLESS_BODY) {
        append_text(out, "Transfer-Encoding: chunked\r\n\r\n");
        queue_endless(connection, answer, false);
        return;
    }
    snprintf(line, sizeof line, "Content-Length: %zu\r\n\r\n",
             answer->body_length + (is_longer ? 100 : 0));
    append_text(out, line);
    append(out, answer->body, answer->body_length);
}

static const struct http_sink_answer *next_answer(struct http_sink *sink, bool take)
{
    static const struct http_sink_answer fine = {.status = 200};
    const size_t index = sink->started_count;
    sink->started_count += take;
    return index < sink->script_count ? &sink->script[index] : &fine;
}

static bool is_above_limit(struct http_sink *sink, const struct connection *connection)
{
    pthread_mutex_lock(&sink->lock);
    const bool is_above = sink->limit != 0 && connection->body_length > sink->limit;
    pthread_mutex_unlock(&sink->lock);
    return is_above;
}

/* Act on what has been read. Returns false when the connection is gone. */
static bool digest(struct http_sink *sink, struct connection *connection)
{
    static const struct http_sink_answer too_large = {.status = 413};
    char number[32];
    while (!connection->is_deaf && connection->in.length != 0) {
        if (connection->head_length == 0) {
            const char *end = strstr((const char *)connection->in.bytes, "\r\n\r\n");
            if (end == NULL)
                return true;
            connection->head_length = (size_t)(end - (const char *)connection->in.bytes) + 4;
            struct http_sink_request head = {.head = (char *)connection->in.bytes};
            http_sink_header(&head, "Content-Length", number, sizeof number);
            connection->body_length = strtoul(number, NULL, 10);
        }
        if (next_answer(sink, false)->then == HTTP_SINK_RESET_EARLY &&
            connection->in.length > connection->head_length) {
            (void)next_answer(sink, true);
            close_connection(connection, true);
            return false;
        }
        const size_t whole = connection->head_length + connection->body_length;
        if (connection->in.length < whole)
            return true;
        const struct http_sink_answer *answer =
            is_above_limit(sink, connection) ? &too_large : next_answer(sink, true);
        keep_request(sink, connection, connection->body_length);
        memmove(connection->in.bytes, connection->in.bytes + whole, connection->in.length - whole);
        connection->in.length -= whole;
        connection->in.bytes[connection->in.length] = '\0';
        connection->head_length = 0;
        if (answer->then == HTTP_SINK_NO_ANSWER || answer->then == HTTP_SINK_RESET) {
            close_connection(connection, answer->then == HTTP_SINK_RESET);
            return false;
        }
        if (answer->then == HTTP_SINK_HANG)
            connection->is_deaf = true;
        else
            queue_answer(connection, answer);
    }
    return true;
}

static void write_some(struct http_sink *sink, struct connection *connection)
{
    if (connection->out_at == connection->out.length && connection->endless.length != 0) {
        connection->out_at = 0;
        connection->out.length = 0;
        while (connection->out.length < PIECE)
            append(&connection->out, connection->endless.bytes, connection->endless.length);
    }
    const ssize_t written =
        send(connection->fd, connection->out.bytes + connection->out_at,
             connection->out.length - connection->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
        if (errno != EAGAIN)
            close_connection(connection, false);
        return;
    }
    connection->out_at += (size_t)written;
    pthread_mutex_lock(&sink->lock);
    sink->bytes_sent += (uint64_t)written;
    pthread_mutex_unlock(&sink->lock);
    if (connection->out_at == connection->out.length && connection->endless.length == 0) {
        connection->out.length = 0;
        connection->out_at = 0;
        if (connection->closes)
            close_connection(connection, false);
    }
}

static void read_some(struct http_sink *sink, struct connection *connection)
{
    static _Thread_local uint8_t piece[PIECE];
    const ssize_t got = recv(connection->fd, piece, sizeof piece, MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            close_connection(connection, false);
        return;
    }
    append(&connection->in, piece, (size_t)got);
    (void)digest(sink, connection);
}

static void accept_one(struct http_sink *sink)
{
    const int fd = accept4(sink->listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (sink->connections[i].fd != -1)
            continue;
        pthread_mutex_lock(&sink->lock);
        sink->connections[i] = (struct connection){.fd = fd, .number = ++sink->connection_count};
        pthread_mutex_unlock(&sink->lock);
        return;
    }
    close(fd);
}

static void say_that_it_is_settled(struct http_sink *sink)
{
    char byte;
    must(read(sink->settle_pipe[0], &byte, 1) == 1);
    pthread_mutex_lock(&sink->lock);
    sink->settlers--;
    pthread_cond_broadcast(&sink->changed);
    pthread_mutex_unlock(&sink->lock);
}

static void *serve(void *state)
{
    struct http_sink *sink = state;
    for (;;) {
        struct pollfd polled[CONNECTIONS_MAX + 3];
        bool is_settled = true;
        polled[CONNECTIONS_MAX] = (struct pollfd){.fd = sink->listener, .events = POLLIN};
        polled[CONNECTIONS_MAX + 1] = (struct pollfd){.fd = sink->stop_pipe[0], .events = POLLIN};
        polled[CONNECTIONS_MAX + 2] = (struct pollfd){.fd = sink->settle_pipe[0], .events = POLLIN};
        for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
            const struct connection *connection = &sink->connections[i];
            const bool writes =
                connection->out_at < connection->out.length || connection->endless.length != 0;
            polled[i] = (struct pollfd){.fd = connection->fd,
                                        .events = (short)(writes ? POLLIN | POLLOUT : POLLIN)};
        }
        if (poll(polled, CONNECTIONS_MAX + 3, -1) < 0)
            continue;
        if (polled[CONNECTIONS_MAX + 1].revents != 0)
            return NULL;
        for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
            struct connection *connection = &sink->connections[i];
            if (polled[i].revents != 0 && connection->endless.length == 0)
                is_settled = false;
            if (polled[i].revents & (POLLIN | POLLERR | POLLHUP))
                read_some(sink, connection);
            if (connection->fd != -1 && (polled[i].revents & POLLOUT))
                write_some(sink, connection);
        }
        if (polled[CONNECTIONS_MAX].revents != 0)
            accept_one(sink);
        else if (is_settled && polled[CONNECTIONS_MAX + 2].revents != 0)
            say_that_it_is_settled(sink);
    }
}

static int bind_somewhere(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    must(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    *port = ntohs(address.sin_port);
    return fd;
}

uint16_t http_sink_closed_port(void)
{
    uint16_t port;
    (void)bind_somewhere(&port); /* and it stays so, or another program would get it */
    return port;
}

struct http_sink *http_sink_start(const struct http_sink_answer *script, size_t count)
{
    struct http_sink *sink = calloc(1, sizeof *sink);
    must(sink != NULL);
    sink->script = script;
    sink->script_count = count;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        sink->connections[i].fd = -1;
    sink->listener = bind_somewhere(&sink->port);
    must(listen(sink->listener, CONNECTIONS_MAX) == 0);
    snprintf(sink->url, sizeof sink->url, "http://127.0.0.1:%u/v1/traces", (unsigned)sink->port);
    must(pipe2(sink->stop_pipe, O_CLOEXEC) == 0 && pipe2(sink->settle_pipe, O_CLOEXEC) == 0);
    pthread_mutex_init(&sink->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sink->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    must(pthread_create(&sink->thread, NULL, serve, sink) == 0);
    return sink;
}

void http_sink_stop(struct http_sink *sink)
{
    must(write(sink->stop_pipe[1], "", 1) == 1);
    pthread_join(sink->thread, NULL);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        if (sink->connections[i].fd != -1)
            close_connection(&sink->connections[i], false);
    }
    close(sink->listener);
    close(sink->stop_pipe[0]);
    close(sink->stop_pipe[1]);
    close(sink->settle_pipe[0]);
    close(sink->settle_pipe[1]);
    for (size_t i = 0; i < sink->request_count; i++) {
        free(sink->requests[i]->head);
        free(sink->requests[i]->body);
        free(sink->requests[i]);
    }
    free(sink->requests);
    pthread_cond_destroy(&sink->changed);
    pthread_mutex_destroy(&sink->lock);
    free(sink);
}

const char *http_sink_url(const struct http_sink *sink)
{
    return sink->url;
}

uint16_t http_sink_port(const struct http_sink *sink)
{
    return sink->port;
}

bool http_sink_wait(struct http_sink *sink, size_t requests)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_S;
    int result = 0;
    pthread_mutex_lock(&sink->lock);
    while (sink->request_count < requests && result == 0)
        result = pthread_cond_timedwait(&sink->changed, &sink->lock, &until);
    const bool are_there = sink->request_count >= requests;
    pthread_mutex_unlock(&sink->lock);
    return are_there;
}

void http_sink_settle(struct http_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->settlers++;
    must(write(sink->settle_pipe[1], "", 1) == 1);
    while (sink->settlers != 0)
        pthread_cond_wait(&sink->changed, &sink->lock);
    pthread_mutex_unlock(&sink->lock);
}

void http_sink_hold(struct http_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
}

void http_sink_go_on(struct http_sink *sink)
{
    pthread_mutex_unlock(&sink->lock);
}

void http_sink_limit(struct http_sink *sink, size_t body_bytes)
{
    pthread_mutex_lock(&sink->lock);
    sink->limit = body_bytes;
    pthread_mutex_unlock(&sink->lock);
}

size_t http_sink_requests(struct http_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    const size_t count = sink->request_count;
    pthread_mutex_unlock(&sink->lock);
    return count;
}

size_t http_sink_connections(struct http_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    const size_t count = sink->connection_count;
    pthread_mutex_unlock(&sink->lock);
    return count;
}

size_t http_sink_open_connections(struct http_sink *sink)
{
    size_t count = 0;
    http_sink_settle(sink);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        count += sink->connections[i].fd != -1;
    return count;
}

uint64_t http_sink_bytes_sent(struct http_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    const uint64_t bytes = sink->bytes_sent;
    pthread_mutex_unlock(&sink->lock);
    return bytes;
}

const struct http_sink_request *http_sink_request(struct http_sink *sink, size_t index)
{
    pthread_mutex_lock(&sink->lock);
    const struct http_sink_request *request =
        index < sink->request_count ? sink->requests[index] : NULL;
    pthread_mutex_unlock(&sink->lock);
    return request;
}
