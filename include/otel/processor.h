/* SPDX-License-Identifier: Apache-2.0 */
/* otel/processor.h - write a span processor: what happens to spans on the threads that start
 * and end them, before the queue.
 *
 * Processors are for otel_sdk_options.processors, in the order in which they are called. Without
 * any, spans cost nothing more; with one, every span that records takes the slow path. A processor
 * may call everything of otel/trace.h. Spans that it starts inside these calls are exported, and
 * not seen by processors.
 *
 * What has started has not always an end to be told of: not if it is cancelled, or too short
 * (otel_span_end_unless_shorter), or if its thread ends before it. What is held back reaches
 * on_end when it ends, whatever becomes of it later. What is collected (otel/lines.h) is of no
 * trace yet: it is seen as not sampled, and its mounts are not seen.
 *
 * Threads:  on_start, on_ending, on_end: the thread that starts or ends the span, several at
 *           once; they must be quick, and must not wait. flush and free: one thread at a time.
 * Signals:  a span that a signal handler starts or ends calls a processor in that handler. Of the
 *           functions here none is for a handler.
 * Errors:   otel_status; what a processor's flush answers is part of the answer of otel_flush.
 * Fork:     a child goes on with the same processors, in the state that they had.
 * Source:   OpenTelemetry specification, trace/sdk.md "Span processor". */
#ifndef OTEL_PROCESSOR_H
#define OTEL_PROCESSOR_H

#include <otel/exporter.h>

OTEL_BEGIN_DECLS

typedef struct otel_processor {
    size_t size;      /* sizeof(otel_processor) */
    const char *name; /* static text, for messages */
    void *state;

    /* OnStart: a span that records has started; `parent` is the context that it started in.
     * Its attributes, events, links, name and status can be changed. Or NULL. */
    void (*on_start)(void *state, otel_span span, const otel_context *parent);

    /* OnEnding: it is about to end; its end time (Unix, ns) is set, and it can still be changed,
     * by this call only: no other thread is let in. It can also be cancelled. Before the on_end
     * of any processor. Or NULL. */
    void (*on_ending)(void *state, otel_span span, uint64_t end_ns);

    /* OnEnd: it has ended, as it will be exported, or would be: flags & OTEL_TRACE_FLAG_SAMPLED
     * says which; those that are not sampled are never exported. The view is valid during the
     * call. Or NULL. */
    void (*on_end)(void *state, const otel_span_view *span);

    /* ForceFlush, and the first part of Shutdown, within timeout_ms (0: without waiting). Or
     * NULL. */
    otel_status (*flush)(void *state, int64_t timeout_ms);

    /* The last call, at otel_shutdown, after the last on_end; later, if that is inside of another
     * call when the time is up. Or NULL. */
    void (*free)(void *state);

    const void *reserved[4]; /* NULL */
} otel_processor;

#define OTEL_PROCESSOR(...) ((otel_processor){.size = sizeof(otel_processor), __VA_ARGS__})

/* The resource of a span that on_end was given: the OTLP bytes of a Resource message, whose
 * attributes are OTEL_FIELD_RESOURCE_ATTRIBUTE. Of the view itself, not of a copy. */
OTEL_API otel_slice otel_span_view_resource(const otel_span_view *span);

/* Make the simple processor: it exports each span when it ends, on the thread that ends it, one at
 * a time, with 30 s for each. The exporter is adopted, also on failure. Only spans that are sampled
 * are exported; what is lost is said in the log, and not in otel_stats. */
OTEL_API OTEL_MUST_USE otel_status otel_simple_processor_new(otel_exporter exporter,
                                                             otel_processor *processor);

OTEL_END_DECLS
#endif
