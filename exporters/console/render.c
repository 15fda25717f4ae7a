/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/render.c - the contracts are in render.h.
 *
 *     | name, branches and tags, cut ........ | duration | bar, three tenths of the width |
 *
 * Runs on the thread that draws; owns nothing after the call. */
#include "exporters/console/render.h"

#include "common/text/text.h"
#include "exporters/console/duration.h"
#include "exporters/console/safe_text.h"
#include "exporters/json/json_value.h"
#include "exporters/trace/trace_tree.h"
#include <stdio.h>
#include <sys/ioctl.h>
#include <time.h>

enum {
    WIDTH_MIN = 60,
    WIDTH_MAX = 240,
    DURATION_COLUMNS = 8,
    LEVELS_MAX = 12,     /* deeper branches lose their outer levels */
    NAME_COLUMNS = 16,   /* that branches leave for names at least */
    ATTRIBUTE_LINES = 3, /* of one span */
    EVENTS_MAX = 16,     /* shown of one span */
    LINKS_MAX = 16,      /* of links */
    TAG_COLUMNS = 24,    /* of a service name behind a span's name */
    SERVICES_KNOWN = 32  /* that get a colour and a place in the head line */
};

enum style { PLAIN, BOLD, DIM, RED, FIRST_SERVICE };

struct drawing {
    struct oteli_text *out;
    struct oteli_tree tree;
    size_t width, bar_columns, left_columns, levels_shown;
    bool colour;
    uint64_t start_ns, end_ns; /* of the trace; equal when nothing is known */
    size_t errors;
    otel_slice services[SERVICES_KNOWN];
    size_t service_count;
    bool more_services;
    struct oteli_text line; /* a piece or a line that is being made */
};

static void set_style(struct drawing *drawing, unsigned style)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",  "\033[31m", "\033[36m",
                                        "\033[32m", "\033[33m", "\033[35m", "\033[34m"};
    const unsigned services = sizeof codes / sizeof codes[0] - FIRST_SERVICE;
    if (style >= FIRST_SERVICE)
        style = FIRST_SERVICE + (style - FIRST_SERVICE) % services;
    if (drawing->colour)
        oteli_text_add_string(drawing->out, codes[style]);
}

static bool same(otel_slice a, otel_slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

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

static size_t service_index(const struct drawing *drawing, otel_slice service)
{
    size_t i = 0;
    while (i < drawing->service_count && !same(drawing->services[i], service))
        i++;
    return i;
}

static void include_time(struct drawing *drawing, uint64_t ns)
{
    if (ns == 0)
        return;
    if (drawing->start_ns == 0 || ns < drawing->start_ns)
        drawing->start_ns = ns;
    if (ns > drawing->end_ns)
        drawing->end_ns = ns;
}

static void survey(struct drawing *drawing)
{
    for (uint32_t i = drawing->tree.first_root; i != OTELI_TREE_NONE;
         i = oteli_tree_next(&drawing->tree, i)) {
        const otel_span_view *span = drawing->tree.nodes[i].view;
        const otel_slice service = drawing->tree.nodes[i].service;
        include_time(drawing, span->start_ns);
        include_time(drawing, span->end_ns);
        drawing->errors += span->status == OTEL_SPAN_STATUS_ERROR;
        const size_t index = service_index(drawing, service);
        if (service.length == 0 || index < drawing->service_count)
            continue;
        if (index < SERVICES_KNOWN)
            drawing->services[drawing->service_count++] = service;
        else
            drawing->more_services = true;
    }
}

static void add_start_time(struct oteli_text *text, uint64_t start_ns)
{
    const time_t seconds = (time_t)(start_ns / 1000000000);
    struct tm utc;
    char date[40];
    if (start_ns == 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(date, sizeof date, "%F %T", &utc) == 0)
        return;
    oteli_text_add_format(text, "%s.%03uZ", date, (unsigned)(start_ns % 1000000000 / 1000000));
}

static void add_services(const struct drawing *drawing, struct oteli_text *text)
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
static size_t draw_piece(struct drawing *drawing, size_t column, unsigned style)
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
    set_style(drawing, style);
    column += oteli_text_add_safe(drawing->out, text, drawing->width - column);
    set_style(drawing, PLAIN);
    drawing->line.length = 0;
    return column;
}

