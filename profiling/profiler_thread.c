/* SPDX-License-Identifier: Apache-2.0 */
/* profiling/profiler_thread.c - the thread "otel-profiler": opens the source, and from then on
 * drains it, resolves what comes, and has each interval exported. See profiler_inside.h.
 *
 * It is there before the source is opened, so that it is not sampled itself, and blocks all
 * signals. */
#include "common/clock/clock.h"
#include "common/log.h"
#include "profiling/profiler_inside.h"
#include "profiling/signal/signal_source.h"
#include "sdk/worker/helper_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    EXPORT_TIMEOUT_MS = 10000,
    LEAST_DRAIN_NS = 5 * OTELI_NS_PER_MS,
    SIGNAL_DRAIN_NS = 25 * OTELI_NS_PER_MS,
    PERF_DRAIN_NS = 100 * OTELI_NS_PER_MS,
    IDLE_DRAIN_NS = 200 * OTELI_NS_PER_MS, /* so that histories of labels go back as far */
    SHORT_DRAINS = 256,
    KEPT_NS = 50 * OTELI_NS_PER_MS
};

/* --- also called by threads that start, flush and stop the profiler --- */

bool oteli_profiler_wait(struct otel_profiler *profiler, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(&profiler->changed, &profiler->mutex) == 0;
    const struct timespec deadline = oteli_ns_timespec(deadline_ns);
    return pthread_cond_timedwait(&profiler->changed, &profiler->mutex, &deadline) == 0;
}

void oteli_profiler_stop_source(struct otel_profiler *profiler, bool waits)
{
    if (waits)
        pthread_mutex_lock(&profiler->source_mutex);
    else if (pthread_mutex_trylock(&profiler->source_mutex) != 0)
        return;
    void *state = profiler->source_state;
    profiler->source_state = NULL;
    if (state != NULL) {
        oteli_labels_switch(false);
        profiler->source->stop(state);
    }
    pthread_mutex_unlock(&profiler->source_mutex);
}

void oteli_profiler_free(struct otel_profiler *profiler)
{
    oteli_profile_builder_free(profiler->builder);
    pthread_mutex_destroy(&profiler->source_mutex);
    pthread_mutex_destroy(&profiler->mutex);
    pthread_cond_destroy(&profiler->changed);
    free(profiler);
}

/* --- counting --- */

static void publish_locked(struct otel_profiler *profiler)
{
    const struct oteli_labels_counts labels = oteli_labels_counts();
    profiler->counted.labels_refused = labels.refused - profiler->refused_before;
    profiler->counted.labels_cut = labels.cut - profiler->cut_before;
    profiler->stats = profiler->counted;
}

static void publish(struct otel_profiler *profiler)
{
    pthread_mutex_lock(&profiler->mutex);
    publish_locked(profiler);
    pthread_mutex_unlock(&profiler->mutex);
}

static void count_found(otel_profiler_stats *counted, enum oteli_found found)
{
    uint64_t *const counts[] = {[OTELI_FOUND_BY_CHAIN] = &counted->by_chain,
                                [OTELI_FOUND_BY_SCAN] = &counted->by_scan,
                                [OTELI_FOUND_BY_THREAD] = &counted->by_thread,
                                [OTELI_UNLABELLED] = &counted->unlabelled,
                                [OTELI_NO_HISTORY] = &counted->no_history};
    counted->samples++;
    ++*counts[found];
}

/* --- samples --- */

static void take(void *state, const struct oteli_sample *sample)
{
    struct otel_profiler *profiler = state;
    oteli_resolve(sample, &profiler->resolved);
    count_found(&profiler->counted, profiler->resolved.found);
    if (!oteli_profile_builder_add(profiler->builder, &profiler->resolved))
        profiler->counted.dropped++;
}

/* How long until the next drain: no ring is more than half full by then. It looks often for a while
 * when rings, or histories of labels, have turned out too short, and seldom while nothing
 * happens. The signal source finds new threads when it is drained, and what they have done until
 * then is not seen. */
