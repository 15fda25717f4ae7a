/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer.h - an OTLP receiver that misbehaves as it is told to, and remembers
 * exactly what it got: over HTTP/1.1 and HTTP/2, with and without TLS, over TCP or a Unix socket.
 *
 * It listens on a free loopback port and serves any number of connections from one thread of its
 * own. HTTP/2 is recognised by its preface, or by ALPN under TLS. The first request (over all
 * connections, counted from when it begins to come) gets the first answer of the script, the second
 * the second; those after the script get `otherwise`. Connections have a script of their own.
 * An answer is in the request's own format, so that one script serves every protocol:
 *
 *     static const struct fault_answer script[] = {
 *         {.status = 503, .headers = "Retry-After: 1\r\n"},
 *         {.in_request = {FAULT_RESET, 1000}},
 *         {.rejected = 3, .message = "three were too old"},
 *     };
 *     struct fault_peer *peer = fault_peer_start(
 *         &(struct fault_peer_options){FAULT_SCRIPT(script)});
 *     ... export to fault_peer_url(peer) ...
 *     assert_true(fault_peer_wait(peer, 4));
 *     assert_null(fault_peer_problem(peer));
 *     fault_peer_stop(peer);
 *
 * Files: fault_peer.c (sockets, scripts), fault_peer_link.c (bytes in and out, and what happens to
 * them), _exchange.c (one request), _tls.c, _http1.c, _http2.c, _answer.c (what is said), _decode.c
 * and _spans.c (what was received).
 *
 * Threads:  one of its own, which calls `decide`; everything else from one thread at a time.
 *           What it returns is valid until fault_peer_stop, if not said otherwise. */
#ifndef OTELI_TESTS_FAULT_PEER_H
#define OTELI_TESTS_FAULT_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What happens to a connection, after that many bytes of something. */
enum fault_deed {
    FAULT_NONE = 0,
    FAULT_STALL, /* says nothing more; goes on reading */
    FAULT_DEAF,  /* neither says nor reads anything more */
    FAULT_FIN,
    FAULT_RESET
};

struct fault {
    enum fault_deed deed;
    size_t after; /* bytes */
};

#define FAULT_ENDLESS SIZE_MAX

enum fault_goaway { /* HTTP/2 */
                    FAULT_GOAWAY_NONE = 0,
                    FAULT_GOAWAY_INSTEAD, /* when the request begins; it is above the last stream
                                             id */
                    FAULT_GOAWAY_WITHIN,  /* when it begins; it is below, and answered */
                    FAULT_GOAWAY_AFTER    /* behind the answer */
};

struct fault_answer {
    /* What it says. All zero is success with nothing to add. */
    int status;            /* of HTTP; 0: 200 */
    int rpc_code;          /* grpc-status; over plain HTTP the code of a google.rpc.Status */
    const char *message;   /* of partial success or Status */
    int64_t rejected;      /* partial success */
    bool has_retry_info;   /* Status has RetryInfo among its details: */
    int64_t retry_info_ms; /* may be negative */
    bool in_trailers_only; /* gRPC: the answer is one HEADERS frame */
    bool has_no_trailers;  /* gRPC: the stream ends with the body */
    const char *headers;   /* more header lines, each with \r\n */
    size_t header_repeats; /* how often they come; 0: once */

    /* The body, instead of one that fits. */
    const char *content_type; /* instead of the request's; "": none */
    const void *body;         /* of gRPC: with frame; NULL: see above */
    size_t body_length;
    size_t body_repeats; /* how often it comes; 0: once */
    size_t announced;   /* Content-Length, whatever comes; 0: the true one, or chunked if endless */
    bool in_gzip;       /* compressed; repeats happen inside */
    const char *before; /* bytes in front of all: "HTTP/1.1 100 Continue\r\n\r\n" (HTTP/1.1) */
    const char *raw;    /* bytes instead of all (HTTP/1.1) */
    bool is_early;      /* said when the request's head is there; the rest is read and kept */
    size_t pace_bytes;  /* so many bytes of it every pace_ms; 0: all at once */
    int pace_ms;

    /* What breaks. A request whose connection breaks before its end is not kept. */
    struct fault in_request; /* bytes of the request from its start (HTTP/2: of its body) */
    struct fault in_answer; /* bytes of the answer (HTTP/2: with frames); more than it has: never */
    enum fault_deed then;   /* behind the whole answer */

    /* HTTP/2. */
    bool resets_stream; /* RST_STREAM; is_early: at once, in_trailers_only: behind the head */
    enum fault_goaway goaway;
    uint32_t http2_error; /* of RST_STREAM or GOAWAY */
};

/* What happens to a connection whatever is asked over it. */
struct fault_connection {
    struct fault in_handshake; /* bytes of the TLS handshake that the peer sends */
    struct fault received;     /* bytes, those under TLS undone */
    struct fault sent;
    bool accepts_connect; /* a proxy: CONNECT is answered with 200, and the peer plays the host
                             too */
    int refuses_connect;  /* a proxy: CONNECT is answered with this status */
    const void *retort;   /* it says this to the first bytes, whatever they are, and no more; */
    size_t retort_length;
    enum fault_deed after_retort;

    /* HTTP/2. */
    bool without_settings; /* never sends SETTINGS */
    bool without_window;   /* lets no byte of a body come */
    bool without_updates;  /* lets the first 64 KiB of bodies come, and no more */
    uint32_t max_streams;  /* SETTINGS_MAX_CONCURRENT_STREAMS; 0: none said */
    bool without_streams;  /* it is 0 */
    bool goes_away;        /* GOAWAY at once, with... */
    uint32_t http2_error;  /* ...this */
    bool floods;           /* PING without end */
};

