/* SPDX-License-Identifier: Apache-2.0 */
/* examples/event_loops.c - a server with an event loop in each of its worker threads.
 *
 *     cc event_loops.c -o event_loops $(pkg-config --cflags --libs otel) -pthread
 *     ./event_loops CLIENTS         serves on loopback, is its own clients, and ends
 *
 * Commands are lines, and clients send several without waiting for answers. `get KEY` is answered
 * at once; `load KEY MS` is suspended, and what was sent behind it waits. The spans:
 *
 *     get, load          a command: started, and kept in the connection while it is suspended
 *       parse, wait      its phases, exported only if they took a millisecond or longer
 *
 * Nothing is current between two steps, so the parent is named. Only its loop's thread touches a
 * connection, until the loops have stopped. */
#include <otel/otel.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { LOOPS = 3, EVENTS = 64, ROOM = 4096, SLOW_NS = 1000000 };

struct connection {
    struct connection *next; /* of the same loop */
    int client;
    int timer;         /* what a suspended command waits for */
    otel_span span;    /* the command */
    otel_span phase;   /* what it waits in */
    bool is_suspended; /* then the loop watches `timer`, and `client` otherwise */
    char key[64];
    char input[ROOM]; /* commands that are not done yet */
    size_t length;
};

struct loop {
    pthread_t thread;
    int epoll;
    struct connection *connections;
};

static otel_tracer *tracer;
static int listener, stopper; /* in the epoll of every loop */

static otel_span start_phase(otel_span command, const char *name)
{
    const otel_context context = otel_context_with_span((otel_context){0}, command);
    return otel_span_start(tracer, name, OTEL_SPAN_OPTIONS(.parent = &context));
}

static void watch(struct loop *loop, struct connection *connection, int fd, int before)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, before, NULL);
    epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event);
}

static void finish(struct connection *connection)
{
    dprintf(connection->client, "VALUE %s\n", connection->key);
    otel_span_end(connection->span);
}

/* The command goes on in resume(), with spans that wait in the connection. */
static void suspend(struct loop *loop, struct connection *connection, unsigned long ms)
{
    const struct itimerspec delay = {{0}, {(long)ms / 1000, (long)(ms % 1000) * 1000000L + 1}};
    connection->phase = start_phase(connection->span, "wait");
    connection->is_suspended = true;
    timerfd_settime(connection->timer, 0, &delay, NULL);
    watch(loop, connection, connection->timer, connection->client);
}

static void execute(struct loop *loop, struct connection *connection, const char *line)
{
    const otel_context no_parent = {0}; /* or what otel_extract finds in the command */
    char ms[12] = "";
    const otel_span command =
        otel_span_start(tracer, "command", OTEL_SPAN_OPTIONS(.parent = &no_parent, .kind = 1));
    connection->span = command;
    const otel_span parse = start_phase(command, "parse");
    const bool waits = sscanf(line, "load %63s %11s", connection->key, ms) == 2;
    if (!waits && sscanf(line, "get %63s", connection->key) != 1)
        otel_span_fail(command, "no such command");
    otel_span_end_unless_shorter(parse, SLOW_NS);
    otel_span_update_name(command, waits ? "load" : "get");
    otel_span_set_string(command, "key", connection->key);
    if (waits)
        suspend(loop, connection, strtoul(ms, NULL, 10));
    else
        finish(connection);
}

/* All commands that have come, up to one that is suspended. */
static void run_commands(struct loop *loop, struct connection *connection)
{
    char *at = connection->input, *const end = at + connection->length;
    for (char *stop; !connection->is_suspended && (stop = memchr(at, '\n', (size_t)(end - at)));) {
        *stop = '\0';
        execute(loop, connection, at);
        at = stop + 1;
    }
    connection->length = (size_t)(end - at);
    memmove(connection->input, at, connection->length);
}

static void resume(struct loop *loop, struct connection *connection)
{
    uint64_t expirations;
    if (read(connection->timer, &expirations, sizeof expirations) != sizeof expirations)
        return;
    otel_span_end_unless_shorter(connection->phase, SLOW_NS);
    connection->is_suspended = false;
    watch(loop, connection, connection->client, connection->timer);
    finish(connection);
    run_commands(loop, connection); /* what came behind it */
}

