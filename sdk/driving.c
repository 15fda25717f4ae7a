/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/driving.c - the descriptors of an engine without a thread; see driving.h. */
#include "sdk/driving.h"
#include "common/atomic.h"
#include "common/clock.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static int epoll_fd_of(const struct oteli_driving *driving)
{
    return (int)oteli_load_relaxed_32(&driving->epoll_fd);
}

/* What an event is about; nothing comes of what is only MUTE. */
enum { MUTE = 0, BELL, TIMER, EXPORTER, KINDS = 3 };

static bool control(int epoll_fd, int how, int fd, uint32_t kind)
{
    struct epoll_event event = {.events = kind != MUTE ? EPOLLIN : 0, .data.u32 = kind};
    return epoll_ctl(epoll_fd, how, fd, &event) == 0;
}

static void close_all(int epoll_fd, int timer_fd, const int pair[2])
{
    const int fds[] = {epoll_fd, timer_fd, pair[0], pair[1]};
    const int saved_errno = errno;
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    errno = saved_errno;
}

bool oteli_driving_open(struct oteli_driving *driving)
{
    struct stat made[2];
    int pair[2] = {-1, -1};
    const int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    const int timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (epoll_fd < 0 || timer_fd < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0 ||
        fstat(pair[0], &made[0]) != 0 || fstat(pair[1], &made[1]) != 0 ||
        !control(epoll_fd, EPOLL_CTL_ADD, pair[0], BELL) ||
        !control(epoll_fd, EPOLL_CTL_ADD, timer_fd, TIMER)) {
        close_all(epoll_fd, timer_fd, pair);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        driving->pair[i] = pair[i];
        driving->inodes[i] = made[i].st_ino;
    }
    driving->device = made[0].st_dev;
    driving->timer_fd = timer_fd;
    driving->exporter_fd = -1;
    driving->timer_ns = UINT64_MAX;
    oteli_store_relaxed_32(&driving->epoll_fd, (uint32_t)epoll_fd);
    driving->is_open = true;
    return true;
}

static bool is_ours(const struct oteli_driving *driving, int side)
{
    struct stat found;
    return fstat(driving->pair[side], &found) == 0 && found.st_dev == driving->device &&
           found.st_ino == driving->inodes[side];
}

bool oteli_driving_is_whole(const struct oteli_driving *driving)
{
    const int epoll_fd = epoll_fd_of(driving);
    return driving->is_open && is_ours(driving, 0) && is_ours(driving, 1) &&
           control(epoll_fd, EPOLL_CTL_MOD, driving->pair[0], BELL) &&
           control(epoll_fd, EPOLL_CTL_MOD, driving->timer_fd, TIMER);
}

void oteli_driving_close(struct oteli_driving *driving)
{
    if (oteli_driving_is_whole(driving))
        close_all(epoll_fd_of(driving), driving->timer_fd, driving->pair);
    driving->is_open = false;
}

int oteli_driving_ms(uint64_t then_ns)
{
    if (then_ns == UINT64_MAX)
        return -1;
    const uint64_t now_ns = oteli_monotonic_ns();
    if (then_ns <= now_ns)
        return 0;
    const uint64_t left_ns = then_ns - now_ns;
    const uint64_t ms = left_ns / NS_PER_MS + (left_ns % NS_PER_MS != 0);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

static void hear(const struct oteli_driving *driving)
{
    char heard[256];
    while (read(driving->pair[0], heard, sizeof heard) == (ssize_t)sizeof heard)
        continue;
}

bool oteli_driving_wait(struct oteli_driving *driving, uint64_t until_ns)
{
    struct epoll_event events[KINDS];
    const int count = epoll_wait(epoll_fd_of(driving), events, KINDS, oteli_driving_ms(until_ns));
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == BELL)
            hear(driving);
        else if (events[i].data.u32 == TIMER)
            driving->timer_ns = 0;
    }
    return count >= 0 || errno == EINTR;
}

void oteli_driving_set_timer(struct oteli_driving *driving, uint64_t next_ns)
{
    struct itimerspec timer = {0};
    if (next_ns == 0)
        next_ns = 1; /* at once; a timer that is set to nothing does not go off */
    if (next_ns == driving->timer_ns)
        return;
    if (next_ns != UINT64_MAX)
        timer.it_value =
            (struct timespec){(time_t)(next_ns / NS_PER_S), (long)(next_ns % NS_PER_S)};
    timerfd_settime(driving->timer_fd, TFD_TIMER_ABSTIME, &timer, NULL);
    driving->timer_ns = next_ns;
}

bool oteli_driving_watch(struct oteli_driving *driving, int fd)
{
    if (driving->exporter_fd == fd)
        return fd >= 0;
    if (driving->exporter_fd >= 0)
        (void)control(epoll_fd_of(driving), EPOLL_CTL_DEL, driving->exporter_fd, EXPORTER);
    const bool is_watched = fd >= 0 && control(epoll_fd_of(driving), EPOLL_CTL_ADD, fd, EXPORTER);
    driving->exporter_fd = is_watched ? fd : -1;
    return is_watched;
}

void oteli_driving_rest(struct oteli_driving *driving)
{
    (void)oteli_driving_watch(driving, -1);
    oteli_driving_set_timer(driving, UINT64_MAX);
    (void)control(epoll_fd_of(driving), EPOLL_CTL_MOD, driving->pair[0], MUTE);
}
