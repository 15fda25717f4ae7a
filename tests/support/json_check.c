/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/json_check.c - the contract is in json_check.h. Any thread; owns nothing.
 *
 * A walk with a stack of brackets, so that no input is too deep for the C stack. */
#include "tests/support/json_check.h"

#include "common/text/utf8.h"
#include <string.h>

struct walk {
    const char *at;
    const char *end;
};

static bool is_next(struct walk *walk, char wanted)
{
    if (walk->at == walk->end || *walk->at != wanted)
        return false;
    walk->at++;
    return true;
}

static void skip_blanks(struct walk *walk)
{
    while (walk->at != walk->end && memchr(" \t\n\r", *walk->at, 4) != NULL)
        walk->at++;
}

static bool word(struct walk *walk, const char *text)
{
    const size_t length = strlen(text);
    if ((size_t)(walk->end - walk->at) < length || memcmp(walk->at, text, length) != 0)
        return false;
    walk->at += length;
    return true;
}

static bool digits(struct walk *walk)
{
    const char *from = walk->at;
    while (walk->at != walk->end && *walk->at >= '0' && *walk->at <= '9')
        walk->at++;
    return walk->at != from;
}

static bool number(struct walk *walk)
{
    (void)is_next(walk, '-');
    if (!is_next(walk, '0') && !digits(walk))
        return false;
    if (is_next(walk, '.') && !digits(walk))
        return false;
    if (is_next(walk, 'e') || is_next(walk, 'E')) {
        if (!is_next(walk, '+'))
            (void)is_next(walk, '-');
        return digits(walk);
    }
    return true;
}

static bool four_digits(struct walk *walk, unsigned *value)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    *value = 0;
    for (unsigned i = 0; i < 4; i++) {
        const char *found =
            walk->at != walk->end && *walk->at != '\0' ? strchr(hex, *walk->at) : NULL;
        if (found == NULL)
            return false;
        const unsigned digit = (unsigned)(found - hex);
        *value = *value << 4 | (digit < 16 ? digit : digit - 6);
        walk->at++;
    }
    return true;
}

static bool escape(struct walk *walk)
{
    unsigned unit;
    if (walk->at == walk->end)
        return false;
    const char letter = *walk->at++;
    if (letter != 'u')
        return letter != '\0' && strchr("\"\\/bfnrt", letter) != NULL;
    if (!four_digits(walk, &unit))
        return false;
    if (unit >= 0xd800 && unit < 0xdc00)
        return word(walk, "\\u") && four_digits(walk, &unit) && unit >= 0xdc00 && unit < 0xe000;
    return unit < 0xdc00 || unit >= 0xe000;
}

static bool string(struct walk *walk)
{
    if (!is_next(walk, '"'))
        return false;
    const char *from = walk->at;
    while (walk->at != walk->end && *walk->at != '"') {
        if ((unsigned char)*walk->at < 0x20)
            return false;
        if (*walk->at++ == '\\' && !escape(walk))
            return false;
    }
    return oteli_utf8_is_valid(from, (size_t)(walk->at - from)) && is_next(walk, '"');
}

static bool scalar(struct walk *walk)
{
    if (walk->at == walk->end)
        return false;
    switch (*walk->at) {
    case '"':
        return string(walk);
    case 't':
        return word(walk, "true");
    case 'f':
        return word(walk, "false");
    case 'n':
        return word(walk, "null");
    default:
        return number(walk);
    }
}

/* A member's name and colon. */
static bool name(struct walk *walk)
{
    skip_blanks(walk);
    if (!string(walk))
        return false;
    skip_blanks(walk);
    return is_next(walk, ':');
}

/* Go into an array or object. *is_empty: it is behind it already. */
static bool open_bracket(struct walk *walk, char *brackets, size_t *depth, bool *is_empty)
{
    const char close = *walk->at++ == '{' ? '}' : ']';
    skip_blanks(walk);
    *is_empty = is_next(walk, close);
    if (*is_empty)
        return true;
    if (*depth == JSON_CHECK_DEPTH)
        return false;
    brackets[(*depth)++] = close;
    return close == ']' || name(walk);
}

bool json_is_valid(const char *text, size_t length)
{
    char brackets[JSON_CHECK_DEPTH];
    size_t depth = 0;
    struct walk walk = {text, text + length};
    for (;;) {
        bool is_value = true;
        skip_blanks(&walk);
        if (walk.at != walk.end && (*walk.at == '{' || *walk.at == '[')) {
            if (!open_bracket(&walk, brackets, &depth, &is_value))
                return false;
        } else if (!scalar(&walk)) {
            return false;
        }
        while (is_value && depth != 0) {
            skip_blanks(&walk);
            if (is_next(&walk, brackets[depth - 1])) {
                depth--;
                continue;
            }
            if (!is_next(&walk, ',') || (brackets[depth - 1] == '}' && !name(&walk)))
                return false;
            is_value = false;
        }
        if (is_value)
            return walk.at == walk.end;
    }
}
