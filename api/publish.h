/* SPDX-License-Identifier: Apache-2.0 */
/* api/publish.h - the records by which others know what a thread is working for
 * (otel/thread_context.h): one for each place of a stack.
 *
 * A place's record is written before the place becomes current, and the thread's pointer is set
 * to it then; leaving a place sets the pointer to what the one below shows. So whoever stops
 * the thread, at any instruction, or interrupts it with a signal, finds the context of before
 * or that of after, and never half of one. Records do not move when a stack grows.
 *
 * A place shows its own record. One without a span shows, when what came above it has left,
 * what was published before: nothing, or what another library has published through the same
 * pointer, which has it back.
 *
 * Threads:  a thread's records and pointer are its own; whoever reads them has stopped it. */
#ifndef OTELI_PUBLISH_H
#define OTELI_PUBLISH_H

#include "api/open.h"
#include "common/lent.h"
#include <otel/thread_context.h>

/* As the OTEP has it: what follows the 28 bytes are attributes, of which there are none. */
_Static_assert(sizeof(otel_thread_context_record) == 28, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, trace_id) == 0, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, span_id) == 16, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, valid) == 24, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, trace_flags) == 25, "OTEP 4947");
_Static_assert(offsetof(otel_thread_context_record, attributes_size) == 26, "OTEP 4947");

/* The members `valid`, `trace_flags` and `attributes_size` of a span with these flags. */
static inline uint32_t oteli_record_state(uint64_t ref)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return 1 | (uint32_t)oteli_ref_flags(ref) << 8;
#else
    return UINT32_C(1) << 24 | (uint32_t)oteli_ref_flags(ref) << 16;
#endif
}

/* What is said of a span to others: what is collected has no trace that they could know. */
static inline uint32_t oteli_record_state_of(const otel_span *span)
{
    const bool is_known = oteli_span_is_valid(span) && !oteli_span_is_collected(span);
    return is_known ? oteli_record_state(span->opaque[3]) : 0;
}

/* Write a record that is not published. */
static OTELI_INLINE void oteli_record_write(otel_thread_context_record *record, oteli_half trace_id,
                                            uint64_t span_id, uint32_t state)
{
    *(oteli_half_at *)(void *)record->trace_id = trace_id;
    memcpy(record->span_id, &span_id, sizeof span_id);
    memcpy(&record->valid, &state, sizeof state);
}

static OTELI_INLINE void oteli_record_write_span(otel_thread_context_record *record,
                                                 const otel_span *span)
{
    oteli_record_write(record, oteli_half_load(span->opaque), span->opaque[2],
                       oteli_record_state_of(span));
}

/* Records for `count` places that have none yet, the first of which owns them; false without
 * memory. */
OTELI_COLD bool oteli_records_make(struct oteli_open *places, uint32_t count);
/* Free those that this place owns. */
void oteli_records_free(struct oteli_open *place);

/* Of the calling thread's pointer, without naming it. */
OTELI_LENT const void *oteli_thread_ctx_address(void);

#endif
