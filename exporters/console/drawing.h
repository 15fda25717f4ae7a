/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/drawing.h - what the two halves of a drawing share: render.c, which draws the
 * tree and the waterfall, and details.c, which draws the lines below a span.
 *
 * Threads:  one thread at a time. */
#ifndef OTELI_DRAWING_H
#define OTELI_DRAWING_H

#include "exporters/console/render.h"
#include "exporters/trace/trace_tree.h"

enum {
    OTELI_DRAWING_LEVELS = 12,  /* deeper branches lose their outer levels */
    OTELI_DRAWING_SERVICES = 32 /* that get a colour and a place in the head line */
};

enum oteli_style {
    OTELI_STYLE_PLAIN,
    OTELI_STYLE_BOLD,
    OTELI_STYLE_DIM,
    OTELI_STYLE_RED,
    OTELI_STYLE_FIRST_SERVICE /* and one for each service behind it */
};

struct oteli_drawing {
    struct oteli_text *out;
    struct oteli_tree tree;
    size_t width, bar_columns, left_columns, levels_shown;
    bool colour, all;
    uint64_t start_ns, end_ns; /* of the trace; equal when nothing is known */
    size_t errors;
    otel_slice services[OTELI_DRAWING_SERVICES];
    size_t service_count;
    bool more_services;
    const struct oteli_kept_resource *resources[OTELI_DRAWING_SERVICES];
    size_t resource_count;
    struct oteli_text line; /* a piece or a line that is being made */
};

static inline bool oteli_drawing_same(otel_slice a, otel_slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

/* What follows has this style, in a terminal. */
void oteli_drawing_style(struct oteli_drawing *drawing, unsigned style);

/* Draw the lines that lead past this node's own level: what stands left of its branch. Returns the
 * columns. */
size_t oteli_draw_outer_levels(struct oteli_drawing *drawing, const struct oteli_tree_node *node);

/* Draw the attributes of each resource of the trace, in a line; in more, if nothing is left out. */
void oteli_draw_resources(struct oteli_drawing *drawing);

/* Append KEY=VALUE: strings without quotes where their end is clear, everything else as JSON. */
void oteli_add_attribute(struct oteli_text *text, const otel_attribute_view *attribute);

/* Draw the lines below a span. */
void oteli_draw_details(struct oteli_drawing *drawing, const struct oteli_tree_node *node);

#endif
