/* SPDX-License-Identifier: Apache-2.0 */
/* tools/view/view_spans.c - from received requests to drawn traces.
 *
 * Runs on otel-view's only thread; owns the spans that wait to be drawn. */
#include "tools/view/view_spans.h"

#include "common/config/configuration.h"
#include "common/text/text.h"
#include "exporters/console/tree.h"
#include "tools/view/view_values.h"
#include <unistd.h>

typedef Opentelemetry__Proto__Trace__V1__ResourceSpans resource_spans;
typedef Opentelemetry__Proto__Trace__V1__Span otlp_span;

enum { SPANS_HELD_MAX = 100000, BYTES_HELD_MAX = 256 << 20 };

/* Whole traces wait for spans that come late; incomplete ones for what is missing. */
#define QUIET_NS UINT64_C(300000000)
#define PATIENCE_NS UINT64_C(5000000000)

bool view_spans_init(struct view_spans *spans, FILE *out)
{
    *spans = (struct view_spans){.out = out, .terminal = fileno(out)};
    if (isatty(spans->terminal) == 0)
        spans->terminal = -1;
    spans->colour = spans->terminal >= 0 && oteli_env_get("NO_COLOR") == NULL;
    oteli_gather_init(&spans->gather);
    return view_seen_init(&spans->seen);
}

void view_spans_fini(struct view_spans *spans)
{
    oteli_gather_fini(&spans->gather);
    view_seen_fini(&spans->seen);
    oteli_text_fini(&spans->scratch);
}

/* ---- from protobuf-c to the model of a drawing ---------------------------------------- */

static otel_slice copy_scratch(struct view_spans *spans, struct oteli_gather_trace *trace)
{
    return oteli_gather_copy(&spans->gather, trace,
                             (otel_slice){spans->scratch.data, spans->scratch.length});
}

static void copy_attributes(struct view_spans *spans, struct oteli_gather_trace *trace,
                            struct oteli_render_span *to, const otlp_span *from)
{
    const size_t kept = from->n_attributes < OTELI_RENDER_ATTRIBUTES_MAX
                            ? from->n_attributes
                            : OTELI_RENDER_ATTRIBUTES_MAX;
    otel_slice *attributes =
        kept != 0 ? oteli_gather_allocate(&spans->gather, trace, kept * sizeof *attributes) : NULL;
    for (size_t i = 0; attributes != NULL && i < kept; i++) {
        spans->scratch.length = 0;
        view_describe_attribute(&spans->scratch, from->attributes[i]);
        attributes[to->attribute_count++] = copy_scratch(spans, trace);
    }
    to->attributes = attributes;
    to->attributes_left_out =
        from->n_attributes - to->attribute_count + from->dropped_attributes_count;
}

/* Those of an event or a link. */
static otel_slice copy_list(struct view_spans *spans, struct oteli_gather_trace *trace,
                            Opentelemetry__Proto__Common__V1__KeyValue *const *attributes,
                            size_t count)
{
    struct oteli_text *text = &spans->scratch;
    text->length = 0;
    for (size_t i = 0; i < count && text->length < OTELI_RENDER_TEXT_MAX; i++) {
        oteli_text_add_string(text, i != 0 ? ", " : "");
        view_describe_attribute(text, attributes[i]);
    }
    return copy_scratch(spans, trace);
}

static void copy_events(struct view_spans *spans, struct oteli_gather_trace *trace,
                        struct oteli_render_span *to, const otlp_span *from)
{
    const size_t kept =
        from->n_events < OTELI_RENDER_EVENTS_MAX ? from->n_events : OTELI_RENDER_EVENTS_MAX;
    struct oteli_render_event *events =
        kept != 0 ? oteli_gather_allocate(&spans->gather, trace, kept * sizeof *events) : NULL;
    for (size_t i = 0; events != NULL && i < kept; i++) {
        const Opentelemetry__Proto__Trace__V1__Span__Event *event = from->events[i];
        events[i].attributes = copy_list(spans, trace, event->attributes, event->n_attributes);
        events[i].name = oteli_gather_copy(&spans->gather, trace, oteli_slice_of(event->name));
        events[i].time_ns = event->time_unix_nano;
        to->event_count++;
    }
    to->events = events;
    to->events_left_out = from->n_events - to->event_count + from->dropped_events_count;
}

