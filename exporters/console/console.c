/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/console/console.c - the exporter that draws traces on a stream.
 *
 * Spans wait in a gather until the local root of their trace has arrived: it ends last, so
 * everything below it is here then. At the end of the batch that brought it the trace is
 * drawn. What has no root here is drawn by a flush, or when too much is waiting.
 *
 * Runs on the exporter thread, or on the thread that ends a span where `simple` was chosen;
 * the constructor on the caller's. Owns its state; the stream is the caller's.
 *
 * In a forked child the stream may be locked by a thread that is not there, and it may hold
 * what the parent has yet to write. So there the text goes to the descriptor below it. */
#include <otel/console.h>

#include "common/config/configuration.h"
#include "common/log.h"
#include "common/os/signal_guard.h"
#include "common/text/text.h"
#include "exporters/console/gather.h"
#include <errno.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <unistd.h>

/* Beyond either, the trace that was silent longest is drawn as it is. */
enum { SPANS_HELD_MAX = 10000, BYTES_HELD_MAX = 16 << 20 };

struct console {
    FILE *stream;   /* NULL: in a forked child */
    int descriptor; /* of the stream; -1: it has none */
    bool is_terminal;
    bool colour;
    struct oteli_gather gather;
    struct oteli_text scratch; /* for attributes, reused */
};

/* The bit of a span's flags that says that its parent is another process's span. */
#define PARENT_IS_REMOTE 0x200u

/* ---- drawing -------------------------------------------------------------------------- */

