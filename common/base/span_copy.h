/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/span_copy.h - a copy of a span that an exporter keeps beyond its batch.
 *
 * The OTLP bytes are copied, with the view that the batch gave of them; the view points into
 * the copy, which never moves. The scope stays where it is: it lives as long as the exporter.
 *
 * Threads:  one thread at a time for a copy. Freed with free. */
#ifndef OTELI_SPAN_COPY_H
#define OTELI_SPAN_COPY_H

#include <otel/exporter.h>
#include <stdlib.h>
#include <string.h>

struct oteli_kept_span {
    otel_span_view view;
    char otlp[];
};

/* The same place in the copy as `inside` has in the original. */
static inline const char *oteli_kept_place(const char *inside, otel_slice original,
                                           const char *copy)
{
    return inside == NULL ? NULL : copy + (inside - original.data);
}

static inline const uint8_t *oteli_kept_bytes(const uint8_t *inside, otel_slice original,
                                              const char *copy)
{
    return (const uint8_t *)oteli_kept_place((const char *)inside, original, copy);
}

/* NULL: no memory. */
static inline struct oteli_kept_span *oteli_keep_span(const otel_span_view *span)
{
    struct oteli_kept_span *kept =
        (struct oteli_kept_span *)malloc(sizeof *kept + span->otlp.length);
    if (kept == NULL)
        return NULL;
    const otel_slice from = span->otlp;
    memcpy(kept->otlp, from.data, from.length);
    otel_span_view *view = &kept->view;
    *view = *span;
    view->otlp.data = kept->otlp;
    view->trace_id = oteli_kept_bytes(span->trace_id, from, kept->otlp);
    view->span_id = oteli_kept_bytes(span->span_id, from, kept->otlp);
    view->parent_span_id = oteli_kept_bytes(span->parent_span_id, from, kept->otlp);
    otel_slice *const slices[] = {&view->tracestate, &view->name,   &view->status_message,
                                  &view->attributes, &view->events, &view->links};
    for (size_t i = 0; i < sizeof slices / sizeof slices[0]; i++)
        if (slices[i]->length != 0)
            slices[i]->data = oteli_kept_place(slices[i]->data, from, kept->otlp);
    return kept;
}

#endif
