/* SPDX-License-Identifier: Apache-2.0 */
/* common/os/quiet_write.h - write to a descriptor. EPIPE and EFBIG come without their signals
 * (signal_guard.h), and EINTR never.
 *
 * Threads:  any. */
#ifndef OTELI_QUIET_WRITE_H
#define OTELI_QUIET_WRITE_H

#include "common/os/signal_guard.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/types.h>
#include <unistd.h>

/* As write, or as pwrite at an offset that is not -1. */
static inline ssize_t oteli_quiet_write(int fd, const void *bytes, size_t length, off_t offset)
{
    struct oteli_signal_guard guard;
    oteli_signal_guard_begin(&guard);
    ssize_t written;
    do {
        written = offset < 0 ? write(fd, bytes, length) : pwrite(fd, bytes, length, offset);
    } while (written < 0 && errno == EINTR);
    oteli_signal_guard_end(&guard, written < 0 ? errno : 0);
    return written;
}

/* Write all of it, which may take several writes. Gives how much was written: when it is less,
 * errno says why. */
static inline size_t oteli_quiet_write_all(int fd, const void *bytes, size_t length, off_t offset)
{
    const char *from = (const char *)bytes;
    size_t done = 0;
    while (done < length) {
        const ssize_t written = oteli_quiet_write(fd, from + done, length - done,
                                                  offset < 0 ? offset : offset + (off_t)done);
        if (written == 0)
            errno = ENOSPC;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    return done;
}

#endif
