/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/always.c - AlwaysOn, AlwaysOff, and AlwaysRecord around another sampler. App
 * threads; AlwaysRecord owns the sampler that it was given. */
#include "sdk/composable/sampler_description.h"
#include "sdk/sampling/owned_sampler.h"

static void sample_on(const void *state, const otel_sampling_query *query,
                      otel_sampling_result *result)
{
    (void)state;
    (void)query;
    result->decision = OTEL_SAMPLING_RECORD_AND_SAMPLE;
}

static void sample_off(const void *state, const otel_sampling_query *query,
                       otel_sampling_result *result)
{
    (void)state;
    (void)query;
    result->decision = OTEL_SAMPLING_DROP;
}

static size_t describe_on(const void *state, char *text, size_t size)
{
    (void)state;
    struct oteli_words words = oteli_words_begin(text, size);
    oteli_words_put(&words, "AlwaysOnSampler");
    return words.length;
}

static size_t describe_off(const void *state, char *text, size_t size)
{
    (void)state;
    struct oteli_words words = oteli_words_begin(text, size);
    oteli_words_put(&words, "AlwaysOffSampler");
    return words.length;
}

otel_sampler otel_sampler_always_on(void)
{
    return OTEL_SAMPLER(.sample = sample_on, .describe = describe_on);
}

otel_sampler otel_sampler_always_off(void)
{
    return OTEL_SAMPLER(.sample = sample_off, .describe = describe_off);
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
    struct oteli_words words = oteli_words_begin(text, size);
    oteli_words_put(&words, "AlwaysRecord{");
    oteli_words_put_sampler(&words, state);
    oteli_words_put(&words, "}");
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
