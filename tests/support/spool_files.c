/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/spool_files.c - see spool_files.h. */
#include "tests/support/spool_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

struct spool_calls spool_calls;

/* ---- files ----------------------------------------------------------------------------- */

void spool_files_begin(struct spool_files *files)
{
    memset(files, 0, sizeof *files);
    memset(&spool_calls, 0, sizeof spool_calls);
    /* In memory if possible: on a busy disk each fsync takes a second. */
    snprintf(files->path, sizeof files->path, "%s/otel-spool-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(files->path));
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name);
    return length >= strlen(end) && strcmp(name + length - strlen(end), end) == 0;
}

static void remove_all_in(const char *path, bool goes_down)
{
    char inside[512];
    DIR *stream = opendir(path);
    if (stream == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
        if (goes_down && entry->d_type == DT_DIR)
            remove_all_in(inside, false);
        (void)remove(inside);
    }
    closedir(stream);
}

void spool_files_end(struct spool_files *files)
{
    memset(&spool_calls, 0, sizeof spool_calls);
    if (spool_files_own(files)[0] != '\0')
        remove_all_in(files->own, true);
    remove_all_in(files->path, true);
    assert_int_equal(rmdir(files->path), 0);
}

const char *spool_files_own(struct spool_files *files)
{
    DIR *stream = opendir(files->path);
    files->own[0] = '\0';
    if (stream == NULL)
        return files->own;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;)
        if (strncmp(entry->d_name, "otel-", 5) == 0)
            snprintf(files->own, sizeof files->own, "%s/%.32s", files->path, entry->d_name);
    closedir(stream);
    return files->own;
}

static size_t look(struct spool_files *files, const char *end)
{
    size_t count = 0;
    files->name[0] = '\0';
    DIR *stream = opendir(spool_files_own(files));
    if (stream == NULL)
        return 0;
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, "lock") == 0 ||
            !ends_with(name, end))
            continue;
        count++;
        char path[256];
        snprintf(path, sizeof path, "%s/%.100s", files->own, name);
        if (files->name[0] == '\0' || strcmp(path, files->name) < 0)
            memcpy(files->name, path, sizeof path);
    }
    closedir(stream);
    return count;
}

size_t spool_files_count(struct spool_files *files, const char *end)
{
    return look(files, end);
}

const char *spool_files_oldest(struct spool_files *files, const char *end)
{
    return look(files, end) != 0 ? files->name : NULL;
}

void spool_files_write(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

void spool_files_put(struct spool_files *files, const struct oteli_spool_file *file,
                     const void *request)
{
    char name[OTELI_SPOOL_NAME];
    char path[256];
    uint8_t *content = malloc(OTELI_SPOOL_HEAD + file->length);
    assert_non_null(content);
    memcpy(content + OTELI_SPOOL_HEAD, request, file->length);
    oteli_spool_head_write(file, OTEL_OTLP_HTTP_PROTOBUF, request, content);
    oteli_spool_name_write(file, OTELI_SPOOL_WHOLE, name);
    snprintf(path, sizeof path, "%s/%s", spool_files_own(files), name);
    spool_files_write(path, content, (size_t)oteli_spool_file_bytes(file));
    free(content);
}

otel_spool_stats spool_files_stats(void)
{
    otel_spool_stats stats = {.size = sizeof stats};
    assert_int_equal(otel_spool_stats_read(&stats), OTEL_OK);
    assert_int_equal(stats.stored + stats.found, stats.sent + stats.rejected + stats.refused +
                                                     stats.expired + stats.evicted + stats.torn +
                                                     stats.taken + stats.waiting);
    return stats;
}

/* ---- system calls ----------------------------------------------------------------------- */

static bool fails(enum spool_call call)
{
    const size_t number = ++spool_calls.count;
    if (number == spool_calls.kill_at)
        (void)raise(SIGKILL);
    int error = spool_calls.errors[call];
    if (number == spool_calls.fail_at)
        error = spool_calls.fail_with;
    if (error != 0)
        errno = error;
    return error != 0;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
    if (!fails(SPOOL_CLOSE))
        return __real_close(fd);
    const int error = errno;
    __real_close(fd);
    errno = error;
    return -1;
}

#define WRAP(type, name, call, parameters, arguments)      \
    type __real_##name parameters;                         \
    type __wrap_##name parameters;                         \
    type __wrap_##name parameters                          \
    {                                                      \
        return fails(call) ? -1 : __real_##name arguments; \
    }
WRAP(int, fstat, SPOOL_FSTAT, (int fd, struct stat *status), (fd, status))
WRAP(int, flock, SPOOL_FLOCK, (int fd, int how), (fd, how))
WRAP(int, mkdirat, SPOOL_MKDIRAT, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP(int, openat, SPOOL_OPENAT, (int fd, const char *path, int flags, mode_t mode),
     (fd, path, flags, mode))
WRAP(ssize_t, read, SPOOL_READ, (int fd, void *bytes, size_t size), (fd, bytes, size))
WRAP(int, renameat, SPOOL_RENAMEAT, (int from, const char *old, int to, const char *new),
     (from, old, to, new))
WRAP(int, unlinkat, SPOOL_UNLINKAT, (int fd, const char *path, int flags), (fd, path, flags))

ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    const size_t most = spool_calls.most_written;
    if (fails(SPOOL_PWRITE))
        return -1;
    return __real_pwrite(fd, bytes, most != 0 && size > most ? most : size, offset);
}

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    static time_t first_s;
    const int result = __real_clock_gettime(id, now);
    if (id != CLOCK_REALTIME || spool_calls.back_s == 0)
        return result;
    first_s = first_s != 0 ? first_s : now->tv_sec;
    *now = (struct timespec){first_s - spool_calls.back_s, 0};
    return result;
}
