/* SPDX-License-Identifier: Apache-2.0 */
/* otel/spool.h - what became of the spans that OTLP exporters have put to disk, because their
 * receiver was away (otel_otlp_options.spool_directory, OTEL_C_SPOOL_DIR).
 *
 * In library `otel-otlp`. docs/SPOOL.md says how to read the numbers.
 *
 * Threads:  any thread.
 * Signals:  never in a handler: it takes a lock.
 * Errors:   otel_status.
 * Source:   otel-c's own. */
#ifndef OTEL_SPOOL_H
#define OTEL_SPOOL_H

#include <otel/base.h>

OTEL_BEGIN_DECLS

/* Spans, of all spools of this process together, since it began; a forked child begins anew. At
 * every moment
 *     stored + found = sent + rejected + refused + expired + evicted + torn + taken + waiting
 * A span that was sent and whose answer got lost is sent again, so receivers may have it twice;
 * it counts once. */
typedef struct otel_spool_stats {
    size_t size;       /* sizeof(otel_spool_stats), set by the caller */
    uint64_t stored;   /* put to disk by this process */
    uint64_t found;    /* files of earlier programs, or of others that use the directory */
    uint64_t sent;     /* delivered by this process, all but … */
    uint64_t rejected; /* … those that the receiver refused out of a request that it took */
    uint64_t refused;  /* the receiver refused the whole request, or it was too large for it */
    uint64_t expired;  /* were too old */
    uint64_t evicted;  /* the oldest, for which there was no room any more */
    uint64_t torn;     /* by their files' names: what was in them cannot be read any more */
    uint64_t taken;   /* files that are gone, or another program's: who has, or will, see to them */
    uint64_t waiting; /* there now, as far as this process knows */

    uint64_t waiting_bytes; /* of disk, for those files */
    uint64_t torn_files;    /* files that could not be read */
    uint64_t foreign_files; /* entries of the directories that are not ours, and stay as they are */
    uint64_t failures;      /* to put spans to disk; they count as dropped in otel_stats */
} otel_spool_stats;

/* Read what became of the spans. OTEL_ERROR_INVALID_ARGUMENT: `stats` is NULL, or has no size. */
OTEL_API otel_status otel_spool_stats_read(otel_spool_stats *stats);

OTEL_END_DECLS
#endif
