/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/socket.h - the care that sockets need in a library, and libcurl leaves to
 * its user: closed on exec, never mistaken for somebody else's, never a SIGPIPE.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_OTLP_SOCKET_H
#define OTELI_OTLP_SOCKET_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

enum { OTELI_SOCKETS_MAX = 8 }; /* one in use; a few more while several addresses are tried */

/* The sockets that we opened, each with what tells it from a later descriptor of the same
 * number: a daemon may close all that it does not know, and open files in their places. */
struct oteli_sockets {
    struct oteli_owned_socket {
        int fd; /* -1: none */
        dev_t device;
        ino_t inode;
    } owned[OTELI_SOCKETS_MAX];
};

void oteli_sockets_init(struct oteli_sockets *sockets);

/* socket(2), closed on exec, and close(2), unless the descriptor is no longer ours. */
int oteli_sockets_open(struct oteli_sockets *sockets, int family, int type, int protocol);
int oteli_sockets_close(struct oteli_sockets *sockets, int fd);

/* Whether every open one is still the socket that it was. */
bool oteli_sockets_are_ours(const struct oteli_sockets *sockets);

/* Close those that still are. */
void oteli_sockets_close_all(struct oteli_sockets *sockets);

/* TLS libraries write to sockets without MSG_NOSIGNAL. The exporter thread blocks every
 * signal; a thread that does not must not die of a SIGPIPE either. Between begin and end
 * it is blocked, and one that was raised there is taken away; no disposition is touched. */
struct oteli_sigpipe_guard {
    bool is_active;
    bool was_pending;
    sigset_t before;
};
struct oteli_sigpipe_guard oteli_sigpipe_guard_begin(bool is_needed);
void oteli_sigpipe_guard_end(const struct oteli_sigpipe_guard *guard);

#endif
