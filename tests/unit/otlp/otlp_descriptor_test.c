/* SPDX-License-Identifier: Apache-2.0 */
/* What an event loop has from the OTLP exporter's descriptor: exports that go on whenever
 * they can, and no call in vain while they cannot.
 *
 * Time stands still but for the waits that the exporter names: where nothing makes the
 * descriptor readable for an instant, the clock of the exporter is moved instead. Only
 * libcurl has a clock of its own. */
#include "tests/support/dead_peer.h"
#include "tests/support/otlp_fixture.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define SCRIPT HTTP_SINK_SCRIPT
#define OPTIONS(...) OTEL_OTLP_OPTIONS(__VA_ARGS__)
#define NO_TIMEOUT OPTIONS(.timeout_ms = OTEL_ZERO)

static struct fixture fixture;

AROUND_EACH(NULL, fixture_end);

enum {
    INSTANT_MS = 20, /* of real time */
    LONG_MS = 1000,
    PATIENCE_MS = 60000,
    TURNS_MAX = 100000,  /* of a test that has gone wrong */
    TURNS_OF_EXPORT = 20 /* of a small request; it takes about five */
};

static int ask(int *timeout_ms)
{
    return fixture.exporter.descriptor(fixture.exporter.state, timeout_ms);
}

static bool is_readable_in(int fd, int timeout_ms)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, timeout_ms) == 1;
}

/* One turn of an event loop; true: the export is done. Counts turns that did not wait. */
static bool turn(size_t *busy)
{
    int timeout_ms;
    const int fd = ask(&timeout_ms);
    assert_true(fd >= 0);
    const bool is_long = timeout_ms < 0 || timeout_ms > INSTANT_MS;
    http_sink_settle(fixture.sink);
    const bool is_readable = is_readable_in(fd, is_long ? INSTANT_MS : timeout_ms);
    if (!is_readable && timeout_ms > 0)
        fixture_advance_ms((uint64_t)timeout_ms);
    *busy += is_readable || !is_long;
    return fixture_step(&fixture);
}

/* How many turns it takes until the export is done, not counting waits. */
static size_t drive(void)
{
    size_t busy = 0;
    for (size_t turns = 1; turns < TURNS_MAX; turns++) {
        if (turn(&busy))
            return busy;
    }
    fail_msg("the export does not come to an end; log:\n%s", fixture.log);
    return 0;
}

/* The same with a receiver that is there, in real time: nothing but the descriptor, or a
 * short time of libcurl's, lets the export go on. */
static size_t drive_patiently(void)
{
    for (size_t turns = 1; turns < TURNS_MAX; turns++) {
        int timeout_ms;
        const int fd = ask(&timeout_ms);
        assert_true(fd >= 0);
        const bool is_long = timeout_ms < 0 || timeout_ms > LONG_MS;
        assert_true(is_readable_in(fd, is_long ? PATIENCE_MS : timeout_ms) || !is_long);
        if (fixture_step(&fixture))
            return turns;
    }
    fail_msg("the export does not come to an end; log:\n%s", fixture.log);
    return 0;
}

/* While the clock stands still: the receiver may be late. */
static void drive_until_requested(size_t requests)
{
    while (http_sink_requests(fixture.sink) < requests) {
        int timeout_ms;
        (void)is_readable_in(ask(&timeout_ms), INSTANT_MS);
        assert_false(fixture_step(&fixture));
    }
}

/* Go on until there is nothing to do for a while. */
static void drive_until_quiet(void)
{
    for (size_t turns = 0; turns < TURNS_MAX; turns++) {
        int timeout_ms;
        const int fd = ask(&timeout_ms);
        if (!is_readable_in(fd, timeout_ms < INSTANT_MS ? timeout_ms : INSTANT_MS) &&
            timeout_ms > INSTANT_MS)
            return;
        assert_false(fixture_step(&fixture));
    }
    fail_msg("the descriptor is never quiet");
}

/* Also for those who go on watching it while nothing is exported. */
static void assert_at_rest(int fd)
{
    int timeout_ms;
    assert_false(is_readable_in(fd, 0));
    assert_int_equal(ask(&timeout_ms), -1);
    assert_int_equal(timeout_ms, -1);
    assert_false(is_readable_in(fd, 0));
}

