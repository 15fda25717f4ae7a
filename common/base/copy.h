/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/copy.h - copy short texts without a call, and see whether they are ASCII.
 *
 * A text is moved in pieces of 16, 8, 4, 2 or 1 bytes, of which the last may overlap the one
 * before. Copying the copy again moves the same pieces, so that the processor can forward each
 * store to its load: a text that was just written is read without waiting for the cache. Any
 * thread. */
#ifndef OTELI_COPY_H
#define OTELI_COPY_H

#include "common/base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define OTELI_NOT_ASCII UINT64_C(0x8080808080808080)

/* An OR of bytes. */
typedef uint64_t oteli_seen __attribute__((vector_size(16)));

static inline bool oteli_saw_ascii(oteli_seen seen)
{
#ifdef __SSE2__
    return _mm_movemask_epi8((__m128i)seen) == 0;
#else
    return ((seen[0] | seen[1]) & OTELI_NOT_ASCII) == 0;
#endif
}

/* Copy 8 bytes; gives them back, for what the caller wants to know of them. */
static inline uint64_t oteli_move_8(void *to, const void *from)
{
    uint64_t piece;
    memcpy(&piece, from, sizeof piece);
    memcpy(to, &piece, sizeof piece);
    return piece;
}

/* 8 to 16 bytes. */
static inline uint64_t oteli_move_8_twice(void *to, const void *from, size_t length)
{
    const size_t last = length - 8;
    return oteli_move_8(to, from) | oteli_move_8((char *)to + last, (const char *)from + last);
}

static inline unsigned oteli_move_4(void *to, const void *from)
{
    uint32_t piece;
    memcpy(&piece, from, sizeof piece);
    memcpy(to, &piece, sizeof piece);
    return piece;
}

static inline unsigned oteli_move_2(void *to, const void *from)
{
    uint16_t piece;
    memcpy(&piece, from, sizeof piece);
    memcpy(to, &piece, sizeof piece);
    return piece;
}

/* 17 bytes and more, in pieces of 16. */
static inline oteli_seen oteli_move_long(void *to, const void *from, size_t length)
{
    typedef uint64_t piece __attribute__((vector_size(16), aligned(1), may_alias));
    char *const out = to;
    const char *const in = from;
    const piece last = *(const piece *)(const void *)(in + length - sizeof last);
    piece seen = *(const piece *)(const void *)in;
    *(piece *)(void *)out = seen;
    for (size_t i = sizeof seen; i + sizeof seen < length; i += sizeof seen) {
        const piece middle = *(const piece *)(const void *)(in + i);
        *(piece *)(void *)(out + i) = middle;
        seen |= middle;
    }
    *(piece *)(void *)(out + length - sizeof last) = last;
    return seen | last;
}

/* Copy, and return an OR of all bytes. For any length, but meant for those that are mostly below
 * 64. */
static inline oteli_seen oteli_move(void *to, const void *from, size_t length)
{
    char *const out = to;
    const char *const in = from;
    if (OTELI_LIKELY(length >= 8)) {
        if (length > 16)
            return oteli_move_long(out, in, length);
        return (oteli_seen){oteli_move_8_twice(out, in, length)};
    }
    if (length >= 4)
        return (oteli_seen){oteli_move_4(out, in) |
                            oteli_move_4(out + length - 4, in + length - 4)};
    if (length >= 2)
        return (oteli_seen){oteli_move_2(out, in) |
                            oteli_move_2(out + length - 2, in + length - 2)};
    if (length == 0)
        return (oteli_seen){0};
    *out = *in;
    return (oteli_seen){(uint8_t)*in};
}

#endif