static void draw_head(struct drawing *drawing)
{
    struct oteli_text *piece = &drawing->line;
    oteli_text_add_string(piece, "trace ");
    oteli_text_add_hex(piece, drawing->tree.nodes[0].view->trace_id, 16);
    size_t column = draw_piece(drawing, 0, BOLD);
    oteli_text_add_format(piece, "%u span%s", drawing->tree.count,
                          oteli_plural(drawing->tree.count));
    column = draw_piece(drawing, column, PLAIN);
    if (drawing->errors != 0)
        oteli_text_add_format(piece, "%zu error%s", drawing->errors, oteli_plural(drawing->errors));
    column = draw_piece(drawing, column, RED);
    char duration[OTELI_DURATION_TEXT + 1];
    oteli_format_duration(duration, sizeof duration, drawing->end_ns - drawing->start_ns);
    oteli_text_add_string(piece, duration);
    column = draw_piece(drawing, column, PLAIN);
    add_start_time(piece, drawing->start_ns);
    column = draw_piece(drawing, column, PLAIN);
    add_services(drawing, piece);
    (void)draw_piece(drawing, column, PLAIN);
    oteli_text_add_string(drawing->out, "\n");
}

/* ---- lines ---------------------------------------------------------------------------- */

/* The lines that lead past this node's own level: what stands left of its branch. Returns
 * the columns. */
static size_t draw_outer_levels(struct drawing *drawing, const struct oteli_tree_node *node)
{
    bool open[LEVELS_MAX];
    size_t levels = 0;
    uint32_t at = node->parent;
    for (uint32_t level = node->depth; level > 1 && levels < drawing->levels_shown; level--) {
        const struct oteli_tree_node *ancestor = &drawing->tree.nodes[at];
        open[levels++] = ancestor->next_sibling != OTELI_TREE_NONE;
        at = ancestor->parent;
    }
    size_t columns = levels * 3;
    if (node->depth > drawing->levels_shown + 1) {
        oteli_text_add_string(drawing->out, "⋯  ");
        columns += 3;
    }
    while (levels-- > 0)
        oteli_text_add_string(drawing->out, open[levels] ? "│  " : "   ");
    return columns;
}

/* What stands left of a line that belongs to the node above it. */
static size_t draw_detail_margin(struct drawing *drawing, const struct oteli_tree_node *node)
{
    set_style(drawing, DIM);
    size_t columns = 0;
    if (node->depth > 0) {
        columns = draw_outer_levels(drawing, node) + 3;
        oteli_text_add_string(drawing->out, node->next_sibling != OTELI_TREE_NONE ? "│  " : "   ");
    }
    oteli_text_add_string(drawing->out, node->first_child != OTELI_TREE_NONE ? "│ " : "  ");
    set_style(drawing, PLAIN);
    return columns + 2;
}

/* Draw the line that was made, below the node, and empty it. */
static void draw_detail(struct drawing *drawing, const struct oteli_tree_node *node, unsigned style)
{
    const size_t margin = draw_detail_margin(drawing, node);
    set_style(drawing, style);
    oteli_text_add_safe(drawing->out, (otel_slice){drawing->line.data, drawing->line.length},
                        drawing->width - margin);
    set_style(drawing, PLAIN);
    oteli_text_add_string(drawing->out, "\n");
    drawing->line.length = 0;
}

