/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/engine_life.c - the contracts are in sdk/lifecycle/engine_life.h. */
#include "sdk/lifecycle/engine_life.h"
#include "api/record/set_pool.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "sdk/engine/queue.h"
#include "sdk/sampling/custom_sampler.h"
#include "sdk/sampling/owned_sampler.h"
#include "sdk/sampling/ratio_sampler.h"
#include "sdk/worker/drive.h"
#include "sdk/worker/export.h"
#include "sdk/worker/on_idle.h"
#include "sdk/worker/simple_export.h"
#include "sdk/worker/simple_processor.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t nanoseconds(int64_t ms)
{
    return ms == OTELI_UNLIMITED ? UINT64_MAX : oteli_ns_after(0, (uint64_t)ms);
}

static uint32_t count_limit(int64_t limit)
{
    return limit > UINT32_MAX ? UINT32_MAX : (uint32_t)limit;
}

static void set_limits(struct oteli_limits *limits, const struct oteli_config *config)
{
    const int64_t length = config->span_attribute_value_length_limit;
    limits->attributes = count_limit(config->span_attribute_count_limit);
    limits->events = count_limit(config->span_event_count_limit);
    limits->links = count_limit(config->span_link_count_limit);
    limits->event_attributes = count_limit(config->event_attribute_count_limit);
    limits->link_attributes = count_limit(config->link_attribute_count_limit);
    limits->value_depth = (uint8_t)config->attribute_value_depth_limit;
    limits->value_length = length == OTELI_UNLIMITED ? SIZE_MAX : (size_t)length;
}

static OTELI_COLD void warn_below(const struct oteli_engine *engine, const otel_span *parent)
{
    const otel_span_context context = otel_span_get_context(*parent);
    char tracestate[OTEL_TRACESTATE_SIZE];
    if (!otel_span_context_is_valid(&context))
        return;
    (void)otel_span_context_tracestate(&context, tracestate, sizeof tracestate);
    oteli_ratio_warn((uint32_t *)(uintptr_t)&engine->settings.sampler.has_warned, tracestate);
}

static bool sample(const struct oteli_sdk *sdk, const struct oteli_sampling *about)
{
    const struct oteli_engine *engine = oteli_engine_of(sdk);
    if (OTELI_UNLIKELY(oteli_load_relaxed_32(&engine->settings.sampler.has_warned) == 0))
        warn_below(engine, about->parent);
    return oteli_ratio_samples(&engine->settings.sampler.ratio, about->trace_id);
}

static void ask_sampler(const struct oteli_sdk *sdk, const struct oteli_sampling_question *question,
                        otel_sampling_result *result)
{
    const struct oteli_engine_settings *settings = &oteli_engine_of(sdk)->settings;
    if (settings->custom_sampler.sample != NULL) {
        oteli_custom_sample(&settings->custom_sampler, question, result);
        return;
    }
    const uint8_t decision = settings->sampler.decide[question->parent_kind];
    const bool is_ratio = decision == OTELI_DECIDE_ASK || decision == OTELI_DECIDE_RATIO;
    const bool is_sampled =
        is_ratio ? sample(sdk, &question->about) : decision != OTELI_DECIDE_DROP;
    result->decision = is_sampled ? OTEL_SAMPLING_RECORD_AND_SAMPLE : OTEL_SAMPLING_DROP;
}

static void make_ids(const struct oteli_sdk *sdk, uint8_t *trace_id, uint8_t *span_id)
{
    const struct oteli_engine_settings *settings = &oteli_engine_of(sdk)->settings;
    settings->generate_ids(settings->generate_ids_state, trace_id, span_id);
}

static bool is_tracer_enabled(const struct oteli_sdk *sdk, const otel_scope_view *scope)
{
    const struct oteli_engine_settings *settings = &oteli_engine_of(sdk)->settings;
    return settings->tracer_enabled(settings->tracer_enabled_state, scope);
}

static bool keep(const struct oteli_sdk *sdk, const otel_tail *tail)
{
    return oteli_tail_keeps(&oteli_engine_of(sdk)->settings.tail, tail);
}

static struct oteli_engine_settings settings_of(const struct oteli_engine_options *options)
{
    const struct oteli_config *config = options->config;
    const otel_sdk_options *program = &options->program;
    struct oteli_engine_settings settings = {
        .custom_sampler = oteli_custom_sampler_known(program->sampler),
        .generate_ids = program->generate_ids,
        .generate_ids_state = program->generate_ids_state,
        .tracer_enabled = program->tracer_enabled,
        .tracer_enabled_state = program->tracer_enabled_state,
        .queue_size = (uint64_t)config->bsp_max_queue_size,
        .queue_max_bytes = (uint64_t)config->queue_max_bytes,
        .batch_size = (size_t)config->bsp_max_export_batch_size,
        .schedule_delay_ns = nanoseconds(config->bsp_schedule_delay),
        .export_timeout_ns = nanoseconds(config->bsp_export_timeout),
        .threadless = program->threadless,
        .thread_stack_bytes =
            program->thread_stack_bytes > 0 ? (size_t)program->thread_stack_bytes : 0,
        .thread_started = program->thread_started,
        .thread_started_state = program->thread_started_state,
    };
    oteli_sampler_init(&settings.sampler, config);
    oteli_tail_init(&settings.tail, config);
    return settings;
}

