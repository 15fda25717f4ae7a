/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/fast_attribute.h - the attributes that most spans have: a short ASCII key that is new,
 * and a short string, an integer, a double or a bool. One pass, with lengths of one byte; any other
 * attribute is left to oteli_active_set, before anything is changed.
 *
 * Runs on the thread that owns the place, or has the lock of the detached span. */
#ifndef OTELI_FAST_ATTRIBUTE_H
#define OTELI_FAST_ATTRIBUTE_H

#include "api/active/active_span.h"
#include "common/base/copy.h"
#include "common/wire.h"

enum { OTELI_SPAN_ATTRIBUTES = 9, OTELI_KEY_VALUE_KEY = 1, OTELI_KEY_VALUE_VALUE = 2 };
/* The field of an AnyValue has the number of the value's type, but for bytes, arrays and maps. */
enum { OTELI_ANY_STRING = OTEL_VALUE_STRING };

enum {
    OTELI_SHORT_KEY_LEAST = 4,
    OTELI_SHORT_KEY_MOST = 100,
    OTELI_SHORT_INNER_MOST = 127, /* of a KeyValue, so that its length is one byte */
    OTELI_SHORT_ROOM = 144        /* for any of them, and for copying in pieces */
};

/* A number below 64 of a key, by its length, the four bytes in its middle and its last four. The
 * factor was searched for: the keys that spans have together by the semantic conventions, as of
 * HTTP, databases, RPC and messaging, have different numbers. */
static inline unsigned oteli_key_number(const char *key, size_t length)
{
    uint32_t middle = 0;
    uint32_t last = 0;
    if (OTELI_LIKELY(length >= sizeof last)) {
        memcpy(&middle, key + length / 2 - 2, sizeof middle);
        memcpy(&last, key + length - sizeof last, sizeof last);
    } else {
        for (size_t i = 0; i < length; i++)
            last = last << 8 | (uint8_t)key[i];
    }
    return (middle + 2 * last + (uint32_t)length) * UINT32_C(0x4750f363) >> 26;
}

/* Its bit in filters: a key whose bit no other has set is new. */
static inline uint64_t oteli_key_bit(const char *key, size_t length)
{
    return UINT64_C(1) << oteli_key_number(key, length);
}

/* Four bytes at once, so that they reach memory as one piece. */
static inline void oteli_put_four(uint8_t *at, unsigned a, size_t b, unsigned c, size_t d)
{
    oteli_put_fixed32(at, (uint32_t)(a | b << 8 | c << 16 | d << 24));
}

/* Whether one more may go the short way, if its key is new. */
static OTELI_INLINE bool oteli_short_has_room(const struct oteli_active_span *active,
                                              const struct oteli_limits *limits)
{
    return OTELI_LIKELY(active->attribute_count < limits->attributes) &&
           OTELI_LIKELY(active->attributes.capacity - active->attributes.length >=
                        OTELI_SHORT_ROOM);
}

/* The bit of a key; 0: its length is not one of those that go the short way. */
static OTELI_INLINE uint64_t oteli_short_bit(const char *key, size_t key_length)
{
    if (OTELI_UNLIKELY(key_length - OTELI_SHORT_KEY_LEAST >
                       OTELI_SHORT_KEY_MOST - OTELI_SHORT_KEY_LEAST))
        return 0;
    return oteli_key_bit(key, key_length);
}

/* Tags and lengths, and the key; what it is made of. */
static OTELI_INLINE uint64_t oteli_short_key(uint8_t *at, const char *key, size_t key_length,
                                             size_t inner)
{
    oteli_put_four(at, OTELI_TAG(OTELI_SPAN_ATTRIBUTES, OTELI_WIRE_BYTES), inner,
                   OTELI_TAG(OTELI_KEY_VALUE_KEY, OTELI_WIRE_BYTES), key_length);
    return oteli_move(at + 4, key, key_length);
}

/* Write an attribute at `at`, and say where it ends, and what texts are made of; NULL: it is not
 * short. */
static OTELI_INLINE uint8_t *oteli_short_string(uint8_t *at, const struct oteli_limits *limits,
                                                const char *key, size_t key_length,
                                                const char *value, size_t length, uint64_t *seen)
{
    const size_t inner = 6 + key_length + length;
    if (OTELI_UNLIKELY(inner > OTELI_SHORT_INNER_MOST) ||
        OTELI_UNLIKELY(length > limits->value_length))
        return NULL;
    *seen = oteli_short_key(at, key, key_length, inner);
    uint8_t *const any = at + 4 + key_length;
    oteli_put_four(any, OTELI_TAG(OTELI_KEY_VALUE_VALUE, OTELI_WIRE_BYTES), length + 2,
                   OTELI_TAG(OTELI_ANY_STRING, OTELI_WIRE_BYTES), length);
    *seen |= oteli_move(any + 4, value, length);
    return any + 4 + length;
}

