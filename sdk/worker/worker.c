/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/worker.c - when to export: the batch span processor's consumer. Runs on the thread
 * "otel-export", in otel_poll (poll.c), or by hand in tests.
 *
 * A round has one of these reasons, and otherwise nothing happens:
 *   a flush or the shutdown was asked for        everything, now
 *   the tick has come, or the queue was full     everything there is
 *   a whole batch waits, or should by now        whole batches only
 * It makes a pass over everything that is committed (drain.c). While one batch is on its way
 * the next one is filled and prepared; there is never more than one on its way. A pass can be
 * left wherever an exporter has to be waited for, and gone on with later.
 *
 * After a round without an export under way, exporters that want to are attended to (on_idle.c).
 *
 * The tick runs from the first span after a pause. Without spans there is no tick: the
 * worker marks itself asleep in oteli_asleep, looks once more a tick later for spans
 * that crossed the mark, and then sleeps until a span ends, or a thread asks for a flush or the
 * shutdown. */
#include "sdk/worker/worker.h"
#include "common/base/spin_lock.h"
#include "common/clock/clock.h"
#include "sdk/engine/queue.h"
#include "sdk/worker/export.h"
#include "sdk/worker/on_idle.h"

#include <string.h>

/* How long a process lives before the counters of its cores are compared. */
#define COMPARE_NS UINT64_C(3000000000)

/* How long a worker that has marked itself asleep looks once more, at least: a thread's
 * commit is on its way to us for much less. */
enum { GRACE_NS = 1000000 };

/* A timer is too coarse for batches that come faster than the first: several are taken at once.
 * Where they come more slowly than the second, spans are too rare to say that they are steady. */
enum { PACE_LEAST_NS = 500000, PACE_MOST_NS = 1000000000 };

/* When the worker has been woken by the first span after a pause, it looks once more after so long:
 * how fast do they come? */
enum { FIRST_LOOK_NS = 20000000 };

static uint64_t stop_deadline(const struct oteli_engine *engine)
{
    return oteli_load_acquire_64(&engine->stop_deadline_ns);
}

/* Let go of the batch that was exported. */
static void finish_export(struct oteli_engine *engine, otel_batch *batch)
{
    oteli_drain_release(engine, batch);
    engine->is_prepared = false;
}

/* Export the batch that is complete, unless the shutdown has no time left for it, and fill the
 * other one from now on. None is under way. */
static void send_batch(struct oteli_engine *engine)
{
    otel_batch *batch = engine->batch;
    const uint64_t stop_ns = stop_deadline(engine);
    if (stop_ns != 0 && oteli_monotonic_ns() >= stop_ns) {
        oteli_engine_drop(engine, OTEL_DROP_SHUTDOWN_TIMEOUT, batch->count);
        finish_export(engine, batch);
        return;
    }
    if (engine->pipeline_count == 0) {
        finish_export(engine, batch);
        return;
    }
    oteli_drain_look_up_names(engine);
    engine->batch = batch == &engine->batches[0] ? &engine->batches[1] : &engine->batches[0];
    if (batch->count == 0) {
        finish_export(engine, batch);
        return;
    }
    engine->sending = (struct oteli_sending){.batch = batch};
    (void)oteli_export_ask(engine);
}

/* Go on with the export that is under way, if any. False: it has to be waited for. */
static bool continue_export(struct oteli_engine *engine, bool may_wait)
{
    otel_batch *batch = engine->sending.batch;
    if (batch == NULL)
        return true;
    if (!oteli_export_continue(engine, may_wait))
        return false;
    finish_export(engine, batch);
    return true;
}

static void prepare(struct oteli_engine *engine)
{
    if (engine->is_prepared || engine->sending.batch == NULL)
        return;
    engine->is_prepared = true;
    oteli_drain_look_up_names(engine);
    if (engine->batch->count != 0)
        oteli_export_prepare(engine, engine->batch);
}

static bool is_full(const otel_batch *batch)
{
    return batch->count == batch->capacity;
}

