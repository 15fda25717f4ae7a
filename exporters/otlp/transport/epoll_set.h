/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/epoll_set.h - one descriptor that stands for all those that a request
 * waits for.
 *
 *     descriptor ─┬─ our waker's reading end    while it is armed
 *     (epoll)     ├─ its writing end            never readable: it only shows whose this is
 *                 └─ curl's sockets             as curl says; one stays from a request to the next
 *
 * All epoll descriptors look the same to fstat, so what tells ours from another of that
 * number is that the writing end is in it.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_EPOLL_SET_H
#define OTELI_EPOLL_SET_H

#include <stdbool.h>

struct oteli_epoll_set {
    int fd; /* -1: none */
    int waker[2];
    bool is_armed;
    bool has_unwatched_socket; /* one could not be watched */
    int read_fd;               /* the socket that was set last, if only to be read; -1: none */
    int kept_fd;               /* one that curl does not wait for now is still in it; -1: none */
};

void oteli_epoll_set_init(struct oteli_epoll_set *set);

/* Make the descriptor, closed on exec and not armed; false: there is none. */
bool oteli_epoll_set_open(struct oteli_epoll_set *set, const int waker[2]);

/* Close it, unless it is no longer ours. Also for a forked child's copy: the parent's stays
 * as it is. The waker is still open, and known to be ours. */
void oteli_epoll_set_close(struct oteli_epoll_set *set);

/* Whether it is still what it was; the waker is known to be ours. */
bool oteli_epoll_set_is_ours(const struct oteli_epoll_set *set);

/* The same where only its reading end is, in the process that made it. */
bool oteli_epoll_set_has_reader(const struct oteli_epoll_set *set);

/* Become readable when the waker is, or no longer. */
void oteli_epoll_set_arm(struct oteli_epoll_set *set, bool armed);

/* Become readable when this socket, or another epoll descriptor, can be read from or written to;
 * neither: no longer. false: that is not possible. */
bool oteli_epoll_set_socket(struct oteli_epoll_set *set, int fd, bool reads, bool writes);

/* Wait, where this is known to be ours. 1: it still is, and nothing but the socket that was set
 * last, to be read, has made it readable; 0: that is not known; -1: it cannot be waited for. */
int oteli_epoll_set_wait(const struct oteli_epoll_set *set, int timeout_ms);

/* No longer for this one, most likely because the request is through: the next one reads from it
 * again. It may stay until oteli_epoll_set_settle, which comes before any wait. */
void oteli_epoll_set_keep(struct oteli_epoll_set *set, int fd);
void oteli_epoll_set_settle(struct oteli_epoll_set *set);

#endif
