/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/journal.c - call otel-c and note it. One thread at a time a span. */
#include "tests/support/journal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void put_bytes(FILE *text, const char *bytes, size_t length)
{
    fprintf(text, "\"");
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)bytes[i];
        if (byte < 0x20 || byte > 0x7E || byte == '"' || byte == '\\')
            fprintf(text, "\\u%04x", byte);
        else
            putc(byte, text);
    }
    fprintf(text, "\"");
}

static void put_string(FILE *text, const char *string)
{
    if (string == NULL)
        fprintf(text, "null");
    else
        put_bytes(text, string, strlen(string));
}

static void put_hex(FILE *text, const uint8_t *bytes, size_t length)
{
    fprintf(text, "\"");
    for (size_t i = 0; i < length; i++)
        fprintf(text, "%02x", bytes[i]);
    fprintf(text, "\"");
}

static uint64_t bits_of(double real)
{
    uint64_t bits;
    memcpy(&bits, &real, sizeof bits);
    return bits;
}

static void put_element(FILE *text, const otel_value *array, size_t index)
{
    if (array->type == OTEL_VALUE_STRING_ARRAY)
        put_string(text, array->as.strings[index]);
    else if (array->type == OTEL_VALUE_BOOL_ARRAY)
        fprintf(text, "%s", array->as.booleans[index] ? "true" : "false");
    else if (array->type == OTEL_VALUE_INT_ARRAY)
        fprintf(text, "%" PRId64, array->as.integers[index]);
    else
        fprintf(text, "%" PRIu64, bits_of(array->as.reals[index]));
}

static void put_attributes(FILE *text, const otel_attribute *attributes, size_t count);

/* A letter for the type, and the value; reals are the integer that has their bits. */
static void put_value(FILE *text, const otel_value *value)
{
    static const char letters[] = "esbidySBIDAM";
    fprintf(text, "\"%c\",", letters[value->type]);
    switch (value->type) {
    case OTEL_VALUE_EMPTY:
        fprintf(text, "null");
        break;
    case OTEL_VALUE_STRING:
    case OTEL_VALUE_BYTES:
        put_bytes(text, value->as.string, value->length);
        break;
    case OTEL_VALUE_BOOL:
        fprintf(text, "%s", value->as.boolean ? "true" : "false");
        break;
    case OTEL_VALUE_INT:
        fprintf(text, "%" PRId64, value->as.integer);
        break;
    case OTEL_VALUE_DOUBLE:
        fprintf(text, "%" PRIu64, bits_of(value->as.real));
        break;
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
        fprintf(text, "[");
        for (size_t i = 0; i < value->length; i++) {
            fprintf(text, "%s", i != 0 ? "," : "");
            put_element(text, value, i);
        }
        fprintf(text, "]");
        break;
    case OTEL_VALUE_ARRAY:
        fprintf(text, "[");
        for (size_t i = 0; i < value->length; i++) {
            fprintf(text, "%s[", i != 0 ? "," : "");
            put_value(text, &value->as.values[i]);
            fprintf(text, "]");
        }
        fprintf(text, "]");
        break;
    case OTEL_VALUE_MAP:
        put_attributes(text, value->as.entries, value->length);
        break;
    }
}

static void put_attributes(FILE *text, const otel_attribute *attributes, size_t count)
{
    fprintf(text, "[");
    for (size_t i = 0; i < count; i++) {
        fprintf(text, "%s[", i != 0 ? "," : "");
        put_string(text, attributes[i].key);
        fprintf(text, ",");
        put_value(text, &attributes[i].value);
        fprintf(text, "]");
    }
    fprintf(text, "]");
}

static uint64_t wall_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* When something happened: exactly then, or between two looks at the clock. */
static void put_time(FILE *text, uint64_t exact_ns, uint64_t before_ns)
{
    if (exact_ns != 0)
        fprintf(text, "%" PRIu64, exact_ns);
    else
        fprintf(text, "[%" PRIu64 ",%" PRIu64 "]", before_ns, wall_ns());
}

