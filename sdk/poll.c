/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/poll.c - an SDK without a thread of its own: whoever calls otel_poll, otel_flush or
 * otel_shutdown is the worker for that time. Any thread, one at a time.
 *
 *     epoll descriptor ─┬─ eventfd      the bell: a batch waits, somebody asks for a flush
 *                       └─ descriptors  of the exporters: an export can go on
 *
 * A program's event loop waits for the epoll descriptor (otel_poll_fd) and for a time
 * (otel_poll_timeout), and then calls otel_poll(0). */
#include "common/clock.h"
#include "sdk/engine.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_MS = 1000000, BLIND_MS = 5 /* between looks at an exporter without a descriptor */ };

bool oteli_driving_init(struct oteli_engine *engine)
{
    struct oteli_driving *driving = &engine->driving;
    struct epoll_event event = {.events = EPOLLIN};
    driving->next_ns = UINT64_MAX;
    driving->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    driving->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    engine->bell.fd = driving->event_fd;
    return driving->epoll_fd >= 0 && driving->event_fd >= 0 &&
           epoll_ctl(driving->epoll_fd, EPOLL_CTL_ADD, driving->event_fd, &event) == 0;
}

void oteli_driving_fini(struct oteli_engine *engine)
{
    struct oteli_driving *driving = &engine->driving;
    if (driving->event_fd >= 0)
        close(driving->event_fd);
    if (driving->epoll_fd >= 0)
        close(driving->epoll_fd);
    driving->event_fd = -1;
    driving->epoll_fd = -1;
}

/* Watch the exporter that is being waited for. Returns when to look at it in any case. */
static uint64_t watch_exporter(struct oteli_engine *engine)
{
    const struct oteli_sending *sending = &engine->sending;
    const otel_exporter *exporter = &engine->pipelines[sending->pipeline].exporter;
    const uint64_t last_ns = oteli_export_deadline(engine, sending->started_ns);
    int timeout_ms = BLIND_MS;
    if (exporter->descriptor != NULL) {
        const int fd = exporter->descriptor(exporter->state, &timeout_ms);
        struct epoll_event event = {.events = EPOLLIN};
        /* Mostly it is there already. */
        const bool is_watched =
            fd >= 0 && (epoll_ctl(engine->driving.epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ||
                        errno == EEXIST);
        if (!is_watched && (timeout_ms < 0 || timeout_ms > BLIND_MS))
            timeout_ms = BLIND_MS;
    }
    if (timeout_ms < 0)
        return last_ns;
    const uint64_t look_ns = oteli_monotonic_ns() + (uint64_t)timeout_ms * NS_PER_MS;
    return look_ns < last_ns ? look_ns : last_ns;
}

/* Do what there is to do, without waiting for anybody. False: the SDK has stopped. */
static bool step(struct oteli_engine *engine)
{
    uint64_t heard;
    uint64_t next_ns = UINT64_MAX;
    int64_t wanted;
    enum oteli_round round;
    oteli_bell_disarm(&engine->bell);
    (void)!read(engine->driving.event_fd, &heard, sizeof heard);
    do {
        round = oteli_worker_round(engine, false, &wanted, &next_ns);
    } while (round == OTELI_ROUND_WORKED);
    if (round == OTELI_ROUND_STOPPED) {
        oteli_worker_finish(engine);
        return false;
    }
    if (round == OTELI_ROUND_PENDING)
        next_ns = watch_exporter(engine);
    else if (!oteli_bell_arm(&engine->bell, wanted))
        next_ns = 0;
    oteli_store_relaxed_64(&engine->driving.next_ns, next_ns);
    return true;
}

/* Until `then_ns`, in milliseconds; -1: for ever. */
static int wait_ms(uint64_t then_ns)
{
    if (then_ns == UINT64_MAX)
        return -1;
    const uint64_t now_ns = oteli_monotonic_ns();
    if (then_ns <= now_ns)
        return 0;
    const uint64_t ms = (then_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Become the worker, unless another thread is it until the deadline, or nobody has to be any
 * more: `*counter` has reached `target`, or the SDK has stopped. */
static bool begin_driving(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                          uint64_t deadline_ns)
{
    bool is_wanted = true;
    pthread_mutex_lock(&engine->mutex);
    while (engine->driving.is_driven && is_wanted && !engine->done &&
           oteli_load_acquire_64(counter) < target)
        is_wanted = oteli_lifecycle_wait(engine, deadline_ns);
    is_wanted = !engine->driving.is_driven && !engine->done && !engine->hangs &&
                oteli_load_acquire_64(counter) < target;
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

void oteli_drive_until(struct oteli_engine *engine, const uint64_t *counter, uint64_t target,
                       uint64_t deadline_ns)
{
    if (!begin_driving(engine, counter, target, deadline_ns))
        return;
    const int saved_errno = errno;
    struct epoll_event event;
    while (step(engine) && oteli_load_acquire_64(counter) < target &&
           oteli_monotonic_ns() < deadline_ns) {
        const uint64_t next_ns = oteli_load_relaxed_64(&engine->driving.next_ns);
        (void)epoll_wait(engine->driving.epoll_fd, &event, 1,
                         wait_ms(next_ns < deadline_ns ? next_ns : deadline_ns));
    }
    errno = saved_errno;
    end_driving(engine);
}

/* There is nothing that could have to be done. */
static void sleep_until(uint64_t deadline_ns)
{
    const struct timespec deadline = {(time_t)(deadline_ns / 1000000000),
                                      (long)(deadline_ns % 1000000000)};
    if (deadline_ns > oteli_monotonic_ns())
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}

otel_status otel_poll(int64_t timeout_ms)
{
    static const uint64_t never;
    otel_status status;
    struct oteli_engine *engine = oteli_lifecycle_use(false, &status);
    const uint64_t deadline_ns = oteli_lifecycle_deadline(timeout_ms);
    if (engine != NULL && engine->driving.epoll_fd >= 0)
        oteli_drive_until(engine, &never, 1, deadline_ns);
    else if (engine != NULL && !engine->sdk.synchronous)
        status = OTEL_ERROR_INVALID_ARGUMENT;
    else if (status == OTEL_OK)
        sleep_until(deadline_ns);
    if (engine != NULL)
        oteli_lifecycle_leave(engine);
    return status;
}

int otel_poll_fd(void)
{
    otel_status status;
    struct oteli_engine *engine = oteli_lifecycle_use(false, &status);
    const int fd = engine != NULL ? engine->driving.epoll_fd : -1;
    if (engine != NULL)
        oteli_lifecycle_leave(engine);
    return fd;
}

int64_t otel_poll_timeout(void)
{
    otel_status status;
    struct oteli_engine *engine = oteli_lifecycle_use(false, &status);
    int64_t timeout_ms = -1;
    if (engine != NULL && engine->driving.epoll_fd >= 0)
        timeout_ms = wait_ms(oteli_load_relaxed_64(&engine->driving.next_ns));
    if (engine != NULL)
        oteli_lifecycle_leave(engine);
    return timeout_ms;
}
