/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/render.h - draw one trace for people: a tree beside a waterfall.
 *
 *     trace 5b8a…  3 spans  182 ms  2026-08-02 10:11:12.123Z  shop, bank
 *     POST /checkout  @shop server                182 ms ━━━━━━━━━━━━━━━━━━
 *     │ http.request.method=POST
 *     ├─ load cart                               11.9 ms  ━╸
 *     └─ ✗ POST  client                           140 ms    ╺━━━━━━━━━━━━━╸
 *          error: card declined
 *
 * It knows neither the SDK nor protobuf: gather_span.c fills this model, for the console exporter and
 * for otel-view. Texts may be anything, they are made harmless here. Any shape of a trace is drawn:
 * missing parents, cycles, any depth.
 *
 * Threads:  any thread; nothing is kept between calls. */
#ifndef OTELI_CONSOLE_RENDER_H
#define OTELI_CONSOLE_RENDER_H

#include "exporters/console/safe_text.h"

/* How much of a span it is worth keeping for its drawing, in bytes and pieces. */
enum {
    OTELI_RENDER_TEXT_MAX = 256,
    OTELI_RENDER_ATTRIBUTES_MAX = 24,
    OTELI_RENDER_EVENTS_MAX = 16,
    OTELI_RENDER_LINKS_MAX = 16
};

struct oteli_render_event {
    uint64_t time_ns;
    otel_slice name;
    otel_slice attributes; /* "key=value, key=value" */
};

struct oteli_render_link {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    otel_slice tracestate;
    otel_slice attributes; /* "key=value, key=value" */
};

struct oteli_render_span {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t parent_id[8];
    bool has_parent;
    otel_span_kind kind;
    otel_span_status status;
    uint64_t start_ns; /* Unix time; 0: not known */
    uint64_t end_ns;
    otel_slice service;
    otel_slice name;
    otel_slice status_message;
    const otel_slice *attributes; /* "key=value" each */
    size_t attribute_count;
    size_t attributes_left_out; /* there are so many more */
    const struct oteli_render_event *events;
    size_t event_count;
    size_t events_left_out;
    const struct oteli_render_link *links;
    size_t link_count;
    size_t links_left_out;
    otel_slice tracestate;
};

struct oteli_render_options {
    unsigned width; /* columns; taken to be at least 60 */
    bool colour;    /* ANSI escapes, for terminals only */
};

/* Append the drawing of a trace, whose spans come in any order, and an empty line. The
 * array is sorted here. False: no memory for it. */
bool oteli_render_trace(struct oteli_text *out, const struct oteli_render_span **spans,
                        size_t count, const struct oteli_render_options *options);

/* How wide a drawing on this file descriptor may be: the terminal's width, or 100 where
 * it is none. */
unsigned oteli_render_width(int fd);

#endif
