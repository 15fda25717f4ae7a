/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/thread_state.c - what is done to one state: its stack grows, what it publishes is
 * written anew, it borrows the SDK. App threads, all of it cold. */
#include "api/thread/thread_state.h"
#include "common/base/alloc.h"
#include "common/log.h"

#include <string.h>

enum { FIRST_DEPTH = 16, FIRST_DEPTH_OF_FIBRE = 4, DEEPEST = 1 << 16 };

static struct oteli_active_span bottom = {.self = {{0, 0, 0, OTELI_REF_ATTACHED}},
                                          .below = OTELI_NOT_A_COVER};
struct oteli_thread oteli_empty_thread = {.fast = OTELI_EMPTY_STATE,
                                          .generation = OTELI_NO_GENERATION,
                                          .top = &bottom,
                                          .last = &bottom,
                                          .stack = &bottom};
const struct oteli_traits oteli_simple_traits = {.bits = OTELI_IS_ATTACHED_SIMPLY};

/* Each span reads the one and writes the other: together they are in one cache line. */
#define TOGETHER __attribute__((section(".tdata.otel")))
OTELI_TLS struct oteli_thread *oteli_self TOGETHER __attribute__((aligned(16))) =
    &oteli_empty_thread;
TOGETHER OTEL_THREAD_CONTEXT_TLS_ const otel_thread_context_record *otel_thread_ctx_v1;

/* The static library shows programs this name of it as otel_thread_ctx_v1, and reaches it by one
 * that is not exported (cmake/OneObject.cmake): a linker then knows the distance from the thread
 * pointer, where a static-pie would otherwise end before main, in a relocation that glibc cannot do
 * there. */
extern OTEL_API_DATA OTEL_THREAD_CONTEXT_TLS_ const otel_thread_context_record
    *oteli_thread_ctx_exported __attribute__((alias("otel_thread_ctx_v1")));

const void *oteli_thread_ctx_address(void)
{
    return &otel_thread_ctx_v1;
}

void oteli_thread_publish_nothing(const struct oteli_thread *thread)
{
    if (thread->top != thread->stack)
        otel_thread_ctx_v1 = thread->stack->shown;
}

void oteli_thread_rewrite(struct oteli_thread *thread, struct oteli_active_span *active,
                          const otel_span *self)
{
    const bool is_shown = active == thread->top && oteli_record_is_of(active, otel_thread_ctx_v1);
    if (is_shown) {
        thread->aside = *otel_thread_ctx_v1;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        otel_thread_ctx_v1 = &thread->aside;
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    active->self = *self;
    active->shown = oteli_record_of(active);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (is_shown)
        otel_thread_ctx_v1 = active->shown;
}

void oteli_thread_count_from_zero(struct oteli_thread *thread)
{
    thread->used = 0;
    thread->line_end = 0;
    thread->quota_end = 0;
    thread->quota_size = 0;
    uint64_t *const counts = (uint64_t *)&thread->counts;
    for (size_t i = 0; i < sizeof thread->counts / sizeof *counts; i++)
        oteli_store_relaxed_64(&counts[i], 0);
}

void oteli_active_record_no_more(struct oteli_active_span *active)
{
    active->self.opaque[3] &= ~OTEL_SPAN_IS_RECORDING_;
    oteli_active_begin_own(active);
}

void oteli_thread_stop_recording(struct oteli_thread *thread)
{
    for (struct oteli_active_span *active = thread->stack + 1; active <= thread->top; active++)
        oteli_active_record_no_more(active);
}

void oteli_thread_scope(struct oteli_thread *thread, bool is_scoped)
{
    thread->is_scoped = is_scoped;
    for (unsigned i = 0; i < OTELI_PARENT_KINDS; i++)
        thread->decide[i] =
            is_scoped ? oteli_decide_slowly(thread->unscoped[i]) : thread->unscoped[i];
}

/* The places of a stack from the first that is new. The lowest is no span's. */
static void make_places(struct oteli_active_span *stack, uint32_t first, uint32_t capacity)
{
    memset(stack + first, 0, (capacity - first) * sizeof *stack);
    for (uint32_t i = first; i < capacity; i++)
        stack[i].usual_ref = oteli_ref_make(0, OTELI_SPAN_ON_STACK, false, i, 0) | OTELI_REF_USUAL;
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
    struct oteli_active_span *stack =
        oteli_aligned_alloc(OTELI_CACHELINE, capacity * sizeof *stack);
    if (stack == NULL)
        return false;
    const uint32_t depth = before != 0 ? (uint32_t)(thread->top - thread->stack) : 0;
    struct oteli_active_span *const old = before != 0 ? thread->stack : NULL;
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

uint32_t oteli_thread_forks;

static _Thread_local bool is_silent;

void oteli_thread_silence(void)
{
    is_silent = true;
}

bool oteli_thread_is_silent(void)
{
    return is_silent;
}

/* Borrowing is a hazard pointer: say that we are inside, then look whether the SDK is
 * still installed. The thread that frees it uninstalls it first, then looks whether we are inside.
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
    if (thread == &oteli_empty_thread || !oteli_thread_enter_call(thread))
        return; /* nothing was committed here, or the call under way will look as well */
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation && oteli_sdk_set_asleep(sdk, false))
        sdk->wake(sdk);
    oteli_sdk_return(thread);
    oteli_thread_leave_call(thread);
}
