/* SPDX-License-Identifier: Apache-2.0 */
/* The transport over HTTP/2: versions, trailers, and what a connection or a stream that breaks
 * leads to. The receiver is tests/support/fault_peer.h. */
#include "tests/support/asking.h"
#include "tests/support/fault_peer.h"
#include "tests/support/http_sink.h"
#include "tests/support/unit.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

enum { SMALL = 100, LARGE = 1000 * 1000 };

static const otel_otlp_header grpc_headers[] = {{"Content-Type", "application/grpc+proto"},
                                                {"TE", "trailers"}};

#define GRPC_OPTIONS(peer, ...)                                                                  \
    ASKING_OPTIONS(.url = fault_peer_url(peer), .headers = grpc_headers,                         \
                   .header_count = sizeof grpc_headers / sizeof *grpc_headers, .is_http2 = true, \
                   __VA_ARGS__)

static struct fault_peer_tls with_tls(void)
{
    return (struct fault_peer_tls){.certificate =
                                       certificates_path(asking_certificates, "server.pem"),
                                   .key = certificates_path(asking_certificates, "server.key")};
}

static struct oteli_transport_response post(struct oteli_transport *transport, size_t length)
{
    return asking_post(transport, asking_message(length), length);
}

TEST(a_long_grpc_message_is_cut_and_long_details_are_left_out)
{
    static char headers[12 * 1024];
    static struct fault_answer script[] = {{.in_trailers_only = true, .headers = headers}};
    memset(headers, 'x', sizeof headers - 3);
    memcpy(headers, "grpc-message: ", 14);
    memcpy(headers + 2000, "\r\ngrpc-status-details-bin: ", 27);
    memcpy(headers + sizeof headers - 3, "\r\n", 3);
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){FAULT_SCRIPT(script)});
    struct oteli_transport *transport = oteli_transport_new(GRPC_OPTIONS(peer, ));

    const struct oteli_transport_response answer = post(transport, SMALL);

    assert_non_null(answer.grpc_message);
    assert_int_equal(strlen(answer.grpc_message), 1024);
    assert_null(answer.grpc_details);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

/* An answer without its trailers says nothing about the spans. */
TEST(an_answer_that_breaks_off_before_its_trailers_is_none)
{
    static const struct fault_answer script[] = {
        {.in_answer = {FAULT_RESET, 20}},
        {.resets_stream = true, .in_trailers_only = true, .http2_error = 2},
        {.resets_stream = true, .in_trailers_only = true, .http2_error = 8},
        {.resets_stream = true, .is_early = true, .http2_error = 8}, /* has not arrived */
    };
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){FAULT_SCRIPT(script)});
    struct oteli_transport *transport = oteli_transport_new(GRPC_OPTIONS(peer, ));

    for (size_t i = 0; i < sizeof script / sizeof *script; i++) {
        const bool is_early = script[i].is_early;
        const struct oteli_transport_response answer = post(transport, is_early ? LARGE : SMALL);
        assert_int_equal(answer.status, 0);
        assert_false(answer.is_hopeless);
        assert_true(is_early || (answer.body_was_sent && answer.step == OTELI_STEP_ANSWER));
    }
    assert_int_equal(fault_peer_requests(peer), sizeof script / sizeof *script - 1);
    assert_string_equal(post(transport, SMALL).grpc_status, "0");

    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

