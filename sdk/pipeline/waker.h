/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/waker.h - wake the worker when a whole batch waits, at most once per sleep.
 *
 * The worker says how many spans it wants and sleeps; a producer that makes the number of
 * waiting spans reach that wakes it. While the worker is awake or exporting it wants more
 * than there can be, so no producer wakes it.
 *
 *     worker                                producer
 *     1 wanted = n, of another sleep        1 waiting += spans        (full)
 *     2 full fence                          2 w = wanted, then if waiting < w: done
 *     3 if waiting >= n or asked: no sleep  3 compare and swap: wanted from w to NEVER; if it
 *     4 sleep until the word changes          was not w: done, see below
 *       from what it was before 1, or T     4 word += 1, futex wake
 *     5 wanted = NEVER
 *
 * No wake-up is lost: order worker 1 and producer 1 by which comes first. If the producer's
 * addition is first, worker 3 sees it, for there is a full fence between worker 1 and 3. If worker
 * 1 is first, producer 2 sees n, for its addition is a full fence as well; and its 4 either comes
 * before the futex call, which then does not sleep because the word has changed, or after it, and
 * wakes it. Time T bounds everything else.
 *
 * No wake-up is for nothing: `wanted` has the number of the sleep in it, so producer 3 only
 * succeeds in the sleep that 2 was about, in which so many waited. Where it fails, another
 * producer has woken it, or the worker has looked after our addition. (One that is stopped between
 * 3 and 4 wakes the worker late, perhaps in its next sleep: there is never more than one
 * wake-up for each sleep.)
 *
 * A request to drain is the same with `drain_requested` in the place of `waiting` and any sleep
 * worth waking from: the worker looks at it where it looks at `waiting`, and takes it back when it
 * acts.
 *
 * Threads:  wake and request_drain any thread, lock-free; sleep the worker. */
#ifndef OTELI_WAKER_H
#define OTELI_WAKER_H

#include "common/base/atomic.h"

/* In the lower half of `wanted`: the worker is awake. */
#define OTELI_WAKER_NEVER UINT32_MAX

struct oteli_waker {
    uint32_t word;    /* changes with every wake-up */
    uint32_t fd;      /* a socket that is written to instead of a futex wake; -1: none */
    uint64_t wanted;  /* lower half: spans that must wait to be worth a wake-up; upper half: the
                         number of the sleep */
    uint64_t waiting; /* int64_t: spans announced by producers less those taken; may be
                         below zero, because the worker takes spans before they are announced */
    uint32_t drain_requested; /* 1: since the worker last asked */
    uint64_t wakes;           /* how often the worker was woken */
    uint64_t inode;           /* of the socket: its number may be another descriptor's by now */
};

/* Producer: announce spans, and wake the worker if that makes a batch. */
void oteli_waker_announce(struct oteli_waker *waker, uint64_t spans);

/* Worker: spans were taken. */
static inline void oteli_waker_taken(struct oteli_waker *waker, uint64_t spans)
{
    oteli_add_full_64(&waker->waiting, (uint64_t)0 - spans);
}

static inline int64_t oteli_waker_waiting(const struct oteli_waker *waker)
{
    return (int64_t)oteli_load_relaxed_64(&waker->waiting);
}

/* Whether the worker sleeps, or is about to, and has not been woken. */
static inline bool oteli_waker_is_armed(const struct oteli_waker *waker)
{
    return (uint32_t)oteli_load_relaxed_64(&waker->wanted) != OTELI_WAKER_NEVER;
}

/* Any thread: wake the worker whatever it waits for. */
void oteli_waker_wake(struct oteli_waker *waker);

/* Producer: wake the worker if it sleeps and has not been woken yet, and keep it awake if
 * it is about to sleep. */
void oteli_waker_request_drain(struct oteli_waker *waker);

/* Worker: whether a drain has been requested since this was last asked. */
static inline bool oteli_waker_take_drain_request(struct oteli_waker *waker)
{
    return oteli_exchange_full_32(&waker->drain_requested, 0) != 0;
}

/* Worker: the part of falling asleep that makes it safe: say what is wanted, and look once
 * more. False: there is something to do. A worker that then waits by other means than
 * oteli_waker_sleep calls oteli_waker_disarm afterwards. */
bool oteli_waker_arm(struct oteli_waker *waker, int64_t wanted);
void oteli_waker_disarm(struct oteli_waker *waker);

/* Worker: sleep until `wanted` spans wait, a thread wakes it, or the monotonic clock says
 * deadline_ns (UINT64_MAX: never). `heard` is the word as it was before the worker last
 * looked whether it had something to do (oteli_waker_listen). */
static inline uint32_t oteli_waker_listen(const struct oteli_waker *waker)
{
    return oteli_load_acquire_32(&waker->word);
}
void oteli_waker_sleep(struct oteli_waker *waker, uint32_t heard, int64_t wanted,
                       uint64_t deadline_ns);

static inline void oteli_waker_init(struct oteli_waker *waker)
{
    waker->word = 0;
    waker->wanted = OTELI_WAKER_NEVER;
    waker->waiting = 0;
    waker->drain_requested = 0;
    waker->wakes = 0;
    waker->fd = UINT32_MAX;
    waker->inode = 0;
}

/* Worker: be woken by this socket from now on; -1: by the futex again. A wake-up while
 * this changes may go the other way, so the worker listens again before it sleeps. */
static inline void oteli_waker_set_fd(struct oteli_waker *waker, int fd, uint64_t inode)
{
    if (fd >= 0)
        oteli_store_relaxed_64(&waker->inode, inode);
    oteli_store_release_32(&waker->fd, (uint32_t)fd);
}

#endif
