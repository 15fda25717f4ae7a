/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/utf8.h - is this UTF-8, how many characters, and how to make it so.
 *
 * Valid means what Unicode's table 3-7 says: no surrogates, no overlong forms, nothing
 * above U+10FFFF. ASCII is recognised eight bytes a step. */
#ifndef OTELI_UTF8_H
#define OTELI_UTF8_H

#include "common/base/internal_api.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many bytes from the start are valid UTF-8; `length` when all are. */
OTELI_INTERNAL_API size_t oteli_utf8_valid_prefix(const char *text, size_t length);

/* The size in bytes of the first `characters` code points of valid UTF-8. */
OTELI_INTERNAL_API size_t oteli_utf8_prefix_bytes(const char *text, size_t length,
                                                  size_t characters);

/* Copy with every bad byte replaced by U+FFFD. Returns the size of the copy, which is at
 * most 3 * length; out == NULL only computes it. */
OTELI_INTERNAL_API size_t oteli_utf8_replace(const char *text, size_t length, char *out);

static inline bool oteli_is_ascii(const char *text, size_t length)
{
    uint64_t seen = 0;
    size_t i = 0;
    for (; i + 8 <= length; i += 8) {
        uint64_t eight;
        memcpy(&eight, text + i, sizeof eight);
        seen |= eight;
    }
    for (; i < length; i++)
        seen |= (uint64_t)(uint8_t)text[i];
    return (seen & UINT64_C(0x8080808080808080)) == 0;
}

static inline bool oteli_utf8_is_valid(const char *text, size_t length)
{
    return oteli_is_ascii(text, length) || oteli_utf8_valid_prefix(text, length) == length;
}

#endif
