/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/failing_calls.h - one allocation or one system call of a thread fails: those of the
 * libraries that it is in as well.
 *
 * A program that is linked with failing_calls.c has functions of the C library replaced for the
 * whole process. They do what they always do, but for threads that called failing_mark, while a
 * failure is wanted:
 *
 *     failing_mark(true);
 *     failing_begin(&(struct failing){.call = FAILING_SEND, .nth = 3, .error = ECONNRESET});
 *     ...
 *     bool was_met = failing_end();
 *
 * What libc does inside itself is not seen, but for its allocations. Under a sanitizer the
 * allocations are still its own.
 *
 * Threads:  begin, end and counts one thread at a time. */
#ifndef OTELI_TESTS_FAILING_CALLS_H
#define OTELI_TESTS_FAILING_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the C library; `memory` are malloc, calloc, realloc and aligned_alloc. getaddrinfo fails on
 * any thread, and knows one name, FAILING_HOST, which is 127.0.0.1. */
#define FAILING_CALL(name, call, ...) FAILING_##name,
/* Calls, and what each may plausibly fail with. */
#define FAILING_LIST(X)                                                                          \
    X(MEMORY, memory, ENOMEM)                                                                    \
    X(CLOSE, close, EINTR, EIO, ENOSPC, EDQUOT)                                                  \
    X(CONNECT, connect, EINTR, EAGAIN, ECONNREFUSED, ECONNRESET, ETIMEDOUT, ENETUNREACH,         \
      EADDRNOTAVAIL, EACCES, EPERM, ENOBUFS)                                                     \
    X(EPOLL_CREATE1, epoll_create1, EMFILE, ENFILE, ENOMEM)                                      \
    X(EPOLL_CTL, epoll_ctl, ENOMEM, ENOSPC)                                                      \
    X(EPOLL_WAIT, epoll_wait, EINTR)                                                             \
    X(EVENTFD, eventfd, EMFILE, ENFILE, ENOMEM)                                                  \
    X(FCNTL, fcntl, EINTR, EBADF, ENOMEM, EACCES)                                                \
    X(FDOPENDIR, fdopendir, ENOMEM)                                                              \
    X(FLOCK, flock, EINTR, ENOLCK, EWOULDBLOCK)                                                  \
    X(FSTAT, fstat, EIO, ENOMEM, EBADF)                                                          \
    X(GETADDRINFO, getaddrinfo, EAI_AGAIN, EAI_FAIL, EAI_MEMORY, EAI_NONAME, EAI_SYSTEM)         \
    X(GETPEERNAME, getpeername, ENOBUFS, ENOTCONN)                                               \
    X(GETRANDOM, getrandom, EINTR, EAGAIN, ENOSYS)                                               \
    X(GETSOCKNAME, getsockname, ENOBUFS)                                                         \
    X(GETSOCKOPT, getsockopt, ENOBUFS, ENOMEM)                                                   \
    X(IOCTL, ioctl, ENOTTY, EINTR)                                                               \
    X(MKDIRAT, mkdirat, EACCES, ENOSPC, EDQUOT, EROFS, EIO, ENOMEM)                              \
    X(OPEN, open, EINTR, EMFILE, ENFILE, ENOMEM, EACCES, EIO, ENOENT)                            \
    X(OPENAT, openat, EINTR, EMFILE, ENFILE, ENOMEM, EACCES, EIO, ENOSPC, EROFS, ENOENT, EDQUOT) \
    X(POLL, poll, EINTR, ENOMEM, EAGAIN, EINVAL)                                                 \
    X(PTHREAD_CREATE, pthread_create, EAGAIN, EPERM)                                             \
    X(READ, read, FAILING_SHORT, EINTR, EIO, ENOMEM, EAGAIN)                                     \
    X(READDIR, readdir, EIO, ENOENT)                                                             \
    X(RECV, recv, FAILING_SHORT, EAGAIN, EINTR, ECONNRESET, ETIMEDOUT, ENOMEM, ECONNREFUSED,     \
      EBADF, EIO)                                                                                \
    X(RENAMEAT, renameat, EACCES, EIO, ENOSPC, EROFS, EDQUOT, ENOENT, ENOMEM)                    \
    X(SEND, send, FAILING_SHORT, EAGAIN, EINTR, ECONNRESET, EPIPE, ENOBUFS, ENOMEM, ETIMEDOUT,   \
      EBADF)                                                                                     \
    X(SETSOCKOPT, setsockopt, ENOBUFS, ENOMEM, EINVAL, ENOPROTOOPT)                              \
    X(SOCKET, socket, EMFILE, ENFILE, ENOMEM, ENOBUFS, EACCES, EAFNOSUPPORT)                     \
    X(SOCKETPAIR, socketpair, EMFILE, ENFILE, ENOMEM)                                            \
    X(STAT, stat, EIO, ENOMEM, EACCES, ENOENT)                                                   \
    X(UNLINKAT, unlinkat, EACCES, EIO, EROFS, EBUSY, ENOMEM)                                     \
    X(WRITE, write, EAGAIN, EINTR, EIO, EPIPE, EBADF)                                            \
    X(PWRITE, pwrite, FAILING_SHORT, EINTR, EIO, ENOSPC, EDQUOT, EFBIG, EROFS)
enum failing_call { FAILING_LIST(FAILING_CALL) FAILING_CALLS };

enum { FAILING_SHORT = -1 }; /* as an error: it succeeds, but for one byte only */

struct failing {
    enum failing_call call;
    uint64_t nth; /* 1: the first; 0: none, they are only counted */
    int error;    /* errno, or what the function returns */
};

#define FAILING_HOST "receiver.test"

/* Whether the calling thread's calls count, and fail. */
void failing_mark(bool is_marked);

/* Count from 0, and have one of them fail. */
void failing_begin(const struct failing *failing);

/* All succeed again. Whether the one that was to fail was made. */
bool failing_end(void);

/* How many there were between the last begin and end. */
uint64_t failing_count(enum failing_call call);

const char *failing_name(enum failing_call call);

/* What a call may plausibly fail with: errors[0] to errors[count - 1]. */
const int *failing_errors(enum failing_call call, size_t *count);

#endif
