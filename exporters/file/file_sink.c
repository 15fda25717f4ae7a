/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/file_sink.c - the contracts are in file_sink.h. One thread at a time; owns the
 * descriptor.
 *
 * Rotation by several processes: each has opened the file by itself, so the lock on it is
 * between them. The process that has the lock and finds the file still under its path renames it;
 * the others find another file there, or none, and open that path anew. */
#include "exporters/file/file_sink.h"
#include "common/os/descriptor.h"
#include "common/os/quiet_write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROTATED_FILES = 3, NUMBER_CHARACTERS = 24 };

/* ---- opening -------------------------------------------------------------------------- */

static int open_path(const char *path)
{
    /* Without O_NONBLOCK, open would wait for a reader of a FIFO. */
    return oteli_descriptor_lift(
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644));
}

/* A file description of our own for what stdout is, where there can be one: its O_NONBLOCK concerns
 * no other process. Of a regular file the shared one is right, for it has the offset at which the
 * program itself goes on. */
static int open_stdout(struct oteli_sink *sink, mode_t type)
{
    int fd = -1;
    sink->kind = OTELI_SINK_WAITING;
    if (S_ISFIFO(type) || S_ISCHR(type))
        fd = oteli_descriptor_lift(
            open("/proc/self/fd/1", O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd >= 0)
        sink->kind = OTELI_SINK_STREAM;
    else
        fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, OTELI_DESCRIPTOR_LEAST);
    if (S_ISREG(type))
        sink->kind = OTELI_SINK_FILE;
    else if (S_ISSOCK(type))
        sink->kind = OTELI_SINK_SOCKET;
    return fd;
}

static bool find_stdout(struct oteli_sink *sink)
{
    struct stat status;
    if (fstat(STDOUT_FILENO, &status) != 0)
        return false;
    sink->held = oteli_owned_fd_of(open_stdout(sink, status.st_mode));
    return sink->held.fd >= 0;
}

/* Absolute, so that the program can change its directory, with room for ".number". */
static otel_status keep_path(struct oteli_sink *sink, const char *path)
{
    char absolute[PATH_MAX];
    if (realpath(path, absolute) == NULL)
        return OTEL_ERROR_SYSTEM;
    sink->path = malloc(strlen(absolute) + 1);
    if (sink->path == NULL)
        return OTEL_ERROR_NO_MEMORY;
    memcpy(sink->path, absolute, strlen(absolute) + 1);
    return OTEL_OK;
}

otel_status oteli_sink_open(struct oteli_sink *sink, const char *path, int64_t max_bytes,
                            int64_t max_files)
{
    *sink = (struct oteli_sink){.held.fd = -1, .max_bytes = max_bytes};
    sink->max_files = max_files == 0        ? ROTATED_FILES
                      : max_files < INT_MAX ? (int)max_files
                                            : INT_MAX;
    if (path == NULL)
        return find_stdout(sink) ? OTEL_OK : OTEL_ERROR_SYSTEM;
    struct stat status;
    sink->held = oteli_owned_fd_of(open_path(path));
    if (sink->held.fd < 0)
        return OTEL_ERROR_SYSTEM;
    const otel_status kept = keep_path(sink, path);
    if (kept != OTEL_OK || fstat(sink->held.fd, &status) != 0) {
        const int error = errno;
        oteli_sink_close(sink);
        errno = error;
        return kept != OTEL_OK ? kept : OTEL_ERROR_SYSTEM;
    }
    sink->kind = S_ISREG(status.st_mode) ? OTELI_SINK_FILE : OTELI_SINK_STREAM;
    return OTEL_OK;
}

otel_status oteli_sink_reopen(struct oteli_sink *sink, const struct oteli_sink *parents)
{
    if (parents->path != NULL) {
        oteli_owned_fd_close(&parents->held);
        return oteli_sink_open(sink, parents->path, parents->max_bytes, parents->max_files);
    }
    if (!oteli_owned_fd_is_ours(&parents->held))
        return OTEL_ERROR_SYSTEM;
    *sink = *parents;
    return OTEL_OK;
}

void oteli_sink_close(struct oteli_sink *sink)
{
    oteli_owned_fd_close(&sink->held);
    free(sink->path);
    *sink = (struct oteli_sink){.held.fd = -1};
}

/* ---- rotation ------------------------------------------------------------------------- */

