/* SPDX-License-Identifier: Apache-2.0 */
/* otel/lines.h - finished spans as a value: collect a stretch of work and mount it under
 * any number of parents, or take the spans of a trace in process.
 *
 *     otel_lines_begin();
 *     commit(batch);                        entered spans as usual, but of no trace yet
 *     otel_lines *work = otel_lines_end();
 *     otel_lines_mount(work, requests, request_count, NULL);   in each of their traces
 *     otel_lines_free(work);
 *
 * Threads:  begin and end belong to one thread. An otel_lines is used by one thread at a
 *           time, which may be another one than its maker.
 * Signals:  a function may allocate unless it says otherwise: otel/context.h says what is safe in a
 *           handler.
 * Memory:   the spans are kept once, however often they are mounted, until the last mount
 *           is exported and otel_lines_free was called. Together with held-back spans they
 *           take at most OTEL_C_HELD_MAX_BYTES; what does not fit is dropped and counted
 *           (OTEL_DROP_HELD_LIMIT).
 * Errors:   none. NULL is an empty otel_lines everywhere; without an SDK all is NULL.
 * Source:   LocalCollector and push_child_spans of TiKV's minitrace and fastrace. */
#ifndef OTEL_LINES_H
#define OTEL_LINES_H

#include <otel/exporter.h>
#include <otel/trace.h>

OTEL_BEGIN_DECLS

typedef struct otel_lines otel_lines;

/* Begin to collect: from here to otel_lines_end, spans that this thread enters are not exported.
 * The outermost have no parent yet. What the thread does in another context that
 * it attaches is not part of it; detached spans (otel_span_start) are not either, and find
 * no parent here. May be nested: the inner stretch is a value of its own. */
OTEL_API void otel_lines_begin(void);

/* End the innermost stretch that this thread began, and get its spans; the caller owns them
 * and calls otel_lines_free. Spans that are still open are not among them, and are withheld
 * when they end (OTEL_WITHHELD_LATE). NULL: nothing was collected. */
OTEL_API OTEL_MUST_USE otel_lines *otel_lines_end(void);

typedef struct otel_mount_options {
    size_t size;                     /* sizeof(otel_mount_options) */
    const otel_span_context *linked; /* outermost spans get a link to this one; NULL: none */
} otel_mount_options;

#define OTEL_MOUNT_OPTIONS(...) \
    (&(otel_mount_options){.size = sizeof(otel_mount_options), __VA_ARGS__})

/* Export the spans as descendants of each parent, in the parent's trace, under span ids of
 * their own. Parents that are not sampled are left out. A parent may have ended: its ids and flags
 * are what counts, not what becomes of it (tail_keep, otel_span_cancel). The exporter thread does
 * the work; this only says so. A set that is mounted k times counts as k times its spans. Any
 * thread. */
OTEL_API void otel_lines_mount(otel_lines *lines, const otel_span *parents, size_t count,
                               const otel_mount_options *options);

/* Parents that come one by one before the work is done which they share, as in a group commit.
 *
 *     otel_parents *waiting = otel_parents_new(10000);
 *     otel_parents_add(waiting, &span);            each request that has written to the log
 *     otel_lines_begin();
 *     fsync(log);
 *     otel_lines *work = otel_lines_end();
 *     otel_parents_mount(waiting, work, NULL);     for all so far
 *     otel_lines_free(work);
 *
 * Each keeps its tracestate until then: of 4,096 different ones that are in use, no more are taken.
 *
 * A forked child has what was remembered at the fork, and should forget it. */
typedef struct otel_parents otel_parents;

/* Make one that remembers up to `most` spans, and takes memory for them here only. NULL: no memory,
 * or none is to be remembered; then nothing can be added. */
OTEL_API OTEL_MUST_USE otel_parents *otel_parents_new(size_t most);

/* Remember a span until the next mount, by when it may have ended. One that is added twice gets the
 * lines twice; one that is not sampled is not remembered. Any thread, and signal handlers: no lock,
 * no memory, no waiting. False: there is no room, so the next mount leaves this one out. */
OTEL_API bool otel_parents_add(otel_parents *parents, const otel_span *span);

/* otel_lines_mount under all spans that are remembered, and forget them. Lines that are NULL: only
 * forget. One that is added meanwhile is in this mount or in the next. How many were left out for
 * want of room is a warning in the log. One thread at a time. */
OTEL_API void otel_parents_mount(otel_parents *parents, otel_lines *lines,
                                 const otel_mount_options *options);

/* Free it, and what it remembers. Start/stop only. */
OTEL_API void otel_parents_free(otel_parents *parents);

/* How many spans there are, and each of them: `*cursor` begins at 0. False: no more. Views
 * are valid until otel_lines_free. Times are Unix time; the ids of collected spans are
 * those of a trace that occurs nowhere else. The name of a span of otel_span_enter_address is
 * "0x…", and that text is valid until the thread's next call. In library `otel-sdk`. */
OTEL_API size_t otel_lines_size(const otel_lines *lines);
OTEL_API bool otel_lines_next(const otel_lines *lines, size_t *cursor, otel_span_view *span);

/* Free a collected set: the caller's part is over. A collected set that was never mounted is
 * counted as OTEL_WITHHELD_UNMOUNTED. */
OTEL_API void otel_lines_free(otel_lines *lines);

/* What is known of a held-back trace when its local root ends; for
 * otel_sdk_options.tail_keep (otel/sdk.h). */
typedef struct otel_tail {
    size_t size; /* sizeof(otel_tail) of the library */
    otel_span_context root;
    otel_slice name;      /* of the root */
    uint64_t duration_ns; /* of the root; 0: the end that the program gave is before the start */
    size_t span_count;    /* that ended before it, and it */
    bool has_error;       /* one of them has the status Error */
} otel_tail;

/* End a span that holds back its descendants (otel_span_options.hold) and get all of them
 * and itself, instead of exporting them: counted as OTEL_WITHHELD_COLLECTED. They can be mounted
 * as well. Descendants that end later are withheld (OTEL_WITHHELD_LATE). NULL: it holds nothing. */
OTEL_API OTEL_MUST_USE otel_lines *otel_span_collect(otel_span span);

OTEL_END_DECLS
#endif
