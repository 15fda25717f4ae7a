/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_dir.h - the system calls of a spool: a directory of our own within the
 * program's, its files, and the lock of the process that sends.
 *
 * Ours is only used while it is a directory (no link to one) that belongs to this process's user
 * and that no other user may write to; the program's may belong to any user. The descriptor that is
 * kept is compared with what it was before each use, for the program may have closed it and opened
 * something else in its place. Everything else is closed before a call returns, but for the lock.
 *
 * Threads:  one thread at a time. errno says why something failed. */
#ifndef OTELI_SPOOL_DIR_H
#define OTELI_SPOOL_DIR_H

#include "common/os/owned_fd.h"
#include "common/text/error_text.h"
#include "exporters/otlp/encode/reusable_buffer.h"
#include "exporters/otlp/spool/spool_file.h"

#include <dirent.h>
#include <sys/types.h>
#include <time.h>

struct oteli_spool_dir {
    char *parent;
    char *endpoint;
    otel_otlp_protocol format;
    char name[sizeof "otel-" + 16];
    struct oteli_owned_fd own;
    struct oteli_owned_fd lock; /* while we have it */
    pid_t process;              /* whose they are. Constant */
};

/* Ours within `directory` is for requests of this format to this endpoint. false: no memory. */
bool oteli_spool_dir_init(struct oteli_spool_dir *dir, const char *directory, const char *endpoint,
                          otel_otlp_protocol format);
void oteli_spool_dir_fini(struct oteli_spool_dir *dir);

/* In a forked child, of its parent's: close the copies of its descriptors. */
void oteli_spool_dir_close_copies(const struct oteli_spool_dir *parents);

/* Make it, or find it, or see whether it still is what it was; before each of the calls below. A
 * process that has become another user has another one from then on.
 * *changed: when something came into it or left it last. */
bool oteli_spool_dir_use(struct oteli_spool_dir *dir, struct timespec *changed);

/* A stream over what is in it; NULL: it cannot be read. oteli_spool_dir_next is the next entry but
 * the lock; NULL: that was all, or errno is not 0. */
DIR *oteli_spool_dir_list(const struct oteli_spool_dir *dir);
const struct dirent *oteli_spool_dir_next(DIR *stream);

/* Write a whole file, or none. */
bool oteli_spool_dir_write(const struct oteli_spool_dir *dir, const struct oteli_spool_file *file,
                           const uint8_t head[OTELI_SPOOL_HEAD], const void *request);

/* Read a file into `buffer`. OTELI_SPOOL_GOOD: it has as many bytes as its name promises, whatever
 * they are. */
enum oteli_spool_content oteli_spool_dir_read(const struct oteli_spool_dir *dir,
                                              const struct oteli_spool_file *file,
                                              struct oteli_reusable_buffer *buffer);

/* false with ENOENT: another process has removed it. */
bool oteli_spool_dir_remove(const struct oteli_spool_dir *dir, const struct oteli_spool_file *file,
                            enum oteli_spool_name kind);

/* Become the one that sends, which it is not yet; false with EWOULDBLOCK: another one is. It ends
 * with the process, at the latest. */
bool oteli_spool_dir_lock(struct oteli_spool_dir *dir);
void oteli_spool_dir_unlock(struct oteli_spool_dir *dir);

/* What errno says, in words that live as long as `text`. */
const char *oteli_spool_dir_problem(int error, struct oteli_error_text *text);

#endif
