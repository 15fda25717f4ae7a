/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child's OTLP exporter: the same settings, a connection of its own, and not a byte
 * on the parent's, whatever the parent was in the middle of. The test is the receiver, so
 * that it can say when the parent's request is answered. */
#include "tests/support/leaks.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)

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
static int connect_parent(struct fixture *fixture, const struct receiver *receiver)
{
    struct pollfd polled = {.fd = receiver->listener, .events = POLLIN};
    assert_false(fixture_export(fixture));
    for (int i = 0; i < TURNS_MAX && poll(&polled, 1, 0) == 0; i++)
        (void)fixture->exporter.poll(fixture->exporter.state, &fixture->call.export, 1, false);
    const int connection = receiver_accept(receiver);
    struct pollfd arrives = {.fd = connection, .events = POLLIN};
    for (int i = 0; i < TURNS_MAX && poll(&arrives, 1, 0) == 0; i++)
        (void)fixture->exporter.poll(fixture->exporter.state, &fixture->call.export, 1, false);
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
static int renew_in_child(struct fixture *fixture, const struct receiver *receiver, int descriptor)
{
    otel_exporter renewed;
    int timeout_ms;
    if (fixture->exporter.renew(fixture->exporter.state, &renewed) != OTEL_OK)
        return 1;
    fixture->exporter = renewed;
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
static int export_in_child(struct fixture *fixture, const struct receiver *receiver, int descriptor)
{
    const int failed = renew_in_child(fixture, receiver, descriptor);
    if (failed != 0)
        return failed;
    fixture->batch.spans[2].bytes[2] = 'T'; /* three; the parent's begins with t */
    fixture_deliver(fixture);
    if (export_double_lost(&fixture->call) != 0)
        return 5;
    fixture_deliver(fixture);
    if (export_double_lost(&fixture->call) != 0)
        return 6;
    fixture->exporter.free(fixture->exporter.state);
    return 0;
}

static void forked_in_the_middle_of_a_request(bool is_watched)
{
    char text[4096];
    struct fixture fixture;
    const struct receiver receiver = receiver_start("http");
    int timeout_ms;
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = receiver.url, .timeout_ms = OTEL_ZERO));
    const int parents = connect_parent(&fixture, &receiver);
    const int descriptor =
        is_watched ? fixture.exporter.descriptor(fixture.exporter.state, &timeout_ms) : -1;
    receive(parents, text, sizeof text, "three");

    const pid_t child = fork();
    if (child == 0)
        _exit(export_in_child(&fixture, &receiver, descriptor));
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
}

TEST(a_child_of_a_parent_with_a_descriptor)
{
    forked_in_the_middle_of_a_request(true);
}

/* More than the sockets take: the parent is still sending. */
TEST(a_child_of_a_parent_that_is_sending)
{
    enum { SPAN_BYTES = 16 * 1024 * 1024 };
    char text[4096];
    struct fixture fixture;
    const struct receiver receiver = receiver_start("http");
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = receiver.url, .timeout_ms = OTEL_ZERO));
    const struct batch_double small = fixture.batch;
    struct batch_double large = {.resource = small.resource};
    char *span = malloc(SPAN_BYTES);
    memset(span, 'p', SPAN_BYTES);
    memcpy(span + SPAN_BYTES - 8, "the end!", 8);
    batch_double_add(&large, small.spans[0].scope, span, SPAN_BYTES);
    free(span);
    fixture.batch = large;
    const int parents = connect_parent(&fixture, &receiver);

    const pid_t child = fork();
    if (child == 0) {
        fixture.batch = small;
        _exit(export_in_child(&fixture, &receiver, -1));
    }
    const int childs = receiver_accept(&receiver);
    for (int i = 0; i < 2; i++) {
        receive(childs, text, sizeof text, "Three");
        assert_int_equal(send(childs, fine, sizeof fine - 1, 0), (ssize_t)sizeof fine - 1);
    }
    wait_for(child);

    char *got = malloc(SPAN_BYTES + sizeof text);
    size_t length = 0;
    while (length < 8 || memcmp(got + length - 8, "the end!", 8) != 0) {
        assert_false(fixture_step(&fixture));
        const ssize_t more =
            recv(parents, got + length, SPAN_BYTES + sizeof text - length, MSG_DONTWAIT);
        assert_true(more > 0 || (more < 0 && errno == EAGAIN));
        length += more > 0 ? (size_t)more : 0;
    }
    const size_t begin = length - SPAN_BYTES;
    for (size_t i = begin; i < length - 8; i++)
        assert_true(got[i] == 'p');
    free(got);
    assert_int_equal(send(parents, fine, sizeof fine - 1, 0), (ssize_t)sizeof fine - 1);
    fixture_finish(&fixture);
    assert_all_delivered(&fixture);
    batch_double_fini(&large);
    fixture.batch = small;
    fixture_fini(&fixture);
    close(parents);
    close(childs);
    close(receiver.listener);
}

