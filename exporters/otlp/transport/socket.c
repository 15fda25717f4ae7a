/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/socket.c - the contracts are in exporters/otlp/transport/socket.h.
 * Exporter thread; a transport owns the table. */
#include "exporters/otlp/transport/socket.h"
#include "common/os/descriptor.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

void oteli_sockets_init(struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++)
        sockets->owned[i].socket.fd = -1;
}

static struct oteli_owned_socket *find(struct oteli_sockets *sockets, int fd)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        if (sockets->owned[i].socket.fd == fd)
            return &sockets->owned[i];
    }
    return NULL;
}

int oteli_sockets_open(struct oteli_sockets *sockets, int family, int type, int protocol)
{
    const int fd =
        oteli_descriptor_lift(socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol));
    if (fd < 0)
        return fd;
    struct oteli_owned_socket *place = find(sockets, fd);
    if (place == NULL)
        place = find(sockets, -1);
    if (place != NULL && oteli_owned_fd_set(&place->socket, fd))
        place->is_curls = true;
    return fd;
}

static bool is_of_curl(const struct oteli_owned_socket *owned)
{
    return owned->socket.fd != -1 && owned->is_curls;
}

size_t oteli_sockets_of_curl(const struct oteli_sockets *sockets)
{
    size_t count = 0;
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++)
        count += is_of_curl(&sockets->owned[i]);
    return count;
}

bool oteli_sockets_of_curl_connected(const struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        struct sockaddr_storage peer;
        socklen_t length = sizeof peer;
        if (is_of_curl(&sockets->owned[i]) &&
            getpeername(sockets->owned[i].socket.fd, (struct sockaddr *)&peer, &length) == 0)
            return true;
    }
    return false;
}

void oteli_sockets_forget_closed(struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        struct oteli_owned_socket *owned = &sockets->owned[i];
        if (is_of_curl(owned) && !oteli_owned_fd_is_ours(&owned->socket))
            owned->socket.fd = -1;
    }
}

void oteli_sockets_forget_all_but(struct oteli_sockets *sockets, const int pair[2])
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        if (sockets->owned[i].socket.fd != pair[0] && sockets->owned[i].socket.fd != pair[1])
            sockets->owned[i].socket.fd = -1;
    }
}

int oteli_sockets_close(struct oteli_sockets *sockets, int fd)
{
    struct oteli_owned_socket *owned = find(sockets, fd);
    if (owned != NULL) {
        const bool is_ours = oteli_owned_fd_is_ours(&owned->socket);
        owned->socket.fd = -1;
        if (!is_ours)
            return 0;
    }
    return close(fd);
}

bool oteli_sockets_are_ours(const struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        if (sockets->owned[i].socket.fd != -1 && !oteli_owned_fd_is_ours(&sockets->owned[i].socket))
            return false;
    }
    return true;
}

bool oteli_sockets_of_curl_are_ours(const struct oteli_sockets *sockets, int fd)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        const struct oteli_owned_socket *owned = &sockets->owned[i];
        const bool is_asked = is_of_curl(owned) || (fd != -1 && owned->socket.fd == fd);
        if (is_asked && !oteli_owned_fd_is_ours(&owned->socket))
            return false;
    }
    return true;
}

void oteli_sockets_cork(const struct oteli_sockets *sockets, bool is_held)
{
    const int value = is_held;
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        const struct oteli_owned_socket *owned = &sockets->owned[i];
        if (is_of_curl(owned) && oteli_owned_fd_is_ours(&owned->socket))
            (void)setsockopt(owned->socket.fd, IPPROTO_TCP, TCP_CORK, &value, sizeof value);
    }
}

void oteli_sockets_close_all(struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        if (sockets->owned[i].socket.fd != -1)
            (void)oteli_sockets_close(sockets, sockets->owned[i].socket.fd);
    }
}

/* An end of an unnamed pair, with nothing to read and nothing unread by the other end. */
static bool is_end_of_pair(int fd)
{
    int type = 0;
    struct sockaddr_un name = {.sun_family = AF_UNSPEC};
    socklen_t type_length = sizeof type;
    socklen_t name_length = sizeof name;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_length) == 0 && type == SOCK_STREAM &&
           getsockname(fd, (struct sockaddr *)&name, &name_length) == 0 &&
           name_length == sizeof name.sun_family && name.sun_family == AF_UNIX;
}

static int waiting_in(int fd, unsigned long direction)
{
    int bytes = 0;
    return ioctl(fd, direction, &bytes) == 0 ? bytes : -1;
}

bool oteli_pair_search_begin(struct oteli_pair_search *search)
{
    search->count = 0;
    /* New descriptors have the lowest numbers that are free. */
    const int free_one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (free_one < 0)
        return false;
    close(free_one);
    for (int fd = 0; fd < free_one + OTELI_PAIR_CANDIDATES; fd++) {
        if (!is_end_of_pair(fd) || waiting_in(fd, FIONREAD) != 0 || waiting_in(fd, SIOCOUTQ) != 0)
            continue;
        if (search->count == OTELI_PAIR_CANDIDATES)
            return false;
        search->candidates[search->count++] = fd;
    }
    return search->count >= 2;
}

/* Of the candidates, the only one that now has so many bytes waiting; -1: none, or several. */
static int find_changed(const struct oteli_pair_search *search, unsigned long direction, int least,
                        int most)
{
    int found = -1;
    for (size_t i = 0; i < search->count; i++) {
        const int bytes = waiting_in(search->candidates[i], direction);
        if (bytes < least || bytes > most)
            continue;
        if (found != -1)
            return -1;
        found = search->candidates[i];
    }
    return found;
}

static bool adopt(struct oteli_sockets *sockets, int fd)
{
    struct oteli_owned_socket *place = find(sockets, -1);
    const int flags = fcntl(fd, F_GETFD);
    if (place == NULL || flags < 0 || !oteli_owned_fd_set(&place->socket, fd))
        return false;
    place->is_curls = false;
    return fcntl(fd, F_SETFD, flags | FD_CLOEXEC) == 0;
}

/* Whether what waits is the same byte again and again, as no message of a program's is. */
static bool has_wakeups(int fd)
{
    char bytes[OTELI_PAIR_BYTES];
    return recv(fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof bytes &&
           memcmp(bytes, bytes + 1, sizeof bytes - 1) == 0;
}

void oteli_pair_search_end(const struct oteli_pair_search *search, struct oteli_sockets *sockets)
{
    const int reader = find_changed(search, FIONREAD, OTELI_PAIR_BYTES, OTELI_PAIR_BYTES);
    const int writer =
        find_changed(search, SIOCOUTQ, 1, INT_MAX); /* the kernel counts its own too */
    if (reader != -1 && writer != -1 && has_wakeups(reader))
        (void)(adopt(sockets, reader) && adopt(sockets, writer));
}

void oteli_sockets_open_pair(struct oteli_sockets *sockets, int pair[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0 ||
        oteli_descriptor_lift_pair(pair) != 0) {
        pair[0] = pair[1] = -1;
        return;
    }
    if (!adopt(sockets, pair[0]) || !adopt(sockets, pair[1])) {
        (void)oteli_sockets_close(sockets, pair[0]);
        (void)oteli_sockets_close(sockets, pair[1]);
        pair[0] = pair[1] = -1;
    }
}

uint64_t oteli_socket_inode(int fd)
{
    struct stat now;
    return fstat(fd, &now) == 0 && S_ISSOCK(now.st_mode) ? (uint64_t)now.st_ino : 0;
}

bool oteli_socket_is(int fd, uint64_t inode)
{
    return inode != 0 && oteli_socket_inode(fd) == inode;
}
