/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/poll.c - an SDK without a thread of its own: whoever calls otel_poll, otel_flush or
 * otel_shutdown is the worker for that time. Any thread, one at a time.
 *
 * A program's event loop waits for a descriptor (event_loop_fds.h) and then calls otel_poll(0). It
 * is readable also when it is time for something, because that may have been decided by a thread
 * that only wanted a flush, while the loop was waiting already. */
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "common/log.h"
#include "sdk/lifecycle/engine.h"

#include <errno.h>
#include <time.h>

enum {
    BLIND_MS = 5,   /* between looks at an exporter without a descriptor */
    NAP_MS = 1000,  /* between looks whether there still is an SDK that does nothing */
    MOST_ROUNDS = 8 /* without a look at the time: threads may be faster than an exporter */
};

bool oteli_driving_init(struct oteli_engine *engine)
{
    engine->driving.is_chosen = true;
    engine->driving.next_ns = UINT64_MAX;
    engine->driving.rests = 1;
    if (!oteli_driving_open(&engine->driving))
        return false;
    oteli_bell_set_fd(&engine->bell, engine->driving.pair[1], engine->driving.inodes[1]);
    return true;
}

void oteli_driving_fini(struct oteli_engine *engine)
{
    oteli_driving_close(&engine->driving);
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static void sleep_until(uint64_t deadline_ns)
{
    const struct timespec deadline = oteli_ns_timespec(deadline_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR)
        continue;
}

/* The program has closed what it did not know. What the bell was to say meanwhile is lost, so
 * the caller looks for it. */
static bool reopen(struct oteli_engine *engine)
{
    const uint32_t before = oteli_load_relaxed_32(&engine->driving.epoll_fd);
    if (!oteli_driving_open(&engine->driving))
        return false;
    oteli_bell_set_fd(&engine->bell, engine->driving.pair[1], engine->driving.inodes[1]);
    OTELI_LOG(OTEL_LOG_WARN, "descriptors of the SDK were closed%s",
              oteli_load_relaxed_32(&engine->driving.epoll_fd) != before
                  ? "; otel_poll_fd is another one now"
                  : "");
    return true;
}

static void wait_until(struct oteli_engine *engine, uint64_t until_ns)
{
    if (oteli_driving_wait(&engine->driving, until_ns))
        return;
    if (!reopen(engine))
        sleep_until(earlier(until_ns, oteli_monotonic_ns() + (uint64_t)BLIND_MS * OTELI_NS_PER_MS));
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
    if (!oteli_driving_watch(&engine->driving, fd) && (timeout_ms < 0 || timeout_ms > BLIND_MS))
        timeout_ms = BLIND_MS;
    if (timeout_ms < 0)
        return last_ns;
    return earlier(last_ns, oteli_monotonic_ns() + (uint64_t)timeout_ms * OTELI_NS_PER_MS);
}

/* What to wait for now. An exporter that is not waited for may say whatever it likes. */
static uint64_t prepare_wait(struct oteli_engine *engine, enum oteli_round round, int64_t wanted,
                             uint64_t tick_ns)
{
    if (round == OTELI_ROUND_PENDING)
        return watch_exporter(engine);
    if (round == OTELI_ROUND_IDLE && oteli_bell_arm(&engine->bell, wanted))
        return oteli_attend_watch(engine, tick_ns);
    (void)oteli_driving_watch(&engine->driving, -1);
    return 0;
}

/* Do what there is to do, without waiting for anybody. False: the SDK has stopped. */
static bool step(struct oteli_engine *engine)
{
    uint64_t tick_ns = UINT64_MAX;
    int64_t wanted = 0;
    enum oteli_round round = OTELI_ROUND_WORKED;
    const uint64_t flush_heard = oteli_load_relaxed_64(&engine->flush_wanted);
    oteli_bell_disarm(&engine->bell);
    for (unsigned i = 0; i < MOST_ROUNDS && round == OTELI_ROUND_WORKED; i++)
        round = oteli_worker_round(engine, false, &wanted, &tick_ns);
    if (round == OTELI_ROUND_STOPPED) {
        oteli_driving_rest(&engine->driving);
        oteli_worker_finish(engine);
        return false;
    }
    const uint64_t next_ns = prepare_wait(engine, round, wanted, tick_ns);
    oteli_driving_set_timer(&engine->driving, next_ns);
    oteli_store_relaxed_64(&engine->driving.next_ns, next_ns);
    oteli_store_relaxed_32(&engine->driving.rests, engine->asleep);
    oteli_store_relaxed_64(&engine->driving.flush_heard, flush_heard);
    return true;
}

static bool has_reached(const uint64_t *counter, uint64_t target)
{
    return (int64_t)(oteli_load_acquire_64(counter) - target) >= 0;
}

/* Become the worker, unless another thread is it until the deadline, or nobody has to be any
 * more: `*counter` has reached `target`, or the SDK has stopped. */
static bool begin_driving(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                          uint64_t deadline_ns)
{
    bool is_wanted = true;
    pthread_mutex_lock(&engine->mutex);
    while (engine->driving.is_driven && is_wanted && !engine->done && !has_reached(counter, target))
        is_wanted = oteli_lifecycle_wait(engine, deadline_ns);
    is_wanted = !engine->driving.is_driven && !engine->done && !engine->hangs &&
                !has_reached(counter, target);
    if (is_wanted)
        engine->driving.is_driven = true;
    pthread_mutex_unlock(&engine->mutex);
    return is_wanted;
}

static void end_driving(struct oteli_engine *engine)
{
    pthread_mutex_lock(&engine->mutex);
    engine->driving.is_driven = false;
    pthread_cond_broadcast(&engine->changed);
    pthread_mutex_unlock(&engine->mutex);
}

/* An engine that otel_shutdown has given up, because we were away in an exporter, is ours to
 * bring to its end: there is nobody else, and nothing to wait for any more. */
static bool goes_on(const struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                    uint64_t deadline_ns)
{
    return oteli_load_acquire_32(&engine->hangs) != 0 ||
           (!has_reached(counter, target) && oteli_monotonic_ns() < deadline_ns);
}

static void drive(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                  uint64_t deadline_ns)
{
    uint64_t until_ns = 0; /* hear the bell, but look before waiting */
    engine->driving.deadline_ns = deadline_ns;
    if (!oteli_driving_is_whole(&engine->driving))
        (void)reopen(engine);
    do {
        wait_until(engine, until_ns);
        if (!step(engine))
            break;
        until_ns = earlier(oteli_load_relaxed_64(&engine->driving.next_ns), deadline_ns);
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

/* There is nothing that could have to be done. */
static void do_nothing_until(uint64_t deadline_ns)
{
    for (;;) {
        otel_status status;
        struct oteli_engine *engine = oteli_lifecycle_use(false, &status);
        const uint64_t now_ns = oteli_monotonic_ns();
        if (engine != NULL)
            oteli_lifecycle_leave(engine);
        if (status != OTEL_OK || now_ns >= deadline_ns)
            return;
        sleep_until(earlier(deadline_ns, now_ns + (uint64_t)NAP_MS * OTELI_NS_PER_MS));
    }
}

otel_status otel_poll(int64_t timeout_ms)
{
    static const uint64_t never;
    otel_status status;
    struct oteli_engine *engine = oteli_lifecycle_use(false, &status);
    const uint64_t deadline_ns = oteli_deadline_ns(timeout_ms);
    const bool is_driven = engine != NULL && engine->driving.is_chosen;
    const bool has_thread = engine != NULL && !is_driven && !engine->sdk.synchronous;
    if (is_driven)
        oteli_drive_until(engine, &never, 1, deadline_ns);
    if (engine != NULL)
        oteli_lifecycle_leave(engine);
    if (has_thread)
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (status == OTEL_OK && !is_driven)
        do_nothing_until(deadline_ns);
    return status;
}

int otel_poll_fd(void)
{
    otel_status status;
    struct oteli_engine *engine = oteli_lifecycle_use(false, &status);
    int fd = -1;
    if (engine != NULL && engine->driving.is_chosen)
        fd = (int)oteli_load_relaxed_32(&engine->driving.epoll_fd);
    if (engine != NULL)
        oteli_lifecycle_leave(engine);
    return fd;
}

/* Whether something has come since the last look that otel_poll does not know of: spans after a
 * rest, or a flush. */
static bool is_asked_for(const struct oteli_engine *engine)
{
    return (oteli_load_relaxed_32(&engine->driving.rests) != 0 &&
            !oteli_sdk_is_asleep(&engine->sdk)) ||
           oteli_load_relaxed_64(&engine->flush_wanted) !=
               oteli_load_relaxed_64(&engine->driving.flush_heard);
}

int64_t otel_poll_timeout(void)
{
    otel_status status;
    struct oteli_engine *engine = oteli_lifecycle_use(false, &status);
    int64_t timeout_ms = -1;
    if (engine != NULL && engine->driving.is_chosen)
        timeout_ms = is_asked_for(engine)
                         ? 0
                         : oteli_driving_ms(oteli_load_relaxed_64(&engine->driving.next_ns));
    if (engine != NULL)
        oteli_lifecycle_leave(engine);
    return timeout_ms;
}
