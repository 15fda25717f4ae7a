/* SPDX-License-Identifier: Apache-2.0 */
/* The fault receiver over HTTP/2 and TLS, looked at with libcurl, and with bytes where those count:
 * other tests rely on it. */
#include "tests/support/certificates.h"
#include "tests/support/fault_peer.h"
#include "tests/support/post.h"
#include "tests/support/unit.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SHORT_MS = 100, LONG_MS = 20000, FRAME_HEAD = 9 };

static const char opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

static struct certificates *certificates;

static struct fault_peer *start(const struct fault_answer *answer)
{
    struct fault_peer_options options = {0};
    if (answer != NULL)
        options.otherwise = *answer;
    return fault_peer_start(&options);
}

static struct fault_peer *start_connection(const struct fault_connection *ways)
{
    return fault_peer_start(&(struct fault_peer_options){.other_connections = *ways});
}

static struct fault_peer_tls tls_options(void)
{
    return (struct fault_peer_tls){.certificate = certificates_path(certificates, "server.pem"),
                                   .key = certificates_path(certificates, "server.key")};
}

static struct post ask(struct fault_peer *peer, const void *body, size_t length, long timeout_ms)
{
    struct post post = {.url = fault_peer_url(peer),
                        .content_type = "application/grpc",
                        .header = "TE: trailers",
                        .body = body,
                        .length = length,
                        .is_http2 = true,
                        .timeout_ms = timeout_ms,
                        .ca_file = certificates_path(certificates, "ca.pem")};
    post_send(&post);
    return post;
}

static uint8_t *make_request(uint64_t first, size_t count, size_t *length)
{
    size_t message_length;
    uint8_t *message = post_make_spans(first, count, "framed", &message_length);
    uint8_t *frame = post_make_frame(message, message_length, false, length);
    free(message);
    return frame;
}

TEST(takes_a_grpc_request_and_answers_with_trailers)
{
    struct fault_peer *peer = start(NULL);
    char value[64];
    size_t length;
    uint8_t *body = make_request(1, 4, &length);

    const struct post post = ask(peer, body, length, 0);

    const struct fault_request *kept = fault_peer_request(peer, 0);
    assert_int_equal(post.result, 0);
    assert_int_equal(post.status, 200);
    assert_int_equal(post.answer_length, 5);
    assert_memory_equal(post.answer, "\0\0\0\0\0", 5);
    assert_true(post_got_line(&post, "content-type: application/grpc"));
    assert_true(post_got_line(&post, "grpc-status: 0"));
    assert_int_equal(kept->http, 2);
    assert_int_equal(kept->format, FAULT_GRPC);
    assert_int_equal(kept->spans, 4);
    assert_int_equal(kept->plain_length, length - 5);
    assert_memory_equal(kept->head, "POST /v1/traces HTTP/2\r\n", 24);
    assert_string_equal(fault_request_header(kept, "te", value, sizeof value), "trailers");
    assert_memory_equal(fault_request_header(kept, "host", value, sizeof value), "127.0.0.1:", 10);
    assert_null(fault_peer_problem(peer));
    free(body);
    fault_peer_stop(peer);
}

TEST(minds_a_frame_that_is_none)
{
    static const char *const bodies[] = {"\0\0\0\0\1", "\0\0\0", "\2\0\0\0\0", "\1\0\0\0\0"};
    static const size_t lengths[] = {5, 3, 5, 5};
    for (size_t i = 0; i < 4; i++) {
        struct fault_peer *peer = start(NULL);

        (void)ask(peer, bodies[i], lengths[i], 0);

        if (i == 3)
            assert_null(fault_peer_problem(peer)); /* "compressed", with the identity */
        else
            assert_non_null(fault_peer_problem(peer));
        fault_peer_stop(peer);
    }
}

TEST(says_every_status_in_trailers_and_in_trailers_only)
{
    char line[64];
    for (int code = 1; code <= 16; code++) {
        struct fault_peer *peer = start(&(struct fault_answer){
            .rpc_code = code, .message = "50 % \xc3\xa4", .in_trailers_only = code % 2 == 0});

        const struct post post = ask(peer, "\0\0\0\0\0", 5, 0);

        snprintf(line, sizeof line, "grpc-status: %d", code);
        assert_true(post_got_line(&post, line));
        assert_true(post_got_line(&post, "grpc-message: 50 %25 %C3%A4"));
        assert_int_equal(post.answer_length, 0);
        assert_false(fault_peer_request(peer, 0)->was_taken);
        fault_peer_stop(peer);
    }
}

