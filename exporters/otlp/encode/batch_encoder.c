/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/batch_encoder.c - the two passes over a batch. Exporter thread; owns the
 * memory of its encoder, borrows the batch for the call. */
#include "exporters/otlp/encode/batch_encoder.h"

#include "common/base/atomic.h"
#include "common/wire.h"

#include <assert.h>
#include <stdlib.h>

enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPE_SPANS = 2,
    RESOURCE_SPANS_SCHEMA_URL = 3,
    SCOPE_SPANS_SCOPE = 1,
    SCOPE_SPANS_SPANS = 2,
    SCOPE_SPANS_SCHEMA_URL = 3
};

enum {
    HEAD_BYTES_MAX = 1 + OTELI_VARINT_MAX, /* tag and length of any field above */
    SLOTS_AT_FIRST = 16,
    USUAL_BYTES_MAX = 1024 * 1024 /* of requests with more than one span */
};

void oteli_encoder_init(struct oteli_encoder *encoder, size_t max_request_bytes, size_t room_before)
{
    *encoder = (struct oteli_encoder){
        .max_request_bytes = max_request_bytes,
        .room_before = room_before,
        .usual_request_bytes =
            max_request_bytes < USUAL_BYTES_MAX ? max_request_bytes : USUAL_BYTES_MAX,
    };
}

void oteli_encoder_fini(struct oteli_encoder *encoder)
{
    oteli_reusable_buffer_free(&encoder->buffer);
    free(encoder->spans);
    free(encoder->groups);
    free(encoder->slots);
    oteli_encoder_init(encoder, encoder->max_request_bytes, encoder->room_before);
}

/* The parts of every request that do not depend on which spans are in it. */
struct envelope {
    otel_slice resource;
    otel_slice schema_url;
    size_t bytes; /* both as fields of ResourceSpans */
};

static size_t text_field_bytes(uint32_t field, otel_slice text)
{
    return text.length != 0 ? oteli_bytes_field_size(field, text.length) : 0;
}

static struct envelope envelope_of(const otel_batch *batch)
{
    struct envelope envelope = {.resource = otel_batch_resource(batch),
                                .schema_url = otel_batch_resource_schema_url(batch)};
    envelope.bytes = oteli_bytes_field_size(RESOURCE_SPANS_RESOURCE, envelope.resource.length) +
                     text_field_bytes(RESOURCE_SPANS_SCHEMA_URL, envelope.schema_url);
    return envelope;
}

static size_t scope_bytes(const otel_scope_view *scope)
{
    return oteli_bytes_field_size(SCOPE_SPANS_SCOPE, scope->otlp.length) +
           text_field_bytes(SCOPE_SPANS_SCHEMA_URL, scope->schema_url);
}

static size_t scope_spans_bytes(const struct oteli_encode_group *group)
{
    return scope_bytes(group->scope) + group->bytes;
}

static size_t resource_spans_bytes(const struct oteli_encoder *encoder,
                                   const struct envelope *envelope)
{
    size_t bytes = envelope->bytes;
    for (size_t i = 0; i < encoder->group_count; i++)
        bytes += oteli_bytes_field_size(RESOURCE_SPANS_SCOPE_SPANS,
                                        scope_spans_bytes(&encoder->groups[i]));
    return bytes;
}

static size_t whole_bytes(const struct oteli_encoder *encoder, const struct envelope *envelope)
{
    return oteli_bytes_field_size(REQUEST_RESOURCE_SPANS, resource_spans_bytes(encoder, envelope));
}

/* The array with room for `count` elements; NULL, and the array is as before, when there
 * is no memory. */
static void *grown(void *array, size_t *room, size_t count, size_t element_bytes)
{
    if (OTELI_LIKELY(count <= *room))
        return array;
    const size_t wanted = count + count / 2;
    if (wanted > SIZE_MAX / element_bytes)
        return NULL;
    void *larger = realloc(array, wanted * element_bytes);
    if (larger != NULL)
        *room = wanted;
    return larger;
}

static size_t slot_of(const struct oteli_encoder *encoder, const otel_scope_view *scope)
{
    const uint64_t hash = (uint64_t)(uintptr_t)scope * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(hash >> 32) & (encoder->slot_count - 1);
    while (encoder->slots[slot] != 0 && encoder->groups[encoder->slots[slot] - 1].scope != scope)
        slot = (slot + 1) & (encoder->slot_count - 1);
    return slot;
}

/* Size the hash table and enter all groups that there are. */
static bool index_groups(struct oteli_encoder *encoder, size_t slot_count)
{
    if (slot_count > encoder->slot_room) {
        size_t *larger = realloc(encoder->slots, slot_count * sizeof *larger);
        if (larger == NULL)
            return false;
        encoder->slots = larger;
        encoder->slot_room = slot_count;
    }
    encoder->slot_count = slot_count;
    memset(encoder->slots, 0, slot_count * sizeof *encoder->slots);
    for (size_t i = 0; i < encoder->group_count; i++)
        encoder->slots[slot_of(encoder, encoder->groups[i].scope)] = i + 1;
    return true;
}

/* The group of a scope that is not that of the span before; made if there is none. NULL:
 * no memory. */
