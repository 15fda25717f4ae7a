/* SPDX-License-Identifier: Apache-2.0 */
/* The fault receiver: it finds what a strict receiver would, counts spans by their ids, and breaks
 * after the byte that it is told. All else that it does is seen by the tests that ask for it. */
#include "tests/support/certificates.h"
#include "tests/support/fault_peer.h"
#include "tests/support/unit.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
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

/* A POST by libcurl, and what came of it. */
struct post {
    const char *content_type; /* gRPC's is asked over HTTP/2 */
    const char *header;       /* one more, or NULL */
    const void *body;
    size_t length;
    long timeout_ms;
    CURLcode result;
    long status;
    char head[4096]; /* the lines of headers and trailers */
};

static size_t keep_line(char *bytes, size_t one, size_t length, void *state)
{
    char *head = state;
    (void)one;
    strncat(head, bytes, sizeof((struct post *)0)->head - strlen(head) - 1 < length ? 0 : length);
    return length;
}

static size_t drop_body(char *bytes, size_t one, size_t length, void *state)
{
    (void)bytes;
    (void)one;
    (void)state;
    return length;
}

static void post_to(struct fault_peer *peer, struct post *post)
{
    const char *url = fault_peer_url(peer);
    const bool is_tls = strncmp(url, "https:", 6) == 0;
    const bool is_grpc = strstr(post->content_type, "grpc") != NULL;
    char type[64];
    CURL *curl = curl_easy_init();
    assert_non_null(curl);
    snprintf(type, sizeof type, "Content-Type: %s", post->content_type);
    struct curl_slist *headers = curl_slist_append(curl_slist_append(NULL, type), "Expect:");
    if (post->header != NULL)
        headers = curl_slist_append(headers, post->header);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post->body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)post->length);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, post->timeout_ms != 0 ? post->timeout_ms : 10000L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
                     !is_grpc ? (long)CURL_HTTP_VERSION_1_1
                     : is_tls ? (long)CURL_HTTP_VERSION_2TLS
                              : (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_CAINFO, certificates_path(certificates, "ca.pem"));
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, keep_line);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, post->head);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop_body);
    post->result = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &post->status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
}

static int connect_to(struct fault_peer *peer)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons(fault_peer_port(peer)),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void assert_hears(int fd, const void *wanted, size_t length)
{
    char heard[sizeof success];
    if (length == 0)
        return;
    assert_int_equal(recv(fd, heard, length, MSG_WAITALL), length);
    assert_memory_equal(heard, wanted, length);
}

static bool hears_nothing(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    return poll(&polled, 1, 20) == 0;
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

static struct post ask_grpc(struct fault_peer *peer, const void *body, size_t length,
                            long timeout_ms)
{
    struct post post = {.content_type = "application/grpc",
                        .header = "TE: trailers",
                        .body = body,
                        .length = length,
                        .timeout_ms = timeout_ms};
    post_to(peer, &post);
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
        {"application/json", NULL,
         BYTES(SPANS("1", "2\",\"links\":[{\"spanId\":\"0000000000000001\"}],\"name\":\"}")),
         false},
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
        struct post post = {.content_type = table[i].content_type,
                            .header = table[i].header,
                            .body = table[i].body,
                            .length = table[i].length};
        post_to(peer, &post);

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

    for (int i = 0; i < 3; i++)
        post_to(peer, &(struct post){.content_type = "application/json",
                                     .body = SPANS("1", "2"),
                                     .length = sizeof SPANS("1", "2") - 1});

    const struct fault_span_counts counts = fault_peer_spans(peer);
    assert_int_equal(counts.received, 6);
    assert_int_equal(counts.distinct, 2);
    assert_int_equal(counts.taken, 2);
    assert_int_equal(counts.taken_repeatedly, 2);
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
            const int fd = connect_to(peer);

            say(fd, request, sizeof request - 1);
            if (deed == FAULT_FIN || deed == FAULT_RESET) {
                assert_int_equal(hear_all(fd, heard, sizeof heard, deed == FAULT_RESET), length);
                assert_memory_equal(heard, success, length);
            } else {
                assert_hears(fd, success, length);
                if (is_behind)
                    say(fd, request, sizeof request - 1);
                if (deed == FAULT_NONE)
                    assert_hears(fd, success, whole);
                else
                    assert_true((after % 40 != 0 && !is_behind) || hears_nothing(fd));
            }

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
            const int fd = connect_to(peer);

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

        was_whole = post.result == 0 && strstr(post.head, "\ngrpc-status: 0\r\n") != NULL;
        assert_true(was_whole || post.result != 0);
        assert_int_equal(fault_peer_requests(peer), 1);
        assert_true(after < 300);
        fault_peer_stop(peer);
    }
}

TEST(a_request_over_http2_can_break_within_its_body)
{
    static const size_t afters[] = {0, 1, 100, 5000};
    static const uint8_t body[40000];
    for (size_t i = 0; i < 4; i++) {
        struct fault_peer *peer =
            start(&(struct fault_answer){.in_request = {FAULT_RESET, afters[i]}});

        const struct post post = ask_grpc(peer, body, sizeof body, 0);

        assert_int_not_equal(post.result, 0);
        assert_int_equal(fault_peer_requests(peer), 0);
        assert_int_equal(fault_peer_begun(peer), 1);
        fault_peer_stop(peer);
    }
}

TEST(withholds_settings_and_stalls_behind_them)
{
    static const char opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    static const uint8_t settings[FRAME_HEAD] = {0, 0, 0, 4};
    static const struct fault_connection ways[] = {
        {.sent = {FAULT_NONE, 0}}, {.without_settings = true}, {.sent = {FAULT_STALL, FRAME_HEAD}}};
    for (size_t i = 0; i < 3; i++) {
        struct fault_peer *peer =
            fault_peer_start(&(struct fault_peer_options){.other_connections = ways[i]});
        const int fd = connect_to(peer);
        say(fd, opening, sizeof opening - 1);
        if (!ways[i].without_settings)
            assert_hears(fd, settings, FRAME_HEAD);
        assert_true(i == 0 || hears_nothing(fd));
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
