/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/stats/stats.c - what became of the spans. Any thread.
 *
 * Counters are read in the order in which a span passes them, backwards: what is derived
 * by subtraction is then never negative, also while everything runs. */
#include "sdk/stats/stats.h"

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
        stats->dropped[OTEL_DROP_ALREADY_SHUTDOWN] += oteli_drain_leftover(engine);
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
