/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/ratio_sampler.c - TraceIdRatioBased. App threads; a sampler owns its state. */
#include "sdk/sampling/ratio_sampler.h"

#include "common/base/ratio.h"
#include "common/log.h"
#include "sdk/sampling/consistent.h"
#include "sdk/sampling/sampler_description.h"

#include <stdlib.h>

struct trace_id_ratio {
    double ratio;
    struct oteli_ratio decision;
    uint32_t has_warned; /* any thread */
};

/* Other SDKs decide by another rule, so traces lose spans where they are mixed. */
void oteli_ratio_warn(uint32_t *has_warned, const char *parent_tracestate)
{
    if (!oteli_is_first(has_warned))
        return;
    const struct oteli_ot ot = oteli_ot_read(parent_tracestate);
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                     "the TraceIdRatioBased sampler decides for a span that has a parent%s; its "
                     "decisions differ between SDKs and may change: use it for roots only "
                     "(parentbased_traceidratio), or ProbabilitySampler",
                     ot.has_th || ot.has_random ? ", which was sampled by ProbabilitySampler" : "");
}

static void sample(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result)
{
    struct trace_id_ratio *ratio = (struct trace_id_ratio *)(uintptr_t)state;
    if (oteli_query_has_parent(query))
        oteli_ratio_warn(&ratio->has_warned, query->parent_tracestate);
    result->decision = oteli_ratio_samples(&ratio->decision, query->trace_id)
                           ? OTEL_SAMPLING_RECORD_AND_SAMPLE
                           : OTEL_SAMPLING_DROP;
}

static size_t describe(const void *state, char *text, size_t size)
{
    const struct trace_id_ratio *ratio = state;
    return oteli_describe_ratio("TraceIdRatioBased", ratio->ratio, text, size);
}

otel_status otel_sampler_trace_id_ratio(double ratio, otel_sampler *sampler)
{
    if (!(ratio >= 0 && ratio <= 1))
        return OTEL_ERROR_INVALID_ARGUMENT;
    struct trace_id_ratio *state = calloc(1, sizeof *state);
    if (state == NULL)
        return OTEL_ERROR_NO_MEMORY;
    state->ratio = ratio;
    state->decision = oteli_ratio_of(ratio);
    *sampler = OTEL_SAMPLER(.state = state, .sample = sample, .describe = describe, .free = free);
    return OTEL_OK;
}
