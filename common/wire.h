/* SPDX-License-Identifier: Apache-2.0 */
/* common/wire.h - write protobuf in a single pass, and read what we wrote.
 *
 * Writers take a cursor with enough room behind it and return the cursor after what they
 * wrote: the caller has computed the room with the _size functions. Nothing here checks
 * bounds; readers trust their input and are for our own bytes only (a receiver's answer
 * is walked with every length checked, in exporters/otlp/protocol/response.c). Checked byte by byte
 * against protobuf-c in tests.
 *
 * Source: protobuf encoding, protobuf.dev/programming-guides/encoding. */
#ifndef OTELI_WIRE_H
#define OTELI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    OTELI_WIRE_VARINT = 0,
    OTELI_WIRE_FIXED64 = 1,
    OTELI_WIRE_BYTES = 2,
    OTELI_WIRE_FIXED32 = 5
};
enum { OTELI_VARINT_MAX = 10 };

#define OTELI_TAG(field, wire_type) (((uint32_t)(field) << 3) | (uint32_t)(wire_type))

static inline size_t oteli_varint_size(uint64_t value)
{
    /* 7 bits a byte: ceil(bits / 7) without a division, for 1 to 64 bits */
    const unsigned bits = 64u - (unsigned)__builtin_clzll(value | 1u);
    return (bits * 9u + 64u) >> 6;
}

static inline uint8_t *oteli_put_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

static inline uint8_t *oteli_put_bytes(uint8_t *at, const void *bytes, size_t length)
{
    if (length != 0)
        memcpy(at, bytes, length);
    return at + length;
}

/* Fixed-width fields are little-endian on the wire, whatever the machine is. */
static inline uint64_t oteli_little_endian_64(uint64_t value)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(value);
#else
    return value;
#endif
}

static inline uint8_t *oteli_put_fixed64(uint8_t *at, uint64_t value)
{
    value = oteli_little_endian_64(value);
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static inline uint64_t oteli_get_fixed64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return oteli_little_endian_64(value);
}

static inline uint8_t *oteli_put_fixed32(uint8_t *at, uint32_t value)
{
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    value = __builtin_bswap32(value);
#endif
    memcpy(at, &value, sizeof value); /* at once: compilers may leave single bytes as they are */
    return at + sizeof value;
}

static inline uint32_t oteli_get_fixed32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint8_t *oteli_put_tag(uint8_t *at, uint32_t field, uint32_t wire_type)
{
    return oteli_put_varint(at, OTELI_TAG(field, wire_type));
}

/* A length-delimited field: tag, length, bytes. */
static inline size_t oteli_bytes_field_size(uint32_t field, size_t length)
{
    return oteli_varint_size(OTELI_TAG(field, OTELI_WIRE_BYTES)) + oteli_varint_size(length) +
           length;
}

static inline uint8_t *oteli_put_bytes_head(uint8_t *at, uint32_t field, size_t length)
{
    return oteli_put_varint(oteli_put_tag(at, field, OTELI_WIRE_BYTES), length);
}

static inline uint8_t *oteli_put_bytes_field(uint8_t *at, uint32_t field, const void *bytes,
                                             size_t length)
{
    return oteli_put_bytes(oteli_put_bytes_head(at, field, length), bytes, length);
}

static inline size_t oteli_varint_field_size(uint32_t field, uint64_t value)
{
    return oteli_varint_size(OTELI_TAG(field, OTELI_WIRE_VARINT)) + oteli_varint_size(value);
}

static inline uint8_t *oteli_put_varint_field(uint8_t *at, uint32_t field, uint64_t value)
{
    return oteli_put_varint(oteli_put_tag(at, field, OTELI_WIRE_VARINT), value);
}

static inline uint64_t oteli_get_varint(const uint8_t **at)
{
    uint64_t value = 0;
    unsigned shift = 0;
    uint8_t byte;
    do {
        byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

/* One field of a message as it stands in memory. */
struct oteli_field {
    uint32_t number;
    uint32_t wire_type;
    uint64_t value;       /* varint, fixed64 or fixed32 */
    const uint8_t *bytes; /* length-delimited */
    size_t length;
    const uint8_t *start; /* of the field's tag */
};

/* Read the field at *at and move *at behind it; false at the end. */
static inline bool oteli_next_field(const uint8_t **at, const uint8_t *end,
                                    struct oteli_field *field)
{
    if (*at >= end)
        return false;
    field->start = *at;
    const uint64_t tag = oteli_get_varint(at);
    field->number = (uint32_t)(tag >> 3);
    field->wire_type = (uint32_t)(tag & 7);
    field->value = 0;
    field->bytes = NULL;
    field->length = 0;
    switch (field->wire_type) {
    case OTELI_WIRE_VARINT:
        field->value = oteli_get_varint(at);
        break;
    case OTELI_WIRE_FIXED64:
        field->value = oteli_get_fixed64(*at);
        *at += 8;
        break;
    case OTELI_WIRE_FIXED32:
        field->value = oteli_get_fixed32(*at);
        *at += 4;
        break;
    default:
        field->length = (size_t)oteli_get_varint(at);
        field->bytes = *at;
        *at += field->length;
        break;
    }
    return true;
}

#endif
