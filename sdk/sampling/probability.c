/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/probability.c - ProbabilitySampler. App threads; a sampler owns its state. */
#include "common/log.h"
#include "sdk/sampling/consistent.h"
#include "sdk/sampling/sampler_description.h"

#include <stdlib.h>

struct probability {
    double ratio;
    int64_t threshold;
    uint32_t has_warned; /* any thread */
};

static bool presumes(const otel_sampling_query *query, const struct oteli_ot *ot)
{
    return !ot->has_random && !query->trace_id_is_random && oteli_query_has_parent(query);
}

static void sample(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result)
{
    struct probability *probability = (struct probability *)(uintptr_t)state;
    const struct oteli_ot ot = oteli_ot_read(query->parent_tracestate);
    const otel_sampling_intent intent = {.threshold = probability->threshold,
                                         .threshold_is_reliable = true};
    if (presumes(query, &ot) && oteli_is_first(&probability->has_warned))
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "the ProbabilitySampler presumes that trace ids are random, but the "
                         "caller did not set the random flag: it may not know W3C Trace Context "
                         "Level 2");
    oteli_consistent_decide(query, &ot, &intent, result);
}

static size_t describe(const void *state, char *text, size_t size)
{
    const struct probability *probability = state;
    return oteli_describe_ratio("ProbabilitySampler", probability->ratio, text, size);
}

otel_status otel_sampler_probability(double ratio, otel_sampler *sampler)
{
    if (!oteli_probability_is_valid(ratio))
        return OTEL_ERROR_INVALID_ARGUMENT;
    struct probability *state = calloc(1, sizeof *state);
    if (state == NULL)
        return OTEL_ERROR_NO_MEMORY;
    state->ratio = ratio;
    state->threshold = ratio > 0 ? oteli_threshold_of(ratio) : OTEL_NEVER_SAMPLE;
    *sampler = OTEL_SAMPLER(.state = state, .sample = sample, .describe = describe, .free = free);
    return OTEL_OK;
}
