/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/event_loop_fds.c - the descriptors of an engine without a thread; see
 * event_loop_fds.h. */
#include "sdk/pipeline/event_loop_fds.h"
#include "common/base/atomic.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { PERIOD_S = 1 << 30 };

static int epoll_fd_of(const struct oteli_event_fds *event_fds)
{
    return (int)oteli_load_relaxed_32(&event_fds->epoll_fd);
}

/* What an event is about; nothing comes of what is only MUTE. */
enum { MUTE = 0, BELL, TIMER, EXPORTER, KINDS = 3 };

static bool control(int epoll_fd, int how, int fd, uint32_t kind)
{
    struct epoll_event event = {.events = kind != MUTE ? EPOLLIN : 0, .data.u32 = kind};
    return epoll_ctl(epoll_fd, how, fd, &event) == 0;
}

/* The descriptors; -1: none. */
struct held {
    int epoll_fd;
    int timer_fd;
    int pair[2];
};
static const struct held nothing = {-1, -1, {-1, -1}};

/* A timer with this mark goes off once, and then again in more than thirty years: a period that no
 * other has, and by which it is known. */
static bool set_timer(int timer_fd, long mark, struct timespec next)
{
    const struct itimerspec timer = {.it_interval = {PERIOD_S, mark}, .it_value = next};
    return timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &timer, NULL) == 0;
}

static bool is_our_timer(const struct oteli_event_fds *event_fds)
{
    struct itimerspec now;
    return timerfd_gettime(event_fds->timer_fd, &now) == 0 && now.it_interval.tv_sec == PERIOD_S &&
           now.it_interval.tv_nsec == event_fds->timer_mark;
}

/* Those that are what they were when they were made: sockets have inodes of their own, the timer
 * has a period, and the epoll descriptor is the one that one of them is in. */
static struct held still_held(const struct oteli_event_fds *event_fds)
{
    struct held held = nothing;
    const int saved_errno = errno;
    const int epoll_fd = epoll_fd_of(event_fds);
    for (int side = 0; side < 2; side++)
        if (oteli_owned_fd_is_ours(&event_fds->pair[side]))
            held.pair[side] = event_fds->pair[side].fd;
    if (is_our_timer(event_fds))
        held.timer_fd = event_fds->timer_fd;
    if ((held.pair[0] >= 0 && control(epoll_fd, EPOLL_CTL_MOD, held.pair[0], BELL)) ||
        (held.timer_fd >= 0 && control(epoll_fd, EPOLL_CTL_MOD, held.timer_fd, TIMER)))
        held.epoll_fd = epoll_fd;
    errno = saved_errno;
    return held;
}

/* Those that are not kept. */
static void close_all(const struct held *held, const struct held *kept)
{
    const int saved_errno = errno;
    if (held->epoll_fd >= 0 && kept->epoll_fd < 0)
        close(held->epoll_fd);
    if (held->timer_fd >= 0 && kept->timer_fd < 0)
        close(held->timer_fd);
    for (int side = 0; side < 2; side++)
        if (held->pair[side] >= 0 && kept->pair[side] < 0)
            close(held->pair[side]);
    errno = saved_errno;
}

/* Make those that are missing. */
static bool complete(struct held *held)
{
    if (held->epoll_fd < 0)
        held->epoll_fd = oteli_descriptor_lift(epoll_create1(EPOLL_CLOEXEC));
    if (held->timer_fd < 0)
        held->timer_fd =
            oteli_descriptor_lift(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    return held->epoll_fd >= 0 && held->timer_fd >= 0 &&
           (held->pair[0] >= 0 ||
            (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, held->pair) == 0 &&
             oteli_descriptor_lift_pair(held->pair) == 0));
}

static bool put(const struct held *held, int fd, uint32_t kind)
{
    return control(held->epoll_fd, EPOLL_CTL_MOD, fd, kind) ||
           control(held->epoll_fd, EPOLL_CTL_ADD, fd, kind);
}

/* A thread that wakes the worker may have read the old socket's number already. dup3 gives that
 * number to the new socket in one step, so that it never names another file in between. */
static void take_place(struct held *held, int number)
{
    if (number < 0 || number == held->pair[1] || dup3(held->pair[1], number, O_CLOEXEC) < 0)
        return;
    close(held->pair[1]);
    held->pair[1] = number;
}

