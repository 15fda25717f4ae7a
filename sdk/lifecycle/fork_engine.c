/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/fork_engine.c - see fork_engine.h. */
#include "sdk/lifecycle/fork_engine.h"
#include "sdk/worker/on_idle.h"

#include <stdlib.h>
#include <string.h>

static otel_status renew_pipelines(struct oteli_engine *engine, const struct oteli_engine *parents)
{
    const size_t count = parents->pipeline_count;
    engine->pipelines = calloc(count != 0 ? count : 1, sizeof *engine->pipelines);
    if (engine->pipelines == NULL)
        return OTEL_ERROR_NO_MEMORY;
    engine->pipeline_count = count;
    for (size_t i = 0; i < count; i++)
        engine->pipelines[i].exporter = oteli_exporter_renew(&parents->pipelines[i].exporter);
    for (size_t i = 0; i < count; i++)
        oteli_on_idle_init(&engine->pipelines[i]);
    return OTEL_OK;
}

static void copy_settings(struct oteli_engine *engine, const struct oteli_engine *parents)
{
    engine->sdk = parents->sdk;
    engine->sdk.generation = oteli_engine_next_generation();
    engine->sdk.threads = 0;
    engine->sampler = parents->sampler;
    engine->hooks = parents->hooks;
    engine->tail = parents->tail;
    engine->queue_size = parents->queue_size;
    engine->schedule_delay_ns = parents->schedule_delay_ns;
    engine->export_timeout_ns = parents->export_timeout_ns;
    engine->thread_stack_bytes = parents->thread_stack_bytes;
    engine->thread_started = parents->thread_started;
    engine->thread_started_state = parents->thread_started_state;
    memcpy(engine->thread_context_schema, parents->thread_context_schema,
           sizeof engine->thread_context_schema);
    oteli_engine_rest(engine);
}

/* The processors and exporters come last: what fails before them has nothing to tell them. */
otel_status oteli_engine_renew(const struct oteli_engine *parents, struct oteli_engine **renewed)
{
    struct oteli_engine *engine = aligned_alloc(OTELI_CACHELINE, sizeof *engine);
    if (engine == NULL)
        return OTEL_ERROR_NO_MEMORY;
    memset(engine, 0, sizeof *engine);
    copy_settings(engine, parents);
    otel_status status = oteli_resource_renew(&engine->resource, &parents->resource);
    if (status == OTEL_OK)
        status = oteli_engine_furnish(engine, parents->batches[0].capacity,
                                      parents->event_fds.is_chosen);
    if (status == OTEL_OK &&
        !oteli_processors_renew(&engine->processors, &parents->processors, &engine->resource))
        status = OTEL_ERROR_NO_MEMORY;
    if (status == OTEL_OK)
        status = renew_pipelines(engine, parents);
    if (status == OTEL_OK)
        *renewed = engine;
    else
        oteli_engine_free(engine);
    return status;
}
