/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/custom_callbacks.h - what the program decides itself when spans start: its own
 * sampler, its ids, its tracers. Constant while an engine runs; asked by app threads,
 * concurrently. */
#ifndef OTELI_CUSTOM_CALLBACKS_H
#define OTELI_CUSTOM_CALLBACKS_H

#include "sdk/lifecycle/sdk_start.h"
#include "sdk/sampling/builtin_sampler.h"

struct oteli_hooks {
    otel_sampler sampler; /* its function `sample` is NULL: there is none */
    void (*generate_ids)(void *state, uint8_t *trace_id, uint8_t *span_id);
    void *generate_ids_state;
    bool (*tracer_enabled)(void *state, const otel_scope_view *scope);
    void *tracer_enabled_state;
};

/* Adopt what the options have, and say so in the SDK's struct oteli_program and decisions. The
 * sampler that has a name is asked where the program has none of its own. */
void oteli_custom_init(struct oteli_hooks *hooks, const struct oteli_engine_options *options);
void oteli_custom_install(const struct oteli_hooks *hooks, struct oteli_sdk *sdk);

/* The answer of the program's sampler. */
void oteli_custom_sample(const struct oteli_hooks *hooks,
                         const struct oteli_sampling_question *question,
                         otel_sampling_result *result);

/* Free the sampler; a second time does nothing. */
void oteli_custom_fini(struct oteli_hooks *hooks);

/* Free that of options that are not used. */
void oteli_custom_discard(const struct oteli_engine_options *options);

#endif
