/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/drive.c - the contracts are in sdk/worker/drive.h.
 *
 * A program's event loop waits for a descriptor (event_loop_fds.h) and then calls otel_poll(0). It
 * is readable also when it is time for something, because that may have been decided by a thread
 * that only wanted a flush, while the loop was waiting already. */
#include "sdk/worker/drive.h"

#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "sdk/engine/deadline.h"
#include "sdk/worker/export.h"
#include "sdk/worker/on_idle.h"
#include "sdk/worker/worker.h"

#include <errno.h>

enum {
    BLIND_MS = 5,   /* between looks at an exporter without a descriptor */
    MOST_ROUNDS = 8 /* without a look at the time: threads may be faster than an exporter */
};

bool oteli_drive_init(struct oteli_engine *engine)
{
    engine->event_fds.is_chosen = true;
    engine->event_fds.next_ns = UINT64_MAX;
    engine->event_fds.rests = 1;
    if (!oteli_event_fds_open(&engine->event_fds))
        return false;
    oteli_waker_set_fd(&engine->waker, engine->event_fds.pair[1].fd,
                       engine->event_fds.pair[1].inode);
    return true;
}

/* The program has closed what it did not know. What the waker was to say meanwhile is lost, so
 * the caller looks for it. */
static bool reopen(struct oteli_engine *engine)
{
    const uint32_t before = oteli_load_relaxed_32(&engine->event_fds.epoll_fd);
    if (!oteli_event_fds_open(&engine->event_fds))
        return false;
    oteli_waker_set_fd(&engine->waker, engine->event_fds.pair[1].fd,
                       engine->event_fds.pair[1].inode);
    OTELI_LOG(OTEL_LOG_WARN, "descriptors of the SDK were closed%s",
              oteli_load_relaxed_32(&engine->event_fds.epoll_fd) != before
                  ? "; otel_poll_fd is another one now"
                  : "");
    return true;
}

static void wait_until(struct oteli_engine *engine, uint64_t until_ns)
{
    if (oteli_event_fds_wait(&engine->event_fds, until_ns))
        return;
    if (!reopen(engine))
        oteli_deadline_sleep(
            oteli_min(until_ns, oteli_monotonic_ns() + (uint64_t)BLIND_MS * OTELI_NS_PER_MS));
}

/* Watch the exporter that is being waited for. Returns when to look at it in any case. */
static uint64_t watch_exporter(struct oteli_engine *engine)
{
    const struct oteli_sending *sending = &engine->sending;
    const otel_exporter *exporter = &engine->pipelines[sending->pipeline].exporter;
    const uint64_t last_ns = oteli_export_deadline(engine, sending->started_ns);
    int timeout_ms = -1;
    const int fd =
        exporter->descriptor != NULL ? exporter->descriptor(exporter->state, &timeout_ms) : -1;
    if (!oteli_event_fds_watch(&engine->event_fds, fd) && (timeout_ms < 0 || timeout_ms > BLIND_MS))
        timeout_ms = BLIND_MS;
    if (timeout_ms < 0)
        return last_ns;
    return oteli_min(last_ns, oteli_monotonic_ns() + (uint64_t)timeout_ms * OTELI_NS_PER_MS);
}

/* What to wait for now. What an exporter says counts only while it is waited for. */
static uint64_t prepare_wait(struct oteli_engine *engine, enum oteli_round round, int64_t wanted,
                             uint64_t tick_ns)
{
    if (round == OTELI_ROUND_PENDING)
        return watch_exporter(engine);
    if (round == OTELI_ROUND_IDLE && oteli_waker_arm(&engine->waker, wanted))
        return oteli_on_idle_watch(engine, tick_ns);
    (void)oteli_event_fds_watch(&engine->event_fds, -1);
    return 0;
}

/* One step of the exporter thread's work, without waiting for an exporter. False: the SDK has
 * stopped. */
static bool step(struct oteli_engine *engine)
{
    uint64_t tick_ns = UINT64_MAX;
    int64_t wanted = 0;
    enum oteli_round round = OTELI_ROUND_WORKED;
    const uint64_t flush_heard = oteli_load_relaxed_64(&engine->flush_wanted);
    oteli_waker_disarm(&engine->waker);
    for (unsigned i = 0; i < MOST_ROUNDS && round == OTELI_ROUND_WORKED; i++)
        round = oteli_worker_round(engine, false, &wanted, &tick_ns);
    if (round == OTELI_ROUND_STOPPED) {
        oteli_event_fds_rest(&engine->event_fds);
        oteli_worker_finish(engine);
        return false;
    }
    const uint64_t next_ns = prepare_wait(engine, round, wanted, tick_ns);
    oteli_event_fds_set_timer(&engine->event_fds, next_ns);
    oteli_store_relaxed_64(&engine->event_fds.next_ns, next_ns);
    oteli_store_relaxed_32(&engine->event_fds.rests, engine->asleep);
    oteli_store_relaxed_64(&engine->event_fds.flush_heard, flush_heard);
    return true;
}

static bool has_reached(const uint64_t *counter, uint64_t target)
{
    return (int64_t)(oteli_load_acquire_64(counter) - target) >= 0;
}

/* Become the worker. False: another thread is it until the deadline, or there is no need any more:
 * `*counter` has reached `target`, or the SDK has stopped. */
static bool begin_driving(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                          uint64_t deadline_ns)
{
    bool is_wanted = true;
    pthread_mutex_lock(&engine->mutex);
    while (engine->event_fds.is_driven && is_wanted && !engine->done &&
           !has_reached(counter, target))
        is_wanted = oteli_deadline_wait(&engine->changed, &engine->mutex, deadline_ns);
    is_wanted = !engine->event_fds.is_driven && !engine->done && !engine->hangs &&
                !has_reached(counter, target);
    if (is_wanted)
        engine->event_fds.is_driven = true;
    pthread_mutex_unlock(&engine->mutex);
    return is_wanted;
}

static void end_driving(struct oteli_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    engine->event_fds.is_driven = false;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

/* An engine that otel_shutdown has given up, because we were away in an exporter, is ours to
 * bring to its end: no other thread does, and there is nothing to wait for any more. */
static bool goes_on(const struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                    uint64_t deadline_ns)
{
    return oteli_load_acquire_32(&engine->hangs) != 0 ||
           (!has_reached(counter, target) && oteli_monotonic_ns() < deadline_ns);
}

static void drive(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                  uint64_t deadline_ns)
{
    uint64_t until_ns = 0; /* hear the waker, but look before waiting */
    engine->event_fds.deadline_ns = deadline_ns;
    if (!oteli_event_fds_is_whole(&engine->event_fds))
        (void)reopen(engine);
    do {
        wait_until(engine, until_ns);
        if (!step(engine))
            break;
        until_ns = oteli_min(oteli_load_relaxed_64(&engine->event_fds.next_ns), deadline_ns);
    } while (goes_on(engine, counter, target, deadline_ns));
}

/* A thread that is cancelled meanwhile ends later: the engine would stay driven for ever. */
void oteli_drive_until(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                       uint64_t deadline_ns)
{
    const int saved_errno = errno;
    int cancel_state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    if (begin_driving(engine, counter, target, deadline_ns)) {
        drive(engine, counter, target, deadline_ns);
        end_driving(engine);
    }
    pthread_setcancelstate(cancel_state, NULL);
    errno = saved_errno;
}
