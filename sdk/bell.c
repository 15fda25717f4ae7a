/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/bell.c - the bell on Linux: a futex, or an eventfd for who waits with epoll. See bell.h
 * for the protocol. */
#include "sdk/bell.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void oteli_bell_ring(struct oteli_bell *bell)
{
    const int saved_errno = errno;
    oteli_exchange_full_64(&bell->wanted, (uint64_t)OTELI_BELL_NEVER);
    oteli_add_full_32(&bell->word, 1);
    oteli_add_full_64(&bell->rings, 1);
    if (bell->fd < 0)
        syscall(SYS_futex, &bell->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    else
        (void)!write(bell->fd, &(uint64_t){1}, sizeof(uint64_t));
    errno = saved_errno;
}

/* Wake the worker if it sleeps and nobody has rung yet. */
static void ring_once(struct oteli_bell *bell)
{
    if ((int64_t)oteli_load_relaxed_64(&bell->wanted) == OTELI_BELL_NEVER)
        return;
    if ((int64_t)oteli_exchange_full_64(&bell->wanted, (uint64_t)OTELI_BELL_NEVER) !=
        OTELI_BELL_NEVER)
        oteli_bell_ring(bell);
}

void oteli_bell_knock(struct oteli_bell *bell)
{
    /* Whoever has knocked already looks at `wanted` after that, as we would. */
    if (oteli_load_relaxed_32(&bell->knocked) == 0 &&
        oteli_exchange_full_32(&bell->knocked, 1) == 0)
        ring_once(bell);
}

void oteli_bell_announce(struct oteli_bell *bell, uint64_t spans)
{
    const int64_t waiting = (int64_t)(oteli_add_full_64(&bell->waiting, spans) + spans);
    if (waiting >= (int64_t)oteli_load_relaxed_64(&bell->wanted))
        ring_once(bell);
}

bool oteli_bell_arm(struct oteli_bell *bell, int64_t wanted)
{
    oteli_store_relaxed_64(&bell->wanted, (uint64_t)wanted);
    oteli_fence_full();
    return oteli_bell_waiting(bell) < wanted && oteli_load_relaxed_32(&bell->knocked) == 0;
}

void oteli_bell_disarm(struct oteli_bell *bell)
{
    oteli_store_relaxed_64(&bell->wanted, (uint64_t)OTELI_BELL_NEVER);
}

void oteli_bell_sleep(struct oteli_bell *bell, uint32_t heard, int64_t wanted, uint64_t deadline_ns)
{
    const int saved_errno = errno;
    if (oteli_bell_arm(bell, wanted)) {
        const struct timespec deadline = {(time_t)(deadline_ns / 1000000000),
                                          (long)(deadline_ns % 1000000000)};
        const bool forever = deadline_ns == UINT64_MAX;
        /* Waits only if the word is still what it was; an absolute monotonic time. */
        syscall(SYS_futex, &bell->word, FUTEX_WAIT_BITSET_PRIVATE, heard,
                forever ? NULL : &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    }
    oteli_bell_disarm(bell);
    errno = saved_errno;
}
