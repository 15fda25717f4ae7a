/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/http_sink.h - an HTTP/1.1 receiver that does what a simple script says: the common
 * things that a fault receiver (fault_peer.h) can do, in fewer words.
 *
 * It keeps every request it has read, and answers the first with the first answer of the script,
 * the second with the second, and so on; after the script with 200 and nothing.
 *
 *     static const struct http_sink_answer script[] = {
 *         {.status = 503, .headers = "Retry-After: 1\r\n"},
 *         {.then = HTTP_SINK_RESET},
 *     };
 *     struct http_sink *sink = http_sink_start(script, 2);
 *     ... post to http_sink_url(sink) ...
 *     assert_true(http_sink_wait(sink, 3));
 *     http_sink_stop(sink);
 *
 * Threads:  those of a fault receiver. */
#ifndef OTELI_TESTS_HTTP_SINK_H
#define OTELI_TESTS_HTTP_SINK_H

#include "tests/support/fault_peer.h"

enum http_sink_then {
    HTTP_SINK_KEEP = 0,     /* answer, and keep the connection */
    HTTP_SINK_CLOSE,        /* answer, and close without having said so */
    HTTP_SINK_HANG,         /* read the request, never answer */
    HTTP_SINK_NO_ANSWER,    /* read the request, close */
    HTTP_SINK_RESET,        /* read the request, reset the connection */
    HTTP_SINK_RESET_EARLY,  /* reset after the first KiB; such a request is not kept */
    HTTP_SINK_CUT_HEAD,     /* close after the status line */
    HTTP_SINK_CUT_BODY,     /* announce a longer body than `body`, send that, close */
    HTTP_SINK_STALL_BODY,   /* announce a longer body than `body`, send that, say nothing more */
    HTTP_SINK_ENDLESS_HEAD, /* header lines for ever */
    HTTP_SINK_ENDLESS_BODY  /* `body` over and over (or blanks), chunked, for ever */
};

struct http_sink_answer {
    int status;          /* 0: 200 */
    const char *headers; /* whole lines with \r\n; may be NULL */
    const void *body;
    size_t body_length;
    enum http_sink_then then;
};

/* A script and its length, as arguments. */
#define HTTP_SINK_SCRIPT(...)                       \
    (const struct http_sink_answer[]){__VA_ARGS__}, \
        sizeof((const struct http_sink_answer[]){__VA_ARGS__}) / sizeof(struct http_sink_answer)

/* A sink is a fault receiver, and is asked as one. */
#define http_sink fault_peer
#define http_sink_stop fault_peer_stop
#define http_sink_url fault_peer_url
#define http_sink_port fault_peer_port
#define http_sink_wait fault_peer_wait
#define http_sink_settle fault_peer_settle
#define http_sink_requests fault_peer_requests
#define http_sink_connections fault_peer_connections
#define http_sink_bytes_sent fault_peer_bytes_sent
#define http_sink_request fault_peer_request
#define http_sink_header fault_request_header

/* The script is borrowed until http_sink_stop. Aborts the program when there is no port. */
struct http_sink *http_sink_start(const struct http_sink_answer *script, size_t count);

/* Between these two calls no request is kept or answered. */
void http_sink_hold(struct http_sink *sink);
void http_sink_go_on(struct http_sink *sink);

/* From now on what has a longer body is answered with 413, and takes nothing of the script. */
void http_sink_limit(struct http_sink *sink, size_t body_bytes);

/* A loopback port that nobody listens on, as long as this program runs. */
uint16_t http_sink_closed_port(void);

#endif
