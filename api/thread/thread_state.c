/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/thread_state.c - make, find, reuse and refresh the states of threads.
 *
 * App threads, all of it cold. The list grows at its head by compare-and-swap and never
 * shrinks while threads trace. */
#include "api/thread/thread_state.h"
#include "api/baggage/baggage_pool.h"
#include "api/active/detached_pool.h"
#include "api/held/span_set.h"
#include "api/held/mount.h"
#include "api/propagators/composite_propagator.h"
#include "api/span/tracer.h"
#include "api/context/tracestate_pool.h"
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

uint32_t otel_is_in_use_;

static struct oteli_thread *list;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_exit_key;

/* Nothing of this thread's is published any more. */
static void publish_nothing(const struct oteli_thread *thread)
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

void oteli_thread_abandon_place(struct oteli_thread *thread, struct oteli_open *open)
{
    if (oteli_open_records(open) && (open->self.opaque[3] & OTELI_REF_OF_STACK) == 0 &&
        (open->traits.bits & OTELI_RECORD_ONLY) == 0)
        oteli_thread_lose(thread, OTEL_DROP_ABANDONED, 1);
    oteli_hold_abandon(thread, open);
    oteli_baggage_release((otel_baggage){open->baggage});
    open->baggage = 0;
    open->traits.bits = 0;
    oteli_open_leave(open);
}

void oteli_thread_abandon(struct oteli_thread *thread)
{
    for (; thread->top != thread->stack; thread->top--)
        oteli_thread_abandon_place(thread, thread->top);
    thread->values = NULL;
    thread->baggage = 0;
    thread->attached = 0;
    thread->lowest_cover = 0;
    oteli_thread_bound(thread);
    if (thread->is_scoped)
        oteli_thread_scope(thread, false);
}

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
    publish_nothing(thread);
    oteli_thread_abandon(thread);
    thread->in_processors = 0;
    thread->ending = NULL;
    oteli_thread_finish(thread);
    oteli_store_release_32(&thread->in_sdk, 0);
    oteli_self = &oteli_empty_thread;
    oteli_store_release_32(&thread->in_use, 0); /* pairs with the CAS of take_over */
}

