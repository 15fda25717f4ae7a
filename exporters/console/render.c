/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/render.c - the contracts are in render.h.
 *
 *     | name, branches and tags, cut ........ | duration | bar, three tenths of the width |
 *
 * Runs on the thread that draws; owns nothing after the call. */
#include "exporters/console/render.h"

#include "common/text/text.h"
#include "exporters/console/drawing.h"
#include "exporters/console/duration.h"
#include "exporters/console/safe_text.h"
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>

enum {
    WIDTH_MIN = 60,
    WIDTH_MAX = 240,
    DURATION_COLUMNS = 8,
    NAME_COLUMNS = 16, /* that branches leave for names at least */
    TAG_COLUMNS = 24   /* of a service name behind a span's name */
};

/* ---- durations ------------------------------------------------------------------------ */

static void format_span_duration(char *text, size_t size, const otel_span_view *span)
{
    if (span->start_ns == 0 || span->end_ns == 0) {
        snprintf(text, size, "?");
    } else if (span->end_ns < span->start_ns) {
        text[0] = '-';
        oteli_format_duration(text + 1, size - 1, span->start_ns - span->end_ns);
    } else {
        oteli_format_duration(text, size, span->end_ns - span->start_ns);
    }
}

/* ---- what is known of the whole trace ------------------------------------------------- */

static size_t service_index(const struct oteli_drawing *drawing, otel_slice service)
{
    size_t i = 0;
    while (i < drawing->service_count && !oteli_drawing_same(drawing->services[i], service))
        i++;
    return i;
}

static void include_time(struct oteli_drawing *drawing, uint64_t ns)
{
    if (ns == 0)
        return;
    if (drawing->start_ns == 0 || ns < drawing->start_ns)
        drawing->start_ns = ns;
    if (ns > drawing->end_ns)
        drawing->end_ns = ns;
}

static void include_resource(struct oteli_drawing *drawing,
                             const struct oteli_kept_resource *resource)
{
    size_t i = 0;
    while (i < drawing->resource_count && drawing->resources[i] != resource &&
           !oteli_drawing_same(
               (otel_slice){drawing->resources[i]->otlp, drawing->resources[i]->length},
               (otel_slice){resource->otlp, resource->length}))
        i++;
    if (i == drawing->resource_count && i < OTELI_DRAWING_SERVICES)
        drawing->resources[drawing->resource_count++] = resource;
}

static void survey(struct oteli_drawing *drawing)
{
    for (uint32_t i = drawing->tree.first_root; i != OTELI_TREE_NONE;
         i = oteli_tree_next(&drawing->tree, i)) {
        const otel_span_view *span = drawing->tree.nodes[i].view;
        const otel_slice service = drawing->tree.nodes[i].service;
        include_time(drawing, span->start_ns);
        include_time(drawing, span->end_ns);
        if (drawing->tree.nodes[i].resource != NULL)
            include_resource(drawing, drawing->tree.nodes[i].resource);
        drawing->errors += span->status == OTEL_SPAN_STATUS_ERROR;
        const size_t index = service_index(drawing, service);
        if (service.length == 0 || index < drawing->service_count)
            continue;
        if (index < OTELI_DRAWING_SERVICES)
            drawing->services[drawing->service_count++] = service;
        else
            drawing->more_services = true;
    }
}

void oteli_render_time(struct oteli_text *text, uint64_t start_ns)
{
    const time_t seconds = (time_t)(start_ns / 1000000000);
    struct tm utc;
    char date[40];
    if (start_ns == 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(date, sizeof date, "%F %T", &utc) == 0)
        return;
    oteli_text_add_format(text, "%s.%03uZ", date, (unsigned)(start_ns % 1000000000 / 1000000));
}

static void add_services(const struct oteli_drawing *drawing, struct oteli_text *text)
{
    for (size_t i = 0; i < drawing->service_count; i++) {
        oteli_text_add_string(text, i == 0 ? "" : ", ");
        oteli_text_add(text, drawing->services[i].data, drawing->services[i].length);
    }
    if (drawing->more_services)
        oteli_text_add_string(text, ", …");
}

/* Put a piece of the head line behind the others, or on the next line where it does not
 * fit, and empty it. Returns the column behind it. */
