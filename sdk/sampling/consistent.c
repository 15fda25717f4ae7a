/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/consistent.c - the contracts are in consistent.h. App threads; owns nothing. */
#include "sdk/sampling/consistent.h"
#include "api/context/handle.h"

#include "common/base/atomic.h"
#include "common/base/random.h"
#include "common/log.h"

#include <stdio.h>

bool oteli_query_has_parent(const otel_sampling_query *query)
{
    return query->parent != NULL && otel_span_context_is_valid(query->parent);
}

bool oteli_query_has_decision(const otel_sampling_query *query)
{
    return oteli_query_has_parent(query) &&
           (query->parent->reserved[0] & OTELI_KEEPS_DEFERRED) == 0;
}

uint64_t oteli_randomness(const otel_sampling_query *query, const struct oteli_ot *ot)
{
    if (ot->has_random)
        return ot->random;
    uint64_t low = 0;
    for (unsigned i = 9; i < 16; i++)
        low = low << 8 | query->trace_id[i];
    return low;
}

/* A threshold that says nothing about probability is compared with chance of its own, lest it
 * favour those traces that others favour. One sequence for the process, without a lock: each
 * decision takes the next number of it. */
static uint64_t fresh_randomness(void)
{
    static uint64_t process_step; /* odd; 0: the kernel has not been asked yet */
    static uint64_t decisions;
    uint64_t step = oteli_load_relaxed_64(&process_step);
    if (OTELI_UNLIKELY(step == 0)) {
        struct oteli_random seed = {0, 0};
        (void)oteli_random_seed(&seed);
        oteli_cas_full_64(&process_step, 0, seed.step);
        step = oteli_load_relaxed_64(&process_step);
    }
    struct oteli_random random = {oteli_add_full_64(&decisions, 1) * step, step};
    return oteli_random_next(&random) >> 8;
}

static bool is_sampled(const otel_sampling_query *query, const struct oteli_ot *ot,
                       const otel_sampling_intent *intent)
{
    if (intent->threshold < 0 || intent->threshold >= OTELI_THRESHOLD_END)
        return false;
    if (intent->threshold == 0)
        return true;
    const uint64_t random =
        intent->threshold_is_reliable ? oteli_randomness(query, ot) : fresh_randomness();
    return random >= (uint64_t)intent->threshold;
}

static void set_tracestate(const char *others, const struct oteli_ot *ot, int64_t threshold,
                           otel_sampling_result *result)
{
    result->has_tracestate = true;
    if (!oteli_ot_write(others, ot, threshold, result->tracestate))
        OTELI_LOG(OTEL_LOG_WARN, "the tracestate's member ot has no room for th: how likely it was "
                                 "that this trace is sampled is not passed on");
}

void oteli_consistent_decide(const otel_sampling_query *query, const struct oteli_ot *ot,
                             const otel_sampling_intent *intent, otel_sampling_result *result)
{
    const bool sampled = is_sampled(query, ot, intent);
    result->decision = sampled ? OTEL_SAMPLING_RECORD_AND_SAMPLE : OTEL_SAMPLING_DROP;
    result->attributes = sampled ? intent->attributes : NULL;
    result->attribute_count = sampled ? intent->attribute_count : 0;
    const int64_t threshold =
        sampled && intent->threshold_is_reliable ? intent->threshold : OTEL_NEVER_SAMPLE;
    const char *others = query->parent_tracestate != NULL ? query->parent_tracestate : "";
    if (intent->edit_tracestate != NULL) {
        char edited[OTEL_TRACESTATE_SIZE];
        snprintf(edited, sizeof edited, "%s", others);
        intent->edit_tracestate(intent->edit_state, query, result->decision, edited);
        edited[sizeof edited - 1] = '\0';
        set_tracestate(edited, ot, threshold, result);
        return;
    }
    const bool is_as_it_was =
        threshold == OTEL_NEVER_SAMPLE ? !ot->has_th : ot->threshold == threshold;
    if (!is_as_it_was)
        set_tracestate(others, ot, threshold, result);
}

bool oteli_is_first(uint32_t *flag)
{
    return oteli_load_relaxed_32(flag) == 0 && oteli_exchange_full_32(flag, 1) == 0;
}
