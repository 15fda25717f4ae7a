/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/event_loop_fds.h - what an engine without a thread waits with, and lends to the
 * program's loop. One with a thread has it while an exporter waits for something between exports
 * (on_idle.c).
 *
 *     epoll descriptor ─┬─ pair         the waker: a batch waits, a thread asks for a flush
 *                       ├─ timer        a tick, a deadline
 *                       └─ descriptor   of the exporter that is being waited for
 *
 * A program may close every descriptor it does not know, and others get their numbers then. So
 * before these are used they are looked at: a socket has an inode of its own, our timer a period of
 * its own, and our epoll descriptor is the one that one of them is in. The waker has sockets and no
 * pipe, because a write to a pipe of which one end is left raises a signal.
 *
 * Threads:  the one that drives (drive.h); the waker's end of the pair any thread. */
#ifndef OTELI_EVENT_LOOP_FDS_H
#define OTELI_EVENT_LOOP_FDS_H

#include "common/os/owned_fd.h"
#include <stdbool.h>
#include <stdint.h>

struct oteli_event_fds {
    bool is_chosen;                /* there is no thread. Constant */
    bool is_driven;                /* by some thread; under the engine's mutex */
    uint32_t epoll_fd;             /* which any thread may ask for: atomic, an int … */
    struct oteli_owned_fd pair[2]; /* … the waker writes to the second … */
    int timer_fd;                  /* … */
    int exporter_fd;               /* … and this one is an exporter's; -1: none is watched */
    long timer_mark;               /* what the timer is known by */
    uint64_t timer_ns;             /* what the timer is set to; 0: it has gone off since */
    uint64_t next_ns;     /* when to be called again in any case; UINT64_MAX: never. Atomic */
    uint64_t deadline_ns; /* until when the driving thread has time */
    uint64_t flush_heard; /* requests for a flush by the last look. Atomic */
    uint32_t rests;       /* the last look found nothing, and the next span wakes. Atomic */
};

/* Make the descriptors, or those of them that are not ours any more. What the program's loop may
 * know, and what the waker's number is, stays so if it can. */
bool oteli_event_fds_open(struct oteli_event_fds *event_fds);

/* Close those that are known to be ours. Also a forked child's copies. */
void oteli_event_fds_close(struct oteli_event_fds *event_fds);

/* Whether all of them are what they were when they were made. */
bool oteli_event_fds_is_whole(const struct oteli_event_fds *event_fds);

/* Wait until there may be something to do, or `until_ns`; and hear the waker. False: there is
 * nothing to wait with. */
bool oteli_event_fds_wait(struct oteli_event_fds *event_fds, uint64_t until_ns);

/* When to stop waiting in any case; UINT64_MAX: never. */
void oteli_event_fds_set_timer(struct oteli_event_fds *event_fds, uint64_t next_ns);

/* Wait for this descriptor of an exporter as well, and no other; -1: for none. False: it does
 * not go, or there is none. */
bool oteli_event_fds_watch(struct oteli_event_fds *event_fds, int fd);

/* Stop signalling the descriptor: the engine has stopped. */
void oteli_event_fds_rest(struct oteli_event_fds *event_fds);

/* Until `then_ns`, in milliseconds for poll and its kin; -1: for ever. */
int oteli_event_fds_ms(uint64_t then_ns);

#endif
