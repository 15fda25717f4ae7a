/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/descriptor.h - the one door for descriptors that we keep: none of them is 0, 1 or 2. A
 * program that closed its standard input and output would read from ours, or write into it.
 *
 * Threads:  any. */
#ifndef OTELI_DESCRIPTOR_H
#define OTELI_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { OTELI_DESCRIPTOR_LEAST = 3 };

/* Take the place of `fd`, which was just opened: itself, or a duplicate with a higher number that
 * is closed on exec. Below zero: there is none, as errno says. */
static inline int oteli_descriptor_lift(int fd)
{
    if (fd < 0 || fd >= OTELI_DESCRIPTOR_LEAST)
        return fd;
    const int lifted = fcntl(fd, F_DUPFD_CLOEXEC, OTELI_DESCRIPTOR_LEAST);
    const int error = errno;
    close(fd);
    errno = error;
    return lifted;
}

/* Both ends, or none: then they are -1. */
static inline int oteli_descriptor_lift_pair(int pair[2])
{
    pair[0] = oteli_descriptor_lift(pair[0]);
    pair[1] = oteli_descriptor_lift(pair[1]);
    if (pair[0] >= 0 && pair[1] >= 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        if (pair[i] >= 0)
            close(pair[i]);
        pair[i] = -1;
    }
    return -1;
}

#endif
