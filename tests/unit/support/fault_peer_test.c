/* SPDX-License-Identifier: Apache-2.0 */
/* The fault receiver over HTTP/1.1: other tests rely on it to the byte, so this one looks at it with
 * plain sockets, and with libcurl. */
#include "tests/support/fault_peer.h"
#include "tests/support/post.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#define REQUEST_HEAD \
    "POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
static const char request[] = REQUEST_HEAD "{}";
static const char success[] = "HTTP/1.1 200 Scripted\r\nContent-Type: application/json\r\n"
                              "Content-Length: 2\r\n\r\n{}";

static struct fault_peer *start(const struct fault_answer *answer)
{
    struct fault_peer_options options = {0};
    if (answer != NULL)
        options.otherwise = *answer;
    return fault_peer_start(&options);
}

static void say(int fd, const char *text, size_t length)
{
    assert_int_equal(send(fd, text, length, MSG_NOSIGNAL), length);
}

/* Everything until the end of the stream; *error is how it ended, 0 for FIN. */
static size_t hear_all(int fd, char *heard, size_t size, int *error)
{
    size_t length = 0;
    for (;;) {
        const ssize_t got = recv(fd, heard + length, size - length, 0);
        *error = got < 0 ? errno : 0;
        if (got <= 0)
            return length;
        length += (size_t)got;
    }
}

static struct post ask(struct fault_peer *peer, const char *content_type, const void *body,
                       size_t length)
{
    struct post post = {
        .url = fault_peer_url(peer), .content_type = content_type, .body = body, .length = length};
    post_send(&post);
    return post;
}

/* An answer of the script, and what comes of it. */
struct said {
    struct fault_answer answer;
    const char *content_type; /* of the request; NULL: protobuf */
    const char *body;
    size_t length;
    const char *line; /* among the headers and trailers; NULL: of status 200 alone */
    bool is_broken;   /* libcurl has something against it */
};

#define JSON "application/json"
#define GRPC "application/grpc"
#define SAYS(text) .body = (text), .length = sizeof(text) - 1
#define RETRY_INFO "type.googleapis.com/google.rpc.RetryInfo"
#define BUSY                                                                      \
    {                                                                             \
        .status = 503, .rpc_code = 14, .message = "busy", .has_retry_info = true, \
        .retry_info_ms = 1500                                                     \
    }

static const struct said answers[] = {
    {{0}, NULL, SAYS(""), "Content-Type: application/x-protobuf"},
    {{0}, JSON, SAYS("{}"), "Content-Type: application/json"},
    {{0}, GRPC, SAYS("\0\0\0\0\0"), "grpc-status: 0"},
    {{.rejected = 150, .message = "oh"}, NULL, SAYS("\x0a\7\x08\x96\1\x12\2oh"), NULL},
    {{.rejected = 150, .message = "oh"},
     JSON,
     SAYS("{\"partialSuccess\":{\"rejectedSpans\":\"150\",\"errorMessage\":\"oh\"}}"),
     NULL},
    {{.rejected = 3, .message = "no"},
     GRPC,
     SAYS("\0\0\0\0\x08\x0a\6\x08\3\x12\2no"),
     "grpc-status: 0"},
    {BUSY, NULL,
     SAYS("\x08\x0e\x12\4busy\x1a\x36\x0a\x28" RETRY_INFO
          "\x12\x0a\x0a\x08\x08\1\x10\x80\xca\xb5\xee\1"),
     "503 Scripted"},
    {BUSY, JSON,
     SAYS("{\"code\":14,\"message\":\"busy\",\"details\":[{\"@type\":\"" RETRY_INFO "\","
          "\"retryDelay\":\"1.500s\"}]}"),
     "503 Scripted"},
    /* code 14, and an Any with RetryInfo {retry_delay {seconds 2, nanos 0}}, in base64 */
    {{.rpc_code = 14, .has_retry_info = true, .retry_info_ms = 2000},
     GRPC,
     SAYS(""),
     "grpc-status-details-bin: CA4aMgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIGCgQI"
     "AhAA"},
    {{.status = 503, .headers = "Retry-After: 3\r\n", .content_type = "", .body = ""},
     GRPC,
     SAYS(""),
     "retry-after: 3"},
    {{.has_no_trailers = true}, GRPC, SAYS("\0\0\0\0\0"), "content-type: application/grpc"},
    {{.body = "four", .body_length = 4, .announced = 9, .then = FAULT_FIN},
     NULL,
     SAYS("four"),
     "Content-Length: 9",
     .is_broken = true},
    {{.pace_bytes = 1, .pace_ms = 1}, JSON, SAYS("{}"), NULL},
    {{.in_request = {FAULT_RESET, 10000}}, JSON, SAYS("{}"), NULL},
};

