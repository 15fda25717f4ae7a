/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/held.h - a descriptor, and what tells it from a later one of its number: a program
 * may close what it does not know, and open something else in its place. So it is looked at before
 * each use.
 *
 * Threads:  any that may use the descriptor; constant while several do. */
#ifndef OTELI_FILE_HELD_H
#define OTELI_FILE_HELD_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

struct oteli_held {
    int fd; /* -1: none */
    dev_t device;
    ino_t inode;
};

/* One that has just been opened, or -1. */
static inline struct oteli_held oteli_held_of(int fd)
{
    struct stat status = {0};
    if (fd < 0 || fstat(fd, &status) != 0)
        return (struct oteli_held){.fd = fd};
    return (struct oteli_held){fd, status.st_dev, status.st_ino};
}

/* Whether it still is what it was. */
static inline bool oteli_held_is_ours(const struct oteli_held *held)
{
    struct stat status;
    return held->fd >= 0 && fstat(held->fd, &status) == 0 && status.st_dev == held->device &&
           status.st_ino == held->inode;
}

/* Close it, unless it is somebody else's by now. */
static inline void oteli_held_close(const struct oteli_held *held)
{
    if (oteli_held_is_ours(held))
        close(held->fd);
}

#endif
