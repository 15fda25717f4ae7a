/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/spool/spool_count.c - see spool_count.h. Owns the sums. */
#include "exporters/otlp/spool/spool_count.h"
#include "common/base/spin_lock.h"
#include "common/os/fork.h"

#include <string.h>

static uint32_t lock; /* of the sums */
static otel_spool_stats sums;
static uint64_t left; /* of those that wait: those of closed spools */
static uint64_t left_bytes;

/* In a forked child: the sums were its parent's, and so was a thread that had the lock. */
static void forget(void)
{
    sums = (otel_spool_stats){0};
    left = left_bytes = 0;
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

static void add(enum oteli_spool_way way, uint64_t spans)
{
    *(uint64_t *)(void *)((char *)&sums + way) += spans;
}

void oteli_spool_comes(enum oteli_spool_way way, uint64_t spans, uint64_t bytes)
{
    begin();
    add(way, spans);
    sums.waiting += spans;
    sums.waiting_bytes += bytes;
    end();
}

void oteli_spool_goes(enum oteli_spool_way way, uint64_t spans, uint64_t bytes, uint64_t rejected)
{
    begin();
    add(way, spans - rejected);
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
    left += spans;
    left_bytes += bytes;
    end();
}

void oteli_spool_count_opened(void)
{
    begin();
    sums.taken += left;
    sums.waiting -= left;
    sums.waiting_bytes -= left_bytes;
    left = left_bytes = 0;
    end();
}

otel_status otel_spool_stats_read(otel_spool_stats *stats)
{
    if (stats == NULL || stats->size < sizeof stats->size)
        return OTEL_ERROR_INVALID_ARGUMENT;
    begin();
    otel_spool_stats whole = sums;
    end();
    whole.size = stats->size;
    memcpy(stats, &whole, whole.size < sizeof whole ? whole.size : sizeof whole);
    return OTEL_OK;
}
