/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_line.c - the contracts are in view_line.h. */
#include "tools/view/view_line.h"

#include "exporters/console/drawing.h"
#include "exporters/console/duration.h"
#include "exporters/console/safe_text.h"
#include "exporters/trace/trace_buffer.h"
#include <stdio.h>

enum { DURATION_COLUMNS = 8 };

static void add_safe(struct oteli_text *out, const char *before, otel_slice text)
{
    if (text.length == 0)
        return;
    oteli_text_add_string(out, before);
    oteli_text_add_safe(out, text, SIZE_MAX);
}

static void add_attributes(struct oteli_text *out, const otel_span_view *span)
{
    struct oteli_text item = {0};
    otel_slice rest = span->attributes;
    otel_attribute_view attribute;
    for (const char *between = "  ";
         otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute); between = ", ") {
        item.length = 0;
        oteli_add_attribute(&item, &attribute);
        add_safe(out, between, (otel_slice){item.data, item.length});
    }
    out->failed |= item.failed;
    oteli_text_fini(&item);
}

void view_line_add(struct oteli_text *out, const otel_span_view *span, otel_slice service, bool all)
{
    char duration[OTELI_DURATION_TEXT + 1];
    oteli_format_duration(duration, sizeof duration,
                          span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0);
    const otel_slice length = {duration, strlen(duration)};
    const size_t columns = oteli_text_safe_columns(length, sizeof duration);
    const bool failed = span->status == OTEL_SPAN_STATUS_ERROR;
    oteli_render_time(out, span->start_ns);
    oteli_text_add_spaces(out, 2 + (columns < DURATION_COLUMNS ? DURATION_COLUMNS - columns : 0));
    oteli_text_add(out, length.data, length.length);
    oteli_text_add_string(out, failed ? "  ✗" : "   ");
    add_safe(out, " @", service);
    add_safe(out, " ", span->name.length != 0 ? span->name : (otel_slice){"(no name)", 9});
    if (span->kind != OTEL_SPAN_KIND_INTERNAL)
        oteli_text_add_format(out, "  %s", oteli_span_kind_name(span->kind));
    if (failed)
        add_safe(out, "  error: ", span->status_message);
    if (all)
        add_attributes(out, span);
    oteli_text_add_string(out, "  ");
    oteli_text_add_hex(out, span->trace_id, 16);
    oteli_text_add_string(out, "\n");
}
