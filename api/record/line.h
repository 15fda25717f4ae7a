/* SPDX-License-Identifier: Apache-2.0 */
/* api/record/line.h - a line: ended spans of one thread, as bytes, on their way to the worker.
 *
 *      header          record            record            record
 *     +---------------+-----------------+-----------------+--------- - - -+
 *     | committed ... | head | Span msg | head | Span msg |     free      |
 *     +---------------+-----------------+-----------------+--------- - - -+
 *                      ^ consumed (worker)                 ^ committed (owner)
 *
 * One app thread writes behind `committed` and moves it; the worker reads up to there, at
 * any time. A full line goes to the worker as a whole, through the ring; until it is
 * there the owner keeps it as its current line, so the worker finds every committed
 * record in the ring or in a thread's current line. While an SDK runs only its worker gives lines
 * back; a thread that goes on to another SDK gives its own back, unless the worker has pinned it.
 *
 * Lines come from one pool of the process and are never unmapped while threads trace. Each
 * thread that traces keeps one; the limit is for those that wait for the worker. */
#ifndef OTELI_LINE_H
#define OTELI_LINE_H

#include "common/base/atomic.h"
#include "common/base/internal_api.h"
#include <otel/trace.h>

enum {
    OTELI_LINE_BYTES = 16 * 1024, /* header included */
    OTELI_LINE_MAX_COUNT = 1 << 20
};

struct oteli_thread;

/* What a record is, as flags. OTELI_RECORD_RAW: if any of these bits is set, it has yet to be
 * finished (raw_record.h); they are where the kind of a raw one lies. */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { OTELI_RECORD_RAW = 0x7f << 24 };
#else
enum { OTELI_RECORD_RAW = 0xff };
#endif
enum {
    OTELI_RECORD_ADDRESS = 0x100,   /* its name is an address in memory, to be looked up */
    OTELI_RECORD_OUTERMOST = 0x200, /* of a set: its parent is not in the set */
    OTELI_RECORD_MOUNT = 0x400      /* no span, but a struct oteli_mount: span_set.h, mount.h */
};

/* Before each Span message. All of it is the owner's until committed. */
struct oteli_record {
    uint32_t size;      /* head, message and padding: to the next record */
    uint32_t length;    /* of the message */
    uint32_t epoch;     /* anchor for its ticks: common/clock/clock.h */
    uint32_t times_at;  /* of the start time's tag, from the start of the message */
    uint32_t events_at; /* of the first event's tag; 0: no events */
    uint32_t what;
    const otel_tracer *tracer; /* or NULL: nameless */
};
_Static_assert(sizeof(struct oteli_record) % 8 == 0, "records keep each other aligned");

struct oteli_line {
    /* of the owner; read by the worker */
    uint32_t committed;         /* bytes of records; release, pairs with the worker's acquire */
    struct oteli_thread *owner; /* constant while the line is in use */

    /* of the worker */
    _Alignas(OTELI_CACHELINE) uint32_t consumed; /* bytes; also read for statistics */
    uint32_t pins;                               /* batches that took from it */
    struct oteli_line *next;                     /* in the worker's list */

    /* of the pool */
    uint32_t capacity; /* bytes of records that fit; constant */
    uint32_t units;    /* of OTELI_LINE_BYTES that it counts for; 1: pooled */
    uint32_t index;    /* in the pool */
    uint32_t free_next;

    _Alignas(8) uint8_t records[];
};

/* Bound the pool; start/stop only. Lines above it are not taken back by force. */
OTELI_INTERNAL_API void oteli_lines_set_limit(uint64_t bytes);

/* How many lines there can be: under the limit, or already. */
OTELI_INTERNAL_API uint64_t oteli_lines_most(void);

/* A line with room for a record of `size`, or NULL: at the limit, or no memory. Any
 * thread; allocates only when more lines are needed at once than ever before, or for a
 * record larger than a pooled line. */
struct oteli_line *oteli_line_get(struct oteli_thread *owner, size_t size);

/* A line for a thread that has none, without regard to the limit of bytes: there is one for each
 * thread at most. NULL: no memory. When the thread gives up that it has one (not: exchanges it), it
 * says so. */
struct oteli_line *oteli_line_keep(struct oteli_thread *owner);
void oteli_line_keep_no_more(void);

/* Give back a line that no other thread uses: its owner has another one by now. Any thread. */
OTELI_INTERNAL_API void oteli_line_put(struct oteli_line *line);

/* Bytes of all lines that are not in the pool (tests), and of those beyond the one of each
 * thread (statistics). */
OTELI_INTERNAL_API uint64_t oteli_lines_bytes(void);
OTELI_INTERNAL_API uint64_t oteli_lines_queued_bytes(void);

/* Free the pool: no thread may hold a line. For the end of the process, and tests. */
void oteli_lines_free(void);

/* After fork: the child forgets the parent's lines. */
void oteli_lines_forget(void);

static inline struct oteli_record *oteli_line_record(struct oteli_line *line, uint32_t at)
{
    return (struct oteli_record *)(void *)(line->records + at);
}

static inline uint8_t *oteli_record_message(struct oteli_record *record)
{
    return (uint8_t *)(record + 1);
}

#endif
