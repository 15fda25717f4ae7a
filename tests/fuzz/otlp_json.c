/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/otlp_json.c - batches of any content: what the encoders make of them is JSON.
 *
 * Bytes that the API wrote are well-formed protobuf, so the input says what is in the messages
 * and not how they are put together: each step takes a field and what it needs from it. */
#include "exporters/json/otlp_json.h"
#include "exporters/file/trace_events.h"
#include "tests/fuzz/fuzz.h"

#include "common/wire.h"
#include "tests/support/batch_double.h"
#include "tests/support/json_check.h"

enum { MESSAGE_MAX = 1 << 16, VALUE_MAX = 8192 };

static uint64_t take_word(struct fuzz_input *input)
{
    uint64_t word = 0;
    for (unsigned i = 0; i < 8; i++)
        word = word << 8 | fuzz_take(input);
    return word;
}

static uint8_t *put_text(uint8_t *at, uint32_t field, struct fuzz_input *input)
{
    const otel_slice text = fuzz_take_text(input);
    return oteli_put_bytes_field(at, field, text.data, text.length);
}

static uint8_t *put_id(uint8_t *at, uint32_t field, size_t bytes, struct fuzz_input *input)
{
    uint8_t id[16];
    for (size_t i = 0; i < bytes; i++)
        id[i] = fuzz_take(input);
    return oteli_put_bytes_field(at, field, id, bytes);
}

/* An AnyValue that is no array and no map. */
static size_t put_scalar(uint8_t *value, struct fuzz_input *input)
{
    uint8_t *at = value;
    switch (fuzz_take(input) % 6) {
    case 0:
        at = put_text(at, 1, input);
        break;
    case 1:
        at = oteli_put_varint_field(at, 2, fuzz_take(input) & 1);
        break;
    case 2:
        at = oteli_put_varint_field(at, 3, take_word(input));
        break;
    case 3:
        at = oteli_put_fixed64(oteli_put_tag(at, 4, OTELI_WIRE_FIXED64), take_word(input));
        break;
    case 4:
        at = put_text(at, 7, input);
        break;
    default:
        break;
    }
    return (size_t)(at - value);
}

/* Put an AnyValue into an array or a map, once or twice. Returns the new size. */
static size_t wrap(uint8_t *value, size_t length, uint8_t how)
{
    uint8_t inner[VALUE_MAX], outer[VALUE_MAX];
    const unsigned copies = (how >> 1 & 1) + (length < 200 ? how >> 2 & 1 : 0);
    uint8_t *at = inner, *entry;
    for (unsigned i = 0; i < copies; i++) {
        if ((how & 1) == 0) {
            at = oteli_put_bytes_field(at, 1, value, length);
            continue;
        }
        entry = oteli_put_bytes_field(outer, 1, "k\"\n", how % 4);
        entry = oteli_put_bytes_field(entry, 2, value, length);
        at = oteli_put_bytes_field(at, 1, outer, (size_t)(entry - outer));
    }
    at = oteli_put_bytes_field(value, (how & 1) == 0 ? 5 : 6, inner, (size_t)(at - inner));
    return (size_t)(at - value);
}

/* A KeyValue under this field. */
static uint8_t *put_attribute(uint8_t *at, uint32_t field, struct fuzz_input *input)
{
    uint8_t value[VALUE_MAX], pair[VALUE_MAX + 300];
    size_t length = put_scalar(value, input);
    for (unsigned wraps = fuzz_take(input); wraps != 0 && length < VALUE_MAX / 4; wraps--)
        length = wrap(value, length, (uint8_t)(fuzz_take(input) | 2));
    uint8_t *end = put_text(pair, 1, input);
    end = oteli_put_bytes_field(end, 2, value, length);
    return oteli_put_bytes_field(at, field, pair, (size_t)(end - pair));
}

static uint8_t *put_event(uint8_t *at, struct fuzz_input *input)
{
    uint8_t event[VALUE_MAX * 2];
    uint8_t *end = oteli_put_fixed64(oteli_put_tag(event, 1, OTELI_WIRE_FIXED64), take_word(input));
    end = put_text(end, 2, input);
    if (fuzz_take(input) & 1)
        end = put_attribute(end, OTEL_FIELD_EVENT_ATTRIBUTE, input);
    end = oteli_put_varint_field(end, 4, fuzz_take(input));
    return oteli_put_bytes_field(at, 11, event, (size_t)(end - event));
}

