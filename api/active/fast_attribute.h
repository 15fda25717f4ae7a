/* SPDX-License-Identifier: Apache-2.0 */
/* api/active/fast_attribute.h - the attributes that most spans have: a short ASCII key that is new,
 * and a short string, an integer, a double or a bool. One pass, with lengths of one byte; any other
 * attribute is left to oteli_active_set, before anything is changed but the filter, which may know
 * a key that no attribute has.
 *
 * Runs on the thread that owns the place, or has the lock of the detached span. */
#ifndef OTELI_FAST_ATTRIBUTE_H
#define OTELI_FAST_ATTRIBUTE_H

#include "api/active/active_span.h"
#include "common/base/copy.h"
#include "common/wire.h"

enum { OTELI_SPAN_ATTRIBUTES = 9, OTELI_KEY_VALUE_KEY = 1, OTELI_KEY_VALUE_VALUE = 2 };
/* Of a key and of a value that are short: a tag and a length each. The field of an AnyValue has the
 * number of the value's type, but for bytes, arrays and maps. */
enum { OTELI_KEY_VALUE_HEADS = 4, OTELI_ANY_STRING = OTEL_VALUE_STRING };

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

/* Whether a key is of a length that goes the short way, and new to a filter, which then knows
 * it. */
static OTELI_INLINE bool oteli_short_is_new(uint64_t *filter, const char *key, size_t key_length)
{
    if (OTELI_UNLIKELY(key_length - OTELI_SHORT_KEY_LEAST >
                       OTELI_SHORT_KEY_MOST - OTELI_SHORT_KEY_LEAST))
        return false;
    const unsigned number = oteli_key_number(key, key_length);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the filter needs no register above */
    if (OTELI_UNLIKELY((*filter >> number & 1) != 0))
        return false;
    *filter |= UINT64_C(1) << number;
    return true;
}

/* The same, and there is room for one more attribute, behind the others. */
static OTELI_INLINE bool oteli_short_begin(struct oteli_active_span *active,
                                           const struct oteli_limits *limits, const char *key,
                                           size_t key_length)
{
    return OTELI_LIKELY(active->attribute_count < limits->attributes) &&
           OTELI_LIKELY(active->attributes.length + OTELI_SHORT_ROOM <=
                        active->attributes.capacity) &&
           oteli_short_is_new(&active->attribute_filter, key, key_length);
}

/* One has been written, up to `end`. */
static OTELI_INLINE void oteli_short_keep(struct oteli_active_span *active, const uint8_t *end)
{
    active->attribute_count++;
    active->attributes.length = (uint32_t)(end - active->attributes.data);
}

/* Where the key of one goes that is written at `at`. */
enum { OTELI_SHORT_HEAD = 4 };

/* A byte in two places of a word: below its length, a field stands in front of its texts. */
static OTELI_INLINE uint32_t oteli_short_twice(size_t length)
{
    uint32_t factor = 0x1000100;
    OTELI_OPAQUE(factor); /* multiply: additions and shifts are more instructions */
    return (uint32_t)length * factor;
}

/* Tags and lengths of one with a value of `any` bytes, in front of its key; in one piece. */
static OTELI_INLINE void oteli_short_put_head(uint8_t *at, size_t key_length, size_t any)
{
    const uint32_t none = OTELI_TAG(OTELI_SPAN_ATTRIBUTES, OTELI_WIRE_BYTES) |
                          OTELI_KEY_VALUE_HEADS << 8 |
                          OTELI_TAG(OTELI_KEY_VALUE_KEY, OTELI_WIRE_BYTES) << 16;
    oteli_put_fixed32(at, none + (uint32_t)any * 0x100 + oteli_short_twice(key_length));
}

/* The value that such a head counts begins with this, and up to 255 in the fourth byte. */
#define OTELI_SHORT_ANY(type, wire_type, length)                                    \
    (OTELI_TAG(OTELI_KEY_VALUE_VALUE, OTELI_WIRE_BYTES) | (uint32_t)(length) << 8 | \
     OTELI_TAG(type, wire_type) << 16)
#define OTELI_SHORT_BOOL OTELI_SHORT_ANY(OTEL_VALUE_BOOL, OTELI_WIRE_VARINT, 2)
#define OTELI_SHORT_INT OTELI_SHORT_ANY(OTEL_VALUE_INT, OTELI_WIRE_VARINT, 2)
#define OTELI_SHORT_DOUBLE OTELI_SHORT_ANY(OTEL_VALUE_DOUBLE, OTELI_WIRE_FIXED64, 9)

/* Of one of these three. */
static inline otel_value_type oteli_short_type(uint32_t any)
{
    return (otel_value_type)(any >> 19);
}

