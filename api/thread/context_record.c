/* SPDX-License-Identifier: Apache-2.0 */
/* api/thread/context_record.c - records that are no places. App threads. */
#include "api/thread/context_record.h"
#include "common/base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* Shown for a span that is collected, which has ids of no trace, and without memory. */
static const otel_thread_context_record nothing;

static bool is_known(const otel_span *span)
{
    return oteli_span_is_valid(span) && !oteli_span_is_collected(span);
}

static bool has_memory(struct oteli_active_span *active)
{
    if (active->apart != NULL)
        return true;
    active->apart = oteli_calloc(1, sizeof *active->apart);
    return active->apart != NULL;
}

const otel_thread_context_record *oteli_record_apart(struct oteli_active_span *active)
{
    if (!is_known(&active->self) || !has_memory(active))
        return &nothing;
    otel_thread_context_record record = active->record;
    record.valid = 1;
    record.trace_flags = oteli_ref_flags(active->self.opaque[3]);
    record.attributes_size = 0;
    if (memcmp(active->apart, &record, sizeof record) != 0) /* or it may be shown just now */
        *active->apart = record;
    return active->apart;
}

bool oteli_record_is_of(const struct oteli_active_span *active,
                        const otel_thread_context_record *record)
{
    return record == &active->record || record == &nothing ||
           (record != NULL && record == active->apart);
}
