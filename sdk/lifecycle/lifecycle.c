/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/lifecycle/lifecycle.c - start, flush, shut down. One lock guards which engine is the current
 * one; no thread waits for anything else while it holds the lock. */
#include "sdk/lifecycle/lifecycle.h"
#include "api/http/methods.h"
#include "api/propagators/composite_propagator.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/config/configuration.h"
#include "common/log.h"
#include "common/os/fork.h"
#include "common/os/library.h"
#include "sdk/engine/current_engine.h"
#include "sdk/engine/deadline.h"
#include "sdk/engine/processors.h"
#include "sdk/lifecycle/announce.h"
#include "sdk/lifecycle/engine_life.h"
#include "sdk/lifecycle/published_settings.h"
#include "sdk/process_context/process_context.h"
#include "sdk/stats/stats.h"
#include "sdk/worker/drive.h"
#include "sdk/worker/export.h"
#include "sdk/worker/helper_thread.h"
#include "sdk/worker/simple_export.h"
#include "sdk/worker/worker.h"

#include <inttypes.h>
#include <otel/propagate.h>
#include <stdlib.h>
#include <string.h>

enum { GRACE_NS = 50 * OTELI_NS_PER_MS };

static struct oteli_engine *retired;              /* engines that a thread may still be inside */
static void (*shutdown_hook)(int64_t timeout_ms); /* what otel_shutdown stops first */

static void forget_parent(void)
{
    oteli_current_forget();
    oteli_process_context_forget();
    retired = NULL;
}

/* Whether its worker has let go of it, the mutex included. */
static bool worker_has_left(struct oteli_engine *engine)
{
    if (pthread_mutex_trylock(&engine->mutex) != 0)
        return false;
    const bool done = engine->done;
    pthread_mutex_unlock(&engine->mutex);
    return done;
}

/* Take out the engines of earlier runs that no thread is inside any more. They are freed without
 * the lock: what an exporter does when it is freed may call us. */
static struct oteli_engine *take_unused(void)
{
    struct oteli_engine *unused = NULL;
    if (oteli_current.engine != NULL) {
        oteli_current.engine->next_retired = retired;
        retired = oteli_current.engine;
        oteli_current.engine = NULL;
    }
    struct oteli_engine **at = &retired;
    while (*at != NULL) {
        struct oteli_engine *engine = *at;
        if (!worker_has_left(engine) || engine->users != 0 || !oteli_sdk_wait_until_left(0)) {
            at = &engine->next_retired;
            continue;
        }
        *at = engine->next_retired;
        engine->next_retired = unused;
        unused = engine;
    }
    return unused;
}

static void free_engines(struct oteli_engine *engines)
{
    while (engines != NULL) {
        struct oteli_engine *next = engines->next_retired;
        oteli_engine_free(engines);
        engines = next;
    }
}

static void revive(void);

/* Let an engine that was made work. After an error it is still the caller's. */
static otel_status run_locked(struct oteli_engine *made)
{
    const bool has_thread = !made->sdk.synchronous && !made->event_fds.is_chosen;
    if (has_thread && oteli_thread_create(&made->thread, made->settings.thread_stack_bytes,
                                          oteli_worker_main, made) != 0)
        return OTEL_ERROR_SYSTEM;
    made->sdk.revive = revive;
    oteli_current.engine = made;
    oteli_current.is_running = true;
    oteli_sdk_install(&made->sdk);
    oteli_process_context_publish(&made->resource, made->settings.thread_context_schema);
    return OTEL_OK;
}

static otel_status start_locked(const struct oteli_engine_options *options,
                                const struct oteli_counter_reading *mark, struct oteli_engine *made)
{
    const struct oteli_config *config = options->config;
    if (oteli_current.is_running || oteli_current.is_disabled) /* by another thread meanwhile */
        return OTEL_ERROR_ALREADY_STARTED;
    const char *refused = oteli_clock_start_after(mark, config->clock);
    if (refused != NULL)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                         "OTEL_C_CLOCK is \"tsc\", but %s; using the monotonic clock", refused);
    const bool is_published = strcmp(config->thread_context, "on") == 0;
    oteli_process_context_schema(made->settings.thread_context_schema,
                                 is_published ? config->thread_context_schema : NULL);
    return run_locked(made);
}