/* What the program does itself. */
static struct oteli_program program_of(const otel_sdk_options *options, bool has_sampler,
                                       bool synchronous)
{
    return (struct oteli_program){
        .has_callbacks = has_sampler || options->generate_ids != NULL ||
                         options->tracer_enabled != NULL || options->processor_count != 0,
        .has_processors = options->processor_count != 0,
        .makes_ids = options->generate_ids != NULL,
        .ids_are_random = options->generated_ids_are_random,
        .asks_tracers = options->tracer_enabled != NULL,
        .has_no_outlet = options->processor_count == 0 && options->exporter_count == 0,
        .gets_exports = synchronous,
    };
}

static uint64_t next_generation(void)
{
    static uint64_t last;
    return last += 2; /* an odd one is OTELI_REVIVE */
}

/* What the API is given. */
static void set_sdk(struct oteli_engine *engine, const struct oteli_engine_options *options,
                    bool synchronous)
{
    struct oteli_sdk *sdk = &engine->sdk;
    const struct oteli_engine_settings *settings = &engine->settings;
    const bool has_rules = oteli_tail_has_rules(&settings->tail);
    *sdk = (struct oteli_sdk){
        .generation = next_generation(),
        .program =
            program_of(&options->program, settings->custom_sampler.sample != NULL, synchronous),
        .synchronous = synchronous,
        .starts_asleep = !synchronous,
        .sample = sample,
        .ask_sampler = ask_sampler,
        .make_ids = make_ids,
        .is_tracer_enabled = is_tracer_enabled,
        .span_started = oteli_processors_start,
        .span_ending = oteli_processors_ending,
        .span_ended = oteli_processors_end,
        .take_quota = oteli_queue_take_quota,
        .reserve = oteli_queue_reserve,
        .announce = oteli_queue_announce,
        .give_room_back = oteli_queue_give_room_back,
        .request_drain = oteli_queue_request_drain,
        .keep = has_rules ? keep : NULL,
        .hand_over = oteli_queue_hand_over,
        .wake = oteli_queue_wake,
        .export_one = oteli_simple_export_one,
    };
    set_limits(&sdk->limits, options->config);
    sdk->limits.roots_hold = has_rules;
    memcpy(sdk->decide, settings->sampler.decide, sizeof sdk->decide);
    sdk->ratio_below = settings->sampler.ratio.threshold;
    const bool asks = settings->custom_sampler.sample != NULL || sdk->program.makes_ids ||
                      sdk->program.asks_tracers;
    for (unsigned i = 0; i < OTELI_PARENT_KINDS && sdk->program.has_callbacks; i++)
        sdk->decide[i] = asks ? OTELI_DECIDE_SLOW_PATH : oteli_decide_slowly(sdk->decide[i]);
}

static bool init_monitor(struct oteli_engine *engine)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&engine->mutex, NULL) != 0 || pthread_condattr_init(&attributes) != 0)
        return false;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    const bool done = pthread_cond_init(&engine->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return done;
}

/* Memory, mutex, waker and ring of an engine. No span waits, and the worker is about to sleep. */
static otel_status furnish(struct oteli_engine *engine)
{
    const size_t capacity = engine->settings.batch_size;
    engine->tick_ns = UINT64_MAX;
    engine->pace.batch_ns = engine->pace.look_ns = UINT64_MAX;
    engine->asleep = true;
    oteli_waker_init(&engine->waker);
    engine->batch = &engine->batches[0];
    if (!oteli_batch_init(&engine->batches[0], capacity, &engine->resource) ||
        !oteli_batch_init(&engine->batches[1], capacity, &engine->resource) ||
        !oteli_ring_init(&engine->ring, oteli_lines_most(), 0))
        return OTEL_ERROR_NO_MEMORY;
    const bool is_driven = engine->settings.threadless && !engine->sdk.synchronous;
    const bool done = init_monitor(engine) && (!is_driven || oteli_drive_init(engine));
    return done ? OTEL_OK : OTEL_ERROR_SYSTEM;
}

/* Zeros; NULL: no memory. */
static struct oteli_engine *make(size_t pipeline_count)
{
    struct oteli_engine *engine = aligned_alloc(OTELI_CACHELINE, sizeof *engine);
    if (engine == NULL)
        return NULL;
    memset(engine, 0, sizeof *engine);
    engine->pipelines = calloc(pipeline_count != 0 ? pipeline_count : 1, sizeof *engine->pipelines);
    if (engine->pipelines == NULL) {
        free(engine);
        return NULL;
    }
    return engine;
}

