/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread.c - make, find, reuse and refresh the states of threads; the SDK's slot.
 *
 * App threads, all of it cold. The list grows at its head by compare-and-swap and never
 * shrinks while threads trace. */
#include "api/thread.h"
#include "api/detached.h"
#include "api/tracer.h"
#include "api/tracestate.h"
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_DEPTH = 16, DEEPEST = OTELI_SLOT_MAX };

/* A generation that no SDK ever has. */
#define NO_GENERATION UINT64_MAX

struct oteli_thread oteli_empty_thread = {.generation = NO_GENERATION};
OTELI_TLS struct oteli_thread *oteli_self = &oteli_empty_thread;

uint64_t oteli_generation;
uint64_t oteli_asleep;
uint32_t otel_is_in_use_;
struct oteli_sdk *oteli_sdk_current;

static struct oteli_thread *list;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_exit_key;

/* The thread ends: its state, with its line, is free for another. Spans that destructors
 * after this one make get a state again, and this runs again. */
static void on_thread_exit(void *state)
{
    struct oteli_thread *thread = state;
    if (thread != oteli_self)
        return; /* of before a fork: the parent's */
    oteli_detached_flush(thread);
    for (uint32_t i = 0; i < thread->depth; i++)
        oteli_open_lighten(&thread->open[i]);
    thread->depth = 0;
    thread->current = (otel_context){0};
    thread->attached = 0;
    thread->busy = 0; /* it may have ended inside a call, by pthread_exit in an exporter */
    oteli_store_release_32(&thread->in_sdk, 0);
    oteli_self = &oteli_empty_thread;
    oteli_store_release_32(&thread->in_use, 0); /* pairs with the CAS of take_over */
}

/* The child has one thread and none of the parent's spans. Its copies of states and lines
 * stay where they are, untouched: the stores here are all that is safe. */
static void on_fork_child(void)
{
    oteli_self = &oteli_empty_thread;
    list = NULL;
    oteli_generation = 0;
    oteli_asleep = 0;
    oteli_sdk_current = NULL;
    oteli_lines_forget();
    oteli_detached_forget();
}

static void set_up_process(void)
{
    has_exit_key = pthread_key_create(&exit_key, on_thread_exit) == 0;
    pthread_atfork(NULL, NULL, on_fork_child);
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
    thread->generation = NO_GENERATION;
    thread->in_use = 1;
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
        if (has_exit_key)
            pthread_setspecific(exit_key, thread);
        oteli_self = thread;
    }
    errno = saved_errno;
    return thread;
}

/* Another SDK than the one before: whatever is open or in the line belongs to that one. */
static void let_go_of_sdk(struct oteli_thread *thread)
{
    for (uint32_t i = 0; i < thread->depth; i++)
        thread->open[i].recording = false;
    struct oteli_line *line = thread->line;
    OTELI_STORE_RELEASE_PTR(&thread->line, NULL);
    /* If it is pinned, an exporter that hangs still reads it. Pairs with harvest.c. */
    if (line != NULL && oteli_load_acquire_32(&line->pins) == 0)
        oteli_line_put(line);
    thread->used = 0;
    thread->line_capacity = 0;
    thread->lot = 0;
    thread->lot_size = 0;
    uint64_t *const counts = (uint64_t *)&thread->counts;
    for (size_t i = 0; i < sizeof thread->counts / sizeof *counts; i++)
        oteli_store_relaxed_64(&counts[i], 0);
}

static void adopt_sdk(struct oteli_thread *thread, struct oteli_sdk *sdk)
{
    let_go_of_sdk(thread);
    oteli_add_full_32(&sdk->threads, 1);
    memcpy(thread->decide, sdk->decide, sizeof sdk->decide);
    thread->limits = sdk->limits;
    oteli_store_release_64(&thread->generation, sdk->generation); /* statistics, harvest */
}

struct oteli_thread *oteli_thread_refresh(void)
{
    if (oteli_load_acquire_64(&oteli_generation) == 0)
        return NULL;
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL)
        return NULL;
    const uint32_t was_busy = thread->busy;
    thread->busy = 1; /* no signal handler may adopt another meanwhile */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && thread->generation != sdk->generation)
        adopt_sdk(thread, sdk);
    oteli_sdk_return(thread);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->busy = was_busy;
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
    if (now != 0 || (thread->generation != NO_GENERATION && thread->generation > generation))
        return NULL;
    let_go_of_sdk(thread); /* its SDK has stopped: the span is only counted */
    oteli_store_release_64(&thread->generation, generation);
    return thread;
}

