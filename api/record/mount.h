/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/mount.h - a mount's record in a line: what it still stands for, and how it ends.
 * Threads: the worker; with the simple processor the thread that makes the mount; and the thread
 * that takes a line which no worker will read any more. */
#ifndef OTELI_MOUNT_H
#define OTELI_MOUNT_H

#include "api/record/line.h"
#include "api/record/set_pool.h"

/* The message of a mount's record: a set in the trace of one parent. The worker, or with
 * the simple processor the thread that makes the mount, makes the spans of it, and leaves the set
 * and the tracestate when it is done. */
struct oteli_mount {
    struct otel_lines *lines; /* joined */
    uint64_t trace_id[2];
    uint64_t parent_id;   /* of the outermost */
    uint64_t key;         /* new span ids are the old ones XOR this; never equal to one of them */
    uint32_t tracestate;  /* the parent's, retained, or 0 */
    uint32_t wire_flags;  /* Span.flags of all of them … */
    uint32_t outer_flags; /* … and of the outermost, whose parent may be remote */
    uint32_t link_length; /* of a Span.links field, for the outermost; 0: none */
    uint8_t link[];
};

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
