/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/parent_based.c - ParentBased: one sampler for roots and one for each kind of
 * parent. App threads; owns the samplers that it was given. */
#include "sdk/sampling/consistent.h"
#include "sdk/sampling/owned_sampler.h"
#include "sdk/sampling/sampler_description.h"

#include <string.h>

/* In the order of otel_parent_based_options. */
enum delegate { ROOT, REMOTE_SAMPLED, REMOTE_NOT_SAMPLED, LOCAL_SAMPLED, LOCAL_NOT_SAMPLED };
enum { DELEGATES = 5 };

struct parent_based {
    otel_sampler delegates[DELEGATES];
};

static enum delegate delegate_for(const otel_sampling_query *query)
{
    if (!oteli_query_has_decision(query))
        return ROOT;
    const bool is_sampled = (query->parent->flags & OTEL_TRACE_FLAG_SAMPLED) != 0;
    if (query->parent->is_remote)
        return is_sampled ? REMOTE_SAMPLED : REMOTE_NOT_SAMPLED;
    return is_sampled ? LOCAL_SAMPLED : LOCAL_NOT_SAMPLED;
}

static void sample(const void *state, const otel_sampling_query *query,
                   otel_sampling_result *result)
{
    const struct parent_based *based = state;
    const otel_sampler *delegate = &based->delegates[delegate_for(query)];
    delegate->sample(delegate->state, query, result);
}

static size_t describe(const void *state, char *text, size_t size)
{
    static const char *const names[DELEGATES] = {
        "ParentBased{root:", ",remoteParentSampled:", ",remoteParentNotSampled:",
        ",localParentSampled:", ",localParentNotSampled:"};
    const struct parent_based *based = state;
    struct oteli_text_builder words = {text, size, 0};
    for (unsigned i = 0; i < DELEGATES; i++) {
        oteli_build(&words, "%s", names[i]);
        oteli_describe_sampler(&words, &based->delegates[i]);
    }
    oteli_build(&words, "}");
    return words.length;
}

static void free_delegates(const otel_sampler *delegates)
{
    for (unsigned i = 0; i < DELEGATES; i++)
        oteli_sampler_free(&delegates[i]);
}

static void free_state(void *state)
{
    struct parent_based *based = state;
    free_delegates(based->delegates);
    free(based);
}

/* The samplers of the options, which may be NULL, as far as their size goes, and the
 * specification's for the rest. */
static void take_delegates(const otel_parent_based_options *options,
                           otel_sampler delegates[DELEGATES])
{
    otel_parent_based_options known = {.size = sizeof known};
    if (options != NULL)
        memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    delegates[ROOT] = known.root;
    delegates[REMOTE_SAMPLED] = known.remote_parent_sampled;
    delegates[REMOTE_NOT_SAMPLED] = known.remote_parent_not_sampled;
    delegates[LOCAL_SAMPLED] = known.local_parent_sampled;
    delegates[LOCAL_NOT_SAMPLED] = known.local_parent_not_sampled;
    for (unsigned i = ROOT + 1; i < DELEGATES; i++) {
        const bool follows_sampled = i == REMOTE_SAMPLED || i == LOCAL_SAMPLED;
        if (delegates[i].sample == NULL)
            delegates[i] = follows_sampled ? otel_sampler_always_on() : otel_sampler_always_off();
    }
}

otel_status otel_sampler_parent_based(const otel_parent_based_options *options,
                                      otel_sampler *sampler)
{
    otel_sampler delegates[DELEGATES];
    take_delegates(options, delegates);
    otel_status status = OTEL_ERROR_INVALID_ARGUMENT;
    if (delegates[ROOT].sample == NULL)
        goto fail;
    struct parent_based *based = malloc(sizeof *based);
    status = OTEL_ERROR_NO_MEMORY;
    if (based == NULL)
        goto fail;
    memcpy(based->delegates, delegates, sizeof delegates);
    *sampler =
        OTEL_SAMPLER(.state = based, .sample = sample, .describe = describe, .free = free_state);
    return OTEL_OK;

fail:
    free_delegates(delegates);
    return status;
}