static inline uint64_t oteli_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* The same of a bool, an integer or a double; bits: a truth value, or the bytes of the number.
 * NULL: the key is not ASCII. */
static OTELI_INLINE uint8_t *oteli_short_number(uint8_t *at, const char *key, size_t key_length,
                                                otel_value_type type, uint64_t bits)
{
    const bool is_double = type == OTEL_VALUE_DOUBLE;
    const bool is_small = !is_double && bits >> 14 == 0; /* two bytes at most, without a loop */
    uint8_t *const any = at + 4 + key_length;
    uint8_t *end = any + 4 + (bits > 0x7f);
    unsigned first = (unsigned)bits | (unsigned)(bits > 0x7f) << 7;
    any[4] = (uint8_t)(bits >> 7);
    if (OTELI_UNLIKELY(!is_small)) {
        end = is_double ? oteli_put_fixed64(any + 3, bits) : oteli_put_varint(any + 3, bits);
        first = any[3];
    }
    const unsigned wire_type = is_double ? OTELI_WIRE_FIXED64 : OTELI_WIRE_VARINT;
    oteli_put_four(any, OTELI_TAG(OTELI_KEY_VALUE_VALUE, OTELI_WIRE_BYTES), (size_t)(end - any) - 2,
                   OTELI_TAG((unsigned)type, wire_type), first & 0xff);
    const uint64_t seen = oteli_short_key(at, key, key_length, (size_t)(end - at) - 2);
    return OTELI_LIKELY((seen & OTELI_NOT_ASCII) == 0) ? end : NULL;
}

/* It has been written, up to `end`. False: it was not. */
static OTELI_INLINE bool oteli_short_keep(struct oteli_active_span *active, uint64_t bit,
                                          const uint8_t *end)
{
    if (OTELI_UNLIKELY(end == NULL))
        return false;
    active->attribute_filter |= bit;
    active->attribute_count++;
    active->attributes.length = (uint32_t)(end - active->attributes.data);
    return true;
}

/* OTELI_SHORT_BUT_NOT_ASCII: it is written behind the others, and oteli_keep_short_utf8 or
 * oteli_active_set has to follow. */
enum oteli_short { OTELI_NOT_SHORT = 0, OTELI_SHORT, OTELI_SHORT_BUT_NOT_ASCII };

static OTELI_INLINE enum oteli_short oteli_set_short_string(struct oteli_active_span *active,
                                                            const struct oteli_limits *limits,
                                                            const char *key, size_t key_length,
                                                            const char *value, size_t length)
{
    if (OTELI_UNLIKELY(key_length + length > OTELI_SHORT_INNER_MOST)) /* soon found out */
        return OTELI_NOT_SHORT;
    const uint64_t bit = oteli_short_bit(key, key_length);
    if (bit == 0 || OTELI_UNLIKELY((active->attribute_filter & bit) != 0) ||
        !oteli_short_has_room(active, limits))
        return OTELI_NOT_SHORT;
    uint8_t *at = active->attributes.data + active->attributes.length;
    uint64_t seen;
    const uint8_t *end = oteli_short_string(at, limits, key, key_length, value, length, &seen);
    if (OTELI_UNLIKELY(end == NULL))
        return OTELI_NOT_SHORT;
    if (OTELI_UNLIKELY((seen & OTELI_NOT_ASCII) != 0))
        return OTELI_SHORT_BUT_NOT_ASCII;
    (void)oteli_short_keep(active, bit, end);
    return OTELI_SHORT;
}

/* Keep it if its key and its value, which have these lengths, are UTF-8. */
bool oteli_keep_short_utf8(struct oteli_active_span *active, size_t key_length, size_t length);

static OTELI_INLINE bool oteli_set_short_number(struct oteli_active_span *active,
                                                const struct oteli_limits *limits, const char *key,
                                                size_t key_length, otel_value_type type,
                                                uint64_t bits)
{
    const uint64_t bit = oteli_short_bit(key, key_length);
    if (bit == 0 || OTELI_UNLIKELY((active->attribute_filter & bit) != 0) ||
        !oteli_short_has_room(active, limits))
        return false;
    uint8_t *at = active->attributes.data + active->attributes.length;
    return oteli_short_keep(active, bit, oteli_short_number(at, key, key_length, type, bits));
}

#endif
