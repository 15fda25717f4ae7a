/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/on_idle.c - exporters that have something to do without being given a batch
 * (otel_exporter.attend). The worker, or the thread that holds the mutex of a synchronous engine.
 *
 * They are called between exports and never wait: exports come first. What they ask for is a
 * time, which is one deadline more for the worker's sleep, and a descriptor. While there is one to
 * wait for, the worker sleeps in epoll instead of on the waker's futex, and the waker writes to a
 * socket meanwhile, as it does without an exporter thread (event_loop_fds.h). Where no exporter
 * asks for anything, nothing here costs more than one comparison a round. */
#include "sdk/worker/on_idle.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "sdk/engine/engine.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>

enum {
    BLIND_MS = 5,  /* between looks at exporters whose descriptors cannot be watched */
    SLICE_MS = 100 /* the longest sleep in epoll: the program may have closed what the waker
                      writes to meanwhile */
};

static uint64_t in_ms(uint64_t now_ns, int ms)
{
    return now_ns + (uint64_t)ms * OTELI_NS_PER_MS;
}

void oteli_on_idle_init(struct oteli_pipeline *pipeline)
{
    const otel_exporter *exporter = &pipeline->exporter;
    const size_t needed = offsetof(otel_exporter, attend) + sizeof exporter->attend;
    pipeline->attends = exporter->size >= needed && exporter->attend != NULL;
    pipeline->attend_fd = -1;
    pipeline->attend_ns = UINT64_MAX;
    oteli_on_idle_soon(pipeline);
}

void oteli_on_idle_soon(struct oteli_pipeline *pipeline)
{
    if (pipeline->attends)
        pipeline->attend_ns = 0;
}

static void attend_one(struct oteli_pipeline *pipeline)
{
    const otel_exporter *exporter = &pipeline->exporter;
    int timeout_ms = -1;
    const int wanted_ms = exporter->attend(exporter->state);
    pipeline->attend_fd = -1;
    pipeline->attend_ns = UINT64_MAX;
    if (wanted_ms < 0)
        return;
    const uint64_t now_ns = oteli_monotonic_ns();
    pipeline->attend_ns = in_ms(now_ns, wanted_ms);
    if (exporter->descriptor != NULL)
        pipeline->attend_fd = exporter->descriptor(exporter->state, &timeout_ms);
    if (pipeline->attend_fd >= 0 && timeout_ms >= 0)
        pipeline->attend_ns = oteli_min(pipeline->attend_ns, in_ms(now_ns, timeout_ms));
}

/* With a descriptor to wait for it is looked at each time: that may be why we are awake. */
static bool is_due(const struct oteli_pipeline *pipeline)
{
    return pipeline->attend_ns != UINT64_MAX &&
           (pipeline->attend_fd >= 0 || pipeline->attend_ns <= oteli_monotonic_ns());
}

uint64_t oteli_on_idle(struct oteli_engine *engine)
{
    uint64_t next_ns = UINT64_MAX;
    if (oteli_load_acquire_64(&engine->stop_deadline_ns) != 0)
        return next_ns;
    for (size_t i = 0; i < engine->pipeline_count; i++) {
        struct oteli_pipeline *pipeline = &engine->pipelines[i];
        if (is_due(pipeline))
            attend_one(pipeline);
        next_ns = oteli_min(next_ns, pipeline->attend_ns);
    }
    return next_ns;
}

static bool can_finish(const otel_exporter *exporter)
{
    return exporter->size >= offsetof(otel_exporter, finish) + sizeof exporter->finish &&
           exporter->finish != NULL;
}

static void wait_for(const otel_exporter *exporter, uint64_t until_ns)
{
    int timeout_ms = -1;
    struct pollfd watched = {.fd = -1, .events = POLLIN};
    if (exporter->descriptor != NULL)
        watched.fd = exporter->descriptor(exporter->state, &timeout_ms);
    if (watched.fd >= 0 && timeout_ms >= 0)
        until_ns = oteli_min(until_ns, in_ms(oteli_monotonic_ns(), timeout_ms));
    (void)poll(&watched, 1, oteli_event_fds_ms(until_ns));
}

void oteli_on_idle_finish(struct oteli_engine *engine, uint64_t deadline_ns)
{
    for (size_t i = 0; i < engine->pipeline_count; i++) {
        const otel_exporter *exporter = &engine->pipelines[i].exporter;
        while (can_finish(exporter) && oteli_monotonic_ns() < deadline_ns) {
            const int wanted_ms = exporter->finish(exporter->state);
            if (wanted_ms < 0)
                break;
            if (wanted_ms > 0)
                wait_for(exporter, oteli_min(in_ms(oteli_monotonic_ns(), wanted_ms), deadline_ns));
        }
    }
}

bool oteli_on_idle_has_descriptor(const struct oteli_engine *engine)
{
    for (size_t i = 0; i < engine->pipeline_count; i++)
        if (engine->pipelines[i].attend_fd >= 0)
            return true;
    return false;
}

/* One of them is watched, which is enough for nearly every program. */
uint64_t oteli_on_idle_watch(struct oteli_engine *engine, uint64_t until_ns)
{
    int fd = -1;
    bool are_all_watched = true;
    for (size_t i = 0; i < engine->pipeline_count; i++) {
        const int wanted = engine->pipelines[i].attend_fd;
        if (wanted >= 0 && fd >= 0)
            are_all_watched = false;
        else if (wanted >= 0)
            fd = wanted;
    }
    if (!oteli_event_fds_watch(&engine->event_fds, fd) && fd >= 0)
        are_all_watched = false;
    return are_all_watched ? until_ns : oteli_min(until_ns, in_ms(oteli_monotonic_ns(), BLIND_MS));
}

void oteli_on_idle_sleep(struct oteli_engine *engine, uint32_t heard, int64_t wanted,
                         uint64_t deadline_ns)
{
    struct oteli_event_fds *event_fds = &engine->event_fds;
    struct oteli_waker *waker = &engine->waker;
    const int saved_errno = errno;
    if (!oteli_event_fds_is_whole(event_fds) && !oteli_event_fds_open(event_fds)) {
        oteli_waker_sleep(waker, heard, wanted,
                          oteli_min(deadline_ns, in_ms(oteli_monotonic_ns(), BLIND_MS)));
        return;
    }
    deadline_ns = oteli_on_idle_watch(engine, deadline_ns);
    oteli_waker_set_fd(waker, event_fds->pair[1].fd, event_fds->pair[1].inode);
    /* A thread that wakes the worker and does not know of the socket yet has changed the waker's
     * word before, and one that does so after the worker has gone back to the futex changes it
     * before the worker looks at it again. */
    oteli_fence_full();
    if (oteli_waker_arm(waker, wanted) && oteli_waker_listen(waker) == heard)
        (void)oteli_event_fds_wait(event_fds,
                                   oteli_min(deadline_ns, in_ms(oteli_monotonic_ns(), SLICE_MS)));
    oteli_waker_disarm(waker);
    oteli_waker_set_fd(waker, -1, 0);
    oteli_fence_full();
    errno = saved_errno;
}
