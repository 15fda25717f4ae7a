/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child's OTLP exporter: the same settings, a connection of its own, and not a byte
 * on the parent's, whatever the parent was in the middle of. The test is the receiver, so
 * that it can say when the parent's request is answered. */
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

static struct fixture fixture;

AROUND_EACH(NULL, fixture_end);

enum { WAIT_MS = 60000, TURNS_MAX = 60000 };

static const char fine[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

struct receiver {
    int listener;
    char url[64];
};

static struct receiver receiver_start(const char *scheme)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    struct receiver receiver = {.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_int_equal(bind(receiver.listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(receiver.listener, 8), 0);
    assert_int_equal(getsockname(receiver.listener, (struct sockaddr *)&address, &length), 0);
    snprintf(receiver.url, sizeof receiver.url, "%s://127.0.0.1:%u/", scheme,
             (unsigned)ntohs(address.sin_port));
    return receiver;
}

static int receiver_accept(const struct receiver *receiver)
{
    struct pollfd polled = {.fd = receiver->listener, .events = POLLIN};
    assert_int_equal(poll(&polled, 1, WAIT_MS), 1);
    return accept4(receiver->listener, NULL, NULL, SOCK_CLOEXEC);
}

/* Read until the text ends with `end`. */
static void receive(int connection, char *text, size_t size, const char *end)
{
    size_t length = 0;
    text[0] = '\0';
    while (length < strlen(end) || memcmp(text + length - strlen(end), end, strlen(end)) != 0) {
        const ssize_t got = recv(connection, text + length, size - 1 - length, 0);
        assert_true(got > 0);
        length += (size_t)got;
        text[length] = '\0';
    }
}

/* Neither bytes nor an end. */
static void assert_silent(int connection)
{
    char byte;
    assert_int_equal(recv(connection, &byte, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
}

/* Let the parent's exporter and the test take turns until the receiver has a connection. */
static int connect_parent(const struct receiver *receiver)
{
    struct pollfd polled = {.fd = receiver->listener, .events = POLLIN};
    assert_false(fixture_export(&fixture));
    for (int i = 0; i < TURNS_MAX && poll(&polled, 1, 0) == 0; i++)
        (void)fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 1, false);
    const int connection = receiver_accept(receiver);
    struct pollfd arrives = {.fd = connection, .events = POLLIN};
    for (int i = 0; i < TURNS_MAX && poll(&arrives, 1, 0) == 0; i++)
        (void)fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 1, false);
    return connection;
}

/* Whether this process has a connection to whom the other end of this one belongs to. */
static bool has_connection_to(const struct receiver *receiver)
{
    struct sockaddr_in listens = {0};
    struct sockaddr_in peer = {0};
    socklen_t length = sizeof listens;
    (void)getsockname(receiver->listener, (struct sockaddr *)&listens, &length);
    for (int fd = 0; fd < 256; fd++) {
        length = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET &&
            peer.sin_port == listens.sin_port)
            return true;
    }
    return false;
}

/* Make the exporter of the fixture the child's. 0, or the number of the step that failed. */
static int renew_in_child(const struct receiver *receiver, int descriptor)
{
    otel_exporter renewed;
    int timeout_ms;
    if (fixture.exporter.renew(fixture.exporter.state, &renewed) != OTEL_OK)
        return 1;
    fixture.exporter = renewed;
    if (has_connection_to(receiver))
        return 2; /* would stay when the parent dies */
    if (descriptor != -1 && fcntl(descriptor, F_GETFD) != -1)
        return 3;
    return renewed.descriptor(renewed.state, &timeout_ms) == -1 && timeout_ms == -1 ? 0 : 4;
}

static void wait_for(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* What a child sends, while the parent waits for its answer. */
static int export_in_child(const struct receiver *receiver, int descriptor)
{
    const int failed = renew_in_child(receiver, descriptor);
    if (failed != 0)
        return failed;
    fixture.batch.spans[2].bytes[2] = 'T'; /* three; the parent's begins with t */
    fixture_deliver(&fixture);
    if (export_double_lost(&fixture.call) != 0)
        return 5;
    fixture_deliver(&fixture);
    if (export_double_lost(&fixture.call) != 0)
        return 6;
    fixture.exporter.free(fixture.exporter.state);
    return 0;
}

/* Whether or not an event loop watches the parent. */
static void forked_in_the_middle_of_a_request(bool is_watched)
{
    char text[4096];
    const struct receiver receiver = receiver_start("http");
    int timeout_ms;
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = receiver.url, .timeout_ms = OTEL_ZERO));
    const int parents = connect_parent(&receiver);
    const int descriptor =
        is_watched ? fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms) : -1;
    receive(parents, text, sizeof text, "three");

    const pid_t child = fork();
    if (child == 0)
        _exit(export_in_child(&receiver, descriptor));
    const int childs = receiver_accept(&receiver);
    for (int i = 0; i < 2; i++) {
        receive(childs, text, sizeof text, "Three");
        assert_int_equal(send(childs, fine, sizeof fine - 1, 0), (ssize_t)sizeof fine - 1);
    }
    wait_for(child);

    assert_silent(parents);
    assert_false(fixture_step(&fixture));
    assert_int_equal(send(parents, fine, sizeof fine - 1, 0), (ssize_t)sizeof fine - 1);
    if (is_watched) {
        struct pollfd polled = {.fd = descriptor, .events = POLLIN};
        assert_int_equal(poll(&polled, 1, WAIT_MS), 1);
    }
    fixture_finish(&fixture);
    assert_all_delivered(&fixture);
    assert_silent(parents); /* the connection is kept */
    fixture_fini(&fixture);
    close(parents);
    close(childs);
    close(receiver.listener);
}

