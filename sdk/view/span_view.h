/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/view/span_view.h - read a Span message of our own making. Any thread. */
#ifndef OTELI_SPAN_VIEW_H
#define OTELI_SPAN_VIEW_H

#include <otel/exporter.h>

struct oteli_record;
struct oteli_resource;

/* What processors are shown of an ended span: a view that knows its resource, which outlives it. */
struct oteli_ended_view {
    otel_span_view view; /* first: it is what they are given a pointer to */
    const struct oteli_resource *resource;
};

static inline const struct oteli_resource *oteli_span_view_resource(const otel_span_view *span)
{
    return ((const struct oteli_ended_view *)(const void *)span)->resource;
}

void oteli_span_view_fill(otel_span_view *span, otel_slice otlp, const otel_scope_view *scope);

/* The same for a record whose message is as it will be sent. */
void oteli_span_view_of_record(otel_span_view *span, const struct oteli_record *record);

/* Where its span comes from, which may have no name. */
const otel_scope_view *oteli_record_scope(const struct oteli_record *record);

#endif
