/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/engine.c - make and free an engine. Start/stop only. */
#include "sdk/engine/engine.h"
#include "api/record/set_pool.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "sdk/engine/queue.h"
#include "sdk/sampling/ratio_sampler.h"
#include "sdk/worker/drive.h"
#include "sdk/worker/on_idle.h"
#include "sdk/worker/simple_export.h"

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
    oteli_ratio_warn((uint32_t *)(uintptr_t)&engine->sampler.has_warned, tracestate);
}

static bool sample(const struct oteli_sdk *sdk, const struct oteli_sampling *about)
{
    const struct oteli_engine *engine = (const struct oteli_engine *)(const void *)sdk;
    if (OTELI_UNLIKELY(oteli_load_relaxed_32(&engine->sampler.has_warned) == 0))
        warn_below(engine, about->parent);
    return oteli_ratio_samples(&engine->sampler.ratio, about->trace_id);
}

static const struct oteli_engine *engine_of(const struct oteli_sdk *sdk)
{
    return (const struct oteli_engine *)(const void *)sdk;
}

/* By the program's sampler, or by the one that has a name. */
static void judge(const struct oteli_sdk *sdk, const struct oteli_sampling_question *question,
                  otel_sampling_result *result)
{
    const struct oteli_engine *engine = engine_of(sdk);
    if (engine->hooks.sampler.sample != NULL) {
        oteli_custom_sample(&engine->hooks, question, result);
        return;
    }
    const uint8_t decision = engine->sampler.decide[question->parent_kind];
    const bool is_sampled = decision == OTELI_DECIDE_ASK ? sample(sdk, &question->about)
                                                         : decision != OTELI_DECIDE_DROP;
    result->decision = is_sampled ? OTEL_SAMPLING_RECORD_AND_SAMPLE : OTEL_SAMPLING_DROP;
}

static void make_ids(const struct oteli_sdk *sdk, uint8_t *trace_id, uint8_t *span_id)
{
    const struct oteli_hooks *hooks = &engine_of(sdk)->hooks;
    hooks->generate_ids(hooks->generate_ids_state, trace_id, span_id);
}

static bool is_tracer_enabled(const struct oteli_sdk *sdk, const otel_scope_view *scope)
{
    const struct oteli_hooks *hooks = &engine_of(sdk)->hooks;
    return hooks->tracer_enabled(hooks->tracer_enabled_state, scope);
}

static void span_started(const struct oteli_sdk *sdk, const otel_span *span,
                         const otel_context *parent)
{
    oteli_processors_start(&engine_of(sdk)->processors, span, parent);
}

static void span_ending(const struct oteli_sdk *sdk, const otel_span *span, uint64_t end_ns)
{
    oteli_processors_ending(&engine_of(sdk)->processors, span, end_ns);
}

static void span_ended(const struct oteli_sdk *sdk, struct oteli_record *record)
{
    oteli_processors_end(&engine_of(sdk)->processors, record);
}

static bool keep(const struct oteli_sdk *sdk, const otel_tail *tail)
{
    const struct oteli_engine *engine = (const struct oteli_engine *)(const void *)sdk;
    return oteli_tail_keeps(&engine->tail, tail);
}

static void set_tail(struct oteli_engine *engine, const struct oteli_config *config)
{
    oteli_tail_init(&engine->tail, config);
    const bool has_rules = oteli_tail_has_rules(&engine->tail);
    engine->sdk.limits.roots_hold = has_rules;
    engine->sdk.keep = has_rules ? keep : NULL;
}

uint64_t oteli_engine_next_generation(void)
{
    static uint64_t last;
    return last += 2; /* an odd one is OTELI_REVIVE */
}

static void set_sdk(struct oteli_engine *engine, const struct oteli_config *config,
                    bool synchronous)
{
    struct oteli_sdk *sdk = &engine->sdk;
    sdk->generation = oteli_engine_next_generation();
    sdk->synchronous = synchronous;
    sdk->starts_asleep = !synchronous;
    oteli_sampler_init(&engine->sampler, config);
    memcpy(sdk->decide, engine->sampler.decide, sizeof sdk->decide);
    set_limits(&sdk->limits, config);
    set_tail(engine, config);
    sdk->sample = sample;
    sdk->judge = judge;
    sdk->make_ids = make_ids;
    sdk->is_tracer_enabled = is_tracer_enabled;
    sdk->span_started = span_started;
    sdk->span_ending = span_ending;
    sdk->span_ended = span_ended;
    sdk->take_lot = oteli_queue_take_lot;
    sdk->reserve = oteli_queue_reserve;
    sdk->announce = oteli_queue_announce;
    sdk->give_room_back = oteli_queue_give_room_back;
    sdk->press = oteli_queue_press;
    sdk->hand_over = oteli_queue_hand_over;
    sdk->wake = oteli_queue_wake;
    sdk->export_one = oteli_simple_export_one;
}

void oteli_engine_rest(struct oteli_engine *engine)
{
    engine->tick_ns = UINT64_MAX;
    engine->asleep = true;
    oteli_waker_init(&engine->waker);
}

