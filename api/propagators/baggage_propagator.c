/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/baggage_propagator.c - the W3C Baggage propagator. Any thread.
 *
 *     baggage: user=alice,cart=%C3%A9t%C3%A9;source=web
 *
 * The format is in api/baggage/baggage_text.c. Several headers are one baggage, which takes the
 * place of the context's.
 *
 * Source: OpenTelemetry specification, baggage/api.md "Propagation"; W3C Baggage. */
#include "api/baggage/baggage_pool.h"
#include "api/propagators/carrier_text.h"
#include "common/base/atomic.h"

/* Kilobytes of stack, which a request without the header does not touch. */
static OTELI_COLD otel_context extract_from(const otel_context *context,
                                            struct oteli_headers *headers, otel_slice text)
{
    struct oteli_baggage_builder builder;
    oteli_baggage_begin(&builder, (otel_baggage){0});
    size_t count = 0;
    do
        count += oteli_baggage_parse(&builder, text.data, text.length);
    while (builder.text_left != 0 && oteli_headers_next(headers, &text));
    if (count == 0)
        return *context;
    return otel_context_with_baggage(*context, oteli_baggage_finish(&builder));
}

static otel_context extract(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader)
{
    (void)state;
    struct oteli_headers headers = {.reader = reader, .name = "baggage"};
    otel_slice text;
    return oteli_headers_next(&headers, &text) ? extract_from(context, &headers, text) : *context;
}

static void inject(const void *state, const otel_context *context, otel_set_header *set,
                   void *carrier)
{
    (void)state;
    const otel_baggage baggage = otel_context_baggage(context);
    if (baggage.opaque == 0)
        return;
    char text[OTELI_BAGGAGE_BYTES + 1];
    const size_t length = oteli_baggage_format(baggage, text, sizeof text);
    if (length != 0)
        set(carrier, "baggage", text, length);
}

const otel_propagator *otel_propagator_baggage(void)
{
    static const char *const fields[] = {"baggage", NULL};
    static const otel_propagator propagator =
        OTEL_PROPAGATOR(.name = "baggage", .inject = inject, .extract = extract, .fields = fields);
    return &propagator;
}
