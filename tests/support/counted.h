/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/counted.h - the counters of all threads, added up: of every origin, and with the
 * spans that were refused. */
#ifndef OTEL_TESTS_SUPPORT_COUNTED_H
#define OTEL_TESTS_SUPPORT_COUNTED_H

#include "api/thread/thread_state.h"

#include <otel/exporter.h>

struct counted {
    uint64_t recorded;
    uint64_t unsampled;
    uint64_t ended;
    uint64_t dropped[OTEL_DROP_REASON_COUNT];
};

/* Since the start with this number. */
static inline struct counted counted_of(uint64_t generation)
{
    struct counted sum = {0};
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next) {
        if (oteli_load_acquire_64(&at->generation) != generation)
            continue;
        sum.recorded += oteli_count_of_origins(at->counts.recorded);
        sum.unsampled += oteli_count_of_origins(at->counts.unsampled);
        sum.ended += oteli_load_relaxed_64(&at->counts.ended);
        for (size_t i = 0; i < OTEL_DROP_REASON_COUNT; i++)
            sum.dropped[i] += oteli_load_relaxed_64(&at->counts.dropped[i]);
        const uint64_t reentrant = oteli_load_relaxed_64(&at->counts.reentrant);
        sum.recorded += reentrant;
        sum.ended += reentrant;
        sum.dropped[OTEL_DROP_REENTRANT] += reentrant;
    }
    return sum;
}

#endif
