/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/worker/poll.c - otel_poll and its like: what a program calls that has an SDK without a thread
 * of its own. Any thread. */
#include "common/clock/clock.h"
#include "sdk/engine/current_engine.h"
#include "sdk/engine/deadline.h"
#include "sdk/worker/drive.h"

enum { NAP_MS = 1000 }; /* between looks whether there still is an SDK that does nothing */

/* There is nothing that could have to be done. */
static void do_nothing_until(uint64_t deadline_ns)
{
    for (;;) {
        otel_status status;
        struct oteli_engine *engine = oteli_current_use(&status);
        const uint64_t now_ns = oteli_monotonic_ns();
        if (engine != NULL)
            oteli_current_leave(engine);
        if (status != OTEL_OK || now_ns >= deadline_ns)
            return;
        oteli_deadline_sleep(oteli_min(deadline_ns, now_ns + (uint64_t)NAP_MS * OTELI_NS_PER_MS));
    }
}

otel_status otel_poll(int64_t timeout_ms)
{
    static const uint64_t never;
    otel_status status;
    struct oteli_engine *engine = oteli_current_use(&status);
    const uint64_t deadline_ns = oteli_deadline_ns(timeout_ms);
    const bool is_driven = engine != NULL && engine->event_fds.is_chosen;
    const bool has_thread = engine != NULL && !is_driven && !engine->sdk.synchronous;
    if (is_driven)
        oteli_drive_until(engine, &never, 1, deadline_ns);
    if (engine != NULL)
        oteli_current_leave(engine);
    if (has_thread)
        return OTEL_ERROR_INVALID_ARGUMENT;
    if (status == OTEL_OK && !is_driven)
        do_nothing_until(deadline_ns);
    return status;
}

int otel_poll_fd(void)
{
    otel_status status;
    struct oteli_engine *engine = oteli_current_use(&status);
    int fd = -1;
    if (engine != NULL && engine->event_fds.is_chosen)
        fd = (int)oteli_load_relaxed_32(&engine->event_fds.epoll_fd);
    if (engine != NULL)
        oteli_current_leave(engine);
    return fd;
}

/* Whether something has come since the last look that otel_poll does not know of: spans after a
 * rest, or a flush. */
static bool is_asked_for(const struct oteli_engine *engine)
{
    return (oteli_load_relaxed_32(&engine->event_fds.rests) != 0 &&
            !oteli_sdk_is_asleep(&engine->sdk)) ||
           oteli_load_relaxed_64(&engine->flush_wanted) !=
               oteli_load_relaxed_64(&engine->event_fds.flush_heard);
}

int64_t otel_poll_timeout(void)
{
    otel_status status;
    struct oteli_engine *engine = oteli_current_use(&status);
    int64_t timeout_ms = -1;
    if (engine != NULL && engine->event_fds.is_chosen)
        timeout_ms = is_asked_for(engine)
                         ? 0
                         : oteli_event_fds_ms(oteli_load_relaxed_64(&engine->event_fds.next_ns));
    if (engine != NULL)
        oteli_current_leave(engine);
    return timeout_ms;
}
