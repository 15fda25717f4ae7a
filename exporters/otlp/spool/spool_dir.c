/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_dir.c - see spool_dir.h. */
#include "exporters/otlp/spool/spool_dir.h"
#include "common/os/descriptor.h"
#include "common/os/quiet_write.h"
#include "common/os/read_all.h"
#include "common/text/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

const char *oteli_spool_dir_problem(int error, struct oteli_error_text *text)
{
    return error == EPERM
               ? "the spool's own directory is another user's, or open to others for writing"
               : oteli_error_text(error, text);
}

/* Users who share a directory each have their own within it. */
static void set_name(struct oteli_spool_dir *dir)
{
    const uint8_t kind = dir->format == OTEL_OTLP_HTTP_JSON;
    const uint64_t user = (uint64_t)geteuid();
    uint64_t value = oteli_hash(OTELI_HASH_BEGIN, &kind, sizeof kind);
    value = oteli_hash(value, &user, sizeof user);
    value = oteli_hash(value, dir->endpoint, strlen(dir->endpoint));
    snprintf(dir->name, sizeof dir->name, "otel-%016llx", (unsigned long long)value);
}

bool oteli_spool_dir_init(struct oteli_spool_dir *dir, const char *directory, const char *endpoint,
                          otel_otlp_protocol format)
{
    *dir = (struct oteli_spool_dir){.format = format,
                                    .own.fd = -1,
                                    .lock.fd = -1,
                                    .process = getpid(),
                                    .endpoint = strdup(endpoint)};
    if (dir->endpoint == NULL)
        return false;
    set_name(dir);
    dir->parent = realpath(directory, NULL); /* the program may go to another directory */
    if (dir->parent == NULL && errno != ENOMEM)
        dir->parent = strdup(directory);
    if (dir->parent != NULL)
        return true;
    free(dir->endpoint);
    dir->endpoint = NULL;
    return false;
}

static void close_fd(struct oteli_owned_fd *owned)
{
    oteli_owned_fd_close(owned);
    owned->fd = -1;
}

static void close_quietly(int fd)
{
    const int saved_errno = errno;
    close(fd);
    errno = saved_errno;
}

void oteli_spool_dir_fini(struct oteli_spool_dir *dir)
{
    oteli_spool_dir_unlock(dir);
    close_fd(&dir->own);
    free(dir->parent);
    free(dir->endpoint);
    dir->parent = dir->endpoint = NULL;
}

/* The lock is not given up: it is the parent's as long as that lives. */
void oteli_spool_dir_close_copies(const struct oteli_spool_dir *parents)
{
    struct oteli_owned_fd own = parents->own;
    struct oteli_owned_fd lock = parents->lock;
    if (parents->process == getpid())
        return;
    close_fd(&own);
    close_fd(&lock);
}