static bool write_whole(int fd, const char *data, size_t length)
{
    while (length != 0) {
        struct oteli_signal_guard guard;
        oteli_signal_guard_begin(&guard);
        const ssize_t written = write(fd, data, length);
        oteli_signal_guard_end(&guard, written < 0 ? errno : 0);
        if (written < 0 && errno != EINTR)
            return false;
        data += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool put(const struct console *console, const struct oteli_text *text)
{
    if (console->stream == NULL)
        return write_whole(console->descriptor, text->data, text->length);
    struct oteli_signal_guard guard;
    oteli_signal_guard_begin(&guard);
    const bool is_written = fwrite(text->data, 1, text->length, console->stream) == text->length &&
                            fflush(console->stream) == 0;
    const int error = is_written ? 0 : errno;
    oteli_signal_guard_end(&guard, error);
    if (error == EPIPE) /* or exit would write it again, and raise the signal */
        __fpurge(console->stream);
    return is_written;
}

static bool draw(struct console *console, struct oteli_gather_trace *trace)
{
    struct oteli_text text = {0};
    const struct oteli_render_options options = {
        .width = oteli_render_width(console->is_terminal ? console->descriptor : -1),
        .colour = console->colour};
    const bool drawn =
        oteli_render_trace(&text, trace->spans, trace->span_count, &options) && put(console, &text);
    if (!drawn)
        OTELI_LOG_LOST(OTEL_LOG_ERROR, trace->span_count,
                       "console exporter: %zu span%s could not be written", trace->span_count,
                       trace->span_count == 1 ? "" : "s");
    oteli_text_fini(&text);
    oteli_gather_remove(&console->gather, trace);
    return drawn;
}

/* ---- from a batch to the model of a drawing ------------------------------------------- */

/* Nobody shows more, so that more need not pass through the scratch text. */
static otel_slice beginning(otel_slice text)
{
    text.length = text.length < 2 * OTELI_RENDER_TEXT_MAX ? text.length : 2 * OTELI_RENDER_TEXT_MAX;
    return text;
}

static void add_scalar(struct oteli_text *text, const otel_value_view *value)
{
    const otel_slice slice = beginning(value->slice);
    switch (value->type) {
    case OTEL_VALUE_STRING:
        oteli_text_add_quoted(text, slice);
        break;
    case OTEL_VALUE_BOOL:
        oteli_text_add_string(text, value->boolean ? "true" : "false");
        break;
    case OTEL_VALUE_INT:
        oteli_text_add_format(text, "%lld", (long long)value->integer);
        break;
    case OTEL_VALUE_DOUBLE:
        oteli_text_add_double(text, value->real);
        break;
    case OTEL_VALUE_BYTES:
        oteli_text_add_string(text, "0x");
        oteli_text_add_hex(text, slice.data, slice.length);
        break;
    case OTEL_VALUE_EMPTY:
        oteli_text_add_string(text, "null");
        break;
    default: /* arrays and maps are no scalars */
        break;
    }
}

static void add_key(struct oteli_text *text, otel_slice key)
{
    key = beginning(key);
    oteli_text_add(text, key.data, key.length);
    oteli_text_add_string(text, "=");
}

/* An array or a map on the way to where we are; nobody reads what is nested deeper. */
enum { NESTING_MAX = 8 };
struct level {
    otel_slice rest;
    bool is_map;
    bool is_first;
};

/* The next element of a level, with what stands in front of it; false: there is none. */
static bool next_element(struct oteli_text *text, struct level *level, otel_value_view *value)
{
    otel_attribute_view entry;
    if (text->length >= 4 * OTELI_RENDER_TEXT_MAX ||
        !(level->is_map ? otel_attribute_next(&level->rest, OTEL_FIELD_MAP_ENTRY, &entry)
                        : otel_array_next(&level->rest, value)))
        return false;
    oteli_text_add_string(text, level->is_first ? "" : ", ");
    level->is_first = false;
    if (!level->is_map)
        return true;
    add_key(text, entry.key);
    *value = entry.value;
    return true;
}

/* Append "key=value", arrays as [1, 2], maps as {a=1, b=2}. */
static void describe_attribute(struct oteli_text *text, const otel_attribute_view *attribute)
{
    struct level levels[NESTING_MAX];
    size_t depth = 0;
    otel_value_view value = attribute->value;
    add_key(text, attribute->key);
    for (;;) {
        const bool is_map = value.type == OTEL_VALUE_MAP;
        if (!is_map && value.type != OTEL_VALUE_STRING_ARRAY) {
            add_scalar(text, &value);
        } else if (depth == NESTING_MAX) {
            oteli_text_add_string(text, "…");
        } else {
            oteli_text_add_string(text, is_map ? "{" : "[");
            levels[depth++] = (struct level){value.slice, is_map, true};
        }
        while (depth > 0 && !next_element(text, &levels[depth - 1], &value))
            oteli_text_add_string(text, levels[--depth].is_map ? "}" : "]");
        if (depth == 0)
            return;
    }
}

static size_t count_attributes(otel_slice rest, uint32_t field)
{
    size_t count = 0;
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, field, &attribute))
        count++;
    return count;
}

static void copy_attributes(struct console *console, struct oteli_gather_trace *trace,
                            struct oteli_render_span *span, const otel_span_view *view)
{
    const size_t count = count_attributes(view->attributes, OTEL_FIELD_SPAN_ATTRIBUTE);
    const size_t kept = count < OTELI_RENDER_ATTRIBUTES_MAX ? count : OTELI_RENDER_ATTRIBUTES_MAX;
    otel_slice *attributes =
        kept != 0 ? oteli_gather_allocate(&console->gather, trace, kept * sizeof *attributes)
                  : NULL;
    otel_slice rest = view->attributes;
    otel_attribute_view attribute;
    while (attributes != NULL && span->attribute_count < kept &&
           otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute)) {
        console->scratch.length = 0;
        describe_attribute(&console->scratch, &attribute);
        attributes[span->attribute_count++] = oteli_gather_copy(
            &console->gather, trace, (otel_slice){console->scratch.data, console->scratch.length});
    }
    span->attributes = attributes;
    span->attributes_left_out = count - span->attribute_count + view->dropped_attributes_count;
}

/* Those of an event or a link. */
static otel_slice copy_list(struct console *console, struct oteli_gather_trace *trace,
                            otel_slice rest, uint32_t field)
{
    struct oteli_text *text = &console->scratch;
    otel_attribute_view attribute;
    text->length = 0;
    while (text->length < OTELI_RENDER_TEXT_MAX && otel_attribute_next(&rest, field, &attribute)) {
        oteli_text_add_string(text, text->length != 0 ? ", " : "");
        describe_attribute(text, &attribute);
    }
    return oteli_gather_copy(&console->gather, trace, (otel_slice){text->data, text->length});
}