TEST(says_in_the_format_of_the_request_what_the_script_says)
{
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct said *wanted = &answers[i];
        const bool is_grpc =
            wanted->content_type != NULL && strcmp(wanted->content_type, GRPC) == 0;
        struct fault_peer *peer = start(&wanted->answer);

        struct post post = {.url = fault_peer_url(peer),
                            .content_type = wanted->content_type,
                            .body = is_grpc ? "\0\0\0\0" : "{}",
                            .length = is_grpc ? 5 : 2,
                            .is_http2 = is_grpc};
        post_send(&post);

        const bool has_line = wanted->line == NULL || strstr(post.head, wanted->line) != NULL;
        if (!has_line || post.answer_length != wanted->length ||
            memcmp(post.answer, wanted->body, wanted->length) != 0)
            fail_msg("answer %zu is: %s%s", i, post.head, post.answer);
        assert_int_equal(post.result != 0, wanted->is_broken);
        assert_int_equal(post.status, wanted->answer.status != 0 ? wanted->answer.status : 200);
        assert_int_equal(strstr(post.head, "grpc-status: ") != NULL,
                         is_grpc && wanted->answer.status == 0 && !wanted->answer.has_no_trailers);
        assert_int_equal(fault_peer_spans(peer).rejected, wanted->answer.rejected);
        fault_peer_stop(peer);
    }
}

TEST(keeps_what_came)
{
    struct fault_peer *peer = start(NULL);
    char value[64];
    size_t length;
    uint8_t *body = post_make_spans(7, 3, "kept", &length);

    struct post post = {
        .url = fault_peer_url(peer), .header = "X-Key: value", .body = body, .length = length};
    post_send(&post);

    const struct fault_request *kept = fault_peer_request(peer, 0);
    assert_int_equal(kept->http, 1);
    assert_int_equal(kept->connection, 1);
    assert_memory_equal(kept->head, "POST /v1/traces HTTP/1.1\r\n", 26);
    assert_string_equal(fault_request_header(kept, "x-key", value, sizeof value), "value");
    assert_int_equal(kept->body_length, length);
    assert_memory_equal(kept->body, body, length);
    assert_int_equal(kept->spans, 3);
    assert_true(kept->was_taken);
    assert_null(fault_peer_problem(peer));
    assert_null(fault_peer_request(peer, 1));
    free(body);
    fault_peer_stop(peer);
}

TEST(follows_the_script_and_then_otherwise)
{
    static const struct fault_answer script[] = {{.status = 503, .headers = "Retry-After: 7\r\n"},
                                                 {.status = 404}};
    const struct fault_peer_options options = {FAULT_SCRIPT(script), .otherwise = {.status = 299}};
    struct fault_peer *peer = fault_peer_start(&options);

    const struct post first = ask(peer, NULL, "", 0);
    const struct post second = ask(peer, NULL, "", 0);
    const struct post third = ask(peer, NULL, "", 0);
    fault_peer_set_otherwise(peer, &(struct fault_answer){.status = 400});
    const struct post fourth = ask(peer, NULL, "", 0);

    assert_int_equal(first.status, 503);
    assert_true(post_got_line(&first, "Retry-After: 7"));
    assert_int_equal(second.status, 404);
    assert_int_equal(third.status, 299);
    assert_int_equal(fourth.status, 400);
    fault_peer_stop(peer);
}

TEST(an_answer_can_break_after_any_byte)
{
    const size_t whole = sizeof success - 1;
    char heard[2 * sizeof success];
    int error;
    for (size_t after = 0; after <= whole; after++) {
        for (enum fault_deed deed = FAULT_STALL; deed <= FAULT_RESET; deed++) {
            struct fault_peer *peer = start(&(struct fault_answer){.in_answer = {deed, after}});
            const int fd = post_connect(fault_peer_port(peer));

            say(fd, request, sizeof request - 1);
            if (deed == FAULT_STALL || deed == FAULT_DEAF) {
                assert_int_equal(post_hear(fd, heard, after), after);
                assert_true(after % 40 != 0 || post_hears_nothing(fd));
            } else {
                assert_int_equal(hear_all(fd, heard, sizeof heard, &error), after);
                assert_int_equal(error, deed == FAULT_RESET ? ECONNRESET : 0);
            }

            assert_memory_equal(heard, success, after);
            assert_true(fault_peer_wait(peer, 1));
            close(fd);
            fault_peer_stop(peer);
        }
    }
}

