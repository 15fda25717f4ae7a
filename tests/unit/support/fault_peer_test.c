/* SPDX-License-Identifier: Apache-2.0 */
/* The fault receiver: it finds what a strict receiver would, counts spans by their ids, and breaks after
 * the byte that it is told. All else that it does is seen by the tests that ask for it. */
#include "tests/support/certificates.h"
#include "tests/support/fault_peer.h"
#include "tests/support/post.h"
#include "tests/support/unit.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SHORT_MS = 100, LONG_MS = 20000, FRAME_HEAD = 9 };

static const char request[] = "POST /v1/traces HTTP/1.1\r\nHost: x\r\n"
                              "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
static const char success[] = "HTTP/1.1 200 Scripted\r\nContent-Type: application/json\r\n"
                              "Content-Length: 2\r\n\r\n{}";

static struct certificates *certificates;

static struct fault_peer *start(const struct fault_answer *answer)
{
    return fault_peer_start(&(struct fault_peer_options){.otherwise = *answer});
}

static void say(int fd, const char *text, size_t length)
{
    assert_int_equal(send(fd, text, length, MSG_NOSIGNAL), length);
}

/* Everything until the end of the stream, which is a reset or FIN. */
static size_t hear_all(int fd, char *heard, size_t size, bool is_reset)
{
    size_t length = 0;
    ssize_t got;
    while ((got = recv(fd, heard + length, size - length, 0)) > 0)
        length += (size_t)got;
    assert_int_equal(got < 0 ? errno : 0, is_reset ? ECONNRESET : 0);
    return length;
}

static struct post ask(struct fault_peer *peer, const char *content_type, const void *body,
                       size_t length)
{
    struct post post = {
        .url = fault_peer_url(peer), .content_type = content_type, .body = body, .length = length};
    post_send(&post);
    return post;
}

static struct post ask_grpc(struct fault_peer *peer, const void *body, size_t length,
                            long timeout_ms)
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

/* ---- what it finds ------------------------------------------------------------------------ */

#define SPANS(one, other)                                                                       \
    "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"spanId\":\"000000000000000" one "\"}," \
    "{\"spanId\":\"000000000000000" other "\"}]}]}]}"
#define BYTES(text) text, sizeof(text) - 1

TEST(finds_what_a_strict_receiver_would)
{
    static const struct {
        const char *content_type, *header, *body;
        size_t length;
        bool is_wrong;
    } table[] = {
        {"application/json", NULL, BYTES("{}"), false},
        {"application/json", NULL, BYTES("{]"), true},
        {"application/json", NULL, BYTES(SPANS("1", "2")), false},
        {"application/json", NULL, BYTES(SPANS("1", "1")), true},
        {"application/x-protobuf", NULL, BYTES("\x0a\x02\x1a\x00"), false},
        {"application/x-protobuf", NULL, BYTES("\x0a\x03\x1a\x01\xff"), true}, /* no UTF-8 */
        {"application/x-protobuf", "Content-Encoding: gzip", BYTES("no gzip"), true},
        {"application/grpc", NULL, BYTES("\0\0\0\0\0"), false},
        {"application/grpc", NULL, BYTES("\0\0\0\0\1"), true},
        {"application/grpc", NULL, BYTES("\0\0\0"), true},
        {"application/grpc", NULL, BYTES("\2\0\0\0\0"), true},
        {"application/grpc", NULL, BYTES("\1\0\0\0\0"), false}, /* compressed, with the identity */
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct fault_peer *peer = fault_peer_start(NULL);
        struct post post = {.url = fault_peer_url(peer),
                            .content_type = table[i].content_type,
                            .header = table[i].header,
                            .body = table[i].body,
                            .length = table[i].length,
                            .is_http2 = strstr(table[i].content_type, "grpc") != NULL};
        post_send(&post);

        assert_int_equal(post.status, 200);
        if ((fault_peer_problem(peer) != NULL) != table[i].is_wrong)
            fail_msg("number %zu: %s", i, fault_peer_problem(peer));
        fault_peer_stop(peer);
    }
}

