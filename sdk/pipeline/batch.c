/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/pipeline/batch.c - batches of records, and what exporters ask of them. Worker. */
#include "sdk/pipeline/batch.h"
#include "api/record/set_roots.h"
#include "sdk/pipeline/span_fields.h"
#include "sdk/resource/resource.h"
#include "sdk/view/span_view.h"

#include <stdlib.h>

bool oteli_batch_init(otel_batch *batch, size_t capacity, const struct oteli_resource *resource)
{
    *batch = (otel_batch){.capacity = capacity, .resource = resource};
    batch->records = calloc(capacity, sizeof *batch->records);
    batch->lines = calloc(capacity, sizeof *batch->lines);
    return batch->records != NULL && batch->lines != NULL;
}

void oteli_batch_fini(otel_batch *batch)
{
    free(batch->records);
    free(batch->lines);
    oteli_arena_fini(&batch->arena);
    *batch = (otel_batch){0};
}

void oteli_batch_empty(otel_batch *batch)
{
    batch->count = 0;
    batch->line_count = 0;
    batch->address_count = 0;
    oteli_arena_reset(&batch->arena);
}

size_t otel_batch_size(const otel_batch *batch)
{
    return batch->count;
}

otel_slice otel_batch_span_otlp(const otel_batch *batch, size_t index,
                                const otel_scope_view **scope)
{
    struct oteli_record *record = batch->records[index];
    if (OTELI_LIKELY((record->what & OTELI_RECORD_RAW) != 0))
        record = oteli_raw_finish((struct oteli_raw *)(void *)record);
    else
        oteli_record_convert(record);
    *scope = oteli_record_scope(record);
    return (otel_slice){(const char *)oteli_record_message(record), record->length};
}

const otel_scope_view *oteli_batch_scope(const otel_batch *batch, size_t index)
{
    return oteli_record_scope(batch->records[index]);
}

size_t oteli_batch_measure(const otel_batch *batch, size_t first, size_t most, size_t room,
                           size_t *bytes)
{
    const size_t left = batch->count - first;
    return oteli_records_measure(batch->records + first, most < left ? most : left, room, bytes);
}

uint8_t *oteli_batch_put(const otel_batch *batch, size_t first, size_t count, uint8_t *at)
{
    return oteli_records_put(batch->records + first, count, at);
}

otel_slice otel_batch_resource(const otel_batch *batch)
{
    return (otel_slice){batch->resource->otlp, batch->resource->otlp_length};
}

otel_slice otel_batch_resource_schema_url(const otel_batch *batch)
{
    const char *url = batch->resource->schema_url;
    return url != NULL ? (otel_slice){url, strlen(url)} : (otel_slice){"", 0};
}

void otel_batch_span(const otel_batch *batch, size_t index, otel_span_view *span)
{
    const otel_scope_view *scope;
    const otel_slice otlp = otel_batch_span_otlp(batch, index, &scope);
    oteli_span_view_fill(span, otlp, scope);
}