/* Go on with the pass. True: everything that it is about is exported. */
static bool continue_pass(struct oteli_engine *engine, bool may_wait)
{
    struct oteli_pass *pass = &engine->pass;
    const bool all = pass->reason != OTELI_REASON_BATCH;
    for (;;) {
        if (!pass->is_drained && !engine->is_prepared && !is_full(engine->batch)) {
            /* Under the mutex, so that otel_shutdown does not give us up in the middle. Once it
             * has, nothing is ours to take: threads may have another SDK by now. */
            pthread_mutex_lock(&engine->mutex);
            pass->is_drained = engine->hangs || oteli_drain_continue(engine);
            pthread_mutex_unlock(&engine->mutex);
        }
        const bool is_complete = engine->is_prepared || is_full(engine->batch) ||
                                 (pass->is_drained && all && engine->batch->count != 0);
        if (is_complete)
            prepare(engine);
        if (!continue_export(engine, may_wait))
            return false;
        if (!is_complete)
            return true;
        send_batch(engine);
    }
}

static void set_tick(struct oteli_engine *engine, uint64_t now_ns)
{
    const uint64_t delay = engine->settings.schedule_delay_ns;
    engine->tick_ns = delay > UINT64_MAX - 1 - now_ns ? UINT64_MAX - 1 : now_ns + delay;
}

/* A thread has woken us by taking the mark away: the tick runs from here. */
static void notice_waking(struct oteli_engine *engine)
{
    if (!engine->asleep || oteli_sdk_is_asleep(&engine->sdk))
        return;
    const uint64_t now_ns = oteli_monotonic_ns();
    engine->asleep = false;
    set_tick(engine, now_ns);
    engine->pace = (struct oteli_pace){.taken = engine->drain.taken,
                                       .since_ns = now_ns,
                                       .batch_ns = UINT64_MAX,
                                       .look_ns = now_ns + FIRST_LOOK_NS};
}

static void on_tick(struct oteli_engine *engine, bool found)
{
    if (found) {
        engine->asleep = false;
        oteli_sdk_set_asleep(&engine->sdk, false);
        set_tick(engine, oteli_monotonic_ns());
    } else if (!engine->asleep) {
        engine->asleep = true;
        oteli_sdk_set_asleep(&engine->sdk, true);
        oteli_clock_rest();
        set_tick(engine, oteli_monotonic_ns());
        if (engine->settings.schedule_delay_ns < GRACE_NS)
            engine->tick_ns = oteli_monotonic_ns() + GRACE_NS;
    } else {
        engine->tick_ns = UINT64_MAX;
    }
}

/* Without a thread the exporters have until the latest deadline of those that wait for the flush,
 * also when another thread works that does not want to wait. */
static uint64_t flush_deadline(struct oteli_engine *engine)
{
    const uint64_t deadline_ns = oteli_export_deadline(engine, oteli_monotonic_ns());
    const struct oteli_event_fds *event_fds = &engine->event_fds;
    if (!event_fds->is_chosen)
        return deadline_ns;
    pthread_mutex_lock(&engine->mutex);
    const uint64_t asked_ns = engine->flush_deadline_ns;
    pthread_mutex_unlock(&engine->mutex);
    return oteli_min(deadline_ns,
                     asked_ns > event_fds->deadline_ns ? asked_ns : event_fds->deadline_ns);
}

