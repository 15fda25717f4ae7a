/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/composite_sampler.c - CompositeSampler: asks a composable sampler for its
 * threshold and decides. App threads; owns the composable sampler. */
#include "sdk/sampling/consistent.h"
#include "sdk/sampling/owned_sampler.h"
#include "sdk/sampling/sampler_description.h"

static void sample(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result)
{
    const otel_composable *root = state;
    const struct oteli_ot ot = oteli_ot_read(query->parent_tracestate);
    otel_sampling_intent intent = {.threshold = OTEL_NEVER_SAMPLE, .room = result->room};
    root->intend(root->state, query, &intent);
    oteli_consistent_decide(query, &ot, &intent, result);
}

static size_t describe(const void *state, char *text, size_t size)
{
    struct oteli_text_builder words = {text, size, 0};
    oteli_build(&words, "CompositeSampler{");
    oteli_describe_composable(&words, state);
    oteli_build(&words, "}");
    return words.length;
}

otel_status otel_sampler_composite(otel_composable root, otel_sampler *sampler)
{
    otel_composable *state;
    const otel_status status = oteli_composable_keep(root, &state);
    if (status == OTEL_OK)
        *sampler = OTEL_SAMPLER(.state = state, .sample = sample, .describe = describe,
                                .free = oteli_composable_free_kept);
    return status;
}
