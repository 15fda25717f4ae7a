/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/socket.c - the contracts are in exporters/otlp/socket.h. Exporter thread;
 * a transport owns the table. */
#include "exporters/otlp/socket.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void oteli_sockets_init(struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++)
        sockets->owned[i].fd = -1;
}

static struct oteli_owned_socket *find(struct oteli_sockets *sockets, int fd)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        if (sockets->owned[i].fd == fd)
            return &sockets->owned[i];
    }
    return NULL;
}

static bool is_still_ours(const struct oteli_owned_socket *owned)
{
    struct stat now;
    return fstat(owned->fd, &now) == 0 && now.st_dev == owned->device && now.st_ino == owned->inode;
}

int oteli_sockets_open(struct oteli_sockets *sockets, int family, int type, int protocol)
{
    const int fd = socket(family, type | SOCK_CLOEXEC, protocol);
    struct stat identity;
    struct oteli_owned_socket *place = fd >= 0 ? find(sockets, -1) : NULL;
    if (place != NULL && fstat(fd, &identity) == 0)
        *place = (struct oteli_owned_socket){fd, identity.st_dev, identity.st_ino};
    return fd;
}

int oteli_sockets_close(struct oteli_sockets *sockets, int fd)
{
    struct oteli_owned_socket *owned = find(sockets, fd);
    if (owned != NULL) {
        const bool is_ours = is_still_ours(owned);
        owned->fd = -1;
        if (!is_ours)
            return 0;
    }
    return close(fd);
}

bool oteli_sockets_are_ours(const struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        if (sockets->owned[i].fd != -1 && !is_still_ours(&sockets->owned[i]))
            return false;
    }
    return true;
}

void oteli_sockets_close_all(struct oteli_sockets *sockets)
{
    for (size_t i = 0; i < OTELI_SOCKETS_MAX; i++) {
        if (sockets->owned[i].fd != -1)
            (void)oteli_sockets_close(sockets, sockets->owned[i].fd);
    }
}

static sigset_t only_sigpipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

struct oteli_sigpipe_guard oteli_sigpipe_guard_begin(bool is_needed)
{
    struct oteli_sigpipe_guard guard = {0};
    if (!is_needed)
        return guard;
    const sigset_t sigpipe = only_sigpipe();
    sigset_t pending;
    pthread_sigmask(SIG_BLOCK, &sigpipe, &guard.before);
    guard.is_active = sigismember(&guard.before, SIGPIPE) == 0;
    if (guard.is_active && sigpending(&pending) == 0)
        guard.was_pending = sigismember(&pending, SIGPIPE) == 1;
    return guard;
}

void oteli_sigpipe_guard_end(const struct oteli_sigpipe_guard *guard)
{
    if (!guard->is_active)
        return;
    const sigset_t sigpipe = only_sigpipe();
    const struct timespec at_once = {0};
    if (!guard->was_pending)
        (void)sigtimedwait(&sigpipe, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}
