/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/spool_files.h - a directory for a spool, and what is in it; system calls that fail
 * when they are told to.
 *
 *     struct spool_files files;
 *     spool_files_begin(&files);
 *     spool = oteli_spool_open(files.path, ENDPOINT, ...);
 *     ...
 *     assert_int_equal(spool_files_count(&files, ".otlp"), 1);
 *     spool_files_end(&files);           all of it is removed
 *
 * Programs that are linked with --wrap for the calls of enum spool_call count them, and may have
 * one fail, or end the process.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TESTS_SPOOL_FILES_H
#define OTELI_TESTS_SPOOL_FILES_H

#include "exporters/otlp/spool/spool_file.h"

#include <otel/spool.h>
#include <time.h>

#define SPOOL_ENDPOINT "http://localhost:4318/v1/traces"

struct spool_files {
    char path[64];  /* the program's directory */
    char own[128];  /* the spool's within it; "": it has not been made */
    char name[256]; /* what spool_files_oldest has found */
};

void spool_files_begin(struct spool_files *files);
void spool_files_end(struct spool_files *files);

/* Look for the spool's directory. */
const char *spool_files_own(struct spool_files *files);

/* Files in it whose names end so; "" all but the lock. */
size_t spool_files_count(struct spool_files *files, const char *end);

/* The path of the first of them, by its name; NULL: there is none. */
const char *spool_files_oldest(struct spool_files *files, const char *end);

/* Put a file there as a spool would. */
void spool_files_put(struct spool_files *files, const struct oteli_spool_file *file,
                     const void *request);

/* Write anything to a path. */
void spool_files_write(const char *path, const void *bytes, size_t length);

/* The statistics, which must close. */
otel_spool_stats spool_files_stats(void);

enum spool_call {
    SPOOL_CLOSE,
    SPOOL_FSTAT,
    SPOOL_FLOCK,
    SPOOL_MKDIRAT,
    SPOOL_OPENAT,
    SPOOL_READ,
    SPOOL_RENAMEAT,
    SPOOL_UNLINKAT,
    SPOOL_PWRITE,
    SPOOL_CALLS
};

/* What the wrapped calls do. */
struct spool_calls {
    int errors[SPOOL_CALLS]; /* each call of this kind fails with this; 0: it does not */
    size_t most_written;     /* by one pwrite; 0: everything */
    size_t count;            /* calls so far */
    size_t kill_at;          /* the process is killed before this one (1: the first); 0: never */
    size_t fail_at;          /* this one fails … */
    int fail_with;           /* … with this */
    time_t back_s;           /* so long before its first time the wall clock stands; 0: it goes */
};
extern struct spool_calls spool_calls;

#endif
