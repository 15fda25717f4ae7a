/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker.c - when to export: the batch span processor's consumer. Runs on the thread
 * "otel-export", or by hand in tests.
 *
 * A round has one of these reasons, and otherwise nothing happens:
 *   a flush or the shutdown was asked for        everything, now
 *   the tick has come, or the queue was full     everything there is
 *   a whole batch waits                          whole batches only
 * The tick runs from the first span after a pause. Without spans there is no tick: the
 * worker marks itself asleep in oteli_asleep, looks once more a tick later for spans
 * that crossed the mark, and then sleeps until a span ends or somebody asks. */
#include "common/clock.h"
#include "sdk/engine.h"

#include <sched.h>

/* How long a worker that has marked itself asleep looks once more, at least: a thread's
 * commit is on its way to us for much less. */
enum { GRACE_NS = 1000000 };

/* Batches that take longer to come than this are rung for. */
enum { PACE_MOST_NS = 50000000 };

static uint64_t stop_deadline(const struct oteli_engine *engine)
{
    return oteli_load_acquire_64(&engine->stop_deadline_ns);
}

static void export_named(struct oteli_engine *engine)
{
    oteli_harvest_look_up_names(engine);
    if (engine->batch.count != 0)
        oteli_export_batch(engine, &engine->batch);
}

/* Export the batch, unless the shutdown has no time left for it. */
static void finish_batch(struct oteli_engine *engine)
{
    const uint64_t stop_ns = stop_deadline(engine);
    if (stop_ns != 0 && oteli_monotonic_ns() >= stop_ns)
        oteli_export_drop_all(engine, OTEL_DROP_SHUTDOWN_TIMEOUT, engine->batch.count);
    else
        export_named(engine);
    oteli_harvest_release(engine);
}

/* Begin a pass, or go on with it. True: it is done, or nothing is ours to take any more,
 * because otel_shutdown has given us up, and threads may have another SDK by now. The mutex
 * is held so that it does not give us up in the middle. */
static bool harvest(struct oteli_engine *engine, bool is_first)
{
    bool is_done = true;
    pthread_mutex_lock(&engine->mutex);
    if (!engine->hangs) {
        if (is_first)
            oteli_harvest_begin(engine);
        is_done = oteli_harvest_continue(engine);
    }
    pthread_mutex_unlock(&engine->mutex);
    return is_done;
}

/* One pass over everything committed; exports batches as they fill, and the last one even
 * if it is not full when `all`. Returns how many spans the pass found. */
static uint64_t run_pass(struct oteli_engine *engine, bool all)
{
    const uint64_t before = engine->harvest.taken - engine->batch.count;
    bool is_done = false;
    for (bool is_first = true; !is_done; is_first = false) {
        is_done = harvest(engine, is_first);
        const bool is_full = engine->batch.count == engine->batch.capacity;
        if (is_full || (is_done && all && engine->batch.count != 0))
            finish_batch(engine);
    }
    return engine->harvest.taken - before;
}

static void set_tick(struct oteli_engine *engine, uint64_t now_ns)
{
    const uint64_t delay = engine->schedule_delay_ns;
    engine->tick_ns = delay > UINT64_MAX - 1 - now_ns ? UINT64_MAX - 1 : now_ns + delay;
}

/* A thread has woken us by taking the mark away: the tick runs from here. */
static void notice_waking(struct oteli_engine *engine)
{
    if (!engine->asleep || oteli_sdk_is_asleep(&engine->sdk))
        return;
    engine->asleep = false;
    set_tick(engine, oteli_monotonic_ns());
}

static void on_tick(struct oteli_engine *engine)
{
    const uint64_t found = run_pass(engine, true);
    if (found != 0) {
        engine->asleep = false;
        oteli_sdk_set_asleep(&engine->sdk, false);
        set_tick(engine, oteli_monotonic_ns());
    } else if (!engine->asleep) {
        engine->asleep = true;
        oteli_sdk_set_asleep(&engine->sdk, true);
        oteli_clock_rest();
        set_tick(engine, oteli_monotonic_ns());
        if (engine->schedule_delay_ns < GRACE_NS)
            engine->tick_ns = oteli_monotonic_ns() + GRACE_NS;
    } else {
        engine->tick_ns = UINT64_MAX;
    }
}

