/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_fork_lock.c - see spool_fork_lock.h. Owns the places.
 *
 * A fork may come at any point of another thread. A place says last that it is in use, and first
 * that it is not any more; and what is closed is only what still is the file that was noted. */
#include "exporters/otlp/spool/spool_fork_lock.h"
#include "common/base/atomic.h"
#include "common/os/fork.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#define FREE UINT32_C(0)
#define BEING_FILLED UINT32_MAX

enum { PLACES = 16 };

static struct {
    uint32_t use; /* the descriptor and one, or one of the two above */
    uint64_t device;
    uint64_t inode;
} places[PLACES];

/* In a forked child, on its only thread. */
static void close_copies(void)
{
    const int saved_errno = errno;
    struct stat status;
    for (unsigned i = 0; i < PLACES; i++) {
        const uint32_t use = oteli_load_acquire_32(&places[i].use);
        oteli_store_relaxed_32(&places[i].use, FREE);
        if (use == FREE || use == BEING_FILLED)
            continue;
        const int fd = (int)(use - 1);
        if (fstat(fd, &status) == 0 &&
            (uint64_t)status.st_dev == oteli_load_relaxed_64(&places[i].device) &&
            (uint64_t)status.st_ino == oteli_load_relaxed_64(&places[i].inode))
            close(fd);
    }
    errno = saved_errno;
}

void oteli_spool_fork_lock_note(int fd, const struct stat *status)
{
    for (unsigned i = 0; i < PLACES; i++) {
        if (!oteli_cas_full_32(&places[i].use, FREE, BEING_FILLED))
            continue;
        oteli_fork_add(close_copies);
        oteli_store_relaxed_64(&places[i].device, (uint64_t)status->st_dev);
        oteli_store_relaxed_64(&places[i].inode, (uint64_t)status->st_ino);
        oteli_store_release_32(&places[i].use, (uint32_t)fd + 1); /* pairs with close_copies */
        return;
    }
}

void oteli_spool_fork_lock_forget(int fd)
{
    for (unsigned i = 0; i < PLACES; i++)
        if (oteli_cas_full_32(&places[i].use, (uint32_t)fd + 1, FREE))
            return;
}
