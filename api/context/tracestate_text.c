/* SPDX-License-Identifier: Apache-2.0 */
/* api/context/tracestate_text.c - what a valid tracestate is, and how others are made of it. Any
 * thread.
 *
 * A text is split into members, which point into it, and written again; nothing is allocated.
 *
 * Source: W3C Trace Context Level 2, sections 3.3 and 3.5. */
#include "api/context/tracestate_pool.h"
#include "common/log.h"
#include "common/text/text.h"
#include <otel/tracestate.h>

#include <stdbool.h>
#include <string.h>

enum { LONG_MEMBER = 128, LONGEST_KEY = 256, LONGEST_VALUE = 256 };
enum { LONGEST_TEXT = 32 * 1024 }; /* 32 members of the longest kind, and blanks */
_Static_assert(OTEL_TRACESTATE_SIZE == OTELI_TRACESTATE_BYTES + 1, "the longest, and its NUL");

struct list_member {
    const char *text;
    size_t length;
    size_t key_length;
};

static bool is_key_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_key_character(char c)
{
    return is_key_start(c) || c == '_' || c == '-' || c == '*' || c == '/' || c == '@';
}

static bool is_value_character(char c)
{
    return c >= 0x20 && c <= 0x7e && c != ',' && c != '=';
}

/* key "=" value, without blanks around it. */
static bool parse_member(struct list_member *member)
{
    const char *text = member->text;
    size_t key = 0;
    if (!is_key_start(text[0]))
        return false;
    while (key < member->length && is_key_character(text[key]))
        key++;
    const size_t value = member->length - key - 1;
    if (key == member->length || text[key] != '=' || key > LONGEST_KEY || value == 0 ||
        value > LONGEST_VALUE)
        return false;
    for (size_t i = key + 1; i < member->length; i++)
        if (!is_value_character(text[i]))
            return false;
    member->key_length = key;
    return true;
}

static bool has_key(const struct list_member *members, size_t count, const struct list_member *like)
{
    for (size_t i = 0; i < count; i++)
        if (members[i].key_length == like->key_length &&
            memcmp(members[i].text, like->text, like->key_length) == 0)
            return true;
    return false;
}

/* Split at commas. Returns the number of members kept, or -1: one is malformed, or there are
 * more than W3C's grammar has. */
static int split(const char *text, size_t length, struct list_member *members)
{
    size_t count = 0;
    size_t found = 0;
    otel_slice rest = {text, length};
    otel_slice piece;
    while (oteli_list_next(&rest, &piece)) {
        struct list_member member = {piece.data, piece.length, 0};
        if (!parse_member(&member) || ++found > OTELI_TRACESTATE_MEMBERS)
            return -1;
        if (!has_key(members, count, &member))
            members[count++] = member;
    }
    return (int)count;
}

static size_t joined_length(const struct list_member *members, size_t count)
{
    size_t length = count > 0 ? count - 1 : 0;
    for (size_t i = 0; i < count; i++)
        length += members[i].length;
    return length;
}

/* Take members out until the rest fits: long ones first, then the last. The first `kept` stay
 * as long as there are others. */
static size_t shorten(struct list_member *members, size_t count, size_t kept)
{
    for (size_t i = count; i-- > kept && joined_length(members, count) > OTELI_TRACESTATE_BYTES;) {
        if (members[i].length <= LONG_MEMBER)
            continue;
        memmove(&members[i], &members[i + 1], (count - i - 1) * sizeof *members);
        count--;
    }
    while (joined_length(members, count) > OTELI_TRACESTATE_BYTES)
        count--;
    return count;
}

static size_t join(const struct list_member *members, size_t count, char *out)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != 0)
            out[at++] = ',';
        memcpy(out + at, members[i].text, members[i].length);
        at += members[i].length;
    }
    return at;
}

