/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/stats/stats.h - the counters of threads and pipelines, added up. Any thread, under the
 * lock of the current engine, which keeps it. */
#ifndef OTELI_STATS_H
#define OTELI_STATS_H

#include "sdk/engine/engine.h"

/* The statistics of a pipeline that there is. */
void oteli_stats_fill(otel_stats *stats, const struct oteli_engine *engine, size_t index);

/* Spans that were dropped or rejected so far, of all pipelines together, but for those that ended
 * after the shutdown began. Needs no lock where the engine is in use. */
uint64_t oteli_stats_lost(const struct oteli_engine *engine);

/* Spans that were started, by enum oteli_origin. */
struct oteli_origins {
    uint64_t recorded[OTELI_ORIGINS];
    uint64_t unsampled[OTELI_ORIGINS];
    uint64_t record_only[OTELI_ORIGINS]; /* of the unsampled */
    uint64_t reentrant; /* refused before anything was known of them; in none of these */
};
void oteli_stats_origins(struct oteli_origins *origins, const struct oteli_engine *engine);

#endif
