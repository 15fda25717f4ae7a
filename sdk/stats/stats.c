/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/stats/stats.c - what became of the spans. Any thread.
 *
 * Counters are read in the order in which a span passes them, backwards: what is derived
 * by subtraction is then never negative, also while everything runs. */
#include "sdk/stats/stats.h"

#include <otel/sdk.h>
#include <stdio.h>
#include <string.h>

const char *otel_drop_reason_string(otel_drop_reason reason)
{
    static const char *const names[OTEL_DROP_REASON_COUNT] = {
        [OTEL_DROP_QUEUE_FULL] = "queue_full",
        [OTEL_DROP_BYTE_LIMIT] = "byte_limit",
        [OTEL_DROP_TOO_LARGE] = "too_large",
        [OTEL_DROP_ALREADY_SHUTDOWN] = "already_shutdown",
        [OTEL_DROP_SHUTDOWN_TIMEOUT] = "shutdown_timeout",
        [OTEL_DROP_RETRY_EXHAUSTED] = "retry_exhausted",
        [OTEL_DROP_PERMANENT_ERROR] = "permanent_error",
        [OTEL_DROP_UNCONFIRMED] = "unconfirmed",
        [OTEL_DROP_EXPORT_TIMEOUT] = "export_timeout",
        [OTEL_DROP_NO_MEMORY] = "no_memory",
        [OTEL_DROP_REENTRANT] = "reentrant",
        [OTEL_DROP_HELD_LIMIT] = "held_limit",
        [OTEL_DROP_ABANDONED] = "abandoned",
        [OTEL_DROP_FORKED_CHILD] = "forked_child",
    };
    return reason >= OTEL_DROP_QUEUE_FULL && reason < OTEL_DROP_REASON_COUNT ? names[reason]
                                                                             : "unknown";
}

const char *otel_withheld_reason_string(otel_withheld_reason reason)
{
    static const char *const names[OTEL_WITHHELD_REASON_COUNT] = {
        [OTEL_WITHHELD_CANCELLED] = "cancelled", [OTEL_WITHHELD_NOT_KEPT] = "not_kept",
        [OTEL_WITHHELD_COLLECTED] = "collected", [OTEL_WITHHELD_TOO_SHORT] = "too_short",
        [OTEL_WITHHELD_LATE] = "late",           [OTEL_WITHHELD_UNMOUNTED] = "unmounted",
    };
    return reason >= OTEL_WITHHELD_CANCELLED && reason < OTEL_WITHHELD_REASON_COUNT ? names[reason]
                                                                                    : "unknown";
}

void oteli_stats_origins(struct oteli_origins *origins, const struct oteli_engine *engine)
{
    *origins = (struct oteli_origins){0};
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next) {
        if (oteli_load_acquire_64(&at->generation) != engine->sdk.generation)
            continue;
        const struct oteli_thread_counts *counts = &at->counts;
        for (unsigned i = 0; i < OTELI_ORIGINS; i++) {
            origins->recorded[i] += oteli_load_acquire_64(&counts->recorded[i]);
            origins->unsampled[i] += oteli_load_acquire_64(&counts->unsampled[i]);
            origins->record_only[i] += oteli_load_acquire_64(&counts->record_only[i]);
        }
        origins->reentrant += oteli_load_acquire_64(&counts->reentrant);
    }
}

