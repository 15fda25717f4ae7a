/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/export.c - hand batches to exporters, hold them to their deadline, count what became
 * of the spans. The worker, or the thread that holds the mutex of a synchronous engine. */
#include "sdk/worker/export.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "common/text/text.h"
#include "sdk/worker/on_idle.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

void otel_export_reject(otel_export *call, size_t count)
{
    ((struct oteli_call *)(void *)call)->rejected += count;
}

void otel_export_drop(otel_export *call, otel_drop_reason reason, size_t count)
{
    /* Perhaps the exporter was built for a later version. */
    const bool is_known = reason >= OTEL_DROP_QUEUE_FULL && reason < OTEL_DROP_REASON_COUNT;
    ((struct oteli_call *)(void *)call)->dropped[is_known ? reason : OTEL_DROP_PERMANENT_ERROR] +=
        count;
}

void otel_export_spool(otel_export *call, size_t count)
{
    ((struct oteli_call *)(void *)call)->spooled += count;
}

uint64_t oteli_export_deadline(const struct oteli_engine *engine, uint64_t started_ns)
{
    const uint64_t timeout = engine->settings.export_timeout_ns;
    const uint64_t own = timeout > UINT64_MAX - started_ns ? UINT64_MAX : started_ns + timeout;
    const uint64_t stop = oteli_load_acquire_64(&engine->stop_deadline_ns);
    return stop != 0 && stop < own ? stop : own;
}

void oteli_export_wake(struct oteli_engine *engine)
{
    for (size_t i = 0; i < engine->pipeline_count; i++) {
        const otel_exporter *exporter = &engine->pipelines[i].exporter;
        if (exporter->wake != NULL)
            exporter->wake(exporter->state);
    }
}

/* What the exporter has not said anything about is not delivered. */
static void time_out(struct oteli_call *call)
{
    uint64_t reported = call->rejected + call->spooled;
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        reported += call->dropped[i];
    const uint64_t count = call->view.batch->count;
    if (reported < count)
        call->dropped[OTEL_DROP_EXPORT_TIMEOUT] += count - reported;
}

/* One line when losses begin, and one with their sum when they are over. */
static void tell(struct oteli_pipeline *pipeline, uint64_t lost, otel_drop_reason reason)
{
    const uint64_t meanwhile = pipeline->lost_meanwhile;
    pipeline->lost_meanwhile = lost != 0 ? meanwhile + lost : 0;
    if (lost != 0 && meanwhile == 0)
        OTELI_LOG_LOST(OTEL_LOG_WARN, lost, "%s: losing spans (%s): %" PRIu64 " span%s lost so far",
                       pipeline->exporter.name, otel_drop_reason_string(reason), lost,
                       oteli_is_or_are(lost));
    if (lost == 0 && meanwhile != 0)
        OTELI_LOG_LOST(OTEL_LOG_WARN, meanwhile,
                       "%s: delivering again, %" PRIu64 " span%s lost meanwhile",
                       pipeline->exporter.name, meanwhile, meanwhile == 1 ? " was" : "s were");
}

void oteli_export_tell_drops(struct oteli_engine *engine)
{
    if (engine->pipeline_count == 0)
        return; /* without an exporter spans are discarded, not lost */
    struct oteli_full_queue now = {0};
    for (const struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next) {
        if (oteli_load_acquire_64(&at->generation) != engine->sdk.generation)
            continue;
        now.spans += oteli_load_relaxed_64(&at->counts.dropped[OTEL_DROP_QUEUE_FULL]);
        now.bytes += oteli_load_relaxed_64(&at->counts.dropped[OTEL_DROP_BYTE_LIMIT]);
    }
    const bool is_for_bytes = now.bytes - engine->told.bytes > now.spans - engine->told.spans;
    const uint64_t more = now.spans - engine->told.spans + now.bytes - engine->told.bytes;
    const uint64_t meanwhile = engine->drops_meanwhile;
    engine->told = now;
    engine->drops_meanwhile = more != 0 ? meanwhile + more : 0;
    if (more != 0 && meanwhile == 0 && is_for_bytes)
        OTELI_LOG_LOST(OTEL_LOG_WARN, more,
                       "losing spans: the queue is full with %" PRIu64 " bytes; %" PRIu64
                       " span%s lost so far (OTEL_C_QUEUE_MAX_BYTES makes room for more)",
                       engine->settings.queue_max_bytes, more, oteli_is_or_are(more));
    else if (more != 0 && meanwhile == 0)
        OTELI_LOG_LOST(OTEL_LOG_WARN, more,
                       "losing spans: the queue is full with %" PRIu64 " spans; %" PRIu64
                       " span%s lost so far (OTEL_BSP_MAX_QUEUE_SIZE makes room for more)",
                       engine->settings.queue_size, more, oteli_is_or_are(more));
    if (more == 0 && meanwhile != 0)
        OTELI_LOG_LOST(OTEL_LOG_WARN, meanwhile,
                       "there is room in the queue again, %" PRIu64 " span%s lost meanwhile",
                       meanwhile, meanwhile == 1 ? " was" : "s were");
}

