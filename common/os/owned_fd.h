/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/owned_fd.h - a descriptor, and what tells it from a later one of the same number: a
 * program may close descriptors that it does not know, and open something else in their place. So a
 * descriptor of ours is checked before each use.
 *
 * Threads:  any that may use the descriptor; constant while several do. */
#ifndef OTELI_OWNED_FD_H
#define OTELI_OWNED_FD_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct oteli_owned_fd {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/* One that has just been opened. false: the system does not say what it is, and nothing is set. */
static inline bool oteli_owned_fd_set(struct oteli_owned_fd *owned, int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return false;
    *owned = (struct oteli_owned_fd){fd, status.st_dev, status.st_ino};
    return true;
}

/* One that has just been opened, or -1. */
static inline struct oteli_owned_fd oteli_owned_fd_of(int fd)
{
    struct oteli_owned_fd owned = {.fd = fd};
    if (fd >= 0)
        (void)oteli_owned_fd_set(&owned, fd);
    return owned;
}

static inline bool oteli_owned_fd_is(const struct oteli_owned_fd *owned, const struct stat *status)
{
    return status->st_dev == owned->device && status->st_ino == owned->inode;
}

/* Whether it still is what it was; `status` is what it is now. */
static inline bool oteli_owned_fd_look(const struct oteli_owned_fd *owned, struct stat *status)
{
    return owned->fd >= 0 && fstat(owned->fd, status) == 0 && oteli_owned_fd_is(owned, status);
}

static inline bool oteli_owned_fd_is_ours(const struct oteli_owned_fd *owned)
{
    struct stat status;
    return oteli_owned_fd_look(owned, &status);
}

/* Close it, unless the descriptor belongs to the program by now. */
static inline void oteli_owned_fd_close(const struct oteli_owned_fd *owned)
{
    if (oteli_owned_fd_is_ours(owned))
        close(owned->fd);
}

#endif