TEST(a_request_can_break_after_any_byte)
{
    char heard[sizeof success];
    int error;
    /* With one byte it could still become HTTP/2. */
    for (size_t after = 2; after < sizeof request; after++) {
        for (enum fault_deed deed = FAULT_FIN; deed <= FAULT_RESET; deed++) {
            struct fault_peer *peer = start(&(struct fault_answer){.in_request = {deed, after}});
            const int fd = post_connect(fault_peer_port(peer));

            say(fd, request, after);
            const size_t length = hear_all(fd, heard, sizeof heard, &error);

            assert_int_equal(length, 0);
            assert_int_equal(error, deed == FAULT_RESET ? ECONNRESET : 0);
            assert_int_equal(fault_peer_requests(peer), 0);
            assert_int_equal(fault_peer_begun(peer), 1);
            close(fd);
            fault_peer_stop(peer);
        }
    }
}

TEST(a_connection_can_break_whatever_is_asked)
{
    static const struct fault_connection connections[] = {
        {.received = {FAULT_FIN, 0}},
        {.received = {FAULT_FIN, 10}},
        {.sent = {FAULT_FIN, 5}},
    };
    const struct fault_peer_options options = {.connections = connections, .connection_count = 3};
    struct fault_peer *peer = fault_peer_start(&options);
    char heard[4][sizeof success];
    size_t length[4];
    int error;

    for (size_t i = 0; i < 3; i++) {
        const int fd = post_connect(fault_peer_port(peer));
        if (i > 0)
            say(fd, request, i == 1 ? 10 : sizeof request - 1);
        length[i] = hear_all(fd, heard[i], sizeof heard[i], &error);
        assert_int_equal(error, 0);
        close(fd);
    }
    const struct post post = ask(peer, NULL, "", 0);

    assert_int_equal(length[0], 0);
    assert_int_equal(length[1], 0);
    assert_int_equal(length[2], 5);
    assert_int_equal(post.status, 200);
    fault_peer_stop(peer);
}

TEST(what_happens_behind_the_answer)
{
    char heard[2 * sizeof success];
    int error;
    for (enum fault_deed deed = FAULT_NONE; deed <= FAULT_RESET; deed++) {
        struct fault_peer *peer = start(&(struct fault_answer){.then = deed});
        const int fd = post_connect(fault_peer_port(peer));

        say(fd, request, sizeof request - 1);
        if (deed == FAULT_FIN || deed == FAULT_RESET) {
            assert_int_equal(hear_all(fd, heard, sizeof heard, &error), sizeof success - 1);
            assert_int_equal(error, deed == FAULT_RESET ? ECONNRESET : 0);
        } else {
            assert_int_equal(post_hear(fd, heard, sizeof success - 1), sizeof success - 1);
            say(fd, request, sizeof request - 1);
            if (deed == FAULT_NONE)
                assert_int_equal(post_hear(fd, heard, sizeof success - 1), sizeof success - 1);
            else
                assert_true(post_hears_nothing(fd));
        }

        close(fd);
        fault_peer_stop(peer);
    }
}

TEST(an_early_answer_comes_before_the_body)
{
    struct fault_peer *peer = start(&(struct fault_answer){.status = 413, .is_early = true});
    char heard[256];
    const int fd = post_connect(fault_peer_port(peer));

    say(fd, request, sizeof request - 3);
    assert_int_equal(post_hear(fd, heard, 20), 20);
    assert_int_equal(fault_peer_requests(peer), 0);
    say(fd, "{}", 2);

    assert_memory_equal(heard, "HTTP/1.1 413 Scripte", 20);
    assert_true(fault_peer_wait(peer, 1));
    close(fd);
    fault_peer_stop(peer);
}

TEST(says_other_things_first_or_instead)
{
    static const struct fault_answer script[] = {{.before = "HTTP/1.1 100 Continue\r\n\r\n"},
                                                 {.raw = "no HTTP at all"}};
    const struct fault_peer_options options = {FAULT_SCRIPT(script)};
    struct fault_peer *peer = fault_peer_start(&options);
    char heard[64];
    const int fd = post_connect(fault_peer_port(peer));

    const struct post first = ask(peer, NULL, "", 0);
    say(fd, request, sizeof request - 1);
    assert_int_equal(post_hear(fd, heard, 14), 14);

    assert_memory_equal(first.head, "HTTP/1.1 100 Continue\r\n", 23);
    assert_int_equal(first.status, 200);
    assert_memory_equal(heard, script[1].raw, 14);
    close(fd);
    fault_peer_stop(peer);
}