static OTELI_COLD struct oteli_encode_group *group_of(struct oteli_encoder *encoder,
                                                      const otel_scope_view *scope)
{
    if (encoder->group_count * 2 >= encoder->slot_count &&
        !index_groups(encoder, encoder->slot_count * 2))
        return NULL;
    const size_t slot = slot_of(encoder, scope);
    if (encoder->slots[slot] == 0) {
        struct oteli_encode_group *groups =
            grown(encoder->groups, &encoder->group_room, encoder->group_count + 1, sizeof *groups);
        if (groups == NULL)
            return NULL;
        encoder->groups = groups;
        encoder->groups[encoder->group_count] = (struct oteli_encode_group){.scope = scope};
        encoder->slots[slot] = ++encoder->group_count;
    }
    return &encoder->groups[encoder->slots[slot] - 1];
}

/* First pass: sort spans into groups until the batch or the limit is reached. The bound
 * `at_most` is a few bytes above the true size and costs one addition a span; only where
 * it touches the limit is the size computed exactly. */
static enum oteli_encode_result collect(struct oteli_encoder *encoder, const otel_batch *batch,
                                        const struct envelope *envelope, size_t first,
                                        size_t max_spans, size_t *count)
{
    const size_t left = otel_batch_size(batch) - first;
    const size_t size = left < max_spans ? left : max_spans;
    encoder->group_count = 0;
    struct oteli_encode_span *const spans =
        grown(encoder->spans, &encoder->span_room, size, sizeof *spans);
    if (spans == NULL)
        return OTELI_ENCODE_NO_MEMORY;
    encoder->spans = spans;
    if (!index_groups(encoder, SLOTS_AT_FIRST))
        return OTELI_ENCODE_NO_MEMORY;
    struct oteli_encode_group *group = NULL;
    size_t at_most = HEAD_BYTES_MAX + envelope->bytes;
    size_t i = 0;
    for (; i < size; i++) {
        const otel_scope_view *scope;
        const otel_slice otlp = otel_batch_span_otlp(batch, first + i, &scope);
        if (OTELI_UNLIKELY(group == NULL || group->scope != scope)) {
            group = group_of(encoder, scope);
            if (group == NULL)
                return OTELI_ENCODE_NO_MEMORY;
            if (group->bytes == 0) {
                at_most += HEAD_BYTES_MAX + scope_bytes(scope);
                group->first = i;
                group->last = i;
            }
        }
        const size_t field = oteli_bytes_field_size(SCOPE_SPANS_SPANS, otlp.length);
        const size_t last_before = group->last;
        group->bytes += field;
        at_most += field;
        if (OTELI_UNLIKELY(at_most > encoder->usual_request_bytes) &&
            ((i != 0 && encoder->usual_request_bytes < encoder->max_request_bytes) ||
             whole_bytes(encoder, envelope) > encoder->max_request_bytes)) {
            group->bytes -= field;
            if (group->bytes == 0)
                encoder->group_count--;
            break;
        }
        spans[i].otlp = otlp;
        spans[last_before].next = i;
        group->last = i;
    }
    *count = i;
    return i != 0 ? OTELI_ENCODE_OK : OTELI_ENCODE_TOO_LARGE;
}

static uint8_t *put_text_field(uint8_t *at, uint32_t field, otel_slice text)
{
    return text.length != 0 ? oteli_put_bytes_field(at, field, text.data, text.length) : at;
}

static uint8_t *put_group(uint8_t *at, const struct oteli_encode_group *group,
                          const struct oteli_encode_span *spans)
{
    const otel_scope_view *scope = group->scope;
    at = oteli_put_bytes_head(at, RESOURCE_SPANS_SCOPE_SPANS, scope_spans_bytes(group));
    at = oteli_put_bytes_field(at, SCOPE_SPANS_SCOPE, scope->otlp.data, scope->otlp.length);
    for (size_t i = group->first;; i = spans[i].next) {
        at = oteli_put_bytes_field(at, SCOPE_SPANS_SPANS, spans[i].otlp.data, spans[i].otlp.length);
        if (i == group->last)
            break;
    }
    return put_text_field(at, SCOPE_SPANS_SCHEMA_URL, scope->schema_url);
}

enum oteli_encode_result oteli_encode(struct oteli_encoder *encoder, const otel_batch *batch,
                                      size_t first, size_t max_spans, size_t *count)
{
    encoder->request = NULL;
    encoder->request_bytes = 0;
    const struct envelope envelope = envelope_of(batch);
    const enum oteli_encode_result result =
        collect(encoder, batch, &envelope, first, max_spans, count);
    if (result != OTELI_ENCODE_OK)
        return result;
    const size_t content = resource_spans_bytes(encoder, &envelope);
    const size_t whole = oteli_bytes_field_size(REQUEST_RESOURCE_SPANS, content);
    if (!oteli_reusable_buffer_fit(&encoder->buffer, encoder->room_before + whole))
        return OTELI_ENCODE_NO_MEMORY;

    uint8_t *const request = encoder->buffer.bytes + encoder->room_before;
    uint8_t *at = oteli_put_bytes_head(request, REQUEST_RESOURCE_SPANS, content);
    at = oteli_put_bytes_field(at, RESOURCE_SPANS_RESOURCE, envelope.resource.data,
                               envelope.resource.length);
    for (size_t i = 0; i < encoder->group_count; i++)
        at = put_group(at, &encoder->groups[i], encoder->spans);
    at = put_text_field(at, RESOURCE_SPANS_SCHEMA_URL, envelope.schema_url);
    assert((size_t)(at - request) == whole);
    (void)at;
    encoder->request = request;
    encoder->request_bytes = whole;
    return OTELI_ENCODE_OK;
}
