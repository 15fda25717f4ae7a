/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/transport/tls.c - the contracts are in exporters/otlp/transport/tls.h. Exporter
 * thread, and the one that starts; a transport owns the bytes.
 *
 * Everything is read into memory here because a TLS library that is given paths reads them when
 * it likes, and has no second thoughts about what it found. Several transports of an exporter
 * read the same files: log lines are capped. */
#include "exporters/otlp/transport/tls.h"

#include "common/log.h"

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

static const char *const words[OTELI_TLS_FILES] = {"CA file", "client certificate", "client key"};

static void forget(struct oteli_tls_bytes *bytes)
{
    free(bytes->bytes);
    *bytes = (struct oteli_tls_bytes){0};
}

void oteli_tls_files_init(struct oteli_tls_files *files, const struct oteli_tls *tls)
{
    *files = (struct oteli_tls_files){
        .files = {[OTELI_TLS_CA] = {.path = tls->ca_file},
                  [OTELI_TLS_CERTIFICATE] = {.path = tls->certificate_file},
                  [OTELI_TLS_KEY] = {.path = tls->key_file}}};
}

void oteli_tls_files_fini(struct oteli_tls_files *files)
{
    for (size_t i = 0; i < OTELI_TLS_FILES; i++) {
        forget(&files->files[i].held);
        forget(&files->files[i].offered);
    }
}

/* Go to the next text of this kind; NULL: there is none. */
static const char *find(const char *from, const char *end, const char *text)
{
    return memmem(from, (size_t)(end - from), text, strlen(text));
}