enum fault_format { FAULT_PROTOBUF, FAULT_JSON, FAULT_GRPC, FAULT_OTHER };

/* A request that came whole. */
struct fault_peer_request {
    size_t number;       /* from 0, in the order in which they began */
    size_t connection;   /* 1 is the first one that was accepted */
    int http;            /* 1 or 2 */
    const char *head;    /* request line and header lines; of HTTP/2 as HTTP/1.1 would have them,
                          with :authority as Host */
    const uint8_t *body; /* as it came */
    size_t body_length;
    const uint8_t *plain; /* without frame and compression; NULL: could not be undone */
    size_t plain_length;
    enum fault_format format;
    const char *encoding; /* "identity", "gzip", "zstd" or what else it said */
    size_t spans;
    const char *problem; /* what a strict receiver has against it, or NULL */
    bool is_too_large;   /* for max_request_bytes: its spans were not taken */
    bool was_taken;      /* it got, or is to get, an answer that says success */
};

struct fault_peer_tls {
    const char *certificate; /* PEM files: the chain; NULL: no TLS */
    const char *key;
    const char *client_ca; /* clients must have a certificate of it; NULL: none is asked for */
    int min_version;       /* 0: whatever there is; 12 or 13 */
    int max_version;
    bool without_http2; /* ALPN offers HTTP/1.1 only */
};

/* How a request that is too large is refused. */
enum fault_refusal { FAULT_REFUSAL_413, FAULT_REFUSAL_400 /* as the Collector does */ };

struct fault_peer_options {
    const struct fault_answer *script; /* borrowed, as all that answers point to */
    size_t script_count;
    struct fault_answer otherwise;
    const struct fault_connection *connections; /* borrowed */
    size_t connection_count;
    struct fault_connection other_connections;

    /* Called with each request that came whole, to change the answer. is_early answers are not
     * asked for, nor those that broke before. */
    void (*decide)(void *state, const struct fault_peer_request *request,
                   struct fault_answer *answer);
    void *decide_state;

    struct fault_peer_tls tls;
    const char *unix_path;    /* listen there; NULL: on loopback */
    bool is_ipv6;             /* on ::1 */
    uint16_t port;            /* 0: a free one */
    size_t max_request_bytes; /* without compression; 0: none. gRPC: RESOURCE_EXHAUSTED */
    enum fault_refusal refusal;
    bool forgets;       /* keeps spans, but not heads and bodies: for long runs */
    bool keeps_none;    /* no spans either: for peers that are to cost nothing */
    bool only_http1;    /* a preface of HTTP/2 is a bad request */
    bool reads_nothing; /* keeps heads and bodies as they came, and does not look into them */
    size_t read_bytes;  /* so much of a connection every read_ms; 0: what is there */
    int read_ms;
    int receive_buffer; /* SO_RCVBUF; 0: the kernel's */
};

#define FAULT_SCRIPT(array) .script = (array), .script_count = sizeof(array) / sizeof *(array)

struct fault_peer;

/* Aborts the program when there is no port. options may be NULL. */
struct fault_peer *fault_peer_start(const struct fault_peer_options *options);
void fault_peer_stop(struct fault_peer *peer);

/* http://127.0.0.1:PORT/v1/traces, the same without the path, and the port. Of a Unix socket both
 * are unix://PATH. */
const char *fault_peer_url(const struct fault_peer *peer);
const char *fault_peer_origin(const struct fault_peer *peer);
uint16_t fault_peer_port(const struct fault_peer *peer);

/* Change what those after the script get, from the next that begins. */
void fault_peer_set_otherwise(struct fault_peer *peer, const struct fault_answer *answer);

/* Change how fast connections are read. */
void fault_peer_set_reading(struct fault_peer *peer, size_t read_bytes, int read_ms);

/* Wait until it has done all that it can do with what was sent to it before: it may be late on a
 * busy machine. Not in a forked child, whose peer is its parent's. */
void fault_peer_settle(struct fault_peer *peer);

/* Close the listener and reset all connections (a Unix socket's file goes too); and be there again,
 * on the same port. */
void fault_peer_leave(struct fault_peer *peer);
void fault_peer_return(struct fault_peer *peer);

/* Wait until that many requests came whole; false after a minute. */
bool fault_peer_wait(struct fault_peer *peer, size_t requests);

/* The nth that came whole, from 0; NULL: there is none, or the peer forgets. */
const struct fault_peer_request *fault_peer_request(struct fault_peer *peer, size_t index);
size_t fault_peer_requests(struct fault_peer *peer);
size_t fault_peer_begun(struct fault_peer *peer); /* an answer of the script is spent on each */
size_t fault_peer_connections(struct fault_peer *peer);
uint64_t fault_peer_bytes_sent(struct fault_peer *peer);

/* The value of a header of a request in `out`, "" when it has none. Returns `out`. */
const char *fault_request_header(const struct fault_peer_request *request, const char *name,
                                 char *out, size_t size);

/* What a strict receiver has against the first request that it would refuse; NULL: nothing. */
const char *fault_peer_problem(struct fault_peer *peer);

/* Spans by their ids, over all requests that came whole. */
struct fault_span_counts {
    uint64_t received;         /* with repetitions */
    uint64_t distinct;         /* different ones */
    uint64_t taken;            /* different ones in requests that were answered with success; those
                                   of partial success among them */
    uint64_t taken_repeatedly; /* of these, those taken more than once */
    uint64_t rejected;         /* as partial successes said */
    uint64_t largest_request;  /* bytes, without compression */
};
struct fault_span_counts fault_peer_spans(struct fault_peer *peer);

#endif
