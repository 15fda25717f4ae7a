/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profile/pprof_file.c - each profile as a file of its own, in a directory.
 *
 * A file is written under a hidden name beside the one it gets, so that no reader sees half of it,
 * and gets a number that no file there has: processes of a container have the same id every time.
 * It is named after the service that the SDK traces, as far as there is one by then.
 *
 * Made on any thread; works on the profiler's thread, which owns it. */
#include "common/clock/clock.h"
#include "common/log.h"
#include "common/os/quiet_write.h"
#include "common/text/error_text.h"
#include "common/text/text.h"
#include "profiling/profile/profile_model.h"
#include "sdk/lifecycle/resource_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <otel/exporter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 128, PATH_BYTES = PATH_MAX + NAME_MAX_BYTES + 64 };

struct pprof_files {
    otel_pprof_style style;
    unsigned long number; /* of the newest file */
    struct oteli_resource_snapshot identity;
    char service[NAME_MAX_BYTES];
    char directory[]; /* absolute, where it exists */
};

/* ---- names -------------------------------------------------------------------------------- */

/* What can stand in a name of a file everywhere, and is neither hidden nor an option. */
static bool is_good(char c, bool is_first)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
           (!is_first && (c == '-' || c == '.'));
}

/* A character of more than one byte becomes one that is good. */
static void set_service(struct pprof_files *files, otel_slice name)
{
    size_t used = 0;
    for (size_t i = 0; i < name.length && used < sizeof files->service - 1; i++) {
        const char c = name.data[i];
        const bool goes_on = ((unsigned char)c & 0xc0) == 0x80;
        if (is_good(c, used == 0))
            files->service[used++] = c;
        else if (!goes_on || used == 0)
            files->service[used++] = '_';
    }
    files->service[used] = '\0';
}

/* As the specification has it: "unknown_service:program", or without the program. */
static bool is_unknown(otel_slice name)
{
    static const char unknown[] = "unknown_service";
    const size_t length = sizeof unknown - 1;
    return name.length >= length && memcmp(name.data, unknown, length) == 0 &&
           (name.length == length || name.data[length] == ':');
}

/* The resource's service.name; empty: it has none, or one that no user has given. */
static otel_slice service_of(const struct oteli_resource_snapshot *identity)
{
    otel_slice rest = {identity->resource, identity->resource_length};
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute)) {
        const otel_slice name = attribute.value.slice;
        if (attribute.value.type == OTEL_VALUE_STRING &&
            oteli_is_text(attribute.key, "service.name") && !is_unknown(name))
            return name;
    }
    return (otel_slice){"", 0};
}

/* The SDK may have started since the last file, or another one, with a name of its own. */
static void find_service(struct pprof_files *files)
{
    (void)oteli_resource_snapshot_renew(&files->identity); /* without memory it is as it was */
    otel_slice name = service_of(&files->identity);
    if (name.length == 0)
        name = oteli_slice_of(program_invocation_short_name);
    set_service(files, name);
    if (files->service[0] == '\0')
        set_service(files, oteli_slice_of("program"));
}

/* ---- a file ------------------------------------------------------------------------------- */

/* A file of this name with these bytes. False: it is not there, or not whole. */
static bool write_file(const char *path, const void *bytes, size_t length)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    const bool is_written = fd >= 0 && oteli_quiet_write_all(fd, bytes, length, 0) == length;
    return fd >= 0 && close(fd) == 0 && is_written;
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
    find_service(files);
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
    struct oteli_error_text why;
    OTELI_LOG(OTEL_LOG_ERROR, "a profile cannot be written in %s: %s", files->directory,
              oteli_error_text(error, &why));
    unlink(hidden);
    return OTEL_ERROR_EXPORT_FAILED;
}

/* ---- the exporter ------------------------------------------------------------------------- */

/* Nothing here waits. */
static void wake(void *state)
{
    (void)state;
}

static void free_files(void *state)
{
    struct pprof_files *files = state;
    if (files != NULL)
        oteli_resource_snapshot_fini(&files->identity);
    free(files);
}

static void warn_of_directory(const char *directory)
{
    static const char hint_for_urls[] =
        " (a URL goes into OTEL_C_PROFILER_ENDPOINT, with OTEL_C_PROFILER_OUT=otlp)";
    struct stat status;
    struct oteli_error_text why;
    const bool is_there = stat(directory, &status) == 0;
    if (is_there && !S_ISDIR(status.st_mode))
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "profiles cannot be written in %s, which is no directory",
                         directory);
    else if (!is_there || access(directory, W_OK | X_OK) != 0)
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "profiles cannot be written in %s: %s%s", directory,
                         oteli_error_text(errno, &why),
                         strstr(directory, "://") == NULL ? "" : hint_for_urls);
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
    find_service(files); /* the environment is read here, if at all, and not on the other thread */
    return (otel_profile_exporter){
        .state = files, .export_profile = export_profile, .wake = wake, .free = free_files};
}
