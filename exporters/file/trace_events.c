/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/file/trace_events.c - the contracts are in trace_events.h. One thread at a time; owns
 * nothing but the text. */
#include "exporters/file/trace_events.h"

#include "exporters/json/json_value.h"
#include "exporters/trace/trace_buffer.h"

/* ---- pieces --------------------------------------------------------------------------- */

static void add_text(struct oteli_text *json, const char *text)
{
    oteli_json_add_string(json, (otel_slice){text, strlen(text)});
}

/* Nanoseconds as microseconds. */
static void add_us(struct oteli_text *json, uint64_t ns)
{
    const char decimals[] = {'.', (char)('0' + ns % 1000 / 100), (char)('0' + ns % 100 / 10),
                             (char)('0' + ns % 10)};
    oteli_json_add_unsigned(json, ns / 1000);
    oteli_text_add(json, decimals, sizeof decimals);
}

static void add_time(struct oteli_trace_events *events, uint64_t time_ns)
{
    struct oteli_text *json = &events->text;
    OTELI_JSON_ADD(json, ",\"ts\":");
    if (time_ns < events->zero_ns)
        OTELI_JSON_ADD(json, "-");
    add_us(json, time_ns < events->zero_ns ? events->zero_ns - time_ns : time_ns - events->zero_ns);
}

/* What every event has: its phase, process and track. */
static void open_event(struct oteli_trace_events *events, char phase, uint32_t track)
{
    struct oteli_text *json = &events->text;
    oteli_text_add(json, events->has_events ? ",\n" : "\n", events->has_events ? 2 : 1);
    events->has_events = true;
    OTELI_JSON_ADD(json, "{\"ph\":\"");
    oteli_text_add(json, &phase, 1);
    OTELI_JSON_ADD(json, "\",\"pid\":");
    oteli_json_add_signed(json, events->pid);
    OTELI_JSON_ADD(json, ",\"tid\":");
    oteli_json_add_unsigned(json, track);
}

static void add_name(struct oteli_text *json, otel_slice name)
{
    OTELI_JSON_ADD(json, ",\"name\":");
    oteli_json_add_string(json, name);
}

static void add_category(struct oteli_text *json, const otel_scope_view *scope)
{
    OTELI_JSON_ADD(json, ",\"cat\":");
    if (scope != NULL && scope->name.length != 0)
        oteli_json_add_string(json, scope->name);
    else
        OTELI_JSON_ADD(json, "\"span\"");
}

static void add_attributes(struct oteli_text *json, otel_slice attributes, uint32_t field)
{
    OTELI_JSON_ADD(json, "{");
    oteli_json_add_attributes(json, attributes, field, OTELI_JSON_PLAIN);
    OTELI_JSON_ADD(json, "}");
}

/* ---- metadata ------------------------------------------------------------------------- */

static void open_metadata(struct oteli_trace_events *events, const char *name, uint32_t track)
{
    open_event(events, 'M', track);
    OTELI_JSON_ADD(&events->text, ",\"name\":");
    add_text(&events->text, name);
    OTELI_JSON_ADD(&events->text, ",\"args\":");
}

void oteli_trace_process(struct oteli_trace_events *events, otel_slice service, otel_slice resource)
{
    struct oteli_text *json = &events->text;
    open_metadata(events, "process_name", 0);
    OTELI_JSON_ADD(json, "{\"name\":");
    oteli_json_add_string(json, service);
    OTELI_JSON_ADD(json, "}}");
    open_metadata(events, "resource", 0);
    add_attributes(json, resource, OTEL_FIELD_RESOURCE_ATTRIBUTE);
    OTELI_JSON_ADD(json, "}");
}

void oteli_trace_track(struct oteli_trace_events *events, uint32_t track)
{
    struct oteli_text *json = &events->text;
    open_metadata(events, "thread_name", track);
    OTELI_JSON_ADD(json, "{\"name\":\"lane ");
    oteli_json_add_unsigned(json, track);
    OTELI_JSON_ADD(json, "\"}}");
    open_metadata(events, "thread_sort_index", track);
    OTELI_JSON_ADD(json, "{\"sort_index\":");
    oteli_json_add_unsigned(json, track);
    OTELI_JSON_ADD(json, "}}");
}

/* ---- spans ---------------------------------------------------------------------------- */

static void add_status(struct oteli_text *json, const otel_span_view *span)
{
    if (span->status != OTEL_SPAN_STATUS_UNSET) {
        OTELI_JSON_ADD(json, ",\"status\":");
        add_text(json, span->status == OTEL_SPAN_STATUS_ERROR ? "error" : "ok");
    }
    if (span->status_message.length != 0) {
        OTELI_JSON_ADD(json, ",\"status_message\":");
        oteli_json_add_string(json, span->status_message);
    }
}