static uint64_t pause_ns(struct otel_profiler *profiler, uint64_t samples, uint64_t troubled)
{
    if (troubled * 16 > samples)
        profiler->short_drains = SHORT_DRAINS;
    else if (profiler->short_drains != 0)
        profiler->short_drains--;
    if (profiler->short_drains != 0)
        return LEAST_DRAIN_NS;
    const uint64_t half_full_ns = oteli_profiler_half_full_ns(&profiler->plan.source);
    const uint64_t most_ns = samples == 0                                       ? IDLE_DRAIN_NS
                             : profiler->counted.source == OTEL_PROFILER_SIGNAL ? SIGNAL_DRAIN_NS
                                                                                : PERF_DRAIN_NS;
    if (half_full_ns < LEAST_DRAIN_NS)
        return LEAST_DRAIN_NS;
    return half_full_ns < most_ns ? half_full_ns : most_ns;
}

/* False: there is no source any more. */
static bool drain(struct otel_profiler *profiler)
{
    otel_profiler_stats *counted = &profiler->counted;
    const otel_profiler_stats before = *counted;
    struct oteli_source_counts counts = {0};
    pthread_mutex_lock(&profiler->source_mutex);
    const bool has_source = profiler->source_state != NULL;
    if (has_source)
        profiler->source->drain(profiler->source_state, take, profiler, &counts);
    pthread_mutex_unlock(&profiler->source_mutex);
    if (!has_source)
        return false;
    if (counts.ring_bytes != 0 && counts.ring_bytes < profiler->plan.source.ring_bytes)
        profiler->plan.source.ring_bytes = (uint32_t)counts.ring_bytes;
    counted->kernel_lost = counts.lost;
    counted->missed_periods = counts.missed_periods;
    counted->processor_ns = counts.processor_ns;
    publish(profiler);
    const uint64_t troubled =
        counted->kernel_lost - before.kernel_lost + counted->no_history - before.no_history;
    uint64_t until_next_ns = pause_ns(profiler, counted->samples - before.samples, troubled);
    if (counts.soon_ns != 0 && counts.soon_ns < until_next_ns)
        until_next_ns = counts.soon_ns;
    profiler->next_drain_ns = oteli_monotonic_ns() + until_next_ns;
    return true;
}

/* --- exports --- */

static int64_t left_ms(uint64_t deadline_ns)
{
    const uint64_t now_ns = oteli_monotonic_ns();
    if (deadline_ns <= now_ns)
        return 0;
    const uint64_t ms = (deadline_ns - now_ns) / OTELI_NS_PER_MS;
    return ms < INT32_MAX ? (int64_t)ms : INT32_MAX;
}

/* While an exporter waits. What is sampled then gets into the next profile. */
static int drain_meanwhile(void *state)
{
    struct otel_profiler *profiler = state;
    if (oteli_monotonic_ns() >= profiler->next_drain_ns && !drain(profiler))
        return INT_MAX;
    const int64_t ms = left_ms(profiler->next_drain_ns);
    return ms < 1 ? 1 : (int)ms;
}

/* Gives what has become of it, and how many of its samples are lost where others have arrived. */
static otel_status hand_over(struct otel_profiler *profiler, const otel_profile *profile,
                             uint64_t deadline_ns, uint64_t *dropped)
{
    struct oteli_profile_exporting exporting = {.meanwhile = drain_meanwhile, .state = profiler};
    otel_profile exported = *profile;
    exported.exporting = &exporting;
    pthread_mutex_lock(&profiler->mutex);
    profiler->is_exporting = true;
    profiler->is_last_export = profiler->is_stopping;
    pthread_mutex_unlock(&profiler->mutex);
    const otel_status status = profiler->exporter.export_profile(profiler->exporter.state,
                                                                 &exported, left_ms(deadline_ns));
    pthread_mutex_lock(&profiler->mutex);
    profiler->is_exporting = false;
    pthread_mutex_unlock(&profiler->mutex);
    *dropped = exporting.dropped;
    return status;
}