/* One whose ids are none says nothing. */
static void copy_links(struct view_spans *spans, struct oteli_gather_trace *trace,
                       struct oteli_render_span *to, const otlp_span *from)
{
    const size_t kept =
        from->n_links < OTELI_RENDER_LINKS_MAX ? from->n_links : OTELI_RENDER_LINKS_MAX;
    struct oteli_render_link *links =
        kept != 0 ? oteli_gather_allocate(&spans->gather, trace, kept * sizeof *links) : NULL;
    for (size_t i = 0; links != NULL && i < kept; i++) {
        const Opentelemetry__Proto__Trace__V1__Span__Link *link = from->links[i];
        struct oteli_render_link *made = &links[to->link_count];
        if (link->trace_id.len != sizeof made->trace_id ||
            link->span_id.len != sizeof made->span_id)
            continue;
        memcpy(made->trace_id, link->trace_id.data, sizeof made->trace_id);
        memcpy(made->span_id, link->span_id.data, sizeof made->span_id);
        made->tracestate =
            oteli_gather_copy(&spans->gather, trace, oteli_slice_of(link->trace_state));
        made->attributes = copy_list(spans, trace, link->attributes, link->n_attributes);
        to->link_count++;
    }
    to->links = links;
    to->links_left_out = from->n_links - to->link_count + from->dropped_links_count;
}

/* On the wire INTERNAL is 1 and there is an unspecified 0 below it. */
static otel_span_kind kind_of(const otlp_span *span)
{
    const int kind = (int)span->kind;
    return kind >= 1 && kind <= 5 ? (otel_span_kind)(kind - 1) : OTEL_SPAN_KIND_INTERNAL;
}

static bool keep_span(struct view_spans *spans, const otlp_span *from, otel_slice service,
                      uint64_t now_ns)
{
    static const uint8_t no_parent[8];
    struct oteli_gather *gather = &spans->gather;
    struct oteli_gather_trace *trace = oteli_gather_open(gather, from->trace_id.data);
    if (trace == NULL)
        return false;
    struct oteli_render_span *to = oteli_gather_add(gather, trace);
    if (to == NULL) {
        if (trace->span_count == 0)
            oteli_gather_remove(gather, trace);
        return false;
    }
    trace->touched_ns = now_ns;
    trace->is_checked = false;
    memcpy(to->span_id, from->span_id.data, sizeof to->span_id);
    to->has_parent = from->parent_span_id.len == sizeof to->parent_id &&
                     memcmp(from->parent_span_id.data, no_parent, sizeof no_parent) != 0;
    if (to->has_parent)
        memcpy(to->parent_id, from->parent_span_id.data, sizeof to->parent_id);
    to->kind = kind_of(from);
    to->start_ns = from->start_time_unix_nano;
    to->end_ns = from->end_time_unix_nano;
    to->service = oteli_gather_copy(gather, trace, service);
    to->name = oteli_gather_copy(gather, trace, oteli_slice_of(from->name));
    if (from->status != NULL) {
        const int code = (int)from->status->code;
        to->status = code >= 0 && code <= 2 ? (otel_span_status)code : OTEL_SPAN_STATUS_UNSET;
        to->status_message =
            oteli_gather_copy(gather, trace, oteli_slice_of(from->status->message));
    }
    to->tracestate = oteli_gather_copy(gather, trace, oteli_slice_of(from->trace_state));
    copy_attributes(spans, trace, to, from);
    copy_events(spans, trace, to, from);
    copy_links(spans, trace, to, from);
    return true;
}

static otel_slice service_of(const resource_spans *group)
{
    for (size_t i = 0; group->resource != NULL && i < group->resource->n_attributes; i++) {
        const Opentelemetry__Proto__Common__V1__KeyValue *attribute =
            group->resource->attributes[i];
        if (strcmp(attribute->key, "service.name") == 0 && attribute->value != NULL &&
            attribute->value->value_case ==
                OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE)
            return oteli_slice_of(attribute->value->string_value);
    }
    return (otel_slice){0};
}

