/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/stats.h - the counters of threads and pipelines, added up. Any thread, under the lifecycle
 * lock, which keeps the engine. */
#ifndef OTELI_STATS_H
#define OTELI_STATS_H

#include "sdk/engine.h"

/* The statistics of a pipeline that there is. */
void oteli_stats_fill(otel_stats *stats, const struct oteli_engine *engine, size_t index);

/* Spans that were started, by enum oteli_origin and in all; those that are neither roots nor
 * under a remote parent have a local one. */
struct oteli_origins {
    uint64_t recorded[2];
    uint64_t unsampled[2];
    uint64_t record_only[3]; /* of the unsampled, each by its origin */
    uint64_t all_recorded;
    uint64_t all_unsampled;
    uint64_t reentrant; /* refused before anything was known of them; in neither sum */
};
void oteli_stats_origins(struct oteli_origins *origins, const struct oteli_engine *engine);

#endif
