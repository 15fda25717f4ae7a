/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/socket.h - the care that sockets need in a library, and libcurl leaves
 * to its user: closed on exec, never mistaken for the program's.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_SOCKET_H
#define OTELI_SOCKET_H

#include "common/os/owned_fd.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { OTELI_SOCKETS_MAX = 12 }; /* two pairs, a connection; more while addresses are tried */

/* The sockets that we opened. */
struct oteli_sockets {
    struct oteli_owned_socket {
        struct oteli_owned_fd socket;
        bool is_curls;
    } owned[OTELI_SOCKETS_MAX];
};

void oteli_sockets_init(struct oteli_sockets *sockets);

/* socket(2), closed on exec and non-blocking (libcurl does not look whether it could make it so),
 * and close(2), unless the descriptor is no longer ours. */
int oteli_sockets_open(struct oteli_sockets *sockets, int family, int type, int protocol);
int oteli_sockets_close(struct oteli_sockets *sockets, int fd);

/* Some versions of curl close an attempt to connect that has lost or was given up without
 * calling oteli_sockets_close. Right after curl has run, those that are no longer ours were
 * closed by it, and are struck off here. */
void oteli_sockets_forget_closed(struct oteli_sockets *sockets);

/* When curl's handles have been closed, and with them all its sockets, the pair found by the search
 * below as well: those descriptors may name other files already. */
void oteli_sockets_forget_all_but(struct oteli_sockets *sockets, const int pair[2]);

/* How many sockets curl has; more than one while it tries several addresses. */
size_t oteli_sockets_of_curl(const struct oteli_sockets *sockets);

/* Whether one of these has a peer. */
bool oteli_sockets_of_curl_connected(const struct oteli_sockets *sockets);

/* Whether every open one is still the socket that it was; or only curl's connections, and `fd`. */
bool oteli_sockets_are_ours(const struct oteli_sockets *sockets);
bool oteli_sockets_of_curl_are_ours(const struct oteli_sockets *sockets, int fd);

/* Hold back what does not fill a segment of curl's connections (TCP_CORK), or let it go. */
void oteli_sockets_cork(const struct oteli_sockets *sockets, bool is_held);

/* Close those that still are. */
void oteli_sockets_close_all(struct oteli_sockets *sockets);

/* A connected pair, closed on exec and never blocking; [0] is -1 when there is none. */
void oteli_sockets_open_pair(struct oteli_sockets *sockets, int pair[2]);

/* Whether a descriptor is still the socket with this inode. Any thread. */
bool oteli_socket_is(int fd, uint64_t inode);
uint64_t oteli_socket_inode(int fd);

/* curl makes a pair of its own for curl_multi_wakeup, and leaves it open on exec. Nothing
 * says which descriptors it has, so they are found by sending bytes through it: of all idle pairs
 * it is the one that has exactly these. A pair of the program's in which another thread sends
 * something at that moment is not taken for it.
 *
 *     if (oteli_pair_search_begin(&search)) {
 *         ... curl_multi_wakeup, OTELI_PAIR_BYTES times: the same byte each time ...
 *         oteli_pair_search_end(&search, sockets);
 *     }
 *
 * Then both are closed on exec and among `sockets`. Where none is found, for newer
 * versions of curl use something better, nothing changes. */
enum { OTELI_PAIR_CANDIDATES = 64, OTELI_PAIR_BYTES = 7 };
struct oteli_pair_search {
    int candidates[OTELI_PAIR_CANDIDATES];
    size_t count;
};

/* false: there is no idle pair, or there are too many to remember. */
bool oteli_pair_search_begin(struct oteli_pair_search *search);
void oteli_pair_search_end(const struct oteli_pair_search *search, struct oteli_sockets *sockets);

#endif
