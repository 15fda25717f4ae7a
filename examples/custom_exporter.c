/* SPDX-License-Identifier: Apache-2.0 */
/* examples/custom_exporter.c - an exporter of one's own: a line of logfmt for each span.
 *
 *     cc custom_exporter.c -o custom_exporter $(pkg-config --cflags --libs otel-sdk)
 *     ./custom_exporter
 *
 * prints a line each for "fry", "toast" and "cook breakfast", such as
 *
 *     trace=fac3c90b… span=f3ab8dfa… parent=16ef19d2… name="toast" us=1 burnt=false minutes=2.5
 *
 * An exporter is a struct of functions, and export_batch is the only one that it must
 * have. The SDK calls it on the exporter thread, one batch at a time. Nothing is copied
 * for it: names and attributes are slices of the batch, valid until it returns. */
#include <inttypes.h>
#include <otel/exporter.h>
#include <otel/otel.h>
#include <stdio.h>

static void print_hex(FILE *out, const char *key, const uint8_t *bytes, size_t length)
{
    fprintf(out, "%s", key);
    for (size_t i = 0; i < length; i++)
        fprintf(out, "%02x", bytes[i]);
}

static void print_quoted(FILE *out, otel_slice text)
{
    fputc('"', out);
    for (size_t i = 0; i < text.length; i++) {
        const char c = text.data[i];
        if (c == '\n')
            fputs("\\n", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if ((unsigned char)c >= ' ')
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_value(FILE *out, const otel_value_view *value)
{
    switch (value->type) {
    case OTEL_VALUE_STRING:
        print_quoted(out, value->slice);
        break;
    case OTEL_VALUE_BOOL:
        fputs(value->boolean ? "true" : "false", out);
        break;
    case OTEL_VALUE_INT:
        fprintf(out, "%" PRId64, value->integer);
        break;
    case OTEL_VALUE_DOUBLE:
        fprintf(out, "%.17g", value->real);
        break;
    default: /* bytes and arrays have no place in logfmt: say how large they are */
        fprintf(out, "(%zu bytes)", value->slice.length);
    }
}

static void print_span(FILE *out, const otel_span_view *span)
{
    print_hex(out, "trace=", span->trace_id, 16);
    print_hex(out, " span=", span->span_id, 8);
    if (span->parent_span_id != NULL)
        print_hex(out, " parent=", span->parent_span_id, 8);
    fputs(" name=", out);
    print_quoted(out, span->name);
    fprintf(out, " us=%" PRIu64, (span->end_ns - span->start_ns) / 1000);

    otel_attribute_view attribute;
    otel_slice rest = span->attributes;
    while (otel_attribute_next(&rest, OTEL_FIELD_SPAN_ATTRIBUTE, &attribute)) {
        fprintf(out, " %.*s=", (int)attribute.key.length, attribute.key.data);
        print_value(out, &attribute.value);
    }
    if (span->status == OTEL_SPAN_STATUS_ERROR) {
        fputs(" status=error message=", out);
        print_quoted(out, span->status_message);
    }
    fputc('\n', out);
}

/* `state` is whatever was put into the struct: here the stream. */
static otel_export_result export_batch(void *state, otel_export *call)
{
    FILE *out = state;
    const size_t count = otel_batch_size(call->batch);
    for (size_t i = 0; i < count; i++) {
        otel_span_view span;
        otel_batch_span(call->batch, i, &span);
        print_span(out, &span);
    }
    /* An exporter that loses spans reports them; otel_stats counts them as dropped then. */
    if (fflush(out) != 0)
        otel_export_drop(call, OTEL_DROP_PERMANENT_ERROR, count);
    return OTEL_EXPORT_DONE;
}

static void cook_breakfast(otel_tracer *tracer)
{
    OTEL_SCOPED(breakfast, tracer, "cook breakfast");
    {
        OTEL_SCOPED(fry, tracer, "fry");
        otel_span_set_int(fry, "egg.count", 3);
        otel_span_set_string(fry, "pan", "the \"good\" one");
        otel_span_fail(fry, "one egg fell down");
    }
    OTEL_SCOPED(toast, tracer, "toast");
    otel_span_set_bool(toast, "burnt", false);
    otel_span_set_double(toast, "minutes", 2.5);
}

int main(void)
{
    const otel_exporter exporter =
        OTEL_EXPORTER(.name = "logfmt", .state = stdout, .export_batch = export_batch);

    /* otel_start_with knows no exporters but these and does not read the environment;
     * otel_start takes them beside those of OTEL_TRACES_EXPORTER. */
    otel_status status = otel_start_with(
        OTEL_SDK_OPTIONS(.service_name = "kitchen", .exporters = &exporter, .exporter_count = 1));
    if (status != OTEL_OK) {
        fprintf(stderr, "cannot start: %s\n", otel_status_string(status));
        return 1;
    }
    cook_breakfast(otel_tracer_get("example.kitchen", "1.0"));
    return otel_shutdown(5000) != OTEL_OK;
}
