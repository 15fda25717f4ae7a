/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/custom_sampler.c - the contracts are in sdk/sampling/custom_sampler.h. */
#include "sdk/sampling/custom_sampler.h"
#include "api/context/tracestate_pool.h"

#include <string.h>

_Static_assert((int)OTEL_TRACESTATE_SIZE == OTELI_TRACESTATE_BYTES + 1, "with its NUL");

otel_sampler oteli_custom_sampler_known(const otel_sampler *sampler)
{
    otel_sampler known = {0};
    if (sampler == NULL)
        return known;
    const size_t size = sampler->size != 0 ? sampler->size : sizeof *sampler;
    memcpy(&known, sampler, size < sizeof known ? size : sizeof known);
    return known;
}

void oteli_custom_sample(const otel_sampler *sampler,
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
    sampler->sample(sampler->state, &query, result);
    if (result->attributes == NULL)
        result->attribute_count = 0;
}
