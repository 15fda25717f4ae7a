/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_peer.h - receivers that never take anything, each in its own way: two that
 * only the kernel can play, the others as scripts of fault_peer.h.
 *
 * Threads:  that of the peer; everything here from one thread at a time. */
#ifndef OTELI_TESTS_DEAD_PEER_H
#define OTELI_TESTS_DEAD_PEER_H

#include "tests/support/certificates.h"
#include "tests/support/fault_peer.h"

/* The first ones of dead_scenes, for HTTP/1.1, and without certificates. */
enum dead_peer_kind {
    DEAD_PEER_REFUSES,       /* nobody listens */
    DEAD_PEER_FULL_BACKLOG,  /* nobody accepts, and no more connections fit into the queue */
    DEAD_PEER_NEVER_READS,   /* accepts, and leaves what comes in the socket */
    DEAD_PEER_NEVER_ANSWERS, /* reads everything, says nothing */
    DEAD_PEER_TRICKLES,      /* answers one byte a second */
    DEAD_PEER_RESETS,        /* resets in the middle of the body */
    DEAD_PEER_CUTS_HEAD,     /* closes in the middle of the status line */
    DEAD_PEER_CONTINUES,     /* says "100 Continue" and no more */
    DEAD_PEER_BUSY,          /* 503 for ever */
    DEAD_PEER_ENDLESS_BODY,  /* 503 with a body that never ends */
    DEAD_PEER_HTTP2,         /* answers with HTTP/2 frames, GOAWAY among them */
    DEAD_PEER_SILENT_TLS,    /* https: accepts, and never says hello */
    DEAD_PEER_PLAIN,         /* https: speaks HTTP without TLS */
    DEAD_PEER_NO_NAME,       /* a host name whose look-up does not end */
    DEAD_PEER_SILENT_PROXY,  /* a proxy that accepts and says nothing */
    DEAD_PEER_KINDS
};

enum { FOR_HTTP = 1, FOR_GRPC = 2, FOR_ALL = 3 };

struct dead_scene {
    const char *name;
    unsigned protocols;
    bool has_tls;   /* with certificates */
    bool has_https; /* clients are told so */
    int receive_buffer;
    struct fault_connection connection;
    struct fault_answer answer;
    bool may_end;     /* it says something final: there may be nothing left to wait for */
    bool may_receive; /* requests may come whole: their spans must count as unconfirmed, not as
                         lost for sure */
};

extern const struct dead_scene dead_scenes[];
extern const size_t dead_scene_count;

const char *dead_peer_name(enum dead_peer_kind kind);

struct dead_peer;

/* NO_NAME needs a getaddrinfo of the test's own, which must not return. The second plays any of the
 * scenes; it needs certificates for those with TLS. */
struct dead_peer *dead_peer_start(enum dead_peer_kind kind);
struct dead_peer *dead_peer_play(const struct dead_scene *scene, struct certificates *certificates);
void dead_peer_stop(struct dead_peer *peer);

/* The endpoint to export to, without a path, and the proxy to use or NULL. */
const char *dead_peer_url(const struct dead_peer *peer);
const char *dead_peer_proxy(const struct dead_peer *peer);

/* NULL: the kernel plays it. */
struct fault_peer *dead_peer_fault(const struct dead_peer *peer);

#endif
