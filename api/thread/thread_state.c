/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/thread_state.c - make, find, reuse and refresh the states of threads.
 *
 * App threads, all of it cold. The list grows at its head by compare-and-swap and never
 * shrinks while threads trace. */
#include "api/thread/thread_state.h"
#include "common/base/alloc.h"
#include "common/clock/clock.h"
#include "common/log.h"
#include "common/os/library.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FIRST_DEPTH = 16, FIRST_DEPTH_OF_FIBRE = 4, DEEPEST = 1 << 16 };

static struct oteli_open bottom = {.self = {{0, 0, 0, OTELI_REF_ATTACHED}},
                                   .below = OTELI_NOT_A_COVER};
struct oteli_thread oteli_empty_thread = {.fast = OTELI_NOBODYS,
                                          .generation = OTELI_NO_GENERATION,
                                          .top = &bottom,
                                          .last = &bottom,
                                          .stack = &bottom};
OTELI_TLS struct oteli_thread *oteli_self = &oteli_empty_thread;
const struct oteli_traits oteli_simple_traits = {.bits = OTELI_IS_ATTACHED_SIMPLY};

static struct oteli_thread *list;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_exit_key;

void oteli_thread_publish_nothing(const struct oteli_thread *thread)
{
    if (thread->top != thread->stack)
        otel_thread_ctx_v1 = thread->stack->shown;
}

void oteli_thread_rewrite(struct oteli_thread *thread, struct oteli_open *open,
                          const otel_span *self)
{
    const bool is_shown = open == thread->top && oteli_record_is_of(open, otel_thread_ctx_v1);
    if (is_shown) {
        thread->aside = *otel_thread_ctx_v1;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        otel_thread_ctx_v1 = &thread->aside;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    open->self = *self;
    open->shown = oteli_record_of(open);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (is_shown)
        otel_thread_ctx_v1 = open->shown;
}

static void set_up_process(void)
{
    oteli_stay_loaded((oteli_code *)oteli_thread_own); /* it is called when threads end */
    has_exit_key = pthread_key_create(&exit_key, oteli_thread_callbacks.exit) == 0;
    oteli_thread_callbacks.watch_forks();
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
        oteli_store_relaxed_32(&otel_is_in_use_, 1); /* whoever has one can attach contexts */
    }
    errno = saved_errno;
    return thread;
}

void oteli_thread_count_from_zero(struct oteli_thread *thread)
{
    thread->used = 0;
    thread->line_end = 0;
    thread->lot_end = 0;
    thread->lot_size = 0;
    uint64_t *const counts = (uint64_t *)&thread->counts;
    for (size_t i = 0; i < sizeof thread->counts / sizeof *counts; i++)
        oteli_store_relaxed_64(&counts[i], 0);
}

void oteli_open_record_no_more(struct oteli_open *open)
{
    open->self.opaque[3] &= ~OTEL_SPAN_IS_RECORDING_;
    oteli_open_no_attributes(open);
}

void oteli_thread_stop_recording(struct oteli_thread *thread)
{
    for (struct oteli_open *open = thread->stack + 1; open <= thread->top; open++)
        oteli_open_record_no_more(open);
}

/* Another SDK than the one before: whatever is open or in the line belongs to that one. */
static void let_go_of_sdk(struct oteli_thread *thread)
{
    oteli_thread_stop_recording(thread);
    struct oteli_line *line = thread->line;
    OTELI_STORE_RELEASE_PTR(&thread->line, NULL);
    if (line != NULL) {
        oteli_line_keep_no_more();
        oteli_thread_callbacks.lose_line(line);
    }
    /* If it is pinned, an exporter that hangs still reads it. Pairs with drain.c. */
    if (line != NULL && oteli_load_acquire_32(&line->pins) == 0)
        oteli_line_put(line);
    oteli_thread_count_from_zero(thread);
}

/* A decision by which spans go the long way: the fast one does not count remote parents, nor
 * does it hold anything. */
static uint8_t the_long_way(uint8_t decision)
{
    if (decision == OTELI_DECIDE_SAMPLE)
        return OTELI_DECIDE_SAMPLE_AND_HOLD;
    return decision == OTELI_DECIDE_DROP ? OTELI_DECIDE_DROP_AND_COUNT : decision;
}

void oteli_thread_scope(struct oteli_thread *thread, bool is_scoped)
{
    thread->is_scoped = is_scoped;
    memcpy(thread->decide, thread->unscoped, sizeof thread->unscoped);
    for (unsigned i = 0; i < OTELI_PARENT_KINDS && is_scoped; i++)
        if (thread->decide[i] == OTELI_DECIDE_SAMPLE)
            thread->decide[i] = OTELI_DECIDE_SAMPLE_AND_HOLD;
}

static void adopt_sdk(struct oteli_thread *thread, struct oteli_sdk *sdk)
{
    let_go_of_sdk(thread);
    oteli_add_full_32(&sdk->threads, 1);
    for (unsigned i = 0; i < OTELI_PARENT_KINDS; i++) {
        const bool is_remote =
            i == OTELI_PARENT_REMOTE_SAMPLED || i == OTELI_PARENT_REMOTE_UNSAMPLED;
        const bool holds = i == OTELI_PARENT_NONE && sdk->limits.roots_hold &&
                           sdk->decide[i] == OTELI_DECIDE_SAMPLE;
        thread->decide[i] = is_remote || holds ? the_long_way(sdk->decide[i]) : sdk->decide[i];
    }
    memcpy(thread->unscoped, thread->decide, sizeof thread->unscoped);
    oteli_thread_scope(thread, thread->is_scoped);
    thread->limits = sdk->limits;
    thread->program = sdk->program;
    thread->is_roundabout = sdk->program.is_roundabout;
    oteli_store_release_64(&thread->generation, sdk->generation); /* statistics, harvest */
}

