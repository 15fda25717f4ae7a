/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/thread_life.c - the life of a thread's state: it is made or taken over, fits an SDK,
 * is left when the thread ends, and is kept or forgotten in a forked child.
 *
 * App threads, all of it cold. The list of states grows at its head by compare-and-swap and never
 * shrinks while threads trace. */
#include "api/baggage/baggage_pool.h"
#include "api/context/tracestate_pool.h"
#include "api/record/hold_table.h"
#include "api/record/mount.h"
#include "api/thread/detached_pool.h"
#include "api/thread/thread_state.h"
#include "common/clock/clock.h"
#include "common/os/library.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct oteli_thread *list;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_exit_key;

struct oteli_thread *oteli_threads(void)
{
    return OTELI_LOAD_ACQUIRE_PTR(&list); /* pairs with the CAS of make */
}

uint32_t oteli_threads_alive(void)
{
    uint32_t alive = 0;
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        alive += oteli_load_relaxed_32(&at->in_use);
    return alive;
}

/* --- a thread ends --- */

/* The thread ends: its state, with its line, is free for another. Spans that destructors
 * after this one make get a state again, and this runs again. */
static void on_thread_exit(void *state)
{
    struct oteli_thread *thread = state;
    if (thread != oteli_self)
        return; /* of before a fork, when it was in the middle of a call: the parent's */
    oteli_thread_mark_busy(thread); /* it may be already: pthread_exit in an exporter */
    oteli_detached_flush(thread);
    if (thread->fibre != NULL)
        oteli_thread_switch(thread, NULL);
    oteli_thread_publish_nothing(thread);
    oteli_thread_abandon(thread);
    thread->in_processors = 0;
    thread->ending = NULL;
    oteli_thread_leave_call(thread);
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
    const struct oteli_active_span *const top = thread->top;
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
 * more. Neither allocates nor waits. */
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
    list = is_kept ? oteli_self : NULL;
    oteli_store_relaxed_32(&oteli_thread_forks, oteli_thread_forks + 1);
    oteli_sdk_forget();
}

/* In this order: the kept state's places hold tracestates and baggages again. */
void oteli_threads_watch_forks(void)
{
    oteli_fork_add(oteli_tracestates_forget);
    oteli_fork_add(oteli_baggages_forget);
    oteli_fork_add(forget);
}

/* --- a thread begins --- */

static void set_up_process(void)
{
    oteli_stay_loaded((oteli_code *)oteli_thread_own); /* it is called when threads end */
    has_exit_key = pthread_key_create(&exit_key, on_thread_exit) == 0;
    oteli_threads_watch_forks();
}

static struct oteli_thread *take_over(void)
{
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        if (oteli_load_relaxed_32(&at->in_use) == 0 && oteli_cas_full_32(&at->in_use, 0, 1))
            return at;
    return NULL;
}

static struct oteli_thread *make(void)
{
    struct oteli_thread *thread = aligned_alloc(OTELI_CACHELINE, sizeof *thread);
    if (thread == NULL)
        return NULL;
    memset(thread, 0, sizeof *thread);
    thread->fast = thread->generation = OTELI_NO_GENERATION;
    thread->in_use = 1;
    if (!oteli_thread_deepen(thread)) {
        free(thread);
        return NULL;
    }
    do {
        thread->next = oteli_threads();
    } while (!OTELI_CAS_FULL_PTR(&list, thread->next, thread));
    return thread;
}

struct oteli_thread *oteli_thread_own(void)
{
    if (oteli_self != &oteli_empty_thread)
        return oteli_self;
    const int saved_errno = errno;
    pthread_once(&once, set_up_process);
    struct oteli_thread *thread = take_over();
    if (thread == NULL)
        thread = make();
    if (thread != NULL) {
        oteli_random_seed(&thread->random);
        thread->attaches = oteli_random_next(&thread->random) >> 1; /* of no other thread */
        if (has_exit_key)
            pthread_setspecific(exit_key, thread);
        oteli_self = thread;
        oteli_store_relaxed_32(&otel_is_in_use_, 1); /* this thread can attach contexts */
    }
    errno = saved_errno;
    return thread;
}

/* --- it fits an SDK --- */

/* Another SDK than the one before: whatever is open or in the line belongs to that one. */
static void let_go_of_sdk(struct oteli_thread *thread)
{
    oteli_thread_stop_recording(thread);
    struct oteli_line *line = thread->line;
    OTELI_STORE_RELEASE_PTR(&thread->line, NULL);
    if (line != NULL) {
        oteli_line_keep_no_more();
        oteli_line_discard_mounts(line);
    }
    /* If it is pinned, an exporter that hangs still reads it. Pairs with drain.c. */
    if (line != NULL && oteli_load_acquire_32(&line->pins) == 0)
        oteli_line_put(line);
    oteli_thread_count_from_zero(thread);
}

static void adopt_sdk(struct oteli_thread *thread, struct oteli_sdk *sdk)
{
    let_go_of_sdk(thread);
    oteli_add_full_32(&sdk->threads, 1);
    for (unsigned i = 0; i < OTELI_PARENT_KINDS; i++) {
        const bool is_root = i != OTELI_PARENT_LOCAL_SAMPLED && i != OTELI_PARENT_LOCAL_UNSAMPLED;
        thread->unscoped[i] = is_root && sdk->limits.roots_hold
                                  ? oteli_decide_slowly(sdk->decide[i])
                                  : sdk->decide[i];
    }
    thread->ratio_below = sdk->ratio_below;
    oteli_thread_scope(thread, thread->is_scoped);
    thread->limits = sdk->limits;
    thread->program = sdk->program;
    oteli_store_release_64(&thread->generation, sdk->generation); /* statistics, drain */
}

struct oteli_thread *oteli_thread_refresh(void)
{
    if (oteli_load_acquire_64(&oteli_generation) == 0)
        return NULL;
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL)
        return NULL;
    const bool was_busy = oteli_thread_is_busy(thread);
    oteli_thread_mark_busy(thread); /* no signal handler may adopt another meanwhile */
    if (OTELI_UNLIKELY(oteli_load_acquire_64(&oteli_generation) == OTELI_REVIVE))
        oteli_sdk_revive();
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && thread->generation != sdk->generation)
        adopt_sdk(thread, sdk);
    oteli_sdk_return(thread);
    if (!was_busy)
        oteli_thread_leave_call(thread);
    return sdk != NULL ? thread : NULL;
}

struct oteli_thread *oteli_thread_for_end(uint64_t generation)
{
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || thread->generation == generation)
        return thread;
    const uint64_t now = oteli_load_acquire_64(&oteli_generation);
    if (now == generation)
        return oteli_thread_refresh();
    if (now != 0 || (thread->generation != OTELI_NO_GENERATION && thread->generation > generation))
        return NULL;
    let_go_of_sdk(thread); /* its SDK has stopped: the span is only counted */
    oteli_store_release_64(&thread->generation, generation);
    return thread;
}

/* --- all of them --- */

void oteli_threads_end(bool for_good)
{
    list = NULL;
    if (has_exit_key)
        pthread_setspecific(exit_key, NULL);
    if (has_exit_key && for_good)
        pthread_key_delete(exit_key);
    has_exit_key = has_exit_key && !for_good;
}

bool oteli_sdk_wait_until_left(uint64_t deadline_ns)
{
    const struct timespec pause = {0, 200 * 1000};
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        while (oteli_load_acquire_32(&at->in_sdk) != 0) {
            if (at == oteli_self || oteli_monotonic_ns() >= deadline_ns)
                return false;
            nanosleep(&pause, NULL);
        }
    return true;
}
