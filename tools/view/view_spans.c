/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_spans.c - from received requests to drawn traces, or to lines.
 *
 * Runs on otel-view's only thread; owns the spans that wait to be drawn. */
#include "tools/view/view_spans.h"

#include "common/config/configuration.h"
#include "common/text/text.h"
#include "common/wire.h"
#include "exporters/console/render.h"
#include "exporters/trace/trace_tree.h"
#include "sdk/view/span_view.h"
#include "tools/view/view_line.h"
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fields of opentelemetry-proto's trace_service.proto and trace.proto. */
enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPES = 2,
    SCOPE_SPANS_SPANS = 2
};

enum { SPANS_WAITING_MAX = 100000, BYTES_WAITING_MAX = 256 << 20 };

/* Whole traces wait for spans that come late; incomplete ones for what is missing. */
#define QUIET_NS UINT64_C(300000000)
#define PATIENCE_NS UINT64_C(5000000000)
#define LOOK_NS UINT64_C(50000000) /* between looks at what waits */

void view_spans_init(struct view_spans *spans, FILE *out)
{
    *spans = (struct view_spans){.out = out, .terminal = fileno(out)};
    if (isatty(spans->terminal) == 0)
        spans->terminal = -1;
    spans->colour = spans->terminal >= 0 && oteli_env_get("NO_COLOR") == NULL;
}

void view_spans_fini(struct view_spans *spans)
{
    oteli_trace_buffer_fini(&spans->waiting);
    tdestroy(spans->seen, free);
    tdestroy(spans->seen_before, free);
}

/* ---- drawing -------------------------------------------------------------------------- */

/* Whether one of its spans is what is looked for. */
static bool is_wanted(const struct view_spans *spans, const struct oteli_waiting_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (view_filter_passes(&spans->filter, &trace->spans[i].kept->view,
                               oteli_slice_of(trace->spans[i].service)))
            return true;
    return false;
}

/* Print it, and free it. */
static void put(struct view_spans *spans, struct oteli_text *text)
{
    if (fwrite(text->data, 1, text->length, spans->out) != text->length || fflush(spans->out) != 0)
        spans->failed = true;
    oteli_text_fini(text);
}

static void draw(struct view_spans *spans, const struct oteli_waiting_trace *trace)
{
    struct oteli_text text = {0};
    const struct oteli_render_options options = {.width = oteli_render_width(spans->terminal),
                                                 .colour = spans->colour,
                                                 .resource = true,
                                                 .all = spans->all};
    if (!is_wanted(spans, trace)) {
        spans->hidden++;
        return;
    }
    spans->shown++;
    if (oteli_render_trace(&text, trace, &options)) {
        put(spans, &text);
        return;
    }
    fprintf(stderr, "otel-view: no memory to draw %zu spans\n", trace->count);
    oteli_text_fini(&text);
}

static bool draw_any(void *state, const struct oteli_waiting_trace *trace)
{
    draw(state, trace);
    return true;
}

static bool is_complete(const struct oteli_waiting_trace *trace)
{
    struct oteli_tree tree;
    if (!oteli_tree_init(&tree, trace))
        return true;
    bool has_root = false, all_here = true;
    for (uint32_t i = 0; i < tree.count; i++) {
        has_root |= tree.nodes[i].place == OTELI_TREE_ROOT;
        all_here &= tree.nodes[i].place != OTELI_TREE_ORPHAN;
    }
    oteli_tree_fini(&tree);
    return has_root && all_here;
}

/* Traces come in the order in which they started. Those behind the first that is not ready wait
 * for it, until their own time is over. */
static bool draw_if_ready(void *state, const struct oteli_waiting_trace *trace)
{
    struct view_spans *spans = state;
    const uint64_t quiet_ns = spans->look_ns - trace->came_ns;
    if (quiet_ns < PATIENCE_NS) {
        spans->is_held = spans->is_held || quiet_ns < QUIET_NS || !is_complete(trace);
        if (spans->is_held)
            return false;
    }
    draw(spans, trace);
    return true;
}

void view_spans_draw_ready(struct view_spans *spans, uint64_t now_ns)
{
    if (now_ns - spans->last_look_ns < LOOK_NS)
        return;
    spans->look_ns = now_ns;
    spans->is_held = false;
    oteli_trace_buffer_visit(&spans->waiting, draw_if_ready, spans);
    spans->last_look_ns = now_ns;
}

void view_spans_draw_all(struct view_spans *spans)
{
    oteli_trace_buffer_visit(&spans->waiting, draw_any, spans);
}

