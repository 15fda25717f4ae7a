/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/active_attributes.c - attributes of open spans: each key once, under the limits, as
 * the bytes that they will be on the wire.
 *
 * Runs on the thread that owns the place, or has the lock of the detached span. The number of
 * attributes is small, and a filter knows most new keys, so others are looked up by walking the
 * bytes. */
#include "api/active/fast_attribute.h"
#include "api/encode/key_value.h"
#include "common/base/alloc.h"
#include "common/base/copy.h"
#include "common/log.h"
#include "common/text/utf8.h"
#include "common/wire.h"

#include <stdlib.h>
#include <string.h>

/* An attribute of a span, as it stands among its bytes. */
struct attribute {
    const char *key;
    size_t key_length;
    const uint8_t *end;
};

/* Read the one whose tag is at `at`. */
static struct attribute attribute_at(const uint8_t *at)
{
    at += oteli_varint_size(OTELI_TAG(OTELI_SPAN_ATTRIBUTES, OTELI_WIRE_BYTES));
    const size_t length = (size_t)oteli_get_varint(&at);
    const uint8_t *end = at + length;
    at += oteli_varint_size(OTELI_TAG(OTELI_KEY_VALUE_KEY, OTELI_WIRE_BYTES));
    const size_t key_length = (size_t)oteli_get_varint(&at);
    return (struct attribute){(const char *)at, key_length, end};
}

/* The offset of the one with this key, or the length of all. */
static uint32_t find(const struct oteli_active_span *active, const char *key, size_t key_length)
{
    const uint8_t *bytes = active->attributes.data;
    uint32_t at = 0;
    while (at < active->attributes.length) {
        const struct attribute found = attribute_at(bytes + at);
        if (found.key_length == key_length && memcmp(found.key, key, key_length) == 0)
            break;
        at = (uint32_t)(found.end - bytes);
    }
    return at;
}

otel_slice oteli_active_find(const struct oteli_active_span *active, const char *key,
                             size_t key_length)
{
    const uint32_t at = find(active, key, key_length);
    if (at == active->attributes.length)
        return (otel_slice){NULL, 0};
    const struct attribute found = attribute_at(active->attributes.data + at);
    const char *value = found.key + key_length;
    return (otel_slice){value, (size_t)((const char *)found.end - value)};
}

/* Take an attribute out; a new value of its key goes to the end. */
static OTELI_COLD void take_out(struct oteli_active_span *active, uint8_t *at)
{
    const uint8_t *next = attribute_at(at).end;
    const uint8_t *end = active->attributes.data + active->attributes.length;
    memmove(at, next, (size_t)(end - next));
    active->attributes.length -= (uint32_t)(next - at);
    active->attribute_count--;
}

/* Find room for an attribute of `size` bytes whose key is `key`, and drop the value that it
 * replaces. NULL: left out, and counted. */
static inline uint8_t *make_room(struct oteli_active_span *active,
                                 const struct oteli_limits *limits, const char *key,
                                 size_t key_length, uint64_t bit, size_t size)
{
    struct oteli_buffer *buffer = &active->attributes;
    const bool may_be_there = active->attribute_count != 0 && (active->attribute_filter & bit) != 0;
    const uint32_t at = may_be_there ? find(active, key, key_length) : buffer->length;
    const bool is_new = at == buffer->length;
    if (OTELI_UNLIKELY(is_new && active->attribute_count >= limits->attributes)) {
        active->unusual.dropped_attributes++;
        oteli_active_warn(active, OTELI_TOO_MANY_ATTRIBUTES);
        return NULL;
    }
    if (oteli_buffer_room(buffer, size) == NULL) {
        active->unusual.dropped_attributes += is_new;
        active->traits.is_unusual = true;
        return NULL;
    }
    if (OTELI_UNLIKELY(buffer->capacity > OTELI_BUFFER_KEPT))
        active->traits.is_unusual = true; /* so that the buffer is given back */
    if (OTELI_UNLIKELY(!is_new))
        take_out(active, buffer->data + at);
    return buffer->data + buffer->length;
}

/* Anything: the way that does not mind what it costs. */
void oteli_active_set(struct oteli_active_span *active, const struct oteli_limits *limits,
                      const char *key, size_t key_length, const otel_value *value)
{
    struct oteli_key_value plan;
    if (key == NULL || !oteli_key_value_plan(&plan, key, key_length, value, limits->value_length,
                                             limits->value_depth)) {
        oteli_active_warn(active, OTELI_BAD_ATTRIBUTE);
        return;
    }
    /* A key that is not UTF-8 is known by what it becomes. */
    char small[256];
    char *clean = NULL;
    if (plan.key_bytes != key_length) {
        clean = plan.key_bytes <= sizeof small ? small : oteli_malloc(plan.key_bytes);
        if (clean == NULL) {
            active->unusual.dropped_attributes++;
            active->traits.is_unusual = true;
            return;
        }
        oteli_utf8_replace(key, key_length, clean);
        plan.key = clean;
        plan.key_length = plan.key_bytes;
    }
    const uint64_t bit = oteli_signature_bit(oteli_signature(plan.key, plan.key_length));
    uint8_t *at = make_room(active, limits, plan.key, plan.key_length, bit, plan.bytes);
    if (at != NULL) {
        const uint8_t *end = oteli_key_value_put(at, OTELI_SPAN_ATTRIBUTES, &plan);
        active->attribute_filter =
            (active->attribute_count != 0 ? active->attribute_filter : 0) | bit;
        active->attribute_count++;
        active->attributes.length = (uint32_t)(end - active->attributes.data);
    }
    if (OTELI_UNLIKELY(clean != NULL) && clean != small)
        free(clean);
}

/* False: it takes oteli_active_set. */
static inline bool set_short(struct oteli_active_span *active, const struct oteli_limits *limits,
                             otel_slice key, const otel_value *value)
{
    if (active->attributes.data == NULL) /* no room yet */
        return false;
    switch (value->type) {
    case OTEL_VALUE_STRING:
        return value->as.string != NULL &&
               oteli_set_short_string(active, limits, key.data, key.length, value->as.string,
                                      value->length);
    case OTEL_VALUE_INT:
    case OTEL_VALUE_DOUBLE:
        return oteli_set_short_number(active, limits, key.data, key.length, value->type,
                                      value->type == OTEL_VALUE_INT
                                          ? (uint64_t)value->as.integer
                                          : oteli_double_bits(value->as.real));
    case OTEL_VALUE_BOOL:
        return oteli_set_short_number(active, limits, key.data, key.length, OTEL_VALUE_BOOL,
                                      value->as.boolean);
    default:
        return false;
    }
}

void oteli_active_set_many(struct oteli_active_span *active, const struct oteli_limits *limits,
                           const otel_attribute *attributes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const otel_slice key = oteli_key_of(&attributes[i]);
        const otel_value *value = &attributes[i].value;
        if (!set_short(active, limits, key, value)) /* which knows no key of length 0 */
            oteli_active_set(active, limits, key.data, key.length, value);
    }
}