/* "  @service kind", each only where it says something new. Returns the columns. */
static size_t add_tags(const struct drawing *drawing, const struct oteli_tree_node *node,
                       struct oteli_text *tags)
{
    const bool new_service = node->service.length != 0 &&
                             (node->parent == OTELI_TREE_NONE ||
                              !same(node->service, drawing->tree.nodes[node->parent].service));
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
static void bar_halves(const struct drawing *drawing, uint64_t start_ns, uint64_t end_ns,
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
static void mark_events(const struct drawing *drawing, const otel_span_view *span,
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

static void draw_bar(struct drawing *drawing, const struct oteli_tree_node *node)
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
    set_style(drawing, span->status == OTEL_SPAN_STATUS_ERROR
                           ? RED
                           : FIRST_SERVICE + (unsigned)service_index(drawing, node->service));
    for (uint64_t column = first / 2; column * 2 < behind; column++) {
        const bool left = column * 2 >= first;
        const bool right = column * 2 + 1 < behind;
        const char *piece = left && right ? "━" : left ? "╸" : "╺";
        oteli_text_add_string(drawing->out, marked[column] ? "┿" : piece);
    }
    set_style(drawing, PLAIN);
}

static void draw_span_line(struct drawing *drawing, const struct oteli_tree_node *node)
{
    struct oteli_text *out = drawing->out;
    const otel_span_view *span = node->view;
    const bool failed = span->status == OTEL_SPAN_STATUS_ERROR;
    size_t column = 0;
    if (node->depth > 0) {
        set_style(drawing, DIM);
        column = draw_outer_levels(drawing, node) + 3;
        oteli_text_add_string(out, node->next_sibling != OTELI_TREE_NONE ? "├─ " : "└─ ");
        set_style(drawing, PLAIN);
    }
    const size_t tag_columns = add_tags(drawing, node, &drawing->line);
    if (failed) {
        set_style(drawing, RED);
        oteli_text_add_string(out, "✗ ");
        column += 2;
    }
    const bool tagged = column + NAME_COLUMNS / 2 + tag_columns <= drawing->left_columns;
    const size_t room = drawing->left_columns - column - (tagged ? tag_columns : 0);
    column += oteli_text_add_safe(
        out, span->name.length != 0 ? span->name : oteli_slice_of("(no name)"), room);
    set_style(drawing, PLAIN);
    set_style(drawing, DIM);
    if (tagged) {
        oteli_text_add(out, drawing->line.data, drawing->line.length);
        column += tag_columns;
    }
    set_style(drawing, PLAIN);
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

/* ---- what is said below a span -------------------------------------------------------- */

/* Strings without quotes where their end is clear, everything else as JSON has it. */
static void add_attribute(struct oteli_text *text, const otel_attribute_view *attribute)
{
    oteli_text_add(text, attribute->key.data, attribute->key.length);
    oteli_text_add_string(text, "=");
    if (attribute->value.type == OTEL_VALUE_STRING)
        oteli_text_add_quoted(text, attribute->value.slice);
    else
        oteli_json_add_value(text, &attribute->value, OTELI_JSON_PLAIN);
}

static size_t count_attributes(otel_slice rest)
{
    size_t count = 0;
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute))
        count++;
    return count;
}

/* Whole attributes to a line, as many lines as allowed, and then how many there were more. */
static void draw_attributes(struct drawing *drawing, const struct oteli_tree_node *node)
{
    struct oteli_text *item = &drawing->line;
    otel_slice rest = node->view->attributes;
    otel_attribute_view attribute;
    size_t left = count_attributes(rest);
    bool has_item = otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute);
    for (int line = 1; has_item && line <= ATTRIBUTE_LINES; line++) {
        const size_t margin = draw_detail_margin(drawing, node);
        const size_t reserve = line == ATTRIBUTE_LINES ? strlen(", … 9999 more") : strlen(",");
        const size_t room = drawing->width - margin - reserve;
        size_t column = 0;
        set_style(drawing, DIM);
        while (has_item) {
            item->length = 0;
            add_attribute(item, &attribute);
            const otel_slice text = {item->data, item->length};
            if (column != 0 && column + 2 + oteli_text_safe_columns(text, room) > room)
                break;
            if (column != 0)
                oteli_text_add_string(drawing->out, ", ");
            column += column != 0 ? 2 : 0;
            column += oteli_text_add_safe(drawing->out, text, room - column);
            left--;
            has_item = otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute);
        }
        const size_t more = left + node->view->dropped_attributes_count;
        if (more != 0 && (line == ATTRIBUTE_LINES || !has_item))
            oteli_text_add_format(drawing->out, ", … %zu more", more);
        else if (has_item)
            oteli_text_add_string(drawing->out, ",");
        set_style(drawing, PLAIN);
        oteli_text_add_string(drawing->out, "\n");
    }
    item->length = 0;
}

/* Those of an event or a link, behind what else the line has. */
static void add_list(struct oteli_text *line, otel_slice rest, uint32_t field)
{
    otel_attribute_view attribute;
    for (const char *between = "  "; otel_attribute_next(&rest, field, &attribute);
         between = ", ") {
        oteli_text_add_string(line, between);
        add_attribute(line, &attribute);
    }
}

static void draw_event(struct drawing *drawing, const struct oteli_tree_node *node,
                       const otel_event_view *event)
{
    const uint64_t start_ns = node->view->start_ns;
    char offset[OTELI_DURATION_TEXT + 1] = "";
    if (event->time_ns != 0 && start_ns != 0) {
        const bool before = event->time_ns < start_ns;
        offset[0] = before ? '-' : '+';
        oteli_format_duration(offset + 1, sizeof offset - 1,
                              before ? start_ns - event->time_ns : event->time_ns - start_ns);
    }
    oteli_text_add_format(&drawing->line, "◆ %s%s", offset, *offset != '\0' ? "  " : "");
    oteli_text_add(&drawing->line, event->name.data, event->name.length);
    add_list(&drawing->line, event->attributes, OTEL_FIELD_EVENT_ATTRIBUTE);
    draw_detail(drawing, node, PLAIN);
}

/* Draw some of the events. Gives how many there are more. */
static size_t draw_events(struct drawing *drawing, const struct oteli_tree_node *node)
{
    otel_slice rest = node->view->events;
    otel_event_view event;
    size_t count = 0;
    for (; otel_event_next(&rest, &event); count++)
        if (count < EVENTS_MAX)
            draw_event(drawing, node, &event);
    return (count > EVENTS_MAX ? count - EVENTS_MAX : 0) + node->view->dropped_events_count;
}

