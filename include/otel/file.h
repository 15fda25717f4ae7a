/* SPDX-License-Identifier: Apache-2.0 */
/* otel/file.h - exporters that write files: OTLP as JSON lines, and traces for ui.perfetto.dev.
 *
 * Fork:     a child appends to the same OTLP file with whole lines of its own (O_APPEND, one
 *           write a batch); a trace-event file is the parent's, a child's spans are dropped.
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

/* The exporter `otlp/file`, and without a path `otlp/stdout`: one line a batch, an
 * ExportTraceServiceRequest in OTLP's JSON encoding. Files are opened for appending, with mode
 * 0644 less the umask. OTEL_ERROR_SYSTEM: the file cannot be opened (errno says why). What cannot
 * be written is dropped and counted (OTEL_DROP_PERMANENT_ERROR); a later batch tries again. */
OTEL_API OTEL_MUST_USE otel_status otel_file_exporter_new(const otel_file_options *options,
                                                          otel_exporter *exporter);

/* Trace events as JSON, which ui.perfetto.dev and chrome://tracing open: a track for each thread
 * or task of a service, spans nested in it, events as instants, links as flows. The file is valid
 * JSON after every batch. */
OTEL_API OTEL_MUST_USE otel_status otel_perfetto_exporter_new(const char *path,
                                                              otel_exporter *exporter);

OTEL_END_DECLS
#endif