/* What the program does itself. The hooks look at the processors. */
static bool set_program(struct oteli_engine *engine, const struct oteli_engine_options *options)
{
    struct oteli_program *program = &engine->sdk.program;
    program->has_processors = options->program.processor_count != 0;
    program->ids_are_random = options->program.generated_ids_are_random;
    program->gets_exports = engine->sdk.synchronous;
    program->has_no_outlet =
        options->program.processor_count == 0 && options->program.exporter_count == 0;
    oteli_custom_init(&engine->hooks, options);
    oteli_custom_install(&engine->hooks, &engine->sdk);
    return oteli_processors_init(&engine->processors, options, &engine->resource);
}

static void set_processor(struct oteli_engine *engine, const struct oteli_config *config)
{
    engine->queue_size = (uint64_t)config->bsp_max_queue_size;
    engine->schedule_delay_ns = nanoseconds(config->bsp_schedule_delay);
    engine->export_timeout_ns = nanoseconds(config->bsp_export_timeout);
    oteli_engine_rest(engine);
}

static void set_thread(struct oteli_engine *engine, const struct oteli_engine_options *options)
{
    const int64_t stack_bytes = options->program.thread_stack_bytes;
    engine->thread_stack_bytes = stack_bytes > 0 ? (size_t)stack_bytes : 0;
    engine->thread_started = options->program.thread_started;
    engine->thread_started_state = options->program.thread_started_state;
}

static bool init_batches(struct oteli_engine *engine, size_t capacity)
{
    engine->batch = &engine->batches[0];
    return oteli_batch_init(&engine->batches[0], capacity, &engine->resource) &&
           oteli_batch_init(&engine->batches[1], capacity, &engine->resource);
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

otel_status oteli_engine_furnish(struct oteli_engine *engine, size_t batch_capacity, bool is_driven)
{
    if (!init_batches(engine, batch_capacity) ||
        !oteli_ring_init(&engine->ring, oteli_lines_most(), 0))
        return OTEL_ERROR_NO_MEMORY;
    const bool done = init_monitor(engine) && (!is_driven || oteli_drive_init(engine));
    return done ? OTEL_OK : OTEL_ERROR_SYSTEM;
}

/* Take the exporters over; from here on oteli_engine_free frees them. */
static bool adopt(struct oteli_engine *engine, const struct oteli_engine_options *options)
{
    const size_t count = options->program.exporter_count;
    engine->pipelines = calloc(count != 0 ? count : 1, sizeof *engine->pipelines);
    if (engine->pipelines == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        engine->pipelines[i].exporter = options->program.exporters[i];
    for (size_t i = 0; i < count; i++)
        oteli_on_idle_init(&engine->pipelines[i]);
    engine->pipeline_count = count;
    return true;
}

void oteli_start_discard(const struct oteli_engine_options *options)
{
    for (size_t i = 0; i < options->program.exporter_count; i++)
        if (options->program.exporters[i].free != NULL)
            options->program.exporters[i].free(options->program.exporters[i].state);
    oteli_processors_discard(options);
    oteli_custom_discard(options);
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

otel_status oteli_engine_new(const struct oteli_engine_options *options,
                             struct oteli_engine **engine_out)
{
    const struct oteli_config *config = options->config;
    /* Without an exporter the worker takes spans away as well: no other place is as cheap. */
    const bool synchronous = options->program.simple && options->program.exporter_count != 0;
    if (!can_export(options)) {
        oteli_start_discard(options);
        return OTEL_ERROR_INVALID_ARGUMENT;
    }
    struct oteli_engine *engine = aligned_alloc(OTELI_CACHELINE, sizeof *engine);
    if (engine == NULL) {
        oteli_start_discard(options);
        return OTEL_ERROR_NO_MEMORY;
    }
    memset(engine, 0, sizeof *engine);
    if (!adopt(engine, options)) {
        free(engine);
        oteli_start_discard(options);
        return OTEL_ERROR_NO_MEMORY;
    }
    set_sdk(engine, config, synchronous);
    const bool has_program = set_program(engine, options);
    set_processor(engine, config);
    set_thread(engine, options);
    oteli_lines_set_limit((uint64_t)config->queue_max_bytes);
    oteli_holds_set_limit((uint64_t)config->held_max_bytes);
    otel_status status = oteli_resource_init(&engine->resource, config, options->program.resource,
                                             options->program.resource_count);
    if (status == OTEL_OK && !has_program)
        status = OTEL_ERROR_NO_MEMORY;
    if (status == OTEL_OK)
        status = oteli_engine_furnish(engine, (size_t)config->bsp_max_export_batch_size,
                                      options->program.threadless && !synchronous);
    if (status == OTEL_OK) {
        *engine_out = engine;
        return OTEL_OK;
    }
    oteli_engine_free(engine);
    return status;
}

void oteli_engine_free(struct oteli_engine *engine)
{
    if (engine->ring.slots != NULL)
        oteli_drain_fini(engine);
    oteli_export_fini(engine);
    oteli_processors_fini(&engine->processors);
    oteli_custom_fini(&engine->hooks);
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
