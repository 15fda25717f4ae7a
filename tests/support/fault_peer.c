/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer.c - the peer's thread and sockets, which answer is whose, and what a
 * test may ask. The contracts are in fault_peer.h and fault_peer_inside.h. */
#include "tests/support/fault_peer_inside.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_S = 60 };

void fault_must(bool fine)
{
    if (!fine) {
        perror("fault_peer");
        abort();
    }
}

/* ---- bytes ------------------------------------------------------------------------------ */

void fault_append(struct fault_bytes *bytes, const void *data, size_t length)
{
    if (bytes->length + length + 1 > bytes->room) {
        bytes->room = (bytes->length + length + 1) * 2;
        bytes->data = realloc(bytes->data, bytes->room);
        fault_must(bytes->data != NULL);
    }
    if (length != 0)
        memcpy(bytes->data + bytes->length, data, length);
    bytes->length += length;
    bytes->data[bytes->length] = '\0';
}

void fault_append_text(struct fault_bytes *bytes, const char *text)
{
    if (text != NULL)
        fault_append(bytes, text, strlen(text));
}

size_t fault_left(const struct fault_bytes *bytes)
{
    return bytes->length - bytes->at;
}

void fault_take(struct fault_bytes *bytes, size_t length)
{
    bytes->at += length;
    if (bytes->at == bytes->length)
        bytes->at = bytes->length = 0;
}

void fault_shift(struct fault_bytes *bytes, size_t length)
{
    memmove(bytes->data, bytes->data + length, bytes->length - length + 1);
    bytes->length -= length;
}

void fault_clear(struct fault_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct fault_bytes){0};
}

/* ---- the thread ------------------------------------------------------------------------- */

uint64_t fault_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void accept_one(struct fault_peer *peer)
{
    const int one = 1;
    const int fd = accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t place = 0;
    if (fd < 0)
        return;
    while (place < FAULT_LINKS && peer->links[place].fd != -1)
        place++;
    fault_must(place < FAULT_LINKS);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    pthread_mutex_lock(&peer->lock);
    const size_t number = ++peer->connection_count;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    fault_link_open(&peer->links[place], peer, fd, number,
                    number <= peer->options.connection_count
                        ? &peer->options.connections[number - 1]
                        : &peer->options.other_connections);
}

/* Let each connection send what it can, and say what to wait for. */
static int prepare(struct fault_peer *peer, struct pollfd *polled)
{
    const uint64_t now = fault_now_ms();
    uint64_t until = UINT64_MAX;
    pthread_mutex_lock(&peer->lock);
    peer->read_bytes = peer->options.read_bytes;
    peer->read_ms = peer->options.read_ms;
    pthread_mutex_unlock(&peer->lock);
    for (size_t i = 0; i < FAULT_LINKS; i++) {
        struct fault_link *link = &peer->links[i];
        if (link->fd != -1)
            fault_link_send(link, now);
        if (link->fd != -1 && link->is_gone)
            fault_link_close(link, false);
        const uint64_t wanted = link->fd != -1 ? fault_link_waits_until_ms(link) : 0;
        until = wanted != 0 && wanted < until ? wanted : until;
        if (link->read_at_ms != 0 && (link->read_at_ms <= now || peer->read_bytes == 0))
            link->read_at_ms = 0;
        until = link->read_at_ms != 0 && link->read_at_ms < until ? link->read_at_ms : until;
        const int in = link->is_deaf || link->read_at_ms != 0 ? 0 : POLLIN;
        const int out = link->fd != -1 && fault_link_wants_room(link) ? POLLOUT : 0;
        polled[i] = (struct pollfd){.fd = link->fd, .events = (short)(in | out)};
    }
    return until == UINT64_MAX ? -1 : (int)(until > now ? until - now : 0);
}

static void leave(struct fault_peer *peer)
{
    for (size_t i = 0; i < FAULT_LINKS; i++)
        if (peer->links[i].fd != -1)
            fault_link_close(&peer->links[i], true);
    if (peer->listener != -1)
        close(peer->listener);
    peer->listener = -1;
    if (peer->options.unix_path != NULL)
        unlink(peer->options.unix_path);
}

static void come_back(struct fault_peer *peer);