/* What has been sampled since the last one. True: all of it is delivered. */
static bool export_now(struct otel_profiler *profiler, uint64_t deadline_ns)
{
    otel_profiler_stats *counted = &profiler->counted;
    const uint64_t samples = oteli_profile_builder_samples(profiler->builder);
    if (samples == 0)
        return true;
    const uint64_t now_ns = oteli_monotonic_ns();
    if (profiler->exporter.wants_names && deadline_ns > now_ns)
        oteli_profile_builder_name(profiler->builder, now_ns + (deadline_ns - now_ns) / 4);
    const otel_profile *profile = oteli_profile_builder_finish(profiler->builder);
    if (profile == NULL) {
        counted->dropped += samples;
        OTELI_LOG(OTEL_LOG_WARN, "profiler: no memory for a profile of %" PRIu64 " samples",
                  samples);
        return false;
    }
    counted->links_over += profile->links_over;
    uint64_t dropped;
    const otel_status status = hand_over(profiler, profile, deadline_ns, &dropped);
    oteli_profile_builder_forget(profiler->builder);
    if (status != OTEL_OK || dropped > samples)
        dropped = samples;
    counted->exported += samples - dropped;
    counted->dropped += dropped;
    counted->profiles += status == OTEL_OK;
    if (dropped == 0)
        return true;
    /* What happened the exporter has said. */
    OTELI_LOG(OTEL_LOG_DEBUG,
              "profiler: of a profile %" PRIu64 " of %" PRIu64 " samples are lost: %s", dropped,
              samples, otel_status_string(status));
    return false;
}

/* Requests for a flush that have come until now; 0: none. */
static uint64_t flush_wanted(struct otel_profiler *profiler, uint64_t *deadline_ns)
{
    pthread_mutex_lock(&profiler->mutex);
    const uint64_t wanted =
        profiler->flush_wanted != profiler->flush_done ? profiler->flush_wanted : 0;
    *deadline_ns = profiler->flush_deadline_ns;
    profiler->flush_deadline_ns = 0;
    pthread_mutex_unlock(&profiler->mutex);
    return wanted;
}

static void flush(struct otel_profiler *profiler, uint64_t ticket, uint64_t deadline_ns)
{
    const bool is_delivered = export_now(profiler, deadline_ns);
    pthread_mutex_lock(&profiler->mutex);
    profiler->flush_done = ticket;
    if (!is_delivered)
        profiler->flush_lost = ticket;
    publish_locked(profiler);
    pthread_cond_broadcast(&profiler->changed);
    pthread_mutex_unlock(&profiler->mutex);
}

/* --- the thread --- */

/* Until there is something to do. False: it is to stop. */
static bool wait_for_turn(struct otel_profiler *profiler)
{
    const uint64_t until_ns = profiler->next_drain_ns < profiler->next_export_ns
                                  ? profiler->next_drain_ns
                                  : profiler->next_export_ns;
    pthread_mutex_lock(&profiler->mutex);
    while (!profiler->is_stopping && profiler->flush_wanted == profiler->flush_done &&
           oteli_profiler_wait(profiler, until_ns))
        continue;
    const bool goes_on = !profiler->is_stopping;
    pthread_mutex_unlock(&profiler->mutex);
    return goes_on;
}

static void work(struct otel_profiler *profiler)
{
    while (wait_for_turn(profiler)) {
        uint64_t deadline_ns;
        const uint64_t ticket = flush_wanted(profiler, &deadline_ns);
        (void)drain(profiler);
        const uint64_t now_ns = oteli_monotonic_ns();
        if (ticket != 0) {
            flush(profiler, ticket, deadline_ns);
        } else if (now_ns >= profiler->next_export_ns) {
            (void)export_now(profiler, now_ns + (uint64_t)EXPORT_TIMEOUT_MS * OTELI_NS_PER_MS);
            publish(profiler);
        }
        if (now_ns >= profiler->next_export_ns)
            profiler->next_export_ns = now_ns + profiler->plan.export_ns;
    }
}

/* Whose state it is has to be known before there is one: a child forgets it from then on. */
static int try_source(struct otel_profiler *profiler, const struct oteli_source *source)
{
    profiler->source = source;
    return source->start(&profiler->plan.source, &profiler->source_state);
}

