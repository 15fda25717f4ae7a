/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/always.c - AlwaysOn, AlwaysOff, and AlwaysRecord around another sampler. App
 * threads; AlwaysRecord owns the sampler that it was given. */
#include "sdk/sampling/owned_sampler.h"
#include "sdk/sampling/sampler_description.h"

#include <stdio.h>

/* A sampler that has one decision for all spans; its state is constant. */
struct constant {
    otel_sampling_decision decision;
    const char *name;
};

static void sample_constant(const void *state, const otel_sampling_query *query,
                            otel_sampling_result *result)
{
    const struct constant *constant = state;
    (void)query;
    result->decision = constant->decision;
}

static size_t describe_constant(const void *state, char *text, size_t size)
{
    const struct constant *constant = state;
    return (size_t)snprintf(text, size, "%s", constant->name);
}

otel_sampler otel_sampler_always_on(void)
{
    static const struct constant on = {OTEL_SAMPLING_RECORD_AND_SAMPLE, "AlwaysOnSampler"};
    return OTEL_SAMPLER(.state = (void *)(uintptr_t)&on, .sample = sample_constant,
                        .describe = describe_constant);
}

otel_sampler otel_sampler_always_off(void)
{
    static const struct constant off = {OTEL_SAMPLING_DROP, "AlwaysOffSampler"};
    return OTEL_SAMPLER(.state = (void *)(uintptr_t)&off, .sample = sample_constant,
                        .describe = describe_constant);
}

static void sample_record(const void *state, const otel_sampling_query *query,
                          otel_sampling_result *result)
{
    const otel_sampler *root = state;
    root->sample(root->state, query, result);
    if (result->decision == OTEL_SAMPLING_DROP)
        result->decision = OTEL_SAMPLING_RECORD_ONLY;
}

static size_t describe_record(const void *state, char *text, size_t size)
{
    struct oteli_text_builder words = {text, size, 0};
    oteli_build(&words, "AlwaysRecord{");
    oteli_describe_sampler(&words, state);
    oteli_build(&words, "}");
    return words.length;
}

otel_status otel_sampler_always_record(otel_sampler root, otel_sampler *sampler)
{
    otel_sampler *state;
    const otel_status status = oteli_sampler_keep(root, &state);
    if (status == OTEL_OK)
        *sampler = OTEL_SAMPLER(.state = state, .sample = sample_record,
                                .describe = describe_record, .free = oteli_sampler_free_kept);
    return status;
}
