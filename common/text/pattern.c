/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/pattern.c - the contract is in pattern.h. Any thread; owns nothing. */
#include "common/text/pattern.h"

/* Bytes of the character at `text`; of what is no UTF-8, each byte is one. */
static size_t character(const char *text, size_t length)
{
    const unsigned char first = (unsigned char)text[0];
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    for (size_t i = 1; i < size; i++)
        if (i >= length || ((unsigned char)text[i] & 0xc0) != 0x80)
            return 1;
    return size;
}

/* Where a piece does not match, only the last star can have been too short: what is before it
 * would match more text in no other way that helps. */
bool oteli_pattern_matches(const char *pattern, const char *text, size_t length)
{
    const char *const end = text + length;
    const char *behind_star = NULL; /* in the pattern … */
    const char *star_end = NULL;    /* … and where the star's text ends so far */
    for (;;) {
        if (*pattern == '*') {
            behind_star = ++pattern;
            star_end = text;
        } else if (text == end && *pattern == '\0') {
            return true;
        } else if (text != end && *pattern == '?') {
            pattern++;
            text += character(text, (size_t)(end - text));
        } else if (text != end && *pattern != '\0' && *pattern == *text) {
            pattern++;
            text++;
        } else if (behind_star != NULL && star_end != end) {
            star_end += character(star_end, (size_t)(end - star_end));
            pattern = behind_star;
            text = star_end;
        } else {
            return false;
        }
    }
}
