/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/custom_callbacks.c - the contracts are in sdk/lifecycle/custom_callbacks.h.
 * Start/stop only, but for the asking. */
#include "sdk/lifecycle/custom_callbacks.h"
#include "api/context/tracestate_pool.h"

#include <string.h>

_Static_assert((int)OTEL_TRACESTATE_SIZE == OTELI_TRACESTATE_BYTES + 1, "with its NUL");

/* It may be of a program that knows less of it. */
static otel_sampler known_part_of(const otel_sampler *sampler)
{
    const size_t size = sampler->size != 0 ? sampler->size : sizeof *sampler;
    otel_sampler known = {0};
    memcpy(&known, sampler, size < sizeof known ? size : sizeof known);
    return known;
}

void oteli_custom_init(struct oteli_hooks *hooks, const struct oteli_engine_options *options)
{
    *hooks = (struct oteli_hooks){
        .generate_ids = options->program.generate_ids,
        .generate_ids_state = options->program.generate_ids_state,
        .tracer_enabled = options->program.tracer_enabled,
        .tracer_enabled_state = options->program.tracer_enabled_state,
    };
    if (options->program.sampler != NULL)
        hooks->sampler = known_part_of(options->program.sampler);
}

void oteli_custom_install(const struct oteli_hooks *hooks, struct oteli_sdk *sdk)
{
    const bool asks = hooks->sampler.sample != NULL || hooks->generate_ids != NULL ||
                      hooks->tracer_enabled != NULL;
    sdk->program.makes_ids = hooks->generate_ids != NULL;
    sdk->program.asks_tracers = hooks->tracer_enabled != NULL;
    sdk->program.has_callbacks = asks || sdk->program.has_processors;
    for (unsigned i = 0; i < OTELI_PARENT_KINDS && sdk->program.has_callbacks; i++)
        if (asks || sdk->decide[i] == OTELI_DECIDE_SAMPLE)
            sdk->decide[i] = OTELI_DECIDE_SLOW_PATH;
}

void oteli_custom_sample(const struct oteli_hooks *hooks,
                         const struct oteli_sampling_question *question,
                         otel_sampling_result *result)
{
    const struct oteli_sampling *about = &question->about;
    const otel_span_options *options = about->options;
    const otel_span_context parent = otel_span_get_context(question->context.span);
    char tracestate[OTEL_TRACESTATE_SIZE] = "";
    oteli_tracestate_copy(parent.tracestate, parent.trace_id, tracestate, sizeof tracestate);
    otel_sampling_query query = {
        .context = &question->context,
        .parent = &parent,
        .parent_tracestate = tracestate,
        .trace_id = about->trace_id,
        .trace_id_is_random = question->is_random,
        .name = {about->name != NULL ? about->name : "", about->name_length},
    };
    if (options != NULL) {
        if ((unsigned)options->kind <= OTEL_SPAN_KIND_CONSUMER)
            query.kind = options->kind; /* what is none is internal, as in the record */
        query.attributes = options->attributes;
        query.attribute_count = options->attributes != NULL ? options->attribute_count : 0;
        query.links = options->links;
        query.link_count = options->links != NULL ? options->link_count : 0;
    }
    memset(result, 0, sizeof *result);
    hooks->sampler.sample(hooks->sampler.state, &query, result);
    if (result->attributes == NULL)
        result->attribute_count = 0;
}

void oteli_custom_discard(const struct oteli_engine_options *options)
{
    struct oteli_hooks unused;
    oteli_custom_init(&unused, options);
    oteli_custom_fini(&unused);
}

void oteli_custom_fini(struct oteli_hooks *hooks)
{
    if (hooks->sampler.free != NULL)
        hooks->sampler.free(hooks->sampler.state);
    hooks->sampler = (otel_sampler){0};
}
