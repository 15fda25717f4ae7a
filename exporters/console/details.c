/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/details.c - the lines below a span: its error, attributes, events, links and
 * what is odd about it.
 *
 * Runs on the thread that draws; owns nothing after the call. */
#include "exporters/console/drawing.h"

#include "common/text/text.h"
#include "exporters/console/duration.h"
#include "exporters/console/safe_text.h"
#include "exporters/json/json_value.h"
#include <limits.h>

enum {
    ATTRIBUTE_LINES = 3, /* of one span */
    EVENTS_MAX = 16,     /* shown of one span */
    LINKS_MAX = 16,      /* of links */
    SERVICE_COLUMNS = 24 /* of a service name in front of its resource */
};

/* ---- style and margin ----------------------------------------------------------------- */

void oteli_drawing_style(struct oteli_drawing *drawing, unsigned style)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m",  "\033[31m", "\033[36m",
                                        "\033[32m", "\033[33m", "\033[35m", "\033[34m"};
    const unsigned services = sizeof codes / sizeof codes[0] - OTELI_STYLE_FIRST_SERVICE;
    if (style >= OTELI_STYLE_FIRST_SERVICE)
        style = OTELI_STYLE_FIRST_SERVICE + (style - OTELI_STYLE_FIRST_SERVICE) % services;
    if (drawing->colour)
        oteli_text_add_string(drawing->out, codes[style]);
}

