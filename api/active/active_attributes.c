/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/active_attributes.c - attributes of open spans: each key once, under the limits, as
 * the bytes that they will be on the wire.
 *
 * Runs on the thread that owns the place, or has the lock of the detached span. The number of
 * attributes is small, and a filter knows most new keys, so others are looked up by walking the
 * bytes. */
#include "api/active/fast_attribute.h"
#include "api/encode/key_value.h"
#include "api/encode/plain_value.h"
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

static inline size_t length_at(const uint8_t **at)
{
    if (OTELI_LIKELY(**at < 0x80))
        return *(*at)++;
    return (size_t)oteli_get_varint(at);
}

/* Read the one whose tag is at `at`; both tags are one byte. */
static inline struct attribute attribute_at(const uint8_t *at)
{
    at++;
    const size_t length = length_at(&at);
    const uint8_t *end = at + length;
    at++;
    const size_t key_length = length_at(&at);
    return (struct attribute){(const char *)at, key_length, end};
}

/* From where to where there is the one with this key; if there is none, from the end of all to
 * there. */
struct range {
    uint32_t start;
    uint32_t end;
};

static struct range find(const struct oteli_active_span *active, const char *key, size_t key_length)
{
    const uint8_t *bytes = active->attributes.data;
    const uint32_t length = active->attributes.length;
    uint32_t end;
    for (uint32_t at = 0; at < length; at = end) {
        const struct attribute found = attribute_at(bytes + at);
        end = (uint32_t)(found.end - bytes);
        if (found.key_length == key_length && memcmp(found.key, key, key_length) == 0)
            return (struct range){at, end};
    }
    return (struct range){length, length};
}

otel_slice oteli_active_find(const struct oteli_active_span *active, const char *key,
                             size_t key_length)
{
    const struct range where = find(active, key, key_length);
    if (where.start == where.end)
        return (otel_slice){NULL, 0};
    const struct attribute found = attribute_at(active->attributes.data + where.start);
    const char *value = found.key + key_length;
    return (otel_slice){value, (size_t)((const char *)found.end - value)};
}

/* What a new attribute is set beside. */
struct place {
    uint64_t bit;     /* of its key */
    struct range old; /* the one that it replaces */
};

static inline bool is_new(const struct place *place)
{
    return place->old.start == place->old.end;
}

static inline struct place place_of(const struct oteli_active_span *active, const char *key,
                                    size_t key_length)
{
    const uint32_t length = active->attributes.length;
    struct place place = {oteli_key_bit(key, key_length), {length, length}};
    if ((active->attribute_filter & place.bit) != 0)
        place.old = find(active, key, key_length);
    return place;
}

/* The bytes up to `end` are the new attribute. It is the last one, also if it replaces another. */
static inline void keep(struct oteli_active_span *active, const struct place *place, uint8_t *end)
{
    struct oteli_buffer *buffer = &active->attributes;
    if (is_new(place)) {
        active->attribute_filter |= place->bit;
        active->attribute_count++;
    } else {
        const uint8_t *next = buffer->data + place->old.end;
        memmove(buffer->data + place->old.start, next, (size_t)(end - next));
        end -= place->old.end - place->old.start;
    }
    buffer->length = (uint32_t)(end - buffer->data);
    if (OTELI_UNLIKELY(buffer->capacity > OTELI_BUFFER_KEPT))
        active->traits.is_unusual |= OTELI_HAS_MORE; /* so that the buffer is given back */
}

/* In one pass. False: it takes set_planned, and nothing is changed. */
static OTELI_INLINE bool set_plain(struct oteli_active_span *active,
                                   const struct oteli_limits *limits, const char *key,
                                   size_t key_length, const otel_value *value)
{
    const otel_slice slice = {key, key_length};
    const size_t room = oteli_plain_room(slice, value, limits->value_length);
    if (OTELI_UNLIKELY(room == 0))
        return false;
    const struct place place = place_of(active, key, key_length);
    if (OTELI_UNLIKELY(active->attribute_count >= limits->attributes) && is_new(&place))
        return false;
    uint8_t *at = oteli_active_room(active, room);
    if (OTELI_LIKELY(at != NULL))
        at = oteli_plain_put(at, OTELI_SPAN_ATTRIBUTES, slice, value);
    if (OTELI_UNLIKELY(at == NULL))
        return false;
    keep(active, &place, at);
    return true;
}

/* An attribute as planned, if it is not too much. */
static void put_planned(struct oteli_active_span *active, const struct oteli_limits *limits,
                        const struct oteli_key_value *plan)
{
    const struct place place = place_of(active, plan->key, plan->key_length);
    if (is_new(&place) && active->attribute_count >= limits->attributes) {
        active->unusual.dropped_attributes++;
        oteli_active_warn(active, OTELI_TOO_MANY_ATTRIBUTES);
        return;
    }
    uint8_t *at = oteli_active_room(active, plan->bytes);
    if (at == NULL) {
        active->unusual.dropped_attributes += is_new(&place);
        active->traits.is_unusual |= OTELI_HAS_MORE;
        return;
    }
    keep(active, &place, oteli_key_value_put(at, OTELI_SPAN_ATTRIBUTES, plan));
}