static void add_exporter(struct oteli_engine *engine, otel_exporter exporter)
{
    struct oteli_pipeline *pipeline = &engine->pipelines[engine->pipeline_count++];
    pipeline->exporter = exporter;
    oteli_on_idle_init(pipeline);
}

void oteli_start_discard(const struct oteli_engine_options *options)
{
    const otel_sampler sampler = oteli_custom_sampler_known(options->program.sampler);
    for (size_t i = 0; i < options->program.exporter_count; i++)
        if (options->program.exporters[i].free != NULL)
            options->program.exporters[i].free(options->program.exporters[i].state);
    oteli_processors_discard(&options->program);
    oteli_sampler_free(&sampler);
}

/* An exporter whose constructor has failed is often all zero. */
static bool can_export(const struct oteli_engine_options *options)
{
    for (size_t i = 0; i < options->program.exporter_count; i++) {
        const otel_exporter *exporter = &options->program.exporters[i];
        if (exporter->export_batch != NULL)
            continue;
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR, "exporter %zu (%s) has no export_batch", i,
                         exporter->name != NULL ? exporter->name : "without a name");
        return false;
    }
    return true;
}

otel_status oteli_engine_new(const struct oteli_engine_options *options, struct oteli_engine **made)
{
    const struct oteli_config *config = options->config;
    const otel_sdk_options *program = &options->program;
    /* Without an exporter the worker takes spans away as well: no other place is as cheap. */
    const bool synchronous = program->simple && program->exporter_count != 0;
    const bool is_valid = can_export(options);
    struct oteli_engine *engine = is_valid ? make(program->exporter_count) : NULL;
    if (engine == NULL) {
        oteli_start_discard(options);
        return is_valid ? OTEL_ERROR_NO_MEMORY : OTEL_ERROR_INVALID_ARGUMENT;
    }
    for (size_t i = 0; i < program->exporter_count; i++)
        add_exporter(engine, program->exporters[i]);
    engine->settings = settings_of(options);
    set_sdk(engine, options, synchronous);
    const bool has_processors =
        oteli_processors_init(&engine->processors, program, &engine->resource);
    oteli_lines_set_limit((uint64_t)config->queue_max_bytes);
    oteli_holds_set_limit((uint64_t)config->held_max_bytes);
    otel_status status =
        oteli_resource_init(&engine->resource, config, program->resource, program->resource_count);
    if (status == OTEL_OK && !has_processors)
        status = OTEL_ERROR_NO_MEMORY;
    if (status == OTEL_OK)
        status = furnish(engine);
    if (status == OTEL_OK)
        *made = engine;
    else
        oteli_engine_free(engine);
    return status;
}

/* The processors and exporters come last: what fails before them has nothing to tell them. */
otel_status oteli_engine_renew(const struct oteli_engine *parents, struct oteli_engine **renewed)
{
    struct oteli_engine *engine = make(parents->pipeline_count);
    if (engine == NULL)
        return OTEL_ERROR_NO_MEMORY;
    engine->settings = parents->settings;
    engine->sdk = parents->sdk;
    engine->sdk.generation = next_generation();
    engine->sdk.threads = 0;
    otel_status status = oteli_resource_renew(&engine->resource, &parents->resource);
    if (status == OTEL_OK)
        status = furnish(engine);
    if (status == OTEL_OK &&
        !oteli_processors_renew(&engine->processors, &parents->processors, &engine->resource))
        status = OTEL_ERROR_NO_MEMORY;
    if (status != OTEL_OK) {
        oteli_engine_free(engine);
        return status;
    }
    for (size_t i = 0; i < engine->processors.count; i++)
        oteli_simple_processor_renew(&engine->processors.list[i]);
    for (size_t i = 0; i < parents->pipeline_count; i++)
        add_exporter(engine, oteli_exporter_renew(&parents->pipelines[i].exporter));
    *renewed = engine;
    return OTEL_OK;
}

void oteli_engine_free_sampler(struct oteli_engine *engine)
{
    oteli_sampler_free(&engine->settings.custom_sampler);
    engine->settings.custom_sampler = (otel_sampler){0};
}

void oteli_engine_free(struct oteli_engine *engine)
{
    if (engine->ring.slots != NULL)
        oteli_drain_fini(engine);
    oteli_export_fini(engine);
    oteli_processors_fini(&engine->processors);
    oteli_engine_free_sampler(engine);
    oteli_event_fds_close(&engine->event_fds);
    free(engine->pipelines);
    oteli_resource_fini(&engine->resource);
    oteli_batch_fini(&engine->batches[0]);
    oteli_batch_fini(&engine->batches[1]);
    oteli_ring_fini(&engine->ring);
    pthread_cond_destroy(&engine->changed);
    pthread_mutex_destroy(&engine->mutex);
    free(engine);
}