/* ---- requests ------------------------------------------------------------------------- */

/* The next message of this field at the front of `rest`. */
static bool next_message(otel_slice *rest, uint32_t number, otel_slice *message)
{
    const uint8_t *at = (const uint8_t *)rest->data;
    const uint8_t *const end = at + rest->length;
    struct oteli_field field;
    while (oteli_next_field(&at, end, &field)) {
        if (field.number != number)
            continue;
        *message = (otel_slice){(const char *)field.bytes, field.length};
        *rest = (otel_slice){(const char *)at, (size_t)(end - at)};
        return true;
    }
    return false;
}

/* What others send need not be what this SDK would. */
static void read_span(otel_slice otlp, otel_span_view *span)
{
    static const uint8_t no_parent[8];
    oteli_span_view_fill(span, otlp, NULL);
    if (span->parent_span_id != NULL &&
        memcmp(span->parent_span_id, no_parent, sizeof no_parent) == 0)
        span->parent_span_id = NULL;
    if ((unsigned)span->kind > OTEL_SPAN_KIND_CONSUMER)
        span->kind = OTEL_SPAN_KIND_INTERNAL;
    if ((unsigned)span->status > OTEL_SPAN_STATUS_ERROR)
        span->status = OTEL_SPAN_STATUS_UNSET;
}

/* ---- each span once ------------------------------------------------------------------- */

/* A sender that gets no answer sends its request again, long after its traces have been drawn. The
 * ids of the last SEEN_MAX spans and more are kept: when there are so many, those before them are
 * forgotten. */
enum { SEEN_MAX = 1 << 17 };

struct span_ids {
    uint8_t trace_id[16];
    uint8_t span_id[8];
};

static int compare_ids(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct span_ids));
}

/* Whether a span has been here; remember it. */
static bool is_seen(struct view_spans *spans, const otel_span_view *span)
{
    struct span_ids *ids = malloc(sizeof *ids);
    if (ids == NULL)
        return false;
    memcpy(ids->trace_id, span->trace_id, sizeof ids->trace_id);
    memcpy(ids->span_id, span->span_id, sizeof ids->span_id);
    const bool was_before = tfind(ids, &spans->seen_before, compare_ids) != NULL;
    struct span_ids *const *kept = was_before ? NULL : tsearch(ids, &spans->seen, compare_ids);
    if (kept == NULL || *kept != ids) {
        free(ids);
        return was_before || kept != NULL;
    }
    if (++spans->seen_count == SEEN_MAX) {
        tdestroy(spans->seen_before, free);
        spans->seen_before = spans->seen;
        spans->seen = NULL;
        spans->seen_count = 0;
    }
    return false;
}

static void put_line(struct view_spans *spans, const otel_span_view *span, otel_slice service)
{
    struct oteli_text text = {0};
    if (!view_filter_passes(&spans->filter, span, service)) {
        spans->hidden++;
        return;
    }
    spans->shown++;
    view_line_add(&text, span, service, spans->all);
    put(spans, &text);
}

static bool add_span(struct view_spans *spans, const otel_span_view *span, otel_slice resource,
                     uint64_t now_ns)
{
    if (is_seen(spans, span)) {
        spans->twice++;
        return true;
    }
    spans->received++;
    if (spans->form == VIEW_LINES)
        put_line(spans, span, oteli_service_of(resource));
    if (spans->form != VIEW_TRACES)
        return true;
    if (!oteli_trace_buffer_keep(&spans->waiting, span, resource, now_ns))
        return false;
    if (spans->waiting.count > SPANS_WAITING_MAX || spans->waiting.bytes > BYTES_WAITING_MAX)
        view_spans_draw_all(spans);
    return true;
}

bool view_spans_add(struct view_spans *spans, otel_slice request, uint64_t now_ns)
{
    otel_slice group, scope, otlp;
    otel_span_view span;
    bool all_added = true;
    while (next_message(&request, REQUEST_RESOURCE_SPANS, &group)) {
        otel_slice rest = group;
        otel_slice resource = {"", 0};
        (void)next_message(&rest, RESOURCE_SPANS_RESOURCE, &resource);
        while (next_message(&group, RESOURCE_SPANS_SCOPES, &scope))
            while (next_message(&scope, SCOPE_SPANS_SPANS, &otlp)) {
                read_span(otlp, &span);
                all_added &= add_span(spans, &span, resource, now_ns);
            }
    }
    return all_added;
}