/* oteli_sdk.revive. */
static void revive(void)
{
    if (oteli_current_is_locked_here())
        return; /* a signal handler over one of our own calls: this is not the moment */
    otel_status status = OTEL_OK;
    struct oteli_engine *renewed = NULL;
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state); /* exporters may wait */
    oteli_current_lock();
    if (oteli_current.is_inherited && oteli_current.inherited != NULL) {
        oteli_current.is_inherited = false;
        status = oteli_engine_renew(oteli_current.inherited, &renewed);
        if (status == OTEL_OK)
            status = run_locked(renewed);
    }
    if (!oteli_current
             .is_running) /* nor will it, also when the fork was in the middle of a shutdown */
        oteli_sdk_uninstall();
    oteli_current_unlock();
    if (status != OTEL_OK && renewed != NULL)
        oteli_engine_free(renewed);
    if (status != OTEL_OK)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "this forked child goes on without an SDK: %s",
                         otel_status_string(status));
    pthread_setcancelstate(cancel_state, NULL);
}

/* What the parent ran does not come back. */
static void give_inheritance_up(void)
{
    if (oteli_current.is_inherited)
        oteli_sdk_uninstall();
    oteli_current.is_inherited = false;
}

/* What instrumentation looks at without an SDK, too: the propagator, and what http.h knows. */
static otel_status set_up_instrumentation(const struct oteli_engine_options *options)
{
    const otel_propagator *propagator = options->program.propagator;
    if (propagator == NULL)
        propagator = oteli_propagator_of_list(options->config->propagators);
    if (propagator == NULL)
        return OTEL_ERROR_NO_MEMORY;
    if (!oteli_methods_choose(options->config->http_known_methods))
        return OTEL_ERROR_NO_MEMORY;
    otel_propagator_set(propagator);
    return OTEL_OK;
}

/* What a start does before it makes an engine, or without one where the SDK is disabled. */
static otel_status begin_locked(const struct oteli_engine_options *options)
{
    if (oteli_current.is_running || oteli_current.is_disabled)
        return OTEL_ERROR_ALREADY_STARTED;
    give_inheritance_up();
    const otel_status status = set_up_instrumentation(options);
    oteli_current.is_disabled = status == OTEL_OK && options->config->sdk_disabled;
    return status;
}

/* The exporter thread runs code of this library and of the program's exporters and callbacks, and
 * may be left behind in them: what they are in stays loaded. Not under the lock. */
static void stay_loaded(const struct oteli_engine_options *options)
{
    oteli_stay_loaded((oteli_code *)stay_loaded);
    oteli_stay_loaded((oteli_code *)options->program.thread_started);
    oteli_stay_loaded((oteli_code *)options->program.tracer_enabled);
    oteli_stay_loaded((oteli_code *)options->program.generate_ids);
    if (options->program.sampler != NULL)
        oteli_stay_loaded((oteli_code *)options->program.sampler->sample);
    for (size_t i = 0; i < options->program.processor_count; i++) {
        const otel_processor processor = oteli_processors_known(&options->program, i);
        oteli_stay_loaded((oteli_code *)processor.on_start);
        oteli_stay_loaded((oteli_code *)processor.on_ending);
        oteli_stay_loaded((oteli_code *)processor.on_end);
    }
    for (size_t i = 0; i < options->program.exporter_count; i++)
        oteli_stay_loaded((oteli_code *)options->program.exporters[i].export_batch);
}

/* The engine is made and freed without the lock, and so are exporters. */
static otel_status start_engine(const struct oteli_engine_options *options,
                                char service[OTELI_SERVICE_SIZE])
{
    struct oteli_engine *made = NULL;
    const struct oteli_counter_reading mark = oteli_clock_mark();
    otel_status status = oteli_engine_new(options, &made);
    if (status != OTEL_OK)
        return status;
    const otel_slice name = oteli_resource_service(&made->resource);
    const size_t length = name.length < OTELI_SERVICE_SIZE ? name.length : OTELI_SERVICE_SIZE - 1;
    memcpy(service, name.data, length);
    service[length] = '\0';
    oteli_current_lock();
    status = start_locked(options, &mark, made);
    oteli_current_unlock();
    if (status != OTEL_OK)
        oteli_engine_free(made);
    return status;
}

