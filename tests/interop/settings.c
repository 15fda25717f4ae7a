/* SPDX-License-Identifier: Apache-2.0 */
/* tests/interop/settings.c - what the environment makes of a resource and of a span that has
 * more of everything than its limits.
 *
 *     resource KEY VALUE                 for each attribute that is a text, in hexadecimal
 *     span KEPT DROPPED CHARACTERS       attributes, and how long the values of the first is
 *     events KEPT DROPPED                and of the first: kept attributes, dropped ones, and
 *     links KEPT DROPPED                 how long … */
#include <otel/exporter.h>
#include <otel/otel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 140 };
static const char value[] = "äöü-漢字-🙂-0123456789-0123456789-0123456789-0123456789";

static void put(const char *text, size_t length)
{
    if (length == 0)
        putchar('-');
    for (size_t i = 0; i < length; i++)
        printf("%02x", (unsigned char)text[i]);
}

static size_t characters(otel_slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.length; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

/* How many attributes there are, and how long the first one's value is. */
static void describe(otel_slice attributes, uint32_t field, uint32_t dropped)
{
    otel_attribute_view attribute;
    size_t count = 0;
    size_t length = 0;
    while (otel_attribute_next(&attributes, field, &attribute))
        if (count++ == 0)
            length = characters(attribute.value.slice);
    printf("%zu %u %zu", count, (unsigned)dropped, length);
}

static void print_resource(otel_slice attributes)
{
    otel_attribute_view attribute;
    while (otel_attribute_next(&attributes, OTEL_FIELD_RESOURCE_ATTRIBUTE, &attribute)) {
        if (attribute.value.type != OTEL_VALUE_STRING)
            continue;
        fputs("resource ", stdout);
        put(attribute.key.data, attribute.key.length);
        putchar(' ');
        put(attribute.value.slice.data, attribute.value.slice.length);
        putchar('\n');
    }
}

static otel_export_result print_batch(void *state, otel_export *call)
{
    (void)state;
    otel_span_view span;
    print_resource(otel_batch_resource(call->batch));
    otel_batch_span(call->batch, 0, &span);
    fputs("span ", stdout);
    describe(span.attributes, OTEL_FIELD_SPAN_ATTRIBUTE, span.dropped_attributes_count);

    otel_event_view event;
    size_t events = 0;
    fputs("\nevents ", stdout);
    for (otel_slice rest = span.events; otel_event_next(&rest, &event); events++)
        if (events == 0)
            describe(event.attributes, OTEL_FIELD_EVENT_ATTRIBUTE, event.dropped_attributes_count);
    printf(" %zu %u", events, (unsigned)span.dropped_events_count);

    otel_link_view link;
    size_t links = 0;
    fputs("\nlinks ", stdout);
    for (otel_slice rest = span.links; otel_link_next(&rest, &link); links++)
        if (links == 0)
            describe(link.attributes, OTEL_FIELD_LINK_ATTRIBUTE, link.dropped_attributes_count);
    printf(" %zu %u\n", links, (unsigned)span.dropped_links_count);
    return OTEL_EXPORT_DONE;
}

int main(void)
{
    static char keys[MANY][16];
    otel_attribute attributes[MANY];
    for (int i = 0; i < MANY; i++) {
        snprintf(keys[i], sizeof keys[i], "k%03d", i);
        attributes[i] = otel_attribute_of(keys[i], otel_value_string(value));
    }
    const otel_exporter exporter = OTEL_EXPORTER(.name = "print", .export_batch = print_batch);
    if (otel_start(OTEL_SDK_OPTIONS(.traces_exporter = "none", .exporters = &exporter,
                                    .exporter_count = 1)) != OTEL_OK)
        return EXIT_FAILURE;
    const uint8_t id[16] = {1};
    const otel_span_context other = otel_span_context_make(id, id, 1, false, NULL);
    const otel_span span = otel_span_enter(otel_tracer_get("settings", NULL), "span", NULL);
    for (int i = 0; i < MANY; i++) {
        const size_t count = i == 0 ? MANY : 0; /* of the first event and link only */
        const otel_link link = {
            .context = other, .attributes = attributes, .attribute_count = count};
        otel_span_set_string(span, keys[i], value);
        otel_span_add_event(span, "event", attributes, count);
        otel_span_add_link(span, &link);
    }
    otel_span_end(span);
    return otel_shutdown(60000) == OTEL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
