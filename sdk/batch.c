/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/batch.c - batches of records, and what exporters ask of them. Worker. */
#include "sdk/batch.h"
#include "api/tracer.h"
#include "common/clock.h"
#include "common/wire.h"
#include "sdk/resource.h"
#include "sdk/view.h"

#include <stdlib.h>

enum { SPAN_EVENTS = 11 };

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

const otel_scope_view *oteli_record_scope(const struct oteli_record *record)
{
    return record->tracer != NULL ? &record->tracer->scope : &oteli_tracer_nameless.scope;
}

/* The times of events are the first field of each: tag, eight bytes. */
static void convert_events(struct oteli_record *record)
{
    uint8_t *message = oteli_record_message(record);
    const uint8_t *at = message + record->events_at;
    const uint8_t *end = message + record->length;
    struct oteli_field event;
    while (oteli_next_field(&at, end, &event) && event.number == SPAN_EVENTS) {
        uint8_t *time = message + (event.bytes - message) + 1;
        oteli_put_fixed64(time, oteli_clock_to_ns(oteli_get_fixed64(time), record->epoch));
    }
}

void oteli_record_convert(struct oteli_record *record)
{
    uint8_t *const start = oteli_record_message(record) + record->times_at + 1;
    uint8_t *const end = start + 9;
    const uint64_t started = oteli_get_fixed64(start);
    const uint64_t ended = oteli_get_fixed64(end);
    const uint64_t start_ns = oteli_clock_to_ns(started, record->epoch);
    uint64_t end_ns = oteli_clock_to_ns(ended, record->epoch);
    /* As in oteli_raw_finish. What the program says is not ours to change. */
    if (end_ns < start_ns && (started & ended & OTELI_TICKS_BIT) != 0)
        end_ns = start_ns;
    oteli_put_fixed64(start, start_ns);
    oteli_put_fixed64(end, end_ns);
    if (OTELI_UNLIKELY(record->events_at != 0))
        convert_events(record);
}

/* The record of a span with its Span message in it, as it will be sent. */
static struct oteli_record *finish(const otel_batch *batch, size_t index)
{
    struct oteli_record *record = batch->records[index];
    if (OTELI_LIKELY((record->what & OTELI_RECORD_RAW) != 0)) {
        record = oteli_raw_finish((struct oteli_raw *)(void *)record);
        batch->records[index] = record;
    } else {
        oteli_record_convert(record);
    }
    return record;
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
    struct oteli_record *record = finish(batch, index);
    *scope = oteli_record_scope(record);
    return (otel_slice){(const char *)oteli_record_message(record), record->length};
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
