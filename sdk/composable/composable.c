/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/composable.c - ComposableAlwaysOn, ComposableAlwaysOff, ComposableProbability and
 * ComposableParentThreshold. App threads; each owns what it was given. */
#include "sdk/composable/consistent.h"
#include "sdk/composable/sampler_description.h"
#include "sdk/sampling/owned_sampler.h"

static void intend_on(const void *state, const otel_sampling_query *query,
                      otel_sampling_intent *intent)
{
    (void)state;
    (void)query;
    intent->threshold = 0;
    intent->threshold_is_reliable = true;
}

static void intend_off(const void *state, const otel_sampling_query *query,
                       otel_sampling_intent *intent)
{
    (void)state;
    (void)query;
    intent->threshold = OTEL_NEVER_SAMPLE;
    intent->threshold_is_reliable = false;
}

static size_t describe_on(const void *state, char *text, size_t size)
{
    (void)state;
    struct oteli_words words = oteli_words_begin(text, size);
    oteli_words_put(&words, "ComposableAlwaysOn");
    return words.length;
}

static size_t describe_off(const void *state, char *text, size_t size)
{
    (void)state;
    struct oteli_words words = oteli_words_begin(text, size);
    oteli_words_put(&words, "ComposableAlwaysOff");
    return words.length;
}

otel_composable otel_composable_always_on(void)
{
    return OTEL_COMPOSABLE(.intend = intend_on, .describe = describe_on);
}

otel_composable otel_composable_always_off(void)
{
    return OTEL_COMPOSABLE(.intend = intend_off, .describe = describe_off);
}

struct probability {
    double ratio;
    int64_t threshold;
};

static void intend_probability(const void *state, const otel_sampling_query *query,
                               otel_sampling_intent *intent)
{
    (void)query;
    const struct probability *probability = state;
    intent->threshold = probability->threshold;
    intent->threshold_is_reliable = true;
}

static size_t describe_probability(const void *state, char *text, size_t size)
{
    const struct probability *probability = state;
    struct oteli_words words = oteli_words_begin(text, size);
    oteli_words_put(&words, "ComposableProbability{");
    oteli_words_put_ratio(&words, probability->ratio);
    oteli_words_put(&words, "}");
    return words.length;
}

otel_status otel_composable_probability(double ratio, otel_composable *composable)
{
    if (!oteli_probability_is_valid(ratio))
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (ratio == 0) {
        *composable = otel_composable_always_off();
        return OTEL_OK;
    }
    struct probability *state = malloc(sizeof *state);
    if (state == NULL)
        return OTEL_ERROR_NO_MEMORY;
    *state = (struct probability){.ratio = ratio, .threshold = oteli_threshold_of(ratio)};
    *composable = OTEL_COMPOSABLE(.state = state, .intend = intend_probability,
                                  .describe = describe_probability, .free = free);
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
    struct oteli_words words = oteli_words_begin(text, size);
    oteli_words_put(&words, "ComposableParentThreshold{root:");
    oteli_words_put_composable(&words, state);
    oteli_words_put(&words, "}");
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