otel_status oteli_start(const struct oteli_engine_options *options)
{
    oteli_fork_add(forget_parent);
    if (oteli_fork_lacks_slot())
        OTELI_LOG_ALWAYS(OTEL_LOG_ERROR,
                         "forked children will not work: MOST in common/os/fork.c is "
                         "less than there are parts of otel-c");
    stay_loaded(options);
    oteli_current_lock();
    otel_status status = begin_locked(options);
    struct oteli_engine *unused = status == OTEL_OK ? take_unused() : NULL;
    oteli_current_unlock();
    free_engines(unused);
    char service[OTELI_SERVICE_SIZE] = "";
    if (status == OTEL_OK && !options->config->sdk_disabled)
        status = start_engine(options, service);
    else
        oteli_start_discard(options);
    if (status == OTEL_OK) {
        char message[OTELI_ANNOUNCEMENT_SIZE];
        oteli_announce(options, service, message);
        oteli_current_lock();
        if (oteli_current.is_running || oteli_current.is_disabled)
            oteli_published_put(options->config, message);
        oteli_current_unlock();
    }
    return status;
}

/* Nothing runs from now on. What did, used by the caller; NULL: nothing, and what to answer. */
static struct oteli_engine *take_running(otel_status *status)
{
    oteli_current_lock();
    struct oteli_engine *taken = oteli_current_use_locked(status);
    oteli_process_context_take_back();
    oteli_published_take_back();
    if (taken != NULL)
        oteli_sdk_uninstall(); /* here, so that it is not that of a start which comes next */
    oteli_current.is_running = false;
    oteli_current.is_disabled = false;
    give_inheritance_up();
    oteli_current_unlock();
    return taken;
}

/* Numbers of requests may wrap. */
static bool has_reached(uint64_t number, uint64_t target)
{
    return (int64_t)(number - target) >= 0;
}

static bool flush_worker(struct oteli_engine *flushed, uint64_t deadline_ns)
{
    pthread_mutex_lock(&flushed->mutex);
    const uint64_t ticket = oteli_add_full_64(&flushed->flush_wanted, 1) + 1;
    if (flushed->flush_deadline_ns < deadline_ns)
        flushed->flush_deadline_ns = deadline_ns;
    pthread_mutex_unlock(&flushed->mutex);
    oteli_waker_wake(&flushed->waker);
    if (flushed->event_fds.is_chosen)
        oteli_drive_until(flushed, &flushed->flush_done, ticket, deadline_ns);
    pthread_mutex_lock(&flushed->mutex);
    while (!has_reached(flushed->flush_done, ticket) && !flushed->done)
        if (!oteli_deadline_wait(&flushed->changed, &flushed->mutex, deadline_ns))
            break;
    const bool is_done = has_reached(flushed->flush_done, ticket) || flushed->done;
    pthread_mutex_unlock(&flushed->mutex);
    return is_done;
}

/* A simple export holds the engine's mutex. */
static bool flush_simple(struct oteli_engine *flushed, uint64_t deadline_ns)
{
    if (!oteli_deadline_lock(&flushed->mutex, deadline_ns))
        return false;
    if (!flushed->done)
        oteli_export_flush(flushed, deadline_ns);
    pthread_mutex_unlock(&flushed->mutex);
    return true;
}

/* Lost spans and failed flushes. */
static uint64_t losses(const struct oteli_engine *of)
{
    return oteli_stats_lost(of) + oteli_load_relaxed_64(&of->flush_failures);
}

static otel_status flush(int64_t timeout_ms)
{
    otel_status status;
    struct oteli_engine *flushed = oteli_current_use(&status);
    if (flushed == NULL)
        return status;
    const uint64_t deadline_ns = oteli_deadline_ns(timeout_ms);
    const uint64_t told = oteli_load_relaxed_64(&flushed->told_lost);
    const bool is_done = flushed->sdk.synchronous ? flush_simple(flushed, deadline_ns)
                                                  : flush_worker(flushed, deadline_ns);
    const uint64_t lost = losses(flushed);
    if (is_done)
        oteli_store_relaxed_64(&flushed->told_lost, lost);
    const otel_status processed = oteli_processors_flush(&flushed->processors, deadline_ns);
    oteli_current_leave(flushed);
    if (!is_done)
        return OTEL_ERROR_TIMEOUT;
    return lost != told ? OTEL_ERROR_EXPORT_FAILED : processed;
}

