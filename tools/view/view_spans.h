/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_spans.h - from received requests to drawn traces, or to a line for each span.
 *
 * A trace is drawn when its root and every parent are here, nothing has come for a moment, and no
 * trace that started before it still waits; when nothing has come for longer; when too much is
 * held; or at the end.
 *
 * Threads:  otel-view's only thread. */
#ifndef VIEW_SPANS_H
#define VIEW_SPANS_H

#include "exporters/trace/trace_buffer.h"
#include "tools/view/view_filter.h"
#include <stdio.h>

enum view_form { VIEW_TRACES, VIEW_LINES, VIEW_NOTHING };

struct view_spans {
    FILE *out;
    enum view_form form;
    bool all; /* with all attributes, uncut */
    struct view_filter filter;
    int terminal; /* its file descriptor when it is a terminal, or -1 */
    bool colour;
    struct oteli_trace_buffer waiting;
    uint64_t look_ns, last_look_ns; /* at what waits: now, and before */
    bool is_held;                   /* an earlier trace is not ready in this look */
    void *seen, *seen_before;       /* ids of spans: trees of tsearch */
    size_t seen_count;
    uint64_t received;      /* spans, each once */
    uint64_t twice;         /* and how often one of them came again */
    uint64_t shown, hidden; /* traces, or spans for lines: by the filter */
    bool failed;            /* `out` takes no more */
};

/* `form`, `all` and `filter` are set after that. */
void view_spans_init(struct view_spans *spans, FILE *out);
void view_spans_fini(struct view_spans *spans);

/* Count the spans of an ExportTraceServiceRequest and show them in their form, or take them in to
 * be drawn. Its bytes have passed view_check. False: no memory. */
bool view_spans_add(struct view_spans *spans, otel_slice request, uint64_t now_ns);

/* Draw what is ready, or everything. */
void view_spans_draw_ready(struct view_spans *spans, uint64_t now_ns);
void view_spans_draw_all(struct view_spans *spans);

#endif
