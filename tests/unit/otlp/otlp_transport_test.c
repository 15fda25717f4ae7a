/* SPDX-License-Identifier: Apache-2.0 */
/* What an exporter that lives inside somebody else's process owes it: descriptors, fork, signals
 * and threads; and what options turn into on the wire. That it leaves the environment alone is in
 * tests/integration/no_environment_test.c. */
#include "common/os/signal_guard.h"
#include "exporters/otlp/transport/epoll_set.h"
#include "exporters/otlp/transport/socket.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static struct fixture fixture;

AROUND_EACH(NULL, fixture_end);

/* The next socket from `fd` on whose peer is the receiver; -1: none. */
static int connected_socket(int fd, const struct http_sink *sink)
{
    for (; fd < 256; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == http_sink_port(sink))
            return fd;
    }
    return -1;
}

TEST(options_turn_into_headers)
{
    static const otel_otlp_header headers[] = {
        {"X-Tenant", "a%20b"}, {"X-Empty", ""}, {"content-type", "text/plain"}, {"X-Tab", "a\tb"}};
    char value[128];
    fixture_init(
        &fixture, NULL, 0,
        OPTIONS(.headers = headers, .header_count = COUNT(headers), .user_agent = "shop/2"));

    fixture_deliver(&fixture);

    const struct http_sink_request *request = http_sink_request(fixture.sink, 0);
    assert_string_equal(http_sink_header(request, "User-Agent", value, sizeof value),
                        "shop/2 OTel-OTLP-Exporter-C/" OTEL_VERSION);
    assert_string_equal(http_sink_header(request, "X-Tenant", value, sizeof value), "a%20b");
    assert_string_equal(http_sink_header(request, "X-Tab", value, sizeof value), "a\tb");
    assert_non_null(strstr(request->head, "\r\nX-Empty:\r\n"));
    assert_non_null(strstr(request->head, "\r\nContent-Type: application/x-protobuf\r\n"));
    assert_null(strstr(request->head, "text/plain"));
    assert_non_null(strstr(fixture.log, "content-type is set by the OTLP exporter itself"));
}

/* In a child: 0, or the number of the step that failed. */
static int export_in_child(void)
{
    const int parents = connected_socket(0, fixture.sink);
    fixture.exporter.wake(fixture.exporter.state);
    fixture_deliver(&fixture);
    if (export_double_lost(&fixture.call) != 0)
        return 1;
    const int own = connected_socket(0, fixture.sink);
    if (connected_socket(own + 1, fixture.sink) != -1)
        return 2; /* the parent's connection is still open here */

    /* A daemon closes what it does not know, and opens its own in those places. */
    int victim[2];
    char byte;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, victim) != 0 || dup2(victim[0], own) != own)
        return 3;
    close(victim[0]);
    fixture_deliver(&fixture);
    if (export_double_lost(&fixture.call) != 0)
        return 4;
    fixture.exporter.free(fixture.exporter.state);
    if (recv(victim[1], &byte, 1, MSG_DONTWAIT) != -1 || errno != EAGAIN)
        return 5; /* it was written to, or closed */
    return parents >= 0 ? 0 : 6;
}

TEST(a_child_leaves_the_parents_connection_alone)
{
    int status;
    fixture_init(&fixture, NULL, 0, NULL);
    fixture_deliver(&fixture);

    const pid_t child = fork();
    if (child == 0)
        _exit(export_in_child());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(fixture.sink), 4);
    assert_int_equal(http_sink_connections(fixture.sink), 3);
    assert_int_equal(http_sink_request(fixture.sink, 3)->connection, 1);
}

/* ::1 and 127.0.0.1 for "two-addresses.invalid". */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    static struct sockaddr_in6 first = {.sin6_family = AF_INET6,
                                        .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    static struct sockaddr_in second = {.sin_family = AF_INET};
    static struct addrinfo second_of = {.ai_family = AF_INET,
                                        .ai_socktype = SOCK_STREAM,
                                        .ai_addr = (struct sockaddr *)&second,
                                        .ai_addrlen = sizeof second};
    static struct addrinfo first_of = {.ai_family = AF_INET6,
                                       .ai_socktype = SOCK_STREAM,
                                       .ai_addr = (struct sockaddr *)&first,
                                       .ai_addrlen = sizeof first,
                                       .ai_next = &second_of};
    (void)hints;
    if (strcmp(name, "two-addresses.invalid") != 0)
        return EAI_NONAME;
    first.sin6_port = second.sin_port = htons((uint16_t)atoi(service));
    second.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *result = &first_of;
    return 0;
}