TEST(exports_are_driven_by_it)
{
    int timeout_ms;
    fixture_init(&fixture, NULL, 0, NO_TIMEOUT);

    for (int i = 0; i < 10; i++) {
        assert_false(fixture_export(&fixture));
        const int fd = ask(&timeout_ms);
        assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        assert_int_equal(ask(&timeout_ms), fd);
        assert_true(drive_patiently() <= TURNS_OF_EXPORT);
        assert_all_delivered(&fixture);
        assert_at_rest(fd);
    }

    assert_int_equal(http_sink_requests(fixture.sink), 10);
    assert_int_equal(http_sink_connections(fixture.sink), 1);
}

/* Larger than what the sockets between take at once. */
TEST(a_large_request_is_not_polled_more_often_than_it_moves)
{
    enum { SPAN_BYTES = 16 * 1024 * 1024, PIECE = 16 * 1024 };
    char value[32];
    fixture_init(&fixture, NULL, 0, NO_TIMEOUT);
    char *span = calloc(1, SPAN_BYTES);
    batch_double_add(&fixture.batch, fixture.batch.spans[0].scope, span, SPAN_BYTES);
    free(span);

    assert_false(fixture_export(&fixture));
    assert_true(drive_patiently() <= SPAN_BYTES / PIECE + 2 * TURNS_OF_EXPORT);

    assert_all_delivered(&fixture);
    /* It has a request to itself, behind the one of the others. */
    const struct http_sink_request *request = http_sink_request(fixture.sink, 1);
    assert_true(request->body_length > SPAN_BYTES);
    assert_string_equal(http_sink_header(request, "Expect", value, sizeof value), "");
}

TEST(it_is_quiet_while_the_receiver_thinks)
{
    int timeout_ms;
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_HANG}), NULL);
    assert_false(fixture_export(&fixture));
    drive_until_requested(1);

    drive_until_quiet();
    const int fd = ask(&timeout_ms);
    assert_in_range(timeout_ms, INSTANT_MS, 10000);
    assert_false(is_readable_in(fd, 0));
    fixture_advance_ms(10000);

    (void)ask(&timeout_ms);
    assert_int_equal(timeout_ms, 0);
    assert_true(fixture_step(&fixture));
    assert_only_dropped(&fixture, OTEL_DROP_UNCONFIRMED, 3);
    assert_at_rest(fd);
}

TEST(it_names_the_pause_before_a_retry)
{
    static const struct http_sink_answer script[] = {
        {.status = 503}, {.status = 503, .then = HTTP_SINK_CLOSE}, {.then = HTTP_SINK_RESET}};
    int timeout_ms;
    fixture_init(&fixture, script, COUNT(script), NO_TIMEOUT);
    (void)ask(&timeout_ms);
    assert_false(fixture_export(&fixture));

    for (size_t i = 0; i < COUNT(script); i++) {
        int fd;
        size_t busy = 0;
        const size_t length = strlen(fixture.log);
        while (strstr(fixture.log + length, "again in") == NULL)
            assert_false(turn(&busy));
        fd = ask(&timeout_ms);
        assert_in_range(timeout_ms, 100, 2250);
        assert_false(is_readable_in(fd, INSTANT_MS)); /* not even by an idle connection's end */
        fixture_advance_ms((uint64_t)timeout_ms - 1);
        assert_false(fixture_step(&fixture));
        assert_int_equal(http_sink_requests(fixture.sink), i + 1);
        assert_int_equal(ask(&timeout_ms), fd);
        assert_int_equal(timeout_ms, 1);
        fixture_advance_ms(1);
        assert_false(fixture_step(&fixture));
    }

    assert_true(drive_patiently() <= TURNS_OF_EXPORT);
    assert_all_delivered(&fixture);
}

