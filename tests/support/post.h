/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/post.h - a POST by libcurl as a test makes it to try out a receiver, and all that
 * came of it; and bodies of OTLP to send.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TESTS_POST_H
#define OTELI_TESTS_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POST_KEPT = 64 * 1024, POST_TIMEOUT_MS = 10000 };

struct post {
    /* What to ask. */
    const char *url;
    const char *content_type; /* NULL: application/x-protobuf; gRPC's implies HTTP/2 */
    const char *header;       /* one more, or NULL */
    const void *body;
    size_t length;
    bool is_http2; /* with prior knowledge, or by ALPN under TLS */
    long timeout_ms;
    const char *unix_path;
    const char *proxy;
    const char *ca_file;
    const char *certificate_file;
    const char *key_file;
    size_t hang_up_after; /* bytes of the answer's body; 0: never */

    /* What came: curl's code and the answer; lines of headers and trailers one after the other. */
    int result;
    long status;
    char head[POST_KEPT];
    char answer[POST_KEPT];
    size_t answer_length; /* of all, also what was not kept */
    size_t head_length;
};

void post_send(struct post *post);

/* Whether this line is among the headers and trailers that came. */
bool post_got_line(const struct post *post, const char *line);

/* A connection to a port of loopback; so many bytes that come over one, fewer at its end; and whether
 * nothing comes for a moment. */
int post_connect(uint16_t port);
size_t post_hear(int fd, void *heard, size_t length);
bool post_hears_nothing(int fd);

/* An ExportTraceServiceRequest with spans whose ids are `first`, `first` + 1, ... and the same in
 * gRPC's frame. free() it. */
uint8_t *post_make_spans(uint64_t first, size_t count, const char *name, size_t *length);
uint8_t *post_make_frame(const void *message, size_t message_length, bool is_compressed,
                         size_t *length);
void post_span_id(uint64_t number, uint8_t id[8]);

#endif