TEST(bodies_and_heads_without_end)
{
    struct fault_peer *body = start(&(struct fault_answer){.body_repeats = FAULT_ENDLESS});
    struct fault_peer *head = start(
        &(struct fault_answer){.headers = "X-More: more\r\n", .header_repeats = FAULT_ENDLESS});

    struct post post = {.url = fault_peer_url(body), .hang_up_after = 1 << 20};
    post_send(&post);
    struct post other = {.url = fault_peer_url(head)};
    post_send(&other);

    assert_true(post.answer_length >= 1 << 20);
    assert_int_not_equal(other.result, 0); /* libcurl has a limit of its own */
    assert_true(fault_peer_bytes_sent(head) > 100000);
    fault_peer_stop(body);
    fault_peer_stop(head);
}

TEST(a_bomb_is_small_on_the_wire_and_right_in_the_end)
{
    static const char zeros[64 * 1024];
    struct fault_peer *peer = start(&(struct fault_answer){
        .body = zeros, .body_length = sizeof zeros, .body_repeats = 160, .in_gzip = true});

    const struct post post = ask(peer, NULL, "", 0);

    assert_int_equal(post.result, 0); /* zlib has compared the sum */
    assert_int_equal(post.answer_length, 160 * sizeof zeros);
    assert_true(fault_peer_bytes_sent(peer) < 64 * 1024);
    fault_peer_stop(peer);
}

static size_t gzip(const void *bytes, size_t length, uint8_t *out, size_t size)
{
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)bytes,
                       .avail_in = (unsigned)length,
                       .next_out = out,
                       .avail_out = (unsigned)size};
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

TEST(undoes_gzip_and_minds_when_it_cannot)
{
    struct fault_peer *peer = start(NULL);
    uint8_t packed[1024];
    size_t length;
    uint8_t *body = post_make_spans(1, 2, "zipped", &length);
    const size_t packed_length = gzip(body, length, packed, sizeof packed);

    struct post good = {.url = fault_peer_url(peer),
                        .header = "Content-Encoding: gzip",
                        .body = packed,
                        .length = packed_length};
    post_send(&good);
    const struct fault_request *kept = fault_peer_request(peer, 0);
    assert_null(fault_peer_problem(peer));
    struct post bad = {.url = fault_peer_url(peer),
                       .header = "Content-Encoding: gzip",
                       .body = packed,
                       .length = packed_length - 1};
    post_send(&bad);

    assert_string_equal(kept->encoding, "gzip");
    assert_int_equal(kept->plain_length, length);
    assert_memory_equal(kept->plain, body, length);
    assert_int_equal(kept->spans, 2);
    assert_string_equal(fault_peer_problem(peer), "the body is not compressed as it says");
    free(body);
    fault_peer_stop(peer);
}

TEST(finds_what_a_strict_receiver_would)
{
    for (int which = 0; which < 4; which++) {
        struct fault_peer *peer = start(NULL);
        size_t length;
        uint8_t *body = post_make_spans(1, 1, which == 0 ? "fine" : "\xff", &length);
        const char *const json = which == 3 ? "{]" : "{}";

        const struct post post =
            which < 2 ? ask(peer, NULL, body, length) : ask(peer, "application/json", json, 2);

        assert_int_equal(post.status, 200);
        if (which % 2 == 0)
            assert_null(fault_peer_problem(peer));
        else
            assert_non_null(fault_peer_problem(peer));
        free(body);
        fault_peer_stop(peer);
    }
}

