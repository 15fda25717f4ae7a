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
 * Threads:  call everything from one thread at a time. What http_sink_request returns is
 *           valid until http_sink_stop. */
#ifndef OTELI_TESTS_HTTP_SINK_H
#define OTELI_TESTS_HTTP_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct http_sink_request {
    const char *head; /* request line and headers with their line ends, NUL-terminated */
    const uint8_t *body;
    size_t body_length;
    size_t connection; /* 1 is the first one that was accepted */
};

struct http_sink;

/* The script is borrowed until http_sink_stop. Aborts the program when there is no port. */
struct http_sink *http_sink_start(const struct http_sink_answer *script, size_t count);
void http_sink_stop(struct http_sink *sink);

/* http://127.0.0.1:PORT/v1/traces, and the port alone. */
const char *http_sink_url(const struct http_sink *sink);
uint16_t http_sink_port(const struct http_sink *sink);

/* Wait until that many requests have been read whole; false after a minute. */
bool http_sink_wait(struct http_sink *sink, size_t requests);

/* Wait until it has done all that it can do with what was sent to it before: it may be late on a
 * busy machine. Not in a forked child, whose sink is its parent's. */
void http_sink_settle(struct http_sink *sink);

/* Between these two calls no request is kept or answered. */
void http_sink_hold(struct http_sink *sink);
void http_sink_go_on(struct http_sink *sink);

/* From now on what has a longer body is answered with 413, and takes nothing of the script. */
void http_sink_limit(struct http_sink *sink, size_t body_bytes);

size_t http_sink_requests(struct http_sink *sink);
size_t http_sink_connections(struct http_sink *sink);
size_t http_sink_open_connections(struct http_sink *sink); /* when it has settled */
uint64_t http_sink_bytes_sent(struct http_sink *sink);
const struct http_sink_request *http_sink_request(struct http_sink *sink, size_t index);

/* The value of a header of a request in `out`, "" when it has none. Returns `out`. */
const char *http_sink_header(const struct http_sink_request *request, const char *name, char *out,
                             size_t size);

/* A loopback port that nobody listens on, as long as this program runs. */
uint16_t http_sink_closed_port(void);

#endif
