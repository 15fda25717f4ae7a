/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/pprof_file.c - each profile as a file of its own, in a directory.
 *
 * A file is written under a hidden name beside the one it gets, so that nobody sees half of it, and
 * gets a number that no file there has: processes of a container have the same id every time.
 *
 * Made on any thread; works on the profiler's thread, which owns it. */
#include "common/clock.h"
#include "common/config.h"
#include "common/log.h"
#include "common/text.h"
#include "profiling/profile_model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 128, PATH_BYTES = PATH_MAX + NAME_MAX_BYTES + 64 };

struct pprof_files {
    otel_pprof_style style;
    unsigned long number; /* of the newest file */
    char service[NAME_MAX_BYTES];
    char directory[]; /* absolute, where it exists */
};

/* ---- names -------------------------------------------------------------------------------- */

/* What can stand in a name of a file everywhere, and is no hidden one. */
static void set_service(struct pprof_files *files, const char *text, size_t length)
{
    if (length >= sizeof files->service)
        length = sizeof files->service - 1;
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        const bool is_good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                             (c >= 'a' && c <= 'z') || c == '-' || c == '_' || (c == '.' && i != 0);
        files->service[i] = c;
        if (!is_good)
            files->service[i] = '_';
    }
    files->service[length] = '\0';
}

/* service.name of OTEL_RESOURCE_ATTRIBUTES. */
static bool find_attribute(struct pprof_files *files)
{
    otel_slice rest = oteli_slice_of(oteli_env_get("OTEL_RESOURCE_ATTRIBUTES"));
    otel_slice member;
    otel_slice key;
    otel_slice value;
    while (oteli_list_next(&rest, &member))
        if (oteli_cut(member, '=', &key, &value) && key.length == strlen("service.name") &&
            memcmp(key.data, "service.name", key.length) == 0 && value.length != 0) {
            set_service(files, value.data, value.length);
            return true;
        }
    return false;
}

static void find_service(struct pprof_files *files)
{
    const char *name = oteli_env_get("OTEL_SERVICE_NAME");
    if (name == NULL && find_attribute(files))
        return;
    if (name == NULL)
        name = program_invocation_short_name;
    set_service(files, name, strlen(name));
    if (files->service[0] == '\0')
        set_service(files, "program", strlen("program"));
}

/* ---- a file ------------------------------------------------------------------------------- */

static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length != 0) {
        const ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

/* A file of this name with these bytes; of one that is not whole nothing stays. */
static bool write_file(const char *path, const void *bytes, size_t length)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return false;
    const bool is_written = write_all(fd, bytes, length);
    const int error = errno;
    if (close(fd) == 0 && is_written)
        return true;
    const int reason = is_written ? errno : error;
    unlink(path);
    errno = reason;
    return false;
}

/* Give the file at `hidden` the next name that is free. */
static bool give_name(struct pprof_files *files, const char *hidden)
{
    char path[PATH_BYTES];
    for (;;) {
        snprintf(path, sizeof path, "%s/%s-%ld-%lu.pb.gz", files->directory, files->service,
                 (long)getpid(), ++files->number);
        if (link(hidden, path) == 0) {
            unlink(hidden);
            return true;
        }
        /* Some file systems have no second names. */
        if (errno != EEXIST && access(path, F_OK) != 0)
            return rename(hidden, path) == 0;
    }
}

static otel_status export_profile(void *state, const otel_profile *profile, int64_t timeout_ms)
{
    struct pprof_files *files = state;
    char hidden[PATH_BYTES];
    void *bytes;
    size_t length;
    (void)timeout_ms; /* a file takes no time worth counting */
    if (profile->sample_count == 0)
        return OTEL_OK; /* it would say nothing, every few seconds of a program at rest */
    const otel_status status = otel_profile_encode_pprof(profile, files->style, &bytes, &length);
    if (status != OTEL_OK)
        return status;
    snprintf(hidden, sizeof hidden, "%s/.%s-%ld-%" PRIx64, files->directory, files->service,
             (long)getpid(), oteli_monotonic_ns());
    const bool is_there = write_file(hidden, bytes, length) && give_name(files, hidden);
    const int error = errno;
    free(bytes);
    if (is_there)
        return OTEL_OK;
    OTELI_LOG(OTEL_LOG_ERROR, "a profile cannot be written in %s (errno %d)", files->directory,
              error);
    unlink(hidden);
    return OTEL_ERROR_EXPORT_FAILED;
}

/* ---- the exporter ------------------------------------------------------------------------- */

/* Nothing here waits. */
static void wake(void *state)
{
    (void)state;
}

static void warn_of_directory(const char *directory)
{
    struct stat status;
    if (stat(directory, &status) != 0 || access(directory, W_OK | X_OK) != 0)
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "profiles cannot be written in %s (errno %d)", directory,
                         errno);
    else if (!S_ISDIR(status.st_mode))
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "profiles cannot be written in %s, which is no directory",
                         directory);
}

otel_profile_exporter otel_pprof_file_exporter(const char *directory, otel_pprof_style style)
{
    char absolute[PATH_MAX];
    const char *place = directory != NULL && directory[0] != '\0' ? directory : ".";
    warn_of_directory(place);
    if (realpath(place, absolute) != NULL)
        place = absolute;
    const size_t length = strlen(place);
    struct pprof_files *files = length < PATH_MAX ? calloc(1, sizeof *files + length + 1) : NULL;
    if (files == NULL)
        return (otel_profile_exporter){0};
    files->style = style;
    memcpy(files->directory, place, length + 1);
    find_service(files);
    return (otel_profile_exporter){
        .state = files, .export_profile = export_profile, .wake = wake, .free = free};
}
