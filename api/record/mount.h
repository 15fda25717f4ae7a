/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/mount.h - a mount's record in a line: what it still stands for, and how it ends.
 * Threads: the worker; with the simple processor the thread that makes the mount; and the thread
 * that takes a line which no worker will read any more. */
#ifndef OTELI_MOUNT_H
#define OTELI_MOUNT_H

#include "api/held/span_set.h"

/* How far the expansion of a mount is; all zeros at first. These members of a record's head
 * say other things of spans. */
#define OTELI_MOUNT_SPANS_DONE(record) ((record)->times_at)
#define OTELI_MOUNT_BYTES_DONE(record) ((record)->events_at)

static inline const struct oteli_mount *oteli_record_mount(const struct oteli_record *record)
{
    return (const struct oteli_mount *)(const void *)(record + 1);
}

/* How many spans a record still stands for. */
static inline uint64_t oteli_record_spans(const struct oteli_record *record)
{
    if (OTELI_LIKELY((record->what & OTELI_RECORD_MOUNT) == 0))
        return 1;
    return oteli_record_mount(record)->lines->count - OTELI_MOUNT_SPANS_DONE(record);
}

/* A mount is expanded, or never will be: let go of its set and its tracestate. */
OTELI_INTERNAL_API void oteli_mount_discard(const struct oteli_mount *mount);

/* The same for all mounts in a line that is not read any further. */
OTELI_INTERNAL_API void oteli_line_discard_mounts(struct oteli_line *line);

#endif