bool oteli_thread_deepen(struct oteli_thread *thread)
{
    const uint32_t before = thread->open_capacity;
    const uint32_t capacity = before == 0 ? FIRST_DEPTH : before * 2;
    if (capacity > DEEPEST) {
        OTELI_LOG(OTEL_LOG_WARN, "%u spans are open on one thread: are they ended there?", before);
        return false;
    }
    const int saved_errno = errno;
    struct oteli_open *open = aligned_alloc(OTELI_CACHELINE, capacity * sizeof *open);
    errno = saved_errno;
    if (open == NULL)
        return false;
    if (before != 0)
        memcpy(open, thread->open, before * sizeof *open);
    memset(open + before, 0, (capacity - before) * sizeof *open);
    free(thread->open);
    thread->open = open;
    thread->open_capacity = capacity;
    return true;
}

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

/* Borrowing is a hazard pointer: say that we are inside, then look whether the SDK is
 * still installed. Whoever frees it uninstalls first, then looks whether we are inside.
 * Both have a full fence between, so one of the two sees the other. */
struct oteli_sdk *oteli_sdk_borrow(struct oteli_thread *thread)
{
    oteli_store_relaxed_32(&thread->in_sdk, 1);
    oteli_fence_full();
    if (oteli_load_acquire_64(&oteli_generation) == 0)
        return NULL;
    return OTELI_LOAD_ACQUIRE_PTR(&oteli_sdk_current);
}

void oteli_sdk_return(struct oteli_thread *thread)
{
    oteli_store_release_32(&thread->in_sdk, 0);
}

void oteli_sdk_install(struct oteli_sdk *sdk)
{
    oteli_store_relaxed_32(&otel_is_in_use_, 1);
    oteli_store_relaxed_64(&oteli_asleep, sdk->starts_asleep ? sdk->generation : 0);
    OTELI_STORE_RELEASE_PTR(&oteli_sdk_current, sdk);
    oteli_store_release_64(&oteli_generation, sdk->generation);
}

void oteli_sdk_uninstall(void)
{
    oteli_exchange_full_64(&oteli_generation, 0);
    oteli_store_relaxed_64(&oteli_asleep, 0);
    OTELI_STORE_RELEASE_PTR(&oteli_sdk_current, NULL);
    oteli_fence_full();
}

bool oteli_sdk_is_borrowed(const struct oteli_sdk *sdk)
{
    (void)sdk;
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        if (oteli_load_acquire_32(&at->in_sdk) != 0)
            return true;
    return false;
}

bool oteli_sdk_set_asleep(const struct oteli_sdk *sdk, bool asleep)
{
    if (oteli_load_acquire_64(&oteli_generation) != sdk->generation)
        return false;
    return asleep ? oteli_cas_full_64(&oteli_asleep, 0, sdk->generation)
                  : oteli_cas_full_64(&oteli_asleep, sdk->generation, 0);
}

void oteli_api_reset(void)
{
    struct oteli_thread *at = list;
    list = NULL;
    oteli_self = &oteli_empty_thread;
    if (has_exit_key)
        pthread_setspecific(exit_key, NULL);
    while (at != NULL) {
        struct oteli_thread *next = at->next;
        if (at->line != NULL && at->line->units > 1)
            free(at->line);
        for (uint32_t i = 0; i < at->open_capacity; i++)
            oteli_open_fini(&at->open[i]);
        free(at->open);
        oteli_buffer_fini(&at->scratch);
        free(at);
        at = next;
    }
    oteli_detached_free();
    oteli_lines_free();
    oteli_tracestates_free();
    oteli_tracers_free();
}

/* The process ends (or the library is unloaded): give memory back when nobody else can be
 * using it. Other threads may still be tracing while main returns; then it stays. After the
 * destructors of the libraries above this one, whose lines and threads are looked at. */
__attribute__((destructor(101))) static void on_unload(void)
{
    if (oteli_generation == 0 && oteli_threads_alive() <= (oteli_self != &oteli_empty_thread))
        oteli_api_reset();
}
