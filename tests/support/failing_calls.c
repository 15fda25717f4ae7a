/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/failing_calls.c - see failing_calls.h. Functions here have the names of those of the
 * C library, and so come before them for every library of the process. */
#include "tests/support/failing_calls.h"

#include "common/atomic.h"

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

static const struct kind kinds[FAILING_CALLS] = {
    [FAILING_MEMORY] = {"memory", {ENOMEM}},
    [FAILING_CLOSE] = {"close", {EINTR, EIO, ENOSPC, EDQUOT}},
    [FAILING_CONNECT] = {"connect",
                         {EINTR, EAGAIN, ECONNREFUSED, ECONNRESET, ETIMEDOUT, ENETUNREACH,
                          EADDRNOTAVAIL, EACCES, EPERM, ENOBUFS}},
    [FAILING_EPOLL_CREATE1] = {"epoll_create1", {EMFILE, ENFILE, ENOMEM}},
    [FAILING_EPOLL_CTL] = {"epoll_ctl", {ENOMEM, ENOSPC}},
    [FAILING_EPOLL_WAIT] = {"epoll_wait", {EINTR}},
    [FAILING_EVENTFD] = {"eventfd", {EMFILE, ENFILE, ENOMEM}},
    [FAILING_FCNTL] = {"fcntl", {EINTR, EBADF, ENOMEM, EACCES}},
    [FAILING_FDOPENDIR] = {"fdopendir", {ENOMEM}},
    [FAILING_FLOCK] = {"flock", {EINTR, ENOLCK, EWOULDBLOCK}},
    [FAILING_FSTAT] = {"fstat", {EIO, ENOMEM, EBADF}},
    [FAILING_GETADDRINFO] = {"getaddrinfo",
                             {EAI_AGAIN, EAI_FAIL, EAI_MEMORY, EAI_NONAME, EAI_SYSTEM}},
    [FAILING_GETPEERNAME] = {"getpeername", {ENOBUFS, ENOTCONN}},
    [FAILING_GETRANDOM] = {"getrandom", {EINTR, EAGAIN, ENOSYS}},
    [FAILING_GETSOCKNAME] = {"getsockname", {ENOBUFS}},
    [FAILING_GETSOCKOPT] = {"getsockopt", {ENOBUFS, ENOMEM}},
    [FAILING_IOCTL] = {"ioctl", {ENOTTY, EINTR}},
    [FAILING_MKDIRAT] = {"mkdirat", {EACCES, ENOSPC, EDQUOT, EROFS, EIO, ENOMEM}},
    [FAILING_OPEN] = {"open", {EINTR, EMFILE, ENFILE, ENOMEM, EACCES, EIO, ENOENT}},
    [FAILING_OPENAT] = {"openat",
                        {EINTR, EMFILE, ENFILE, ENOMEM, EACCES, EIO, ENOSPC, EROFS, ENOENT,
                         EDQUOT}},
    [FAILING_POLL] = {"poll", {EINTR, ENOMEM, EAGAIN, EINVAL}},
    [FAILING_PTHREAD_CREATE] = {"pthread_create", {EAGAIN, EPERM}},
    [FAILING_READ] = {"read", {FAILING_SHORT, EINTR, EIO, ENOMEM, EAGAIN}},
    [FAILING_READDIR] = {"readdir", {EIO, ENOENT}},
    [FAILING_RECV] = {"recv",
                      {FAILING_SHORT, EAGAIN, EINTR, ECONNRESET, ETIMEDOUT, ENOMEM, ECONNREFUSED,
                       EBADF, EIO}},
    [FAILING_RENAMEAT] = {"renameat", {EACCES, EIO, ENOSPC, EROFS, EDQUOT, ENOENT, ENOMEM}},
    [FAILING_SEND] = {"send",
                      {FAILING_SHORT, EAGAIN, EINTR, ECONNRESET, EPIPE, ENOBUFS, ENOMEM, ETIMEDOUT,
                       EBADF}},
    [FAILING_SETSOCKOPT] = {"setsockopt", {ENOBUFS, ENOMEM, EINVAL, ENOPROTOOPT}},
    [FAILING_SOCKET] = {"socket", {EMFILE, ENFILE, ENOMEM, ENOBUFS, EACCES, EAFNOSUPPORT}},
    [FAILING_SOCKETPAIR] = {"socketpair", {EMFILE, ENFILE, ENOMEM}},
    [FAILING_STAT] = {"stat", {EIO, ENOMEM, EACCES, ENOENT}},
    [FAILING_UNLINKAT] = {"unlinkat", {EACCES, EIO, EROFS, EBUSY, ENOMEM}},
    [FAILING_WRITE] = {"write", {EAGAIN, EINTR, EIO, EPIPE, EBADF}},
    [FAILING_WRITEV] = {"writev", {FAILING_SHORT, EINTR, EIO, ENOSPC, EDQUOT, EFBIG, EROFS}},
};

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

int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    REAL(connect);
    return is_met(FAILING_CONNECT) ? -1 : real(fd, address, length);
}

int epoll_create1(int flags)
{
    REAL(epoll_create1);
    return is_met(FAILING_EPOLL_CREATE1) ? -1 : real(flags);
}

int epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
    REAL(epoll_ctl);
    return is_met(FAILING_EPOLL_CTL) ? -1 : real(epoll_fd, operation, fd, event);
}

int epoll_wait(int epoll_fd, struct epoll_event *events, int most, int timeout_ms)
{
    REAL(epoll_wait);
    return is_met(FAILING_EPOLL_WAIT) ? -1 : real(epoll_fd, events, most, timeout_ms);
}

int eventfd(unsigned count, int flags)
{
    REAL(eventfd);
    return is_met(FAILING_EVENTFD) ? -1 : real(count, flags);
}

int fcntl(int fd, int command, ...)
{
    REAL(fcntl);
    va_list arguments;
    va_start(arguments, command);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return is_met(FAILING_FCNTL) ? -1 : real(fd, command, argument);
}

DIR *fdopendir(int fd)
{
    REAL(fdopendir);
    return is_met(FAILING_FDOPENDIR) ? NULL : real(fd);
}

int flock(int fd, int operation)
{
    REAL(flock);
    return is_met(FAILING_FLOCK) ? -1 : real(fd, operation);
}

int fstat(int fd, struct stat *status)
{
    REAL(fstat);
    return is_met(FAILING_FSTAT) ? -1 : real(fd, status);
}

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

int getpeername(int fd, __SOCKADDR_ARG address, socklen_t *length)
{
    REAL(getpeername);
    return is_met(FAILING_GETPEERNAME) ? -1 : real(fd, address, length);
}

ssize_t getrandom(void *bytes, size_t length, unsigned flags)
{
    REAL(getrandom);
    return is_met(FAILING_GETRANDOM) ? -1 : real(bytes, length, flags);
}

int getsockname(int fd, __SOCKADDR_ARG address, socklen_t *length)
{
    REAL(getsockname);
    return is_met(FAILING_GETSOCKNAME) ? -1 : real(fd, address, length);
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *length)
{
    REAL(getsockopt);
    return is_met(FAILING_GETSOCKOPT) ? -1 : real(fd, level, name, value, length);
}

int ioctl(int fd, unsigned long request, ...)
{
    REAL(ioctl);
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return is_met(FAILING_IOCTL) ? -1 : real(fd, request, argument);
}

int mkdirat(int fd, const char *path, mode_t mode)
{
    REAL(mkdirat);
    return is_met(FAILING_MKDIRAT) ? -1 : real(fd, path, mode);
}

int open(const char *path, int flags, ...)
{
    REAL(open);
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return is_met(FAILING_OPEN) ? -1 : real(path, flags, mode);
}

int openat(int fd, const char *path, int flags, ...)
{
    REAL(openat);
    va_list arguments;
    va_start(arguments, flags);
    const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, unsigned) : 0;
    va_end(arguments);
    return is_met(FAILING_OPENAT) ? -1 : real(fd, path, flags, mode);
}

int poll(struct pollfd *watched, nfds_t count, int timeout_ms)
{
    REAL(poll);
    return is_met(FAILING_POLL) ? -1 : real(watched, count, timeout_ms);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    REAL(pthread_create);
    return is_met(FAILING_PTHREAD_CREATE) ? wanted.error : real(thread, attributes, run, argument);
}

ssize_t read(int fd, void *bytes, size_t length)
{
    REAL(read);
    return is_met_with_length(FAILING_READ, &length) ? -1 : real(fd, bytes, length);
}

struct dirent *readdir(DIR *stream)
{
    REAL(readdir);
    return is_met(FAILING_READDIR) ? NULL : real(stream);
}

ssize_t recv(int fd, void *bytes, size_t length, int flags)
{
    REAL(recv);
    return is_met_with_length(FAILING_RECV, &length) ? -1 : real(fd, bytes, length, flags);
}

int renameat(int old_fd, const char *old, int new_fd, const char *new)
{
    REAL(renameat);
    return is_met(FAILING_RENAMEAT) ? -1 : real(old_fd, old, new_fd, new);
}

ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    REAL(send);
    return is_met_with_length(FAILING_SEND, &length) ? -1 : real(fd, bytes, length, flags);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t length)
{
    REAL(setsockopt);
    return is_met(FAILING_SETSOCKOPT) ? -1 : real(fd, level, name, value, length);
}

int socket(int family, int type, int protocol)
{
    REAL(socket);
    return is_met(FAILING_SOCKET) ? -1 : real(family, type, protocol);
}

int socketpair(int family, int type, int protocol, int pair[2])
{
    REAL(socketpair);
    return is_met(FAILING_SOCKETPAIR) ? -1 : real(family, type, protocol, pair);
}

int stat(const char *path, struct stat *status)
{
    REAL(stat);
    return is_met(FAILING_STAT) ? -1 : real(path, status);
}

int unlinkat(int fd, const char *path, int flags)
{
    REAL(unlinkat);
    return is_met(FAILING_UNLINKAT) ? -1 : real(fd, path, flags);
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    REAL(write);
    return is_met(FAILING_WRITE) ? -1 : real(fd, bytes, length);
}

/* Of a short one only the first byte is written. */
ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    size_t length = 2;
    if (is_met_with_length(FAILING_WRITEV, &length))
        return -1;
    return length == 2 ? real(fd, parts, count) : write(fd, parts[0].iov_base, 1);
}