TEST(an_answer_can_break_after_any_byte)
{
    bool was_whole = false;
    for (size_t after = 0; !was_whole; after++) {
        struct fault_peer *peer = start(&(struct fault_answer){.in_answer = {FAULT_RESET, after}});

        const struct post post = ask(peer, "\0\0\0\0\0", 5, 0);

        was_whole = post.result == 0 && post_got_line(&post, "grpc-status: 0");
        assert_true(was_whole || post.result != 0);
        assert_int_equal(fault_peer_requests(peer), 1);
        assert_true(after < 300);
        fault_peer_stop(peer);
    }
}

TEST(a_request_can_break_within_its_body)
{
    static const size_t afters[] = {0, 1, 100, 5000};
    size_t length;
    uint8_t *body = make_request(1, 1000, &length);
    for (size_t i = 0; i < 4; i++) {
        struct fault_peer *peer =
            start(&(struct fault_answer){.in_request = {FAULT_RESET, afters[i]}});

        const struct post post = ask(peer, body, length, 0);

        assert_int_not_equal(post.result, 0);
        assert_int_equal(fault_peer_requests(peer), 0);
        assert_int_equal(fault_peer_begun(peer), 1);
        fault_peer_stop(peer);
    }
    free(body);
}

/* Who asks a peer that stalls gives up soon, but not before it has sent so much: on a busy machine
 * the first time may be too short for that, so there is another peer and a longer one. */
static struct post ask_one_that_may_stall(struct fault_peer **peer,
                                          const struct fault_peer_options *options, bool stalls,
                                          uint64_t sent)
{
    for (long timeout_ms = stalls ? SHORT_MS : 0;; timeout_ms *= 4) {
        *peer = fault_peer_start(options);
        const struct post post = ask(*peer, "\0\0\0\0\0", 5, timeout_ms);
        if (!stalls || fault_peer_bytes_sent(*peer) >= sent || timeout_ms >= LONG_MS)
            return post;
        fault_peer_stop(*peer);
    }
}

TEST(resets_streams_with_each_code)
{
    for (uint32_t code = 0; code <= 13; code++) {
        const struct fault_peer_options options = {.otherwise = {.resets_stream = true,
                                                                 .http2_error = code,
                                                                 .in_trailers_only = code % 2 == 1,
                                                                 .is_early = code % 3 == 0}};
        const uint64_t head = code % 2 == 1 && code != 7 ? FRAME_HEAD : 0;
        const uint64_t sent = 2 * FRAME_HEAD + head + FRAME_HEAD + 4;
        struct fault_peer *peer;

        /* 7, REFUSED_STREAM: libcurl tries again, and does not end by itself. */
        const struct post post = ask_one_that_may_stall(&peer, &options, code == 7, sent);

        assert_int_not_equal(post.result, 0);
        assert_true(fault_peer_begun(peer) >= 1);
        assert_true(fault_peer_bytes_sent(peer) >= sent);
        fault_peer_stop(peer);
    }
}

TEST(goes_away)
{
    static const struct fault_answer script[] = {{.goaway = FAULT_GOAWAY_NONE},
                                                 {.goaway = FAULT_GOAWAY_INSTEAD},
                                                 {.goaway = FAULT_GOAWAY_WITHIN},
                                                 {.goaway = FAULT_GOAWAY_AFTER}};
    uint64_t whole = 0;
    for (size_t i = 0; i < 4; i++) {
        const struct fault_peer_options options = {.script = &script[i], .script_count = 1};
        struct fault_peer *peer = fault_peer_start(&options);

        const struct post post = ask(peer, "\0\0\0\0\0", 5, 0);

        /* libcurl may lose trailers before a GOAWAY, so count what was sent of them. */
        const uint64_t sent = fault_peer_bytes_sent(peer);
        if (i == 0)
            whole = sent;
        else if (i == 1)
            assert_int_not_equal(post.result, 0);
        else
            assert_int_equal(sent, whole + FRAME_HEAD + 8);
        assert_int_equal(fault_peer_requests(peer), i != 1);
        fault_peer_stop(peer);
    }
    struct fault_peer *peer = start_connection(&(struct fault_connection){.goes_away = true});
    const struct post post = ask(peer, "\0\0\0\0\0", 5, SHORT_MS);
    assert_int_not_equal(post.result, 0);
    fault_peer_stop(peer);
}

