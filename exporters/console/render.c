/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/render.c - draw one trace for people: a tree beside a waterfall.
 *
 *     | name, branches and tags, cut ........ | duration | bar, three tenths of the width |
 *
 * Runs on the thread that draws; owns nothing after the call. */
#include "exporters/console/render.h"

#include "common/text/text.h"
#include "exporters/console/duration.h"
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

static void format_span_duration(char *text, size_t size, const struct oteli_render_span *span)
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
    uint32_t depth = 0;
    for (uint32_t i = drawing->tree.first_root; i != OTELI_TREE_NONE;
         i = oteli_tree_next(&drawing->tree, i, &depth)) {
        const struct oteli_render_span *span = drawing->tree.nodes[i].span;
        include_time(drawing, span->start_ns);
        include_time(drawing, span->end_ns);
        drawing->errors += span->status == OTEL_SPAN_STATUS_ERROR;
        const size_t service = service_index(drawing, span->service);
        if (span->service.length == 0 || service < drawing->service_count)
            continue;
        if (service < SERVICES_KNOWN)
            drawing->services[drawing->service_count++] = span->service;
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
static size_t draw_piece(struct drawing *drawing, size_t column, unsigned style,
                         struct oteli_text *piece)
{
    const otel_slice text = {piece->data, piece->length};
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
    piece->length = 0;
    return column;
}

static void draw_head(struct drawing *drawing, const struct oteli_render_span *first)
{
    struct oteli_text piece = {0};
    oteli_text_add_string(&piece, "trace ");
    oteli_text_add_hex(&piece, first->trace_id, sizeof first->trace_id);
    size_t column = draw_piece(drawing, 0, BOLD, &piece);
    oteli_text_add_format(&piece, "%u span%s", drawing->tree.count,
                          drawing->tree.count == 1 ? "" : "s");
    column = draw_piece(drawing, column, PLAIN, &piece);
    if (drawing->errors != 0)
        oteli_text_add_format(&piece, "%zu error%s", drawing->errors,
                              drawing->errors == 1 ? "" : "s");
    column = draw_piece(drawing, column, RED, &piece);
    char duration[OTELI_DURATION_TEXT + 1];
    oteli_format_duration(duration, sizeof duration, drawing->end_ns - drawing->start_ns);
    oteli_text_add_string(&piece, duration);
    column = draw_piece(drawing, column, PLAIN, &piece);
    add_start_time(&piece, drawing->start_ns);
    column = draw_piece(drawing, column, PLAIN, &piece);
    add_services(drawing, &piece);
    (void)draw_piece(drawing, column, PLAIN, &piece);
    drawing->out->failed |= piece.failed;
    oteli_text_fini(&piece);
    oteli_text_add_string(drawing->out, "\n");
}

/* ---- lines ---------------------------------------------------------------------------- */

/* The lines that lead past this node's own level: what stands left of its branch. Returns
 * the columns. */
static size_t draw_outer_levels(struct drawing *drawing, const struct oteli_tree_node *node,
                                uint32_t depth)
{
    bool open[LEVELS_MAX];
    size_t levels = 0;
    uint32_t at = node->parent;
    for (uint32_t level = depth; level > 1 && levels < drawing->levels_shown; level--) {
        const struct oteli_tree_node *ancestor = &drawing->tree.nodes[at];
        open[levels++] = ancestor->next_sibling != OTELI_TREE_NONE;
        at = ancestor->parent;
    }
    size_t columns = levels * 3;
    if (depth > drawing->levels_shown + 1) {
        oteli_text_add_string(drawing->out, "⋯  ");
        columns += 3;
    }
    while (levels-- > 0)
        oteli_text_add_string(drawing->out, open[levels] ? "│  " : "   ");
    return columns;
}

/* What stands left of a line that belongs to the node above it. */
static size_t draw_detail_margin(struct drawing *drawing, const struct oteli_tree_node *node,
                                 uint32_t depth)
{
    set_style(drawing, DIM);
    size_t columns = 0;
    if (depth > 0) {
        columns = draw_outer_levels(drawing, node, depth) + 3;
        oteli_text_add_string(drawing->out, node->next_sibling != OTELI_TREE_NONE ? "│  " : "   ");
    }
    oteli_text_add_string(drawing->out, node->first_child != OTELI_TREE_NONE ? "│ " : "  ");
    set_style(drawing, PLAIN);
    return columns + 2;
}

static void draw_detail(struct drawing *drawing, const struct oteli_tree_node *node, uint32_t depth,
                        unsigned style, otel_slice text)
{
    const size_t margin = draw_detail_margin(drawing, node, depth);
    set_style(drawing, style);
    oteli_text_add_safe(drawing->out, text, drawing->width - margin);
    set_style(drawing, PLAIN);
    oteli_text_add_string(drawing->out, "\n");
}

static const char *kind_word(otel_span_kind kind)
{
    switch (kind) {
    case OTEL_SPAN_KIND_SERVER:
        return "server";
    case OTEL_SPAN_KIND_CLIENT:
        return "client";
    case OTEL_SPAN_KIND_PRODUCER:
        return "producer";
    case OTEL_SPAN_KIND_CONSUMER:
        return "consumer";
    default:
        return "";
    }
}

/* "  @service kind", each only where it says something new. Returns the columns. */
static size_t add_tags(const struct drawing *drawing, const struct oteli_tree_node *node,
                       struct oteli_text *tags)
{
    const struct oteli_render_span *span = node->span;
    const bool new_service =
        span->service.length != 0 &&
        (node->parent == OTELI_TREE_NONE ||
         !same(span->service, drawing->tree.nodes[node->parent].span->service));
    const char *kind = kind_word(span->kind);
    size_t columns = 0;
    if (new_service) {
        oteli_text_add_string(tags, "  @");
        columns += 3 + oteli_text_add_safe(tags, span->service, TAG_COLUMNS);
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
    uint64_t total = drawing->end_ns - drawing->start_ns;
    uint64_t from = start_ns - drawing->start_ns;
    uint64_t to = end_ns - drawing->start_ns;
    while (total >> 52 != 0) {
        total >>= 1;
        from >>= 1;
        to >>= 1;
    }
    if (total == 0) {
        *first = 0;
        *behind = halves;
        return;
    }
    *first = from * halves / total;
    *behind = (to * halves + total - 1) / total;
    if (*first >= halves)
        *first = halves - 1;
    if (*behind <= *first)
        *behind = *first + 1;
    if (*behind > halves)
        *behind = halves;
}

static bool has_event_in(const struct drawing *drawing, const struct oteli_render_span *span,
                         uint64_t column)
{
    for (size_t i = 0; i < span->event_count; i++) {
        const uint64_t ns = span->events[i].time_ns;
        if (ns < span->start_ns || ns > span->end_ns)
            continue;
        uint64_t first, behind;
        bar_halves(drawing, ns, ns, &first, &behind);
        if (first / 2 == column)
            return true;
    }
    return false;
}

static void draw_bar(struct drawing *drawing, const struct oteli_render_span *span)
{
    if (span->start_ns == 0 || span->end_ns == 0)
        return;
    const bool forwards = span->start_ns <= span->end_ns;
    uint64_t first, behind;
    bar_halves(drawing, span->start_ns, forwards ? span->end_ns : span->start_ns, &first, &behind);
    oteli_text_add_spaces(drawing->out, 1 + (size_t)(first / 2));
    set_style(drawing, span->status == OTEL_SPAN_STATUS_ERROR
                           ? RED
                           : FIRST_SERVICE + (unsigned)service_index(drawing, span->service));
    for (uint64_t column = first / 2; column * 2 < behind; column++) {
        const bool left = column * 2 >= first;
        const bool right = column * 2 + 1 < behind;
        const char *piece = left && right ? "━" : left ? "╸" : "╺";
        oteli_text_add_string(drawing->out, has_event_in(drawing, span, column) ? "┿" : piece);
    }
    set_style(drawing, PLAIN);
}

static void draw_span_line(struct drawing *drawing, const struct oteli_tree_node *node,
                           uint32_t depth)
{
    struct oteli_text *out = drawing->out;
    const struct oteli_render_span *span = node->span;
    const bool failed = span->status == OTEL_SPAN_STATUS_ERROR;
    size_t column = 0;
    if (depth > 0) {
        set_style(drawing, DIM);
        column = draw_outer_levels(drawing, node, depth) + 3;
        oteli_text_add_string(out, node->next_sibling != OTELI_TREE_NONE ? "├─ " : "└─ ");
        set_style(drawing, PLAIN);
    }
    struct oteli_text tags = {0};
    const size_t tag_columns = add_tags(drawing, node, &tags);
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
        oteli_text_add(out, tags.data, tags.length);
        column += tag_columns;
    }
    set_style(drawing, PLAIN);
    out->failed |= tags.failed;
    oteli_text_fini(&tags);

    char duration[OTELI_DURATION_TEXT + 1];
    format_span_duration(duration, sizeof duration, span);
    const size_t columns = oteli_text_safe_columns(oteli_slice_of(duration), sizeof duration);
    const size_t edge = drawing->left_columns + 1 + DURATION_COLUMNS;
    oteli_text_add_spaces(out, edge > column + columns ? edge - column - columns : 1);
    oteli_text_add_string(out, duration);
    draw_bar(drawing, span);
    oteli_text_add_string(out, "\n");
}

/* ---- what is said below a span -------------------------------------------------------- */

/* Whole items to a line, as many lines as allowed, and then how many there were more. */
static void draw_attributes(struct drawing *drawing, const struct oteli_tree_node *node,
                            uint32_t depth)
{
    const struct oteli_render_span *span = node->span;
    size_t next = 0;
    for (int line = 1; next < span->attribute_count && line <= ATTRIBUTE_LINES; line++) {
        const size_t margin = draw_detail_margin(drawing, node, depth);
        const size_t reserve = line == ATTRIBUTE_LINES ? strlen(", … 9999 more") : strlen(",");
        const size_t room = drawing->width - margin - reserve;
        size_t column = 0;
        set_style(drawing, DIM);
        for (; next < span->attribute_count; next++) {
            const otel_slice item = span->attributes[next];
            if (column != 0 && column + 2 + oteli_text_safe_columns(item, room) > room)
                break;
            if (column != 0)
                oteli_text_add_string(drawing->out, ", ");
            column += column != 0 ? 2 : 0;
            column += oteli_text_add_safe(drawing->out, item, room - column);
        }
        const size_t left = span->attribute_count - next + span->attributes_left_out;
        if (left != 0 && (line == ATTRIBUTE_LINES || next == span->attribute_count))
            oteli_text_add_format(drawing->out, ", … %zu more", left);
        else if (next < span->attribute_count)
            oteli_text_add_string(drawing->out, ",");
        set_style(drawing, PLAIN);
        oteli_text_add_string(drawing->out, "\n");
    }
}

static void draw_event(struct drawing *drawing, const struct oteli_tree_node *node, uint32_t depth,
                       const struct oteli_render_event *event)
{
    const uint64_t start_ns = node->span->start_ns;
    char offset[OTELI_DURATION_TEXT + 1] = "";
    if (event->time_ns != 0 && start_ns != 0) {
        const bool before = event->time_ns < start_ns;
        offset[0] = before ? '-' : '+';
        oteli_format_duration(offset + 1, sizeof offset - 1,
                              before ? start_ns - event->time_ns : event->time_ns - start_ns);
    }
    struct oteli_text line = {0};
    oteli_text_add_format(&line, "◆ %s%s", offset, *offset != '\0' ? "  " : "");
    oteli_text_add(&line, event->name.data, event->name.length);
    if (event->attributes.length != 0) {
        oteli_text_add_string(&line, "  ");
        oteli_text_add(&line, event->attributes.data, event->attributes.length);
    }
    draw_detail(drawing, node, depth, PLAIN, (otel_slice){line.data, line.length});
    drawing->out->failed |= line.failed;
    oteli_text_fini(&line);
}

/* A link to a span of another trace names that too. */
static void draw_link(struct drawing *drawing, const struct oteli_tree_node *node, uint32_t depth,
                      const struct oteli_render_link *link)
{
    struct oteli_text line = {0};
    oteli_text_add_string(&line, "→ span ");
    oteli_text_add_hex(&line, link->span_id, sizeof link->span_id);
    if (memcmp(link->trace_id, node->span->trace_id, sizeof link->trace_id) != 0) {
        oteli_text_add_string(&line, " of trace ");
        oteli_text_add_hex(&line, link->trace_id, sizeof link->trace_id);
    }
    const otel_slice parts[] = {link->attributes, link->tracestate};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].length == 0)
            continue;
        oteli_text_add_string(&line, i == 0 ? "  " : "  tracestate ");
        oteli_text_add(&line, parts[i].data, parts[i].length);
    }
    draw_detail(drawing, node, depth, PLAIN, (otel_slice){line.data, line.length});
    drawing->out->failed |= line.failed;
    oteli_text_fini(&line);
}

