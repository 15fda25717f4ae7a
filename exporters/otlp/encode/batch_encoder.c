/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/encode/batch_encoder.c - the two passes over a batch. Exporter thread; owns the
 * memory of its encoder, borrows the batch for the call. */
#include "exporters/otlp/encode/batch_encoder.h"

#include "common/base/atomic.h"
#include "common/wire.h"
#include "sdk/pipeline/span_fields.h"

#include <assert.h>
#include <stdlib.h>

enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPE_SPANS = 2,
    RESOURCE_SPANS_SCHEMA_URL = 3,
    SCOPE_SPANS_SCOPE = 1,
    SCOPE_SPANS_SCHEMA_URL = 3
};

enum {
    HEAD_BYTES_MAX = 1 + OTELI_VARINT_MAX, /* tag and length of any field above */
    USUAL_BYTES_MAX = 1024 * 1024          /* of requests with more than one span */
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
    free(encoder->runs);
    free(encoder->groups);
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

/* The group of a scope, made if there is none. NULL: no memory. Programs have few scopes. */
static struct oteli_encode_group *group_of(struct oteli_encoder *encoder,
                                           const otel_scope_view *scope)
{
    for (size_t i = encoder->group_count; i-- != 0;)
        if (encoder->groups[i].scope == scope)
            return &encoder->groups[i];
    struct oteli_encode_group *groups =
        grown(encoder->groups, &encoder->group_room, encoder->group_count + 1, sizeof *groups);
    if (groups == NULL)
        return NULL;
    encoder->groups = groups;
    groups[encoder->group_count] = (struct oteli_encode_group){.scope = scope};
    return &groups[encoder->group_count++];
}

/* Add a run to a group. false: no memory. */
static bool add_run(struct oteli_encoder *encoder, struct oteli_encode_group *group, size_t first,
                    size_t count)
{
    struct oteli_encode_run *runs =
        grown(encoder->runs, &encoder->run_room, encoder->run_count + 1, sizeof *runs);
    if (runs == NULL)
        return false;
    encoder->runs = runs;
    runs[encoder->run_count] = (struct oteli_encode_run){.first = first, .count = count};
    runs[group->last].next = encoder->run_count;
    group->last = encoder->run_count++;
    return true;
}

/* First pass: sort spans into groups until the batch or the limit is reached. The bound
 * `at_most` is a few bytes above the true size; only where it touches the limit is the size
 * computed exactly, for one span after the other. */
static enum oteli_encode_result collect(struct oteli_encoder *encoder, const otel_batch *batch,
                                        const struct envelope *envelope, size_t first,
                                        size_t max_spans, size_t *count)
{
    const size_t usual = encoder->usual_request_bytes;
    const size_t left = otel_batch_size(batch) - first;
    const size_t size = left < max_spans ? left : max_spans;
    size_t at_most = HEAD_BYTES_MAX + envelope->bytes;
    size_t done = 0;
    encoder->group_count = 0;
    encoder->run_count = 0;
    while (done < size) {
        const otel_scope_view *scope = oteli_batch_scope(batch, first + done);
        struct oteli_encode_group *group = group_of(encoder, scope);
        if (group == NULL)
            return OTELI_ENCODE_NO_MEMORY;
        const bool is_new = group->bytes == 0;
        if (is_new) {
            at_most += HEAD_BYTES_MAX + scope_bytes(scope);
            group->first = encoder->run_count;
            group->last = encoder->run_count;
        }
        size_t bytes;
        const size_t room = at_most < usual ? usual - at_most : 0;
        size_t spans = oteli_batch_measure(batch, first + done, size - done, room, &bytes);
        const bool is_at_limit = spans == 0;
        if (OTELI_UNLIKELY(is_at_limit))
            spans = oteli_batch_measure(batch, first + done, 1, SIZE_MAX, &bytes);
        group->bytes += bytes;
        at_most += bytes;
        if (OTELI_UNLIKELY(is_at_limit) &&
            ((done != 0 && usual < encoder->max_request_bytes) ||
             whole_bytes(encoder, envelope) > encoder->max_request_bytes)) {
            group->bytes -= bytes;
            encoder->group_count -= is_new;
            break;
        }
        if (!add_run(encoder, group, first + done, spans))
            return OTELI_ENCODE_NO_MEMORY;
        done += spans;
    }
    *count = done;
    return done != 0 ? OTELI_ENCODE_OK : OTELI_ENCODE_TOO_LARGE;
}

static uint8_t *put_text_field(uint8_t *at, uint32_t field, otel_slice text)
{
    return text.length != 0 ? oteli_put_bytes_field(at, field, text.data, text.length) : at;
}

static uint8_t *put_group(uint8_t *at, const struct oteli_encode_group *group,
                          const struct oteli_encode_run *runs, const otel_batch *batch)
{
    const otel_scope_view *scope = group->scope;
    at = oteli_put_bytes_head(at, RESOURCE_SPANS_SCOPE_SPANS, scope_spans_bytes(group));
    at = oteli_put_bytes_field(at, SCOPE_SPANS_SCOPE, scope->otlp.data, scope->otlp.length);
    for (size_t i = group->first;; i = runs[i].next) {
        at = oteli_batch_put(batch, runs[i].first, runs[i].count, at);
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
        at = put_group(at, &encoder->groups[i], encoder->runs, batch);
    at = put_text_field(at, RESOURCE_SPANS_SCHEMA_URL, envelope.schema_url);
    assert((size_t)(at - request) == whole);
    (void)at;
    encoder->request = request;
    encoder->request_bytes = whole;
    return OTELI_ENCODE_OK;
}
