/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/start_custom.c - the contracts are in api/span/start_custom.h. App threads. */
#include "api/span/start_custom.h"
#include "api/context/tracestate_pool.h"

#include <string.h>

otel_context oteli_custom_context(const struct oteli_thread *thread, const otel_span *parent,
                                  const otel_span_options *options)
{
    otel_context context = {*parent, NULL, 0};
    context.span.opaque[3] &= ~OTELI_REF_OF_STACK;
    if (options != NULL && options->root)
        return context;
    const bool is_given = options != NULL && options->parent != NULL;
    context.values = is_given ? options->parent->values : thread->values;
    context.baggage = is_given ? options->parent->baggage : thread->baggage;
    return context;
}

bool oteli_custom_id(struct oteli_thread *thread, uint64_t *trace_id, uint64_t *span_id)
{
    const struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    const bool is_there = sdk != NULL && sdk->generation == thread->generation;
    uint64_t made[2] = {0, 0};
    for (unsigned tries = 0; is_there && tries < 2 && (made[0] | made[1]) == 0; tries++)
        sdk->make_ids(sdk, trace_id != NULL ? (uint8_t *)made : NULL,
                      span_id != NULL ? (uint8_t *)made : NULL);
    oteli_sdk_return(thread);
    if ((made[0] | made[1]) == 0)
        return false;
    if (trace_id != NULL)
        memcpy(trace_id, made, sizeof made);
    else
        *span_id = made[0];
    return true;
}

void oteli_custom_ask(struct oteli_thread *thread, const struct oteli_sampling_question *question,
                      otel_sampling_result *result)
{
    result->decision = OTEL_SAMPLING_DROP;
    result->attributes = NULL;
    result->attribute_count = 0;
    result->has_tracestate = false;
    const struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation)
        sdk->ask_sampler(sdk, question, result);
    oteli_sdk_return(thread);
}

void oteli_custom_tracestate(struct oteli_active_span *active, const otel_sampling_result *result,
                             const uint8_t trace_id[16], uint64_t *ref)
{
    const size_t length = strnlen(result->tracestate, sizeof result->tracestate);
    const uint32_t reference = oteli_tracestate_make(result->tracestate, length, trace_id);
    if (reference == 0 && length != 0)
        return;
    const uint32_t kept = oteli_tracestate_retain(reference);
    oteli_tracestate_release(oteli_ref_tracestate(*ref));
    *ref = (*ref & ~OTELI_REF_TRACESTATE) | oteli_ref_of_tracestate(kept);
    active->traits.is_unusual |= kept != 0;
}
