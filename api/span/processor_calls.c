/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/processor_calls.c - the contracts are in api/span/processor_calls.h. App threads. */
#include "api/span/processor_calls.h"
#include "api/held/span_set.h"
#include "api/record/span_encoder.h"
#include "api/thread/detached_pool.h"
#include "api/thread/line_writer.h"
#include "common/clock/clock.h"

#include <inttypes.h>
#include <stdio.h>

/* The SDK, borrowed, while its processors are called; NULL: it has stopped. */
static const struct oteli_sdk *begin_telling(struct oteli_thread *thread)
{
    const struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk == NULL || sdk->generation != thread->generation) {
        oteli_sdk_return(thread);
        return NULL;
    }
    thread->in_processors++;
    return sdk;
}

static void finish_telling(struct oteli_thread *thread)
{
    thread->in_processors--;
    oteli_sdk_return(thread);
}

void oteli_processing_start(const otel_span *span, const otel_context *parent)
{
    struct oteli_thread *thread = oteli_self;
    if ((span->opaque[3] & OTEL_SPAN_IS_RECORDING_) == 0 || !oteli_processing_is_wanted(thread))
        return;
    const struct oteli_sdk *sdk = begin_telling(thread);
    if (sdk == NULL)
        return;
    sdk->span_started(sdk, span, parent);
    finish_telling(thread);
}

/* What comes after the callbacks, and whether it can: a forked child is another thread. */
static bool resume(struct oteli_thread *thread)
{
    return thread == oteli_self && oteli_thread_enter_call(thread);
}

/* Its end is not to be seen. */
static bool is_withheld(const struct oteli_active_span *active)
{
    const bool holds = (active->traits.bits & OTELI_HOLDS) != 0;
    return active->traits.end_as == OTELI_END_CANCELLED ||
           active->traits.end_as == OTELI_END_TOO_SHORT ||
           (holds && oteli_active_hold(active) != 0 && oteli_hold_at(active->hold)->is_cancelled);
}

static bool is_told_of(const struct oteli_active_span *active)
{
    return oteli_active_records(active) && (active->traits.bits & OTELI_IS_PROCESSED) != 0 &&
           !is_withheld(active);
}

static otel_span handle_of(const struct oteli_active_span *active)
{
    otel_span span = active->self;
    span.opaque[3] &= ~OTELI_REF_OF_STACK;
    return span;
}

static uint64_t end_ns_of(const struct oteli_active_span *active, uint64_t end)
{
    return oteli_clock_span_times(oteli_active_start(active), end, active->epoch).end_ns;
}

static void tell_ending(struct oteli_thread *thread, const otel_span *span, uint64_t end_ns)
{
    const struct oteli_sdk *sdk = begin_telling(thread);
    if (sdk == NULL)
        return;
    sdk->span_ending(sdk, span, end_ns);
    finish_telling(thread);
}

/* A span as processors see it: bytes of its own, since those of the line can be gone before
 * they have looked at them. */
struct copy {
    struct oteli_buffer bytes;
    struct oteli_record *record; /* in them; NULL: no memory */
};

/* The thread's scratch memory is used again, unless a span ends inside the end of another. */
static void make_copy(struct oteli_thread *thread, struct oteli_active_span *active, uint64_t end,
                      struct copy *copy)
{
    copy->bytes = thread->scratch;
    thread->scratch = (struct oteli_buffer){0};
    copy->bytes.length = 0;
    copy->record =
        (struct oteli_record *)(void *)oteli_buffer_room(&copy->bytes, oteli_compose_bound(active));
    if (copy->record == NULL)
        return;
    struct oteli_active_span shown = {.self = active->self};
    oteli_detached_copy(&shown, active);
    if ((active->self.opaque[3] & OTELI_REF_COLLECTED) != 0)
        shown.traits.wire_flags &= (uint16_t)~OTEL_TRACE_FLAG_SAMPLED; /* only its mounts are */
    if ((active->traits.bits & OTELI_NAME_IS_ADDRESS) != 0) {
        uintptr_t address;
        memcpy(&address, active->name, sizeof address);
        shown.name_length =
            (uint32_t)snprintf(shown.name, sizeof shown.name, "0x%" PRIxPTR, address);
        shown.traits.bits &= (uint8_t)~OTELI_NAME_IS_ADDRESS;
    }
    oteli_compose(copy->record, &shown, end);
}

static void give_copy_back(struct oteli_thread *thread, struct copy *copy)
{
    if (thread == oteli_self && thread->scratch.data == NULL &&
        copy->bytes.capacity <= OTELI_BUFFER_KEPT)
        thread->scratch = copy->bytes;
    else
        oteli_buffer_fini(&copy->bytes);
}

