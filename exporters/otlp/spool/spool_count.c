/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_count.c - see spool_count.h. Owns the sums. */
#include "exporters/otlp/spool/spool_count.h"
#include "common/base/spin_lock.h"
#include "common/os/fork.h"

#include <otel/spool.h>
#include <string.h>

static uint32_t lock; /* of the sums */
static struct {
    uint64_t ways[OTELI_SPOOL_WAYS];
    uint64_t rejected;
    uint64_t waiting;
    uint64_t waiting_bytes;
    uint64_t torn_files;
    uint64_t foreign_files;
    uint64_t failures;
    uint64_t left; /* of those that wait: those of closed spools */
    uint64_t left_bytes;
} sums;

/* In a forked child: the sums were its parent's, and so was a thread that had the lock. */
static void forget(void)
{
    memset(&sums, 0, sizeof sums);
    lock = 0;
}

static void begin(void)
{
    oteli_fork_add(forget);
    oteli_spin_lock(&lock);
}

static void end(void)
{
    oteli_spin_unlock(&lock);
}

void oteli_spool_comes(enum oteli_spool_way way, uint64_t spans, uint64_t bytes)
{
    begin();
    sums.ways[way] += spans;
    sums.waiting += spans;
    sums.waiting_bytes += bytes;
    end();
}

void oteli_spool_goes(enum oteli_spool_way way, uint64_t spans, uint64_t bytes, uint64_t rejected)
{
    begin();
    sums.ways[way] += spans - rejected;
    sums.rejected += rejected;
    sums.waiting -= spans;
    sums.waiting_bytes -= bytes;
    sums.torn_files += way == OTELI_SPOOL_WAS_TORN;
    end();
}

void oteli_spool_count_foreign(int64_t more)
{
    begin();
    sums.foreign_files += (uint64_t)more;
    end();
}

void oteli_spool_count_failure(uint64_t spans)
{
    begin();
    sums.failures += spans;
    end();
}

void oteli_spool_count_left(uint64_t spans, uint64_t bytes)
{
    begin();
    sums.left += spans;
    sums.left_bytes += bytes;
    end();
}

void oteli_spool_count_opened(void)
{
    begin();
    sums.ways[OTELI_SPOOL_TAKEN] += sums.left;
    sums.waiting -= sums.left;
    sums.waiting_bytes -= sums.left_bytes;
    sums.left = 0;
    sums.left_bytes = 0;
    end();
}

otel_status otel_spool_stats_read(otel_spool_stats *stats)
{
    if (stats == NULL || stats->size < sizeof stats->size)
        return OTEL_ERROR_INVALID_ARGUMENT;
    begin();
    const otel_spool_stats whole = {.size = stats->size,
                                    .stored = sums.ways[OTELI_SPOOL_STORED],
                                    .found = sums.ways[OTELI_SPOOL_FOUND],
                                    .sent = sums.ways[OTELI_SPOOL_SENT],
                                    .rejected = sums.rejected,
                                    .refused = sums.ways[OTELI_SPOOL_REFUSED],
                                    .expired = sums.ways[OTELI_SPOOL_EXPIRED],
                                    .evicted = sums.ways[OTELI_SPOOL_EVICTED],
                                    .torn = sums.ways[OTELI_SPOOL_WAS_TORN],
                                    .taken = sums.ways[OTELI_SPOOL_TAKEN],
                                    .waiting = sums.waiting,
                                    .waiting_bytes = sums.waiting_bytes,
                                    .torn_files = sums.torn_files,
                                    .foreign_files = sums.foreign_files,
                                    .failures = sums.failures};
    end();
    memcpy(stats, &whole, whole.size < sizeof whole ? whole.size : sizeof whole);
    return OTEL_OK;
}