/* Nobody else may have the port while the peer is away. */
static void keep_port(struct fault_peer *peer)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET,
                                   .sin_port = htons(peer->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                    .sin6_port = htons(peer->port),
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const bool is_v6 = peer->options.is_ipv6;
    const int one = 1;
    if (peer->options.unix_path != NULL)
        return;
    peer->kept = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    fault_must(peer->kept >= 0);
    setsockopt(peer->kept, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    fault_must(is_v6 ? bind(peer->kept, (const struct sockaddr *)&v6, sizeof v6) == 0
                     : bind(peer->kept, (const struct sockaddr *)&v4, sizeof v4) == 0);
}

static void let_go_of_port(struct fault_peer *peer)
{
    if (peer->kept != -1)
        close(peer->kept);
    peer->kept = -1;
}

static void wake(struct fault_peer *peer)
{
    fault_must(write(peer->wake_pipe[1], "", 1) == 1);
}

/* What the test's thread wants. False: the end. */
static bool obey(struct fault_peer *peer, bool is_idle)
{
    char woken[16];
    (void)!read(peer->wake_pipe[0], woken, sizeof woken);
    pthread_mutex_lock(&peer->lock);
    const bool goes_on = !peer->must_stop;
    if (peer->must_leave) {
        leave(peer);
        keep_port(peer);
    }
    if (peer->must_return) {
        come_back(peer);
        let_go_of_port(peer);
    }
    peer->must_leave = peer->must_return = false;
    if (peer->must_settle && !is_idle)
        wake(peer); /* and look again */
    else
        peer->must_settle = false;
    pthread_cond_broadcast(&peer->changed);
    pthread_mutex_unlock(&peer->lock);
    return goes_on;
}

static void *serve(void *state)
{
    struct fault_peer *peer = state;
    for (;;) {
        struct pollfd polled[FAULT_LINKS + 2];
        bool is_idle = true;
        const int timeout_ms = prepare(peer, polled);
        polled[FAULT_LINKS] = (struct pollfd){.fd = peer->listener, .events = POLLIN};
        polled[FAULT_LINKS + 1] = (struct pollfd){.fd = peer->wake_pipe[0], .events = POLLIN};
        if (poll(polled, FAULT_LINKS + 2, timeout_ms) < 0)
            continue;
        for (size_t i = 0; i < FAULT_LINKS; i++) {
            struct fault_link *link = &peer->links[i];
            if ((polled[i].revents & (POLLIN | POLLERR | POLLHUP)) == 0)
                continue;
            fault_link_receive(link);
            is_idle = false;
        }
        if (polled[FAULT_LINKS].revents != 0) {
            accept_one(peer);
            is_idle = false;
        }
        if (polled[FAULT_LINKS + 1].revents != 0 && !obey(peer, is_idle))
            return NULL;
    }
}

/* ---- starting and stopping -------------------------------------------------------------- */

static void listen_on(struct fault_peer *peer, int family, const void *address, socklen_t length)
{
    const int one = 1;
    const int size = peer->options.receive_buffer;
    peer->listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    fault_must(peer->listener >= 0);
    setsockopt(peer->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (size != 0)
        setsockopt(peer->listener, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    fault_must(bind(peer->listener, address, length) == 0);
    fault_must(listen(peer->listener, FAULT_LINKS) == 0);
}

static void come_back(struct fault_peer *peer)
{
    if (peer->options.unix_path != NULL) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof address.sun_path, "%s", peer->options.unix_path);
        unlink(address.sun_path);
        listen_on(peer, AF_UNIX, &address, sizeof address);
    } else if (peer->options.is_ipv6) {
        struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                       .sin6_port = htons(peer->port),
                                       .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        socklen_t length = sizeof address;
        listen_on(peer, AF_INET6, &address, sizeof address);
        fault_must(getsockname(peer->listener, (struct sockaddr *)&address, &length) == 0);
        peer->port = ntohs(address.sin6_port);
    } else {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons(peer->port),
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        listen_on(peer, AF_INET, &address, sizeof address);
        fault_must(getsockname(peer->listener, (struct sockaddr *)&address, &length) == 0);
        peer->port = ntohs(address.sin_port);
    }
}

struct fault_peer *fault_peer_start(const struct fault_peer_options *options)
{
    struct fault_peer *peer = calloc(1, sizeof *peer);
    fault_must(peer != NULL);
    if (options != NULL)
        peer->options = *options;
    peer->port = peer->options.port;
    peer->tls = fault_tls_context_new(&peer->options.tls);
    for (size_t i = 0; i < FAULT_LINKS; i++)
        peer->links[i].fd = -1;
    peer->kept = -1;
    come_back(peer);
    const char *scheme = peer->tls != NULL ? "https" : "http";
    if (peer->options.unix_path != NULL) {
        snprintf(peer->origin, sizeof peer->origin, "unix://%s", peer->options.unix_path);
        snprintf(peer->url, sizeof peer->url, "%s", peer->origin);
    } else {
        snprintf(peer->origin, sizeof peer->origin, "%s://%s:%u", scheme,
                 peer->options.is_ipv6 ? "[::1]" : "127.0.0.1", (unsigned)peer->port);
        snprintf(peer->url, sizeof peer->url, "%s/v1/traces", peer->origin);
    }
    fault_must(pipe2(peer->wake_pipe, O_CLOEXEC | O_NONBLOCK) == 0);
    pthread_mutex_init(&peer->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&peer->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    fault_must(pthread_create(&peer->thread, NULL, serve, peer) == 0);
    return peer;
}

void fault_peer_stop(struct fault_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    peer->must_stop = true;
    pthread_mutex_unlock(&peer->lock);
    wake(peer);
    pthread_join(peer->thread, NULL);
    leave(peer);
    let_go_of_port(peer);
    close(peer->wake_pipe[0]);
    close(peer->wake_pipe[1]);
    for (size_t i = 0; i < peer->request_count; i++)
        if (peer->requests[i] != NULL)
            fault_request_free(peer->requests[i]);
    free(peer->requests);
    free(peer->spans.places);
    free(peer->owned_script);
    fault_tls_context_free(peer->tls);
    pthread_cond_destroy(&peer->changed);
    pthread_mutex_destroy(&peer->lock);
    free(peer);
}

static void ask_and_wait(struct fault_peer *peer, bool *what)
{
    pthread_mutex_lock(&peer->lock);
    *what = true;
    wake(peer);
    while (*what)
        pthread_cond_wait(&peer->changed, &peer->lock);
    pthread_mutex_unlock(&peer->lock);
}

void fault_peer_leave(struct fault_peer *peer)
{
    ask_and_wait(peer, &peer->must_leave);
}

void fault_peer_return(struct fault_peer *peer)
{
    ask_and_wait(peer, &peer->must_return);
}

void fault_peer_settle(struct fault_peer *peer)
{
    ask_and_wait(peer, &peer->must_settle);
}

/* ---- asking ----------------------------------------------------------------------------- */

const char *fault_peer_url(const struct fault_peer *peer)
{
    return peer->url;
}

const char *fault_peer_origin(const struct fault_peer *peer)
{
    return peer->origin;
}

uint16_t fault_peer_port(const struct fault_peer *peer)
{
    return peer->port;
}

void fault_peer_set_otherwise(struct fault_peer *peer, const struct fault_answer *answer)
{
    pthread_mutex_lock(&peer->lock);
    peer->options.otherwise = *answer;
    pthread_mutex_unlock(&peer->lock);
}

void fault_peer_set_reading(struct fault_peer *peer, size_t read_bytes, int read_ms)
{
    pthread_mutex_lock(&peer->lock);
    peer->options.read_bytes = read_bytes;
    peer->options.read_ms = read_ms;
    pthread_mutex_unlock(&peer->lock);
    wake(peer);
}

bool fault_peer_wait(struct fault_peer *peer, size_t requests)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += WAIT_S;
    int result = 0;
    pthread_mutex_lock(&peer->lock);
    while (peer->request_count < requests && result == 0)
        result = pthread_cond_timedwait(&peer->changed, &peer->lock, &until);
    const bool is_there = peer->request_count >= requests;
    pthread_mutex_unlock(&peer->lock);
    return is_there;
}

static size_t read_count(struct fault_peer *peer, const size_t *count)
{
    pthread_mutex_lock(&peer->lock);
    const size_t value = *count;
    pthread_mutex_unlock(&peer->lock);
    return value;
}

size_t fault_peer_requests(struct fault_peer *peer)
{
    return read_count(peer, &peer->request_count);
}

size_t fault_peer_begun(struct fault_peer *peer)
{
    return read_count(peer, &peer->begun_count);
}

size_t fault_peer_connections(struct fault_peer *peer)
{
    return read_count(peer, &peer->connection_count);
}

uint64_t fault_peer_bytes_sent(struct fault_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    const uint64_t bytes = peer->bytes_sent;
    pthread_mutex_unlock(&peer->lock);
    return bytes;
}

const struct fault_peer_request *fault_peer_request(struct fault_peer *peer, size_t index)
{
    pthread_mutex_lock(&peer->lock);
    const struct fault_peer_request *request =
        index < peer->request_count ? peer->requests[index] : NULL;
    pthread_mutex_unlock(&peer->lock);
    return request;
}

const char *fault_peer_problem(struct fault_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    const char *problem = peer->problem;
    pthread_mutex_unlock(&peer->lock);
    return problem;
}

struct fault_span_counts fault_peer_spans(struct fault_peer *peer)
{
    pthread_mutex_lock(&peer->lock);
    const struct fault_span_counts counts = peer->spans.counts;
    pthread_mutex_unlock(&peer->lock);
    return counts;
}