/* Whether the path leads to the file that is open, and still ours; its size, too. */
static bool is_current(const struct oteli_sink *sink, int64_t *bytes)
{
    struct stat opened, named;
    if (fstat(sink->held.fd, &opened) == 0)
        *bytes = opened.st_size;
    return stat(sink->path, &named) == 0 && oteli_owned_fd_is(&sink->held, &named);
}

/* Go on in the file of this name; where that cannot be, in the one that is open. */
static void follow_path(struct oteli_sink *sink)
{
    const bool was_ours = oteli_owned_fd_is_ours(&sink->held);
    const int fd = open_path(sink->path); /* the same number, perhaps, of the same file */
    if (fd < 0)
        return;
    if (was_ours)
        close(sink->held.fd);
    sink->held = oteli_owned_fd_of(fd);
}

/* path.2 becomes path.3, then path.1 path.2, then the path itself path.1. */
static void shift_files(const struct oteli_sink *sink)
{
    char from[PATH_MAX + NUMBER_CHARACTERS], to[PATH_MAX + NUMBER_CHARACTERS];
    int last = 1; /* up to which there are files to be moved */
    struct stat status;
    while (last < sink->max_files) {
        snprintf(from, sizeof from, "%s.%d", sink->path, last);
        if (lstat(from, &status) != 0)
            break;
        last++;
    }
    for (int number = last; number > 1; number--) {
        snprintf(from, sizeof from, "%s.%d", sink->path, number - 1);
        snprintf(to, sizeof to, "%s.%d", sink->path, number);
        (void)rename(from, to);
    }
    snprintf(to, sizeof to, "%s.1", sink->path);
    (void)rename(sink->path, to);
}

static void rotate(struct oteli_sink *sink)
{
    int64_t bytes = 0;
    if (flock(sink->held.fd, LOCK_EX | LOCK_NB) != 0)
        return; /* another process renames it: so this file grows a little longer */
    if (is_current(sink, &bytes))
        shift_files(sink);
    (void)flock(sink->held.fd, LOCK_UN);
    follow_path(sink);
}

/* False: what was open is not ours any more, and cannot be opened again. */
static bool prepare_file(struct oteli_sink *sink, size_t more)
{
    int64_t bytes = 0;
    const bool is_ours = oteli_owned_fd_is_ours(&sink->held);
    if (sink->path == NULL)
        return is_ours;
    if (!is_ours || !is_current(sink, &bytes)) {
        follow_path(sink);
        if (!oteli_owned_fd_is_ours(&sink->held))
            return false;
        (void)is_current(sink, &bytes);
    }
    if (sink->max_bytes > 0 && bytes > 0 &&
        (more > (size_t)INT64_MAX - (size_t)bytes || bytes + (int64_t)more > sink->max_bytes))
        rotate(sink);
    return true;
}

/* ---- writing -------------------------------------------------------------------------- */

/* Take back the end of a line that did not fit, unless another process has written behind it. */
static void cut_off(const struct oteli_sink *sink, size_t bytes)
{
    struct stat status;
    const off_t end = lseek(sink->held.fd, 0, SEEK_CUR);
    if (end < 0 || fstat(sink->held.fd, &status) != 0 || status.st_size != end)
        return;
    if (ftruncate(sink->held.fd, end - (off_t)bytes) == 0)
        (void)lseek(sink->held.fd, end - (off_t)bytes, SEEK_SET);
}

bool oteli_sink_append(struct oteli_sink *sink, const char *text, size_t length)
{
    if (!prepare_file(sink, length)) {
        errno = EBADF;
        return false;
    }
    const size_t done = oteli_quiet_write_all(sink->held.fd, text, length, -1);
    if (done == length)
        return true;
    const int error = errno;
    if (done != 0)
        cut_off(sink, done);
    errno = error;
    return false;
}

static bool has_room(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLOUT};
    return poll(&look, 1, 0) > 0;
}

ssize_t oteli_sink_push(const struct oteli_sink *sink, const char *text, size_t length)
{
    ssize_t written;
    if (!oteli_owned_fd_is_ours(&sink->held)) {
        errno = EBADF;
        return -1;
    }
    if (sink->kind == OTELI_SINK_SOCKET)
        written = send(sink->held.fd, text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (sink->kind == OTELI_SINK_STREAM)
        written = oteli_quiet_write(sink->held.fd, text, length, -1);
    else if (has_room(sink->held.fd)) /* a pipe that can be written to has room for this much */
        written = oteli_quiet_write(sink->held.fd, text, length < PIPE_BUF ? length : PIPE_BUF, -1);
    else
        return 0;
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    return written;
}
