/* SPDX-License-Identifier: Apache-2.0 */
/* api/lifetime.c - what becomes of all parts of the API when an SDK is installed and when the
 * process ends. It calls every part; no file of the API calls it.
 *
 * Threads:  start/stop only; the end of the process. */
#include "api/baggage/baggage_pool.h"
#include "api/context/tracestate_pool.h"
#include "api/held/span_set.h"
#include "api/http/methods.h"
#include "api/propagators/composite_propagator.h"
#include "api/record/hold_table.h"
#include "api/span/tracer.h"
#include "api/thread/detached_pool.h"
#include "api/thread/thread_state.h"
#include "common/log.h"

#include <stdlib.h>

/* --- an SDK is installed --- */

/* Let children be known to themselves, and count log lines with this process. In a child it has
 * been done by the parent. */
static void watch(void)
{
    static bool is_done;
    if (!is_done)
        oteli_log_share();
    if (!is_done && oteli_fork_wipe(&oteli_watched, sizeof oteli_watched)) {
        oteli_fork_wipe(oteli_detached_parts, sizeof oteli_detached_parts);
        oteli_fork_watch(&oteli_watched.words.mark);
    }
    is_done = true;
    oteli_fork_adopt();
}

void oteli_sdk_install(struct oteli_sdk *sdk)
{
    oteli_threads_watch_forks();
    watch();
    otel_tracers_reconfigure();
    oteli_sdk_put(sdk);
}

/* --- the process ends --- */

void oteli_api_reset(void)
{
    struct oteli_thread *at = oteli_threads();
    oteli_thread_publish_nothing(oteli_self);
    oteli_self = &oteli_empty_thread;
    oteli_threads_end(false);
    while (at != NULL) {
        struct oteli_thread *next = at->next;
        if (at->line != NULL && at->line->units > 1)
            oteli_line_put(at->line);
        if (at->fibre != NULL)
            oteli_thread_switch(at, NULL);
        oteli_places_free(at->stack, at->open_capacity);
        oteli_buffer_fini(&at->scratch);
        free(at);
        at = next;
    }
    oteli_detached_free();
    oteli_holds_free();
    oteli_holders_forget();
    oteli_lines_free();
    oteli_tracestates_free();
    oteli_baggages_free();
    oteli_propagators_free();
    oteli_methods_free();
    oteli_tracers_free();
}

static uint32_t keeps_memory;

void oteli_api_keep_memory(void)
{
    oteli_store_relaxed_32(&keeps_memory, 1);
}

/* Give memory back, unless another thread may still be tracing while main returns. Runs after the
 * destructors of the libraries above this one, which look at lines and threads. */
__attribute__((destructor(101))) static void free_at_exit(void)
{
    if (oteli_load_relaxed_32(&keeps_memory) != 0)
        return;
    if (oteli_generation != 0 || oteli_threads_alive() > (oteli_self != &oteli_empty_thread))
        return;
    oteli_api_reset();
    oteli_threads_end(true);
}