struct oteli_thread *oteli_thread_refresh(void)
{
    if (oteli_load_acquire_64(&oteli_generation) == 0)
        return NULL;
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL)
        return NULL;
    const bool was_busy = oteli_thread_is_busy(thread);
    oteli_thread_hurry(thread); /* no signal handler may adopt another meanwhile */
    if (OTELI_UNLIKELY(oteli_load_acquire_64(&oteli_generation) == OTELI_REVIVE))
        oteli_sdk_revive();
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && thread->generation != sdk->generation)
        adopt_sdk(thread, sdk);
    oteli_sdk_return(thread);
    if (!was_busy)
        oteli_thread_finish(thread);
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

/* The places of a stack from the first that is new. The lowest is no span's. */
static void make_places(struct oteli_open *stack, uint32_t first, uint32_t capacity)
{
    memset(stack + first, 0, (capacity - first) * sizeof *stack);
    for (uint32_t i = first; i < capacity; i++)
        stack[i].usual_ref = oteli_ref_make(0, OTELI_PLACE_LOCAL, false, i, 0) | OTELI_REF_USUAL;
    if (first == 0)
        stack[0] = bottom;
}

bool oteli_thread_deepen(struct oteli_thread *thread)
{
    const uint32_t before = thread->open_capacity;
    const uint32_t first = thread->fibre != NULL ? FIRST_DEPTH_OF_FIBRE : FIRST_DEPTH;
    const uint32_t capacity = before == 0 ? first : before * 2;
    if (capacity > DEEPEST) {
        OTELI_LOG(OTEL_LOG_WARN, "%u spans are open on one thread: are they ended there?", before);
        return false;
    }
    struct oteli_open *stack = oteli_aligned_alloc(OTELI_CACHELINE, capacity * sizeof *stack);
    if (stack == NULL)
        return false;
    const uint32_t depth = before != 0 ? (uint32_t)(thread->top - thread->stack) : 0;
    struct oteli_open *const old = before != 0 ? thread->stack : NULL;
    if (before != 0)
        memcpy(stack, old, before * sizeof *stack);
    make_places(stack, before, capacity);
    for (uint32_t i = 0; i < before; i++)
        if (stack[i].shown == &old[i].record)
            stack[i].shown = &stack[i].record;
    stack[0].outgrown = old;
    thread->top = stack + depth;
    thread->last = stack + capacity - 1;
    thread->stack = stack;
    thread->open_capacity = capacity;
    oteli_thread_bound(thread);
    if (before != 0 && otel_thread_ctx_v1 == &old[depth].record)
        otel_thread_ctx_v1 = &stack[depth].record;
    return true;
}

static uint32_t forks;

uint32_t oteli_thread_forks(void)
{
    return oteli_load_relaxed_32(&forks);
}

void oteli_threads_forget(struct oteli_thread *kept)
{
    oteli_store_relaxed_32(&forks, forks + 1);
    list = kept;
}

void oteli_threads_end(bool for_good)
{
    list = NULL;
    if (has_exit_key)
        pthread_setspecific(exit_key, NULL);
    if (has_exit_key && for_good)
        pthread_key_delete(exit_key);
    has_exit_key = has_exit_key && !for_good;
}

struct oteli_thread *oteli_threads(void)
{
    return OTELI_LOAD_ACQUIRE_PTR(&list); /* pairs with the CAS of make */
}

static _Thread_local bool is_silent;

void oteli_thread_silence(void)
{
    is_silent = true;
}

bool oteli_thread_is_silent(void)
{
    return is_silent;
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
    oteli_store_relaxed_32(&thread->in_sdk, oteli_load_relaxed_32(&thread->in_sdk) + 1);
    oteli_fence_full();
    if (oteli_load_acquire_64(&oteli_generation) == 0)
        return NULL;
    return OTELI_LOAD_ACQUIRE_PTR(&oteli_sdk_current);
}

void oteli_sdk_return(struct oteli_thread *thread)
{
    const uint32_t depth = oteli_load_relaxed_32(&thread->in_sdk);
    if (depth != 0) /* a child that was forked inside begins with 0 */
        oteli_store_release_32(&thread->in_sdk, depth - 1);
}

void oteli_wake_slow(void)
{
    struct oteli_thread *thread = oteli_self;
    if (thread == &oteli_empty_thread || !oteli_thread_begin(thread))
        return; /* nothing was committed here, or the call under way will look as well */
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation && oteli_sdk_set_asleep(sdk, false))
        sdk->wake(sdk);
    oteli_sdk_return(thread);
    oteli_thread_finish(thread);
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

bool oteli_sdk_is_borrowed(const struct oteli_sdk *sdk)
{
    (void)sdk;
    for (struct oteli_thread *at = oteli_threads(); at != NULL; at = at->next)
        if (oteli_load_acquire_32(&at->in_sdk) != 0)
            return true;
    return false;
}
