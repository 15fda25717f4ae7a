/* SPDX-License-Identifier: Apache-2.0 */
/* The fault receiver finds what a strict receiver would, and counts spans by their ids. Where it
 * breaks is seen by the tests that ask for it. */
#include "tests/support/fault_peer.h"
#include "tests/support/unit.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

/* A POST by libcurl, and what came of it. */
struct post {
    const char *content_type; /* gRPC's is asked over HTTP/2 */
    const char *header;       /* one more, or NULL */
    const void *body;
    size_t length;
    long status;
};

static size_t drop_body(char *bytes, size_t one, size_t length, void *state)
{
    (void)bytes;
    (void)one;
    (void)state;
    return length;
}

static void post_to(struct fault_peer *peer, struct post *post)
{
    const bool is_grpc = strstr(post->content_type, "grpc") != NULL;
    char type[64];
    CURL *curl = curl_easy_init();
    assert_non_null(curl);
    snprintf(type, sizeof type, "Content-Type: %s", post->content_type);
    struct curl_slist *headers = curl_slist_append(curl_slist_append(NULL, type), "Expect:");
    if (post->header != NULL)
        headers = curl_slist_append(headers, post->header);
    curl_easy_setopt(curl, CURLOPT_URL, fault_peer_url(peer));
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post->body);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)post->length);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
                     is_grpc ? (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
                             : (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop_body);
    assert_int_equal(curl_easy_perform(curl), CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &post->status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
}

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
