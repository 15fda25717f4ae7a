/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/fault_peer_inside.h - what the files of the fault receiver share.
 *
 *   socket ─▶ fault_link_receive ─▶ (TLS) ─▶ HTTP/1.1 or HTTP/2 ─▶ fault_exchange, one a request
 *   socket ◀─ wire ◀─ (TLS) ◀─ fault_link_send ◀─ produce ◀─ fault_reply
 *
 * Everything that is sent is fetched piece by piece from the protocol, when there is room; so a
 * body may be endless, and a fault can strike at any byte.
 *
 * Threads:  the peer's, but for what fault_peer.c guards with its lock. */
#ifndef OTELI_TESTS_FAULT_PEER_INSIDE_H
#define OTELI_TESTS_FAULT_PEER_INSIDE_H

#include "tests/support/fault_peer.h"

#include <pthread.h>

/* ---- bytes (fault_peer.c) --------------------------------------------------------------- */

struct fault_bytes {
    uint8_t *data; /* NUL behind it, when there is any */
    size_t length;
    size_t room;
    size_t at; /* taken from the front so far */
};

void fault_must(bool fine);
uint64_t fault_now_ms(void); /* monotonic */
void fault_append(struct fault_bytes *bytes, const void *data, size_t length);
void fault_append_text(struct fault_bytes *bytes, const char *text);
size_t fault_left(const struct fault_bytes *bytes);
void fault_take(struct fault_bytes *bytes, size_t length);
void fault_shift(struct fault_bytes *bytes, size_t length); /* the same, and `at` stays 0 */
void fault_clear(struct fault_bytes *bytes);

/* ---- what is said (fault_peer_answer.c) ------------------------------------------------- */

/* An answer, made for one request. */
struct fault_reply {
    int status;
    bool is_grpc;
    bool has_trailers;
    struct fault_bytes headers;  /* lines with \r\n, without those of HTTP/1.1's own framing */
    struct fault_bytes trailers; /* the same */
    struct fault_bytes front;    /* the body is this, ... */
    struct fault_bytes piece;    /* ... this so many times, ... */
    size_t repeats;
    struct fault_bytes back; /* ... and this */
    size_t length;           /* of all; SIZE_MAX: endless */
    size_t at;               /* read so far */
};

void fault_reply_make(struct fault_reply *reply, const struct fault_answer *answer,
                      enum fault_format format);
void fault_reply_free(struct fault_reply *reply);
/* The next bytes of the body; 0: no more. */
size_t fault_reply_read(struct fault_reply *reply, uint8_t *out, size_t room);
/* Whether the answer means that the spans were taken. */
bool fault_answer_is_success(const struct fault_answer *answer, enum fault_format format);

/* ---- one request (fault_peer_exchange.c) ------------------------------------------------ */

struct fault_link;

struct fault_exchange {
    struct fault_link *link;
    size_t number;
    int32_t stream; /* HTTP/2 */
    struct fault_exchange *next;
    struct fault_answer answer;
    struct fault_bytes head;
    struct fault_bytes body;
    bool is_whole;
    bool is_replying;
    bool is_replied; /* all of the answer has been produced */
    bool is_dead;    /* what is still to come of it does not count */
    struct fault_reply reply;
};

/* A request begins: its answer is chosen. Free it with fault_exchange_free. */
struct fault_exchange *fault_exchange_new(struct fault_link *link);
void fault_exchange_free(struct fault_exchange *exchange);
/* It is whole: it is read, kept, and the answer is what `decide` and the limits make of it. */
void fault_exchange_finish(struct fault_exchange *exchange);
/* Make its reply, in the format that its head names. */
void fault_exchange_reply(struct fault_exchange *exchange);
void fault_request_free(struct fault_peer_request *request);

/* ---- one connection (fault_peer_link.c) ------------------------------------------------- */

enum fault_protocol { FAULT_UNKNOWN, FAULT_HTTP1, FAULT_HTTP2 };

struct fault_link {
    struct fault_peer *peer;
    int fd; /* -1: free place */
    size_t number;
    struct fault_connection ways;
    enum fault_protocol protocol;
    struct fault_tls *tls; /* NULL: none */
    struct fault_http1 *http1;
    struct fault_http2 *http2;
    struct fault_bytes opening; /* until the protocol is known */

    size_t received; /* bytes, TLS undone */
    size_t sent;
    struct fault_bytes ready; /* produced, not sent */
    struct fault_bytes wire;  /* as it goes to the socket */
    enum fault_deed closing;  /* FIN or RESET, when the wire is empty */
    bool is_mute;
    bool is_deaf;
    bool is_closed_down; /* FIN was sent: what still comes is thrown away */
    bool is_gone;        /* to be closed */

