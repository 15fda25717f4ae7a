/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler.c - what programs call of otel/profiler.h: start, flush, stop, statistics. The
 * work is the thread's (profiler_thread.c). Owns the one profiler that a process may have.
 *
 * In a forked child there is no thread, and what it was doing cannot be known: the parent's
 * profiler stays in memory there, untouched, and its calls do nothing. */
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/os/fork.h"
#include "common/os/library.h"
#include "profiling/profiler_inside.h"
#include "sdk/worker/helper_thread.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GRACE_NS = 50 * OTELI_NS_PER_MS, WAKE_AGAIN_NS = 5 * OTELI_NS_PER_MS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for the four below */
static struct otel_profiler *running;
static uint64_t process; /* how many forks lie between the first process and this one */

/* --- fork --- */

static void forget_parent(void)
{
    process++;
    if (running != NULL && running->source_state != NULL)
        running->source->forget(running->source_state);
    if (running != NULL)
        oteli_labels_switch(false);
    running = NULL;
    pthread_mutex_init(&lock, NULL);
}

/* Whether it is of this process. */
static bool is_ours(const struct otel_profiler *profiler)
{
    oteli_fork_notice();
    pthread_mutex_lock(&lock);
    const bool is = profiler->process == process;
    pthread_mutex_unlock(&lock);
    return is;
}

/* --- making and freeing --- */

static void discard_exporter(const otel_profile_exporter *exporter)
{
    if (exporter->free != NULL && exporter->state != NULL)
        exporter->free(exporter->state);
}