/* Whether a string may go the short way. */
static OTELI_INLINE bool oteli_short_fits(const struct oteli_limits *limits, size_t key_length,
                                          size_t length)
{
    return OTELI_LIKELY(key_length + length <=
                        OTELI_SHORT_INNER_MOST - OTELI_KEY_VALUE_HEADS - 2) &&
           OTELI_LIKELY(length <= limits->value_length);
}

/* Write one at `at` around its key, which is there, and say where it ends: a string, and what it is
 * made of; … */
static OTELI_INLINE uint8_t *oteli_short_string(uint8_t *at, size_t key_length, const char *value,
                                                size_t length, oteli_seen *seen)
{
    oteli_short_put_head(at, key_length, length + 2);
    at += OTELI_SHORT_HEAD + key_length;
    oteli_put_fixed32(at, OTELI_SHORT_ANY(OTELI_ANY_STRING, OTELI_WIRE_BYTES, 2) +
                              oteli_short_twice(length));
    *seen |= oteli_move(at + 4, value, length);
    return at + 4 + length;
}

static inline uint64_t oteli_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Up to two bytes of varint. */
enum { OTELI_SHORT_NUMBER_MOST = 0x3fff };

/* … such a number; any: one of the three above; … */
static OTELI_INLINE uint8_t *oteli_short_small(uint8_t *at, size_t key_length, uint64_t bits,
                                               uint32_t any)
{
    uint8_t *const value = at + OTELI_SHORT_HEAD + key_length;
    if (bits < 0x80) {
        oteli_short_put_head(at, key_length, 2);
        oteli_put_fixed32(value, any | (uint32_t)bits << 24);
        return value + 4;
    }
    oteli_short_put_head(at, key_length, 3);
    const uint64_t apart = bits + (bits & ~UINT64_C(0x7f)); /* 7 bits, 0, 7 bits */
    oteli_put_fixed64(value, (apart << 24) + (any + UINT32_C(0x80000100)));
    return value + 5;
}

/* … any integer, or the bits of a double. */
static OTELI_INLINE uint8_t *oteli_short_number(uint8_t *at, size_t key_length, uint64_t bits,
                                                uint32_t any)
{
    uint8_t *const value = at + OTELI_SHORT_HEAD + key_length;
    uint8_t *end = value + 11;
    oteli_put_fixed32(value, any);
    if (any == OTELI_SHORT_DOUBLE) {
        oteli_put_fixed64(value + 3, bits);
    } else {
        end = oteli_put_varint(value + 3, bits);
        value[1] = (uint8_t)(end - value - 2);
    }
    oteli_short_put_head(at, key_length, (size_t)(end - value) - 2);
    return end;
}

/* OTELI_SHORT_BUT_NOT_ASCII: it is written behind the others, and oteli_keep_short_utf8 or
 * oteli_active_set has to follow. */
enum oteli_short { OTELI_NOT_SHORT = 0, OTELI_SHORT, OTELI_SHORT_BUT_NOT_ASCII };

static OTELI_INLINE enum oteli_short oteli_set_short_string(struct oteli_active_span *active,
                                                            const struct oteli_limits *limits,
                                                            const char *key, size_t key_length,
                                                            const char *value, size_t length)
{
    if (!oteli_short_fits(limits, key_length, length) ||
        !oteli_short_begin(active, limits, key, key_length))
        return OTELI_NOT_SHORT;
    uint8_t *const at = active->attributes.data + active->attributes.length;
    oteli_seen seen = oteli_move(at + OTELI_SHORT_HEAD, key, key_length);
    const uint8_t *end = oteli_short_string(at, key_length, value, length, &seen);
    if (OTELI_UNLIKELY(!oteli_saw_ascii(seen)))
        return OTELI_SHORT_BUT_NOT_ASCII;
    oteli_short_keep(active, end);
    return OTELI_SHORT;
}

/* Keep it if its key and its value, which have these lengths, are UTF-8. */
bool oteli_keep_short_utf8(struct oteli_active_span *active, size_t key_length, size_t length);

typedef uint8_t *oteli_short_put(uint8_t *at, size_t key_length, uint64_t bits, uint32_t any);

/* A number, by one of the two functions above. */
static OTELI_INLINE bool oteli_set_short_number(struct oteli_active_span *active,
                                                const struct oteli_limits *limits, const char *key,
                                                size_t key_length, uint64_t bits, uint32_t any,
                                                oteli_short_put *put)
{
    if (!oteli_short_begin(active, limits, key, key_length))
        return false;
    uint8_t *const at = active->attributes.data + active->attributes.length;
    if (OTELI_UNLIKELY(!oteli_saw_ascii(oteli_move(at + OTELI_SHORT_HEAD, key, key_length))))
        return false;
    oteli_short_keep(active, put(at, key_length, bits, any));
    return true;
}

#endif
