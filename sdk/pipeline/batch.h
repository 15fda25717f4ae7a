/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/batch.h - a batch: pointers to records, the lines they keep alive, and memory for
 * those that are in no line because they were made of others (sdk/pipeline/mount_expand.h).
 *
 * Worker only. */
#ifndef OTELI_BATCH_H
#define OTELI_BATCH_H

#include "api/record/raw_record.h"
#include "sdk/pipeline/arena.h"
#include <otel/exporter.h>

struct oteli_resource;

struct otel_batch {
    struct oteli_record **records; /* capacity of them */
    size_t count;
    size_t capacity;
    size_t address_count;      /* of records whose names are still to be looked up */
    struct oteli_line **lines; /* pinned by this batch; one entry for each run of records */
    size_t line_count;
    struct oteli_arena arena;
    const struct oteli_resource *resource;
};

bool oteli_batch_init(otel_batch *batch, size_t capacity, const struct oteli_resource *resource);
void oteli_batch_fini(otel_batch *batch);

/* Add the record of a span, which is not raw, to a batch that has room. It is finished when an
 * exporter looks at it, right before its bytes are needed. */
static inline void oteli_batch_add(otel_batch *batch, struct oteli_record *record)
{
    batch->address_count += (record->what & OTELI_RECORD_ADDRESS) != 0;
    batch->records[batch->count++] = record;
}

/* Forget the records, and the memory of those that were made. */
void oteli_batch_empty(otel_batch *batch);

/* An export as the SDK sees it: the exporter's view first, and what was answered. */
struct oteli_call {
    otel_export view;
    uint64_t rejected;
    uint64_t spooled;
    uint64_t dropped[OTEL_DROP_REASON_COUNT];
};

#endif
