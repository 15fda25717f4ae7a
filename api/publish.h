/* SPDX-License-Identifier: Apache-2.0 */
/* api/publish.h - the records by which others know what a thread is working for
 * (otel/thread_context.h): one for each place of a stack.
 *
 * A place's record is written before the place becomes current, and the thread's pointer is set
 * to it then; leaving a place sets the pointer to the record of the one below. So whoever stops
 * the thread, at any instruction, or interrupts it with a signal, finds the context of before
 * or that of after, and never half of one. Records do not move when a stack grows, and they
 * are apart from the places, so that two of them share a cache line and what interrupts a
 * thread most reads one that is warm.
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

/* A record and what fills its last store. */
union oteli_published {
    otel_thread_context_record record;
    uint64_t words[4];
};

/* The words behind the ids of a record: of a span with these flags; or of none. */
static inline uint64_t oteli_published_state(uint64_t ref)
{
    const otel_thread_context_record record = {.valid = 1, .trace_flags = oteli_ref_flags(ref)};
    uint64_t state = 0;
    memcpy(&state, (const uint8_t *)&record + offsetof(otel_thread_context_record, valid),
           sizeof record - offsetof(otel_thread_context_record, valid));
    return state;
}
#define OTELI_PUBLISHED_NOTHING UINT64_C(0)

/* What is said of a span to others: what is collected has no trace that they could know. */
static inline uint64_t oteli_published_state_of(const otel_span *span)
{
    const bool is_known = oteli_span_is_valid(span) && !oteli_span_is_collected(span);
    return is_known ? oteli_published_state(span->opaque[3]) : OTELI_PUBLISHED_NOTHING;
}

/* Write the record of a place that is not current, with the store of each half whole. */
static OTELI_INLINE void oteli_publish_halves(const struct oteli_open *open, oteli_half trace_id,
                                              uint64_t span_id, uint64_t state)
{
    uint64_t *const words = (uint64_t *)(uintptr_t)open->published;
    oteli_half_store(words, trace_id);
    oteli_half_store(words + 2, (oteli_half){span_id, state});
}

static OTELI_INLINE void oteli_publish_span(const struct oteli_open *open)
{
    oteli_publish_halves(open, oteli_half_load(open->self.opaque), open->self.opaque[2],
                         oteli_published_state_of(&open->self));
}

/* Records for `count` places that have none yet, the first of which owns them; false without
 * memory. */
OTELI_COLD bool oteli_publish_make(struct oteli_open *places, uint32_t count);
/* Free what this place owns. */
void oteli_publish_free(struct oteli_open *place);

#endif
