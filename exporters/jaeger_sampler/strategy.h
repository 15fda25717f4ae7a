/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/jaeger_sampler/strategy.h - what a Jaeger server answers to "which traces shall I
 * sample?".
 *
 *     {"strategyType": "PROBABILISTIC", "probabilisticSampling": {"samplingRate": 0.5}}
 *     {"strategyType": "RATE_LIMITING", "rateLimitingSampling": {"maxTracesPerSecond": 5}}
 *     {"operationSampling": {"defaultSamplingProbability": 0.1,
 *                            "defaultLowerBoundTracesPerSecond": 0.02,
 *                            "perOperationStrategies": [{"operation": "GET /",
 *                                 "probabilisticSampling": {"samplingRate": 1}}]}}
 *
 * Operations are span names. Each that is named has a lower bound of its own: so many traces a
 * second are sampled even if chance is against them. Those that are not named share one.
 *
 * Threads:  one thread at a time for a strategy, for its rates count.
 * Source:   jaeger-idl, proto/api_v2/sampling.proto; Jaeger, "Remote Sampling". */
#ifndef OTELI_STRATEGY_H
#define OTELI_STRATEGY_H

#include "common/base/ratio.h"

#include <otel/exporter.h>

/* So many traces a second, and as many at once after a pause: a bucket that fills steadily. */
struct oteli_rate {
    double per_second;
    double saved; /* traces that may be sampled now */
    uint64_t looked_ns;
};

struct oteli_operation {
    otel_slice name; /* owned */
    double probability;
    struct oteli_ratio ratio;
    struct oteli_rate lower_bound;
};

enum oteli_strategy_kind { OTELI_STRATEGY_RATIO, OTELI_STRATEGY_RATE, OTELI_STRATEGY_OPERATIONS };

struct oteli_strategy {
    enum oteli_strategy_kind kind;
    struct oteli_operation others; /* and all, where there is one ratio */
    struct oteli_rate rate;
    struct oteli_operation *operations; /* sorted by name */
    size_t operation_count;
};

/* Read an answer. NULL: it is no strategy, or there is no memory. */
struct oteli_strategy *oteli_strategy_parse(const char *text, size_t length);
void oteli_strategy_free(struct oteli_strategy *strategy);

/* Whether to sample a trace that begins with such a span now. */
bool oteli_strategy_samples(struct oteli_strategy *strategy, otel_slice name,
                            const uint8_t trace_id[16], uint64_t now_ns);

/* Whether one more is within the rate, and then count it. */
bool oteli_rate_take(struct oteli_rate *rate, uint64_t now_ns);

#endif
