/* SPDX-License-Identifier: Apache-2.0 */
/* otel/memory.h - an exporter that keeps spans in memory, for tests of instrumented code.
 *
 * Threads:  any thread. In library `otel-sdk`.
 * Signals:  never in a handler: they take a lock.
 * Errors:   none, but for what has no memory: otel_memory_new is NULL, spans are dropped.
 * Fork:     in a child a handle is that of a store of the child's own, which is empty at
 *           first; the parent's spans are the parent's. Views of them that were taken before
 *           the fork stay valid until otel_memory_free.
 * Source:   OpenTelemetry specification, trace/sdk_exporters/in-memory.md. */
#ifndef OTEL_MEMORY_H
#define OTEL_MEMORY_H

#include <otel/exporter.h>

OTEL_BEGIN_DECLS

/* The kept spans. It must outlive the SDK that exports into it. */
typedef struct otel_memory otel_memory;

/* Make a store of spans, or NULL without memory. */
OTEL_API otel_memory *otel_memory_new(void);

/* Free a store, after otel_shutdown. */
OTEL_API void otel_memory_free(otel_memory *memory);

/* The exporter that fills it, for otel_sdk_options.exporters. */
OTEL_API otel_exporter otel_memory_exporter(otel_memory *memory);

/* How many spans it has. */
OTEL_API size_t otel_memory_count(const otel_memory *memory);

/* Fill in `*span` with span number `index`, in the order of their export. The view stays valid
 * until otel_memory_clear or otel_memory_free. False: no such span. */
OTEL_API bool otel_memory_span(const otel_memory *memory, size_t index, otel_span_view *span);

/* The Resource message of the last batch; empty before the first. */
OTEL_API otel_slice otel_memory_resource(const otel_memory *memory);

/* Forget all spans. */
OTEL_API void otel_memory_clear(otel_memory *memory);

OTEL_END_DECLS
#endif