static void add_threads(otel_stats *stats, const struct oteli_engine *engine)
{
    const uint64_t generation = engine->sdk.generation;
    struct oteli_thread *const first = oteli_threads();
    for (struct oteli_thread *at = first; at != NULL; at = at->next)
        if (oteli_load_acquire_64(&at->generation) == generation) {
            for (unsigned i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
                stats->withheld[i] += oteli_load_acquire_64(&at->counts.withheld[i]);
            for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
                stats->dropped[i] += oteli_load_acquire_64(&at->counts.dropped[i]);
        }
    for (struct oteli_thread *at = first; at != NULL; at = at->next)
        if (oteli_load_acquire_64(&at->generation) == generation)
            stats->dropped[OTEL_DROP_REENTRANT] += oteli_load_acquire_64(&at->counts.reentrant);
    for (struct oteli_thread *at = first; at != NULL; at = at->next)
        if (oteli_load_acquire_64(&at->generation) == generation)
            stats->ended += oteli_load_acquire_64(&at->counts.ended) +
                            oteli_load_acquire_64(&at->counts.reentrant);
    for (struct oteli_thread *at = first; at != NULL; at = at->next)
        if (oteli_load_acquire_64(&at->generation) == generation)
            stats->unsampled += oteli_count_of_origins(at->counts.unsampled);
    stats->started = stats->unsampled;
    for (struct oteli_thread *at = first; at != NULL; at = at->next)
        if (oteli_load_acquire_64(&at->generation) == generation)
            stats->started += oteli_count_of_origins(at->counts.recorded) +
                              oteli_load_acquire_64(&at->counts.reentrant);
}

void oteli_stats_fill(otel_stats *stats, const struct oteli_engine *engine, size_t index)
{
    const struct oteli_pipeline *pipeline = &engine->pipelines[index];
    const bool is_done = oteli_load_acquire_32(&engine->done) != 0;
    stats->batches = oteli_load_acquire_64(&pipeline->batches);
    stats->delivered = oteli_load_acquire_64(&pipeline->delivered);
    stats->rejected = oteli_load_acquire_64(&pipeline->rejected);
    stats->spooled = oteli_load_acquire_64(&pipeline->spooled);
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        stats->dropped[i] = oteli_load_acquire_64(&pipeline->dropped[i]);
    if (is_done) /* spans that were ended while the SDK went away */
        stats->dropped[OTEL_DROP_ALREADY_SHUTDOWN] += oteli_harvest_leftover(engine);
    add_threads(stats, engine);

    uint64_t gone = stats->delivered + stats->rejected + stats->spooled;
    for (unsigned i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        gone += stats->withheld[i];
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        gone += stats->dropped[i];
    /* Threads count with plain stores: where the processor does not keep them in order, a
     * counter may be seen late, but never a span that was not. */
    if (stats->ended < gone)
        stats->ended = gone;
    stats->queued = stats->ended - gone;
    const uint64_t over = stats->ended + stats->unsampled;
    if (stats->started < over)
        stats->started = over;
    stats->open = stats->started - over;
    stats->queued_bytes = oteli_lines_queued_bytes();
    if (oteli_load_acquire_32(&engine->hangs) != 0) { /* an exporter has them, and will not say */
        stats->dropped[OTEL_DROP_SHUTDOWN_TIMEOUT] += stats->queued;
        stats->queued = 0;
    }
}

/* Spans that ended after the shutdown began are no loss of a flush or of the shutdown: neither
 * promises to deliver them. */
static uint64_t sum_of_lost(const uint64_t dropped[OTEL_DROP_REASON_COUNT])
{
    uint64_t lost = 0;
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        if (i != OTEL_DROP_ALREADY_SHUTDOWN)
            lost += oteli_load_acquire_64(&dropped[i]);
    return lost;
}

uint64_t oteli_stats_lost(const struct oteli_engine *engine)
{
    uint64_t lost = 0;
    if (engine->pipeline_count == 0)
        return 0; /* what no exporter wants is not lost */
    for (size_t i = 0; i < engine->pipeline_count; i++) {
        const struct oteli_pipeline *pipeline = &engine->pipelines[i];
        lost += oteli_load_acquire_64(&pipeline->rejected) + sum_of_lost(pipeline->dropped);
    }
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next) {
        if (oteli_load_acquire_64(&at->generation) != engine->sdk.generation)
            continue;
        lost += oteli_load_acquire_64(&at->counts.reentrant) + sum_of_lost(at->counts.dropped);
    }
    return lost;
}

otel_status otel_stats_read(size_t index, otel_stats *stats)
{
    if (stats == NULL || stats->size < sizeof stats->size)
        return OTEL_ERROR_INVALID_ARGUMENT;
    otel_stats whole = {.size = stats->size};
    oteli_lifecycle_lock();
    struct oteli_engine *engine = oteli_lifecycle_engine();
    const bool is_known = engine != NULL && index < engine->pipeline_count;
    if (is_known)
        oteli_stats_fill(&whole, engine, index);
    const bool is_inherited = oteli_lifecycle_inherits(index);
    oteli_lifecycle_unlock();
    memcpy(stats, &whole, whole.size < sizeof whole ? whole.size : sizeof whole);
    return is_known || is_inherited ? OTEL_OK : OTEL_ERROR_INVALID_ARGUMENT;
}

/* 1234567 as "1,234,567". */
static const char *with_commas(uint64_t number, char text[32])
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    size_t at = 0;
    for (int i = 0; i < length; i++) {
        if (i != 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
    return text;
}

struct writer {
    char *text;
    size_t size;
    size_t length;
};

static void put(struct writer *to, const char *what)
{
    for (; *what != '\0'; what++, to->length++)
        if (to->length + 1 < to->size)
            to->text[to->length] = *what;
    if (to->size != 0)
        to->text[to->length < to->size ? to->length : to->size - 1] = '\0';
}

static void put_count(struct writer *to, const char *label, uint64_t count)
{
    char number[32];
    put(to, label);
    put(to, " ");
    put(to, with_commas(count, number));
}

/* A sum and its parts, for example "dropped 3 (unconfirmed 1, no_memory 2)". */
static void put_reasons(struct writer *to, const char *label, const uint64_t *counts,
                        unsigned reasons, const char *(*name)(unsigned reason))
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < reasons; i++)
        sum += counts[i];
    put_count(to, label, sum);
    const char *separator = " (";
    for (unsigned i = 0; i < reasons; i++) {
        if (counts[i] == 0)
            continue;
        put(to, separator);
        put_count(to, name(i), counts[i]);
        separator = ", ";
    }
    if (sum != 0)
        put(to, ")");
}

static const char *name_of_withheld(unsigned reason)
{
    return otel_withheld_reason_string((otel_withheld_reason)reason);
}

static const char *name_of_dropped(unsigned reason)
{
    return otel_drop_reason_string((otel_drop_reason)reason);
}

size_t otel_stats_describe(const otel_stats *stats, char *text, size_t size)
{
    struct writer to = {text, size, 0};
    otel_stats known = {0};
    memcpy(&known, stats, stats->size < sizeof known ? stats->size : sizeof known);
    uint64_t withheld = 0;
    for (unsigned i = 0; i < OTEL_WITHHELD_REASON_COUNT; i++)
        withheld += known.withheld[i];
    put_count(&to, "delivered", known.delivered);
    if (known.rejected != 0)
        put_count(&to, ", rejected", known.rejected);
    if (known.spooled != 0)
        put_count(&to, ", spooled", known.spooled);
    if (known.queued != 0)
        put_count(&to, ", queued", known.queued);
    if (known.open != 0)
        put_count(&to, ", open", known.open);
    if (known.unsampled != 0)
        put_count(&to, ", unsampled", known.unsampled);
    if (withheld != 0)
        put_reasons(&to, ", withheld", known.withheld, OTEL_WITHHELD_REASON_COUNT,
                    name_of_withheld);
    put_reasons(&to, ", dropped", known.dropped, OTEL_DROP_REASON_COUNT, name_of_dropped);
    return to.length;
}