static void tell_of(struct oteli_thread *thread, struct oteli_record *record)
{
    const struct oteli_sdk *sdk = begin_telling(thread);
    if (sdk == NULL)
        return;
    sdk->span_ended(sdk, record);
    finish_telling(thread);
}

static void tell_ended(struct oteli_thread *thread, struct copy *copy)
{
    if (copy->record != NULL)
        tell_of(thread, copy->record);
    give_copy_back(thread, copy);
}

/* --- the end of a span that has a handle --- */

static bool is_detached(otel_span_ref span)
{
    return oteli_ref_where(span.place) == OTELI_SPAN_IN_POOL;
}

/* Find the place again, with the state busy: the stack may have been moved, and in a forked child
 * the slot of a detached span is the parent's. NULL: it is gone; the state is free and nothing is
 * locked. */
static struct oteli_active_span *find_again(struct oteli_thread *thread,
                                            struct oteli_active_span *active, otel_span_ref span)
{
    if (!resume(thread))
        return NULL;
    if (!is_detached(span))
        active = oteli_thread_find(thread, span);
    else if (!oteli_detached_is_known(active))
        active = NULL;
    if (active == NULL)
        oteli_thread_leave_call(thread);
    return active;
}

/* While processors are told that it has ended it records nothing any more on the stack, and no
 * other thread finds it in the pool. */
static struct oteli_active_span *tell_at_end(struct oteli_thread *thread,
                                             struct oteli_active_span *active, otel_span_ref span,
                                             uint64_t end)
{
    const uint64_t generation = thread->generation;
    struct copy copy;
    make_copy(thread, active, end, &copy);
    if (is_detached(span))
        oteli_detached_hide(active);
    else
        active->self.opaque[3] &= ~OTEL_SPAN_IS_RECORDING_;
    oteli_thread_leave_call(thread);
    tell_ended(thread, &copy);
    active = find_again(thread, active, span);
    if (active != NULL && is_detached(span))
        oteli_detached_show(active, span);
    else if (active != NULL && thread->generation == generation) /* or it is another SDK's matter */
        active->self.opaque[3] |= OTEL_SPAN_IS_RECORDING_;
    return active;
}

/* Whether the span is one of the SDK that this thread is in; those on the stack always are. */
static bool is_of_thread(const struct oteli_thread *thread, const struct oteli_active_span *active,
                         otel_span_ref span)
{
    return !is_detached(span) || active->generation == thread->generation;
}

struct oteli_active_span *oteli_processing_end(struct oteli_thread *thread,
                                               struct oteli_active_span *active, otel_span_ref span,
                                               uint64_t end)
{
    if ((active->traits.bits & OTELI_IS_ENDING) != 0) {
        oteli_thread_leave_call(thread);
        return NULL;
    }
    if (!is_of_thread(thread, active, span) || !is_told_of(active))
        return active;
    const otel_span handle = handle_of(active);
    const uint64_t end_ns = end_ns_of(active, end);
    struct oteli_ending ending = {.span = span, .outer = thread->ending};
    active->traits.bits |= OTELI_IS_ENDING;
    if (is_detached(span)) { /* it is aside, and this thread's */
        oteli_detached_take_aside(active, &ending);
        thread->ending = &ending;
    }
    oteli_thread_leave_call(thread);
    tell_ending(thread, &handle, end_ns);
    if (is_detached(span) && thread == oteli_self)
        thread->ending = ending.outer;
    active = find_again(thread, active, span);
    if (active != NULL && is_detached(span))
        oteli_detached_put_back(active, &ending);
    if (active != NULL && is_of_thread(thread, active, span) && is_told_of(active))
        active = tell_at_end(thread, active, span, end);
    if (active != NULL)
        active->traits.bits &= (uint8_t) ~(OTELI_IS_PROCESSED | OTELI_IS_ENDING);
    return active;
}

/* --- a span that is handed in when it has ended: no handle names it --- */

bool oteli_processing_record(struct oteli_thread *thread, struct oteli_active_span *active,
                             uint64_t end)
{
    const uint64_t generation = thread->generation;
    struct copy copy;
    make_copy(thread, active, end, &copy);
    if (copy.record == NULL) {
        oteli_record_end(thread, active, end);
        oteli_active_leave(active);
        give_copy_back(thread, &copy);
        return true;
    }
    oteli_active_leave(active);
    oteli_thread_leave_call(thread);
    tell_of(thread, copy.record);
    const bool is_held = resume(thread);
    if (is_held && thread->generation == generation) /* or it is another SDK's matter */
        oteli_append_copy(thread, copy.record);
    give_copy_back(thread, &copy);
    return is_held;
}