size_t oteli_tracestate_clean(const char *text, size_t length, char *clean)
{
    struct list_member members[OTELI_TRACESTATE_MEMBERS];
    if (text == NULL || length > LONGEST_TEXT)
        return 0;
    const int found = split(text, length, members);
    if (found <= 0)
        return 0;
    return join(members, shorten(members, (size_t)found, 0), clean);
}

/* --- otel/tracestate.h --- */

/* The members of a text; none if it is not valid. */
static size_t members_of(const char *tracestate, struct list_member *members)
{
    if (tracestate == NULL)
        return 0;
    const size_t length = strnlen(tracestate, LONGEST_TEXT + 1);
    const int found = length <= LONGEST_TEXT ? split(tracestate, length, members) : -1;
    return found > 0 ? (size_t)found : 0;
}

static size_t without(struct list_member *members, size_t count, const char *key)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (strncmp(members[i].text, key, members[i].key_length) != 0 ||
            key[members[i].key_length] != '\0')
            members[left++] = members[i];
    return left;
}

/* The members may lie in `result`. */
static size_t give(const struct list_member *members, size_t count, char *result, size_t size)
{
    char joined[OTELI_TRACESTATE_BYTES];
    const size_t length = join(members, count, joined);
    if (size != 0) {
        const size_t written = length < size ? length : 0;
        memcpy(result, joined, written);
        result[written] = '\0';
    }
    return length;
}

/* key=value in `text`, if this is a member of a tracestate that can be. */
static bool make_member(const char *key, const char *value, char *text, struct list_member *member)
{
    if (key == NULL || value == NULL)
        return false;
    const size_t key_length = strnlen(key, LONGEST_KEY + 1);
    const size_t value_length = strnlen(value, LONGEST_VALUE + 1);
    const size_t length = key_length + 1 + value_length;
    if (length > OTELI_TRACESTATE_BYTES || value_length == 0 || value[value_length - 1] == ' ')
        return false;
    memcpy(text, key, key_length);
    text[key_length] = '=';
    memcpy(text + key_length + 1, value, value_length);
    *member = (struct list_member){text, length, 0};
    return parse_member(member) && member->key_length == key_length;
}

size_t otel_tracestate_get(const char *tracestate, const char *key, char *value, size_t size)
{
    struct list_member members[OTELI_TRACESTATE_MEMBERS];
    const size_t count = key != NULL ? members_of(tracestate, members) : 0;
    const size_t key_length = key != NULL ? strnlen(key, LONGEST_KEY + 1) : 0;
    for (size_t i = 0; i < count; i++) {
        if (members[i].key_length != key_length || memcmp(members[i].text, key, key_length) != 0)
            continue;
        const size_t length = members[i].length - key_length - 1;
        return oteli_slice_fit(value, size, (otel_slice){members[i].text + key_length + 1, length});
    }
    (void)oteli_slice_fit(value, size, (otel_slice){"", 0});
    return SIZE_MAX;
}

size_t otel_tracestate_set(const char *tracestate, const char *key, const char *value, char *result,
                           size_t size)
{
    char text[OTELI_TRACESTATE_BYTES];
    struct list_member members[1 + OTELI_TRACESTATE_MEMBERS];
    size_t count = members_of(tracestate, members + 1);
    if (!make_member(key, value, text, &members[0])) {
        OTELI_LOG(OTEL_LOG_WARN, "\"%.64s\" with the value \"%.64s\" is no member of a tracestate",
                  key != NULL ? key : "", value != NULL ? value : "");
        return give(members + 1, shorten(members + 1, count, 0), result, size);
    }
    count = 1 + without(members + 1, count, key);
    if (count > OTELI_TRACESTATE_MEMBERS)
        count = OTELI_TRACESTATE_MEMBERS;
    return give(members, shorten(members, count, 1), result, size);
}

size_t otel_tracestate_remove(const char *tracestate, const char *key, char *result, size_t size)
{
    struct list_member members[OTELI_TRACESTATE_MEMBERS];
    size_t count = members_of(tracestate, members);
    if (key != NULL)
        count = without(members, count, key);
    return give(members, shorten(members, count, 0), result, size);
}
