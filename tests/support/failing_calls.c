/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/failing_calls.c - see failing_calls.h. Functions here have the names of those of
 * the C library, and so come before them for every library of the process. */
#include "tests/support/failing_calls.h"

#include "common/base/atomic.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define ALLOCATOR(function) __interceptor_##function
#define ALLOCATOR_ALIGNED __interceptor_aligned_alloc
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ALLOCATOR(function) __interceptor_##function
#define ALLOCATOR_ALIGNED __interceptor_aligned_alloc
#endif
#endif
#ifdef ALLOCATOR
/* The dynamic linker's own are not looked for, but behind the functions here they are not known. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:ld-linux";
}
#else
#define ALLOCATOR(function) __libc_##function
#define ALLOCATOR_ALIGNED __libc_memalign
#endif

void *ALLOCATOR(malloc)(size_t size);
void *ALLOCATOR(calloc)(size_t number, size_t size);
void *ALLOCATOR(realloc)(void *old, size_t size);
void *ALLOCATOR_ALIGNED(size_t alignment, size_t size);

enum { ERRORS_MAX = 10 };

struct kind {
    const char *name;
    int errors[ERRORS_MAX]; /* up to the first 0 */
};

#define KIND(name, call, ...) [FAILING_##name] = {#call, {__VA_ARGS__}},
static const struct kind kinds[FAILING_CALLS] = {FAILING_LIST(KIND)};

static _Thread_local bool is_marked_thread;
static struct failing wanted;
static uint32_t is_armed; /* atomic */
static uint32_t was_met;  /* atomic */
static uint64_t counts[FAILING_CALLS];

void failing_mark(bool is_marked)
{
    is_marked_thread = is_marked;
}

void failing_begin(const struct failing *failing)
{
    for (size_t i = 0; i < FAILING_CALLS; i++)
        oteli_store_relaxed_64(&counts[i], 0);
    wanted = *failing;
    oteli_store_relaxed_32(&was_met, 0);
    oteli_store_release_32(&is_armed, 1);
}

bool failing_end(void)
{
    oteli_store_release_32(&is_armed, 0);
    return oteli_load_acquire_32(&was_met) != 0;
}

uint64_t failing_count(enum failing_call call)
{
    return oteli_load_relaxed_64(&counts[call]);
}

const char *failing_name(enum failing_call call)
{
    return kinds[call].name;
}

const int *failing_errors(enum failing_call call, size_t *count)
{
    for (*count = 0; *count < ERRORS_MAX && kinds[call].errors[*count] != 0;)
        ++*count;
    return kinds[call].errors;
}

/* Whether this is the one; errno is what it is to fail with. */
static bool is_met(enum failing_call call)
{
    if (!is_marked_thread || oteli_load_acquire_32(&is_armed) == 0)
        return false;
    const uint64_t number = oteli_add_full_64(&counts[call], 1) + 1;
    if (call != wanted.call || number != wanted.nth)
        return false;
    oteli_store_release_32(&was_met, 1);
    if (wanted.error != FAILING_SHORT)
        errno = wanted.error;
    return true;
}

/* The same for calls that may also do a part only. */
static bool is_met_with_length(enum failing_call call, size_t *length)
{
    if (!is_met(call))
        return false;
    if (wanted.error != FAILING_SHORT)
        return true;
    if (*length > 1)
        *length = 1;
    return false;
}

/* ---- memory ------------------------------------------------------------------------------- */

void *malloc(size_t size)
{
    return is_met(FAILING_MEMORY) ? NULL : ALLOCATOR(malloc)(size);
}

void *calloc(size_t number, size_t size)
{
    return is_met(FAILING_MEMORY) ? NULL : ALLOCATOR(calloc)(number, size);
}

void *realloc(void *old, size_t size)
{
    return is_met(FAILING_MEMORY) ? NULL : ALLOCATOR(realloc)(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return is_met(FAILING_MEMORY) ? NULL : ALLOCATOR_ALIGNED(alignment, size);
}

/* The C library's ends the process where it has no memory. Who calls it has made sure. */
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *object);
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *object)
{
    static __typeof__(&__cxa_thread_atexit_impl) real;
    const bool was_marked = is_marked_thread;
    is_marked_thread = false;
    if (real == NULL)
        *(void **)(&real) = dlsym(RTLD_NEXT, "__cxa_thread_atexit_impl");
    const int result = real(function, argument, object);
    is_marked_thread = was_marked;
    return result;
}

/* ---- system calls ------------------------------------------------------------------------- */

