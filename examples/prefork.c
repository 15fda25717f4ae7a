/* SPDX-License-Identifier: Apache-2.0 */
/* examples/prefork.c - a server whose workers are forked, with a span for each request.
 *
 *     master ── fork ──▶ worker 1: accept, answer, accept, ...      its own exporter thread
 *            ── fork ──▶ worker 2: ...
 *            ◀─ exit ─── one that dies is forked anew
 *
 * The master starts otel-c once, before it forks. A worker needs no line for it: with its
 * first span it has an exporter thread, a connection and ids of its own, and it says
 * otel_shutdown when it ends, as any program does. Its spans are below what was current in the
 * master when it was forked.
 *
 *     cc prefork.c -o prefork $(pkg-config --cflags --libs otel)
 *     ./prefork PORT [WORKERS]        serve until SIGTERM; then finish what has begun
 *     ./prefork --demo REQUESTS       serve that many of its own requests, and end
 *
 * Try it: curl http://127.0.0.1:PORT/hello */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* ppoll, accept4 */
#endif
#include <otel/otel.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_WORKERS = 64, LINE = 1024, TIMEOUT_MS = 5000 };

static volatile sig_atomic_t is_over;
static otel_tracer *tracer;

static void on_sigterm(int signal)
{
    (void)signal;
    is_over = 1;
}

/* The signals that both look at are blocked but while they wait, so that none comes between
 * looking and waiting. */
static void handle_signals(sigset_t *watched)
{
    const struct sigaction end = {.sa_handler = on_sigterm};
    sigemptyset(watched);
    sigaddset(watched, SIGTERM);
    sigaddset(watched, SIGINT);
    sigaddset(watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, watched, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int listen_on(uint16_t port)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const int yes = 1;
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (const struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 128) == 0)
        return fd;
    close(fd);
    return -1;
}

/* --- the worker --- */

/* The path of "GET /path HTTP/1.1", in place. NULL: it is something else. */
static const char *path_of(char *request)
{
    if (strncmp(request, "GET /", 5) != 0)
        return NULL;
    char *path = request + 4;
    path[strcspn(path, " \r\n")] = '\0';
    return path;
}

static void answer(int connection)
{
    const otel_span span =
        otel_span_enter(tracer, "GET", OTEL_SPAN_OPTIONS(.kind = OTEL_SPAN_KIND_SERVER));
    char request[LINE];
    const ssize_t length = read(connection, request, sizeof request - 1);
    request[length > 0 ? length : 0] = '\0';
    const char *path = path_of(request);
    char text[LINE];
    const int size = snprintf(text, sizeof text,
                              "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"
                              "Connection: close\r\n\r\nworker %d\n",
                              path != NULL ? "200 OK" : "400 Bad Request", (int)getpid());
    otel_span_set_string(span, "http.request.method", "GET");
    otel_span_set_string(span, "url.path", path != NULL ? path : "");
    otel_span_set_int(span, "http.response.status_code", path != NULL ? 200 : 400);
    if (write(connection, text, (size_t)size) != size)
        otel_span_fail(span, "the client has gone");
    otel_span_end(span);
}

/* All workers wait for the same socket; the first one accepts. The exit status: whether
 * all of its spans have arrived. */
static int work(int listener)
{
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    sigset_t none;
    sigemptyset(&none);
    while (!is_over) {
        if (ppoll(&ready, 1, NULL, &none) < 0)
            continue;
        const int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0)
            continue;
        answer(connection);
        close(connection);
    }
    return otel_shutdown(TIMEOUT_MS) != OTEL_OK;
}

/* --- the master --- */

static pid_t start_worker(int listener)
{
    const pid_t worker = fork();
    if (worker == 0)
        _exit(work(listener));
    return worker;
}

