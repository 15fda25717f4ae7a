/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/epoll_set.c - the contracts are in exporters/otlp/transport/epoll_set.h.
 * The exporting thread; a transport owns the descriptor. */
#include "exporters/otlp/transport/epoll_set.h"
#include "common/os/descriptor.h"

#include <errno.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { READER, WRITER };

/* What the kernel gives back when it can be read from: no program's own set says that. */
static uint64_t mark_of(int fd)
{
    return UINT64_C(0x6f74656c) << 32 | (uint32_t)fd;
}

static bool control(int epoll_fd, int operation, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = mark_of(fd)};
    return epoll_ctl(epoll_fd, operation, fd, &event) == 0;
}

void oteli_epoll_set_init(struct oteli_epoll_set *set)
{
    *set = (struct oteli_epoll_set){.fd = -1, .waker = {-1, -1}, .read_fd = -1, .kept_fd = -1};
}

bool oteli_epoll_set_open(struct oteli_epoll_set *set, const int waker[2])
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
    oteli_epoll_set_init(set);
    set->fd = fd;
    set->waker[READER] = waker[READER];
    set->waker[WRITER] = waker[WRITER];
    return true;
}

void oteli_epoll_set_close(struct oteli_epoll_set *set)
{
    if (set->fd != -1 && oteli_epoll_set_is_ours(set))
        close(set->fd);
    oteli_epoll_set_init(set);
}

bool oteli_epoll_set_is_ours(const struct oteli_epoll_set *set)
{
    /* Nothing changes by it, not even for a parent that shares this: it is never armed. */
    return control(set->fd, EPOLL_CTL_MOD, set->waker[WRITER], 0);
}

static uint32_t waker_events(bool is_armed)
{
    return is_armed ? EPOLLIN : 0u;
}

bool oteli_epoll_set_has_reader(const struct oteli_epoll_set *set)
{
    return control(set->fd, EPOLL_CTL_MOD, set->waker[READER], waker_events(set->is_armed));
}

void oteli_epoll_set_arm(struct oteli_epoll_set *set, bool armed)
{
    if (set->fd != -1 && set->is_armed != armed &&
        control(set->fd, EPOLL_CTL_MOD, set->waker[READER], waker_events(armed)))
        set->is_armed = armed;
}

bool oteli_epoll_set_socket(struct oteli_epoll_set *set, int fd, bool reads, bool writes)
{
    const bool was_kept = fd == set->kept_fd;
    if (set->fd == -1)
        return false;
    if (was_kept)
        set->kept_fd = -1;
    set->read_fd = reads && !writes ? fd : -1;
    if (!reads && !writes)
        return control(set->fd, EPOLL_CTL_DEL, fd, 0);
    const uint32_t events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);
    const bool is_watched = (was_kept && control(set->fd, EPOLL_CTL_MOD, fd, events)) ||
                            control(set->fd, EPOLL_CTL_ADD, fd, events) ||
                            (errno == EEXIST && control(set->fd, EPOLL_CTL_MOD, fd, events));
    set->has_unwatched_socket |= !is_watched;
    return is_watched;
}

int oteli_epoll_set_wait(const struct oteli_epoll_set *set, int timeout_ms)
{
    struct epoll_event events[2];
    const int count = epoll_wait(set->fd, events, 2, timeout_ms);
    if (count < 0 && errno != EINTR)
        return -1;
    return count == 1 && set->read_fd != -1 && events[0].data.u64 == mark_of(set->read_fd);
}

void oteli_epoll_set_keep(struct oteli_epoll_set *set, int fd)
{
    oteli_epoll_set_settle(set);
    if (fd == set->read_fd)
        set->kept_fd = fd;
    else
        (void)oteli_epoll_set_socket(set, fd, false, false);
}

void oteli_epoll_set_settle(struct oteli_epoll_set *set)
{
    if (set->kept_fd != -1)
        (void)oteli_epoll_set_socket(set, set->kept_fd, false, false);
}
