/* SPDX-License-Identifier: Apache-2.0 */
/* otel/record.h - hand in spans that have already ended: ids, times and parents come from the
 * caller, who knows them from a log of his own (an access log, a job history, what a server
 * kept of its queries).
 *
 *     otel_span_record(tracer, OTEL_FINISHED_SPAN(
 *         .trace_id = id, .parent_span_id = parent, .flags = OTEL_TRACE_FLAG_SAMPLED,
 *         .name = "GET /", .kind = OTEL_SPAN_KIND_SERVER, .start_ns = start, .end_ns = end));
 *
 * From there on the span is as any other that ended on this thread: limits, one value a key,
 * UTF-8, the queue, the exporters, and otel_stats, which counts it as started and ended. On the
 * way there it is not: it is never current and no span's parent here; it gets no attributes of the
 * context; no sampler is asked, and no rule that holds traces back (tail_keep…), since the caller
 * has decided. Of processors only on_end sees it, for it never started.
 *
 * Threads:  any thread.
 * Signals:  in a handler it may allocate: otel/context.h says what is safe there.
 * Cost:     no lock; no system call but to wake the exporter thread; memory only while a span is
 *           larger than any before it.
 * Errors:   nothing here fails. Without an SDK nothing happens; after otel_shutdown the span is
 *           dropped as OTEL_DROP_ALREADY_SHUTDOWN, inside another call of this thread (in a
 *           signal handler) as OTEL_DROP_REENTRANT.
 * Strings:  as in otel/trace.h.
 * Source:   otel-c's own; the fields are those of Span in OTLP's trace.proto. */
#ifndef OTEL_RECORD_H
#define OTEL_RECORD_H

#include <otel/trace.h>

OTEL_BEGIN_DECLS

typedef struct otel_finished_event {
    const char *name;
    uint64_t time_ns; /* Unix time below 2^63; 0: when the span ended */
    const otel_attribute *attributes;
    size_t attribute_count;
    size_t name_length; /* 0: up to its NUL, here and below */
} otel_finished_event;

/* What is zero or NULL is not there. Ids are bytes, not text; one that is NULL or zero in all
 * bytes is made, by the program's own way if it has one (otel/sampler.h). */
typedef struct otel_finished_span {
    size_t size;                   /* sizeof(otel_finished_span) */
    const uint8_t *trace_id;       /* 16 bytes; one that has to be made makes the span a root */
    const uint8_t *span_id;        /* 8 bytes */
    const uint8_t *parent_span_id; /* 8 bytes; NULL or zero: a root */
    uint8_t flags;                 /* OTEL_TRACE_FLAG_*. Without OTEL_TRACE_FLAG_SAMPLED it is
                                      counted as unsampled, and not exported */
    bool parent_is_remote;         /* the parent is of another process */
    const char *tracestate;        /* the text of a W3C tracestate; left out if it is not valid */
    const char *name;
    size_t name_length;
    otel_span_kind kind;
    uint64_t start_ns; /* Unix time below 2^63; 0: the same as the end */
    uint64_t end_ns;   /* Unix time below 2^63; 0: now. An end before the start stays as it is */
    otel_span_status status;
    const char *status_message; /* of an error */
    const otel_attribute *attributes;
    size_t attribute_count;
    const otel_finished_event *events;
    size_t event_count;
    const otel_link *links;
    size_t link_count;
    size_t tracestate_length;
    size_t status_message_length;
} otel_finished_span;

#define OTEL_FINISHED_SPAN(...) \
    (&(otel_finished_span){.size = sizeof(otel_finished_span), __VA_ARGS__})

/* Record a span that has ended, from this tracer. */
OTEL_API void otel_span_record(otel_tracer *tracer, const otel_finished_span *span);

OTEL_END_DECLS
#endif
