/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/on_idle.c - exporters that have something to do without being given a batch
 * (otel_exporter.attend). The worker, or whoever holds the mutex of a synchronous engine.
 *
 * They are called between exports and never wait: exports come first. What they ask for is a
 * time, which is one deadline more for the worker's sleep, and a descriptor. While there is one to
 * wait for, the worker sleeps in epoll instead of on the bell's futex, and the bell writes to a
 * socket meanwhile, as it does without an exporter thread (event_loop_fds.h). Where no exporter
 * asks for anything, nothing here costs more than one comparison a round. */
#include "sdk/worker/on_idle.h"
#include "common/clock/clock.h"
#include "common/clock/time_units.h"
#include "sdk/lifecycle/engine.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>

enum {
    BLIND_MS = 5,  /* between looks at exporters whose descriptors cannot be watched */
    SLICE_MS = 100 /* the longest sleep in epoll: the program may have closed what the bell
                      writes to meanwhile */
};

static uint64_t in_ms(uint64_t now_ns, int ms)
{
    return now_ns + (uint64_t)ms * OTELI_NS_PER_MS;
}

void oteli_attend_init(struct oteli_pipeline *pipeline)
{
    const otel_exporter *exporter = &pipeline->exporter;
    const size_t needed = offsetof(otel_exporter, attend) + sizeof exporter->attend;
    pipeline->attends = exporter->size >= needed && exporter->attend != NULL;
    pipeline->attend_fd = -1;
    pipeline->attend_ns = UINT64_MAX;
    oteli_attend_soon(pipeline);
}

void oteli_attend_soon(struct oteli_pipeline *pipeline)
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

uint64_t oteli_attend(struct oteli_engine *engine)
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
    (void)poll(&watched, 1, oteli_driving_ms(until_ns));
}

void oteli_attend_finish(struct oteli_engine *engine, uint64_t deadline_ns)
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

bool oteli_attend_has_descriptor(const struct oteli_engine *engine)
{
    for (size_t i = 0; i < engine->pipeline_count; i++)
        if (engine->pipelines[i].attend_fd >= 0)
            return true;
    return false;
}

/* One of them is watched, which is enough for nearly every program. */
uint64_t oteli_attend_watch(struct oteli_engine *engine, uint64_t until_ns)
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
    if (!oteli_driving_watch(&engine->driving, fd) && fd >= 0)
        are_all_watched = false;
    return are_all_watched ? until_ns : oteli_min(until_ns, in_ms(oteli_monotonic_ns(), BLIND_MS));
}

void oteli_attend_sleep(struct oteli_engine *engine, uint32_t heard, int64_t wanted,
                        uint64_t deadline_ns)
{
    struct oteli_driving *driving = &engine->driving;
    struct oteli_bell *bell = &engine->bell;
    const int saved_errno = errno;
    if (!oteli_driving_is_whole(driving) && !oteli_driving_open(driving)) {
        oteli_bell_sleep(bell, heard, wanted,
                         oteli_min(deadline_ns, in_ms(oteli_monotonic_ns(), BLIND_MS)));
        return;
    }
    deadline_ns = oteli_attend_watch(engine, deadline_ns);
    oteli_bell_set_fd(bell, driving->pair[1], driving->inodes[1]);
    /* Whoever rings and does not know of the socket yet has changed the word before, and whoever
     * rings after we have gone back to the futex does it before we listen to it again. */
    oteli_fence_full();
    if (oteli_bell_arm(bell, wanted) && oteli_bell_listen(bell) == heard)
        (void)oteli_driving_wait(driving,
                                 oteli_min(deadline_ns, in_ms(oteli_monotonic_ns(), SLICE_MS)));
    oteli_bell_disarm(bell);
    oteli_bell_set_fd(bell, -1, 0);
    oteli_fence_full();
    errno = saved_errno;
}
