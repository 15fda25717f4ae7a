/* SPDX-License-Identifier: Apache-2.0 */
/* api/held/collect.c - collect a stretch of work, mount it, take a trace: otel/lines.h. App
 * threads. */
#include "api/context/tracestate_pool.h"
#include "api/held/span_set.h"
#include "api/record/mount.h"
#include "api/thread/detached_pool.h"
#include "api/thread/line_writer.h"
#include "common/base/sized.h"
#include "common/clock/clock.h"

#include <string.h>

enum { LONGEST_LINK = 640 };

/* Its place is like an attached context's: current until otel_lines_end, and no span. */
static void push_stretch(struct oteli_thread *thread)
{
    const uint64_t trace_id[2] = {oteli_random_id(&thread->random),
                                  oteli_random_id(&thread->random)};
    if (thread->top == thread->last && !oteli_thread_deepen(thread))
        return;
    struct otel_lines *hold = oteli_hold_new(thread->generation, trace_id);
    if (hold == NULL)
        return;
    const uint32_t epoch = oteli_epoch_under(thread, &thread->top->self);
    struct oteli_active_span *active = thread->top + 1;
    const uint64_t ref = oteli_active_place_ref(active) | OTELI_REF_SAMPLED | OTELI_REF_RANDOM |
                         OTELI_REF_COLLECTED | OTELI_REF_ATTACHED;
    active->self = (otel_span){{trace_id[0], trace_id[1], oteli_random_id(&thread->random), ref}};
    active->traits = (struct oteli_traits){0};
    active->epoch = epoch;
    active->hold = oteli_hold_index(hold);
    active->below = OTELI_NOT_A_COVER;
    oteli_thread_push(thread, active);
}

void otel_lines_begin(void)
{
    struct oteli_thread *thread = oteli_self;
    if (!oteli_thread_fits(thread) && !oteli_thread_is_busy(thread))
        thread = oteli_thread_refresh();
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return;
    push_stretch(thread);
    oteli_thread_leave_call(thread);
}

/* The innermost stretch of this thread. */
static struct oteli_active_span *find_stretch(const struct oteli_thread *thread)
{
    for (struct oteli_active_span *active = thread->top; active != thread->stack; active--)
        if (oteli_active_is_stretch(active))
            return active;
    return NULL;
}

otel_lines *oteli_hold_give_to_caller(otel_lines *lines)
{
    oteli_hold_close(lines);
    if (lines->count != 0)
        return lines;
    oteli_hold_leave(lines);
    return NULL;
}

otel_lines *otel_lines_end(void)
{
    struct oteli_thread *thread = oteli_self;
    if (!oteli_thread_enter_call(thread))
        return NULL;
    struct oteli_active_span *active = find_stretch(thread);
    otel_lines *lines = NULL;
    if (active != NULL) {
        lines = oteli_hold_at(active->hold);
        active->hold = 0;
        oteli_thread_leave(thread, active);
        oteli_thread_cover(thread, active);
        lines = oteli_hold_give_to_caller(lines);
    }
    oteli_thread_leave_call(thread);
    return lines;
}

size_t otel_lines_size(const otel_lines *lines)
{
    return lines != NULL ? lines->count : 0;
}

/* The state of this thread for counting what becomes of a set, busy; NULL: another SDK runs
 * than the set's. */
static struct oteli_thread *begin_for(const otel_lines *lines)
{
    struct oteli_thread *thread = oteli_thread_own();
    if (thread == NULL || !oteli_thread_enter_call(thread))
        return NULL;
    if (thread->generation != lines->generation)
        oteli_thread_for_end(lines->generation);
    if (thread->generation == lines->generation)
        return thread;
    oteli_thread_leave_call(thread);
    return NULL;
}

/* The first mount ends the spans that were collected; each further one starts as many. */
static void account(struct oteli_thread *thread, otel_lines *lines)
{
    if (oteli_exchange_full_32(&lines->is_unaccounted, 0) == 0)
        oteli_count(&thread->counts.recorded[OTELI_ORIGIN_LOCAL], lines->count);
}