/* Part of the time is kept for the way back, so that the caller's deadline holds. */
static uint64_t worker_deadline(uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return UINT64_MAX - 1;
    const uint64_t now_ns = oteli_monotonic_ns();
    const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    const uint64_t kept_ns = left_ns / 20 < GRACE_NS ? left_ns / 20 : GRACE_NS;
    return deadline_ns - kept_ns;
}

static void leave_engine_behind(struct oteli_engine *stopped)
{
    oteli_store_release_32(&stopped->hangs, 1);
    oteli_api_keep_memory();
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "an exporter did not come back in time; shut down anyway");
}

static void stop_worker(struct oteli_engine *stopped, uint64_t deadline_ns)
{
    static const uint64_t never;
    const bool has_thread = !stopped->event_fds.is_chosen;
    /* Under the mutex, so that the worker does not free exporters that are being woken. */
    pthread_mutex_lock(&stopped->mutex);
    oteli_store_release_64(&stopped->stop_deadline_ns, worker_deadline(deadline_ns));
    oteli_export_wake(stopped);
    pthread_mutex_unlock(&stopped->mutex);
    oteli_waker_wake(&stopped->waker);
    const uint64_t last_ns =
        deadline_ns < UINT64_MAX - GRACE_NS ? deadline_ns + GRACE_NS : UINT64_MAX;
    if (!has_thread)
        oteli_drive_until(stopped, &never, 1, last_ns);
    pthread_mutex_lock(&stopped->mutex);
    while (!stopped->done && oteli_deadline_wait(&stopped->changed, &stopped->mutex, last_ns))
        continue;
    const bool has_returned = stopped->done;
    if (!has_returned)
        leave_engine_behind(stopped);
    pthread_mutex_unlock(&stopped->mutex);
    if (has_thread && has_returned) {
        pthread_join(stopped->thread, NULL);
    } else if (has_thread) {
        pthread_detach(stopped->thread);
    }
}

static void stop_simple(struct oteli_engine *stopped, uint64_t deadline_ns)
{
    oteli_store_release_64(&stopped->stop_deadline_ns, worker_deadline(deadline_ns));
    oteli_export_wake(stopped);
    if (!oteli_deadline_lock(&stopped->mutex, deadline_ns)) {
        leave_engine_behind(stopped); /* the export that hangs does the rest when it comes back */
        oteli_simple_finish_hanging(stopped);
        return;
    }
    oteli_simple_finish(stopped);
    pthread_mutex_unlock(&stopped->mutex);
}

/* Flush and free the program's processors and sampler, once no thread is inside of them any more.
 * What cannot be done in time is done when the engine is freed. */
static otel_status stop_program(struct oteli_engine *stopped, uint64_t deadline_ns)
{
    if (!stopped->sdk.program.has_callbacks)
        return OTEL_OK;
    otel_status status;
    if (!oteli_sdk_wait_until_left(deadline_ns) ||
        !oteli_processors_stop(&stopped->processors, deadline_ns, &status))
        return OTEL_ERROR_TIMEOUT;
    oteli_engine_free_sampler(stopped);
    return status;
}

void oteli_before_shutdown(void (*hook)(int64_t timeout_ms))
{
    oteli_current_lock();
    shutdown_hook = hook;
    oteli_current_unlock();
}

static void run_shutdown_hook(int64_t timeout_ms)
{
    oteli_current_lock();
    void (*hook)(int64_t) = shutdown_hook;
    oteli_current_unlock();
    if (hook != NULL)
        hook(timeout_ms);
}