size_t oteli_draw_outer_levels(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    bool open[OTELI_DRAWING_LEVELS];
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
static size_t draw_detail_margin(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    oteli_drawing_style(drawing, OTELI_STYLE_DIM);
    size_t columns = 0;
    if (node->depth > 0) {
        columns = oteli_draw_outer_levels(drawing, node) + 3;
        oteli_text_add_string(drawing->out, node->next_sibling != OTELI_TREE_NONE ? "│  " : "   ");
    }
    oteli_text_add_string(drawing->out, node->first_child != OTELI_TREE_NONE ? "│ " : "  ");
    oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
    return columns + 2;
}

/* Draw the line that was made, below the node, and empty it. */
static void draw_detail(struct oteli_drawing *drawing, const struct oteli_tree_node *node,
                        unsigned style)
{
    const size_t margin = draw_detail_margin(drawing, node);
    oteli_drawing_style(drawing, style);
    oteli_text_add_safe(drawing->out, (otel_slice){drawing->line.data, drawing->line.length},
                        drawing->all ? SIZE_MAX : drawing->width - margin);
    oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
    oteli_text_add_string(drawing->out, "\n");
    drawing->line.length = 0;
}

/* ---- what is said below a span -------------------------------------------------------- */

void oteli_add_attribute(struct oteli_text *text, const otel_attribute_view *attribute)
{
    oteli_text_add(text, attribute->key.data, attribute->key.length);
    oteli_text_add_string(text, "=");
    if (attribute->value.type == OTEL_VALUE_STRING)
        oteli_text_add_quoted(text, attribute->value.slice);
    else
        oteli_json_add_value(text, &attribute->value, OTELI_JSON_PLAIN);
}

/* Attributes that are to be drawn: of a span, or of a resource. */
struct list {
    otel_slice rest;
    const struct oteli_tree_node *node; /* NULL: a resource */
    size_t left, dropped;
    int lines; /* at most */
};

/* The next one. The service's name stands in front of a resource already. */
static bool next_attribute(struct list *list, otel_attribute_view *attribute)
{
    const bool is_span = list->node != NULL;
    const uint32_t field = is_span ? OTEL_FIELD_SPAN_ATTRIBUTE : OTEL_FIELD_RESOURCE_ATTRIBUTE;
    while (otel_attribute_next(&list->rest, field, attribute))
        if (is_span || !oteli_is_text(attribute->key, "service.name"))
            return true;
    return false;
}

static struct list list_of(const struct oteli_drawing *drawing, struct list list)
{
    struct list counted = list;
    otel_attribute_view attribute;
    while (next_attribute(&counted, &attribute))
        list.left++;
    if (drawing->all)
        list.lines = INT_MAX;
    return list;
}

static size_t draw_list_margin(struct oteli_drawing *drawing, const struct list *list)
{
    if (list->node != NULL)
        return draw_detail_margin(drawing, list->node);
    oteli_text_add_string(drawing->out, "      ");
    return 6;
}

/* Whole attributes to a line, as many lines as allowed, and then how many there were more. `margin`
 * is what stands in front of the first, or 0. */
static void draw_list(struct oteli_drawing *drawing, struct list list, size_t margin)
{
    struct oteli_text *item = &drawing->line;
    otel_attribute_view attribute;
    bool has_item = next_attribute(&list, &attribute);
    for (int line = 1; has_item && line <= list.lines; line++, margin = 0) {
        if (margin == 0)
            margin = draw_list_margin(drawing, &list);
        const size_t reserve = line == list.lines ? strlen(", … 9999 more") : strlen(",");
        const size_t room = drawing->width - margin - reserve;
        size_t column = 0;
        oteli_drawing_style(drawing, OTELI_STYLE_DIM);
        while (has_item) {
            item->length = 0;
            oteli_add_attribute(item, &attribute);
            const otel_slice text = {item->data, item->length};
            if (column != 0 && column + 2 + oteli_text_safe_columns(text, room) > room)
                break;
            if (column != 0)
                oteli_text_add_string(drawing->out, ", ");
            column += column != 0 ? 2 : 0;
            column +=
                oteli_text_add_safe(drawing->out, text, drawing->all ? SIZE_MAX : room - column);
            list.left--;
            has_item = next_attribute(&list, &attribute);
        }
        const size_t more = list.left + list.dropped;
        if (more != 0 && (line == list.lines || !has_item))
            oteli_text_add_format(drawing->out, ", … %zu more", more);
        else if (has_item)
            oteli_text_add_string(drawing->out, ",");
        oteli_drawing_style(drawing, OTELI_STYLE_PLAIN);
        oteli_text_add_string(drawing->out, "\n");
    }
    item->length = 0;
}

static struct list attributes_of(const struct oteli_drawing *drawing,
                                 const struct oteli_tree_node *node)
{
    return list_of(drawing, (struct list){.rest = node->view->attributes,
                                          .node = node,
                                          .dropped = node->view->dropped_attributes_count,
                                          .lines = ATTRIBUTE_LINES});
}

void oteli_draw_resources(struct oteli_drawing *drawing)
{
    for (size_t i = 0; i < drawing->resource_count; i++) {
        const struct oteli_kept_resource *resource = drawing->resources[i];
        const otel_slice otlp = {resource->otlp, resource->length};
        const struct list list = list_of(drawing, (struct list){.rest = otlp, .lines = 1});
        if (list.left == 0)
            continue;
        oteli_drawing_style(drawing, OTELI_STYLE_DIM);
        size_t margin = 1;
        oteli_text_add_string(drawing->out, "@");
        if (resource->service != NULL)
            margin += oteli_text_add_safe(drawing->out, oteli_slice_of(resource->service),
                                          SERVICE_COLUMNS);
        oteli_text_add_string(drawing->out, "  ");
        draw_list(drawing, list, margin + 2);
    }
}

/* Those of an event or a link, behind what else the line has. */
static void add_list(struct oteli_text *line, otel_slice rest, uint32_t field)
{
    otel_attribute_view attribute;
    for (const char *between = "  "; otel_attribute_next(&rest, field, &attribute);
         between = ", ") {
        oteli_text_add_string(line, between);
        oteli_add_attribute(line, &attribute);
    }
}

static void draw_event(struct oteli_drawing *drawing, const struct oteli_tree_node *node,
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
    draw_detail(drawing, node, OTELI_STYLE_PLAIN);
}

/* Draw some of the events. Gives how many there are more. */
static size_t draw_events(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    otel_slice rest = node->view->events;
    otel_event_view event;
    const size_t events_max = drawing->all ? SIZE_MAX : EVENTS_MAX;
    size_t count = 0;
    for (; otel_event_next(&rest, &event); count++)
        if (count < events_max)
            draw_event(drawing, node, &event);
    return (count > events_max ? count - events_max : 0) + node->view->dropped_events_count;
}

/* A link to a span of another trace names that too. */
static void draw_link(struct oteli_drawing *drawing, const struct oteli_tree_node *node,
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
    draw_detail(drawing, node, OTELI_STYLE_PLAIN);
}

/* Draw some of the links. Gives how many there are more. One without ids is left out. */
static size_t draw_links(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    otel_slice rest = node->view->links;
    otel_link_view link;
    size_t count = 0, drawn = 0;
    for (; otel_link_next(&rest, &link); count++)
        if ((drawing->all || drawn < LINKS_MAX) && link.trace_id != NULL && link.span_id != NULL) {
            draw_link(drawing, node, &link);
            drawn++;
        }
    return count - drawn + node->view->dropped_links_count;
}

/* Where it is another one than the parent's. */
static void draw_tracestate(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    const otel_slice tracestate = node->view->tracestate;
    if (tracestate.length == 0 ||
        (node->parent != OTELI_TREE_NONE &&
         oteli_drawing_same(tracestate, drawing->tree.nodes[node->parent].view->tracestate)))
        return;
    oteli_text_add_string(&drawing->line, "tracestate ");
    oteli_text_add(&drawing->line, tracestate.data, tracestate.length);
    draw_detail(drawing, node, OTELI_STYLE_DIM);
}

static void add_left_out(struct oteli_text *notes, size_t count, const char *what, const char *how)
{
    if (count != 0)
        oteli_text_add_format(notes, "%s%zu %s%s %s", notes->length != 0 ? ", " : "", count, what,
                              oteli_plural(count), how);
}

/* What is odd or left out, in one dim line. */
static void draw_notes(struct oteli_drawing *drawing, const struct oteli_tree_node *node,
                       size_t events, size_t links, bool has_no_attributes)
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
    if (has_no_attributes)
        add_left_out(notes, span->dropped_attributes_count, "attribute", "not shown");
    if (notes->length != 0)
        draw_detail(drawing, node, OTELI_STYLE_DIM);
}

void oteli_draw_details(struct oteli_drawing *drawing, const struct oteli_tree_node *node)
{
    const otel_span_view *span = node->view;
    if (span->status == OTEL_SPAN_STATUS_ERROR && span->status_message.length != 0) {
        oteli_text_add_string(&drawing->line, "error: ");
        oteli_text_add(&drawing->line, span->status_message.data, span->status_message.length);
        draw_detail(drawing, node, OTELI_STYLE_RED);
    }
    const struct list attributes = attributes_of(drawing, node);
    draw_list(drawing, attributes, 0);
    const size_t events = draw_events(drawing, node);
    const size_t links = draw_links(drawing, node);
    draw_tracestate(drawing, node);
    draw_notes(drawing, node, events, links, attributes.left == 0);
}
