/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_line.h - a span as one line, for --follow.
 *
 *     2026-08-01 16:00:00.153Z    100 ms  ✗ @bank POST /charge  server  error: no  4bf9…
 *
 * Threads:  any; nothing is kept. */
#ifndef VIEW_LINE_H
#define VIEW_LINE_H

#include "exporters/json/json_text.h"
#include <otel/exporter.h>

/* Append the line of a span, with its attributes if `all`. Texts are made harmless. */
void view_line_add(struct oteli_text *out, const otel_span_view *span, otel_slice service,
                   bool all);

#endif
