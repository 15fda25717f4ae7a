/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/thread_fence.c - membarrier(). A forked child inherits that it is prepared. */
#include "common/os/thread_fence.h"
#include "common/base/atomic.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__GLIBC_PREREQ) && defined(SYS_membarrier)
#if __GLIBC_PREREQ(2, 32)
#include <linux/membarrier.h>
#include <sys/single_threaded.h>
#define HAS_FENCE 1
#endif
#endif

static uint32_t is_ready;

bool oteli_thread_fence_is_ready(void)
{
    return oteli_load_acquire_32(&is_ready) != 0;
}

#ifdef HAS_FENCE

/* No program needs to see that it was refused. */
static bool ask(int command)
{
    const int saved_errno = errno;
    const bool is_done = syscall(SYS_membarrier, command, 0, 0) == 0;
    errno = saved_errno;
    return is_done;
}

void oteli_thread_fence_prepare(void)
{
    if (!oteli_thread_fence_is_ready() && __libc_single_threaded &&
        ask(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
        oteli_store_release_32(&is_ready, 1);
}

/* A filter of system calls that came later may refuse it. No store stays in a core for a
 * millisecond, and one that is interrupted has none left. */
void oteli_thread_fence(void)
{
    const struct timespec long_enough = {0, 1000 * 1000};
    oteli_fence_full();
    if (ask(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    const int saved_errno = errno;
    syscall(SYS_nanosleep, &long_enough, NULL); /* no point at which a thread is cancelled */
    errno = saved_errno;
}

#else

void oteli_thread_fence_prepare(void)
{
}

void oteli_thread_fence(void)
{
}

#endif