static long mark_of(const struct oteli_owned_fd *made)
{
    return (long)(made->inode % OTELI_NS_PER_S);
}

bool oteli_event_fds_open(struct oteli_event_fds *event_fds)
{
    struct oteli_owned_fd made[2];
    const struct held before = still_held(event_fds);
    struct held kept = before;
    if (kept.pair[0] < 0 || kept.pair[1] < 0)
        kept.pair[0] = kept.pair[1] = -1; /* one end alone is of no use */
    struct held held = kept;
    if (!complete(&held) || !oteli_owned_fd_set(&made[0], held.pair[0]) ||
        !oteli_owned_fd_set(&made[1], held.pair[1]) || !put(&held, held.pair[0], BELL) ||
        !put(&held, held.timer_fd, TIMER) ||
        (kept.timer_fd < 0 && !set_timer(held.timer_fd, mark_of(&made[0]), (struct timespec){0}))) {
        close_all(&held, &kept);
        return false;
    }
    if (kept.pair[0] < 0) {
        if (before.pair[0] >= 0)
            close(before.pair[0]);
        take_place(&held, before.pair[1]);
    }
    made[1].fd = held.pair[1];
    memcpy(event_fds->pair, made, sizeof made);
    if (kept.timer_fd < 0) {
        event_fds->timer_ns = UINT64_MAX;
        event_fds->timer_mark = mark_of(&made[0]);
    }
    if (kept.epoll_fd < 0)
        event_fds->exporter_fd = -1;
    event_fds->timer_fd = held.timer_fd;
    oteli_store_relaxed_32(&event_fds->epoll_fd, (uint32_t)held.epoll_fd);
    return true;
}

bool oteli_event_fds_is_whole(const struct oteli_event_fds *event_fds)
{
    const struct held held = still_held(event_fds);
    return held.pair[0] >= 0 && held.pair[1] >= 0 && held.timer_fd >= 0 && held.epoll_fd >= 0;
}

void oteli_event_fds_close(struct oteli_event_fds *event_fds)
{
    const struct held held = still_held(event_fds);
    close_all(&held, &nothing);
}

int oteli_event_fds_ms(uint64_t then_ns)
{
    return then_ns == UINT64_MAX ? -1 : oteli_ms_until(then_ns);
}

static void hear(const struct oteli_event_fds *event_fds)
{
    char heard[256];
    while (read(event_fds->pair[0].fd, heard, sizeof heard) == (ssize_t)sizeof heard)
        continue;
}

bool oteli_event_fds_wait(struct oteli_event_fds *event_fds, uint64_t until_ns)
{
    struct epoll_event events[KINDS];
    const int count =
        epoll_wait(epoll_fd_of(event_fds), events, KINDS, oteli_event_fds_ms(until_ns));
    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == BELL)
            hear(event_fds);
        else if (events[i].data.u32 == TIMER)
            event_fds->timer_ns = 0;
    }
    return count >= 0 || errno == EINTR;
}

void oteli_event_fds_set_timer(struct oteli_event_fds *event_fds, uint64_t next_ns)
{
    struct timespec next = {0};
    if (next_ns == 0)
        next_ns = 1; /* at once; a timer that is set to nothing does not go off */
    if (next_ns == event_fds->timer_ns)
        return;
    if (next_ns != UINT64_MAX)
        next = oteli_ns_timespec(next_ns);
    (void)set_timer(event_fds->timer_fd, event_fds->timer_mark, next);
    event_fds->timer_ns = next_ns;
}

bool oteli_event_fds_watch(struct oteli_event_fds *event_fds, int fd)
{
    if (event_fds->exporter_fd == fd)
        return fd >= 0;
    if (event_fds->exporter_fd >= 0)
        (void)control(epoll_fd_of(event_fds), EPOLL_CTL_DEL, event_fds->exporter_fd, EXPORTER);
    const bool is_watched = fd >= 0 && control(epoll_fd_of(event_fds), EPOLL_CTL_ADD, fd, EXPORTER);
    event_fds->exporter_fd = is_watched ? fd : -1;
    return is_watched;
}

void oteli_event_fds_rest(struct oteli_event_fds *event_fds)
{
    (void)oteli_event_fds_watch(event_fds, -1);
    oteli_event_fds_set_timer(event_fds, UINT64_MAX);
    (void)control(epoll_fd_of(event_fds), EPOLL_CTL_MOD, event_fds->pair[0].fd, MUTE);
}