/* perf, or the signal where that is allowed; `counted` says which, and why. */
static otel_status open_source(struct otel_profiler *profiler)
{
    const otel_profiler_source wanted = profiler->plan.wanted;
    otel_profiler_stats *counted = &profiler->counted;
    int error = 0;
    counted->source = OTEL_PROFILER_PERF;
    snprintf(counted->why, sizeof counted->why, "%s",
             wanted == OTEL_PROFILER_AUTO ? "perf events are allowed" : "it was asked for");
    if (wanted != OTEL_PROFILER_SIGNAL) {
        error = try_source(profiler, profiler->perf);
        counted->refused_errno = error;
        if (error != 0)
            snprintf(counted->why, sizeof counted->why, "perf events: %s, errno %d",
                     oteli_profiler_reason(OTEL_PROFILER_PERF, error), error);
    }
    if (wanted == OTEL_PROFILER_SIGNAL || (error != 0 && wanted == OTEL_PROFILER_AUTO)) {
        counted->source = OTEL_PROFILER_SIGNAL;
        profiler->plan.source.ring_bytes = profiler->plan.source.signal_bytes;
        profiler->plan.source.sample_bytes = OTELI_SIGNAL_SAMPLE_BYTES;
        error = try_source(profiler, profiler->signal);
    }
    if (error == 0) {
        OTELI_LOG_ALWAYS(OTEL_LOG_INFO, "profiler: sampling with %s (%s)",
                         counted->source == OTEL_PROFILER_PERF ? "perf events" : "a signal",
                         counted->why);
        return OTEL_OK;
    }
    if (counted->source == OTEL_PROFILER_SIGNAL)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "profiler: not started: signal %d: %s, errno %d (%s)",
                         profiler->plan.source.signal_number,
                         oteli_profiler_reason(OTEL_PROFILER_SIGNAL, error), error, counted->why);
    else
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "profiler: not started: %s", counted->why);
    return error == ENOSYS ? OTEL_ERROR_UNSUPPORTED : OTEL_ERROR_SYSTEM;
}

static otel_status begin(struct otel_profiler *profiler)
{
    profiler->builder =
        oteli_profile_builder_new(profiler->plan.source.period_ns, profiler->plan.max_links);
    if (profiler->builder == NULL)
        return OTEL_ERROR_NO_MEMORY;
    const otel_status status = open_source(profiler);
    if (status == OTEL_OK) {
        const uint64_t now_ns = oteli_monotonic_ns();
        profiler->next_export_ns = now_ns + profiler->plan.export_ns;
        oteli_labels_switch(true);
        (void)drain(profiler); /* says how large the rings have become */
    }
    return status;
}

/* The last samples, and the last export, for which part of the time until the deadline is left. */
static void finish(struct otel_profiler *profiler)
{
    (void)drain(profiler);
    oteli_profiler_stop_source(profiler, true);
    pthread_mutex_lock(&profiler->mutex);
    uint64_t deadline_ns = profiler->stop_deadline_ns;
    pthread_mutex_unlock(&profiler->mutex);
    const uint64_t now_ns = oteli_monotonic_ns();
    if (deadline_ns > now_ns) {
        const uint64_t share_ns = (deadline_ns - now_ns) / 20;
        deadline_ns -= share_ns < KEPT_NS ? share_ns : KEPT_NS;
    }
    const bool is_delivered = export_now(profiler, deadline_ns);
    pthread_mutex_lock(&profiler->mutex);
    if (!is_delivered)
        profiler->has_lost = true;
    publish_locked(profiler);
    pthread_mutex_unlock(&profiler->mutex);
}

static void report_start(struct otel_profiler *profiler, otel_status status)
{
    pthread_mutex_lock(&profiler->mutex);
    publish_locked(profiler);
    profiler->start_status = status;
    profiler->is_started = true;
    pthread_cond_broadcast(&profiler->changed);
    pthread_mutex_unlock(&profiler->mutex);
}

/* No thread wakes the exporter from here on. */
static void let_exporter_go(struct otel_profiler *profiler)
{
    pthread_mutex_lock(&profiler->mutex);
    profiler->has_exporter = false;
    pthread_mutex_unlock(&profiler->mutex);
    if (profiler->exporter.free != NULL)
        profiler->exporter.free(profiler->exporter.state);
}

void *oteli_profiler_main(void *argument)
{
    struct otel_profiler *profiler = argument;
    oteli_helper_begin("otel-profiler");
    pthread_mutex_lock(&profiler->mutex); /* until the maker waits: run, in profiler.c */
    pthread_mutex_unlock(&profiler->mutex);
    const otel_status status = begin(profiler);
    report_start(profiler, status);
    if (status == OTEL_OK) {
        work(profiler);
        finish(profiler);
    }
    let_exporter_go(profiler);
    pthread_mutex_lock(&profiler->mutex);
    profiler->is_done = true;
    const bool frees_itself = profiler->frees_itself;
    pthread_cond_broadcast(&profiler->changed);
    pthread_mutex_unlock(&profiler->mutex);
    if (frees_itself)
        oteli_profiler_free(profiler);
    return NULL;
}