TEST(withholds_settings)
{
    static const uint8_t settings[FRAME_HEAD] = {0, 0, 0, 4};
    uint8_t heard[2][64];
    struct fault_peer *silent =
        start_connection(&(struct fault_connection){.without_settings = true});
    struct fault_peer *honest = start(NULL);
    const int of_silent = post_connect(fault_peer_port(silent));
    const int of_honest = post_connect(fault_peer_port(honest));

    assert_int_equal(send(of_silent, opening, sizeof opening - 1, 0), sizeof opening - 1);
    assert_int_equal(send(of_honest, opening, sizeof opening - 1, 0), sizeof opening - 1);
    assert_int_equal(post_hear(of_honest, heard, FRAME_HEAD), FRAME_HEAD);

    assert_memory_equal(heard, settings, FRAME_HEAD);
    assert_true(post_hears_nothing(of_silent));
    close(of_silent);
    close(of_honest);
    fault_peer_stop(silent);
    fault_peer_stop(honest);
}

TEST(stalls_after_settings)
{
    uint8_t heard[64];
    struct fault_peer *peer =
        start_connection(&(struct fault_connection){.sent = {FAULT_STALL, FRAME_HEAD}});
    const int fd = post_connect(fault_peer_port(peer));

    assert_int_equal(send(fd, opening, sizeof opening - 1, 0), sizeof opening - 1);
    assert_int_equal(post_hear(fd, heard, FRAME_HEAD), FRAME_HEAD);

    assert_true(post_hears_nothing(fd));
    close(fd);
    fault_peer_stop(peer);
}

TEST(lets_no_more_come_than_the_window)
{
    size_t length;
    uint8_t *body = make_request(1, 5000, &length);
    struct fault_peer *closed =
        start_connection(&(struct fault_connection){.without_window = true});
    struct fault_peer *narrow =
        start_connection(&(struct fault_connection){.without_updates = true});
    assert_true(length > 65535);

    const struct post no_window = ask(closed, body, length, SHORT_MS);
    const struct post one_window = ask(narrow, body, length, SHORT_MS);
    const struct post small = ask(narrow, "\0\0\0\0\0", 5, 0);

    assert_int_equal(no_window.result, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(one_window.result, CURLE_OPERATION_TIMEDOUT);
    assert_int_equal(fault_peer_requests(closed), 0);
    assert_int_equal(small.result, 0);
    free(body);
    fault_peer_stop(closed);
    fault_peer_stop(narrow);
}

TEST(floods_with_pings)
{
    struct fault_peer *peer = start_connection(&(struct fault_connection){.floods = true});

    const struct post post = ask(peer, "\0\0\0\0\0", 5, 0);

    assert_int_not_equal(post.result, CURLE_OPERATION_TIMEDOUT); /* libnghttp2 does not take it */
    assert_true(fault_peer_bytes_sent(peer) > 100 * 17);
    fault_peer_stop(peer);
}

TEST(says_more_header_than_anyone_wants)
{
    struct fault_peer *peer = start(&(struct fault_answer){
        .headers = "x-more: and more and more and more and more\r\n", .header_repeats = 20000});

    const struct post post = ask(peer, "\0\0\0\0\0", 5, 0);

    assert_int_not_equal(post.result, 0);
    assert_true(fault_peer_bytes_sent(peer) > 10000);
    fault_peer_stop(peer);
}

TEST(bodies_without_end)
{
    struct fault_peer *peer = start(&(struct fault_answer){.body_repeats = FAULT_ENDLESS});
    struct post post = {.url = fault_peer_url(peer), .is_http2 = true, .hang_up_after = 1 << 20};

    post_send(&post);

    assert_int_equal(post.status, 200);
    assert_true(post.answer_length >= 1 << 20);
    fault_peer_stop(peer);
}

TEST(is_too_large_for_grpc)
{
    size_t length;
    uint8_t *body = make_request(1, 10, &length);
    struct fault_peer *peer =
        fault_peer_start(&(struct fault_peer_options){.max_request_bytes = 100});

    const struct post post = ask(peer, body, length, 0);

    assert_true(post_got_line(&post, "grpc-status: 8"));
    assert_non_null(strstr(post.head, "larger than max"));
    assert_int_equal(fault_peer_spans(peer).received, 0);
    free(body);
    fault_peer_stop(peer);
}

TEST(speaks_tls_with_either_http)
{
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){.tls = tls_options()});
    struct fault_peer_tls old = tls_options();
    old.without_http2 = true;
    old.max_version = 12;
    struct fault_peer *old_peer = fault_peer_start(&(struct fault_peer_options){.tls = old});
    size_t length;
    uint8_t *body = make_request(1, 3000, &length);

    const struct post two = ask(peer, body, length, 0);
    struct post one = {.url = fault_peer_url(peer),
                       .ca_file = certificates_path(certificates, "ca.pem")};
    post_send(&one);
    const struct post no_two = ask(old_peer, "\0\0\0\0\0", 5, 0);

    assert_memory_equal(fault_peer_url(peer), "https://127.0.0.1:", 18);
    assert_int_equal(two.result, 0);
    assert_true(post_got_line(&two, "grpc-status: 0"));
    assert_int_equal(fault_peer_request(peer, 0)->http, 2);
    assert_int_equal(fault_peer_request(peer, 0)->spans, 3000);
    assert_int_equal(one.status, 200);
    assert_int_equal(fault_peer_request(peer, 1)->http, 1);
    assert_int_equal(no_two.result, 0);
    assert_int_equal(fault_peer_request(old_peer, 0)->http, 1);
    free(body);
    fault_peer_stop(peer);
    fault_peer_stop(old_peer);
}