/* With room for the link behind it. */
union mount_with_link {
    struct oteli_mount mount;
    uint8_t bytes[sizeof(struct oteli_mount) + LONGEST_LINK];
};

static size_t length_of(const union mount_with_link *prepared)
{
    return sizeof prepared->mount + prepared->mount.link_length;
}

static void prepare(union mount_with_link *prepared, struct oteli_thread *thread, otel_lines *lines,
                    const otel_span *parent)
{
    const uint64_t ref = parent->opaque[3];
    const uint32_t flags = (uint32_t)(oteli_ref_flags(ref) | OTELI_FLAG_HAS_IS_REMOTE);
    struct oteli_mount *mount = &prepared->mount;
    mount->lines = lines;
    memcpy(mount->trace_id, parent->opaque, sizeof mount->trace_id);
    mount->parent_id = parent->opaque[2];
    mount->key = oteli_random_id(&thread->random);
    mount->tracestate = oteli_tracestate_retain(oteli_ref_tracestate(ref));
    mount->wire_flags = flags;
    mount->outer_flags = flags | (oteli_ref_is_remote(ref) ? (uint32_t)OTELI_FLAG_IS_REMOTE : 0);
}

static void mount_under(struct oteli_thread *thread, struct oteli_sdk *sdk,
                        union mount_with_link *prepared, otel_lines *lines, const otel_span *parent)
{
    account(thread, lines);
    (void)oteli_epoch_under(thread, parent); /* it has children now */
    if (!sdk->synchronous && !sdk->reserve(sdk, lines->count)) {
        oteli_thread_lose(thread, OTEL_DROP_QUEUE_FULL, lines->count);
        return;
    }
    prepare(prepared, thread, lines, parent);
    oteli_hold_join(lines);
    if (oteli_append_mount(thread, sdk, prepared, length_of(prepared), lines->count)) {
        if (!sdk->synchronous)
            sdk->announce(sdk, lines->count);
        return;
    }
    sdk->give_room_back(sdk, lines->count);
    oteli_thread_lose(thread, OTEL_DROP_BYTE_LIMIT, lines->count);
    sdk->request_drain(sdk);
    oteli_tracestate_release(prepared->mount.tracestate);
    oteli_hold_leave(lines);
}

bool oteli_span_can_be_mounted_under(const otel_span *span)
{
    return oteli_span_is_valid(span) && (span->opaque[3] & OTELI_REF_COLLECTED) == 0 &&
           (oteli_ref_flags(span->opaque[3]) & OTEL_TRACE_FLAG_SAMPLED) != 0;
}

void otel_lines_mount(otel_lines *lines, const otel_span *parents, size_t count,
                      const otel_mount_options *options)
{
    struct oteli_thread *thread = lines != NULL && parents != NULL ? begin_for(lines) : NULL;
    if (thread == NULL)
        return;
    union mount_with_link prepared;
    memset(&prepared, 0, sizeof prepared);
    otel_mount_options known = {0};
    if (options != NULL)
        known =
            *(const otel_mount_options *)oteli_sized(options, options->size, &known, sizeof known);
    if (known.linked != NULL && otel_span_context_is_valid(known.linked)) {
        const otel_link link = {.context = *known.linked};
        prepared.mount.link_length = oteli_put_link(prepared.mount.link, &link);
    }
    struct oteli_sdk *sdk = oteli_sdk_borrow(thread);
    if (sdk != NULL && sdk->generation == thread->generation)
        for (size_t i = 0; i < count; i++)
            if (oteli_span_can_be_mounted_under(&parents[i]))
                mount_under(thread, sdk, &prepared, lines, &parents[i]);
    oteli_sdk_return(thread);
    oteli_thread_leave_call(thread);
    oteli_wake();
}

void otel_lines_free(otel_lines *lines)
{
    if (lines == NULL)
        return;
    struct oteli_thread *thread = begin_for(lines);
    if (thread != NULL) {
        if (oteli_exchange_full_32(&lines->is_unaccounted, 0) != 0)
            oteli_thread_withhold(thread, OTEL_WITHHELD_UNMOUNTED, lines->count);
        oteli_thread_leave_call(thread);
    }
    oteli_hold_leave(lines);
}