/* Spans that are left in it end too: the inner one first. */
static void close_connection(struct loop *loop, struct connection *connection, const char *why)
{
    struct connection **link = &loop->connections;
    if (connection->is_suspended) {
        otel_span_end_unless_shorter(connection->phase, SLOW_NS);
        otel_span_fail(connection->span, why);
        otel_span_end(connection->span);
    }
    while (*link != connection)
        link = &(*link)->next;
    *link = connection->next;
    close(connection->timer);
    close(connection->client);
    free(connection);
}

static void accept_one(struct loop *loop)
{
    const int client = accept(listener, NULL, NULL);
    struct connection *connection = client >= 0 ? calloc(1, sizeof *connection) : NULL;
    if (connection == NULL)
        return; /* another loop was faster */
    connection->client = client;
    connection->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    connection->next = loop->connections;
    loop->connections = connection;
    watch(loop, connection, client, -1);
}

static void read_commands(struct loop *loop, struct connection *connection)
{
    char *const end = connection->input + connection->length;
    const ssize_t length = recv(connection->client, end, ROOM - connection->length, 0);
    connection->length += length > 0 ? (size_t)length : 0;
    if (length > 0)
        run_commands(loop, connection);
    else /* also where it sends more than there is room for */
        close_connection(loop, connection, "the client has gone");
}

static void *run_loop(void *argument)
{
    struct loop *loop = argument;
    struct epoll_event events[EVENTS];
    for (;;) {
        const int count = epoll_wait(loop->epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (events[i].data.ptr == &stopper)
                return NULL;
            if (events[i].data.ptr == &listener)
                accept_one(loop);
            else if (connection->is_suspended)
                resume(loop, connection);
            else
                read_commands(loop, connection);
        }
    }
}

static bool start_loop(struct loop *loop)
{
    struct epoll_event new_client = {.events = EPOLLIN, .data.ptr = &listener};
    struct epoll_event stop = {.events = EPOLLIN, .data.ptr = &stopper};
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, listener, &new_client) == 0 &&
           epoll_ctl(loop->epoll, EPOLL_CTL_ADD, stopper, &stop) == 0 &&
           pthread_create(&loop->thread, NULL, run_loop, loop) == 0;
}

/* In this order: stop and join the loops, end what is left in connections, shut down. */
static otel_status stop(struct loop *loops)
{
    const uint64_t one = 1;
    (void)!write(stopper, &one, sizeof one); /* nobody reads it, so every loop sees it */
    for (struct loop *loop = loops; loop < loops + LOOPS; loop++)
        pthread_join(loop->thread, NULL);
    for (struct loop *loop = loops; loop < loops + LOOPS; loop++)
        while (loop->connections != NULL)
            close_connection(loop, loop->connections, "the server ends");
    return otel_shutdown(5000);
}

/* Send commands, wait for so many answers, and keep the connection. */
static bool ask(const struct sockaddr_in *address, const char *commands, int answers)
{
    char byte;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 ||
        send(fd, commands, strlen(commands), 0) < 0)
        return false;
    while (answers > 0 && recv(fd, &byte, 1, 0) == 1)
        answers -= byte == '\n';
    return answers == 0;
}

int main(int argc, char **argv)
{
    const long clients = argc > 1 ? strtol(argv[1], NULL, 10) : 3;
    struct sockaddr_in address = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
    socklen_t size = sizeof address;
    struct loop loops[LOOPS] = {0};
    signal(SIGPIPE, SIG_IGN); /* dprintf to a client that has gone */
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    stopper = eventfd(0, EFD_CLOEXEC);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        otel_start(OTEL_SDK_OPTIONS(.service_name = "event-loops")) != OTEL_OK)
        return 1;
    tracer = otel_tracer_get("example.event_loops", "1.0");
    for (int i = 0; i < LOOPS; i++)
        if (!start_loop(&loops[i]))
            return 1;
    bool is_good = true;
    for (long i = 0; i < clients; i++)
        is_good &= ask(&address, "get a\nload b 20\nget c\n", 3);
    is_good &= ask(&address, "get a\nload b 60000\n", 1); /* one of them is never answered */
    const otel_status status = stop(loops);

    otel_stats stats = {.size = sizeof stats};
    if (otel_stats_read(0, &stats) == OTEL_OK)
        printf("%d spans open, %d lost\n", (int)stats.open,
               (int)(stats.ended - stats.delivered - stats.withheld[OTEL_WITHHELD_TOO_SHORT]));
    return is_good && status == OTEL_OK ? 0 : 1;
}
