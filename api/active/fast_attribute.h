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

/* Length and last four bytes of a key: enough to tell most keys apart. */
static inline uint64_t oteli_signature(const char *key, size_t length)
{
    uint32_t last = 0;
    if (OTELI_LIKELY(length >= sizeof last))
        memcpy(&last, key + length - sizeof last, sizeof last);
    else
        for (size_t i = 0; i < length; i++)
            last = last << 8 | (uint8_t)key[i];
    return (uint64_t)length << 32 | last;
}

/* One bit of 64 for a signature: a key whose bit no other has set is new. */
static inline uint64_t oteli_signature_bit(uint64_t signature)
{
    return UINT64_C(1) << (signature * UINT64_C(0x9e3779b97f4a7c15) >> 58);
}

/* Four bytes at once, so that they reach memory as one piece. */
static inline void oteli_put_four(uint8_t *at, unsigned a, size_t b, unsigned c, size_t d)
{
    oteli_put_fixed32(at, (uint32_t)(a | b << 8 | c << 16 | d << 24));
}

/* An attribute being written. */
struct oteli_short {
    uint64_t filter;
    uint32_t at; /* of its tag */
    uint8_t *out;
};

/* Whether there is room and the key is new; nothing is changed yet. */
static OTELI_INLINE bool oteli_short_begin(struct oteli_short *made,
                                           const struct oteli_active_span *active,
                                           const struct oteli_limits *limits, const char *key,
                                           size_t key_length)
{
    const uint32_t count = active->attribute_count;
    made->at = active->attributes.length;
    if (OTELI_UNLIKELY(key_length - OTELI_SHORT_KEY_LEAST >
                       OTELI_SHORT_KEY_MOST - OTELI_SHORT_KEY_LEAST) ||
        OTELI_UNLIKELY(count >= limits->attributes) ||
        OTELI_UNLIKELY(active->attributes.capacity - made->at < OTELI_SHORT_ROOM))
        return false;
    const uint64_t bit = oteli_signature_bit(oteli_signature(key, key_length));
    const uint64_t filter = active->attribute_filter;
    made->filter = filter | bit;
    made->out = active->attributes.data + made->at;
    return OTELI_LIKELY((filter & bit) == 0);
}

/* Tags and lengths, and the key; where the AnyValue goes. */
static OTELI_INLINE uint64_t oteli_short_key(const struct oteli_short *made, const char *key,
                                             size_t key_length, size_t inner)
{
    oteli_put_four(made->out, OTELI_TAG(OTELI_SPAN_ATTRIBUTES, OTELI_WIRE_BYTES), inner,
                   OTELI_TAG(OTELI_KEY_VALUE_KEY, OTELI_WIRE_BYTES), key_length);
    return oteli_move(made->out + 4, key, key_length);
}

static OTELI_INLINE bool oteli_short_finish(const struct oteli_short *made,
                                            struct oteli_active_span *active, size_t inner)
{
    active->attribute_filter = made->filter;
    active->attribute_count++;
    active->attributes.length = made->at + 2 + (uint32_t)inner;
    return true;
}

static OTELI_INLINE bool oteli_set_short_string(struct oteli_active_span *active,
                                                const struct oteli_limits *limits, const char *key,
                                                size_t key_length, const char *value, size_t length)
{
    struct oteli_short made;
    const size_t inner = 6 + key_length + length;
    if (OTELI_UNLIKELY(inner > OTELI_SHORT_INNER_MOST) ||
        OTELI_UNLIKELY(length > limits->value_length) ||
        !oteli_short_begin(&made, active, limits, key, key_length))
        return false;
    uint64_t seen = oteli_short_key(&made, key, key_length, inner);
    uint8_t *at = made.out + 4 + key_length;
    oteli_put_four(at, OTELI_TAG(OTELI_KEY_VALUE_VALUE, OTELI_WIRE_BYTES), length + 2,
                   OTELI_TAG(OTELI_ANY_STRING, OTELI_WIRE_BYTES), length);
    seen |= oteli_move(at + 4, value, length);
    return OTELI_LIKELY((seen & OTELI_NOT_ASCII) == 0) && oteli_short_finish(&made, active, inner);
}

static inline uint64_t oteli_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* A bool, an integer or a double; bits: a truth value, or the bytes of the number. */
static OTELI_INLINE bool oteli_set_short_number(struct oteli_active_span *active,
                                                const struct oteli_limits *limits, const char *key,
                                                size_t key_length, otel_value_type type,
                                                uint64_t bits)
{
    struct oteli_short made;
    if (!oteli_short_begin(&made, active, limits, key, key_length))
        return false;
    const bool is_double = type == OTEL_VALUE_DOUBLE;
    uint8_t *at = made.out + 4 + key_length;
    const uint8_t *end = at + 3 + sizeof bits;
    if (is_double)
        oteli_put_fixed64(at + 3, bits);
    else
        end = oteli_put_varint(at + 3, bits);
    const size_t inner = (size_t)(end - made.out) - 2;
    const unsigned wire_type = is_double ? OTELI_WIRE_FIXED64 : OTELI_WIRE_VARINT;
    oteli_put_four(at, OTELI_TAG(OTELI_KEY_VALUE_VALUE, OTELI_WIRE_BYTES), (size_t)(end - at) - 2,
                   OTELI_TAG((unsigned)type, wire_type), at[3]);
    const uint64_t seen = oteli_short_key(&made, key, key_length, inner);
    return OTELI_LIKELY((seen & OTELI_NOT_ASCII) == 0) && oteli_short_finish(&made, active, inner);
}

#endif