/* Nobody else can have put anything into it. */
static bool is_safe(const struct stat *status)
{
    return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool open_own(struct oteli_spool_dir *dir, struct stat *status)
{
    const int parent = open(dir->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0)
        return false;
    int fd = -1;
    if (mkdirat(parent, dir->name, S_IRWXU) == 0 || errno == EEXIST)
        fd = oteli_descriptor_lift(
            openat(parent, dir->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    close_quietly(parent);
    if (fd < 0)
        return false;
    if (fstat(fd, status) == 0 && is_safe(status)) {
        dir->own = (struct oteli_owned_fd){fd, status->st_dev, status->st_ino};
        return true;
    }
    close(fd);
    errno = EPERM;
    return false;
}

bool oteli_spool_dir_use(struct oteli_spool_dir *dir, struct timespec *changed)
{
    struct stat status;
    bool is_there = oteli_owned_fd_look(&dir->own, &status);
    /* It was removed, and there may be another one; or this process has become another user. */
    if (is_there && (status.st_nlink == 0 || status.st_uid != geteuid())) {
        close_fd(&dir->own);
        is_there = false;
    }
    if (!is_there) {
        dir->own.fd = -1;
        set_name(dir);
        if (!open_own(dir, &status))
            return false;
    }
    *changed = status.st_mtim;
    return true;
}

DIR *oteli_spool_dir_list(const struct oteli_spool_dir *dir)
{
    const int fd = openat(dir->own.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL && fd >= 0)
        close_quietly(fd);
    return stream;
}

const struct dirent *oteli_spool_dir_next(DIR *stream)
{
    const struct dirent *entry;
    errno = 0;
    do
        entry = readdir(stream);
    while (entry != NULL && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
                             strcmp(entry->d_name, "lock") == 0));
    return entry;
}

static int make_file(const struct oteli_spool_dir *dir, const char *name)
{
    return openat(dir->own.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                  S_IRUSR | S_IWUSR);
}

bool oteli_spool_dir_write(const struct oteli_spool_dir *dir, const struct oteli_spool_file *file,
                           const uint8_t head[OTELI_SPOOL_HEAD], const void *request)
{
    char temporary[OTELI_SPOOL_NAME];
    char name[OTELI_SPOOL_NAME];
    oteli_spool_name_write(file, OTELI_SPOOL_TEMPORARY, temporary);
    oteli_spool_name_write(file, OTELI_SPOOL_WHOLE, name);
    const int fd = make_file(dir, temporary);
    if (fd < 0)
        return false;
    bool is_done =
        oteli_quiet_write_all(fd, head, OTELI_SPOOL_HEAD, 0) == OTELI_SPOOL_HEAD &&
        oteli_quiet_write_all(fd, request, file->length, OTELI_SPOOL_HEAD) == file->length;
    if (!is_done)
        close_quietly(fd);
    else if (close(fd) != 0 && errno != EINTR) /* some file systems only say here */
        is_done = false;
    if (is_done && renameat(dir->own.fd, temporary, dir->own.fd, name) == 0)
        return true;
    const int error = errno;
    (void)unlinkat(dir->own.fd, temporary, 0);
    errno = error;
    return false;
}

static enum oteli_spool_content read_open(int fd, const struct oteli_spool_file *file,
                                          struct oteli_reusable_buffer *buffer)
{
    const uint64_t size = oteli_spool_file_bytes(file);
    struct stat status;
    if (fstat(fd, &status) != 0)
        return OTELI_SPOOL_UNREADABLE;
    if (!S_ISREG(status.st_mode))
        return OTELI_SPOOL_FOREIGN;
    if ((uint64_t)status.st_size != size)
        return OTELI_SPOOL_TORN;
    if (!oteli_reusable_buffer_fit(buffer, (size_t)size))
        return OTELI_SPOOL_NOT_NOW;
    const ssize_t length = oteli_read_all(fd, buffer->bytes, (size_t)size);
    if (length < 0)
        return OTELI_SPOOL_UNREADABLE;
    return (uint64_t)length == size ? OTELI_SPOOL_GOOD : OTELI_SPOOL_TORN;
}

enum oteli_spool_content oteli_spool_dir_read(const struct oteli_spool_dir *dir,
                                              const struct oteli_spool_file *file,
                                              struct oteli_reusable_buffer *buffer)
{
    char name[OTELI_SPOOL_NAME];
    oteli_spool_name_write(file, OTELI_SPOOL_WHOLE, name);
    /* Without O_NONBLOCK a FIFO that nobody writes to would never be open. */
    const int fd = openat(dir->own.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        const enum oteli_spool_content result = read_open(fd, file, buffer);
        close_quietly(fd);
        return result;
    }
    switch (errno) {
    case ENOENT:
        return OTELI_SPOOL_GONE;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EINTR:
        return OTELI_SPOOL_NOT_NOW;
    case ELOOP:
    case EACCES:
    case EPERM:
    case ENXIO:
    case ENOTDIR:
        return OTELI_SPOOL_FOREIGN;
    default:
        return OTELI_SPOOL_UNREADABLE;
    }
}

bool oteli_spool_dir_remove(const struct oteli_spool_dir *dir, const struct oteli_spool_file *file,
                            enum oteli_spool_name kind)
{
    char name[OTELI_SPOOL_NAME];
    oteli_spool_name_write(file, kind, name);
    return unlinkat(dir->own.fd, name, 0) == 0;
}

bool oteli_spool_dir_lock(struct oteli_spool_dir *dir)
{
    const int fd = oteli_descriptor_lift(
        openat(dir->own.fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
               S_IRUSR | S_IWUSR));
    if (fd < 0)
        return false;
    if (oteli_owned_fd_set(&dir->lock, fd) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        return true;
    dir->lock.fd = -1;
    close_quietly(fd);
    return false;
}

/* The lock belongs to the open file. A forked child has a copy of the descriptor, so to close ours
 * would not unlock it. */
void oteli_spool_dir_unlock(struct oteli_spool_dir *dir)
{
    if (oteli_owned_fd_is_ours(&dir->lock))
        (void)flock(dir->lock.fd, LOCK_UN);
    close_fd(&dir->lock);
}