/* Anything: the way that does not mind what it costs. */
static OTELI_COLD void set_planned(struct oteli_active_span *active,
                                   const struct oteli_limits *limits, const char *key,
                                   size_t key_length, const otel_value *value)
{
    struct oteli_key_value plan;
    if (key == NULL || !oteli_key_value_plan(&plan, key, key_length, value, limits->value_length,
                                             limits->value_depth)) {
        oteli_active_warn(active, OTELI_BAD_ATTRIBUTE);
        return;
    }
    if (plan.key_bytes == key_length) {
        put_planned(active, limits, &plan);
        return;
    }
    /* A key that is not UTF-8 is known by what it becomes. */
    char small[256];
    char *clean = plan.key_bytes <= sizeof small ? small : oteli_malloc(plan.key_bytes);
    if (clean == NULL) {
        active->unusual.dropped_attributes++;
        active->traits.is_unusual |= OTELI_HAS_MORE;
        return;
    }
    oteli_utf8_replace(key, key_length, clean);
    plan.key = clean;
    plan.key_length = plan.key_bytes;
    put_planned(active, limits, &plan);
    if (clean != small)
        free(clean);
}

void oteli_active_set(struct oteli_active_span *active, const struct oteli_limits *limits,
                      const char *key, size_t key_length, const otel_value *value)
{
    if (key == NULL || !set_plain(active, limits, key, key_length, value))
        set_planned(active, limits, key, key_length, value);
}

bool oteli_keep_short_utf8(struct oteli_active_span *active, size_t key_length, size_t length)
{
    const uint8_t *at = active->attributes.data + active->attributes.length;
    const char *key = (const char *)at + OTELI_SHORT_HEAD;
    const char *text = key + key_length + OTELI_SHORT_HEAD;
    if (!oteli_utf8_is_valid(key, key_length) || oteli_utf8_valid_prefix(text, length) != length)
        return false;
    oteli_short_keep(active, (const uint8_t *)text + length);
    return true;
}

/* Write the value of one at `at` behind its key, which is made of what was seen; NULL: it takes
 * oteli_active_set. */
static OTELI_INLINE uint8_t *put_short(uint8_t *at, const struct oteli_limits *limits,
                                       size_t key_length, const otel_value *value, oteli_seen seen)
{
    const uint64_t number = (uint64_t)value->as.integer;
    switch (value->type) {
    case OTEL_VALUE_STRING:
        if (value->as.string == NULL || !oteli_short_fits(limits, key_length, value->length))
            return NULL;
        at = oteli_short_string(at, key_length, value->as.string, value->length, &seen);
        break;
    case OTEL_VALUE_INT:
        at = OTELI_LIKELY(number <= OTELI_SHORT_NUMBER_MOST)
                 ? oteli_short_small(at, key_length, number, OTELI_SHORT_INT)
                 : oteli_short_number(at, key_length, number, OTELI_SHORT_INT);
        break;
    case OTEL_VALUE_DOUBLE:
        at = oteli_short_number(at, key_length, oteli_double_bits(value->as.real),
                                OTELI_SHORT_DOUBLE);
        break;
    case OTEL_VALUE_BOOL:
        at = oteli_short_small(at, key_length, value->as.boolean, OTELI_SHORT_BOOL);
        break;
    default:
        return NULL;
    }
    return OTELI_LIKELY(oteli_saw_ascii(seen)) ? at : NULL;
}

/* Set those that are short and have room, from the first on; how many they are. */
static OTELI_INLINE size_t set_short(struct oteli_active_span *active,
                                     const struct oteli_limits *limits,
                                     const otel_attribute *attributes, size_t count)
{
    const struct oteli_buffer *buffer = &active->attributes;
    if (OTELI_UNLIKELY(active->attribute_count + count > limits->attributes) ||
        OTELI_UNLIKELY(buffer->capacity < OTELI_SHORT_ROOM))
        return 0;
    const uint8_t *last = buffer->data + buffer->capacity - OTELI_SHORT_ROOM;
    uint8_t *at = buffer->data + buffer->length;
    const otel_attribute *next = attributes;
    for (const otel_attribute *end = attributes + count; next != end; next++) {
        const otel_slice key = oteli_key_of(next);
        uint64_t filter = active->attribute_filter;
        if (!oteli_short_is_new(&filter, key.data, key.length) || OTELI_UNLIKELY(at > last))
            break;
        const oteli_seen seen = oteli_move(at + OTELI_SHORT_HEAD, key.data, key.length);
        uint8_t *behind = put_short(at, limits, key.length, &next->value, seen);
        if (OTELI_UNLIKELY(behind == NULL))
            break;
        active->attribute_filter = filter;
        at = behind;
    }
    const size_t done = (size_t)(next - attributes);
    active->attribute_count += (uint32_t)done;
    active->attributes.length = (uint32_t)(at - buffer->data);
    return done;
}

/* The first is not short. */
static OTELI_NOINLINE void set_rest(struct oteli_active_span *active,
                                    const struct oteli_limits *limits,
                                    const otel_attribute *attributes, size_t count)
{
    for (size_t i = 0; i < count; i += set_short(active, limits, attributes + i, count - i)) {
        const otel_slice key = oteli_key_of(&attributes[i]);
        oteli_active_set(active, limits, key.data, key.length, &attributes[i].value);
        i++;
    }
}

void oteli_active_set_many(struct oteli_active_span *active, const struct oteli_limits *limits,
                           const otel_attribute *attributes, size_t count)
{
    const size_t done = set_short(active, limits, attributes, count);
    if (OTELI_UNLIKELY(done != count))
        set_rest(active, limits, attributes + done, count - done);
}