/* A link to a span of another trace names that too. */
static void draw_link(struct drawing *drawing, const struct oteli_tree_node *node,
                      const otel_link_view *link)
{
    struct oteli_text *line = &drawing->line;
    oteli_text_add_string(line, "→ span ");
    oteli_text_add_hex(line, link->span_id, 8);
    if (memcmp(link->trace_id, node->view->trace_id, 16) != 0) {
        oteli_text_add_string(line, " of trace ");
        oteli_text_add_hex(line, link->trace_id, 16);
    }
    add_list(line, link->attributes, OTEL_FIELD_LINK_ATTRIBUTE);
    if (link->tracestate.length != 0) {
        oteli_text_add_string(line, "  tracestate ");
        oteli_text_add(line, link->tracestate.data, link->tracestate.length);
    }
    draw_detail(drawing, node, PLAIN);
}

/* Draw some of the links. Gives how many there are more. One without ids is left out. */
static size_t draw_links(struct drawing *drawing, const struct oteli_tree_node *node)
{
    otel_slice rest = node->view->links;
    otel_link_view link;
    size_t count = 0, drawn = 0;
    for (; otel_link_next(&rest, &link); count++)
        if (drawn < LINKS_MAX && link.trace_id != NULL && link.span_id != NULL) {
            draw_link(drawing, node, &link);
            drawn++;
        }
    return count - drawn + node->view->dropped_links_count;
}

/* Where it is another one than the parent's. */
static void draw_tracestate(struct drawing *drawing, const struct oteli_tree_node *node)
{
    const otel_slice tracestate = node->view->tracestate;
    if (tracestate.length == 0 ||
        (node->parent != OTELI_TREE_NONE &&
         same(tracestate, drawing->tree.nodes[node->parent].view->tracestate)))
        return;
    oteli_text_add_string(&drawing->line, "tracestate ");
    oteli_text_add(&drawing->line, tracestate.data, tracestate.length);
    draw_detail(drawing, node, DIM);
}

static void add_left_out(struct oteli_text *notes, size_t count, const char *what, const char *how)
{
    if (count != 0)
        oteli_text_add_format(notes, "%s%zu %s%s %s", notes->length != 0 ? ", " : "", count, what,
                              oteli_plural(count), how);
}

/* What is odd or left out, in one dim line. */
static void draw_notes(struct drawing *drawing, const struct oteli_tree_node *node, size_t events,
                       size_t links)
{
    const otel_span_view *span = node->view;
    struct oteli_text *notes = &drawing->line;
    if (node->place == OTELI_TREE_ORPHAN || node->place == OTELI_TREE_CYCLE) {
        oteli_text_add_string(notes, "parent ");
        oteli_text_add_hex(notes, span->parent_span_id, 8);
        oteli_text_add_string(notes, node->place == OTELI_TREE_ORPHAN ? " not here"
                                                                      : " is its own descendant");
    }
    add_left_out(notes, links, "link", "more");
    add_left_out(notes, events, "event", "more");
    if (count_attributes(span->attributes) == 0)
        add_left_out(notes, span->dropped_attributes_count, "attribute", "not shown");
    if (notes->length != 0)
        draw_detail(drawing, node, DIM);
}

static void draw_details(struct drawing *drawing, const struct oteli_tree_node *node)
{
    const otel_span_view *span = node->view;
    if (span->status == OTEL_SPAN_STATUS_ERROR && span->status_message.length != 0) {
        oteli_text_add_string(&drawing->line, "error: ");
        oteli_text_add(&drawing->line, span->status_message.data, span->status_message.length);
        draw_detail(drawing, node, RED);
    }
    draw_attributes(drawing, node);
    const size_t events = draw_events(drawing, node);
    const size_t links = draw_links(drawing, node);
    draw_tracestate(drawing, node);
    draw_notes(drawing, node, events, links);
}

bool oteli_render_trace(struct oteli_text *out, const struct oteli_waiting_trace *trace,
                        const struct oteli_render_options *options)
{
    struct drawing drawing = {.out = out, .colour = options->colour};
    if (!oteli_tree_init(&drawing.tree, trace))
        return false;
    drawing.width = options->width < WIDTH_MIN   ? WIDTH_MIN
                    : options->width > WIDTH_MAX ? WIDTH_MAX
                                                 : options->width;
    drawing.bar_columns = drawing.width * 3 / 10;
    drawing.left_columns = drawing.width - drawing.bar_columns - DURATION_COLUMNS - 2;
    const size_t levels = (drawing.left_columns - NAME_COLUMNS) / 3 - 2;
    drawing.levels_shown = levels < LEVELS_MAX ? levels : LEVELS_MAX;
    survey(&drawing);
    draw_head(&drawing);
    for (uint32_t i = drawing.tree.first_root; i != OTELI_TREE_NONE;
         i = oteli_tree_next(&drawing.tree, i)) {
        draw_span_line(&drawing, &drawing.tree.nodes[i]);
        draw_details(&drawing, &drawing.tree.nodes[i]);
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