/* Where it is another one than the parent's. */
static void draw_tracestate(struct drawing *drawing, const struct oteli_tree_node *node,
                            uint32_t depth)
{
    const otel_slice tracestate = node->span->tracestate;
    if (tracestate.length == 0 ||
        (node->parent != OTELI_TREE_NONE &&
         same(tracestate, drawing->tree.nodes[node->parent].span->tracestate)))
        return;
    struct oteli_text line = {0};
    oteli_text_add_string(&line, "tracestate ");
    oteli_text_add(&line, tracestate.data, tracestate.length);
    draw_detail(drawing, node, depth, DIM, (otel_slice){line.data, line.length});
    drawing->out->failed |= line.failed;
    oteli_text_fini(&line);
}

/* What is odd or left out, in one dim line. */
static void draw_notes(struct drawing *drawing, const struct oteli_tree_node *node, uint32_t depth)
{
    const struct oteli_render_span *span = node->span;
    struct oteli_text notes = {0};
    if (node->place == OTELI_TREE_ORPHAN || node->place == OTELI_TREE_CYCLE) {
        oteli_text_add_string(&notes, "parent ");
        oteli_text_add_hex(&notes, span->parent_id, sizeof span->parent_id);
        oteli_text_add_string(&notes, node->place == OTELI_TREE_ORPHAN ? " not here"
                                                                       : " is its own descendant");
    }
    if (span->links_left_out != 0)
        oteli_text_add_format(&notes, "%s%zu link%s more", notes.length != 0 ? ", " : "",
                              span->links_left_out, span->links_left_out == 1 ? "" : "s");
    if (span->events_left_out != 0)
        oteli_text_add_format(&notes, "%s%zu event%s more", notes.length != 0 ? ", " : "",
                              span->events_left_out, span->events_left_out == 1 ? "" : "s");
    if (span->attribute_count == 0 && span->attributes_left_out != 0)
        oteli_text_add_format(&notes, "%s%zu attribute%s not shown", notes.length != 0 ? ", " : "",
                              span->attributes_left_out, span->attributes_left_out == 1 ? "" : "s");
    if (notes.length != 0)
        draw_detail(drawing, node, depth, DIM, (otel_slice){notes.data, notes.length});
    drawing->out->failed |= notes.failed;
    oteli_text_fini(&notes);
}

