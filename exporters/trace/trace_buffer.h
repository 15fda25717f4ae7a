/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/trace/trace_buffer.h - spans wait here until the other spans of their trace have come.
 *
 * The caller decides when a trace is complete, and keeps the whole bounded by looking at `count`
 * and `bytes`.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_TRACE_BUFFER_H
#define OTELI_TRACE_BUFFER_H

#include "common/base/span_copy.h"

/* A resource, for all spans of it that came one behind the other. */
struct oteli_kept_resource {
    size_t users;
    char *service; /* behind the bytes; NULL: it has no name */
    size_t length;
    char otlp[];
};

struct oteli_waiting_span {
    struct oteli_kept_span *kept;
    struct oteli_kept_resource *resource; /* NULL: nothing is known of it */
    const char *service;                  /* the service that it is of; NULL: it has no name */
    uint64_t came_ns;                     /* as the caller said */
};

struct oteli_waiting_trace {
    const struct oteli_waiting_span *spans;
    size_t count;
    uint64_t start_ns; /* of the span that started first */
    uint64_t end_ns;   /* of the span that ended last */
    uint64_t came_ns;  /* of the span that came last */
    bool has_root;     /* a span without a parent in its own process */
};

struct oteli_trace_buffer {
    struct oteli_waiting_span *spans;
    size_t count, room;
    size_t bytes; /* of memory, near enough */
};

void oteli_trace_buffer_fini(struct oteli_trace_buffer *buffer);

/* Copy a span, and its resource if that is another one than the last span's; false: no memory. */
bool oteli_trace_buffer_keep(struct oteli_trace_buffer *buffer, const otel_span_view *view,
                             otel_slice resource, uint64_t came_ns);

/* Show each trace, in the order in which they started, and remove those of which `take` says true.
 * Without memory none is shown. */
void oteli_trace_buffer_visit(struct oteli_trace_buffer *buffer,
                              bool (*take)(void *state, const struct oteli_waiting_trace *trace),
                              void *state);

/* Write the traces whose root has come, or all, in the order in which they ended, and forget them.
 * `write` says false of a trace that is lost. Gives how many spans that were. */
size_t oteli_trace_buffer_write(struct oteli_trace_buffer *buffer, bool all,
                                bool (*write)(void *state, const struct oteli_waiting_trace *trace),
                                void *state);

/* Keep the spans of an export call. Then, if one of them is the root of a trace in this process, or
 * more than 10,000 spans or 16 MiB wait, have `write` call oteli_trace_buffer_write: for the traces
 * whose root has come, or for all. It gives how many spans it has lost. */
otel_export_result oteli_trace_buffer_export(struct oteli_trace_buffer *buffer, otel_export *call,
                                             size_t (*write)(void *state, bool all), void *state);

/* What a kind is called: "server". */
const char *oteli_span_kind_name(otel_span_kind kind);

/* The service.name among the attributes of a resource; empty: there is none. */
otel_slice oteli_service_of(otel_slice resource);

#endif
