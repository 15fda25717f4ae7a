/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/plain_value.h - most attributes as OTLP KeyValue bytes, in one pass: a text, a number
 * or a truth value that is kept as it is, and so is its key. Others need a plan (key_value.h).
 *
 * Any thread; nothing is kept, and nothing allocates. */
#ifndef OTELI_PLAIN_VALUE_H
#define OTELI_PLAIN_VALUE_H

#include "api/encode/leaf_value.h"
#include "common/base/atomic.h"
#include "common/wire.h"

/* Room for one; 0: it is not such a one. */
static inline size_t oteli_plain_room(otel_slice key, const otel_value *value, size_t length_limit)
{
    enum { HEADS = 4 * 6, NUMBER = 16 };
    if (key.length - 1 >= OTELI_VALUE_LARGEST || value->type > OTEL_VALUE_DOUBLE)
        return 0;
    if (value->type != OTEL_VALUE_STRING)
        return HEADS + NUMBER + key.length;
    const size_t most = length_limit < OTELI_VALUE_LARGEST ? length_limit : OTELI_VALUE_LARGEST;
    if (value->as.string == NULL || value->length > most)
        return 0;
    return HEADS + key.length + value->length;
}

/* Tag and length, of a field whose tag is one byte. */
static inline uint8_t *oteli_plain_head(uint8_t *at, uint32_t field, size_t length)
{
    *at++ = (uint8_t)OTELI_TAG(field, OTELI_WIRE_BYTES);
    if (OTELI_UNLIKELY(length >= 0x80))
        return oteli_put_varint(at, length);
    *at++ = (uint8_t)length;
    return at;
}

/* oteli_bytes_field_size of such a field, which mostly is short. */
static inline size_t oteli_plain_size(size_t length)
{
    return OTELI_LIKELY(length < 0x80) ? 2 + length : oteli_bytes_field_size(1, length);
}

/* NULL: a text is no UTF-8, and what was written is of no use. */
static inline uint8_t *oteli_plain_put(uint8_t *at, uint32_t field, otel_slice key,
                                       const otel_value *value)
{
    enum { KEY = 1, VALUE = 2, STRING = OTEL_VALUE_STRING };
    uint8_t number[16];
    const bool is_string = value->type == OTEL_VALUE_STRING;
    const size_t any = is_string ? oteli_plain_size(value->length)
                                 : (size_t)(oteli_leaf_put(number, value, 0) - number);
    at = oteli_plain_head(at, field, oteli_plain_size(key.length) + oteli_plain_size(any));
    at = oteli_text_copy(oteli_plain_head(at, KEY, key.length), key.data, key.length);
    if (at == NULL)
        return NULL;
    at = oteli_plain_head(at, VALUE, any);
    if (is_string)
        return oteli_text_copy(oteli_plain_head(at, STRING, value->length), value->as.string,
                               value->length);
    memcpy(at, number, sizeof number);
    return at + any;
}

#endif