/* Begin the note of a call; its parts follow, and close_call. */
static FILE *open_call(struct journal_span *span, const char *what)
{
    fprintf(span->text, "%s[\"%s\"", span->number_of_calls++ != 0 ? "," : "", what);
    return span->text;
}

static void close_call(struct journal_span *span)
{
    fprintf(span->text, "]");
}

static void note_link(struct journal_span *span, const otel_link *link, const char *tracestate)
{
    FILE *text = open_call(span, "link");
    fprintf(text, ",");
    put_hex(text, link->context.trace_id, sizeof link->context.trace_id);
    fprintf(text, ",");
    put_hex(text, link->context.span_id, sizeof link->context.span_id);
    fprintf(text, ",%u,%d,", link->context.flags, link->context.is_remote);
    put_string(text, tracestate);
    fprintf(text, ",");
    put_attributes(text, link->attributes, link->attribute_count);
    close_call(span);
}

static void note_set(struct journal_span *span, const char *key, const otel_value *value)
{
    FILE *text = open_call(span, "set");
    fprintf(text, ",");
    put_string(text, key);
    fprintf(text, ",");
    put_value(text, value);
    close_call(span);
}

static void note_start(struct journal_span *span, const struct journal_start *start,
                       uint64_t before_ns)
{
    static const uint8_t nobody[8];
    FILE *text = span->text = open_memstream(&span->data, &span->length);
    const struct journal_parent *parent = start->parent;
    if (text == NULL)
        abort();
    span->number_of_calls = 0;
    fprintf(text, "{\"trace\":");
    put_hex(text, span->context.trace_id, sizeof span->context.trace_id);
    fprintf(text, ",\"span\":");
    put_hex(text, span->context.span_id, sizeof span->context.span_id);
    fprintf(text, ",\"sampled\":%s,\"local\":%s,\"tracer\":%zu,\"kind\":%d,\"parent\":",
            span->is_sampled ? "true" : "false", span->is_local ? "true" : "false", start->tracer,
            (int)start->options.kind);
    put_hex(text, parent ? parent->ids.span_id : nobody, sizeof nobody);
    if (parent != NULL) {
        fprintf(text, ",\"parent_trace\":");
        put_hex(text, parent->ids.trace_id, sizeof parent->ids.trace_id);
        fprintf(text, ",\"parent_flags\":%u,\"parent_remote\":%s,\"parent_local\":%s",
                parent->ids.flags, parent->ids.is_remote ? "true" : "false",
                parent->is_local && span->is_local ? "true" : "false");
    }
    fprintf(text, ",\"state\":");
    put_string(text, span->tracestate);
    fprintf(text, ",\"name\":");
    put_string(text, start->name);
    fprintf(text, ",\"start\":");
    put_time(text, start->options.start_ns, before_ns);
    fprintf(text, ",\"calls\":[");
}

void journal_begin(struct journal_span *span, const struct journal_start *start)
{
    otel_span_options options = start->options;
    options.size = sizeof options;
    options.root = start->says_root;
    if (start->parent != NULL && !start->parent_is_current)
        options.parent = &start->parent->context;
    const uint64_t before_ns = wall_ns();
    span->span = start->is_local ? otel_span_enter(start->handle, start->name, &options)
                                 : otel_span_start(start->handle, start->name, &options);
    span->context = otel_span_get_context(span->span);
    span->is_local = start->is_local;
    span->is_sampled = start->parent == NULL || start->parent->is_sampled;
    span->tracestate = start->parent != NULL ? start->parent->tracestate : "";
    note_start(span, start, before_ns);
    for (size_t i = 0; i < options.attribute_count; i++)
        note_set(span, options.attributes[i].key, &options.attributes[i].value);
    for (size_t i = 0; i < options.link_count; i++)
        note_link(span, &options.links[i], "");
}