static otel_status stop(int64_t timeout_ms)
{
    const uint64_t deadline_ns = oteli_deadline_ns(timeout_ms);
    run_shutdown_hook(timeout_ms / 2);
    otel_status status;
    struct oteli_engine *stopped = take_running(&status);
    if (stopped == NULL)
        return status;
    const uint64_t failures = oteli_load_relaxed_64(&stopped->flush_failures);
    if (stopped->sdk.synchronous)
        stop_simple(stopped, deadline_ns);
    else
        stop_worker(stopped, deadline_ns);
    uint64_t late = 0;
    for (size_t i = 0; i < stopped->pipeline_count; i++)
        late += oteli_load_relaxed_64(&stopped->pipelines[i].dropped[OTEL_DROP_SHUTDOWN_TIMEOUT]);
    const bool lost_some = oteli_stats_lost(stopped) != 0 ||
                           oteli_load_relaxed_64(&stopped->flush_failures) != failures;
    const otel_status program = stop_program(stopped, deadline_ns);
    const bool hangs = stopped->hangs;
    oteli_current_leave(stopped);
    if (hangs || late != 0)
        return OTEL_ERROR_TIMEOUT;
    return lost_some ? OTEL_ERROR_EXPORT_FAILED : program;
}

/* To wait for a condition is a point at which a thread can be cancelled, and it would take our
 * locks along. */
static otel_status without_cancellation(otel_status (*function)(int64_t), int64_t timeout_ms)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    const otel_status status = function(timeout_ms);
    pthread_setcancelstate(before, NULL);
    return status;
}

otel_status otel_flush(int64_t timeout_ms)
{
    return without_cancellation(flush, timeout_ms);
}

otel_status otel_shutdown(int64_t timeout_ms)
{
    return without_cancellation(stop, timeout_ms);
}

struct oteli_engine_options oteli_start_options(const otel_sdk_options *options)
{
    struct oteli_engine_options start = {.config = NULL};
    otel_sdk_options *program = &start.program;
    if (options != NULL)
        memcpy(program, options, options->size < sizeof *program ? options->size : sizeof *program);
    if (program->exporters == NULL)
        program->exporter_count = 0;
    if (program->processors == NULL)
        program->processor_count = 0;
    return start;
}

otel_status otel_start_with(const otel_sdk_options *options)
{
    struct oteli_config config;
    struct oteli_engine_options start = oteli_start_options(options);
    start.config = &config;
    otel_status status = oteli_config_load(&config, options, false);
    if (status == OTEL_OK && start.program.sampler == NULL &&
        !oteli_sampler_is_known(config.traces_sampler)) {
        oteli_config_fini(&config);
        status = OTEL_ERROR_UNSUPPORTED; /* only otel_start makes jaeger_remote */
    }
    if (status != OTEL_OK) {
        oteli_start_discard(&start);
        return status;
    }
    status = oteli_start(&start);
    oteli_config_fini(&config);
    return status;
}

void oteli_lifecycle_reset(void)
{
    oteli_current_lock();
    struct oteli_engine *unused = oteli_current.is_running ? NULL : take_unused();
    oteli_current_unlock();
    free_engines(unused);
}

/* Spans that are on their way. A lock that is taken is not waited for: its holder may be the
 * thread that ends the process. */
static uint64_t count_queued(void)
{
    uint64_t most = 0;
    if (!oteli_current_try_lock())
        return 0;
    const struct oteli_engine *engine = oteli_current.engine;
    for (size_t i = 0; oteli_current.is_running && i < engine->pipeline_count; i++) {
        otel_stats stats = {.size = sizeof stats};
        oteli_stats_fill(&stats, engine, i);
        if (stats.queued > most)
            most = stats.queued;
    }
    oteli_current_unlock();
    return most;
}

static void say_what_is_lost(void)
{
    const uint64_t queued = oteli_log_is_default() ? count_queued() : 0;
    if (queued != 0)
        OTELI_LOG(OTEL_LOG_WARN,
                  "the process ends without otel_shutdown: %" PRIu64 " span%s not exported", queued,
                  queued == 1 ? " is" : "s are");
}

/* The process ends: what an orderly program leaves behind is one stopped engine. */
__attribute__((destructor)) static void free_at_exit(void)
{
    oteli_fork_notice();
    if (oteli_current.is_running)
        say_what_is_lost();
    else
        free_engines(take_unused());
}
