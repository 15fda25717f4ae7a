/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/trace/trace_buffer.c - the contracts are in trace_buffer.h. One thread at a time; owns
 * the copies of the spans. */
#include "exporters/trace/trace_buffer.h"

#include "common/text/text.h"

/* The bit of a span's flags that says that its parent is another process's span. */
#define PARENT_IS_REMOTE 0x200u

enum { ROOM_AT_FIRST = 64, SPANS_MAX = 10000, BYTES_MAX = 16 << 20 };

static bool is_local_root(const otel_span_view *view)
{
    return view->parent_span_id == NULL || (view->flags & PARENT_IS_REMOTE) != 0;
}

static size_t bytes_of(const struct oteli_waiting_span *span)
{
    return sizeof *span + sizeof *span->kept + span->kept->view.otlp.length;
}

static size_t bytes_of_resource(const struct oteli_kept_resource *resource)
{
    return sizeof *resource + resource->length +
           (resource->service != NULL ? strlen(resource->service) : 0);
}

static void let_go(struct oteli_trace_buffer *buffer, struct oteli_kept_resource *resource)
{
    if (--resource->users != 0)
        return;
    buffer->bytes -= bytes_of_resource(resource);
    free(resource);
}

static void forget(struct oteli_trace_buffer *buffer, struct oteli_waiting_span *span)
{
    buffer->bytes -= bytes_of(span);
    free(span->kept);
    let_go(buffer, span->resource);
    *span = (struct oteli_waiting_span){.kept = NULL};
}

void oteli_trace_buffer_fini(struct oteli_trace_buffer *buffer)
{
    for (size_t i = 0; i < buffer->count; i++)
        forget(buffer, &buffer->spans[i]);
    free(buffer->spans);
    *buffer = (struct oteli_trace_buffer){.spans = NULL};
}

/* The last span's, or a copy. NULL: no memory. */
static struct oteli_kept_resource *keep_resource(struct oteli_trace_buffer *buffer, otel_slice otlp)
{
    struct oteli_kept_resource *last =
        buffer->count != 0 ? buffer->spans[buffer->count - 1].resource : NULL;
    if (last != NULL && oteli_is_same((otel_slice){last->otlp, last->length}, otlp)) {
        last->users++;
        return last;
    }
    const otel_slice service = oteli_service_of(otlp);
    struct oteli_kept_resource *made = malloc(sizeof *made + otlp.length + service.length + 1);
    if (made == NULL)
        return NULL;
    *made = (struct oteli_kept_resource){.users = 1, .length = otlp.length};
    if (otlp.length != 0)
        memcpy(made->otlp, otlp.data, otlp.length);
    if (service.length != 0) {
        made->service = memcpy(made->otlp + otlp.length, service.data, service.length);
        made->service[service.length] = '\0';
    }
    buffer->bytes += bytes_of_resource(made);
    return made;
}

bool oteli_trace_buffer_keep(struct oteli_trace_buffer *buffer, const otel_span_view *view,
                             otel_slice resource, uint64_t came_ns)
{
    if (buffer->count == buffer->room) {
        const size_t room = buffer->room == 0 ? ROOM_AT_FIRST : buffer->room * 2;
        struct oteli_waiting_span *spans = realloc(buffer->spans, room * sizeof *spans);
        if (spans == NULL)
            return false;
        buffer->spans = spans;
        buffer->room = room;
    }
    struct oteli_waiting_span made = {.came_ns = came_ns};
    made.kept = oteli_keep_span(view);
    made.resource = made.kept != NULL ? keep_resource(buffer, resource) : NULL;
    if (made.resource == NULL) {
        free(made.kept);
        return false;
    }
    made.service = made.resource->service;
    buffer->spans[buffer->count++] = made;
    buffer->bytes += bytes_of(&made);
    return true;
}

static int by_trace(const void *left, const void *right)
{
    const struct oteli_waiting_span *a = left, *b = right;
    return memcmp(a->kept->view.trace_id, b->kept->view.trace_id, 16);
}