TEST(counts_spans_by_their_ids)
{
    static const struct fault_answer script[] = {{.status = 503}, {0}, {0}};
    struct fault_peer *peer = fault_peer_start(&(struct fault_peer_options){FAULT_SCRIPT(script)});
    size_t length;
    uint8_t *body = post_make_spans(100, 5, "counted", &length);

    for (int i = 0; i < 3; i++)
        (void)ask(peer, NULL, body, length);

    const struct fault_span_counts counts = fault_peer_spans(peer);
    assert_int_equal(counts.received, 15);
    assert_int_equal(counts.distinct, 5);
    assert_int_equal(counts.taken, 5);
    assert_int_equal(counts.taken_repeatedly, 5);
    free(body);
    fault_peer_stop(peer);
}

TEST(finds_the_spans_in_json_and_not_the_links)
{
    static const char body[] =
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"
        "\"01000000000000000000000000000000\",\"spanId\":\"000000000000000a\",\"name\":\"}\\\"{\","
        "\"links\":[{\"spanId\":\"00000000000000ff\",\"attributes\":[{\"key\":\"spanId\"}]}]},"
        "{\"spanId\":\"000000000000000b\"}]}]}]}";
    struct fault_peer *peer = fault_peer_start(NULL);

    (void)ask(peer, "application/json", body, sizeof body - 1);

    assert_null(fault_peer_problem(peer));
    assert_int_equal(fault_peer_request(peer, 0)->spans, 2);
    assert_int_equal(fault_peer_spans(peer).distinct, 2);
    fault_peer_stop(peer);
}

/* ---- what breaks -------------------------------------------------------------------------- */

/* One more than its bytes: behind it, where nothing may happen at all. */
TEST(an_answer_can_break_after_any_byte)
{
    const size_t whole = sizeof success - 1;
    char heard[2 * sizeof success];
    for (size_t after = 0; after <= whole + 1; after++) {
        for (enum fault_deed deed = after > whole ? FAULT_NONE : FAULT_STALL; deed <= FAULT_RESET;
             deed++) {
            const bool is_behind = after > whole;
            const size_t length = is_behind ? whole : after;
            struct fault_peer *peer =
                start(is_behind ? &(struct fault_answer){.then = deed}
                                : &(struct fault_answer){.in_answer = {deed, after}});
            const int fd = post_connect(fault_peer_port(peer));

            say(fd, request, sizeof request - 1);
            if (deed == FAULT_FIN || deed == FAULT_RESET) {
                assert_int_equal(hear_all(fd, heard, sizeof heard, deed == FAULT_RESET), length);
            } else {
                assert_int_equal(post_hear(fd, heard, length), length);
                if (is_behind)
                    say(fd, request, sizeof request - 1);
                if (deed == FAULT_NONE)
                    assert_int_equal(post_hear(fd, heard, whole), whole);
                else
                    assert_true((after % 40 != 0 && !is_behind) || post_hears_nothing(fd));
            }

            assert_memory_equal(heard, success, length);
            assert_true(fault_peer_wait(peer, 1));
            close(fd);
            fault_peer_stop(peer);
        }
    }
}

TEST(a_request_can_break_after_any_byte)
{
    char heard[sizeof success];
    /* With one byte it could still become HTTP/2. */
    for (size_t after = 2; after < sizeof request; after++) {
        for (enum fault_deed deed = FAULT_FIN; deed <= FAULT_RESET; deed++) {
            struct fault_peer *peer = start(&(struct fault_answer){.in_request = {deed, after}});
            const int fd = post_connect(fault_peer_port(peer));

            say(fd, request, after);
            assert_int_equal(hear_all(fd, heard, sizeof heard, deed == FAULT_RESET), 0);

            assert_int_equal(fault_peer_requests(peer), 0);
            assert_int_equal(fault_peer_begun(peer), 1);
            close(fd);
            fault_peer_stop(peer);
        }
    }
}