static void count_call(struct oteli_pipeline *pipeline, const struct oteli_call *call, uint64_t ns)
{
    uint64_t left = call->view.batch->count;
    const uint64_t rejected = call->rejected < left ? call->rejected : left;
    oteli_count(&pipeline->rejected, rejected);
    left -= rejected;
    const uint64_t spooled = call->spooled < left ? call->spooled : left;
    oteli_count(&pipeline->spooled, spooled);
    left -= spooled;
    uint64_t lost = 0;
    uint64_t most = 0;
    otel_drop_reason reason = OTEL_DROP_QUEUE_FULL;
    for (unsigned i = 0; i < OTEL_DROP_REASON_COUNT; i++) {
        const uint64_t dropped = call->dropped[i] < left ? call->dropped[i] : left;
        oteli_count(&pipeline->dropped[i], dropped);
        oteli_count(&pipeline->exporter_dropped[i], dropped);
        left -= dropped;
        lost += dropped;
        if (dropped > most) {
            most = dropped;
            reason = (otel_drop_reason)i;
        }
    }
    oteli_count(&pipeline->delivered, left);
    oteli_count(&pipeline->batches, 1);
    const unsigned outcome = lost != 0       ? OTELI_EXPORT_DROPPED + (unsigned)reason
                             : rejected != 0 ? OTELI_EXPORT_REJECTED
                                             : OTELI_EXPORT_SUCCEEDED;
    oteli_count(&pipeline->export_ns[outcome], ns);
    oteli_count(&pipeline->export_count[outcome], 1);
    if (lost != 0 || (left != 0 && spooled == 0)) /* rejected or on disk is neither of the two */
        tell(pipeline, lost, reason);
}

/* The exporter has answered, or its time is over. */
static void end_call(struct oteli_pipeline *pipeline, struct oteli_call *call, uint64_t started_ns,
                     otel_export_result result)
{
    if (result == OTEL_EXPORT_PENDING)
        time_out(call);
    count_call(pipeline, call, oteli_monotonic_ns() - started_ns);
    oteli_on_idle_soon(pipeline);
}

void oteli_pipeline_export(struct oteli_pipeline *pipeline, const otel_batch *batch,
                           uint64_t deadline_ns)
{
    const otel_exporter *exporter = &pipeline->exporter;
    const uint64_t started_ns = oteli_monotonic_ns();
    struct oteli_call call = {.view = {.batch = batch, .deadline_ns = deadline_ns}};
    otel_export_result result = exporter->export_batch(exporter->state, &call.view);
    bool is_over = exporter->poll == NULL;
    while (result == OTEL_EXPORT_PENDING && !is_over) {
        const int left_ms = oteli_ms_until(deadline_ns);
        is_over = left_ms == 0;
        result = exporter->poll(exporter->state, &call.view, left_ms, is_over);
    }
    end_call(pipeline, &call, started_ns, result);
}

void oteli_pipeline_drop(struct oteli_pipeline *pipeline, otel_drop_reason reason, uint64_t count)
{
    oteli_count(&pipeline->dropped[reason], count);
    tell(pipeline, count, reason);
}

/* The exporter of the current pipeline has answered, or its time is over. */
static void finish_pipeline(struct oteli_engine *engine, otel_export_result result)
{
    struct oteli_sending *sending = &engine->sending;
    end_call(&engine->pipelines[sending->pipeline], &sending->call, sending->started_ns, result);
    sending->pipeline++;
}

