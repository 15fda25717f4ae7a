/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/utf8.c - the contracts are in common/text/utf8.h. Any thread; owns nothing.
 *
 * Source: The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences". */
#include "common/text/utf8.h"

/* The size of the code point at `at`, or 0 when `left` bytes do not begin with one. */
static size_t sequence_size(const uint8_t *at, size_t left)
{
    const uint8_t lead = at[0];
    if (lead < 0x80)
        return 1;
    /* Only the second byte has a range that depends on the lead: it excludes overlong
     * forms (E0, F0), surrogates (ED) and what is above U+10FFFF (F4). */
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t size;
    if (lead >= 0xC2 && lead <= 0xDF) {
        size = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        size = 3;
        if (lead == 0xE0)
            low = 0xA0;
        if (lead == 0xED)
            high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        size = 4;
        if (lead == 0xF0)
            low = 0x90;
        if (lead == 0xF4)
            high = 0x8F;
    } else {
        return 0;
    }
    if (left < size || at[1] < low || at[1] > high)
        return 0;
    for (size_t i = 2; i < size; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    }
    return size;
}

size_t oteli_utf8_valid_prefix(const char *text, size_t length)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t at = 0;
    while (at < length) {
        if (length - at >= 8 && oteli_is_ascii(text + at, 8)) {
            at += 8;
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