TEST(an_answer_over_http2_can_break_after_any_byte)
{
    bool was_whole = false;
    for (size_t after = 0; !was_whole; after++) {
        struct fault_peer *peer = start(&(struct fault_answer){.in_answer = {FAULT_RESET, after}});

        const struct post post = ask_grpc(peer, "\0\0\0\0\0", 5, 0);

        was_whole = post.result == 0 && post_got_line(&post, "grpc-status: 0");
        assert_true(was_whole || post.result != 0);
        assert_int_equal(fault_peer_requests(peer), 1);
        assert_true(after < 300);
        fault_peer_stop(peer);
    }
}

TEST(a_request_over_http2_can_break_within_its_body)
{
    static const size_t afters[] = {0, 1, 100, 5000};
    size_t message_length;
    size_t length;
    uint8_t *message = post_make_spans(1, 1000, "framed", &message_length);
    uint8_t *body = post_make_frame(message, message_length, false, &length);
    for (size_t i = 0; i < 4; i++) {
        struct fault_peer *peer =
            start(&(struct fault_answer){.in_request = {FAULT_RESET, afters[i]}});

        const struct post post = ask_grpc(peer, body, length, 0);

        assert_int_not_equal(post.result, 0);
        assert_int_equal(fault_peer_requests(peer), 0);
        assert_int_equal(fault_peer_begun(peer), 1);
        fault_peer_stop(peer);
    }
    free(message);
    free(body);
}

TEST(withholds_settings_and_stalls_behind_them)
{
    static const char opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    static const uint8_t settings[FRAME_HEAD] = {0, 0, 0, 4};
    static const struct fault_connection ways[] = {
        {.sent = {FAULT_NONE, 0}}, {.without_settings = true}, {.sent = {FAULT_STALL, FRAME_HEAD}}};
    for (size_t i = 0; i < 3; i++) {
        uint8_t heard[FRAME_HEAD];
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){.other_connections = ways[i]});
        const int fd = post_connect(fault_peer_port(peer));
        say(fd, opening, sizeof opening - 1);
        if (!ways[i].without_settings) {
            assert_int_equal(post_hear(fd, heard, FRAME_HEAD), FRAME_HEAD);
            assert_memory_equal(heard, settings, FRAME_HEAD);
        }
        assert_true(i == 0 || post_hears_nothing(fd));
        close(fd);
        fault_peer_stop(peer);
    }
}

/* Who asks a peer that stalls gives up soon, but not before it has sent so much: on a busy machine
 * the first time may be too short for that, so there is another peer and a longer one. */
static struct post ask_one_that_may_stall(struct fault_peer **peer,
                                          const struct fault_peer_options *options, bool stalls,
                                          uint64_t sent)
{
    for (long timeout_ms = stalls ? SHORT_MS : 0;; timeout_ms *= 4) {
        *peer = fault_peer_start(options);
        const struct post post = ask_grpc(*peer, "\0\0\0\0\0", 5, timeout_ms);
        if (!stalls || fault_peer_bytes_sent(*peer) >= sent || timeout_ms >= LONG_MS)
            return post;
        fault_peer_stop(*peer);
    }
}

TEST(a_handshake_can_break_after_any_byte)
{
    static const size_t afters[] = {0, 1, 5, 100, 500};
    for (size_t i = 0; i < 5; i++) {
        for (enum fault_deed deed = FAULT_STALL; deed <= FAULT_RESET; deed++) {
            const struct fault_peer_options options = {
                .tls = {.certificate = certificates_path(certificates, "server.pem"),
                        .key = certificates_path(certificates, "server.key")},
                .other_connections = {.in_handshake = {deed, afters[i]}}};
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

static int make_certificates(void **state)
{
    (void)state;
    certificates = certificates_new();
    certificates_issue(certificates, &(struct certificate_request){.name = "server"});
    return 0;
}

static int remove_certificates(void **state)
{
    (void)state;
    certificates_free(certificates);
    return 0;
}

AROUND_ALL(make_certificates, remove_certificates);
