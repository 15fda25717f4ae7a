/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/active_attributes.c - attributes of open spans: each key once, under the limits, as
 * the bytes that they will be on the wire.
 *
 * Runs on the thread that owns the place, or has the lock of the detached span. The number of
 * attributes is small, so keys are looked up by walking their signatures, which share a few cache
 * lines. */
#include "api/active/fast_attribute.h"
#include "api/encode/key_value.h"
#include "common/base/alloc.h"
#include "common/base/copy.h"
#include "common/log.h"
#include "common/text/utf8.h"
#include "common/wire.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_PLACES = 16 };

/* The index of the key among the attributes, or their number. */
static inline uint32_t find(const struct oteli_active_span *active, const char *key, size_t length,
                            uint64_t signature)
{
    uint32_t i = 0;
    for (; i < active->attribute_count; i++) {
        const struct oteli_attribute_place *place = &active->places[i];
        if (place->signature == signature &&
            memcmp(active->attributes.data + place->key_at, key, length) == 0)
            break;
    }
    return i;
}

static OTELI_COLD bool grow_places(struct oteli_active_span *active)
{
    const uint32_t capacity =
        active->place_capacity == 0 ? FIRST_PLACES : active->place_capacity * 2;
    struct oteli_attribute_place *places = oteli_realloc(active->places, capacity * sizeof *places);
    if (places == NULL)
        return false;
    active->places = places;
    active->place_capacity = capacity;
    return true;
}

/* Take attribute `index` out; a new value of its key goes to the end. */
static OTELI_COLD void take_out(struct oteli_active_span *active, uint32_t index)
{
    struct oteli_attribute_place *places = active->places;
    const uint32_t at = places[index].at;
    const bool is_last = index + 1 == active->attribute_count;
    const uint32_t end = is_last ? active->attributes.length : places[index + 1].at;
    memmove(active->attributes.data + at, active->attributes.data + end,
            active->attributes.length - end);
    active->attributes.length -= end - at;
    for (uint32_t i = index + 1; i < active->attribute_count; i++) {
        places[i - 1] = places[i];
        places[i - 1].at -= end - at;
        places[i - 1].key_at -= end - at;
    }
    active->attribute_count--;
}

/* Find room for an attribute of `size` bytes whose key is `key`: makes place for it among
 * the others, and drops the value that it replaces. NULL: left out, and counted. */
static inline uint8_t *make_room(struct oteli_active_span *active,
                                 const struct oteli_limits *limits, const char *key,
                                 size_t key_length, uint64_t signature, size_t size)
{
    const uint32_t index = find(active, key, key_length, signature);
    const bool is_new = index == active->attribute_count;
    if (OTELI_UNLIKELY(is_new && active->attribute_count >= limits->attributes)) {
        active->unusual.dropped_attributes++;
        oteli_active_warn(active, OTELI_TOO_MANY_ATTRIBUTES);
        return NULL;
    }
    if ((OTELI_UNLIKELY(is_new && active->attribute_count == active->place_capacity) &&
         !grow_places(active)) ||
        oteli_buffer_room(&active->attributes, size) == NULL) {
        active->unusual.dropped_attributes += is_new;
        active->traits.is_unusual = true;
        return NULL;
    }
    if (OTELI_UNLIKELY(active->attributes.capacity > OTELI_BUFFER_KEPT))
        active->traits.is_unusual = true; /* so that the buffer is given back */
    if (OTELI_UNLIKELY(!is_new))
        take_out(active, index);
    return active->attributes.data + active->attributes.length;
}

/* What was written from `start` to `end` is the next attribute. */
static inline void accept(struct oteli_active_span *active, uint64_t signature, uint8_t *key_start,
                          uint8_t *end)
{
    struct oteli_buffer *buffer = &active->attributes;
    const uint64_t filter = active->attribute_count != 0 ? active->attribute_filter : 0;
    active->attribute_filter = filter | oteli_signature_bit(signature);
    active->places[active->attribute_count++] = (struct oteli_attribute_place){
        .signature = signature,
        .at = buffer->length,
        .key_at = (uint32_t)(key_start - buffer->data),
    };
    buffer->length = (uint32_t)(end - buffer->data);
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
    const uint64_t signature = oteli_signature(plan.key, plan.key_length);
    uint8_t *at = make_room(active, limits, plan.key, plan.key_length, signature, plan.bytes);
    if (at != NULL) {
        uint8_t *end = oteli_key_value_put(at, OTELI_SPAN_ATTRIBUTES, &plan);
        const size_t before_key =
            plan.bytes - plan.key_length - oteli_bytes_field_size(2, plan.value_bytes);
        accept(active, signature, at + before_key, end);
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
