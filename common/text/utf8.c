/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/utf8.c - the contracts are in common/text/utf8.h. Any thread; owns nothing.
 *
 * Source: The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences". */
#include "common/text/utf8.h"

/* The first of the next bytes is the lowest, whatever the machine is. */
static inline uint64_t next_eight(const uint8_t *at)
{
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    eight = __builtin_bswap64(eight);
#endif
    return eight;
}

static inline uint32_t next_four(const uint8_t *at)
{
    uint32_t four;
    memcpy(&four, at, sizeof four);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    four = __builtin_bswap32(four);
#endif
    return four;
}

/* The size of the code point at `at`, which is not ASCII, or 0 when `left` bytes do not begin with
 * one. Masks tell leads and what follows; beside them, only the second byte has a range that
 * depends on the lead: it excludes overlong forms (C0, C1, E0, F0), surrogates (ED) and what is
 * above U+10FFFF (F4). */
static inline size_t sequence_size(const uint8_t *at, size_t left)
{
    uint32_t four = 0;
    if (left >= sizeof four)
        four = next_four(at);
    else
        for (size_t i = 0; i < left; i++)
            four |= (uint32_t)at[i] << 8 * i;
    if ((four & 0xC0E0) == 0x80C0)
        return (four & 0x1E) != 0 ? 2 : 0;
    if ((four & 0xC0C0F0) == 0x8080E0) {
        const uint32_t range = four & 0x200F;
        return range != 0 && range != 0x200D ? 3 : 0;
    }
    if ((four & 0xC0C0C0F8) != 0x808080F0)
        return 0;
    const uint32_t range = four & 0x3007;
    return range == 4 || ((range & 4) == 0 && range != 0) ? 4 : 0;
}

/* How many of the next 8 bytes, or of the `left` ones, are ASCII from the first on. */
static inline size_t ascii_of_eight(const uint8_t *at, size_t left)
{
    if (left < 8) {
        size_t good = 0;
        while (good < left && at[good] < 0x80)
            good++;
        return good;
    }
    const uint64_t bad = next_eight(at) & UINT64_C(0x8080808080808080);
    return bad == 0 ? 8 : (size_t)__builtin_ctzll(bad) / 8;
}

size_t oteli_utf8_valid_prefix(const char *text, size_t length)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t at = 0;
    while (at < length) {
        if (bytes[at] < 0x80) {
            at += ascii_of_eight(bytes + at, length - at);
            continue;
        }
        const size_t size = sequence_size(bytes + at, length - at);
        if (size == 0)
            break;
        at += size;
    }
    return at;
}

size_t oteli_utf8_prefix_bytes(const char *text, size_t length, size_t characters)
{
    if (characters >= length)
        return length;
    size_t at = 0;
    while (at < length) {
        if (characters >= 8 && length - at >= 8 && oteli_is_ascii(text + at, 8)) {
            at += 8;
            characters -= 8;
            continue;
        }
        const bool starts_one = ((uint8_t)text[at] & 0xC0) != 0x80;
        if (starts_one && characters == 0)
            break;
        characters -= starts_one;
        at++;
    }
    return at;
}

size_t oteli_utf8_replace(const char *text, size_t length, char *out)
{
    static const char replacement[] = {(char)0xEF, (char)0xBF, (char)0xBD}; /* U+FFFD */
    size_t at = 0;
    size_t written = 0;
    while (at < length) {
        const size_t good = oteli_utf8_valid_prefix(text + at, length - at);
        if (out != NULL && good != 0)
            memcpy(out + written, text + at, good);
        written += good;
        at += good;
        if (at == length)
            break;
        if (out != NULL)
            memcpy(out + written, replacement, sizeof replacement);
        written += sizeof replacement;
        at++;
    }
    return written;
}
