/* SPDX-License-Identifier: Apache-2.0 */
/* otel/console.h - an exporter that draws traces for people: a tree with a waterfall.
 *
 * A trace is drawn when its local root has arrived, or when the exporter is flushed. A forked
 * child writes to the stream's descriptor itself, past what the stream holds back; where the
 * stream has none its spans are dropped (OTEL_DROP_FORKED_CHILD).
 * In library `otel-sdk`.
 *
 * Threads:  any thread makes one; then as otel/exporter.h says.
 * Signals:  never in a handler: it allocates.
 * Errors:   otel_status.
 * Source:   OpenTelemetry specification, trace/sdk_exporters/stdout.md. */
#ifndef OTEL_CONSOLE_H
#define OTEL_CONSOLE_H

#include <otel/exporter.h>
#include <stdio.h>

OTEL_BEGIN_DECLS

/* Make a console exporter that writes to `stream` (NULL: stdout), which stays the
 * caller's. Colours are used where the stream is a terminal and NO_COLOR was not set at
 * otel_start. `*exporter` is filled in on OTEL_OK; hand it to otel_sdk_options.exporters.
 * OTEL_ERROR_INVALID_ARGUMENT: `exporter` is NULL; OTEL_ERROR_NO_MEMORY. */
OTEL_API OTEL_MUST_USE otel_status otel_console_exporter_new(FILE *stream, otel_exporter *exporter);

OTEL_END_DECLS
#endif