static size_t draw_piece(struct oteli_drawing *drawing, size_t column, unsigned style)
{
    const otel_slice text = {drawing->line.data, drawing->line.length};
    const size_t columns = oteli_text_safe_columns(text, drawing->width);
    if (columns == 0)
        return column;
    if (column + 2 + columns <= drawing->width) {
        oteli_text_add_string(drawing->out, column == 0 ? "" : "  ");
        column += column == 0 ? 0 : 2;
    } else {
        oteli_text_add_string(drawing->out, "\n      ");
        column = 6;
    }
    oteli_drawing_style(drawing, style);
    column += oteli_text_add_safe(drawing->out, text, drawing->width - column);
    oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
    drawing->line.length = 0;
    return column;
}

static void draw_head(struct oteli_drawing *drawing)
{
    struct oteli_text *piece = &drawing->line;
    oteli_text_add_string(piece, "trace ");
    oteli_text_add_hex(piece, drawing->tree.nodes[0].view->trace_id, 16);
    size_t column = draw_piece(drawing, 0, OTELI_STYLE_BOLD);
    oteli_text_add_format(piece, "%u span%s", drawing->tree.count,
                          oteli_plural(drawing->tree.count));
    column = draw_piece(drawing, column, OTELI_STYLE_PLAIN);
    if (drawing->errors != 0)
        oteli_text_add_format(piece, "%zu error%s", drawing->errors, oteli_plural(drawing->errors));
    column = draw_piece(drawing, column, OTELI_STYLE_RED);
    char duration[OTELI_DURATION_TEXT + 1];
    oteli_format_duration(duration, sizeof duration, drawing->end_ns - drawing->start_ns);
    oteli_text_add_string(piece, duration);
    column = draw_piece(drawing, column, OTELI_STYLE_PLAIN);
    oteli_render_time(piece, drawing->start_ns);
    column = draw_piece(drawing, column, OTELI_STYLE_PLAIN);
    add_services(drawing, piece);
    (void)draw_piece(drawing, column, OTELI_STYLE_PLAIN);
    oteli_text_add_string(drawing->out, "\n");
}

/* ---- lines ---------------------------------------------------------------------------- */

/* "  @service kind", each only where it says something new. Returns the columns. */
static size_t add_tags(const struct oteli_drawing *drawing, const struct oteli_tree_node *node,
                       struct oteli_text *tags)
{
    const bool new_service =
        node->service.length != 0 &&
        (node->parent == OTELI_TREE_NONE ||
         !oteli_drawing_same(node->service, drawing->tree.nodes[node->parent].service));
    const char *kind =
        node->view->kind != OTEL_SPAN_KIND_INTERNAL ? oteli_span_kind_name(node->view->kind) : "";
    size_t columns = 0;
    if (new_service) {
        oteli_text_add_string(tags, "  @");
        columns += 3 + oteli_text_add_safe(tags, node->service, TAG_COLUMNS);
    }
    if (*kind != '\0') {
        oteli_text_add_string(tags, new_service ? " " : "  ");
        oteli_text_add_string(tags, kind);
        columns += (new_service ? 1 : 2) + strlen(kind);
    }
    return columns;
}

/* The half columns [first, behind) that a time span covers on the bar. */
static void bar_halves(const struct oteli_drawing *drawing, uint64_t start_ns, uint64_t end_ns,
                       uint64_t *first, uint64_t *behind)
{
    const uint64_t halves = 2 * drawing->bar_columns;
    const double total = (double)(drawing->end_ns - drawing->start_ns);
    *first = 0;
    *behind = halves;
    if (total == 0)
        return;
    const double from = (double)(start_ns - drawing->start_ns) * (double)halves / total;
    const double to = (double)(end_ns - drawing->start_ns) * (double)halves / total;
    *first = from < (double)halves ? (uint64_t)from : halves - 1;
    *behind = (uint64_t)to + (to > (double)(uint64_t)to);
    if (*behind > halves)
        *behind = halves;
    if (*behind <= *first)
        *behind = *first + 1;
}

/* The columns of the bar at which something happened in the span. */
static void mark_events(const struct oteli_drawing *drawing, const otel_span_view *span,
                        bool marked[WIDTH_MAX])
{
    otel_slice rest = span->events;
    otel_event_view event;
    while (otel_event_next(&rest, &event)) {
        if (event.time_ns < span->start_ns || event.time_ns > span->end_ns)
            continue;
        uint64_t first, behind;
        bar_halves(drawing, event.time_ns, event.time_ns, &first, &behind);
        marked[first / 2] = true;
    }
}

