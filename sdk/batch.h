/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/batch.h - a batch: pointers to records in lines, and the lines they keep alive.
 *
 * Worker only. Records are complete when they are added: their ticks are nanoseconds. */
#ifndef OTELI_BATCH_H
#define OTELI_BATCH_H

#include "api/line.h"
#include <otel/exporter.h>

struct oteli_resource;

struct otel_batch {
    struct oteli_record **records; /* capacity of them */
    size_t count;
    size_t capacity;
    struct oteli_line **lines; /* pinned by this batch; one entry for each run of records */
    size_t line_count;
    const struct oteli_resource *resource;
};

bool oteli_batch_init(otel_batch *batch, size_t capacity, const struct oteli_resource *resource);
void oteli_batch_fini(otel_batch *batch);

/* Turn a record's ticks into nanoseconds, where they are. */
void oteli_record_convert(struct oteli_record *record);

/* An export as the SDK sees it: the exporter's view first, and what was answered. */
struct oteli_call {
    otel_export view;
    uint64_t rejected;
    uint64_t dropped[OTEL_DROP_REASON_COUNT];
};

#endif
