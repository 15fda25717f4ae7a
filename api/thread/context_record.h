/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/context_record.h - by what others know what a thread is working for
 * (otel/thread_context.h).
 *
 * The beginning of a place is laid out as the record that they read, so that publishing a span
 * costs a pointer. A place is written before it becomes current, and the thread's pointer is set
 * to it then; the place below it keeps what was published before, and leaving sets the pointer to
 * that again: mostly what the place below shows, but it may be what another library has published
 * through the same pointer. So a reader that stops the thread, at any instruction, or interrupts it
 * with a signal, finds the context of before or that of after, and never half of one. The record of
 * a place that may be shown is not written; where it has to be, a copy is shown meanwhile. Memory
 * that a stack has grown out of stays, with the records in it.
 *
 * A handle can say more than a record may: a tracestate, that the sampling is not decided yet,
 * or that the span is collected. Such a place shows a record that is apart, or that there is none.
 *
 * Threads:  a thread's records and pointer are its own; a reader has stopped it. */
#ifndef OTELI_CONTEXT_RECORD_H
#define OTELI_CONTEXT_RECORD_H

#include "api/active/active_span.h"
#include "common/base/internal_api.h"
#include <otel/thread_context.h>

/* As the OTEP has it: what follows the 28 bytes are attributes, of which there are none. */
_Static_assert(sizeof(otel_thread_context_record) == 28, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, trace_id) == 0, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, span_id) == 16, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, valid) == 24, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, trace_flags) == 25, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, attributes_size) == 26, "OTEP 4947");

_Static_assert(offsetof(struct oteli_active_span, record) ==
                   offsetof(struct oteli_active_span, self),
               "one");

/* What a place shows, written if need be. */
OTELI_COLD const otel_thread_context_record *oteli_record_apart(struct oteli_active_span *active);
static OTELI_INLINE const otel_thread_context_record *oteli_record_of(
    struct oteli_active_span *active)
{
    const bool is_record = oteli_ref_is_record(active->self.opaque[3]);
    return OTELI_LIKELY(is_record) ? &active->record : oteli_record_apart(active);
}

/* Whether it is one that the place has shown, or the one that says of nothing. */
bool oteli_record_is_of(const struct oteli_active_span *active,
                        const otel_thread_context_record *record);

/* Of the calling thread's pointer, without naming it. */
OTELI_INTERNAL_API const void *oteli_thread_ctx_address(void);

#endif
