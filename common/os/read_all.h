/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/read_all.h - read a file that is open, up to a size or its end. EINTR never comes.
 *
 * Threads:  any. */
#ifndef OTELI_READ_ALL_H
#define OTELI_READ_ALL_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>
#include <unistd.h>

/* Gives how much was read: when it is less than `size`, the file ends there. -1: it cannot be read,
 * as errno says. */
static inline ssize_t oteli_read_all(int fd, void *into, size_t size)
{
    char *bytes = (char *)into;
    size_t done = 0;
    while (done < size) {
        const ssize_t got = read(fd, bytes + done, size - done);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return -1;
        done += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)done;
}

#endif