static struct otel_profiler *make(const struct oteli_profiler_plan *plan,
                                  const otel_profile_exporter *exporter)
{
    pthread_condattr_t attributes;
    struct otel_profiler *profiler = calloc(1, sizeof *profiler);
    if (profiler == NULL)
        return NULL;
    const struct oteli_labels_counts labels = oteli_labels_counts();
    profiler->plan = *plan;
    profiler->exporter = *exporter;
    profiler->has_exporter = true;
    profiler->refused_before = labels.refused;
    profiler->cut_before = labels.cut;
    pthread_mutex_init(&profiler->mutex, NULL);
    pthread_mutex_init(&profiler->source_mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&profiler->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    return profiler;
}

/* --- start --- */

/* It becomes the one of the process, unless there is one. */
static bool enter(struct otel_profiler *profiler)
{
    oteli_fork_add(forget_parent);
    oteli_fork_notice();
    pthread_mutex_lock(&lock);
    const bool is_free = running == NULL;
    if (is_free) {
        running = profiler;
        profiler->process = process;
    }
    pthread_mutex_unlock(&lock);
    return is_free;
}

static void leave(const struct otel_profiler *profiler)
{
    pthread_mutex_lock(&lock);
    if (running == profiler)
        running = NULL;
    pthread_mutex_unlock(&lock);
}

/* Start the thread, and wait until it has a source. It begins when this one waits: while a thread
 * is made its maker blocks all signals, and would be taken for one that is not to be sampled. */
static otel_status run(struct otel_profiler *profiler)
{
    pthread_mutex_lock(&profiler->mutex);
    if (!oteli_helper_start(&profiler->thread, oteli_profiler_main, profiler)) {
        pthread_mutex_unlock(&profiler->mutex);
        discard_exporter(&profiler->exporter);
        return OTEL_ERROR_SYSTEM;
    }
    while (!profiler->is_started)
        (void)oteli_profiler_wait(profiler, UINT64_MAX);
    const otel_status status = profiler->start_status;
    pthread_mutex_unlock(&profiler->mutex);
    if (status != OTEL_OK)
        pthread_join(profiler->thread, NULL);
    return status;
}

static otel_status start(const otel_profiler_options *options, const struct oteli_source *perf,
                         const struct oteli_source *signal, otel_profiler **started)
{
    struct oteli_profiler_plan plan;
    otel_status status = oteli_profiler_plan(options, &plan);
    if (status == OTEL_OK && options->exporter.state == NULL)
        status = OTEL_ERROR_NO_MEMORY;
    else if (status == OTEL_OK && options->exporter.export_profile == NULL)
        status = OTEL_ERROR_INVALID_ARGUMENT;
    struct otel_profiler *profiler = status == OTEL_OK ? make(&plan, &options->exporter) : NULL;
    if (profiler == NULL) {
        discard_exporter(&options->exporter);
        return status == OTEL_OK ? OTEL_ERROR_NO_MEMORY : status;
    }
    profiler->perf = perf;
    profiler->signal = signal;
    if (!enter(profiler)) {
        discard_exporter(&profiler->exporter);
        oteli_profiler_free(profiler);
        return OTEL_ERROR_ALREADY_STARTED;
    }
    oteli_stay_loaded((oteli_code *)options->exporter.export_profile);
    status = run(profiler);
    if (status == OTEL_OK) {
        *started = profiler;
        return OTEL_OK;
    }
    leave(profiler);
    oteli_profiler_free(profiler);
    return status;
}

/* To wait for a condition is a point at which a thread can be cancelled, and it would take our
 * locks along. */
static int without_cancellation(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

otel_status oteli_profiler_start_with(const otel_profiler_options *options,
                                      const struct oteli_source *perf,
                                      const struct oteli_source *signal, otel_profiler **profiler)
{
    otel_profiler_options known = {.size = sizeof known};
    *profiler = NULL;
    if (options != NULL && options->size == 0)
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (options != NULL)
        memcpy(&known, options, options->size < sizeof known ? options->size : sizeof known);
    const int cancel_state = without_cancellation();
    const otel_status status = start(&known, perf, signal, profiler);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

otel_status otel_profiler_start(const otel_profiler_options *options, otel_profiler **profiler)
{
    return oteli_profiler_start_with(options, &oteli_perf_source, &oteli_signal_source, profiler);
}

/* --- flush --- */

static otel_status flush(struct otel_profiler *profiler, uint64_t deadline_ns)
{
    pthread_mutex_lock(&profiler->mutex);
    const uint64_t ticket = ++profiler->flush_wanted;
    if (profiler->flush_deadline_ns < deadline_ns)
        profiler->flush_deadline_ns = deadline_ns;
    pthread_cond_broadcast(&profiler->changed);
    while (profiler->flush_done < ticket && !profiler->is_done)
        if (!oteli_profiler_wait(profiler, deadline_ns))
            break;
    otel_status status = OTEL_OK;
    if (profiler->flush_done < ticket)
        status = OTEL_ERROR_TIMEOUT;
    else if (profiler->flush_lost >= ticket)
        status = OTEL_ERROR_EXPORT_FAILED;
    pthread_mutex_unlock(&profiler->mutex);
    return status;
}

otel_status otel_profiler_flush(otel_profiler *profiler, int64_t timeout_ms)
{
    if (profiler == NULL || !is_ours(profiler))
        return OTEL_ERROR_NOT_STARTED;
    const int cancel_state = without_cancellation();
    const otel_status status = flush(profiler, oteli_deadline_ns(timeout_ms));
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

/* --- stop --- */

static void wake_exporter(struct otel_profiler *profiler)
{
    if (profiler->has_exporter && profiler->is_exporting && profiler->exporter.wake != NULL)
        profiler->exporter.wake(profiler->exporter.state);
}

/* An export that had begun before the stop gets half of its time, the last one all that is left;
 * then they are told to come back, again and again, for they may have been deaf when they began.
 * With the mutex. */
static void wait_for_end(struct otel_profiler *profiler, uint64_t now_ns, uint64_t deadline_ns)
{
    const bool is_endless = deadline_ns == UINT64_MAX;
    const uint64_t end_ns = is_endless ? UINT64_MAX : deadline_ns + GRACE_NS;
    uint64_t until_ns = is_endless ? UINT64_MAX : now_ns + (deadline_ns - now_ns) / 2;
    while (!profiler->is_done) {
        if (oteli_profiler_wait(profiler, until_ns))
            continue;
        now_ns = oteli_monotonic_ns();
        if (now_ns >= end_ns)
            break;
        if (now_ns >= deadline_ns || !profiler->is_last_export)
            wake_exporter(profiler);
        until_ns = now_ns + WAKE_AGAIN_NS;
    }
    if (!profiler->is_done)
        wake_exporter(profiler);
}

/* The thread does not come back from the exporter. What is left is its own from here on. With the
 * mutex, which is unlocked. */
static void give_up(struct otel_profiler *profiler)
{
    oteli_profiler_stop_source(profiler, false);
    leave(profiler);
    pthread_detach(profiler->thread);
    profiler->frees_itself = true;
    pthread_mutex_unlock(&profiler->mutex);
    OTELI_LOG_ALWAYS(OTEL_LOG_WARN,
                     "profiler: the exporter did not come back in time; stopped anyway");
}

static otel_status stop(struct otel_profiler *profiler, int64_t timeout_ms)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    const uint64_t deadline_ns = oteli_deadline_ns(timeout_ms);
    pthread_mutex_lock(&profiler->mutex);
    profiler->is_stopping = true;
    profiler->stop_deadline_ns = deadline_ns;
    pthread_cond_broadcast(&profiler->changed);
    wait_for_end(profiler, now_ns, deadline_ns);
    if (!profiler->is_done) {
        give_up(profiler);
        return OTEL_ERROR_TIMEOUT;
    }
    const bool has_lost = profiler->has_lost;
    pthread_mutex_unlock(&profiler->mutex);
    pthread_join(profiler->thread, NULL);
    leave(profiler);
    oteli_profiler_free(profiler);
    return has_lost ? OTEL_ERROR_EXPORT_FAILED : OTEL_OK;
}

otel_status otel_profiler_stop(otel_profiler *profiler, int64_t timeout_ms)
{
    if (profiler == NULL)
        return OTEL_OK;
    if (!is_ours(profiler))
        return OTEL_ERROR_NOT_STARTED;
    const int cancel_state = without_cancellation();
    const otel_status status = stop(profiler, timeout_ms);
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}

/* --- statistics --- */

otel_status otel_profiler_get_stats(const otel_profiler *profiler, otel_profiler_stats *stats)
{
    if (profiler == NULL || stats == NULL || stats->size < sizeof stats->size)
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (!is_ours(profiler))
        return OTEL_ERROR_NOT_STARTED;
    struct otel_profiler *locked = (struct otel_profiler *)(uintptr_t)profiler;
    const size_t size = stats->size < sizeof *stats ? stats->size : sizeof *stats;
    pthread_mutex_lock(&locked->mutex);
    otel_profiler_stats known = locked->stats;
    pthread_mutex_unlock(&locked->mutex);
    known.size = size;
    memcpy(stats, &known, size);
    return OTEL_OK;
}