static uint8_t *put_link(uint8_t *at, struct fuzz_input *input)
{
    uint8_t link[VALUE_MAX * 2];
    uint8_t *end = link;
    if (fuzz_take(input) & 1)
        end = put_id(end, 1, 16, input);
    if (fuzz_take(input) & 1)
        end = put_id(end, 2, 8, input);
    end = put_text(end, 3, input);
    if (fuzz_take(input) & 1)
        end = put_attribute(end, OTEL_FIELD_LINK_ATTRIBUTE, input);
    end = oteli_put_fixed32(oteli_put_tag(end, 6, OTELI_WIRE_FIXED32), fuzz_take(input));
    return oteli_put_bytes_field(at, 13, link, (size_t)(end - link));
}

static uint8_t *put_status(uint8_t *at, struct fuzz_input *input)
{
    uint8_t status[300];
    uint8_t *end = put_text(status, 2, input);
    end = oteli_put_varint_field(end, 3, fuzz_take(input) % 4);
    return oteli_put_bytes_field(at, 15, status, (size_t)(end - status));
}

static uint8_t *put_field(uint8_t *at, uint32_t field, struct fuzz_input *input)
{
    switch (field) {
    case 3:
    case 5:
        return put_text(at, field, input);
    case 4:
        return put_id(at, field, 8, input);
    case 6:
    case 10:
    case 12:
    case 14:
        return oteli_put_varint_field(at, field, fuzz_take(input) % 8);
    case 7:
    case 8:
        return oteli_put_fixed64(oteli_put_tag(at, field, OTELI_WIRE_FIXED64), take_word(input));
    case 9:
        return put_attribute(at, field, input);
    case 11:
        return put_event(at, input);
    case 13:
        return put_link(at, input);
    case 15:
        return put_status(at, input);
    default:
        return oteli_put_fixed32(oteli_put_tag(at, 16, OTELI_WIRE_FIXED32),
                                 (uint32_t)take_word(input));
    }
}

/* Fields in the order of their numbers, as the API writes them. */
static void add_span(struct batch_double *batch, const otel_scope_view *scope,
                     struct fuzz_input *input)
{
    static uint8_t message[MESSAGE_MAX];
    uint8_t *at = put_id(message, 1, 16, input);
    at = put_id(at, 2, 8, input);
    uint32_t fields = (uint32_t)fuzz_take(input) << 8 | fuzz_take(input);
    for (uint32_t field = 3; field <= 16; field++, fields >>= 1)
        for (unsigned again = fields & 1; again != 0 && at < message + MESSAGE_MAX / 2; again--) {
            at = put_field(at, field, input);
            if ((field == 9 || field == 11 || field == 13) && (fuzz_take(input) & 1))
                at = put_field(at, field, input);
        }
    batch_double_add(batch, scope, message, (size_t)(at - message));
}

static void check(const struct oteli_text *json)
{
    if (!json->failed && !json_is_valid(json->data, json->length))
        abort();
}

static void check_otlp(const struct batch_double *batch)
{
    struct oteli_text json = {0};
    fuzz_check(oteli_otlp_json_add(&json, batch_double_view(batch), 0, batch->size, SIZE_MAX));
    check(&json);
    fuzz_check(memchr(json.data, '\n', json.length) == NULL);
    oteli_text_fini(&json);
}

static void check_trace_events(const struct batch_double *batch)
{
    struct oteli_trace_events events = {.zero_ns = UINT64_C(1) << 60, .pid = 1};
    OTELI_JSON_ADD(&events.text, "[");
    oteli_trace_process(&events, batch->schema_url, batch->resource);
    for (size_t i = 0; i < batch->size; i++) {
        otel_span_view span;
        otel_batch_span(batch_double_view(batch), i, &span);
        oteli_trace_span(&events, &span, 1);
        oteli_trace_instants(&events, &span, 1);
    }
    OTELI_JSON_ADD(&events.text, "\n]");
    check(&events.text);
    oteli_text_fini(&events.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, data + size};
    uint8_t resource[VALUE_MAX * 2];
    const uint8_t *resource_end = put_attribute(resource, OTEL_FIELD_RESOURCE_ATTRIBUTE, &input);
    struct batch_double batch = {.schema_url = fuzz_take_text(&input)};
    batch.resource = (otel_slice){(const char *)resource, (size_t)(resource_end - resource)};
    const otel_scope_view scopes[2] = {
        {.name = fuzz_take_text(&input), .version = fuzz_take_text(&input)},
        {.schema_url = fuzz_take_text(&input)}};
    do
        add_span(&batch, &scopes[batch.size & 1], &input);
    while (input.at != input.end && batch.size < 16);
    check_otlp(&batch);
    check_trace_events(&batch);
    batch_double_fini(&batch);
    return 0;
}