static void on_flush(struct oteli_engine *engine)
{
    oteli_export_flush(engine, flush_deadline(engine));
    pthread_mutex_lock(&engine->mutex);
    if (oteli_load_acquire_64(&engine->flush_wanted) == engine->pass.flush)
        engine->flush_deadline_ns = 0;
    oteli_store_release_64(&engine->flush_done, engine->pass.flush);
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

static void on_stop(struct oteli_engine *engine)
{
    oteli_export_flush(engine, stop_deadline(engine));
    if (!engine->event_fds.is_chosen)
        oteli_on_idle_finish(engine, stop_deadline(engine));
    pthread_mutex_lock(&engine->mutex); /* otel_shutdown may be waking the exporters */
    pthread_mutex_unlock(&engine->mutex);
    oteli_export_fini(engine);
    oteli_drain_fini(engine);
}

/* App threads that are inside the SDK leave before the last pass; no other can enter it any
 * more. */
static void wait_for_borrowers(const struct oteli_engine *engine)
{
    const uint64_t deadline_ns = stop_deadline(engine);
    for (unsigned turn = 0; !oteli_sdk_wait_until_left(0) && oteli_monotonic_ns() < deadline_ns;
         turn++)
        oteli_spin_wait(turn);
}

static enum oteli_reason choose(struct oteli_engine *engine)
{
    if (stop_deadline(engine) != 0)
        return OTELI_REASON_STOP;
    if (oteli_load_acquire_64(&engine->flush_wanted) != engine->flush_done)
        return OTELI_REASON_FLUSH;
    const bool was_full = oteli_waker_take_drain_request(&engine->waker);
    if (engine->tick_ns != UINT64_MAX && oteli_monotonic_ns() >= engine->tick_ns)
        return OTELI_REASON_TICK;
    if (was_full)
        return OTELI_REASON_FULL;
    if (engine->pace.look_ns != UINT64_MAX && oteli_monotonic_ns() >= engine->pace.look_ns) {
        engine->pace.look_ns = UINT64_MAX;
        return OTELI_REASON_BATCH;
    }
    const size_t missing = engine->batch->capacity - engine->batch->count;
    return oteli_waker_waiting(&engine->waker) >= (int64_t)missing ? OTELI_REASON_BATCH
                                                                   : OTELI_REASON_NONE;
}

static void begin_pass(struct oteli_engine *engine, enum oteli_reason reason)
{
    engine->pass = (struct oteli_pass){
        .reason = reason,
        .is_under_way = true,
        .taken_before = engine->drain.taken,
        .left_over = engine->batch->count,
        .flush = oteli_load_acquire_64(&engine->flush_wanted),
    };
    if (reason == OTELI_REASON_NONE)
        return;
    if (reason == OTELI_REASON_STOP)
        wait_for_borrowers(engine);
    /* If there are no spans to take either, app threads need not report the full queue again until
     * there are. This is set before the worker looks: a thread that uses up its quota meanwhile
     * clears it. */
    if (reason == OTELI_REASON_FULL)
        oteli_exchange_full_32(&engine->full_but_empty, 1);
    pthread_mutex_lock(&engine->mutex);
    if (!engine->hangs)
        oteli_drain_begin(engine);
    pthread_mutex_unlock(&engine->mutex);
}

static void end_pass(struct oteli_engine *engine)
{
    const enum oteli_reason reason = engine->pass.reason;
    const bool found =
        engine->drain.taken != engine->pass.taken_before || engine->pass.left_over != 0;
    engine->pass.is_under_way = false;
    if (reason == OTELI_REASON_TICK || reason == OTELI_REASON_FLUSH ||
        (reason == OTELI_REASON_FULL && engine->drops_meanwhile == 0))
        oteli_export_tell_drops(engine);
    if (reason == OTELI_REASON_TICK)
        on_tick(engine, found);
    else if (reason == OTELI_REASON_FLUSH)
        on_flush(engine);
    else if (reason == OTELI_REASON_STOP)
        on_stop(engine);
    else if (reason == OTELI_REASON_FULL && found)
        oteli_store_relaxed_32(&engine->full_but_empty, 0);
}

enum oteli_round oteli_worker_round(struct oteli_engine *engine, bool may_wait, int64_t *wanted,
                                    uint64_t *deadline_ns)
{
    const struct oteli_pass *pass = &engine->pass;
    notice_waking(engine);
    if (!pass->is_under_way)
        begin_pass(engine, choose(engine));
    if (pass->reason != OTELI_REASON_NONE && !continue_pass(engine, may_wait))
        return OTELI_ROUND_PENDING;
    end_pass(engine);
    if (pass->reason == OTELI_REASON_STOP)
        return OTELI_ROUND_STOPPED;
    *wanted = (int64_t)(engine->batch->capacity - engine->batch->count);
    const uint64_t attend_ns = oteli_on_idle(engine);
    *deadline_ns = attend_ns < engine->tick_ns ? attend_ns : engine->tick_ns;
    /* A thread may have announced what it could not hand over yet. */
    const bool is_futile =
        pass->reason == OTELI_REASON_BATCH && engine->drain.taken == pass->taken_before;
    return pass->reason == OTELI_REASON_NONE || is_futile ? OTELI_ROUND_IDLE : OTELI_ROUND_WORKED;
}

/* How long a batch takes to come, by the last half of one or more; a few will do for the first
 * time. */
static void measure_pace(const struct oteli_engine *engine, struct oteli_pace *pace,
                         uint64_t now_ns)
{
    const uint64_t taken = engine->drain.taken - pace->taken;
    const uint64_t capacity = engine->batch->capacity;
    const uint64_t passed_ns = now_ns - pace->since_ns;
    if (taken > capacity / (pace->batch_ns == UINT64_MAX ? 32 : 2)) {
        const double batch_ns = (double)passed_ns * (double)capacity / (double)taken;
        pace->batch_ns = batch_ns <= PACE_MOST_NS ? (uint64_t)batch_ns : UINT64_MAX;
        pace->taken = engine->drain.taken;
        pace->since_ns = now_ns;
    } else if (passed_ns / 2 > pace->batch_ns) {
        pace->batch_ns = UINT64_MAX; /* they come no more */
    }
}

void oteli_worker_pace(struct oteli_engine *engine, uint64_t now_ns, int64_t *wanted,
                       uint64_t *deadline_ns)
{
    struct oteli_pace *pace = &engine->pace;
    const uint64_t capacity = engine->batch->capacity;
    measure_pace(engine, pace, now_ns);
    if (pace->batch_ns != UINT64_MAX)
        pace->look_ns = UINT64_MAX;
    if (pace->batch_ns < PACE_LEAST_NS) {
        const int64_t quarter = (int64_t)(engine->settings.queue_size / 4);
        pace->look_ns = now_ns + PACE_LEAST_NS;
        *wanted = *wanted > quarter ? *wanted : quarter;
    } else if (pace->batch_ns <= PACE_MOST_NS) {
        /* A little more than a batch, because spans do not come that evenly. */
        const uint64_t missing = capacity - engine->batch->count + capacity / 64;
        const double ns = (double)pace->batch_ns * (double)missing / (double)capacity;
        pace->look_ns = now_ns + (uint64_t)ns;
        *wanted += (int64_t)(capacity / 4);
    }
    *deadline_ns = oteli_min(*deadline_ns, pace->look_ns);
}

/* Once, when the process has lived for a while and the worker has nothing else to do: programs that
 * soon end shall not wait for it. */
static void compare_cores(struct oteli_engine *engine, uint64_t *compare_ns)
{
    if (oteli_monotonic_ns() < *compare_ns || stop_deadline(engine) != 0)
        return;
    *compare_ns = UINT64_MAX;
    if (oteli_clock_measure_offsets(&engine->stop_deadline_ns))
        oteli_sdk_reconsider_clock(&engine->sdk);
}

void oteli_worker_finish(struct oteli_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    oteli_store_release_32(&engine->done, 1);
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

void *oteli_worker_main(void *argument)
{
    struct oteli_engine *engine = argument;
    int64_t wanted = 0;
    uint64_t deadline_ns = UINT64_MAX;
    pthread_setname_np(pthread_self(), "otel-export");
    oteli_thread_silence();
    if (engine->settings.thread_started != NULL)
        engine->settings.thread_started(engine->settings.thread_started_state);
    uint64_t compare_ns = oteli_monotonic_ns() + COMPARE_NS;
    for (;;) {
        const uint32_t heard = oteli_waker_listen(&engine->waker);
        const enum oteli_round round = oteli_worker_round(engine, true, &wanted, &deadline_ns);
        if (round == OTELI_ROUND_STOPPED)
            break;
        if (round == OTELI_ROUND_WORKED)
            continue;
        compare_cores(engine, &compare_ns);
        oteli_worker_pace(engine, oteli_monotonic_ns(), &wanted, &deadline_ns);
        if (oteli_on_idle_has_descriptor(engine))
            oteli_on_idle_sleep(engine, heard, wanted, deadline_ns);
        else
            oteli_waker_sleep(&engine->waker, heard, wanted, deadline_ns);
    }
    oteli_worker_finish(engine);
    return NULL;
}
