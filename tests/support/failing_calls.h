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

enum failing_call {
    FAILING_MEMORY, /* malloc, calloc, realloc, aligned_alloc */
    FAILING_CLOSE,
    FAILING_CONNECT,
    FAILING_EPOLL_CREATE1,
    FAILING_EPOLL_CTL,
    FAILING_EPOLL_WAIT,
    FAILING_EVENTFD,
    FAILING_FCNTL,
    FAILING_FDOPENDIR,
    FAILING_FLOCK,
    FAILING_FSTAT,
    FAILING_GETADDRINFO, /* of any thread; it knows one name, FAILING_HOST, which is 127.0.0.1 */
    FAILING_GETPEERNAME,
    FAILING_GETRANDOM,
    FAILING_GETSOCKNAME,
    FAILING_GETSOCKOPT,
    FAILING_IOCTL,
    FAILING_MKDIRAT,
    FAILING_OPEN,
    FAILING_OPENAT,
    FAILING_POLL,
    FAILING_PTHREAD_CREATE,
    FAILING_READ,
    FAILING_READDIR,
    FAILING_RECV,
    FAILING_RENAMEAT,
    FAILING_SEND,
    FAILING_SETSOCKOPT,
    FAILING_SOCKET,
    FAILING_SOCKETPAIR,
    FAILING_STAT,
    FAILING_UNLINKAT,
    FAILING_WRITE,
    FAILING_WRITEV,
    FAILING_CALLS
};

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
