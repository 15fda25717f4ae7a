/* SPDX-License-Identifier: Apache-2.0 */
/* otel/file.h - exporters that write files: OTLP as JSON lines, and traces for ui.perfetto.dev.
 * They have no name in OTEL_TRACES_EXPORTER: they go into otel_sdk_options.exporters.
 *
 * Waiting:  files block as files do. A pipe, a terminal or a socket is never waited for longer
 *           than an export may take; a reader that has gone costs the spans and nothing else.
 * Fork:     a child appends to the same OTLP file with whole lines of its own; in a pipe, lines
 *           of more than PIPE_BUF bytes of two processes may mix. A trace for Perfetto is the
 *           parent's alone: a child's spans are dropped (OTEL_DROP_FORKED_CHILD).
 * In library `otel-sdk`.
 *
 * Threads:  any thread makes one; then as otel/exporter.h says.
 * Signals:  never in a handler: they open files and allocate.
 * Errors:   otel_status; what an exporter cannot write it drops, and counts.
 * Source:   OpenTelemetry specification, protocol/file-exporter.md; Trace Event Format. */
#ifndef OTEL_FILE_H
#define OTEL_FILE_H

#include <otel/exporter.h>

OTEL_BEGIN_DECLS

typedef struct otel_file_options {
    size_t size;       /* sizeof(otel_file_options) */
    const char *path;  /* NULL: stdout */
    int64_t max_bytes; /* a file that would become larger is renamed to path.1, that one to path.2
                          and so on; 0: never. A single batch may exceed it. Not of stdout */
    int64_t max_files; /* how many of those are kept; 0: 3 */
} otel_file_options;

#define OTEL_FILE_OPTIONS(...) \
    (&(otel_file_options){.size = sizeof(otel_file_options), __VA_ARGS__})

/* Make the exporter `otlp/file`, and without a path `otlp/stdout`: one line a batch, an
 * ExportTraceServiceRequest (or TracesData: they are the same) in OTLP's JSON encoding. NULL
 * options are those for stdout. Files are opened for appending, with mode 0644 less the umask,
 * and opened anew when another program has renamed them, so tools that rotate logs work, too.
 * OTEL_ERROR_SYSTEM: the file cannot be opened (errno says why); OTEL_ERROR_INVALID_ARGUMENT: a
 * number is negative, or `exporter` is NULL; OTEL_ERROR_NO_MEMORY. What cannot be written is
 * dropped and counted (OTEL_DROP_PERMANENT_ERROR), and no part of a line stays; a later batch tries
 * again. */
OTEL_API OTEL_MUST_USE otel_status otel_file_exporter_new(const otel_file_options *options,
                                                          otel_exporter *exporter);

/* Make an exporter of trace events as JSON, which ui.perfetto.dev and chrome://tracing open; what
 * the file had is replaced. A trace is written when its local root has ended, or by a flush. There
 * is a track for as many things as go on at a time in this process; spans nest in them, events are
 * instants, and arrows lead from parents to children on other tracks and along links, where the
 * other end has been written. The file is valid JSON after every batch. It must be a regular file:
 * a device or a pipe is refused (errno is EINVAL). Errors as above. */
OTEL_API OTEL_MUST_USE otel_status otel_perfetto_exporter_new(const char *path,
                                                              otel_exporter *exporter);

OTEL_END_DECLS
#endif
