/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/rule_based.c - ComposableRuleBased: the first rule that matches says which sampler
 * is asked. App threads; owns copies of the rules, and their samplers. */
#include "sdk/composable/rule.h"
#include "sdk/sampling/owned_sampler.h"
#include "sdk/sampling/sampler_description.h"

#include <stdlib.h>

struct rule_based {
    struct oteli_pool pool; /* of the rules' texts */
    size_t count;
    otel_sampling_rule rules[];
};

static void intend(const void *state, const otel_sampling_query *query,
                   otel_sampling_intent *intent)
{
    const struct rule_based *based = state;
    for (size_t i = 0; i < based->count; i++) {
        if (!oteli_rule_matches(&based->rules[i], query))
            continue;
        const otel_composable *sampler = &based->rules[i].sampler;
        sampler->intend(sampler->state, query, intent);
        return;
    }
    intent->threshold = OTEL_NEVER_SAMPLE;
    intent->threshold_is_reliable = false;
}

static size_t describe(const void *state, char *text, size_t size)
{
    const struct rule_based *based = state;
    struct oteli_text_builder words = {text, size, 0};
    oteli_build(&words, "ComposableRuleBased{");
    for (size_t i = 0; i < based->count; i++) {
        if (i != 0)
            oteli_build(&words, ",");
        oteli_describe_composable(&words, &based->rules[i].sampler);
    }
    oteli_build(&words, "}");
    return words.length;
}

static void free_state(void *state)
{
    struct rule_based *based = state;
    for (size_t i = 0; i < based->count; i++)
        oteli_composable_free(&based->rules[i].sampler);
    oteli_pool_fini(&based->pool);
    free(based);
}

otel_status otel_composable_rule_based(const otel_sampling_rule *rules, size_t count,
                                       otel_composable *composable)
{
    otel_status status = OTEL_OK;
    for (size_t i = 0; i < count; i++)
        if (rules[i].sampler.intend == NULL)
            status = OTEL_ERROR_INVALID_ARGUMENT;
    struct rule_based *based = NULL;
    if (status == OTEL_OK)
        based = calloc(1, sizeof *based + count * sizeof based->rules[0]);
    if (status == OTEL_OK && based == NULL)
        status = OTEL_ERROR_NO_MEMORY;
    for (size_t i = 0; status == OTEL_OK && i < count; i++)
        if (!oteli_rule_init(&based->rules[i], &based->pool, &rules[i]))
            status = OTEL_ERROR_NO_MEMORY;
    if (status == OTEL_OK) {
        based->count = count;
        for (size_t i = 0; i < count; i++)
            based->rules[i].sampler = rules[i].sampler;
        *composable = OTEL_COMPOSABLE(.state = based, .intend = intend, .describe = describe,
                                      .free = free_state);
        return OTEL_OK;
    }
    if (based != NULL)
        free_state(based);
    for (size_t i = 0; i < count; i++)
        oteli_composable_free(&rules[i].sampler);
    return status;
}
