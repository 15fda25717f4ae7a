/* SPDX-License-Identifier: Apache-2.0 */
/* api/span/inspect.c - see inspect.h. App threads. */
#include "api/span/inspect.h"
#include "api/active/fast_attribute.h"
#include "api/record/span_encoder.h"
#include "api/thread/detached_pool.h"
#include "api/thread/thread_state.h"

/* How far up a stack of places the local root is looked for: nearly always it is the first. */
enum { PLACES_MOST = 64 };

static void peek_recorded(const struct oteli_active_span *active, struct oteli_peek *peek)
{
    const otel_slice found = oteli_active_find(active, peek->key, peek->key_length);
    const uint8_t *at = (const uint8_t *)found.data;
    struct oteli_field value;
    peek->status = active->unusual.status;
    if (found.length == 0 || !oteli_next_field(&at, at + found.length, &value))
        return;
    at = value.bytes;
    if (!oteli_next_field(&at, value.bytes + value.length, &value) ||
        value.number != OTELI_ANY_STRING)
        return;
    peek->length = value.length;
    if (value.bytes != NULL)
        memcpy(peek->value, value.bytes, value.length < peek->size ? value.length : peek->size);
}

/* Whether a span that records came from outside of this process, or from nowhere. */
static bool is_root(const struct oteli_active_span *active)
{
    return active->parent_id == 0 || (active->traits.wire_flags & OTELI_FLAG_IS_REMOTE) != 0;
}

/* The id of a span if it is a local root; otherwise 0. */
static uint64_t root_in(const struct oteli_active_span *active)
{
    /* One that does not record is started under the place below it, nearly always, and does not
     * say where it came from. */
    return !oteli_active_records(active) || is_root(active) ? active->self.opaque[2] : 0;
}

/* The lowest span of the trace on this thread's stack, if that is a local root. An attached one may
 * be open in the pool. */
static uint64_t root_on_stack(const struct oteli_thread *thread, const otel_span *span)
{
    const struct oteli_active_span *last = thread->top;
    if (last - thread->stack > PLACES_MOST)
        last = thread->stack + PLACES_MOST;
    for (const struct oteli_active_span *active = thread->stack; active <= last; active++) {
        const otel_span *self = &active->self;
        if (self->opaque[2] == 0 || self->opaque[0] != span->opaque[0] ||
            self->opaque[1] != span->opaque[1] ||
            (self->opaque[3] & (OTELI_REF_REMOTE | OTELI_REF_DEAD)) != 0)
            continue;
        if (!oteli_active_is_mention(active))
            return root_in(active);
        struct oteli_active_span *detached = oteli_detached_lock(otel_span_ref_of(self));
        if (detached == NULL)
            return 0;
        const uint64_t root_id = root_in(detached);
        oteli_detached_unlock(detached);
        return root_id;
    }
    return 0;
}

void oteli_span_peek(const otel_span *span, struct oteli_peek *peek)
{
    struct oteli_thread *thread = oteli_self;
    peek->length = 0;
    peek->root_id = 0;
    peek->status = OTEL_SPAN_STATUS_UNSET;
    peek->is_collected = oteli_span_is_collected(span);
    if (thread == &oteli_empty_thread || !oteli_thread_enter_call(thread))
        return;
    struct oteli_active_span *active = oteli_open_find(thread, otel_span_ref_of(span));
    const bool is_open = active != NULL;
    if (is_open && oteli_active_records(active))
        peek_recorded(active, peek);
    if (is_open && oteli_ref_where(active->usual_ref) == OTELI_SPAN_IN_POOL)
        peek->root_id = root_in(active);
    oteli_open_release(active);
    if (is_open && peek->root_id == 0)
        peek->root_id = root_on_stack(thread, span);
    oteli_thread_leave_call(thread);
}