TEST(asks_clients_for_certificates)
{
    struct fault_peer_tls tls = tls_options();
    tls.client_ca = certificates_path(certificates, "ca.pem");
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){.tls = tls});

    struct post stranger = {.url = fault_peer_url(peer), .ca_file = tls.client_ca};
    post_send(&stranger);
    struct post known = {.url = fault_peer_url(peer),
                         .ca_file = tls.client_ca,
                         .certificate_file = certificates_path(certificates, "client.pem"),
                         .key_file = certificates_path(certificates, "client.key")};
    post_send(&known);

    assert_int_not_equal(stranger.result, 0);
    assert_int_equal(known.status, 200);
    assert_int_equal(fault_peer_requests(peer), 1);
    fault_peer_stop(peer);
}

TEST(a_handshake_can_break_after_any_byte)
{
    static const size_t afters[] = {0, 1, 5, 100, 500};
    for (size_t i = 0; i < 5; i++) {
        for (enum fault_deed deed = FAULT_STALL; deed <= FAULT_RESET; deed++) {
            const struct fault_connection ways = {.in_handshake = {deed, afters[i]}};
            const struct fault_peer_options options = {.tls = tls_options(),
                                                       .other_connections = ways};
            const bool stalls = deed == FAULT_STALL || deed == FAULT_DEAF;
            struct fault_peer *peer;

            const struct post post = ask_one_that_may_stall(&peer, &options, stalls, afters[i]);

            assert_int_equal(post.result == CURLE_OPERATION_TIMEDOUT, stalls);
            assert_int_not_equal(post.result, 0);
            assert_int_equal(fault_peer_bytes_sent(peer), afters[i]);
            assert_int_equal(fault_peer_begun(peer), 0);
            fault_peer_stop(peer);
        }
    }
}

TEST(plays_a_proxy_and_the_host_behind_it)
{
    char proxy[64];
    char value[64];
    const struct fault_connection ways[] = {{.refuses_connect = 407}, {.accepts_connect = true}};
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){
        .tls = tls_options(), .connections = ways, .connection_count = 2});
    struct post post = {.url = "https://localhost:4318/v1/traces",
                        .proxy = proxy,
                        .ca_file = certificates_path(certificates, "ca.pem")};
    snprintf(proxy, sizeof proxy, "http://user:word@127.0.0.1:%u", fault_peer_port(peer));

    struct post refused = post;
    post_send(&refused);
    post_send(&post);

    assert_int_not_equal(refused.result, 0);
    assert_int_equal(post.result, 0);
    assert_int_equal(post.status, 200);
    const struct fault_request *connects = fault_peer_request(peer, 1);
    assert_memory_equal(connects->head, "CONNECT localhost:4318 ", 23);
    fault_request_header(connects, "Proxy-Authorization", value, sizeof value);
    assert_string_equal(value, "Basic dXNlcjp3b3Jk");
    assert_memory_equal(fault_peer_request(peer, 2)->head, "POST /v1/traces ", 16);
    assert_int_equal(fault_peer_begun(peer), 1);
    fault_peer_stop(peer);
}

static int make_certificates(void **state)
{
    (void)state;
    certificates = certificates_new();
    certificates_issue(certificates, &(struct certificate_request){.name = "server"});
    certificates_issue(certificates, &(struct certificate_request){.name = "client"});
    return 0;
}

static int remove_certificates(void **state)
{
    (void)state;
    certificates_free(certificates);
    return 0;
}

AROUND_ALL(make_certificates, remove_certificates);