static void copy_events(struct console *console, struct oteli_gather_trace *trace,
                        struct oteli_render_span *span, const otel_span_view *view)
{
    size_t count = 0;
    otel_event_view event;
    otel_slice rest = view->events;
    while (otel_event_next(&rest, &event))
        count++;
    const size_t kept = count < OTELI_RENDER_EVENTS_MAX ? count : OTELI_RENDER_EVENTS_MAX;
    struct oteli_render_event *events =
        kept != 0 ? oteli_gather_allocate(&console->gather, trace, kept * sizeof *events) : NULL;
    rest = view->events;
    while (events != NULL && span->event_count < kept && otel_event_next(&rest, &event)) {
        struct oteli_render_event *to = &events[span->event_count++];
        to->time_ns = event.time_ns;
        to->name = oteli_gather_copy(&console->gather, trace, event.name);
        to->attributes = copy_list(console, trace, event.attributes, OTEL_FIELD_EVENT_ATTRIBUTE);
    }
    span->events = events;
    span->events_left_out = count - span->event_count + view->dropped_events_count;
}

static void copy_links(struct console *console, struct oteli_gather_trace *trace,
                       struct oteli_render_span *span, const otel_span_view *view)
{
    size_t count = 0;
    otel_link_view link;
    otel_slice rest = view->links;
    while (otel_link_next(&rest, &link))
        count++;
    const size_t kept = count < OTELI_RENDER_LINKS_MAX ? count : OTELI_RENDER_LINKS_MAX;
    struct oteli_render_link *links =
        kept != 0 ? oteli_gather_allocate(&console->gather, trace, kept * sizeof *links) : NULL;
    rest = view->links;
    while (links != NULL && span->link_count < kept && otel_link_next(&rest, &link)) {
        struct oteli_render_link *to = &links[span->link_count++];
        memcpy(to->trace_id, link.trace_id, sizeof to->trace_id);
        memcpy(to->span_id, link.span_id, sizeof to->span_id);
        to->tracestate = oteli_gather_copy(&console->gather, trace, link.tracestate);
        to->attributes = copy_list(console, trace, link.attributes, OTEL_FIELD_LINK_ATTRIBUTE);
    }
    span->links = links;
    span->links_left_out = count - span->link_count + view->dropped_links_count;
}

/* The trace that the span now belongs to, or NULL without memory. */
static struct oteli_gather_trace *keep_span(struct console *console, const otel_span_view *view,
                                            otel_slice service)
{
    struct oteli_gather *gather = &console->gather;
    struct oteli_gather_trace *trace = oteli_gather_open(gather, view->trace_id);
    if (trace == NULL)
        return NULL;
    struct oteli_render_span *span = oteli_gather_add(gather, trace);
    if (span == NULL) {
        if (trace->span_count == 0)
            oteli_gather_remove(gather, trace);
        return NULL;
    }
    memcpy(span->span_id, view->span_id, sizeof span->span_id);
    span->has_parent = view->parent_span_id != NULL;
    if (span->has_parent)
        memcpy(span->parent_id, view->parent_span_id, sizeof span->parent_id);
    span->kind = view->kind;
    span->status = view->status;
    span->start_ns = view->start_ns;
    span->end_ns = view->end_ns;
    span->service = oteli_gather_copy(gather, trace, service);
    span->name = oteli_gather_copy(gather, trace, view->name);
    span->status_message = oteli_gather_copy(gather, trace, view->status_message);
    copy_attributes(console, trace, span, view);
    copy_events(console, trace, span, view);
    copy_links(console, trace, span, view);
    span->tracestate = oteli_gather_copy(gather, trace, view->tracestate);
    return trace;
}