TEST(finds_the_spans_in_json_and_not_the_links)
{
    static const char body[] =
        "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":[{\"traceId\":"
        "\"01000000000000000000000000000000\",\"spanId\":\"000000000000000a\",\"name\":\"}\\\"{\","
        "\"links\":[{\"spanId\":\"00000000000000ff\",\"attributes\":[{\"key\":\"spanId\"}]}]},"
        "{\"spanId\":\"000000000000000b\"}]}]}]}";
    struct fault_peer *peer = start(NULL);
    uint8_t id[8];

    (void)ask(peer, "application/json", body, sizeof body - 1);

    assert_null(fault_peer_problem(peer));
    assert_int_equal(fault_peer_request(peer, 0)->spans, 2);
    post_span_id(0xa, id);
    assert_int_equal(fault_peer_came(peer, id), 1);
    post_span_id(0xff, id);
    assert_int_equal(fault_peer_came(peer, id), 0);
    fault_peer_stop(peer);
}

TEST(counts_spans_by_their_ids)
{
    static const struct fault_answer script[] = {{.status = 503}, {0}, {0}};
    const struct fault_peer_options options = {FAULT_SCRIPT(script)};
    struct fault_peer *peer = fault_peer_start(&options);
    uint8_t id[8];
    size_t length;
    uint8_t *body = post_make_spans(100, 5, "counted", &length);

    for (int i = 0; i < 3; i++)
        (void)ask(peer, NULL, body, length);

    const struct fault_span_counts counts = fault_peer_spans(peer);
    assert_int_equal(counts.received, 15);
    assert_int_equal(counts.distinct, 5);
    assert_int_equal(counts.taken, 5);
    assert_int_equal(counts.taken_repeatedly, 5);
    post_span_id(104, id);
    assert_int_equal(fault_peer_came(peer, id), 3);
    assert_int_equal(fault_peer_taken(peer, id), 2);
    post_span_id(105, id);
    assert_int_equal(fault_peer_came(peer, id), 0);
    free(body);
    fault_peer_stop(peer);
}

TEST(refuses_what_is_too_large)
{
    size_t length;
    uint8_t *body = post_make_spans(1, 50, "large", &length);
    for (enum fault_refusal refusal = FAULT_REFUSAL_413; refusal <= FAULT_REFUSAL_400; refusal++) {
        struct fault_peer *peer = fault_peer_start(
            &(struct fault_peer_options){.max_request_bytes = length - 1, .refusal = refusal});

        const struct post post = ask(peer, NULL, body, length);

        assert_int_equal(post.status, refusal == FAULT_REFUSAL_413 ? 413 : 400);
        assert_true(fault_peer_request(peer, 0)->is_too_large);
        assert_int_equal(fault_peer_spans(peer).received, 0);
        fault_peer_stop(peer);
    }
    free(body);
}

static void decide_by_path(void *state, const struct fault_request *asked,
                           struct fault_answer *answer)
{
    (void)state;
    if (strncmp(asked->head, "POST /v1/traces ", 16) != 0)
        answer->status = 404;
}

TEST(a_function_can_decide)
{
    char elsewhere[96];
    struct fault_peer *peer =
        fault_peer_start(&(struct fault_peer_options){.decide = decide_by_path});
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", fault_peer_origin(peer));

    const struct post here = ask(peer, NULL, "", 0);
    struct post there = {.url = elsewhere};
    post_send(&there);

    assert_int_equal(here.status, 200);
    assert_int_equal(there.status, 404);
    fault_peer_stop(peer);
}

TEST(leaves_and_returns)
{
    struct fault_peer *peer = start(NULL);

    const struct post before = ask(peer, NULL, "", 0);
    fault_peer_leave(peer);
    const struct post meanwhile = ask(peer, NULL, "", 0);
    fault_peer_return(peer);
    const struct post after = ask(peer, NULL, "", 0);

    assert_int_equal(before.status, 200);
    assert_int_equal(meanwhile.result, 7); /* could not connect */
    assert_int_equal(after.status, 200);
    fault_peer_stop(peer);
}

TEST(listens_on_ipv6_and_on_unix_sockets)
{
    char directory[] = "/tmp/fault-peer-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
    struct fault_peer *ipv6 = fault_peer_start(&(struct fault_peer_options){.is_ipv6 = true});
    struct fault_peer *unix = fault_peer_start(&(struct fault_peer_options){.unix_path = path});

    const struct post first = ask(ipv6, NULL, "", 0);
    struct post second = {.url = "http://localhost/v1/traces", .unix_path = path};
    post_send(&second);
    fault_peer_leave(unix);
    const bool is_gone = access(path, F_OK) != 0;
    fault_peer_return(unix);
    struct post third = second;
    post_send(&third);

    assert_int_equal(first.status, 200);
    assert_int_equal(second.status, 200);
    assert_true(is_gone);
    assert_int_equal(third.status, 200);
    fault_peer_stop(ipv6);
    fault_peer_stop(unix);
    assert_int_equal(rmdir(directory), 0);
}

TEST(reads_bodies_in_chunks)
{
    static const char chunked[] =
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
        "Content-Type: application/json\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n";
    struct fault_peer *peer = start(NULL);
    char heard[sizeof success];
    const int fd = post_connect(fault_peer_port(peer));

    say(fd, chunked, sizeof chunked - 1);
    assert_int_equal(post_hear(fd, heard, sizeof success - 1), sizeof success - 1);

    assert_int_equal(fault_peer_request(peer, 0)->body_length, 2);
    assert_null(fault_peer_problem(peer));
    close(fd);
    fault_peer_stop(peer);
}