static void draw_bar(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    const otel_span_view *span = node->view;
    if (span->start_ns == 0 || span->end_ns == 0)
        return;
    const bool forwards = span->start_ns <= span->end_ns;
    bool marked[WIDTH_MAX] = {false};
    uint64_t first, behind;
    mark_events(drawing, span, marked);
    bar_halves(drawing, span->start_ns, forwards ? span->end_ns : span->start_ns, &first, &behind);
    oteli_text_add_spaces(drawing->out, 1 + (size_t)(first / 2));
    oteli_drawing_style(drawing, span->status == OTEL_SPAN_STATUS_ERROR
                                     ? OTELI_STYLE_RED
                                     : OTELI_STYLE_FIRST_SERVICE +
                                           (unsigned)service_index(drawing, node->service));
    for (uint64_t column = first / 2; column * 2 < behind; column++) {
        const bool left = column * 2 >= first;
        const bool right = column * 2 + 1 < behind;
        const char *piece = left && right ? "━" : left ? "╸" : "╺";
        oteli_text_add_string(drawing->out, marked[column] ? "┿" : piece);
    }
    oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
}

static void draw_span_line(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    struct oteli_text *out = drawing->out;
    const otel_span_view *span = node->view;
    const bool failed = span->status == OTEL_SPAN_STATUS_ERROR;
    size_t column = 0;
    if (node->depth > 0) {
        oteli_drawing_style(drawing, OTELI_STYLE_DIM);
        column = oteli_draw_outer_levels(drawing, node) + 3;
        oteli_text_add_string(out, node->next_sibling != OTELI_TREE_NONE ? "├─ " : "└─ ");
        oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
    }
    const size_t tag_columns = add_tags(drawing, node, &drawing->line);
    if (failed) {
        oteli_drawing_style(drawing, OTELI_STYLE_RED);
        oteli_text_add_string(out, "✗ ");
        column += 2;
    }
    const bool tagged = column + NAME_COLUMNS / 2 + tag_columns <= drawing->left_columns;
    const size_t room = drawing->left_columns - column - (tagged ? tag_columns : 0);
    column += oteli_text_add_safe(
        out, span->name.length != 0 ? span->name : oteli_slice_of("(no name)"), room);
    oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
    oteli_drawing_style(drawing, OTELI_STYLE_DIM);
    if (tagged) {
        oteli_text_add(out, drawing->line.data, drawing->line.length);
        column += tag_columns;
    }
    oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
    drawing->line.length = 0;

    char duration[OTELI_DURATION_TEXT + 1];
    format_span_duration(duration, sizeof duration, span);
    const size_t columns = oteli_text_safe_columns(oteli_slice_of(duration), sizeof duration);
    const size_t edge = drawing->left_columns + 1 + DURATION_COLUMNS;
    oteli_text_add_spaces(out, edge > column + columns ? edge - column - columns : 1);
    oteli_text_add_string(out, duration);
    draw_bar(drawing, node);
    oteli_text_add_string(out, "\n");
}

/* ---- the trace ------------------------------------------------------------------------ */

bool oteli_render_trace(struct oteli_text *out, const struct oteli_waiting_trace *trace,
                        const struct oteli_render_options *options)
{
    struct oteli_drawing drawing = {.out = out, .colour = options->colour, .all = options->all};
    if (!oteli_tree_init(&drawing.tree, trace))
        return false;
    drawing.width = options->width < WIDTH_MIN   ? WIDTH_MIN
                    : options->width > WIDTH_MAX ? WIDTH_MAX
                                                 : options->width;
    drawing.bar_columns = drawing.width * 3 / 10;
    drawing.left_columns = drawing.width - drawing.bar_columns - DURATION_COLUMNS - 2;
    const size_t levels = (drawing.left_columns - NAME_COLUMNS) / 3 - 2;
    drawing.levels_shown = levels < OTELI_DRAWING_LEVELS ? levels : OTELI_DRAWING_LEVELS;
    survey(&drawing);
    draw_head(&drawing);
    if (options->resource)
        oteli_draw_resources(&drawing);
    for (uint32_t i = drawing.tree.first_root; i != OTELI_TREE_NONE;
         i = oteli_tree_next(&drawing.tree, i)) {
        draw_span_line(&drawing, &drawing.tree.nodes[i]);
        oteli_draw_details(&drawing, &drawing.tree.nodes[i]);
    }
    oteli_text_add_string(out, "\n");
    out->failed |= drawing.line.failed;
    oteli_text_fini(&drawing.line);
    oteli_tree_fini(&drawing.tree);
    return !out->failed;
}

unsigned oteli_render_width(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0)
        return size.ws_col;
    return 100;
}