TEST(a_flood_of_pings_holds_nothing_up)
{
    struct fault_peer *peer =
        fault_peer_start(&(struct fault_peer_options){.other_connections = {.floods = true}});
    struct oteli_transport *transport = oteli_transport_new(GRPC_OPTIONS(peer, ));
    struct oteli_transport_response answer;
    const struct oteli_transport_request request = {
        .body = asking_message(SMALL), .length = SMALL, .connect_ms = 60000};

    oteli_transport_start(transport, &request);
    for (int i = 0; i < 10 && !oteli_transport_poll(transport, 10, &answer); i++)
        ;
    oteli_transport_cancel(transport, &answer);

    assert_false(answer.is_hopeless);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

/* What a stalled stream is broken off with, and what comes next. The last two connections are for
 * one request: where there are no streams curl itself asks again, over another connection. */
TEST(a_request_that_stalls_can_be_broken_off)
{
    static const struct fault_connection stalled[] = {
        {.without_settings = true}, {.without_window = true},
        {.without_updates = true},  {.received = {FAULT_STALL, 10}},
        {.without_streams = true},  {.received = {FAULT_STALL, 10}}};
    enum { STALLED = sizeof stalled / sizeof *stalled };
    struct fault_peer *peer = fault_peer_start(
        &(struct fault_peer_options){.connections = stalled, .connection_count = STALLED});
    struct oteli_transport *transport = oteli_transport_new(GRPC_OPTIONS(peer, ));
    struct oteli_transport_request request = {
        .body = asking_message(LARGE), .length = LARGE, .connect_ms = 60000};

    for (size_t i = 0; i < STALLED; i++) {
        struct oteli_transport_response answer;
        i += stalled[i].without_streams;
        oteli_transport_start(transport, &request);
        while (fault_peer_connections(peer) < i + 1)
            assert_false(oteli_transport_poll(transport, 1, &answer));
        for (int turn = 0; turn < 20; turn++)
            assert_false(oteli_transport_poll(transport, 1, &answer));
        oteli_transport_cancel(transport, &answer);
        assert_int_equal(answer.status, 0);
        assert_false(answer.is_hopeless);
        request.fresh = true; /* as after every attempt that found nobody */
    }

    assert_string_equal(asking_request(transport, &request).grpc_status, "0");
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

/* In front of libc's for all libraries of this program. */
static _Thread_local unsigned ended_by_room; /* waits that nothing but room to write has ended */

int poll(struct pollfd *polled, nfds_t count, int timeout_ms)
{
    const struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
    const int result = ppoll(polled, count, timeout_ms < 0 ? NULL : &timeout, NULL);
    bool is_room = result > 0 && timeout_ms != 0;
    for (nfds_t i = 0; i < count; i++)
        is_room &= (polled[i].revents & ~POLLOUT) == 0;
    ended_by_room += is_room;
    return result;
}

/* How many of so many turns something ended early, as far as curl or the descriptor say. */
static unsigned turns_of_a_request_that_is_choked(bool is_watched, unsigned turns)
{
    static const struct fault_connection choked = {.without_updates = true};
    struct fault_peer *peer = fault_peer_start(
        &(struct fault_peer_options){.connections = &choked, .connection_count = 1});
    struct oteli_transport *transport = oteli_transport_new(GRPC_OPTIONS(peer, ));
    const struct oteli_transport_request request = {
        .body = asking_message(LARGE), .length = LARGE, .connect_ms = 60000};
    struct oteli_transport_response answer;
    unsigned early = 0;

    oteli_transport_start(transport, &request);
    while (fault_peer_begun(peer) == 0)
        assert_false(oteli_transport_poll(transport, 1, &answer));
    ended_by_room = 0;
    for (unsigned turn = 0; turn < turns; turn++) {
        if (is_watched) {
            struct pollfd waited = {.fd = oteli_transport_descriptor(transport), .events = POLLIN};
            early += poll(&waited, 1, oteli_transport_timeout_ms(transport) != 0) != 0;
        }
        assert_false(oteli_transport_poll(transport, !is_watched, &answer));
    }

    oteli_transport_cancel(transport, &answer);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
    return early + ended_by_room;
}

TEST(a_receiver_that_takes_no_more_keeps_nobody_busy)
{
    assert_in_range(turns_of_a_request_that_is_choked(false, 100), 0, 50);
    assert_in_range(turns_of_a_request_that_is_choked(true, 100), 0, 50);
}

/* As an event loop does that has the descriptor and a time, and nothing else. */
TEST(a_descriptor_says_when_to_go_on)
{
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){.tls = with_tls()});
    struct oteli_transport *transport = oteli_transport_new(
        GRPC_OPTIONS(peer, .tls.ca_file = certificates_path(asking_certificates, "ca.pem")));
    const struct oteli_transport_request request = {
        .body = asking_message(LARGE), .length = LARGE, .connect_ms = 60000};
    struct oteli_transport_response answer;

    for (int i = 0; i < 3; i++) {
        oteli_transport_start(transport, &request);
        struct pollfd waited = {.fd = oteli_transport_descriptor(transport), .events = POLLIN};
        while (!oteli_transport_poll(transport, 0, &answer))
            assert_in_range(poll(&waited, 1, oteli_transport_timeout_ms(transport)), 0, 1);
        assert_string_equal(answer.grpc_status, "0");
        oteli_transport_rest(transport);
    }

    assert_int_equal(fault_peer_connections(peer), 1);
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

TEST(a_receiver_without_http2_is_hopeless)
{
    struct fault_peer_tls tls = with_tls();
    tls.without_http2 = true;
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){.tls = tls});
    struct oteli_transport *transport = oteli_transport_new(
        GRPC_OPTIONS(peer, .tls.ca_file = certificates_path(asking_certificates, "ca.pem")));

    const struct oteli_transport_response answer = post(transport, SMALL);

    assert_int_equal(answer.status, 0);
    assert_true(answer.is_hopeless);
    assert_false(answer.body_was_sent);
    assert_non_null(strstr(answer.problem, "HTTP/2"));
    oteli_transport_free(transport);
    fault_peer_stop(peer);
}

TEST(a_plain_receiver_without_http2_is_told_apart)
{
    static const struct http_sink_answer script[] = {{.status = 400}, {.status = 400}};
    struct http_sink *sink = http_sink_start(script, 2);
    struct oteli_transport *transport =
        oteli_transport_new(ASKING_OPTIONS(.url = http_sink_url(sink), .headers = grpc_headers,
                                           .header_count = 2, .is_http2 = true));

    const struct oteli_transport_response answer = post(transport, SMALL);

    assert_int_equal(answer.status, 0);
    assert_non_null(strstr(answer.problem, "HTTP/2"));
    oteli_transport_free(transport);
    http_sink_stop(sink);
}

AROUND_ALL(asking_set_up, asking_tear_down);
