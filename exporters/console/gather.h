/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/gather.h - spans wait here until their trace can be drawn.
 *
 *     gather ─▶ trace ─▶ spans, and one chain of memory blocks for all that they point to
 *               trace
 *
 * Traces stand in the order in which they were last added to. The caller decides when a
 * trace is ready, and keeps the whole bounded by looking at the counts.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_CONSOLE_GATHER_H
#define OTELI_CONSOLE_GATHER_H

#include "exporters/console/render.h"

#include <otel/exporter.h>

struct oteli_gather_block;

struct oteli_gather_trace {
    uint8_t trace_id[16];
    const struct oteli_render_span **spans;
    size_t span_count;
    uint64_t touched_ns; /* the caller's: when the last span came */
    bool is_ready;       /* the caller's: it may be drawn */
    bool is_checked;     /* the caller's: whether it is ready has been looked at */

    /* The gather's own. */
    size_t span_capacity;
    size_t bytes;
    struct oteli_gather_block *blocks;
    struct oteli_gather_trace *older, *newer;
    struct oteli_gather_trace *next_in_bucket;
};

struct oteli_gather {
    struct oteli_gather_trace *oldest, *newest;
    size_t trace_count;
    size_t span_count;
    size_t bytes; /* of memory, near enough */

    struct oteli_gather_trace **buckets;
    size_t bucket_count;
    uint64_t seed;             /* so that nobody can choose ids that meet in one bucket */
    struct oteli_text scratch; /* for attributes, reused */
};

void oteli_gather_init(struct oteli_gather *gather);
void oteli_gather_fini(struct oteli_gather *gather);

/* The trace of this id, found or new, now the newest. NULL: no memory. */
struct oteli_gather_trace *oteli_gather_open(struct oteli_gather *gather, const uint8_t *trace_id);

/* A zeroed span of the trace to fill in, with its trace id set. NULL: no memory. */
struct oteli_render_span *oteli_gather_add(struct oteli_gather *gather,
                                           struct oteli_gather_trace *trace);

/* Memory that lives as long as the trace, zeroed; NULL without memory. And a copy of a
 * text, cut to OTELI_RENDER_TEXT_MAX bytes; empty without memory. */
void *oteli_gather_allocate(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                            size_t size);
otel_slice oteli_gather_copy(struct oteli_gather *gather, struct oteli_gather_trace *trace,
                             otel_slice text);

/* Take a span in. The trace that it now belongs to, or NULL without memory. */
struct oteli_gather_trace *oteli_gather_keep(struct oteli_gather *gather,
                                             const otel_span_view *view, otel_slice service);

/* The service.name among the attributes of a resource; empty: there is none. */
otel_slice oteli_gather_service(otel_slice resource);

/* Forget a trace and what its spans point to. */
void oteli_gather_remove(struct oteli_gather *gather, struct oteli_gather_trace *trace);

#endif
