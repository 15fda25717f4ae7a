/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_peer.c - one thread that polls a listener and what it has accepted.
 * Of what comes in it looks only at how much that is. */
#include "tests/support/dead_peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNECTIONS = 32,
    BACKLOG_FILLERS = 8,
    TICK_MS = 100,
    TRICKLE_MS = 1000,
    MIDDLE_OF_BODY = 4096
};

struct connection {
    int fd; /* -1: free place */
    size_t received;
    size_t said;
    int silent_ms; /* since it said something */
};

struct dead_peer {
    enum dead_peer_kind kind;
    int listener; /* -1: none */
    int stop_pipe[2];
    int fillers[BACKLOG_FILLERS];
    struct connection connections[CONNECTIONS];
    bool has_thread;
    pthread_t thread;
    char url[64];
    char proxy[64];
};

static const char busy[] = "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
static const char endless_head[] = "HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char endless_piece[] = "10\r\n0123456789ABCDEF\r\n";
static const char slow[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
static const char half_head[] = "HTTP/1.1 2";
static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
static const char goaway[] = "\0\0\0\4\0\0\0\0\0"                   /* SETTINGS */
                             "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\1"; /* GOAWAY: protocol error */

const char *dead_peer_name(enum dead_peer_kind kind)
{
    static const char *const names[DEAD_PEER_KINDS] = {
        "refuses",      "full_backlog", "never_reads", "never_answers", "trickles",
        "resets",       "cuts_head",    "continues",   "busy",          "endless_body",
        "http2_goaway", "silent_tls",   "plain",       "no_name",       "silent_proxy",
    };
    return names[kind];
}

static void must(bool fine)
{
    if (!fine) {
        perror("dead_peer");
        abort();
    }
}

static void hang_up(struct connection *connection, bool reset)
{
    const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    if (reset)
        setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(connection->fd);
    connection->fd = -1;
}

static void say(struct connection *connection, const char *text, size_t length)
{
    const ssize_t sent = send(connection->fd, text, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    connection->said += sent > 0 ? (size_t)sent : 0;
    connection->silent_ms = 0;
}

/* What this kind of peer does after it has received something. */
static void react(const struct dead_peer *peer, struct connection *connection)
{
    switch (peer->kind) {
    case DEAD_PEER_RESETS:
        if (connection->received >= MIDDLE_OF_BODY)
            hang_up(connection, true);
        break;
    case DEAD_PEER_CUTS_HEAD:
        say(connection, half_head, sizeof half_head - 1);
        hang_up(connection, false);
        break;
    case DEAD_PEER_CONTINUES:
        if (connection->said == 0)
            say(connection, go_on, sizeof go_on - 1);
        break;
    case DEAD_PEER_BUSY:
        if (connection->said == 0) {
            say(connection, busy, sizeof busy - 1);
            shutdown(connection->fd, SHUT_WR); /* a reset could overtake the answer */
        }
        break;
    case DEAD_PEER_PLAIN:
        say(connection, busy, sizeof busy - 1);
        hang_up(connection, false);
        break;
    case DEAD_PEER_ENDLESS_BODY:
        if (connection->said == 0)
            say(connection, endless_head, sizeof endless_head - 1);
        break;
    case DEAD_PEER_HTTP2:
        if (connection->said == 0)
            say(connection, goaway, sizeof goaway - 1);
        break;
    case DEAD_PEER_REFUSES:
    case DEAD_PEER_FULL_BACKLOG:
    case DEAD_PEER_NEVER_READS:
    case DEAD_PEER_NEVER_ANSWERS:
    case DEAD_PEER_TRICKLES:
    case DEAD_PEER_SILENT_TLS:
    case DEAD_PEER_NO_NAME:
    case DEAD_PEER_SILENT_PROXY:
    case DEAD_PEER_KINDS:
        break;
    }
}

static void on_tick(const struct dead_peer *peer, struct connection *connection, int passed_ms)
{
    connection->silent_ms += passed_ms;
    if (peer->kind == DEAD_PEER_TRICKLES && connection->silent_ms >= TRICKLE_MS &&
        connection->said < sizeof slow - 1)
        say(connection, slow + connection->said, 1);
    if (peer->kind == DEAD_PEER_ENDLESS_BODY && connection->said != 0)
        say(connection, endless_piece, sizeof endless_piece - 1);
}

static void receive(const struct dead_peer *peer, struct connection *connection)
{
    static _Thread_local char ignored[65536];
    const ssize_t got = recv(connection->fd, ignored, sizeof ignored, MSG_DONTWAIT);
    if (got <= 0) {
        hang_up(connection, false);
        return;
    }
    connection->received += (size_t)got;
    react(peer, connection);
}

static void accept_one(struct dead_peer *peer)
{
    const int fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
    for (size_t i = 0; fd >= 0 && i < CONNECTIONS; i++) {
        if (peer->connections[i].fd == -1) {
            peer->connections[i] = (struct connection){.fd = fd};
            return;
        }
    }
    if (fd >= 0)
        close(fd);
}

static void *serve(void *state)
{
    struct dead_peer *peer = state;
    for (;;) {
        struct pollfd polled[CONNECTIONS + 2];
        const short wanted = peer->kind == DEAD_PEER_NEVER_READS ? 0 : POLLIN;
        for (size_t i = 0; i < CONNECTIONS; i++)
            polled[i] = (struct pollfd){.fd = peer->connections[i].fd, .events = wanted};
        polled[CONNECTIONS] = (struct pollfd){.fd = peer->listener, .events = POLLIN};
        polled[CONNECTIONS + 1] = (struct pollfd){.fd = peer->stop_pipe[0], .events = POLLIN};
        const int ready = poll(polled, CONNECTIONS + 2, TICK_MS);
        if (polled[CONNECTIONS + 1].revents != 0)
            return NULL;
        for (size_t i = 0; i < CONNECTIONS; i++) {
            struct connection *connection = &peer->connections[i];
            if (connection->fd != -1 && (polled[i].revents & (POLLIN | POLLERR | POLLHUP)))
                receive(peer, connection);
            else if (connection->fd != -1 && ready == 0)
                on_tick(peer, connection, TICK_MS);
        }
        if (polled[CONNECTIONS].revents != 0)
            accept_one(peer);
    }
}

static struct sockaddr_in loopback(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Connections that nobody accepts, until the kernel lets further ones wait. */
static void fill_backlog(struct dead_peer *peer, const struct sockaddr_in *address)
{
    for (size_t i = 0; i < BACKLOG_FILLERS; i++) {
        peer->fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        must(peer->fillers[i] >= 0);
        (void)connect(peer->fillers[i], (const struct sockaddr *)address, sizeof *address);
    }
}

static unsigned listen_somewhere(struct dead_peer *peer)
{
    struct sockaddr_in address = loopback();
    socklen_t length = sizeof address;
    const int small = 4096;
    peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(peer->listener >= 0);
    if (peer->kind == DEAD_PEER_NEVER_READS)
        setsockopt(peer->listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    must(bind(peer->listener, (struct sockaddr *)&address, sizeof address) == 0);
    must(getsockname(peer->listener, (struct sockaddr *)&address, &length) == 0);
    if (peer->kind != DEAD_PEER_REFUSES)
        must(listen(peer->listener, peer->kind == DEAD_PEER_FULL_BACKLOG ? 0 : CONNECTIONS) == 0);
    if (peer->kind == DEAD_PEER_FULL_BACKLOG)
        fill_backlog(peer, &address);
    return ntohs(address.sin_port);
}

struct dead_peer *dead_peer_start(enum dead_peer_kind kind)
{
    struct dead_peer *peer = calloc(1, sizeof *peer);
    must(peer != NULL);
    peer->kind = kind;
    for (size_t i = 0; i < CONNECTIONS; i++)
        peer->connections[i].fd = -1;
    for (size_t i = 0; i < BACKLOG_FILLERS; i++)
        peer->fillers[i] = -1;
    const unsigned port = listen_somewhere(peer);
    const bool is_tls = kind == DEAD_PEER_SILENT_TLS || kind == DEAD_PEER_PLAIN;
    const bool is_proxy = kind == DEAD_PEER_SILENT_PROXY;
    const char *host = kind == DEAD_PEER_NO_NAME ? "collector.invalid" : "127.0.0.1";
    snprintf(peer->url, sizeof peer->url, "http%s://%s:%u", is_tls ? "s" : "", host,
             is_proxy ? 1 : port);
    if (is_proxy)
        snprintf(peer->proxy, sizeof peer->proxy, "http://127.0.0.1:%u", port);
    must(pipe2(peer->stop_pipe, O_CLOEXEC) == 0);
    peer->has_thread = kind != DEAD_PEER_REFUSES && kind != DEAD_PEER_FULL_BACKLOG;
    if (peer->has_thread)
        must(pthread_create(&peer->thread, NULL, serve, peer) == 0);
    return peer;
}

void dead_peer_stop(struct dead_peer *peer)
{
    if (peer->has_thread) {
        must(write(peer->stop_pipe[1], "", 1) == 1);
        pthread_join(peer->thread, NULL);
    }
    for (size_t i = 0; i < CONNECTIONS; i++)
        if (peer->connections[i].fd != -1)
            close(peer->connections[i].fd);
    for (size_t i = 0; i < BACKLOG_FILLERS; i++)
        if (peer->fillers[i] != -1)
            close(peer->fillers[i]);
    close(peer->listener);
    close(peer->stop_pipe[0]);
    close(peer->stop_pipe[1]);
    free(peer);
}

const char *dead_peer_url(const struct dead_peer *peer)
{
    return peer->url;
}

const char *dead_peer_proxy(const struct dead_peer *peer)
{
    return peer->proxy[0] != '\0' ? peer->proxy : NULL;
}
