/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/builtin_sampler.c - built-in samplers. Start/stop only, but for the ratio (app
 * threads). */
#include "sdk/sampling/builtin_sampler.h"

#include <string.h>

/* A row a sampler: what it decides without a parent; below a local parent that is not sampled, that
 * is sampled; below a remote one that is not, that is. */
static const struct row {
    const char *name;
    uint8_t decide[OTELI_PARENT_KINDS];
} samplers[] = {
#define DROP OTELI_DECIDE_DROP
#define SAMPLE OTELI_DECIDE_SAMPLE
#define ASK OTELI_DECIDE_ASK
    {"always_on", {SAMPLE, SAMPLE, SAMPLE, SAMPLE, SAMPLE}},
    {"always_off", {DROP, DROP, DROP, DROP, DROP}},
    {"traceidratio", {ASK, ASK, ASK, ASK, ASK}},
    {"parentbased_always_on", {SAMPLE, DROP, SAMPLE, DROP, SAMPLE}},
    {"parentbased_always_off", {DROP, DROP, SAMPLE, DROP, SAMPLE}},
    {"parentbased_traceidratio", {ASK, DROP, SAMPLE, DROP, SAMPLE}},
#undef DROP
#undef SAMPLE
#undef ASK
};

static const struct row *row_of(const char *name)
{
    for (size_t i = 0; i < sizeof samplers / sizeof samplers[0]; i++)
        if (strcmp(samplers[i].name, name) == 0)
            return &samplers[i];
    return NULL;
}

/* A name without a row is of a sampler of another library, which decides instead of this one. */
void oteli_sampler_init(struct oteli_sampler *sampler, const struct oteli_config *config)
{
    const struct row *row = row_of(config->traces_sampler);
    memcpy(sampler->decide, row != NULL ? row->decide : samplers[0].decide, sizeof sampler->decide);
    const bool is_ratio = memchr(sampler->decide, OTELI_DECIDE_ASK, sizeof sampler->decide) != NULL;
    /* Only one that also decides below parents has something to warn about. */
    sampler->has_warned = sampler->decide[OTELI_PARENT_LOCAL_SAMPLED] != OTELI_DECIDE_ASK;
    double ratio = 1.0;
    if (is_ratio && config->traces_sampler_arg != NULL)
        (void)oteli_parse_ratio(config->traces_sampler_arg, &ratio); /* it has been checked */
    sampler->ratio = oteli_ratio_of(ratio);
    if (is_ratio) /* a root's trace id is known before it starts */
        sampler->decide[OTELI_PARENT_NONE] =
            sampler->ratio.all ? OTELI_DECIDE_SAMPLE : OTELI_DECIDE_RATIO;
}

bool oteli_sampler_is_known(const char *name)
{
    return row_of(name) != NULL;
}