void freeaddrinfo(struct addrinfo *result)
{
    (void)result;
}

/* Connections that nobody accepts, until one more takes for ever. */
static void fill_ipv6_backlog(uint16_t port, int fds[6])
{
    const struct sockaddr_in6 address = {
        .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port)};
    for (int i = 0; i < 6; i++) {
        fds[i] = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)(i == 0 && bind(fds[0], (const struct sockaddr *)&address, sizeof address) == 0 &&
               listen(fds[0], 0));
        if (i != 0)
            (void)connect(fds[i], (const struct sockaddr *)&address, sizeof address);
    }
}

/* Some versions of libcurl close the slower of two attempts without saying so. */
TEST(an_address_that_leads_nowhere_is_no_hindrance)
{
    struct http_sink *sink = http_sink_start(NULL, 0);
    char endpoint[64];
    int fds[6];
    snprintf(endpoint, sizeof endpoint, "http://two-addresses.invalid:%u/",
             (unsigned)http_sink_port(sink));
    fill_ipv6_backlog(http_sink_port(sink), fds);
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = endpoint));

    for (int i = 0; i < 3; i++) {
        fixture_deliver(&fixture);
        assert_all_delivered(&fixture);
    }

    assert_string_equal(fixture.log, "");
    assert_int_equal(http_sink_connections(sink), 1);
    http_sink_stop(sink);
    fixture_fini(&fixture);
    for (int i = 0; i < 6; i++)
        close(fds[i]);
}

static bool sigpipe_is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

/* SIGPIPE's disposition is the default here: it would end this program. */
TEST(a_broken_pipe_in_a_guard_goes_unnoticed)
{
    sigset_t mask;

    struct oteli_signal_guard guard;
    oteli_signal_guard_begin(&guard);
    pthread_kill(pthread_self(), SIGPIPE);
    assert_true(sigpipe_is_pending());
    oteli_signal_guard_end(&guard, EPIPE);

    assert_false(sigpipe_is_pending());
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    assert_int_equal(sigismember(&mask, SIGPIPE), 0);
}