static void draw_details(struct drawing *drawing, const struct oteli_tree_node *node,
                         uint32_t depth)
{
    const struct oteli_render_span *span = node->span;
    if (span->status == OTEL_SPAN_STATUS_ERROR && span->status_message.length != 0) {
        struct oteli_text line = {0};
        oteli_text_add_string(&line, "error: ");
        oteli_text_add(&line, span->status_message.data, span->status_message.length);
        draw_detail(drawing, node, depth, RED, (otel_slice){line.data, line.length});
        drawing->out->failed |= line.failed;
        oteli_text_fini(&line);
    }
    draw_attributes(drawing, node, depth);
    for (size_t i = 0; i < span->event_count; i++)
        draw_event(drawing, node, depth, &span->events[i]);
    for (size_t i = 0; i < span->link_count; i++)
        draw_link(drawing, node, depth, &span->links[i]);
    draw_tracestate(drawing, node, depth);
    draw_notes(drawing, node, depth);
}

bool oteli_render_trace(struct oteli_text *out, const struct oteli_render_span **spans,
                        size_t count, const struct oteli_render_options *options)
{
    struct drawing drawing = {.out = out, .colour = options->colour};
    if (count == 0)
        return true;
    if (!oteli_tree_init(&drawing.tree, spans, count))
        return false;
    drawing.width = options->width < WIDTH_MIN   ? WIDTH_MIN
                    : options->width > WIDTH_MAX ? WIDTH_MAX
                                                 : options->width;
    drawing.bar_columns = drawing.width * 3 / 10;
    drawing.left_columns = drawing.width - drawing.bar_columns - DURATION_COLUMNS - 2;
    const size_t levels = (drawing.left_columns - NAME_COLUMNS) / 3 - 2;
    drawing.levels_shown = levels < LEVELS_MAX ? levels : LEVELS_MAX;
    survey(&drawing);
    draw_head(&drawing, drawing.tree.nodes[drawing.tree.first_root].span);
    uint32_t depth = 0;
    for (uint32_t i = drawing.tree.first_root; i != OTELI_TREE_NONE;
         i = oteli_tree_next(&drawing.tree, i, &depth)) {
        draw_span_line(&drawing, &drawing.tree.nodes[i], depth);
        draw_details(&drawing, &drawing.tree.nodes[i], depth);
    }
    oteli_text_add_string(out, "\n");
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
