/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/fork.c - see fork.h. In the child it runs on the only thread; else any thread. */
#include "common/os/fork.h"
#include "common/base/atomic.h"
#include "common/clock/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 16 }; /* one for each part of ours that has something to forget */

/* Functions as numbers, because an atomic pointer to a function is none; 0: a free slot. */
static uint64_t forgets[MOST];
static uint32_t is_registered;
static uint32_t lacks_slot;
static uint32_t is_orphan;
static uint64_t *watched; /* NULL: children cannot be told from their parents */

static uint64_t number_of(void (*forget)(void))
{
    return (uint64_t)(uintptr_t)forget;
}

static void forget_all(void)
{
    oteli_clock_forget();
    for (unsigned i = 0; i < MOST; i++) {
        void (*forget)(void) = (void (*)(void))(uintptr_t)oteli_load_acquire_64(&forgets[i]);
        if (forget != NULL)
            forget();
    }
}

static void on_fork_child(void)
{
    oteli_store_relaxed_32(&is_orphan, 0);
    if (watched != NULL)
        oteli_store_relaxed_64(watched, 1);
    forget_all();
}

/* No thread waits for the one that registers: in a child that thread does not exist, and the child
 * would wait for ever. */
void oteli_fork_add(void (*forget)(void))
{
    const uint64_t number = number_of(forget);
    bool is_known = false;
    for (unsigned i = 0; i < MOST && !is_known; i++) {
        if (oteli_load_relaxed_64(&forgets[i]) == 0)
            (void)oteli_cas_full_64(&forgets[i], 0, number); /* or another thread was first */
        is_known = oteli_load_relaxed_64(&forgets[i]) == number;
    }
    if (!is_known)
        oteli_store_relaxed_32(&lacks_slot, 1);
    if (oteli_load_relaxed_32(&is_registered) == 0 && oteli_cas_full_32(&is_registered, 0, 1))
        pthread_atfork(NULL, NULL, on_fork_child);
}

bool oteli_fork_lacks_slot(void)
{
    return oteli_load_relaxed_32(&lacks_slot) != 0;
}

bool oteli_fork_wipe(void *at, size_t bytes)
{
#ifdef MADV_WIPEONFORK
    const int saved_errno = errno;
    const bool done =
        sysconf(_SC_PAGESIZE) == (long)OTELI_FORK_PAGE && madvise(at, bytes, MADV_WIPEONFORK) == 0;
    errno = saved_errno;
    return done;
#else
    (void)at;
    (void)bytes;
    return false;
#endif
}

void oteli_fork_watch(uint64_t *mark)
{
    oteli_store_relaxed_64(mark, 1);
    OTELI_STORE_RELEASE_PTR(&watched, mark);
}

void oteli_fork_notice(void)
{
    uint64_t *mark = OTELI_LOAD_ACQUIRE_PTR(&watched);
    if (mark == NULL || oteli_load_relaxed_64(mark) != 0 || !oteli_cas_full_64(mark, 0, 1))
        return;
    oteli_store_relaxed_32(&is_orphan, 1);
    forget_all();
}

bool oteli_fork_is_orphan(void)
{
    return oteli_load_relaxed_32(&is_orphan) != 0;
}

void oteli_fork_adopt(void)
{
    oteli_store_relaxed_32(&is_orphan, 0);
}
