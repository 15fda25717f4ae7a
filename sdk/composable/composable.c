/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/composable.c - ComposableAlwaysOn, ComposableAlwaysOff, ComposableProbability and
 * ComposableParentThreshold. App threads; each owns what it was given. */
#include "sdk/sampling/consistent.h"
#include "sdk/sampling/owned_sampler.h"
#include "sdk/sampling/sampler_description.h"

#include <stdio.h>

/* One threshold for all spans: ComposableAlwaysOn, ComposableAlwaysOff, ComposableProbability. */
struct threshold {
    int64_t threshold;
    const char *name; /* of the first two */
    double ratio;     /* of the last */
};

static void intend_threshold(const void *state, const otel_sampling_query *query,
                             otel_sampling_intent *intent)
{
    const struct threshold *fixed = state;
    (void)query;
    intent->threshold = fixed->threshold;
    intent->threshold_is_reliable = fixed->threshold != OTEL_NEVER_SAMPLE;
}

static size_t describe_threshold(const void *state, char *text, size_t size)
{
    const struct threshold *fixed = state;
    if (fixed->name != NULL)
        return (size_t)snprintf(text, size, "%s", fixed->name);
    return oteli_describe_ratio("ComposableProbability", fixed->ratio, text, size);
}

otel_composable otel_composable_always_on(void)
{
    static const struct threshold on = {.threshold = 0, .name = "ComposableAlwaysOn"};
    return OTEL_COMPOSABLE(.state = (void *)(uintptr_t)&on, .intend = intend_threshold,
                           .describe = describe_threshold);
}

otel_composable otel_composable_always_off(void)
{
    static const struct threshold off = {.threshold = OTEL_NEVER_SAMPLE,
                                         .name = "ComposableAlwaysOff"};
    return OTEL_COMPOSABLE(.state = (void *)(uintptr_t)&off, .intend = intend_threshold,
                           .describe = describe_threshold);
}

otel_status otel_composable_probability(double ratio, otel_composable *composable)
{
    if (!oteli_probability_is_valid(ratio))
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (ratio == 0) {
        *composable = otel_composable_always_off();
        return OTEL_OK;
    }
    struct threshold *state = malloc(sizeof *state);
    if (state == NULL)
        return OTEL_ERROR_NO_MEMORY;
    *state = (struct threshold){.threshold = oteli_threshold_of(ratio), .ratio = ratio};
    *composable = OTEL_COMPOSABLE(.state = state, .intend = intend_threshold,
                                  .describe = describe_threshold, .free = free);
    return OTEL_OK;
}

/* What the parent was sampled with. Its th is believed only where it agrees with its flag. */
static void intend_like_parent(const otel_sampling_query *query, otel_sampling_intent *intent)
{
    const bool is_sampled = (query->parent->flags & OTEL_TRACE_FLAG_SAMPLED) != 0;
    const struct oteli_ot ot = oteli_ot_read(query->parent_tracestate);
    const bool is_consistent =
        ot.threshold != OTEL_NEVER_SAMPLE &&
        (oteli_randomness(query, &ot) >= (uint64_t)ot.threshold) == is_sampled;
    if (is_consistent)
        intent->threshold = ot.threshold;
    else
        intent->threshold = is_sampled ? 0 : OTEL_NEVER_SAMPLE;
    intent->threshold_is_reliable = is_consistent;
}

static void intend_parent_threshold(const void *state, const otel_sampling_query *query,
                                    otel_sampling_intent *intent)
{
    const otel_composable *root = state;
    if (oteli_query_has_decision(query))
        intend_like_parent(query, intent);
    else
        root->intend(root->state, query, intent);
}

static size_t describe_parent_threshold(const void *state, char *text, size_t size)
{
    struct oteli_text_builder words = {text, size, 0};
    oteli_build(&words, "ComposableParentThreshold{root:");
    oteli_describe_composable(&words, state);
    oteli_build(&words, "}");
    return words.length;
}

otel_status otel_composable_parent_threshold(otel_composable root, otel_composable *composable)
{
    otel_composable *state;
    const otel_status status = oteli_composable_keep(root, &state);
    if (status == OTEL_OK)
        *composable = OTEL_COMPOSABLE(.state = state, .intend = intend_parent_threshold,
                                      .describe = describe_parent_threshold,
                                      .free = oteli_composable_free_kept);
    return status;
}
