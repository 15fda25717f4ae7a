/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/sampling/owned_sampler.h - samplers that other samplers adopt. Start/stop only; no state. */
#ifndef OTELI_OWNED_SAMPLER_H
#define OTELI_OWNED_SAMPLER_H

#include <otel/sampler.h>
#include <stdlib.h>

static inline void oteli_sampler_free(const otel_sampler *sampler)
{
    if (sampler->free != NULL)
        sampler->free(sampler->state);
}

static inline void oteli_composable_free(const otel_composable *composable)
{
    if (composable->free != NULL)
        composable->free(composable->state);
}

/* Put a sampler on the heap, as the state of another; otherwise it is freed. */
static inline otel_status oteli_sampler_keep(otel_sampler sampler, otel_sampler **kept)
{
    *kept = sampler.sample != NULL ? (otel_sampler *)malloc(sizeof sampler) : NULL;
    if (*kept == NULL) {
        oteli_sampler_free(&sampler);
        return sampler.sample != NULL ? OTEL_ERROR_NO_MEMORY : OTEL_ERROR_INVALID_ARGUMENT;
    }
    **kept = sampler;
    return OTEL_OK;
}

static inline otel_status oteli_composable_keep(otel_composable composable, otel_composable **kept)
{
    *kept = composable.intend != NULL ? (otel_composable *)malloc(sizeof composable) : NULL;
    if (*kept == NULL) {
        oteli_composable_free(&composable);
        return composable.intend != NULL ? OTEL_ERROR_NO_MEMORY : OTEL_ERROR_INVALID_ARGUMENT;
    }
    **kept = composable;
    return OTEL_OK;
}

/* The free functions of samplers whose state is one that was kept. */
static inline void oteli_sampler_free_kept(void *state)
{
    oteli_sampler_free((const otel_sampler *)state);
    free(state);
}

static inline void oteli_composable_free_kept(void *state)
{
    oteli_composable_free((const otel_composable *)state);
    free(state);
}

#endif
