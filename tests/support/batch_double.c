/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/batch_double.c - the contracts are in batch_double.h. Test thread; owns the
 * copied spans. */
#include "tests/support/batch_double.h"

#include "common/wire.h"
#include "sdk/pipeline/span_fields.h"
#include "sdk/view/span_view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void batch_double_add(struct batch_double *batch, const otel_scope_view *scope, const void *bytes,
                      size_t length)
{
    batch->spans = realloc(batch->spans, (batch->size + 1) * sizeof *batch->spans);
    uint8_t *copy = malloc(length + 1);
    if (batch->spans == NULL || copy == NULL)
        abort();
    if (length != 0)
        memcpy(copy, bytes, length);
    batch->spans[batch->size++] = (struct batch_double_span){copy, length, scope};
}

void batch_double_fini(struct batch_double *batch)
{
    for (size_t i = 0; i < batch->size; i++)
        free(batch->spans[i].bytes);
    free(batch->spans);
    *batch = (struct batch_double){0};
}

const otel_batch *batch_double_view(const struct batch_double *batch)
{
    return (const otel_batch *)(const void *)batch;
}

static const struct batch_double *double_of(const otel_batch *batch)
{
    return (const struct batch_double *)(const void *)batch;
}

struct export_double export_double_of(const struct batch_double *batch, uint64_t deadline_ns)
{
    return (struct export_double){
        .export = {.batch = batch_double_view(batch), .deadline_ns = deadline_ns}};
}

size_t export_double_lost(const struct export_double *call)
{
    size_t lost = call->rejected;
    for (size_t i = 0; i < OTEL_DROP_REASON_COUNT; i++)
        lost += call->dropped[i];
    return lost;
}

size_t otel_batch_size(const otel_batch *batch)
{
    return double_of(batch)->size;
}

otel_slice otel_batch_span_otlp(const otel_batch *batch, size_t index,
                                const otel_scope_view **scope)
{
    assert(index < double_of(batch)->size);
    const struct batch_double_span *span = &double_of(batch)->spans[index];
    *scope = span->scope;
    return (otel_slice){.data = (const char *)span->bytes, .length = span->length};
}

/* What the SDK would do, on the double's bytes; weak, for tests that have views of their own. */
__attribute__((weak)) void otel_batch_span(const otel_batch *batch, size_t index,
                                           otel_span_view *span)
{
    const otel_scope_view *scope;
    const otel_slice otlp = otel_batch_span_otlp(batch, index, &scope);
    oteli_span_view_fill(span, otlp, scope);
}

const otel_scope_view *oteli_batch_scope(const otel_batch *batch, size_t index)
{
    return double_of(batch)->spans[index].scope;
}

enum { SCOPE_SPANS_SPANS = 2 };

size_t oteli_batch_measure(const otel_batch *batch, size_t first, size_t most, size_t room,
                           size_t *bytes)
{
    const struct batch_double_span *spans = double_of(batch)->spans + first;
    const size_t left = double_of(batch)->size - first;
    size_t count = 0;
    *bytes = 0;
    for (; count < most && count < left && spans[count].scope == spans[0].scope; count++) {
        const size_t field = oteli_bytes_field_size(SCOPE_SPANS_SPANS, spans[count].length);
        if (field > room - *bytes)
            break;
        *bytes += field;
    }
    return count;
}

uint8_t *oteli_batch_put(const otel_batch *batch, size_t first, size_t count, uint8_t *at)
{
    for (size_t i = first; i < first + count; i++) {
        const struct batch_double_span *span = &double_of(batch)->spans[i];
        at = oteli_put_bytes_field(at, SCOPE_SPANS_SPANS, span->bytes, span->length);
    }
    return at;
}

otel_slice otel_batch_resource(const otel_batch *batch)
{
    return double_of(batch)->resource;
}

otel_slice otel_batch_resource_schema_url(const otel_batch *batch)
{
    return double_of(batch)->schema_url;
}

void otel_export_spool(otel_export *call, size_t count)
{
    ((struct export_double *)call)->spooled += count;
}

void otel_export_reject(otel_export *call, size_t count)
{
    ((struct export_double *)call)->rejected += count;
}

void otel_export_drop(otel_export *call, otel_drop_reason reason, size_t count)
{
    ((struct export_double *)call)->dropped[reason] += count;
}
