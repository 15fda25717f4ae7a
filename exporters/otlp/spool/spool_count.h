/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_count.h - the sums behind otel_spool_stats_read, of all spools of the
 * process.
 *
 * Threads:  any thread; a lock is held for a few additions, so that the sums close at every
 *           moment. Fork: a child begins at zero. */
#ifndef OTELI_SPOOL_COUNT_H
#define OTELI_SPOOL_COUNT_H

#include <otel/spool.h>
#include <stddef.h>
#include <stdint.h>

/* How spans come into a spool, and how they leave it: where each is counted. */
enum oteli_spool_way {
    OTELI_SPOOL_STORED = offsetof(otel_spool_stats, stored),
    OTELI_SPOOL_FOUND = offsetof(otel_spool_stats, found),
    OTELI_SPOOL_SENT = offsetof(otel_spool_stats, sent),
    OTELI_SPOOL_REFUSED = offsetof(otel_spool_stats, refused),
    OTELI_SPOOL_EXPIRED = offsetof(otel_spool_stats, expired),
    OTELI_SPOOL_EVICTED = offsetof(otel_spool_stats, evicted),
    OTELI_SPOOL_WAS_TORN = offsetof(otel_spool_stats, torn),
    OTELI_SPOOL_TAKEN = offsetof(otel_spool_stats, taken)
};

/* A file with so many spans, which takes so many bytes, waits from now on. */
void oteli_spool_comes(enum oteli_spool_way way, uint64_t spans, uint64_t bytes);

/* It does not wait any more. Of those that were sent, `rejected` were rejected. */
void oteli_spool_goes(enum oteli_spool_way way, uint64_t spans, uint64_t bytes, uint64_t rejected);

/* There is one foreign file more, or (-1) less. */
void oteli_spool_count_foreign(int64_t more);

/* A request could not be put to disk. */
void oteli_spool_count_failure(uint64_t spans);

/* A spool was closed with these on disk. They wait, until one is opened that may find them. */
void oteli_spool_count_left(uint64_t spans, uint64_t bytes);
void oteli_spool_count_opened(void);

#endif
