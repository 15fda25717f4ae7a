/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/fork_engine.c - see fork_engine.h. */
#include "sdk/lifecycle/fork_engine.h"
#include "common/log.h"
#include "sdk/worker/on_idle.h"

#include <stdlib.h>
#include <string.h>

static otel_export_result drop_as_forked(void *state, otel_export *call)
{
    (void)state;
    otel_export_drop(call, OTEL_DROP_FORKED_CHILD, otel_batch_size(call->batch));
    return OTEL_EXPORT_DONE;
}

static bool can_be_renewed(const otel_exporter *exporter)
{
    const size_t needed = offsetof(otel_exporter, renew) + sizeof exporter->renew;
    return exporter->size >= needed && exporter->renew != NULL;
}

/* A pipeline that cannot go on does not take the others with it. */
static void renew_exporter(otel_exporter *renewed, const otel_exporter *parents)
{
    otel_exporter made = {0};
    otel_status status = OTEL_OK;
    if (can_be_renewed(parents))
        status = parents->renew(parents->state, &made);
    if (status != OTEL_OK)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s: nothing is exported in this forked child: %s",
                         parents->name, otel_status_string(status));
    if (status == OTEL_OK && made.export_batch != NULL)
        *renewed = made;
    else
        *renewed = OTEL_EXPORTER(.name = parents->name, .export_batch = drop_as_forked);
}

static otel_status renew_pipelines(struct oteli_engine *engine, const struct oteli_engine *parents)
{
    const size_t count = parents->pipeline_count;
    engine->pipelines = calloc(count != 0 ? count : 1, sizeof *engine->pipelines);
    if (engine->pipelines == NULL)
        return OTEL_ERROR_NO_MEMORY;
    engine->pipeline_count = count;
    for (size_t i = 0; i < count; i++)
        renew_exporter(&engine->pipelines[i].exporter, &parents->pipelines[i].exporter);
    for (size_t i = 0; i < count; i++)
        oteli_attend_init(&engine->pipelines[i]);
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
        status =
            oteli_engine_furnish(engine, parents->batches[0].capacity, parents->driving.is_chosen);
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