/* The next function of that name. */
#define REAL(function)                 \
    static __typeof__(&function) real; \
    if (real == NULL)                  \
    *(void **)(&real) = dlsym(RTLD_NEXT, #function)

/* A function that fails with a value when it is its turn. */
#define CALL_WHEN(is_its_turn, type, function, failure, parameters, arguments) \
    type function parameters                                                   \
    {                                                                          \
        REAL(function);                                                        \
        return is_its_turn ? failure : real arguments;                         \
    }
#define CALL(type, function, kind, failure, parameters, arguments) \
    CALL_WHEN(is_met(FAILING_##kind), type, function, failure, parameters, arguments)
#define CALL_WITH_LENGTH(type, function, kind, failure, parameters, arguments)                  \
    CALL_WHEN(is_met_with_length(FAILING_##kind, &length), type, function, failure, parameters, \
              arguments)

/* One more of this type, which may be missing: then it is passed on as it lies there. */
#define CALL_VARIADIC(function, kind, type, parameters, known, arguments) \
    int function parameters                                               \
    {                                                                     \
        REAL(function);                                                   \
        va_list list;                                                     \
        va_start(list, known);                                            \
        type last = va_arg(list, type);                                   \
        va_end(list);                                                     \
        return is_met(FAILING_##kind) ? -1 : real arguments;              \
    }

/* curl 7.88 closes descriptor 0 when it has no memory for looking up a name: it takes what it has
 * not filled in yet for a socket. Whatever has that number then is spared. */
static bool is_a_mistake_of_curl(int fd)
{
    return fd == 0 && is_marked_thread && wanted.call == FAILING_MEMORY &&
           oteli_load_acquire_32(&was_met) != 0;
}

int close(int fd)
{
    REAL(close);
    if (is_a_mistake_of_curl(fd))
        return 0;
    const bool fails = is_met(FAILING_CLOSE);
    const int error = errno;
    const int result = real(fd); /* it is closed whatever it says */
    if (!fails)
        return result;
    errno = error;
    return -1;
}

CALL(int, connect, CONNECT, -1, (int fd, __CONST_SOCKADDR_ARG address, socklen_t length),
     (fd, address, length))
CALL(int, epoll_create1, EPOLL_CREATE1, -1, (int flags), (flags))
CALL(int, epoll_ctl, EPOLL_CTL, -1,
     (int epoll_fd, int operation, int fd, struct epoll_event *event),
     (epoll_fd, operation, fd, event))
CALL(int, epoll_wait, EPOLL_WAIT, -1,
     (int epoll_fd, struct epoll_event *events, int most, int timeout_ms),
     (epoll_fd, events, most, timeout_ms))
CALL(int, eventfd, EVENTFD, -1, (unsigned count, int flags), (count, flags))
CALL_VARIADIC(fcntl, FCNTL, void *, (int fd, int command, ...), command, (fd, command, last))

CALL(DIR *, fdopendir, FDOPENDIR, NULL, (int fd), (fd))
CALL(int, flock, FLOCK, -1, (int fd, int operation), (fd, operation))
CALL(int, fstat, FSTAT, -1, (int fd, struct stat *status), (fd, status))
/* Curl has a thread for it. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    REAL(getaddrinfo);
    const bool was_marked = is_marked_thread;
    is_marked_thread = true;
    int problem = wanted.error;
    if (!is_met(FAILING_GETADDRINFO))
        problem =
            real(strcmp(node, FAILING_HOST) == 0 ? "127.0.0.1" : node, service, hints, result);
    is_marked_thread = was_marked;
    return problem;
}

CALL(int, getpeername, GETPEERNAME, -1, (int fd, __SOCKADDR_ARG address, socklen_t *length),
     (fd, address, length))
CALL(ssize_t, getrandom, GETRANDOM, -1, (void *bytes, size_t length, unsigned flags),
     (bytes, length, flags))
CALL(int, getsockname, GETSOCKNAME, -1, (int fd, __SOCKADDR_ARG address, socklen_t *length),
     (fd, address, length))
CALL(int, getsockopt, GETSOCKOPT, -1, (int fd, int level, int name, void *value, socklen_t *length),
     (fd, level, name, value, length))
CALL_VARIADIC(ioctl, IOCTL, void *, (int fd, unsigned long request, ...), request,
              (fd, request, last))

CALL(int, mkdirat, MKDIRAT, -1, (int fd, const char *path, mode_t mode), (fd, path, mode))
CALL_VARIADIC(open, OPEN, unsigned, (const char *path, int flags, ...), flags, (path, flags, last))
CALL_VARIADIC(openat, OPENAT, unsigned, (int fd, const char *path, int flags, ...), flags,
              (fd, path, flags, last))

CALL(int, poll, POLL, -1, (struct pollfd * watched, nfds_t count, int timeout_ms),
     (watched, count, timeout_ms))
CALL(int, pthread_create, PTHREAD_CREATE, wanted.error,
     (pthread_t * thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
     (thread, attributes, run, argument))
CALL_WITH_LENGTH(ssize_t, read, READ, -1, (int fd, void *bytes, size_t length), (fd, bytes, length))
CALL(struct dirent *, readdir, READDIR, NULL, (DIR * stream), (stream))
CALL_WITH_LENGTH(ssize_t, recv, RECV, -1, (int fd, void *bytes, size_t length, int flags),
                 (fd, bytes, length, flags))
CALL(int, renameat, RENAMEAT, -1, (int old_fd, const char *old, int new_fd, const char *new),
     (old_fd, old, new_fd, new))
CALL_WITH_LENGTH(ssize_t, send, SEND, -1, (int fd, const void *bytes, size_t length, int flags),
                 (fd, bytes, length, flags))
CALL(int, setsockopt, SETSOCKOPT, -1,
     (int fd, int level, int name, const void *value, socklen_t length),
     (fd, level, name, value, length))
CALL(int, socket, SOCKET, -1, (int family, int type, int protocol), (family, type, protocol))
CALL(int, socketpair, SOCKETPAIR, -1, (int family, int type, int protocol, int pair[2]),
     (family, type, protocol, pair))
CALL(int, stat, STAT, -1, (const char *path, struct stat *status), (path, status))
CALL(int, unlinkat, UNLINKAT, -1, (int fd, const char *path, int flags), (fd, path, flags))
CALL(ssize_t, write, WRITE, -1, (int fd, const void *bytes, size_t length), (fd, bytes, length))
CALL_WITH_LENGTH(ssize_t, pwrite, PWRITE, -1,
                 (int fd, const void *bytes, size_t length, off_t offset),
                 (fd, bytes, length, offset))
