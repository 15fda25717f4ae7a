/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/epoll_set.c - the contracts are in exporters/otlp/transport/epoll_set.h.
 * Whoever exports; a transport owns the descriptor. */
#include "exporters/otlp/transport/epoll_set.h"
#include "common/os/descriptor.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { READER, WRITER };

static bool control(int epoll_fd, int operation, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    return epoll_ctl(epoll_fd, operation, fd, &event) == 0;
}

void oteli_epoll_set_init(struct oteli_epoll_set *watch)
{
    *watch = (struct oteli_epoll_set){.fd = -1, .waker = {-1, -1}};
}

bool oteli_epoll_set_open(struct oteli_epoll_set *watch, const int waker[2])
{
    if (waker[READER] == -1)
        return false;
    const int fd = oteli_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
    if (fd == -1)
        return false;
    if (!control(fd, EPOLL_CTL_ADD, waker[READER], 0) ||
        !control(fd, EPOLL_CTL_ADD, waker[WRITER], 0)) {
        close(fd);
        return false;
    }
    *watch = (struct oteli_epoll_set){.fd = fd, .waker = {waker[READER], waker[WRITER]}};
    return true;
}

void oteli_epoll_set_close(struct oteli_epoll_set *watch)
{
    if (watch->fd != -1 && oteli_epoll_set_is_ours(watch))
        close(watch->fd);
    oteli_epoll_set_init(watch);
}

bool oteli_epoll_set_is_ours(const struct oteli_epoll_set *watch)
{
    /* Nothing changes by it, not even for a parent that shares this: it is never armed. */
    return control(watch->fd, EPOLL_CTL_MOD, watch->waker[WRITER], 0);
}

void oteli_epoll_set_arm(struct oteli_epoll_set *watch, bool armed)
{
    if (watch->fd != -1 && watch->is_armed != armed &&
        control(watch->fd, EPOLL_CTL_MOD, watch->waker[READER], armed ? EPOLLIN : 0))
        watch->is_armed = armed;
}

void oteli_epoll_set_socket(struct oteli_epoll_set *watch, int fd, bool reads, bool writes)
{
    if (watch->fd == -1)
        return;
    if (!reads && !writes) {
        (void)control(watch->fd, EPOLL_CTL_DEL, fd, 0);
        return;
    }
    const uint32_t events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);
    if (!control(watch->fd, EPOLL_CTL_ADD, fd, events) &&
        (errno != EEXIST || !control(watch->fd, EPOLL_CTL_MOD, fd, events)))
        watch->has_unwatched_socket = true;
}