/* Blocks are "-----BEGIN LABEL-----", lines, "-----END LABEL-----". */
const char *oteli_tls_check_pem(const char *bytes, size_t length, enum oteli_tls_which which)
{
    static const char begin[] = "-----BEGIN ";
    static const char close[] = "-----END ";
    const char *wanted = which == OTELI_TLS_KEY ? "PRIVATE KEY-----" : "CERTIFICATE-----";
    const char *const end = bytes + length;
    const char *at = bytes;
    const char *block;
    bool has_wanted = false;
    while ((block = find(at, end, begin)) != NULL) {
        const char *label = block + strlen(begin);
        const char *last = find(label, end, close);
        const char *dashes = find(label, end, "-----");
        if (last == NULL || dashes == last)
            return "it is not whole";
        const size_t size = (size_t)(dashes - label) + strlen("-----");
        last += strlen(close);
        if ((size_t)(end - last) < size || memcmp(label, last, size) != 0 ||
            find(label, last, begin) != NULL)
            return "it is not whole";
        if (which == OTELI_TLS_KEY &&
            (find(label, last, "ENCRYPTED ") == label || find(label, last, "\nProc-Type:") != NULL))
            return "it is encrypted, and nobody is there to type a password";
        has_wanted |= find(label, label + size, wanted) != NULL;
        at = last + size;
    }
    if (find(at, end, close) != NULL)
        return "it is not whole";
    if (has_wanted)
        return NULL;
    return which == OTELI_TLS_KEY ? "there is no key in PEM form in it"
                                  : "there is no certificate in PEM form in it";
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

/* Read what is in an open file; NULL, or why not. */
static const char *read_bytes(int fd, size_t size, struct oteli_tls_bytes *into)
{
    into->bytes = malloc(size + 1);
    into->length = 0;
    while (into->bytes != NULL && into->length <= size) {
        const ssize_t got = read(fd, into->bytes + into->length, size + 1 - into->length);
        if (got == 0)
            return NULL;
        if (got < 0 && errno != EINTR)
            return "it cannot be read";
        if (got > 0)
            into->length += (size_t)got;
    }
    return into->bytes == NULL ? "there is no memory for it" : "it is being written";
}

/* Read a file that may have changed; NULL, or why it cannot be used. */
static const char *read_file(struct oteli_tls_file *file, enum oteli_tls_which which,
                             struct oteli_tls_bytes *into)
{
    struct stat found = {0};
    const int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? "there is no such file" : "it cannot be opened";
    const char *problem = NULL;
    if (fstat(fd, &found) != 0 || !S_ISREG(found.st_mode))
        problem = "it is no file";
    else if (found.st_size > FILE_BYTES_MAX)
        problem = "it is too large";
    else
        problem = read_bytes(fd, (size_t)found.st_size, into);
    close(fd);
    if (problem == NULL)
        problem = oteli_tls_check_pem(into->bytes, into->length, which);
    if (problem != NULL)
        forget(into);
    file->seen = found;
    file->is_fresh = may_change_unseen(&found);
    return problem;
}

static struct oteli_tls_bytes newest(const struct oteli_tls_file *file)
{
    return file->offered.bytes != NULL ? file->offered : file->held;
}

static bool has_changed(const struct oteli_tls_file *file)
{
    struct stat now = {0};
    return file->is_missing || file->is_fresh || stat(file->path, &now) != 0 ||
           !is_same(&now, &file->seen);
}

/* True: there is something new to offer. */
static bool look_at(struct oteli_tls_files *files, enum oteli_tls_which which)
{
    struct oteli_tls_file *file = &files->files[which];
    if (file->path == NULL || !has_changed(file))
        return false;
    struct oteli_tls_bytes found = {0};
    const bool was_missing = file->is_missing;
    const char *problem = read_file(file, which, &found);
    const struct oteli_tls_bytes before = newest(file);
    file->is_missing = problem != NULL;
    if (problem != NULL) {
        snprintf(files->problem, sizeof files->problem, "the %s %s cannot be used: %s",
                 words[which], file->path, problem);
        if (!was_missing)
            OTELI_LOG(OTEL_LOG_WARN, "%s%s", files->problem,
                      before.bytes != NULL ? "; what was read before stays in use" : "");
        return false;
    }
    if (before.bytes != NULL && before.length == found.length &&
        memcmp(before.bytes, found.bytes, found.length) == 0) {
        forget(&found);
        return false;
    }
    if (before.bytes != NULL)
        OTELI_LOG(OTEL_LOG_INFO, "the %s %s has changed", words[which], file->path);
    forget(&file->offered);
    file->offered = found;
    return true;
}

bool oteli_tls_files_look(struct oteli_tls_files *files)
{
    bool has_new = false;
    for (enum oteli_tls_which which = 0; which < OTELI_TLS_FILES; which++)
        has_new |= look_at(files, which);
    if (has_new)
        files->is_refused = false;
    return has_new;
}

bool oteli_tls_files_are_there(const struct oteli_tls_files *files)
{
    for (size_t i = 0; i < OTELI_TLS_FILES; i++) {
        if (files->files[i].path != NULL &&
            oteli_tls_files_bytes(files, (enum oteli_tls_which)i).bytes == NULL)
            return false;
    }
    return true;
}

struct oteli_tls_bytes oteli_tls_files_bytes(const struct oteli_tls_files *files,
                                             enum oteli_tls_which which)
{
    const struct oteli_tls_file *file = &files->files[which];
    return files->is_refused && files->was_held ? file->held : newest(file);
}

void oteli_tls_files_hold(struct oteli_tls_files *files)
{
    if (files->is_refused)
        return;
    for (size_t i = 0; i < OTELI_TLS_FILES; i++) {
        struct oteli_tls_file *file = &files->files[i];
        if (file->offered.bytes == NULL)
            continue;
        forget(&file->held);
        file->held = file->offered;
        file->offered = (struct oteli_tls_bytes){0};
    }
    files->was_held = true;
}

static bool has_offer(const struct oteli_tls_files *files)
{
    for (size_t i = 0; i < OTELI_TLS_FILES; i++) {
        if (files->files[i].offered.bytes != NULL)
            return true;
    }
    return false;
}

bool oteli_tls_files_refuse(struct oteli_tls_files *files, const char *why)
{
    if (files->is_refused || !files->was_held || !has_offer(files))
        return false;
    files->is_refused = true;
    OTELI_LOG(OTEL_LOG_WARN,
              "the TLS files that have changed cannot be used: %s; what was read before "
              "stays in use",
              why);
    return true;
}