static void set_time(const struct oteli_engine *engine, struct oteli_call *call)
{
    call->view.deadline_ns = oteli_export_deadline(engine, engine->sending.started_ns);
    call->view.is_stopping = oteli_load_acquire_64(&engine->stop_deadline_ns) != 0;
}

bool oteli_export_ask(struct oteli_engine *engine)
{
    struct oteli_sending *sending = &engine->sending;
    for (; sending->pipeline < engine->pipeline_count;) {
        const otel_exporter *exporter = &engine->pipelines[sending->pipeline].exporter;
        struct oteli_call *call = &sending->call;
        memset(call, 0, sizeof *call);
        sending->started_ns = oteli_monotonic_ns();
        call->view.batch = sending->batch;
        set_time(engine, call);
        oteli_count(&engine->pipelines[sending->pipeline].handed, sending->batch->count);
        const otel_export_result result = exporter->export_batch(exporter->state, &call->view);
        if (result == OTEL_EXPORT_PENDING && exporter->poll != NULL)
            return false;
        finish_pipeline(engine, result);
    }
    return true;
}

/* While one exporter is pending. Those behind it are given this batch first. */
static void show_next(struct oteli_engine *engine)
{
    struct oteli_sending *sending = &engine->sending;
    for (; sending->next != NULL && sending->shown <= sending->pipeline; sending->shown++) {
        const otel_exporter *exporter = &engine->pipelines[sending->shown].exporter;
        if (exporter->prepare != NULL)
            exporter->prepare(exporter->state, sending->next);
    }
}

bool oteli_export_continue(struct oteli_engine *engine, bool may_wait)
{
    struct oteli_sending *sending = &engine->sending;
    while (sending->pipeline < engine->pipeline_count) {
        const otel_exporter *exporter = &engine->pipelines[sending->pipeline].exporter;
        struct oteli_call *call = &sending->call;
        show_next(engine);
        set_time(engine, call);
        const int left_ms = oteli_ms_until(call->view.deadline_ns);
        const otel_export_result result =
            exporter->poll(exporter->state, &call->view, may_wait ? left_ms : 0, left_ms == 0);
        if (result == OTEL_EXPORT_PENDING && left_ms != 0) {
            if (may_wait)
                continue;
            return false;
        }
        finish_pipeline(engine, result);
        (void)oteli_export_ask(engine);
    }
    sending->batch = NULL;
    return true;
}

void oteli_export_batch(struct oteli_engine *engine, otel_batch *batch)
{
    engine->sending = (struct oteli_sending){.batch = batch};
    (void)oteli_export_ask(engine);
    (void)oteli_export_continue(engine, true);
}

void oteli_export_prepare(struct oteli_engine *engine, const otel_batch *next)
{
    engine->sending.next = next;
}

void oteli_export_flush(struct oteli_engine *engine, uint64_t deadline_ns)
{
    for (size_t i = 0; i < engine->pipeline_count; i++) {
        const otel_exporter *exporter = &engine->pipelines[i].exporter;
        if (exporter->flush != NULL &&
            exporter->flush(exporter->state, oteli_ms_until(deadline_ns)) != OTEL_OK)
            oteli_count(&engine->flush_failures, 1);
    }
}

void oteli_export_fini(struct oteli_engine *engine)
{
    for (size_t i = 0; i < engine->pipeline_count; i++) {
        otel_exporter *exporter = &engine->pipelines[i].exporter;
        if (exporter->free != NULL)
            exporter->free(exporter->state);
        *exporter = (otel_exporter){.name = exporter->name};
    }
}

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

otel_exporter oteli_exporter_renew(const otel_exporter *parents)
{
    otel_exporter made = {0};
    otel_status status = OTEL_OK;
    if (can_be_renewed(parents))
        status = parents->renew(parents->state, &made);
    if (status != OTEL_OK)
        OTELI_LOG_ALWAYS(OTEL_LOG_WARN, "%s: nothing is exported in this forked child: %s",
                         parents->name, otel_status_string(status));
    if (status == OTEL_OK && made.export_batch != NULL)
        return made;
    return OTEL_EXPORTER(.name = parents->name, .export_batch = drop_as_forked);
}