TEST(a_child_exports_while_the_parents_request_is_pending)
{
    forked_in_the_middle_of_a_request(false);
    forked_in_the_middle_of_a_request(true);
}

/* TLS libraries say goodbye when a connection is given up: not here. */
TEST(a_child_of_a_parent_in_a_tls_handshake)
{
    char text[8192];
    const struct receiver receiver = receiver_start("https");
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = receiver.url, .timeout_ms = OTEL_ZERO));
    const int parents = connect_parent(&receiver);
    assert_true(recv(parents, text, sizeof text, 0) > 0);

    const pid_t child = fork();
    if (child == 0) {
        int failed = renew_in_child(&receiver, -1);
        const bool is_done = fixture_export(&fixture);
        while (failed == 0 && !is_done && !has_connection_to(&receiver))
            (void)fixture_step(&fixture);
        fixture.exporter.poll(fixture.exporter.state, &fixture.call.export, 0, true);
        fixture.exporter.free(fixture.exporter.state);
        _exit(failed);
    }
    const int childs = receiver_accept(&receiver);
    wait_for(child);

    assert_silent(parents);
    assert_false(fixture_step(&fixture));
    fixture_fini(&fixture);
    close(parents);
    close(childs);
    close(receiver.listener);
}

/* The program has opened its own in the places of ours before it asks. */
TEST(what_is_not_the_parents_is_not_closed)
{
    int timeout_ms;
    fixture_init(&fixture, NULL, 0, NULL);
    const int descriptor = fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms);
    fixture_deliver(&fixture);

    const pid_t child = fork();
    if (child == 0) {
        otel_exporter renewed;
        for (int fd = 3; fd <= descriptor; fd++)
            (void)dup2(STDERR_FILENO, fd);
        bool is_open = fixture.exporter.renew(fixture.exporter.state, &renewed) == OTEL_OK;
        for (int fd = 3; fd <= descriptor; fd++)
            is_open = is_open && fcntl(fd, F_GETFD) != -1;
        _exit(is_open ? 0 : 1);
    }
    wait_for(child);

    fixture_deliver(&fixture);
    assert_int_equal(http_sink_connections(fixture.sink), 1);
}

TEST(it_has_the_same_proxy)
{
    struct http_sink *proxy = http_sink_start(NULL, 0);
    otel_exporter renewed;
    setenv("http_proxy", http_sink_url(proxy), 1);
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = "http://collector.invalid:4318/v1/traces"));
    unsetenv("http_proxy");
    assert_int_equal(fixture.exporter.renew(fixture.exporter.state, &renewed), OTEL_OK);
    fixture.exporter.free(fixture.exporter.state);
    fixture.exporter = renewed;

    fixture_deliver(&fixture);

    assert_all_delivered(&fixture);
    assert_int_equal(http_sink_requests(proxy), 1);
    http_sink_stop(proxy);
}
