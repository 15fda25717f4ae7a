/* SPDX-License-Identifier: Apache-2.0 */
/* config/make_sampler.c - samplers as their settings say, from the last part to the first; see
 * settings.h for the order. Start/stop only. */
#include "config/settings.h"

#include <otel/jaeger_remote.h>
#include <stdlib.h>

/* One that has been made and not been given away is one or the other. */
struct made {
    otel_sampler sampler;
    otel_composable composable;
};

static otel_sampler take_sampler(struct made *made, size_t part)
{
    const otel_sampler sampler = made[part].sampler;
    made[part].sampler = (otel_sampler){.size = 0};
    return sampler;
}

static otel_composable take_composable(struct made *made, size_t part)
{
    const otel_composable composable = made[part].composable;
    made[part].composable = (otel_composable){.size = 0};
    return composable;
}

/* What is not given is zeroed, which is the default, except for the root. */
static otel_status make_parent_based(const struct oteli_sampler_setting *setting, struct made *made,
                                     otel_sampler *sampler)
{
    otel_sampler parts[OTELI_SAMPLER_PARTS] = {{.size = 0}};
    for (size_t i = 0; i < OTELI_SAMPLER_PARTS; i++)
        if (setting->parts[i] != 0)
            parts[i] = take_sampler(made, setting->parts[i]);
    if (setting->parts[0] == 0)
        parts[0] = otel_sampler_always_on();
    const otel_parent_based_options options = {
        .size = sizeof options,
        .root = parts[0],
        .remote_parent_sampled = parts[1],
        .remote_parent_not_sampled = parts[2],
        .local_parent_sampled = parts[3],
        .local_parent_not_sampled = parts[4],
    };
    return otel_sampler_parent_based(&options, sampler);
}

static otel_status make_rule_based(const struct oteli_sampler_setting *setting, struct made *made,
                                   otel_composable *composable)
{
    otel_sampling_rule *rules = calloc(setting->rule_count + 1, sizeof *rules);
    if (rules == NULL)
        return OTEL_ERROR_NO_MEMORY;
    for (size_t i = 0; i < setting->rule_count; i++) {
        const struct oteli_rule_setting *from = &setting->rules[i];
        rules[i] = (otel_sampling_rule){
            .attribute_key = from->value_key,
            .attribute_values = from->values,
            .attribute_value_count = from->value_count,
            .pattern_key = from->pattern_key,
            .included = from->included,
            .included_count = from->included_count,
            .excluded = from->excluded,
            .excluded_count = from->excluded_count,
            .kinds = from->kinds,
            .parents = from->parents,
            .sampler = take_composable(made, from->sampler),
        };
    }
    const otel_status status = otel_composable_rule_based(rules, setting->rule_count, composable);
    free(rules);
    return status;
}

static otel_status make_composable(const struct oteli_sampler_setting *setting, struct made *made,
                                   otel_composable *composable)
{
    switch (setting->kind) {
    case OTELI_COMPOSABLE_ALWAYS_OFF:
        *composable = otel_composable_always_off();
        return OTEL_OK;
    case OTELI_COMPOSABLE_PROBABILITY:
        return otel_composable_probability(setting->ratio, composable);
    case OTELI_COMPOSABLE_PARENT_THRESHOLD:
        return otel_composable_parent_threshold(take_composable(made, setting->parts[0]),
                                                composable);
    case OTELI_COMPOSABLE_RULE_BASED:
        return make_rule_based(setting, made, composable);
    default:
        *composable = otel_composable_always_on();
        return OTEL_OK;
    }
}

static otel_status make_jaeger_remote(const struct oteli_sampler_setting *setting,
                                      struct made *made, const char *service_name,
                                      otel_sampler *sampler)
{
    otel_sampler initial = {.size = 0};
    if (setting->parts[0] != 0)
        initial = take_sampler(made, setting->parts[0]);
    return otel_sampler_jaeger_remote(
        OTEL_JAEGER_REMOTE_OPTIONS(.endpoint = setting->endpoint, .service_name = service_name,
                                   .polling_interval_ms = setting->interval_ms, .initial = initial),
        sampler);
}

static otel_status make_one(const struct oteli_sampler_setting *setting, struct made *made,
                            const char *service_name, struct made *one)
{
    switch (setting->kind) {
    case OTELI_SAMPLER_ALWAYS_ON:
        one->sampler = otel_sampler_always_on();
        return OTEL_OK;
    case OTELI_SAMPLER_ALWAYS_OFF:
        one->sampler = otel_sampler_always_off();
        return OTEL_OK;
    case OTELI_SAMPLER_RATIO:
        return otel_sampler_trace_id_ratio(setting->ratio, &one->sampler);
    case OTELI_SAMPLER_PROBABILITY:
        return otel_sampler_probability(setting->ratio, &one->sampler);
    case OTELI_SAMPLER_PARENT_BASED:
        return make_parent_based(setting, made, &one->sampler);
    case OTELI_SAMPLER_ALWAYS_RECORD:
        return otel_sampler_always_record(take_sampler(made, setting->parts[0]), &one->sampler);
    case OTELI_SAMPLER_COMPOSITE:
        return otel_sampler_composite(take_composable(made, setting->parts[0]), &one->sampler);
    case OTELI_SAMPLER_JAEGER_REMOTE:
        return make_jaeger_remote(setting, made, service_name, &one->sampler);
    case OTELI_SAMPLER_REGISTERED:
        return setting->component.provider->create(setting->component.provider->state,
                                                   setting->component.properties, &one->sampler);
    default:
        return make_composable(setting, made, &one->composable);
    }
}

/* Parts that nobody has taken, because what they are for could not be made. */
static void free_made(struct made *made, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (made[i].sampler.free != NULL)
            made[i].sampler.free(made[i].sampler.state);
        if (made[i].composable.free != NULL)
            made[i].composable.free(made[i].composable.state);
    }
}

otel_status oteli_make_sampler(const struct oteli_settings *settings, const char *service_name,
                               struct oteli_faults *faults, otel_sampler *sampler)
{
    const size_t count = settings->sampler_count;
    struct made *made = calloc(count, sizeof *made);
    otel_status status = made != NULL ? OTEL_OK : OTEL_ERROR_NO_MEMORY;
    for (size_t i = count; i-- > 0 && status == OTEL_OK;) {
        struct made one = {.sampler = {.size = 0}};
        status = make_one(&settings->samplers[i], made, service_name, &one);
        if (status == OTEL_OK)
            made[i] = one;
        else
            oteli_fault(faults, settings->samplers[i].place, "this sampler cannot be made: %s",
                        otel_status_string(status));
    }
    if (status == OTEL_OK)
        *sampler = take_sampler(made, 0);
    if (made != NULL)
        free_made(made, count);
    free(made);
    return status;
}