static otel_slice service_of(const otel_batch *batch)
{
    otel_slice rest = otel_batch_resource(batch);
    otel_attribute_view attribute;
    while (otel_attribute_next(&rest, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute))
        if (attribute.value.type == OTEL_VALUE_STRING &&
            attribute.key.length == strlen("service.name") &&
            memcmp(attribute.key.data, "service.name", attribute.key.length) == 0)
            return attribute.value.slice;
    return (otel_slice){0};
}

/* ---- what the SDK calls --------------------------------------------------------------- */

static otel_export_result export_batch(void *state, otel_export *call)
{
    struct console *console = state;
    const otel_slice service = service_of(call->batch);
    const size_t count = otel_batch_size(call->batch);
    size_t kept = 0;
    size_t lost = 0;
    for (size_t i = 0; i < count; i++) {
        otel_span_view view;
        otel_batch_span(call->batch, i, &view);
        struct oteli_gather_trace *trace = keep_span(console, &view, service);
        kept += trace != NULL;
        if (trace == NULL)
            otel_export_drop(call, OTEL_DROP_NO_MEMORY, 1);
        else if (view.parent_span_id == NULL || (view.flags & PARENT_IS_REMOTE) != 0)
            trace->is_ready = true;
    }
    console->scratch.failed = false;
    /* Only now: within a batch a child may come behind its root. */
    struct oteli_gather_trace *newer;
    for (struct oteli_gather_trace *trace = console->gather.oldest; trace != NULL; trace = newer) {
        newer = trace->newer;
        const size_t spans = trace->span_count;
        if (trace->is_ready || console->gather.span_count > SPANS_HELD_MAX ||
            console->gather.bytes > BYTES_HELD_MAX)
            lost += draw(console, trace) ? 0 : spans;
    }
    /* Those of earlier batches have been counted as delivered. */
    if (lost != 0)
        otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, lost < kept ? lost : kept);
    return OTEL_EXPORT_DONE;
}

static otel_status flush(void *state, int64_t timeout_ms)
{
    struct console *console = state;
    (void)timeout_ms;
    bool drawn = true;
    while (console->gather.oldest != NULL)
        drawn &= draw(console, console->gather.oldest);
    return drawn ? OTEL_OK : OTEL_ERROR_EXPORT_FAILED;
}

static void console_free(void *state)
{
    struct console *console = state;
    oteli_gather_fini(&console->gather);
    oteli_text_fini(&console->scratch);
    free(console);
}

static otel_status renew(const void *state, otel_exporter *renewed);

static otel_status hand_out(const struct console *settings, otel_exporter *exporter)
{
    struct console *console = malloc(sizeof *console);
    if (console == NULL)
        return OTEL_ERROR_NO_MEMORY;
    *console = *settings;
    oteli_gather_init(&console->gather);
    *exporter =
        OTEL_EXPORTER(.name = "console_exporter", .state = console, .export_batch = export_batch,
                      .flush = flush, .free = console_free, .renew = renew,
                      .destination = console->descriptor == STDERR_FILENO   ? "stderr"
                                     : console->descriptor == STDOUT_FILENO ? "stdout"
                                                                            : NULL);
    return OTEL_OK;
}

/* A stream without a descriptor is the program's own code, or its memory, and the child's
 * copy of that may be in any state. */
static otel_status renew(const void *state, otel_exporter *renewed)
{
    const struct console *parents = state;
    if (parents->descriptor < 0)
        return OTEL_ERROR_UNSUPPORTED;
    const struct console settings = {.descriptor = parents->descriptor,
                                     .is_terminal = parents->is_terminal,
                                     .colour = parents->colour};
    return hand_out(&settings, renewed);
}

otel_status otel_console_exporter_new(FILE *stream, otel_exporter *exporter)
{
    if (exporter == NULL)
        return OTEL_ERROR_INVALID_ARGUMENT;
    struct console settings = {.stream = stream != NULL ? stream : stdout};
    settings.descriptor = fileno(settings.stream);
    settings.is_terminal = settings.descriptor >= 0 && isatty(settings.descriptor) != 0;
    settings.colour = settings.is_terminal && oteli_env_get("NO_COLOR") == NULL;
    return hand_out(&settings, exporter);
}