static void set_up_process(void)
{
    oteli_stay_loaded((oteli_code *)on_thread_exit); /* threads call it when they end */
    has_exit_key = pthread_key_create(&exit_key, on_thread_exit) == 0;
    oteli_fork_add(oteli_api_forget);
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

static void count_from_zero(struct oteli_thread *thread)
{
    thread->used = 0;
    thread->line_end = 0;
    thread->lot_end = 0;
    thread->lot_size = 0;
    uint64_t *const counts = (uint64_t *)&thread->counts;
    for (size_t i = 0; i < sizeof thread->counts / sizeof *counts; i++)
        oteli_store_relaxed_64(&counts[i], 0);
}

/* It will not be exported. Who ends what does not record need not look for attributes. */
static void record_no_more(struct oteli_open *open)
{
    open->self.opaque[3] &= ~OTEL_SPAN_IS_RECORDING_;
    oteli_open_no_attributes(open);
}

void oteli_thread_stop_recording(struct oteli_thread *thread)
{
    for (struct oteli_open *open = thread->stack + 1; open <= thread->top; open++)
        record_no_more(open);
}

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
    /* If it is pinned, an exporter that hangs still reads it. Pairs with harvest.c. */
    if (line != NULL && oteli_load_acquire_32(&line->pins) == 0)
        oteli_line_put(line);
    count_from_zero(thread);
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

/* --- after a fork --- */

/* A span of the parent's, or what mentions one. What is collected has the ids of no trace,
 * and here it will not get into any: it is as if it had been left. */
static void disown(struct oteli_thread *thread, struct oteli_open *open)
{
    const bool is_collected = (open->self.opaque[3] & OTELI_REF_COLLECTED) != 0;
    open->hold = 0;
    open->traits.bits &= (uint8_t)~OTELI_HOLDS;
    open->traits.end_as = OTELI_END_EXPORTED;
    if (oteli_open_is_dead(open))
        return;
    if (oteli_open_is_cover(open)) {
        oteli_thread_show_again(thread, open);
    } else if (!is_collected) {
        record_no_more(open);
        open->self.opaque[3] &= ~(OTELI_REF_HELD | OTELI_REF_HOLDER);
        if (open->traits.is_unusual && (open->self.opaque[3] & OTELI_REF_ATTACHED) == 0 &&
            oteli_tracestate_retain(oteli_open_tracestate(open)) == 0)
            open->self.opaque[3] &= ~OTELI_REF_TRACESTATE; /* by now another span may have it */
    } else if (oteli_open_is_mention(open)) {
        open->self = (otel_span){{0, 0, 0, OTELI_REF_ATTACHED}};
    } else {
        if (oteli_context_is_of_span(open - 1))
            oteli_context_take(thread, open - 1);
        oteli_open_forget(open);
        open->self = (otel_span){{0, 0, 0, OTELI_REF_DEAD}};
        open->below = OTELI_NOT_A_COVER;
        if (open != thread->top)
            open[1].traits.is_unusual = true; /* its end must look below it */
    }
}

void oteli_thread_disown(struct oteli_thread *thread)
{
    for (struct oteli_open *open = thread->stack + 1; open <= thread->top; open++) {
        disown(thread, open);
        if (oteli_baggage_hold((otel_baggage){open->baggage}) == NULL)
            open->baggage = 0;
    }
    thread->baggage = oteli_thread_attached(thread, thread->attached)->baggage;
    oteli_thread_settle(thread);
    oteli_thread_bound(thread);
}

static uint32_t forks;

uint32_t oteli_thread_forks(void)
{
    return oteli_load_relaxed_32(&forks);
}

/* Whether the state is whole: a fork in a signal handler may be in the middle of a call. */
static bool keep_own(struct oteli_thread *thread)
{
    if (thread == &oteli_empty_thread || oteli_thread_is_busy(thread))
        return false;
    OTELI_STORE_RELEASE_PTR(&thread->line, NULL);
    count_from_zero(thread);
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

void oteli_threads_forget(void)
{
    oteli_store_relaxed_32(&forks, forks + 1);
    const bool is_kept = keep_own(oteli_self);
    if (!is_kept) {
        publish_nothing(oteli_self);
        oteli_self = &oteli_empty_thread;
    }
    list = is_kept ? oteli_self : NULL;
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

void oteli_places_free(struct oteli_open *stack, uint32_t capacity)
{
    struct oteli_open *outgrown = capacity != 0 ? stack->outgrown : NULL;
    for (uint32_t i = 0; i < capacity; i++) {
        oteli_baggage_release((otel_baggage){stack[i].baggage});
        free(stack[i].apart);
        oteli_open_fini(&stack[i]);
    }
    if (capacity != 0)
        free(stack);
    while (outgrown != NULL) {
        stack = outgrown;
        outgrown = stack->outgrown;
        free(stack);
    }
}

void oteli_api_reset(void)
{
    struct oteli_thread *at = list;
    list = NULL;
    publish_nothing(oteli_self);
    oteli_self = &oteli_empty_thread;
    if (has_exit_key)
        pthread_setspecific(exit_key, NULL);
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

/* The process ends: give memory back when no other thread can be using it. Other threads may still be
 * tracing while main returns; then it stays. After the destructors of the libraries above this one,
 * whose lines and threads are looked at. */
__attribute__((destructor(101))) static void free_at_exit(void)
{
    if (oteli_load_relaxed_32(&keeps_memory) != 0)
        return;
    if (oteli_generation != 0 || oteli_threads_alive() > (oteli_self != &oteli_empty_thread))
        return;
    oteli_api_reset();
    if (has_exit_key)
        pthread_key_delete(exit_key);
    has_exit_key = false;
}
