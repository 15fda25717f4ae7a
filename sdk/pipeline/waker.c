/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/waker.c - the waker on Linux: a futex, or a socket for a worker that waits with
 * epoll. See waker.h for the protocol. */
#include "sdk/pipeline/waker.h"
#include "common/clock/time_units.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A program may close what it does not know, and open something else in its place. */
static bool is_socket(const struct oteli_waker *waker, int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode) &&
           found.st_ino == oteli_load_relaxed_64(&waker->inode);
}

/* Which way to wake is looked at after the word has changed: a worker that changes it looks at
 * the word after that. */
static void wake(struct oteli_waker *waker)
{
    const int saved_errno = errno;
    oteli_add_full_32(&waker->word, 1);
    oteli_add_full_64(&waker->wakes, 1);
    const int fd = (int)oteli_load_acquire_32(&waker->fd);
    if (fd < 0)
        syscall(SYS_futex, &waker->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    else if (is_socket(waker, fd))
        (void)!send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    errno = saved_errno;
}

void oteli_waker_wake(struct oteli_waker *waker)
{
    const uint64_t seen = oteli_load_relaxed_64(&waker->wanted);
    /* No other thread has to wake it in this sleep. */
    oteli_cas_full_64(&waker->wanted, seen, seen | OTELI_WAKER_NEVER);
    wake(waker);
}

/* Wake the worker if it still is in the sleep that was seen, and has not been woken in it. */
static void wake_once(struct oteli_waker *waker, uint64_t seen)
{
    if (oteli_cas_full_64(&waker->wanted, seen, seen | OTELI_WAKER_NEVER))
        wake(waker);
}

void oteli_waker_request_drain(struct oteli_waker *waker)
{
    /* The thread that has requested it already looks at `wanted` after that, as this one would. */
    if (oteli_load_relaxed_32(&waker->drain_requested) != 0 ||
        oteli_exchange_full_32(&waker->drain_requested, 1) != 0)
        return;
    const uint64_t seen = oteli_load_acquire_64(&waker->wanted);
    /* Looked at again: if the worker has heard it meanwhile, this is another sleep. */
    if ((uint32_t)seen != OTELI_WAKER_NEVER && oteli_load_relaxed_32(&waker->drain_requested) != 0)
        wake_once(waker, seen);
}

void oteli_waker_announce(struct oteli_waker *waker, uint64_t spans)
{
    oteli_add_full_64(&waker->waiting, spans);
    const uint64_t seen = oteli_load_acquire_64(&waker->wanted);
    /* What waits is looked at after that: ours may have been taken before this sleep. */
    if ((uint32_t)seen != OTELI_WAKER_NEVER &&
        oteli_waker_waiting(waker) >= (int64_t)(uint32_t)seen)
        wake_once(waker, seen);
}

bool oteli_waker_arm(struct oteli_waker *waker, int64_t wanted)
{
    const uint64_t sleep = (oteli_load_relaxed_64(&waker->wanted) >> 32) + 1;
    oteli_store_relaxed_64(&waker->wanted, sleep << 32 | (uint32_t)wanted);
    oteli_fence_full();
    return oteli_waker_waiting(waker) < wanted &&
           oteli_load_relaxed_32(&waker->drain_requested) == 0;
}

void oteli_waker_disarm(struct oteli_waker *waker)
{
    const uint64_t seen = oteli_load_relaxed_64(&waker->wanted);
    oteli_store_relaxed_64(&waker->wanted, seen | OTELI_WAKER_NEVER);
}

void oteli_waker_sleep(struct oteli_waker *waker, uint32_t heard, int64_t wanted,
                       uint64_t deadline_ns)
{
    const int saved_errno = errno;
    if (oteli_waker_arm(waker, wanted)) {
        const struct timespec deadline = oteli_ns_timespec(deadline_ns);
        const bool forever = deadline_ns == UINT64_MAX;
        /* Waits only if the word is still what it was; an absolute monotonic time. */
        syscall(SYS_futex, &waker->word, FUTEX_WAIT_BITSET_PRIVATE, heard,
                forever ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    }
    oteli_waker_disarm(waker);
    errno = saved_errno;
}