    /* The answer that is being sent. */
    const struct fault_answer *answer; /* NULL: none */
    struct fault_answer kept_answer;   /* of a stream that is closed */
    size_t answer_left;                /* bytes until its fault; SIZE_MAX: none */
    bool answer_is_produced;           /* what is ready is its end */
    uint64_t pace_at_ms;               /* nothing before */
    size_t pace_left;
    uint64_t read_at_ms; /* nothing is read before */
};

void fault_link_open(struct fault_link *link, struct fault_peer *peer, int fd, size_t number,
                     const struct fault_connection *ways);
void fault_link_close(struct fault_link *link, bool reset);
/* Read what has come, and act on it. */
void fault_link_receive(struct fault_link *link);
/* Send what can be sent at this time. */
void fault_link_send(struct fault_link *link, uint64_t now_ms);
/* Whether it waits for room in the socket, and until when it waits in any case (0: it does not). */
bool fault_link_wants_room(const struct fault_link *link);
uint64_t fault_link_waits_until_ms(const struct fault_link *link);

/* For the protocols. */
void fault_link_do(struct fault_link *link, enum fault_deed deed);
void fault_link_begin_answer(struct fault_link *link, const struct fault_answer *answer);
void fault_link_start_tls(struct fault_link *link);
bool fault_link_has_ended(const struct fault_link *link);

/* ---- TLS (fault_peer_tls.c), HTTP ------------------------------------------------------- */

struct fault_tls_context;
struct fault_tls_context *fault_tls_context_new(const struct fault_peer_tls *options);
void fault_tls_context_free(struct fault_tls_context *context);

struct fault_tls *fault_tls_new(struct fault_tls_context *context);
void fault_tls_free(struct fault_tls *tls);
/* Take bytes from the socket, append what is under them to `plain` and what is to be sent to
 * `wire`: of the handshake at most *handshake_left bytes. False: it failed, or the other end says
 * goodbye. */
bool fault_tls_receive(struct fault_tls *tls, const void *bytes, size_t length,
                       struct fault_bytes *plain, struct fault_bytes *wire, size_t *handshake_left);
bool fault_tls_send(struct fault_tls *tls, const void *bytes, size_t length,
                    struct fault_bytes *wire);
bool fault_tls_is_ready(const struct fault_tls *tls);
bool fault_tls_chose_http2(const struct fault_tls *tls);

struct fault_http1 *fault_http1_new(struct fault_link *link);
void fault_http1_free(struct fault_http1 *http1);
void fault_http1_receive(struct fault_http1 *http1, const void *bytes, size_t length);
void fault_http1_produce(struct fault_http1 *http1, struct fault_bytes *ready);

struct fault_http2 *fault_http2_new(struct fault_link *link);
void fault_http2_free(struct fault_http2 *http2);
void fault_http2_receive(struct fault_http2 *http2, const void *bytes, size_t length);
void fault_http2_produce(struct fault_http2 *http2, struct fault_bytes *ready);

/* ---- what was received (fault_peer_decode.c, fault_peer_spans.c) ------------------------ */

/* Undo compression and gRPC's frame: fills in `plain`. */
void fault_uncover(struct fault_peer_request *request);
/* Look for what is wrong, and count spans; `ids` gets 8 bytes of each. */
void fault_examine(struct fault_peer_request *request, struct fault_bytes *ids);

/* Ids, and how often they came and were taken. */
struct fault_spans {
    struct fault_span {
        uint64_t id; /* 0: free place */
        uint32_t came;
        uint32_t taken;
    } * places;
    size_t room; /* a power of two */
    struct fault_span_counts counts;
};
void fault_spans_add(struct fault_spans *spans, const struct fault_bytes *ids, bool is_taken);

/* ---- the peer --------------------------------------------------------------------------- */

enum { FAULT_LINKS = 256 };

struct fault_peer {
    struct fault_peer_options options;
    struct fault_tls_context *tls;
    int listener; /* -1: away */
    int kept;     /* bound to the port meanwhile; -1: it is there */
    int wake_pipe[2];
    uint16_t port;
    char url[160];
    char origin[144];
    pthread_t thread;
    struct fault_link links[FAULT_LINKS];
    size_t read_bytes; /* of the options, as they are at the moment; the thread's */
    int read_ms;

    pthread_mutex_t lock; /* guards what is below, and the options that can be changed */
    pthread_cond_t changed;
    bool must_stop;
    bool must_leave;
    bool must_return;
    bool must_settle;
    struct fault_peer_request **requests;
    size_t request_count;
    size_t begun_count;
    size_t script_at; /* answers of the script that are spent */
    size_t connection_count;
    uint64_t bytes_sent;
    const char *problem;
    struct fault_spans spans;
    size_t body_limit; /* of http_sink.h, and a script of its own to free */
    struct fault_answer *owned_script;
};

#endif
