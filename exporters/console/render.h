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
 * For the console exporter and for otel-view. Texts may be anything, they are made harmless here.
 * Any shape of a trace is drawn: missing parents, cycles, any depth.
 *
 * Threads:  any thread; nothing is kept between calls. */
#ifndef OTELI_CONSOLE_RENDER_H
#define OTELI_CONSOLE_RENDER_H

#include "exporters/json/json_text.h"
#include "exporters/trace/trace_buffer.h"

struct oteli_render_options {
    unsigned width; /* columns; taken to be at least 60 */
    bool colour;    /* ANSI escapes, for terminals only */
    bool resource;  /* with a line for each resource, below the head */
    bool all;       /* nothing is left out or cut, but for names beside the waterfall */
};

/* Append the drawing of a trace, which has one span at least, and an empty line. False: no memory
 * for it. */
bool oteli_render_trace(struct oteli_text *out, const struct oteli_waiting_trace *trace,
                        const struct oteli_render_options *options);

/* Append a Unix time, in UTC; nothing for 0. */
void oteli_render_time(struct oteli_text *text, uint64_t start_ns);

/* How wide a drawing on this file descriptor may be: the terminal's width, or 100 where
 * it is none. */
unsigned oteli_render_width(int fd);

#endif
