/* SPDX-License-Identifier: Apache-2.0 */
/* examples/threadless_epoll.c - a server in one thread, which also sends its own telemetry.
 *
 *     cc threadless_epoll.c -o threadless_epoll $(pkg-config --cflags --libs otel)
 *     OTEL_TRACES_EXPORTER=console ./threadless_epoll        then: nc 127.0.0.1 7007
 *
 * It answers each line with its letters in capitals. There is no second thread, and nothing
 * blocks: the SDK says by a descriptor when it has something to do, which is watched like
 * every other one, and does it in otel_poll(0), without waiting for anybody.
 *
 *     ./threadless_epoll --demo 5        talks to itself, five lines, and ends */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include <otel/otel.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <signal.h>

enum { PORT = 7007, EVENTS = 16, LINE = 256 };

static otel_tracer *tracer;
static int epoll_fd;
static int listener;
static int signals;
static int telemetry;
static long lines_left = -1; /* -1: until a signal comes */

static bool watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* ---- the server
 * -------------------------------------------------------------------------------- */

static void raise_letters(char *text, size_t length)
{
    OTEL_FUNCTION_SPAN(tracer);
    for (size_t i = 0; i < length; i++)
        text[i] = (char)toupper((unsigned char)text[i]);
}

static void serve(int client)
{
    char text[LINE];
    OTEL_SCOPED(span, tracer, "serve line");
    const ssize_t length = recv(client, text, sizeof text, 0);
    if (length <= 0) {
        close(client);
        return;
    }
    otel_span_set_int(span, "line.length", length);
    raise_letters(text, (size_t)length);
    if (send(client, text, (size_t)length, MSG_NOSIGNAL) != length)
        otel_span_fail(span, "the client does not read");
    if (lines_left > 0)
        lines_left--;
}

static void accept_client(void)
{
    const int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client >= 0 && !watch(client))
        close(client);
}

static int listen_on(struct sockaddr_in *address)
{
    socklen_t length = sizeof *address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (fd < 0 || bind(fd, (const struct sockaddr *)address, length) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)address, &length) != 0) {
        perror("threadless_epoll");
        exit(1);
    }
    return fd;
}

/* ---- the loop
 * ------------------------------------------------------------------------------------ */

static int visitor = -1; /* of the demonstration: a client of our own */

static void visit(void)
{
    char text[LINE];
    const ssize_t length = recv(visitor, text, sizeof text, 0);
    if (length > 0)
        printf("%.*s", (int)length, text);
    if (lines_left != 0)
        send(visitor, "hello\n", 6, MSG_NOSIGNAL);
}

static void run_loop(void)
{
    struct epoll_event events[EVENTS];
    while (lines_left != 0) {
        const int count = epoll_wait(epoll_fd, events, EVENTS, -1);
        if (count < 0 && errno != EINTR)
            return;
        for (int i = 0; i < count; i++) {
            const int fd = events[i].data.fd;
            if (fd == signals)
                return;
            if (fd == telemetry)
                otel_poll(0);
            else if (fd == listener)
                accept_client();
            else if (fd == visitor)
                visit();
            else
                serve(fd);
        }
    }
}

static bool visit_ourselves(const struct sockaddr_in *address)
{
    visitor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return visitor >= 0 &&
           connect(visitor, (const struct sockaddr *)address, sizeof *address) == 0 &&
           send(visitor, "hello\n", 6, MSG_NOSIGNAL) == 6 && watch(visitor);
}

/* Interrupts come through a descriptor as well. */
static int take_signals(void)
{
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, NULL);
    return signalfd(-1, &ending, SFD_CLOEXEC);
}

int main(int argc, char **argv)
{
    const bool is_demo = argc == 3 && strcmp(argv[1], "--demo") == 0;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(is_demo ? 0 : PORT),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    signals = take_signals();
    listener = listen_on(&address);

    const otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "threadless"),
                                    .threadless = true));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.threadless_epoll", "1.0");
    telemetry = otel_poll_fd();
    if (telemetry >= 0 && !watch(telemetry))
        return 1;

    if (is_demo)
        lines_left = strtol(argv[2], NULL, 10);
    if (!watch(listener) || !watch(signals) || (is_demo && !visit_ourselves(&address)))
        return 1;
    run_loop();

    /* What is left is sent now; only this takes its time. */
    return otel_shutdown(5000) == OTEL_OK ? 0 : 1;
}
