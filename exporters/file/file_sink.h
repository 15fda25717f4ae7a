/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/file_sink.h - where lines go: a file that rotates, or whatever stdout is.
 *
 * A regular file takes text whole or not at all. Everything else (a pipe, a terminal, a socket)
 * takes as much as it has room for, and is never waited for here.
 *
 * A file may be shared with other processes that append whole lines, a forked child for example.
 * Before each append the sink looks up whether the path still leads to this file: if another
 * process or a tool has renamed it, the lines that follow are in a new file. A file whose
 * descriptor the program has closed is opened again; what else it has closed takes nothing more.
 *
 * Threads:  one thread at a time. No call changes what the signals of the program do: neither
 *           SIGPIPE nor SIGXFSZ comes from here. */
#ifndef OTELI_FILE_SINK_H
#define OTELI_FILE_SINK_H

#include "common/os/owned_fd.h"

#include <otel/base.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum oteli_sink_kind {
    OTELI_SINK_FILE,   /* regular */
    OTELI_SINK_STREAM, /* does not wait: O_NONBLOCK */
    OTELI_SINK_SOCKET,
    OTELI_SINK_WAITING /* a stream whose O_NONBLOCK is not ours to set */
};

/* All of it is constant, but for the file that is held. */
struct oteli_sink {
    struct oteli_owned_fd held;
    enum oteli_sink_kind kind;
    char *path; /* absolute; NULL: stdout. Owned */
    int64_t max_bytes;
    int max_files;
};

/* Open the path, or what stdout is now (NULL). OTEL_ERROR_SYSTEM: errno says why. */
otel_status oteli_sink_open(struct oteli_sink *sink, const char *path, int64_t max_bytes,
                            int64_t max_files);

/* In a forked child: one of its own from a copy of the parent's. A path is opened anew; a
 * descriptor is taken over, and shared with the parent as after any fork. */
otel_status oteli_sink_reopen(struct oteli_sink *sink, const struct oteli_sink *parents);

void oteli_sink_close(struct oteli_sink *sink);

/* Of a file: append all of the text, in a new file if it would become too large. False:
 * nothing of it is there, and errno says why. */
bool oteli_sink_append(struct oteli_sink *sink, const char *text, size_t length);

/* Of anything else: how many bytes went, 0 when there is no room now; -1: see errno. */
ssize_t oteli_sink_push(const struct oteli_sink *sink, const char *text, size_t length);

#endif