static void add_links(struct oteli_text *json, otel_slice links)
{
    otel_link_view link;
    bool is_first = true;
    while (otel_link_next(&links, &link)) {
        if (is_first)
            OTELI_JSON_ADD(json, ",\"links\":");
        oteli_text_add(json, is_first ? "[{" : ",{", 2);
        is_first = false;
        if (link.trace_id != NULL) {
            OTELI_JSON_ADD(json, "\"trace_id\":");
            oteli_json_add_hex(json, link.trace_id, 16);
            OTELI_JSON_ADD(json, ",");
        }
        if (link.span_id != NULL) {
            OTELI_JSON_ADD(json, "\"span_id\":");
            oteli_json_add_hex(json, link.span_id, 8);
            OTELI_JSON_ADD(json, ",");
        }
        OTELI_JSON_ADD(json, "\"attributes\":");
        add_attributes(json, link.attributes, OTEL_FIELD_LINK_ATTRIBUTE);
        OTELI_JSON_ADD(json, "}");
    }
    if (!is_first)
        OTELI_JSON_ADD(json, "]");
}

static void add_span_args(struct oteli_text *json, const otel_span_view *span)
{
    OTELI_JSON_ADD(json, ",\"args\":{\"trace_id\":");
    oteli_json_add_hex(json, span->trace_id, 16);
    OTELI_JSON_ADD(json, ",\"span_id\":");
    oteli_json_add_hex(json, span->span_id, 8);
    if (span->parent_span_id != NULL) {
        OTELI_JSON_ADD(json, ",\"parent_span_id\":");
        oteli_json_add_hex(json, span->parent_span_id, 8);
    }
    OTELI_JSON_ADD(json, ",\"kind\":");
    add_text(json, oteli_span_kind_name(span->kind));
    add_status(json, span);
    OTELI_JSON_ADD(json, ",\"attributes\":");
    add_attributes(json, span->attributes, OTEL_FIELD_SPAN_ATTRIBUTE);
    add_links(json, span->links);
    OTELI_JSON_ADD(json, "}");
}

void oteli_trace_span(struct oteli_trace_events *events, const otel_span_view *span, uint32_t track)
{
    struct oteli_text *json = &events->text;
    open_event(events, 'X', track);
    add_time(events, span->start_ns);
    OTELI_JSON_ADD(json, ",\"dur\":");
    add_us(json, span->end_ns > span->start_ns ? span->end_ns - span->start_ns : 0);
    add_category(json, span->scope);
    add_name(json, span->name);
    if (span->status == OTEL_SPAN_STATUS_ERROR)
        OTELI_JSON_ADD(json, ",\"cname\":\"terrible\"");
    add_span_args(json, span);
    OTELI_JSON_ADD(json, "}");
}

void oteli_trace_instants(struct oteli_trace_events *events, const otel_span_view *span,
                          uint32_t track)
{
    struct oteli_text *json = &events->text;
    otel_slice rest = span->events;
    otel_event_view event;
    while (otel_event_next(&rest, &event)) {
        open_event(events, 'i', track);
        OTELI_JSON_ADD(json, ",\"s\":\"t\"");
        add_time(events, event.time_ns);
        add_category(json, span->scope);
        add_name(json, event.name);
        OTELI_JSON_ADD(json, ",\"args\":{\"span_id\":");
        oteli_json_add_hex(json, span->span_id, 8);
        OTELI_JSON_ADD(json, ",\"attributes\":");
        add_attributes(json, event.attributes, OTEL_FIELD_EVENT_ATTRIBUTE);
        OTELI_JSON_ADD(json, "}}");
    }
}

void oteli_trace_arrow(struct oteli_trace_events *events, const char *name, uint64_t number,
                       bool is_head, uint32_t track, uint64_t time_ns)
{
    struct oteli_text *json = &events->text;
    open_event(events, is_head ? 'f' : 's', track);
    if (is_head)
        OTELI_JSON_ADD(json, ",\"bp\":\"e\"");
    add_time(events, time_ns);
    OTELI_JSON_ADD(json, ",\"cat\":");
    add_text(json, name);
    OTELI_JSON_ADD(json, ",\"name\":");
    add_text(json, name);
    OTELI_JSON_ADD(json, ",\"id\":");
    oteli_json_add_unsigned(json, number);
    OTELI_JSON_ADD(json, "}");
}