TEST(a_sigpipe_of_the_program_is_not_taken_away)
{
    sigset_t sigpipe;
    sigset_t before;
    int number;
    sigemptyset(&sigpipe);
    sigaddset(&sigpipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
    pthread_kill(pthread_self(), SIGPIPE);

    struct oteli_signal_guard guard;
    oteli_signal_guard_begin(&guard);
    oteli_signal_guard_end(&guard, EPIPE);

    assert_true(sigpipe_is_pending());
    sigwait(&sigpipe, &number);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void *make_and_free(void *state)
{
    for (int i = 0; i < 20; i++) {
        otel_exporter exporter;
        if (otel_otlp_exporter_new(NULL, &exporter) != OTEL_OK)
            return state;
        exporter.wake(exporter.state);
        exporter.free(exporter.state);
    }
    return NULL;
}

TEST(exporters_come_and_go_on_many_threads)
{
    pthread_t threads[16];
    for (size_t i = 0; i < COUNT(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_and_free, &fixture), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

/* ---- sockets ---- */

static bool is_closed_on_exec(int fd)
{
    const int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) != 0;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static void make_pair(int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
}

static void close_pair(const int pair[2])
{
    close(pair[0]);
    close(pair[1]);
}

TEST(a_socket_never_waits_is_closed_on_exec_and_ours_until_closed)
{
    struct oteli_sockets sockets;
    oteli_sockets_init(&sockets);

    const int fd = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);

    assert_true(is_closed_on_exec(fd));
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true(oteli_sockets_are_ours(&sockets));
    assert_int_equal(oteli_sockets_close(&sockets, fd), 0);
    assert_false(is_open(fd));
    assert_true(oteli_sockets_are_ours(&sockets));
}

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd event = {.fd = fd, .events = POLLIN};
    return poll(&event, 1, timeout_ms) == 1;
}

TEST(small_pieces_are_held_until_they_are_let_go)
{
    struct oteli_sockets sockets;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
    oteli_sockets_init(&sockets);
    const int fd = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);
    (void)connect(fd, (const struct sockaddr *)&address, length);
    const int peer = accept(listener, NULL, NULL);

    oteli_sockets_cork(&sockets, true);
    assert_int_equal(send(fd, "a", 1, 0), 1);
    assert_int_equal(send(fd, "b", 1, 0), 1);
    const bool was_held = !is_readable(peer, 0);
    oteli_sockets_cork(&sockets, false);

    assert_true(was_held);
    assert_true(is_readable(peer, -1));
    close(peer);
    close(listener);
    oteli_sockets_close_all(&sockets);
}

TEST(a_number_taken_over_by_another_socket_is_left_alone)
{
    struct oteli_sockets sockets;
    int other[2];
    oteli_sockets_init(&sockets);
    const int fd = oteli_sockets_open(&sockets, AF_INET, SOCK_STREAM, 0);
    make_pair(other);

    assert_int_equal(dup2(other[0], fd), fd);

    assert_false(oteli_sockets_are_ours(&sockets));
    assert_int_equal(oteli_sockets_close(&sockets, fd), 0);
    assert_true(is_open(fd));
    close(fd);
    close_pair(other);
}

TEST(a_pair_is_connected_and_never_blocks)
{
    struct oteli_sockets sockets;
    int pair[2];
    char byte = 0;
    oteli_sockets_init(&sockets);

    oteli_sockets_open_pair(&sockets, pair);

    assert_true(is_closed_on_exec(pair[0]) && is_closed_on_exec(pair[1]));
    assert_int_equal(recv(pair[0], &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(send(pair[1], "!", 1, 0), 1);
    assert_int_equal(recv(pair[0], &byte, 1, 0), 1);
    assert_true(oteli_socket_is(pair[1], oteli_socket_inode(pair[1])));
    assert_false(oteli_socket_is(pair[1], oteli_socket_inode(pair[0])));
    oteli_sockets_close_all(&sockets);
    assert_false(is_open(pair[0]) || is_open(pair[1]));
}

/* As curl_multi_wakeup does it. */
static void wake_up(int fd)
{
    for (int i = 0; i < OTELI_PAIR_BYTES; i++)
        assert_int_equal(send(fd, "!", 1, 0), 1);
}

/* Between idle pairs and busy ones of the program's. */
TEST(the_pair_through_which_the_bytes_went_is_adopted)
{
    struct oteli_sockets sockets;
    struct oteli_pair_search search;
    int idle[2];
    int busy[2];
    int wanted[2];
    oteli_sockets_init(&sockets);
    make_pair(idle);
    make_pair(busy);
    make_pair(wanted);
    assert_int_equal(send(busy[1], "!", 1, 0), 1);

    assert_true(oteli_pair_search_begin(&search));
    wake_up(wanted[1]);
    oteli_pair_search_end(&search, &sockets);

    assert_true(is_closed_on_exec(wanted[0]) && is_closed_on_exec(wanted[1]));
    assert_false(is_closed_on_exec(idle[0]) || is_closed_on_exec(idle[1]));
    assert_false(is_closed_on_exec(busy[0]) || is_closed_on_exec(busy[1]));
    oteli_sockets_close_all(&sockets);
    assert_false(is_open(wanted[0]) || is_open(wanted[1]));
    close_pair(idle);
    close_pair(busy);
}

TEST(as_many_bytes_of_a_message_are_no_wakeups)
{
    struct oteli_sockets sockets;
    struct oteli_pair_search search;
    int programs[2];
    oteli_sockets_init(&sockets);
    make_pair(programs);

    assert_true(oteli_pair_search_begin(&search));
    assert_int_equal(send(programs[1], "abcdefghijklmnop", OTELI_PAIR_BYTES, 0), OTELI_PAIR_BYTES);

    oteli_pair_search_end(&search, &sockets);
    assert_false(is_closed_on_exec(programs[0]) || is_closed_on_exec(programs[1]));
    close_pair(programs);
}

/* As where curl has no pair, and another thread of the program uses one. */
TEST(a_pair_through_which_other_bytes_went_is_left_alone)
{
    struct oteli_sockets sockets;
    struct oteli_pair_search search;
    int programs[2];
    oteli_sockets_init(&sockets);
    make_pair(programs);

    assert_true(oteli_pair_search_begin(&search));
    assert_int_equal(send(programs[1], "!", 1, 0), 1);
    oteli_pair_search_end(&search, &sockets);

    oteli_sockets_close_all(&sockets);
    assert_true(is_open(programs[0]) && is_open(programs[1]));
    assert_false(is_closed_on_exec(programs[0]) || is_closed_on_exec(programs[1]));
    close_pair(programs);
}

TEST(nothing_is_adopted_when_it_could_be_either)
{
    struct oteli_sockets sockets;
    struct oteli_pair_search search;
    int one[2];
    int other[2];
    oteli_sockets_init(&sockets);
    make_pair(one);
    make_pair(other);

    assert_true(oteli_pair_search_begin(&search));
    wake_up(one[1]);
    wake_up(other[1]);
    oteli_pair_search_end(&search, &sockets);

    assert_false(is_closed_on_exec(one[0]) || is_closed_on_exec(other[1]));
    close_pair(one);
    close_pair(other);
}

/* A set of a waker and a connected pair, in whose first end a byte waits. */
struct watched {
    struct oteli_sockets sockets;
    struct oteli_epoll_set set;
    int connection[2];
};

static void watch_begin(struct watched *watched)
{
    int waker[2];
    oteli_sockets_init(&watched->sockets);
    oteli_sockets_open_pair(&watched->sockets, waker);
    make_pair(watched->connection);
    assert_true(oteli_epoll_set_open(&watched->set, waker));
    assert_int_equal(send(watched->connection[1], "!", 1, 0), 1);
}

static void watch_end(struct watched *watched)
{
    close_pair(watched->connection);
    oteli_epoll_set_close(&watched->set);
    oteli_sockets_close_all(&watched->sockets);
}

TEST(a_connection_stays_in_the_set_until_it_is_settled)
{
    struct watched watched;
    watch_begin(&watched);
    assert_true(oteli_epoll_set_socket(&watched.set, watched.connection[0], true, false));

    oteli_epoll_set_keep(&watched.set, watched.connection[0]);
    const bool is_kept = is_readable(watched.set.fd, 0);
    oteli_epoll_set_settle(&watched.set);

    assert_true(is_kept);
    assert_false(is_readable(watched.set.fd, 0));
    assert_true(oteli_epoll_set_socket(&watched.set, watched.connection[0], true, false));
    assert_true(is_readable(watched.set.fd, 0));
    watch_end(&watched);
}

TEST(a_connection_that_was_written_to_is_not_kept)
{
    struct watched watched;
    watch_begin(&watched);
    assert_true(oteli_epoll_set_socket(&watched.set, watched.connection[0], true, true));

    oteli_epoll_set_keep(&watched.set, watched.connection[0]);

    assert_false(is_readable(watched.set.fd, 0));
    watch_end(&watched);
}

TEST(a_wait_says_whether_nothing_but_the_connection_has_ended_it)
{
    struct watched watched;
    watch_begin(&watched);
    oteli_epoll_set_arm(&watched.set, true);
    assert_true(oteli_epoll_set_socket(&watched.set, watched.connection[0], true, false));
    assert_int_equal(oteli_epoll_set_wait(&watched.set, 0), 1);

    assert_int_equal(send(watched.set.waker[1], "", 1, 0), 1);

    assert_int_equal(oteli_epoll_set_wait(&watched.set, 0), 0);
    watch_end(&watched);
}

TEST(a_set_of_the_program_in_its_place_says_nothing)
{
    struct watched watched;
    watch_begin(&watched);
    assert_true(oteli_epoll_set_socket(&watched.set, watched.connection[0], true, false));
    const int others = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = watched.connection[0]};
    assert_int_equal(epoll_ctl(others, EPOLL_CTL_ADD, watched.connection[0], &event), 0);
    assert_int_equal(dup2(others, watched.set.fd), watched.set.fd);
    const int number = watched.set.fd;

    assert_int_equal(oteli_epoll_set_wait(&watched.set, 0), 0);

    watch_end(&watched);
    close(number);
    close(others);
}

TEST(another_connection_with_the_number_of_a_kept_one_is_watched)
{
    struct watched watched;
    int later[2];
    watch_begin(&watched);
    make_pair(later);
    assert_true(oteli_epoll_set_socket(&watched.set, watched.connection[0], true, false));
    oteli_epoll_set_keep(&watched.set, watched.connection[0]);
    assert_int_equal(dup2(later[0], watched.connection[0]), watched.connection[0]);
    assert_false(is_readable(watched.set.fd, 0));

    assert_true(oteli_epoll_set_socket(&watched.set, watched.connection[0], true, false));

    assert_int_equal(send(later[1], "!", 1, 0), 1);
    assert_true(is_readable(watched.set.fd, 0));
    close_pair(later);
    watch_end(&watched);
}
