/* SPDX-License-Identifier: Apache-2.0 */
/* benchmarks/sink.c - the sink's process: sink.h says what it is. */
#include "benchmarks/sink.h"
#include "benchmarks/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEAD_BYTES = 8192, DISCARD_BYTES = 1 << 20 };

/* Take `left` bytes off the connection. With MSG_TRUNC they are not even copied. */
static bool discard(int connection, size_t left)
{
    static char unused[1]; /* nothing is written to it */
    while (left != 0) {
        const size_t wanted = left < DISCARD_BYTES ? left : DISCARD_BYTES;
        const ssize_t got = recv(connection, unused, wanted, MSG_TRUNC);
        if (got <= 0 && errno != EINTR)
            return false;
        left -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* The value of Content-Length; a head without one is no request of ours. */
static bool content_length(const char *head, size_t *length)
{
    static const char name[] = "content-length:";
    for (const char *line = head; line != NULL; line = strstr(line, "\r\n")) {
        line += *line == '\r' ? 2 : 0;
        if (strncasecmp(line, name, sizeof name - 1) == 0) {
            *length = strtoul(line + sizeof name - 1, NULL, 10);
            return true;
        }
    }
    return false;
}

/* One request: its head may come in pieces, and with the start of the body behind it. */
static bool serve_one(int connection, volatile struct bench_sink_counts *counts)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
                                 "Content-Length: 0\r\n\r\n";
    char head[HEAD_BYTES + 1];
    size_t have = 0;
    const char *end = NULL;
    while (end == NULL) {
        const ssize_t got = recv(connection, head + have, HEAD_BYTES - have, 0);
        if (got <= 0)
            return false;
        have += (size_t)got;
        head[have] = '\0';
        end = memmem(head, have, "\r\n\r\n", 4);
    }
    size_t length = 0;
    const size_t body = have - (size_t)(end + 4 - head);
    if (!content_length(head, &length) || body > length || !discard(connection, length - body))
        return false;
    counts->requests++;
    counts->bytes += length;
    return send(connection, answer, sizeof answer - 1, MSG_NOSIGNAL) ==
           (ssize_t)(sizeof answer - 1);
}

static void serve(int listener, volatile struct bench_sink_counts *counts)
{
    for (;;) {
        const int connection = accept(listener, NULL, NULL);
        if (connection < 0)
            _exit(1);
        const int on = 1;
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        while (serve_one(connection, counts))
            continue;
        close(connection);
    }
}

static int listen_somewhere(char *url, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (const struct sockaddr *)&address, length) != 0 ||
        listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        bench_fail("no loopback port to listen on: %s", strerror(errno));
    snprintf(url, size, "http://127.0.0.1:%u/v1/traces", (unsigned)ntohs(address.sin_port));
    return listener;
}

void bench_sink_start(struct bench_sink *sink)
{
    const int listener = listen_somewhere(sink->url, sizeof sink->url);
    sink->counts =
        mmap(NULL, sizeof *sink->counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sink->counts == MAP_FAILED)
        bench_fail("mmap: %s", strerror(errno));
    const pid_t parent = getpid();
    sink->process = fork();
    if (sink->process < 0)
        bench_fail("fork: %s", strerror(errno));
    if (sink->process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        serve(listener, sink->counts);
    }
    close(listener);
}

void bench_sink_stop(struct bench_sink *sink)
{
    kill(sink->process, SIGKILL);
    waitpid(sink->process, NULL, 0);
    munmap((void *)(uintptr_t)sink->counts, sizeof *sink->counts);
}
