/* SPDX-License-Identifier: Apache-2.0 */
/* common/base/copy.h - copy short texts without a call, and see whether they are ASCII.
 *
 * A text is moved in one or two pieces of 16, 8 or 4 bytes, of which the second may
 * overlap the first. Copying the copy again moves the same pieces, so that the processor
 * can forward each store to its load: a text that was just written is read without
 * waiting for the cache. Any thread. */
#ifndef OTELI_COPY_H
#define OTELI_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define OTELI_NOT_ASCII UINT64_C(0x8080808080808080)

/* Copy 8 bytes; gives them back, for what the caller wants to know of them. */
static inline uint64_t oteli_move_8(void *to, const void *from)
{
    uint64_t piece;
    memcpy(&piece, from, sizeof piece);
    memcpy(to, &piece, sizeof piece);
    return piece;
}

/* Copy 8 to 16 bytes as one piece of 16, of which those beyond them are any; gives back an OR of
 * all that were copied. */
static inline uint64_t oteli_move_8_to_16(void *to, const void *from, size_t length)
{
    typedef uint64_t piece __attribute__((vector_size(16), aligned(1), may_alias));
    uint64_t first;
    uint64_t last;
    memcpy(&first, from, sizeof first);
    memcpy(&last, (const char *)from + length - sizeof last, sizeof last);
    const uint64_t seen = first | last;
    const unsigned known = 8 * (16 - (unsigned)length); /* bits of the last are in the first, too */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    last >>= known & 63;
#else
    last <<= known & 63;
#endif
    *(piece *)to = (piece){first, last};
    return seen;
}

static inline uint64_t oteli_move_4(void *to, const void *from)
{
    uint32_t piece;
    memcpy(&piece, from, sizeof piece);
    memcpy(to, &piece, sizeof piece);
    return piece;
}

static inline uint64_t oteli_move_1(void *to, const void *from)
{
    const uint8_t piece = *(const uint8_t *)from;
    *(uint8_t *)to = piece;
    return piece;
}

/* The same for 1 to 48 bytes, without a loop; pieces of 16 bytes above 16. */
enum { OTELI_SHORT_TEXT = 48 };
static inline uint64_t oteli_move_short(void *to, const void *from, size_t length)
{
    typedef uint64_t piece __attribute__((vector_size(16), aligned(1), may_alias));
    char *out = to;
    const char *in = from;
    if (length - 8 <= 8)
        return oteli_move_8(out, in) | oteli_move_8(out + length - 8, in + length - 8);
    if (length > 16) {
        const piece last = *(const piece *)(const void *)(in + length - 16);
        piece seen = *(const piece *)(const void *)in;
        *(piece *)(void *)out = seen;
        if (length > 32) {
            const piece middle = *(const piece *)(const void *)(in + 16);
            *(piece *)(void *)(out + 16) = middle;
            seen |= middle;
        }
        *(piece *)(void *)(out + length - 16) = last;
        seen |= last;
        return seen[0] | seen[1];
    }
    if (length >= 4)
        return oteli_move_4(out, in) | oteli_move_4(out + length - 4, in + length - 4);
    uint64_t seen = oteli_move_1(out, in);
    if (length > 1)
        seen |= oteli_move_1(out + 1, in + 1);
    return seen | oteli_move_1(out + length - 1, in + length - 1);
}

/* Copy, and return an OR of all bytes: ASCII if it has no bit of OTELI_NOT_ASCII. For any
 * length, but meant for those that are mostly below 64. */
static inline uint64_t oteli_move(void *to, const void *from, size_t length)
{
    char *out = to;
    const char *in = from;
    uint64_t seen = 0;
    if (length >= 8) {
        seen = oteli_move_8(out, in) | oteli_move_8(out + length - 8, in + length - 8);
        for (size_t i = 8; i + 8 < length; i += 8)
            seen |= oteli_move_8(out + i, in + i);
        return seen;
    }
    if (length >= 4)
        return oteli_move_4(out, in) | oteli_move_4(out + length - 4, in + length - 4);
    for (size_t i = 0; i < length; i++) {
        out[i] = in[i];
        seen |= (uint8_t)in[i];
    }
    return seen;
}

#endif