TEST(a_wake_is_seen_once)
{
    int timeout_ms;
    fixture_init(&fixture, SCRIPT({.status = 503, .headers = "Retry-After: 1000\r\n"}), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    const int fd = ask(&timeout_ms);
    fixture_wait_for_backoff(&fixture);
    drive_until_quiet();

    for (int i = 0; i < 20; i++)
        fixture.exporter.wake(fixture.exporter.state);

    assert_true(is_readable_in(fd, 0));
    assert_false(fixture_step(&fixture));
    assert_false(is_readable_in(fd, 0));
}

/* Nobody would call poll, and take the wake away. */
TEST(a_wake_while_nothing_is_exported_disturbs_nobody)
{
    int timeout_ms;
    fixture_init(&fixture, SCRIPT({.status = 200}, {.then = HTTP_SINK_HANG}), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    const int fd = ask(&timeout_ms);
    (void)drive_patiently();

    fixture.exporter.wake(fixture.exporter.state);
    assert_at_rest(fd);
    assert_false(fixture_export(&fixture));
    drive_until_requested(2);
    drive_until_quiet();
}

/* A peer of each kind until the exporter's ten seconds are over, some retries between. What no
 * request has reached cannot have the spans. */
TEST(no_dead_peer_keeps_the_loop_busy)
{
    enum { TURNS_OF_DEAD = 100 };
    static const bool is_unreached[DEAD_PEER_KINDS] = {[DEAD_PEER_REFUSES] = true,
                                                       [DEAD_PEER_FULL_BACKLOG] = true,
                                                       [DEAD_PEER_SILENT_TLS] = true,
                                                       [DEAD_PEER_PLAIN] = true};
    for (int kind = 0; kind < DEAD_PEER_KINDS; kind++) {
        if (kind == DEAD_PEER_NO_NAME)
            continue;
        struct dead_peer *peer = dead_peer_start((enum dead_peer_kind)kind);
        int timeout_ms;
        if (dead_peer_proxy(peer) != NULL)
            setenv("http_proxy", dead_peer_proxy(peer), 1);
        fixture_init(&fixture, NULL, 0, OPTIONS(.endpoint = dead_peer_url(peer)));
        unsetenv("http_proxy");
        char *span = calloc(1, 1 << 20);
        batch_double_add(&fixture.batch, fixture.batch.spans[0].scope, span, 1 << 20);
        free(span);

        const bool is_done = fixture_export(&fixture);
        const int fd = ask(&timeout_ms);
        const size_t turns = is_done ? 0 : drive();

        if (turns > TURNS_OF_DEAD)
            fail_msg("%s: %zu turns", dead_peer_name((enum dead_peer_kind)kind), turns);
        assert_int_equal(export_double_lost(&fixture.call), 4);
        if (is_unreached[kind])
            assert_int_equal(fixture.call.dropped[OTEL_DROP_RETRY_EXHAUSTED], 4);
        assert_at_rest(fd);
        dead_peer_stop(peer);
        fixture_fini(&fixture);
    }
}

/* A daemon closes all that it does not know, and has an event loop of its own made there. */
TEST(a_descriptor_that_was_taken_over_is_left_alone)
{
    struct epoll_event event;
    int timeout_ms;
    fixture_init(&fixture, NULL, 0, NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    const int fd = ask(&timeout_ms);
    (void)drive_patiently();
    const int other = epoll_create1(EPOLL_CLOEXEC);
    assert_int_equal(dup2(other, fd), fd);

    assert_false(fixture_export(&fixture));
    const int fresh = ask(&timeout_ms);
    assert_true(drive_patiently() <= TURNS_OF_EXPORT);

    assert_true(fresh >= 0 && fresh != fd);
    assert_all_delivered(&fixture);
    fixture_fini(&fixture);
    assert_int_equal(epoll_wait(fd, &event, 1, 0), 0); /* it is open, and nothing is in it */
    close(fd);
    close(other);
}

/* The first attempt fails with them; that is found out without waiting for anything. */
TEST(descriptors_that_are_gone_end_the_attempt)
{
    int timeout_ms;
    fixture_init(&fixture, SCRIPT({.then = HTTP_SINK_HANG}), NO_TIMEOUT);
    assert_false(fixture_export(&fixture));
    drive_until_requested(1);
    close(ask(&timeout_ms));

    assert_int_equal(ask(&timeout_ms), -1);
    assert_int_equal(timeout_ms, 0);
    assert_false(fixture_step(&fixture));
    (void)ask(&timeout_ms);
    assert_in_range(timeout_ms, 100, 1000);
    fixture_advance_ms((uint64_t)timeout_ms);
    assert_false(fixture_step(&fixture));
    (void)drive();

    assert_all_delivered(&fixture);
}