static int by_start(const void *left, const void *right)
{
    const struct oteli_waiting_trace *a = left, *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int by_end(const void *left, const void *right)
{
    const struct oteli_waiting_trace *a = left, *b = right;
    return (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

/* Find the traces of the spans, which are sorted by trace. */
static size_t find_traces(const struct oteli_trace_buffer *buffer,
                          struct oteli_waiting_trace *traces)
{
    size_t count = 0;
    for (size_t i = 0; i < buffer->count; i++) {
        const struct oteli_waiting_span *span = &buffer->spans[i];
        const otel_span_view *view = &span->kept->view;
        if (i == 0 || by_trace(span - 1, span) != 0)
            traces[count++] =
                (struct oteli_waiting_trace){.spans = span, .start_ns = view->start_ns};
        struct oteli_waiting_trace *trace = &traces[count - 1];
        trace->count++;
        trace->has_root |= is_local_root(view);
        trace->start_ns = view->start_ns < trace->start_ns ? view->start_ns : trace->start_ns;
        trace->end_ns = view->end_ns > trace->end_ns ? view->end_ns : trace->end_ns;
        trace->came_ns = span->came_ns > trace->came_ns ? span->came_ns : trace->came_ns;
    }
    return count;
}

static void close_holes(struct oteli_trace_buffer *buffer)
{
    size_t kept = 0;
    for (size_t i = 0; i < buffer->count; i++)
        if (buffer->spans[i].kept != NULL)
            buffer->spans[kept++] = buffer->spans[i];
    buffer->count = kept;
}

static void visit(struct oteli_trace_buffer *buffer, int (*order)(const void *, const void *),
                  bool (*take)(void *state, const struct oteli_waiting_trace *trace), void *state)
{
    struct oteli_waiting_trace *traces =
        buffer->count != 0 ? malloc(buffer->count * sizeof *traces) : NULL;
    if (traces == NULL)
        return;
    qsort(buffer->spans, buffer->count, sizeof *buffer->spans, by_trace);
    const size_t count = find_traces(buffer, traces);
    qsort(traces, count, sizeof *traces, order);
    for (size_t i = 0; i < count; i++) {
        if (!take(state, &traces[i]))
            continue;
        const size_t first = (size_t)(traces[i].spans - buffer->spans);
        for (size_t k = first; k < first + traces[i].count; k++)
            forget(buffer, &buffer->spans[k]);
    }
    free(traces);
    close_holes(buffer);
}

void oteli_trace_buffer_visit(struct oteli_trace_buffer *buffer,
                              bool (*take)(void *state, const struct oteli_waiting_trace *trace),
                              void *state)
{
    visit(buffer, by_start, take, state);
}

struct write_pass {
    bool (*write)(void *state, const struct oteli_waiting_trace *trace);
    void *state;
    bool all;
    size_t lost;
};

static bool write_if_due(void *state, const struct oteli_waiting_trace *trace)
{
    struct write_pass *pass = state;
    if (!trace->has_root && !pass->all)
        return false;
    if (!pass->write(pass->state, trace))
        pass->lost += trace->count;
    return true;
}

size_t oteli_trace_buffer_write(struct oteli_trace_buffer *buffer, bool all,
                                bool (*write)(void *state, const struct oteli_waiting_trace *trace),
                                void *state)
{
    struct write_pass pass = {.write = write, .state = state, .all = all};
    visit(buffer, by_end, write_if_due, &pass);
    return pass.lost;
}

otel_export_result oteli_trace_buffer_export(struct oteli_trace_buffer *buffer, otel_export *call,
                                             size_t (*write)(void *state, bool all), void *state)
{
    const otel_slice resource = otel_batch_resource(call->batch);
    const size_t count = otel_batch_size(call->batch);
    size_t kept = 0;
    bool has_root = false;
    for (size_t i = 0; i < count; i++) {
        otel_span_view view;
        otel_batch_span(call->batch, i, &view);
        kept += oteli_trace_buffer_keep(buffer, &view, resource, 0);
        has_root |= is_local_root(&view);
    }
    if (kept < count)
        otel_export_drop(call, OTEL_DROP_NO_MEMORY, count - kept);
    const bool all = buffer->count > SPANS_MAX || buffer->bytes > BYTES_MAX;
    /* Only now: within a batch a child may come behind its root. */
    const size_t lost = has_root || all ? write(state, all) : 0;
    /* Those of earlier batches have been counted as delivered. */
    if (lost != 0)
        otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, lost < kept ? lost : kept);
    return OTEL_EXPORT_DONE;
}

const char *oteli_span_kind_name(otel_span_kind kind)
{
    static const char *const names[] = {
        [OTEL_SPAN_KIND_INTERNAL] = "internal", [OTEL_SPAN_KIND_SERVER] = "server",
        [OTEL_SPAN_KIND_CLIENT] = "client",     [OTEL_SPAN_KIND_PRODUCER] = "producer",
        [OTEL_SPAN_KIND_CONSUMER] = "consumer",
    };
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unspecified";
}

otel_slice oteli_service_of(otel_slice resource)
{
    otel_attribute_view attribute;
    while (otel_attribute_next(&resource, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute))
        if (attribute.value.type == OTEL_VALUE_STRING &&
            oteli_is_text(attribute.key, "service.name"))
            return attribute.value.slice;
    return (otel_slice){0};
}
