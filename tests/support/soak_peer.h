/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/soak_peer.h - a receiver (fault_peer.h) in a process of its own, that may be killed
 * at any moment and started again on the same port, and still knows which spans came: their ids
 * are numbers from 1, and it keeps a bit for each, in memory that is not the program's.
 *
 * What is shared is a file without a name. The program maps its head only, and reads the bits from
 * the file, so that none of them counts as memory of the program.
 *
 * Threads:  soak_peer_serve is a process of its own; the rest from one thread. */
#ifndef OTELI_TESTS_SOAK_PEER_H
#define OTELI_TESTS_SOAK_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What is wrong with the receiver. */
enum soak_trouble {
    SOAK_CALM = 0,
    SOAK_RESETS,     /* within a request */
    SOAK_CUTS,       /* the connection within an answer */
    SOAK_BUSY,       /* 503 with Retry-After */
    SOAK_STALLS,     /* instead of an answer */
    SOAK_DEAF,       /* within a request */
    SOAK_GOES_AWAY,  /* GOAWAY; HTTP/1.1: the connection ends behind each answer */
    SOAK_TOO_LARGE,  /* 413 */
    SOAK_PARTIAL,    /* success but for one span */
    SOAK_TRICKLES,   /* a slow answer */
    SOAK_KILLED,     /* kill -9, and back later */
    SOAK_RENEWED,    /* kill -9, and back with certificates of a new authority */
    SOAK_HANDSHAKES, /* TLS stalls; without TLS connections do */
    SOAK_TROUBLES
};

extern const char *const soak_trouble_names[SOAK_TROUBLES];

struct soak_shared {
    uint32_t trouble;  /* enum soak_trouble; atomic */
    uint32_t is_ready; /* atomic */
    uint64_t requests; /* that came whole; these are the receiver's, atomic */
    uint64_t received; /* spans, with repetitions */
    uint64_t rejected; /* as partial successes said */
    uint64_t unknown;  /* ids that are no number of a span */
    uint32_t has_problem;
    char problem[256]; /* what a strict receiver has against a request */
};

struct soak_peer {
    struct soak_shared *shared;
    int file;
    uint64_t most; /* numbers */
    uint16_t port;
    const char *directory; /* of ca.pem and what it signs */
    bool has_tls;
    pid_t process; /* 0: none */
};

/* Ends the program when something fails. */
void soak_peer_init(struct soak_peer *peer, uint64_t most, const char *directory);
void soak_peer_fini(struct soak_peer *peer);

/* Start it, and wait until it listens; `renews`: with certificates of a new authority. */
void soak_peer_start(struct soak_peer *peer, bool renews, bool stalls_handshakes);
void soak_peer_kill(struct soak_peer *peer);

/* How many of the spans from `first` up to, and without, `end` came, and how many of them in
 * requests that were answered with success. */
struct soak_counts {
    uint64_t came;
    uint64_t taken;
};
struct soak_counts soak_peer_count(const struct soak_peer *peer, uint64_t first, uint64_t end);

/* The main function of the receiver's process: argv[1] is "receiver". */
int soak_peer_serve(int argc, char **argv);

#endif