/* Note which workers have ended. True: `client` has, with this status. */
static bool reap(pid_t *workers, unsigned count, pid_t client, int *status)
{
    pid_t ended;
    while ((ended = waitpid(-1, status, WNOHANG)) > 0) {
        if (ended == client)
            return true;
        for (unsigned i = 0; i < count; i++)
            if (workers[i] == ended)
                workers[i] = 0;
        fprintf(stderr, "worker %d has ended; another takes its place\n", (int)ended);
    }
    return false;
}

/* Tell all workers to end, and wait until they have. */
static int end_workers(const pid_t *workers, unsigned count)
{
    int wrong = 0;
    for (unsigned i = 0; i < count; i++)
        if (workers[i] > 0)
            kill(workers[i], SIGTERM);
    for (unsigned i = 0; i < count; i++) {
        int status = 0;
        if (workers[i] > 0 && waitpid(workers[i], &status, 0) == workers[i])
            wrong |= status != 0;
    }
    return wrong;
}

/* Until SIGTERM, or until `client`, who makes the requests of the demonstration, has ended. */
static int supervise(int listener, unsigned count, pid_t client, const sigset_t *watched)
{
    pid_t workers[MOST_WORKERS] = {0};
    int status = 0;
    bool goes_on = true;
    while (goes_on) {
        for (unsigned i = 0; i < count; i++)
            if (workers[i] <= 0)
                workers[i] = start_worker(listener);
        const int signal = sigwaitinfo(watched, NULL);
        goes_on = signal != SIGTERM && signal != SIGINT && !reap(workers, count, client, &status);
    }
    return end_workers(workers, count) | (status != 0);
}

/* --- the demonstration's client --- */

static bool request(uint16_t port)
{
    const struct sockaddr_in server = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    static const char hello[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char text[LINE];
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool done = fd >= 0 &&
                      connect(fd, (const struct sockaddr *)&server, sizeof server) == 0 &&
                      write(fd, hello, sizeof hello - 1) == (ssize_t)sizeof hello - 1 &&
                      read(fd, text, sizeof text) > 15 && memcmp(text, "HTTP/1.1 200", 12) == 0;
    if (fd >= 0)
        close(fd);
    return done;
}

static pid_t start_client(int listener, unsigned requests)
{
    struct sockaddr_in address = {0};
    socklen_t size = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &size) != 0)
        return -1;
    const pid_t client = fork();
    if (client != 0)
        return client;
    close(listener);
    unsigned answered = 0;
    for (unsigned i = 0; i < requests; i++)
        answered += request(ntohs(address.sin_port));
    printf("answered %u of %u requests\n", answered, requests);
    fflush(stdout);
    _exit(answered != requests);
}

int main(int argc, char **argv)
{
    const bool is_demo = argc == 3 && strcmp(argv[1], "--demo") == 0;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s PORT [WORKERS] | --demo REQUESTS\n", argv[0]);
        return 2;
    }
    const unsigned wanted = !is_demo && argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 2;
    const unsigned workers = wanted == 0 ? 1 : wanted < MOST_WORKERS ? wanted : MOST_WORKERS;
    const int listener = listen_on(is_demo ? 0 : (uint16_t)strtoul(argv[1], NULL, 10));
    if (listener < 0) {
        perror("listen");
        return 1;
    }
    sigset_t watched;
    handle_signals(&watched);
    const otel_status status =
        otel_start(OTEL_SDK_OPTIONS(.defaults = OTEL_SDK_OPTIONS(.service_name = "prefork",
                                                                 .bsp_schedule_delay = 1000,
                                                                 /* of each worker */
                                                                 .queue_max_bytes = 4 << 20)));
    if (status != OTEL_OK)
        fprintf(stderr, "telemetry is off: %s\n", otel_status_string(status));
    tracer = otel_tracer_get("example.prefork", "1.0");

    const pid_t client = is_demo ? start_client(listener, (unsigned)strtoul(argv[2], NULL, 10)) : 0;
    const int wrong = supervise(listener, workers, client, &watched);
    close(listener);
    return otel_shutdown(TIMEOUT_MS) != OTEL_OK || wrong;
}