/* ---- drawing -------------------------------------------------------------------------- */

static void draw(struct view_spans *spans, struct oteli_gather_trace *trace)
{
    struct oteli_text text = {0};
    const struct oteli_render_options options = {.width = oteli_render_width(spans->terminal),
                                                 .colour = spans->colour};
    if (!oteli_render_trace(&text, trace->spans, trace->span_count, &options))
        fprintf(stderr, "otel-view: no memory to draw %zu spans\n", trace->span_count);
    else if (fwrite(text.data, 1, text.length, spans->out) != text.length ||
             fflush(spans->out) != 0)
        spans->failed = true;
    oteli_text_fini(&text);
    oteli_gather_remove(&spans->gather, trace);
}

static bool is_complete(struct oteli_gather_trace *trace)
{
    struct oteli_tree tree;
    if (!oteli_tree_init(&tree, trace->spans, trace->span_count))
        return true;
    bool has_root = false, all_here = true;
    for (uint32_t i = 0; i < tree.count; i++) {
        has_root |= tree.nodes[i].place == OTELI_TREE_ROOT;
        all_here &= tree.nodes[i].place != OTELI_TREE_ORPHAN;
    }
    oteli_tree_fini(&tree);
    return has_root && all_here;
}

void view_spans_draw_ready(struct view_spans *spans, uint64_t now_ns)
{
    struct oteli_gather_trace *newer;
    for (struct oteli_gather_trace *trace = spans->gather.oldest; trace != NULL; trace = newer) {
        newer = trace->newer;
        const uint64_t quiet_ns = now_ns - trace->touched_ns;
        if (quiet_ns < QUIET_NS)
            return;
        if (!trace->is_checked)
            trace->is_ready = is_complete(trace);
        trace->is_checked = true;
        if (trace->is_ready || quiet_ns >= PATIENCE_NS)
            draw(spans, trace);
    }
}

void view_spans_draw_all(struct view_spans *spans)
{
    while (spans->gather.oldest != NULL)
        draw(spans, spans->gather.oldest);
}

/* ---- requests ------------------------------------------------------------------------- */

static bool add_span(struct view_spans *spans, const otlp_span *span, otel_slice service, bool keep,
                     uint64_t now_ns)
{
    if (view_seen_again(&spans->seen, span->trace_id.data, span->span_id.data)) {
        spans->twice++;
        return true;
    }
    spans->received++;
    if (!keep)
        return true;
    if (!keep_span(spans, span, service, now_ns))
        return false;
    while (spans->gather.oldest != NULL &&
           (spans->gather.span_count > SPANS_HELD_MAX || spans->gather.bytes > BYTES_HELD_MAX))
        draw(spans, spans->gather.oldest);
    return true;
}

/* An id that is absent has no length that view_check could have seen. */
static bool has_ids(const resource_spans *group)
{
    for (size_t i = 0; i < group->n_scope_spans; i++)
        for (size_t j = 0; j < group->scope_spans[i]->n_spans; j++) {
            const otlp_span *span = group->scope_spans[i]->spans[j];
            if (span->trace_id.len != 16 || span->span_id.len != 8)
                return false;
        }
    return true;
}

bool view_spans_add(struct view_spans *spans, const view_request *request, bool keep,
                    uint64_t now_ns, const char **why)
{
    *why = "Span: has no trace_id or no span_id";
    for (size_t i = 0; i < request->n_resource_spans; i++)
        if (!has_ids(request->resource_spans[i]))
            return false;
    *why = "no memory";
    bool all_added = true;
    for (size_t i = 0; i < request->n_resource_spans; i++) {
        const resource_spans *group = request->resource_spans[i];
        const otel_slice service = service_of(group);
        for (size_t j = 0; j < group->n_scope_spans; j++)
            for (size_t k = 0; k < group->scope_spans[j]->n_spans; k++)
                all_added &=
                    add_span(spans, group->scope_spans[j]->spans[k], service, keep, now_ns);
    }
    spans->scratch.failed = false;
    return all_added;
}
