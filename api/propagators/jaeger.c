/* SPDX-License-Identifier: Apache-2.0 */
/* api/propagators/jaeger.c - the propagator of Jaeger's own clients. Any thread.
 *
 *     uber-trace-id: 0af7651916cd43dd8448eb211c80319c:b7ad6b7169203331:0:1
 *                    trace id : span id : span id of the parent : flags
 *     uberctx-name: value
 *
 * Ids may come without the zeros in front, and colons as %3A. The parent's id is
 * deprecated, and not looked at. Baggage has a header for each entry, so it comes in only from
 * carriers that can list their headers; its values are percent-encoded.
 *
 * Source: Jaeger, "Propagation Format" of its client libraries. */
#include "api/baggage/baggage_pool.h"
#include "api/propagators/carrier_text.h"

#include <string.h>

enum { LONGEST = OTELI_IDS_TEXT + 1 + OTELI_SPAN_ID_TEXT + 1 + 2, LONGEST_ENCODED = 3 * LONGEST };
enum { JAEGER_SAMPLED = 1, JAEGER_DEBUG = 2 };
enum { LONGEST_NAME = 256, LONGEST_VALUE = OTELI_BAGGAGE_BYTES }; /* of entries as headers */

static const char prefix[] = "uberctx-";
enum { PREFIX = sizeof prefix - 1 };

/* --- uber-trace-id --- */

/* A number of up to 2 * `bytes` digits, in as many bytes. */
static bool read_number(otel_slice text, uint8_t *out, size_t bytes)
{
    char digits[OTELI_TRACE_ID_TEXT];
    if (text.length == 0 || text.length > 2 * bytes)
        return false;
    memset(digits, '0', 2 * bytes - text.length);
    memcpy(digits + 2 * bytes - text.length, text.data, text.length);
    return oteli_hex_read(digits, bytes, OTELI_HEX_ANY, out);
}

static bool extract_span(const otel_carrier_reader *reader, otel_span *span)
{
    char decoded[LONGEST_ENCODED];
    otel_slice text = oteli_header(reader, "uber-trace-id");
    if (text.data == NULL || text.length > sizeof decoded ||
        !oteli_percent_decode(text.data, text.length, decoded, &text.length) ||
        text.length > LONGEST)
        return false;
    text.data = decoded;
    otel_slice parts[4];
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags;
    if (oteli_split(text, ':', parts, 4) != 4 || !read_number(parts[0], trace_id, 16) ||
        !read_number(parts[1], span_id, 8) || !read_number(parts[3], &flags, 1))
        return false;
    uint64_t bits = 0; /* debug means something with sampled only */
    if ((flags & JAEGER_SAMPLED) != 0)
        bits = OTELI_REF_SAMPLED | ((flags & JAEGER_DEBUG) != 0 ? OTELI_REF_DEBUG : 0);
    *span = oteli_span_of_remote(trace_id, span_id, bits);
    return oteli_span_is_valid(span);
}

/* --- uberctx-… in --- */

struct gathering {
    const otel_carrier_reader *reader;
    struct oteli_baggage_builder builder;
    size_t count;
};

/* One more header of the carrier: an entry of the baggage? */
static void gather(void *state, const char *name, size_t length)
{
    struct gathering *gathering = state;
    char header[PREFIX + LONGEST_NAME + 1];
    const otel_slice front = {.data = name, .length = length < PREFIX ? length : PREFIX};
    if (length <= PREFIX || length >= sizeof header || !oteli_is_word(front, prefix))
        return;
    memcpy(header, name, length);
    header[length] = '\0';
    const otel_slice value = oteli_header(gathering->reader, header);
    if (value.data == NULL || value.length > gathering->builder.text_left)
        return;
    gathering->builder.text_left -= (uint32_t)value.length;
    const struct oteli_baggage_member member = {
        .name = {header + PREFIX, length - PREFIX}, .value = value, .is_encoded = true};
    gathering->count += oteli_baggage_put(&gathering->builder, &member);
}

static otel_context extract_baggage(otel_context context, const otel_carrier_reader *reader)
{
    struct gathering gathering = {.reader = reader};
    if (reader->list == NULL)
        return context;
    oteli_baggage_begin(&gathering.builder, otel_context_baggage(&context));
    reader->list(reader->carrier, gather, &gathering);
    if (gathering.count == 0)
        return context;
    return otel_context_with_baggage(context, oteli_baggage_finish(&gathering.builder));
}

static otel_context extract(const void *state, const otel_context *context,
                            const otel_carrier_reader *reader)
{
    (void)state;
    otel_span span;
    otel_context result = *context;
    if (extract_span(reader, &span))
        result = oteli_context_with_found(context, span, OTELI_KEPT_FROM_BOTH);
    return extract_baggage(result, reader);
}

/* --- out --- */

struct sending {
    otel_set_header *set;
    void *carrier;
};

/* Some decoders take a plus for a blank. */
static bool stays(char c)
{
    return c > ' ' && c < 0x7f && strchr("\"%+,;\\", c) == NULL;
}

/* There is no place for its metadata. */
static bool send_entry(void *state, const otel_baggage_entry *entry)
{
    const struct sending *sending = state;
    char header[PREFIX + LONGEST_NAME + 1];
    char text[LONGEST_VALUE + 1];
    const otel_slice name = entry->name;
    if (name.length > LONGEST_NAME || !oteli_is_token(name.data, name.length))
        return true;
    memcpy(header, prefix, PREFIX);
    memcpy(header + PREFIX, name.data, name.length + 1);
    char *end = text;
    for (const char *at = entry->value.data; at != entry->value.data + entry->value.length; at++) {
        if (end - text + 3 > LONGEST_VALUE)
            return true; /* whole, or not at all */
        if (stays(*at))
            *end++ = *at;
        else
            end = oteli_percent_put(end, *at);
    }
    *end = '\0';
    sending->set(sending->carrier, header, text, (size_t)(end - text));
    return true;
}

static void inject(const void *state, const otel_context *context, otel_set_header *set,
                   void *carrier)
{
    (void)state;
    if (oteli_span_is_to_send(context)) {
        const uint64_t ref = context->span.opaque[3];
        const bool is_debug = (ref & OTELI_REF_DEBUG) != 0;
        const bool is_sampled = is_debug || (ref & OTELI_REF_SAMPLED) != 0;
        const int flags = (is_sampled ? JAEGER_SAMPLED : 0) | (is_debug ? JAEGER_DEBUG : 0);
        const char rest[] = {':', '0', ':', (char)('0' + flags), '\0'};
        char text[LONGEST + 1];
        char *at = oteli_ids_put(text, context, ':');
        memcpy(at, rest, sizeof rest);
        set(carrier, "uber-trace-id", text, (size_t)(at - text) + sizeof rest - 1);
    }
    struct sending sending = {set, carrier};
    otel_baggage_each(otel_context_baggage(context), send_entry, &sending);
}

const otel_propagator *otel_propagator_jaeger(void)
{
    static const char *const fields[] = {"uber-trace-id", NULL};
    static const otel_propagator propagator =
        OTEL_PROPAGATOR(.name = "jaeger", .inject = inject, .extract = extract, .fields = fields);
    return &propagator;
}