/* Threads found no room. If there is nothing to take either, nobody needs to say so again
 * until that changes. Said before we look: a lot that is used up meanwhile unsays it. */
static void on_full(struct oteli_engine *engine)
{
    oteli_exchange_full_32(&engine->full_is_futile, 1);
    if (run_pass(engine, true) != 0)
        oteli_store_relaxed_32(&engine->full_is_futile, 0);
}

static void on_flush(struct oteli_engine *engine, uint64_t wanted)
{
    run_pass(engine, true);
    const uint64_t deadline_ns = oteli_export_deadline(engine, oteli_monotonic_ns());
    oteli_export_flush(engine, deadline_ns);
    pthread_mutex_lock(&engine->mutex);
    engine->flush_done = wanted;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

/* The last pass. App threads that are inside the SDK leave first; nobody new comes in. */
static void on_stop(struct oteli_engine *engine)
{
    const uint64_t deadline_ns = stop_deadline(engine);
    while (oteli_sdk_is_borrowed(&engine->sdk) && oteli_monotonic_ns() < deadline_ns)
        sched_yield();
    run_pass(engine, true);
    oteli_export_flush(engine, deadline_ns);
    pthread_mutex_lock(&engine->mutex); /* otel_shutdown may be waking the exporters */
    pthread_mutex_unlock(&engine->mutex);
    oteli_export_fini(engine);
    oteli_harvest_fini(engine);
}

bool oteli_worker_round(struct oteli_engine *engine, int64_t *wanted, uint64_t *deadline_ns)
{
    notice_waking(engine);
    if (stop_deadline(engine) != 0) {
        on_stop(engine);
        return false;
    }
    const uint64_t flush_wanted = oteli_load_acquire_64(&engine->flush_wanted);
    if (flush_wanted != engine->flush_done)
        on_flush(engine, flush_wanted);

    const bool was_full = oteli_bell_was_knocked(&engine->bell);
    if (engine->tick_ns != UINT64_MAX && oteli_monotonic_ns() >= engine->tick_ns)
        on_tick(engine);
    else if (was_full)
        on_full(engine);

    /* If there is a batch again after this pass, the worker does not sleep, and the next
     * round looks first whether something else was asked for. */
    const size_t capacity = engine->batch.capacity;
    if (oteli_bell_waiting(&engine->bell) >= (int64_t)(capacity - engine->batch.count))
        run_pass(engine, false);
    *wanted = (int64_t)(capacity - engine->batch.count);
    *deadline_ns = engine->tick_ns;
    return true;
}

void oteli_worker_pace(const struct oteli_engine *engine, struct oteli_pace *pace, uint64_t now_ns,
                       int64_t *wanted, uint64_t *deadline_ns)
{
    const uint64_t taken = engine->harvest.taken - pace->taken;
    const uint64_t capacity = engine->batch.capacity;
    if (taken < capacity || engine->queue_size < 2 * capacity)
        return; /* not a batch since the last sleep: be rung for */
    const uint64_t batch_ns = (now_ns - pace->since_ns) / (taken / capacity);
    pace->taken = engine->harvest.taken;
    pace->since_ns = now_ns;
    if (batch_ns > PACE_MOST_NS)
        return;
    const uint64_t next_ns = now_ns + batch_ns + batch_ns / 8;
    const int64_t half = (int64_t)(engine->queue_size / 2);
    if (next_ns < *deadline_ns)
        *deadline_ns = next_ns;
    if (*wanted < half)
        *wanted = half;
}

void *oteli_worker_main(void *argument)
{
    struct oteli_engine *engine = argument;
    struct oteli_pace pace = {0};
    int64_t wanted;
    uint64_t deadline_ns;
    if (oteli_clock_measure_offsets())
        oteli_sdk_reconsider_clock(&engine->sdk);
    for (;;) {
        const uint32_t heard = oteli_bell_listen(&engine->bell);
        if (!oteli_worker_round(engine, &wanted, &deadline_ns))
            break;
        oteli_worker_pace(engine, &pace, oteli_monotonic_ns(), &wanted, &deadline_ns);
        oteli_bell_sleep(&engine->bell, heard, wanted, deadline_ns);
    }
    pthread_mutex_lock(&engine->mutex);
    oteli_store_release_32(&engine->done, 1);
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
    return NULL;
}
