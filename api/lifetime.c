/* SPDX-License-Identifier: Apache-2.0 */
/* api/lifetime.c - the roof: what becomes of all parts of the API when an SDK comes, a thread ends,
 * the process forks, or ends. It calls every other file; no file of the API calls it, but
 * thread_state.c by the table of callbacks.
 *
 * Threads:  app threads, all of it cold; in a forked child the only one. */
#include "api/active/detached_pool.h"
#include "api/baggage/baggage_pool.h"
#include "api/context/tracestate_pool.h"
#include "api/held/hold_table.h"
#include "api/held/mount.h"
#include "api/held/span_set.h"
#include "api/propagators/composite_propagator.h"
#include "api/span/tracer.h"
#include "api/thread/thread_state.h"

#include <pthread.h>
#include <stdlib.h>

/* --- a thread ends --- */

/* The thread ends: its state, with its line, is free for another. Spans that destructors
 * after this one make get a state again, and this runs again. */
static void on_thread_exit(void *state)
{
    struct oteli_thread *thread = state;
    if (thread != oteli_self)
        return; /* of before a fork, when it was in the middle of a call: the parent's */
    oteli_thread_hurry(thread); /* it may be already: pthread_exit in an exporter */
    oteli_detached_flush(thread);
    oteli_thread_leave_fibre(thread);
    oteli_thread_publish_nothing(thread);
    oteli_thread_abandon(thread);
    thread->in_processors = 0;
    thread->ending = NULL;
    oteli_thread_finish(thread);
    oteli_store_release_32(&thread->in_sdk, 0);
    oteli_self = &oteli_empty_thread;
    oteli_store_release_32(&thread->in_use, 0); /* pairs with the CAS of take_over */
}

/* --- the process forks --- */

/* Whether the state is whole: a fork in a signal handler may be in the middle of a call. */
static bool keep_own(struct oteli_thread *thread)
{
    if (thread == &oteli_empty_thread || oteli_thread_is_busy(thread))
        return false;
    OTELI_STORE_RELEASE_PTR(&thread->line, NULL);
    oteli_thread_count_from_zero(thread);
    thread->detached_count = 0;
    const struct oteli_open *const top = thread->top;
    oteli_thread_disown(thread);
    if (thread->top != top)
        oteli_thread_return(thread, thread->top);
    oteli_random_seed(&thread->random);
    oteli_store_relaxed_32(&thread->in_use, 1);
    oteli_store_relaxed_32(&thread->in_sdk, 0);
    oteli_store_relaxed_64(&thread->generation, OTELI_NO_GENERATION);
    thread->fast = OTELI_NO_GENERATION;
    thread->next = NULL;
    return true;
}

/* In a forked child: there is one thread, no SDK yet, and nothing is of this process but the
 * contexts of that thread. Its stack of places stays; no place records, holds back or collects any
 * more. Stores only. */
static void forget(void)
{
    oteli_lines_forget();
    oteli_detached_forget();
    oteli_holds_forget();
    oteli_holders_forget();
    const bool is_kept = keep_own(oteli_self);
    if (!is_kept) {
        oteli_thread_publish_nothing(oteli_self);
        oteli_self = &oteli_empty_thread;
    }
    oteli_threads_forget(is_kept ? oteli_self : NULL);
    oteli_sdk_forget();
}

/* In this order: the kept state's places hold tracestates and baggages again. */
static void watch_forks(void)
{
    oteli_fork_add(oteli_tracestates_forget);
    oteli_fork_add(oteli_baggages_forget);
    oteli_fork_add(forget);
}

const struct oteli_thread_callbacks oteli_thread_callbacks = {on_thread_exit, watch_forks,
                                                              oteli_line_discard_mounts};

/* --- an SDK comes --- */

/* Let children be known to themselves. In a child it has been done by the parent. */
static void watch(void)
{
    static bool is_done;
    if (!is_done && oteli_fork_wipe(&oteli_watched, sizeof oteli_watched)) {
        oteli_fork_wipe(oteli_detached_parts, sizeof oteli_detached_parts);
        oteli_fork_watch(&oteli_watched.words.mark);
    }
    is_done = true;
    oteli_fork_adopt();
}

void oteli_sdk_install(struct oteli_sdk *sdk)
{
    watch_forks();
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
        oteli_thread_leave_fibre(at);
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
    oteli_tracers_free();
}

static uint32_t keeps_memory;

void oteli_api_keep_memory(void)
{
    oteli_store_relaxed_32(&keeps_memory, 1);
}

/* The process ends: give memory back when no other thread can be using it. Other threads may still
 * be tracing while main returns; then it stays. After the destructors of the libraries above this
 * one, whose lines and threads are looked at. */
__attribute__((destructor(101))) static void free_at_exit(void)
{
    if (oteli_load_relaxed_32(&keeps_memory) != 0)
        return;
    if (oteli_generation != 0 || oteli_threads_alive() > (oteli_self != &oteli_empty_thread))
        return;
    oteli_api_reset();
    oteli_threads_end(true);
}