/* Through the setter that is made for the type. */
static void set(otel_span span, const char *key, const otel_value *value)
{
    switch (value->type) {
    case OTEL_VALUE_STRING:
        otel_span_set_string_n(otel_span_ref_of(&span), key, strlen(key), value->as.string,
                               value->length);
        break;
    case OTEL_VALUE_BOOL:
        otel_span_set_bool(span, key, value->as.boolean);
        break;
    case OTEL_VALUE_INT:
        otel_span_set_int(span, key, value->as.integer);
        break;
    case OTEL_VALUE_DOUBLE:
        otel_span_set_double(span, key, value->as.real);
        break;
    case OTEL_VALUE_BYTES:
        otel_span_set_bytes(span, key, value->as.bytes, value->length);
        break;
    case OTEL_VALUE_STRING_ARRAY:
        otel_span_set_string_array(span, key, value->as.strings, value->length);
        break;
    case OTEL_VALUE_BOOL_ARRAY:
        otel_span_set_bool_array(span, key, value->as.booleans, value->length);
        break;
    case OTEL_VALUE_INT_ARRAY:
        otel_span_set_int_array(span, key, value->as.integers, value->length);
        break;
    case OTEL_VALUE_DOUBLE_ARRAY:
        otel_span_set_double_array(span, key, value->as.reals, value->length);
        break;
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        otel_span_set_value(span, key, *value);
        break;
    }
}

void journal_set(struct journal_span *span, const char *key, otel_value value)
{
    set(span->span, key, &value);
    note_set(span, key, &value);
}

void journal_event(struct journal_span *span, const char *name, uint64_t time_ns,
                   const otel_attribute *attributes, size_t count)
{
    const uint64_t before_ns = wall_ns();
    if (time_ns == 0)
        otel_span_add_event(span->span, name, attributes, count);
    else
        otel_span_add_event_at(span->span, name, time_ns, attributes, count);
    FILE *text = open_call(span, "event");
    fprintf(text, ",");
    put_string(text, name);
    fprintf(text, ",");
    put_time(text, time_ns, before_ns);
    fprintf(text, ",");
    put_attributes(text, attributes, count);
    close_call(span);
}

void journal_exception(struct journal_span *span, const char *type, const char *message,
                       const char *stack, const otel_attribute *attributes, size_t count)
{
    const uint64_t before_ns = wall_ns();
    otel_span_record_exception(span->span, type, message, stack, attributes, count);
    FILE *text = open_call(span, "exception");
    const char *const parts[] = {type, message, stack};
    for (size_t i = 0; i < 3; i++) {
        fprintf(text, ",");
        put_string(text, parts[i]);
    }
    fprintf(text, ",");
    put_time(text, 0, before_ns);
    fprintf(text, ",");
    put_attributes(text, attributes, count);
    close_call(span);
}

void journal_link(struct journal_span *span, const otel_link *link, const char *tracestate)
{
    otel_span_add_link(span->span, link);
    note_link(span, link, tracestate);
}

void journal_status(struct journal_span *span, otel_span_status status, const char *description)
{
    otel_span_set_status(span->span, status, description);
    FILE *text = open_call(span, "status");
    fprintf(text, ",%d,", (int)status);
    put_string(text, description);
    close_call(span);
}

void journal_rename(struct journal_span *span, const char *name)
{
    otel_span_update_name(span->span, name);
    FILE *text = open_call(span, "name");
    fprintf(text, ",");
    put_string(text, name);
    close_call(span);
}

void journal_end(struct journal_span *span, uint64_t end_ns, FILE *file)
{
    const uint64_t before_ns = wall_ns();
    if (end_ns == 0)
        otel_span_end(span->span);
    else
        otel_span_end_at(span->span, end_ns);
    fprintf(span->text, "],\"end\":");
    put_time(span->text, end_ns, before_ns);
    fprintf(span->text, "}\n");
    if (fclose(span->text) != 0 || fwrite(span->data, 1, span->length, file) != span->length)
        abort();
    free(span->data);
}

void journal_attributes(FILE *file, const otel_attribute *attributes, size_t count)
{
    put_attributes(file, attributes, count);
}

void journal_string(FILE *file, const char *string)
{
    put_string(file, string);
}