/* TLS libraries say goodbye when a connection is given up: not here. */
TEST(a_child_of_a_parent_in_a_tls_handshake)
{
    char text[8192];
    struct fixture fixture;
    const struct receiver receiver = receiver_start("https");
    fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = receiver.url, .timeout_ms = OTEL_ZERO));
    const int parents = connect_parent(&fixture, &receiver);
    assert_true(recv(parents, text, sizeof text, 0) > 0);

    const pid_t child = fork();
    if (child == 0) {
        int failed = renew_in_child(&fixture, &receiver, -1);
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

/* 0, or the number of the step that failed. */
static int descend(struct fixture *fixture, int generations)
{
    otel_exporter renewed;
    int status = 0;
    if (fixture->exporter.renew(fixture->exporter.state, &renewed) != OTEL_OK)
        return 1;
    fixture->exporter = renewed;
    const pid_t child = generations > 1 ? fork() : -1;
    if (child == 0)
        _exit(descend(fixture, generations - 1));
    if (child > 0 && (waitpid(child, &status, 0) != child || status != 0))
        return 2;
    fixture_deliver(fixture);
    renewed.free(renewed.state);
    return export_double_lost(&fixture->call) == 0 ? 0 : 3;
}

TEST(children_have_children)
{
    struct fixture fixture;
    fixture_init(&fixture, NULL, 0, NULL);
    fixture_deliver(&fixture);

    const pid_t child = fork();
    if (child == 0)
        _exit(descend(&fixture, 3));
    wait_for(child);
    fixture_deliver(&fixture);

    assert_int_equal(http_sink_requests(fixture.sink), 5);
    assert_int_equal(http_sink_connections(fixture.sink), 4);
    assert_int_equal(http_sink_request(fixture.sink, 4)->connection, 1);
    fixture_fini(&fixture);
}

/* The program has opened its own in the places of ours before it asks. */
TEST(what_is_not_the_parents_is_not_closed)
{
    struct fixture fixture;
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
    fixture_fini(&fixture);
}

/* In the same process, where nothing of the first one may be closed either. */
TEST(it_has_the_same_settings)
{
    static const otel_otlp_header headers[] = {{"X-Tenant", "a%20b"}, {"X-Empty", ""}};
    struct fixture fixture;
    otel_exporter renewed;
    fixture_init(&fixture, NULL, 0,
                 OPTIONS(.headers = headers, .header_count = 2, .user_agent = "shop/2",
                         .max_request_bytes = 30, .timeout_ms = 60000));
    fixture_deliver(&fixture);
    const otel_exporter first = fixture.exporter;

    assert_int_equal(first.renew(first.state, &renewed), OTEL_OK);
    fixture.exporter = renewed;
    fixture_deliver(&fixture);
    fixture.exporter = first;
    fixture_deliver(&fixture);

    assert_int_equal(http_sink_requests(fixture.sink), 6); /* each in two parts */
    assert_int_equal(http_sink_connections(fixture.sink), 2);
    assert_string_equal(http_sink_request(fixture.sink, 2)->head,
                        http_sink_request(fixture.sink, 0)->head);
    assert_int_equal(http_sink_request(fixture.sink, 4)->connection, 1);
    assert_string_equal(renewed.name, first.name);
    fixture.exporter.free(renewed.state);
    fixture_fini(&fixture);
}

TEST(it_has_the_same_timeout)
{
    static const struct http_sink_answer script[] = {{.then = HTTP_SINK_HANG}};
    struct fixture fixture;
    otel_exporter renewed;
    fixture_init(&fixture, script, 1, OPTIONS(.timeout_ms = 60000));
    assert_int_equal(fixture.exporter.renew(fixture.exporter.state, &renewed), OTEL_OK);
    fixture.exporter.free(fixture.exporter.state);
    fixture.exporter = renewed;
    assert_false(fixture_export(&fixture));
    while (http_sink_requests(fixture.sink) == 0)
        assert_false(fixture_step(&fixture));

    fixture_advance_ms(59999);
    assert_false(fixture_step(&fixture));
    fixture_advance_ms(1);
    assert_true(fixture_step(&fixture));

    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
    fixture_fini(&fixture);
}

TEST(it_has_the_same_proxy)
{
    struct http_sink *proxy = http_sink_start(NULL, 0);
    struct fixture fixture;
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
    fixture_fini(&fixture);
}

TEST(no_memory_is_an_error_and_no_leak)
{
    static const otel_otlp_header header = {"X", "1"};
    otel_exporter exporter;
    assert_int_equal(
        otel_otlp_exporter_new(OPTIONS(.headers = &header, .header_count = 1), &exporter), OTEL_OK);
    for (size_t nth = 1;; nth++) {
        otel_exporter renewed;
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        const otel_status status = exporter.renew(exporter.state, &renewed);
        const bool all_tried = !oteli_leaks_failed();
        assert_int_equal(status, all_tried ? OTEL_OK : OTEL_ERROR_NO_MEMORY);
        if (status == OTEL_OK)
            renewed.free(renewed.state);
        oteli_leaks_check();
        if (all_tried)
            break;
    }
    exporter.free(exporter.state);
}
