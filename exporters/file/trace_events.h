/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/trace_events.h - spans as the events of the Trace Event Format.
 *
 * Times are microseconds with three decimals since `zero_ns`, a time close by: Unix time in
 * microseconds is more than a double holds to the nanosecond, and viewers read doubles.
 *
 * Threads:  one thread at a time.
 * Source:   "Trace Event Format", and what ui.perfetto.dev does with it. */
#ifndef OTELI_FILE_TRACE_EVENTS_H
#define OTELI_FILE_TRACE_EVENTS_H

#include "exporters/json/json_text.h"

struct oteli_trace_events {
    struct oteli_text text; /* each event on a line, ",\n" between them */
    uint64_t zero_ns;
    int64_t pid;
    bool has_events; /* before those in `text`, too */
};

/* What the process is called, and a track: its number is that of a thread. */
void oteli_trace_process(struct oteli_trace_events *events, otel_slice service,
                         otel_slice resource);
void oteli_trace_track(struct oteli_trace_events *events, uint32_t track);

/* A span with its attributes, and then what happened in it. */
void oteli_trace_span(struct oteli_trace_events *events, const otel_span_view *span,
                      uint32_t track);
void oteli_trace_instants(struct oteli_trace_events *events, const otel_span_view *span,
                          uint32_t track);

/* One end of an arrow: from the span that starts at this time on this track, or to it. Both
 * ends have the same name and number. */
void oteli_trace_arrow(struct oteli_trace_events *events, const char *name, uint64_t number,
                       bool is_head, uint32_t track, uint64_t time_ns);

#endif
