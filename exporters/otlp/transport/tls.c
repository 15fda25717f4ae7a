/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/tls.c - the contracts are in exporters/otlp/transport/tls.h. Exporter
 * thread, and the one that starts; a transport owns the bytes.
 *
 * Everything is read into memory here because a TLS library that is given paths reads them when
 * it likes, and has no second thoughts about what it found. Several transports of an exporter
 * read the same files: log lines are capped. */
#include "exporters/otlp/transport/tls.h"

#include "common/log.h"
#include "common/os/read_all.h"
#include "common/text/error_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    FILE_BYTES_MAX = 4 * 1024 * 1024,
    FRESH_S = 2 /* file systems' clocks tick this slowly at worst */
};

#define NO_CERTIFICATE "there is no whole certificate in PEM form in it"
#define NO_KEY "there is no whole key in PEM form in it"

static const struct {
    const char *name;
    const char *label; /* how the label of a wanted block of PEM ends */
    const char *none;  /* what is wrong without such a block */
} kinds[OTELI_TLS_FILES] = {
    [OTELI_TLS_CA] = {"CA file", "CERTIFICATE-----", NO_CERTIFICATE},
    [OTELI_TLS_CERTIFICATE] = {"client certificate", "CERTIFICATE-----", NO_CERTIFICATE},
    [OTELI_TLS_KEY] = {"client key", "PRIVATE KEY-----", NO_KEY},
};

void oteli_tls_files_init(struct oteli_tls_files *files, const struct oteli_tls *tls)
{
    *files = (struct oteli_tls_files){
        .files = {[OTELI_TLS_CA] = {.path = tls->ca_file},
                  [OTELI_TLS_CERTIFICATE] = {.path = tls->certificate_file},
                  [OTELI_TLS_KEY] = {.path = tls->key_file}}};
}

void oteli_tls_files_fini(struct oteli_tls_files *files)
{
    for (size_t i = 0; i < OTELI_TLS_FILES; i++)
        free(files->files[i].bytes);
}

/* Blocks are "-----BEGIN LABEL-----", lines, "-----END LABEL-----". */
bool oteli_tls_is_pem(const char *text, enum oteli_tls_which which)
{
    static const char begin[] = "-----BEGIN ";
    static const char end[] = "-----END ";
    bool has_wanted = false;
    for (const char *block = strstr(text, begin); block != NULL; block = strstr(text, begin)) {
        const char *label = block + strlen(begin);
        const size_t size = strcspn(label, "-") + strlen("-----");
        const char *next = strstr(label, begin);
        const char *last = strstr(label, end);
        if (last == NULL || (next != NULL && next < last) ||
            strncmp(label, last + strlen(end), size) != 0)
            return false;
        has_wanted |= memmem(label, size, kinds[which].label, strlen(kinds[which].label)) != NULL;
        text = last + strlen(end) + size;
    }
    return has_wanted;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_ino == other->st_ino && one->st_dev == other->st_dev &&
           one->st_size == other->st_size && one->st_mtim.tv_sec == other->st_mtim.tv_sec &&
           one->st_mtim.tv_nsec == other->st_mtim.tv_nsec;
}

static bool may_change_unseen(const struct stat *found)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    return found->st_mtim.tv_sec > now.tv_sec - FRESH_S;
}

/* What is in a file, with a NUL behind it; NULL: it cannot be read, and errno says why. */
static char *read_file(struct oteli_tls_file *file, size_t *length)
{
    char *bytes = NULL;
    ssize_t got = -1;
    file->seen = (struct stat){0};
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &file->seen) == 0 && file->seen.st_size > FILE_BYTES_MAX)
        errno = EFBIG;
    else
        bytes = calloc(1, (size_t)file->seen.st_size + 1);
    if (bytes != NULL)
        got = oteli_read_all(fd, bytes, (size_t)file->seen.st_size);
    const int error = errno;
    close(fd);
    errno = error;
    *length = (size_t)got;
    if (got >= 0)
        return bytes;
    free(bytes);
    return NULL;
}

static bool has_changed(const struct oteli_tls_file *file)
{
    struct stat now = {0};
    return file->is_missing || file->is_fresh || stat(file->path, &now) != 0 ||
           !is_same(&now, &file->seen);
}

/* True: there is something new to use. */
static bool look_at(struct oteli_tls_files *files, enum oteli_tls_which which)
{
    struct oteli_tls_file *file = &files->files[which];
    if (file->path == NULL || !has_changed(file))
        return false;
    struct oteli_error_text text;
    size_t length;
    char *bytes = read_file(file, &length);
    const char *problem = bytes == NULL                    ? oteli_error_text(errno, &text)
                          : oteli_tls_is_pem(bytes, which) ? NULL
                                                           : kinds[which].none;
    const bool was_missing = file->is_missing;
    file->is_missing = problem != NULL;
    file->is_fresh = may_change_unseen(&file->seen);
    if (bytes == NULL || problem != NULL) {
        snprintf(files->problem, sizeof files->problem, "the %s %s cannot be used: %s",
                 kinds[which].name, file->path, problem);
        if (!was_missing)
            OTELI_LOG(OTEL_LOG_WARN, "%s%s", files->problem,
                      file->bytes != NULL ? "; what was read before stays in use" : "");
        free(bytes);
        return false;
    }
    if (file->bytes != NULL && file->length == length && memcmp(file->bytes, bytes, length) == 0) {
        free(bytes);
        return false;
    }
    if (file->bytes != NULL)
        OTELI_LOG(OTEL_LOG_INFO, "the %s %s has changed", kinds[which].name, file->path);
    free(file->bytes);
    file->bytes = bytes;
    file->length = length;
    return true;
}

bool oteli_tls_files_look(struct oteli_tls_files *files)
{
    bool has_new = false;
    for (enum oteli_tls_which which = 0; which < OTELI_TLS_FILES; which++)
        has_new |= look_at(files, which);
    return has_new;
}

bool oteli_tls_files_are_there(const struct oteli_tls_files *files)
{
    for (size_t i = 0; i < OTELI_TLS_FILES; i++) {
        if (files->files[i].path != NULL && files->files[i].bytes == NULL)
            return false;
    }
    return true;
}
