/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/waker.c - the bell on Linux: a futex, or a socket for who waits with epoll. See
 * waker.h for the protocol. */
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
static bool is_socket(const struct oteli_bell *bell, int fd)
{
    struct stat found;
    return fstat(fd, &found) == 0 && S_ISSOCK(found.st_mode) &&
           found.st_ino == oteli_load_relaxed_64(&bell->inode);
}

/* Which way to ring is looked at after the word has changed: a worker that changes it looks at
 * the word after that. */
static void wake(struct oteli_bell *bell)
{
    const int saved_errno = errno;
    oteli_add_full_32(&bell->word, 1);
    oteli_add_full_64(&bell->rings, 1);
    const int fd = (int)oteli_load_acquire_32(&bell->fd);
    if (fd < 0)
        syscall(SYS_futex, &bell->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    else if (is_socket(bell, fd))
        (void)!send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    errno = saved_errno;
}

void oteli_bell_ring(struct oteli_bell *bell)
{
    const uint64_t seen = oteli_load_relaxed_64(&bell->wanted);
    /* Nobody else has to ring in this sleep. */
    oteli_cas_full_64(&bell->wanted, seen, seen | OTELI_BELL_NEVER);
    wake(bell);
}

/* Wake the worker if it still is in the sleep that was seen, and nobody has rung in it. */
static void ring_once(struct oteli_bell *bell, uint64_t seen)
{
    if (oteli_cas_full_64(&bell->wanted, seen, seen | OTELI_BELL_NEVER))
        wake(bell);
}

void oteli_bell_knock(struct oteli_bell *bell)
{
    /* Whoever has knocked already looks at `wanted` after that, as we would. */
    if (oteli_load_relaxed_32(&bell->knocked) != 0 ||
        oteli_exchange_full_32(&bell->knocked, 1) != 0)
        return;
    const uint64_t seen = oteli_load_acquire_64(&bell->wanted);
    /* Looked at again: if the worker has heard it meanwhile, this is another sleep. */
    if ((uint32_t)seen != OTELI_BELL_NEVER && oteli_load_relaxed_32(&bell->knocked) != 0)
        ring_once(bell, seen);
}

void oteli_bell_announce(struct oteli_bell *bell, uint64_t spans)
{
    oteli_add_full_64(&bell->waiting, spans);
    const uint64_t seen = oteli_load_acquire_64(&bell->wanted);
    /* What waits is looked at after that: ours may have been taken before this sleep. */
    if ((uint32_t)seen != OTELI_BELL_NEVER && oteli_bell_waiting(bell) >= (int64_t)(uint32_t)seen)
        ring_once(bell, seen);
}

bool oteli_bell_arm(struct oteli_bell *bell, int64_t wanted)
{
    const uint64_t sleep = (oteli_load_relaxed_64(&bell->wanted) >> 32) + 1;
    oteli_store_relaxed_64(&bell->wanted, sleep << 32 | (uint32_t)wanted);
    oteli_fence_full();
    return oteli_bell_waiting(bell) < wanted && oteli_load_relaxed_32(&bell->knocked) == 0;
}

void oteli_bell_disarm(struct oteli_bell *bell)
{
    const uint64_t seen = oteli_load_relaxed_64(&bell->wanted);
    oteli_store_relaxed_64(&bell->wanted, seen | OTELI_BELL_NEVER);
}

void oteli_bell_sleep(struct oteli_bell *bell, uint32_t heard, int64_t wanted, uint64_t deadline_ns)
{
    const int saved_errno = errno;
    if (oteli_bell_arm(bell, wanted)) {
        const struct timespec deadline = oteli_ns_timespec(deadline_ns);
        const bool forever = deadline_ns == UINT64_MAX;
        /* Waits only if the word is still what it was; an absolute monotonic time. */
        syscall(SYS_futex, &bell->word, FUTEX_WAIT_BITSET_PRIVATE, heard,
                forever ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    }
    oteli_bell_disarm(bell);
    errno = saved_errno;
}
