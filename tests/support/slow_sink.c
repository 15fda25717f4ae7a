/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/slow_sink.c - see slow_sink.h. One connection after the other. */
#include "tests/support/slow_sink.h"

#include "common/atomic.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { HEAD_MOST = 16 * 1024, PIECE = 16 * 1024 };
enum { SLOW_PIECES_PER_SECOND = 100, RECEIVE_BUFFER = 4096 };

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

struct slow_sink {
    uint64_t speed;    /* bytes a second; atomic */
    uint64_t requests; /* atomic */
    int listener;
    int stop_pipe[2];
    pthread_t thread;
    char url[64];
};

static void must(bool fine)
{
    if (!fine) {
        perror("slow_sink");
        abort();
    }
}

/* False: there will be nothing, because the sink stops. */
static bool wait_for(struct slow_sink *sink, int fd)
{
    struct pollfd both[2] = {{.fd = sink->stop_pipe[0], .events = POLLIN},
                             {.fd = fd, .events = POLLIN}};
    while (poll(both, 2, -1) < 0)
        continue;
    return both[0].revents == 0;
}

/* At most this much of what has come, 0 at the end of the connection. */
static size_t take(struct slow_sink *sink, int fd, void *data, size_t most)
{
    const ssize_t taken = wait_for(sink, fd) ? recv(fd, data, most, 0) : 0;
    return taken > 0 ? (size_t)taken : 0;
}

/* How long the body is of which some may be in `head` already, behind the head; false: the
 * connection has ended. */
static bool read_head(struct slow_sink *sink, int fd, uint64_t *body_left)
{
    char head[HEAD_MOST + 1];
    size_t length = 0;
    const char *end = NULL;
    while (end == NULL && length < HEAD_MOST) {
        const size_t more = take(sink, fd, head + length, HEAD_MOST - length);
        if (more == 0)
            return false;
        length += more;
        head[length] = '\0';
        end = strstr(head, "\r\n\r\n");
    }
    const char *field = strcasestr(head, "\r\nContent-Length:");
    must(end != NULL && field != NULL);
    *body_left = strtoull(field + strlen("\r\nContent-Length:"), NULL, 10);
    *body_left -= length - (size_t)(end + 4 - head);
    return true;
}

static bool read_body(struct slow_sink *sink, int fd, uint64_t left)
{
    char piece[PIECE];
    while (left != 0) {
        const uint64_t speed = oteli_load_acquire_64(&sink->speed);
        const bool is_slow = speed != UINT64_MAX;
        size_t most = left < sizeof piece ? (size_t)left : sizeof piece;
        if (is_slow && most > speed / SLOW_PIECES_PER_SECOND)
            most = (size_t)(speed / SLOW_PIECES_PER_SECOND) + 1;
        const size_t taken = take(sink, fd, piece, most);
        if (taken == 0)
            return false;
        left -= taken;
        const struct timespec pause = {0, 1000000000 / SLOW_PIECES_PER_SECOND};
        if (is_slow)
            nanosleep(&pause, NULL);
    }
    return true;
}

static void *serve(void *argument)
{
    struct slow_sink *sink = argument;
    while (wait_for(sink, sink->listener)) {
        const int fd = accept4(sink->listener, NULL, NULL, SOCK_CLOEXEC);
        uint64_t left;
        while (fd >= 0 && read_head(sink, fd, &left) && read_body(sink, fd, left)) {
            oteli_add_full_64(&sink->requests, 1);
            if (send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL) < 0)
                break;
        }
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

struct slow_sink *slow_sink_start(uint64_t bytes_per_second)
{
    struct slow_sink *sink = calloc(1, sizeof *sink);
    must(sink != NULL);
    sink->speed = bytes_per_second;
    sink->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(sink->listener >= 0 && pipe(sink->stop_pipe) == 0);
    const int little = RECEIVE_BUFFER; /* what the kernel takes was not read by anybody */
    if (bytes_per_second != UINT64_MAX)
        setsockopt(sink->listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    must(bind(sink->listener, (struct sockaddr *)&address, length) == 0 &&
         listen(sink->listener, 8) == 0 &&
         getsockname(sink->listener, (struct sockaddr *)&address, &length) == 0);
    snprintf(sink->url, sizeof sink->url, "http://127.0.0.1:%u/v1/traces", ntohs(address.sin_port));
    must(pthread_create(&sink->thread, NULL, serve, sink) == 0);
    return sink;
}

void slow_sink_stop(struct slow_sink *sink)
{
    must(write(sink->stop_pipe[1], "", 1) == 1);
    pthread_join(sink->thread, NULL);
    close(sink->stop_pipe[0]);
    close(sink->stop_pipe[1]);
    close(sink->listener);
    free(sink);
}

const char *slow_sink_url(const struct slow_sink *sink)
{
    return sink->url;
}

void slow_sink_set_speed(struct slow_sink *sink, uint64_t bytes_per_second)
{
    oteli_store_release_64(&sink->speed, bytes_per_second);
}

uint64_t slow_sink_requests(const struct slow_sink *sink)
{
    return oteli_load_acquire_64(&sink->requests);
}
