/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dead_peer.h - receivers that never take anything, each in its own way.
 *
 * Threads:  one thread of its own; start and stop from one thread at a time. */
#ifndef OTELI_TESTS_DEAD_PEER_H
#define OTELI_TESTS_DEAD_PEER_H

#include <stddef.h>

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

const char *dead_peer_name(enum dead_peer_kind kind);

struct dead_peer;

/* NO_NAME needs a getaddrinfo of the test's own, which must not return. */
struct dead_peer *dead_peer_start(enum dead_peer_kind kind);
void dead_peer_stop(struct dead_peer *peer);

/* The endpoint to export to, and the proxy to use or NULL. */
const char *dead_peer_url(const struct dead_peer *peer);
const char *dead_peer_proxy(const struct dead_peer *peer);

#endif
