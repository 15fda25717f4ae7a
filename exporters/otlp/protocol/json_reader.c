/* SPDX-License-Identifier: Apache-2.0 */
/* exporters/otlp/protocol/json_reader.c - the contracts are in json_reader.h. Owns nothing. */
#include "exporters/otlp/protocol/json_reader.h"

#include "common/text/text.h"
#include "common/text/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct oteli_json oteli_json_begin(const char *text, size_t length)
{
    return (struct oteli_json){.at = text, .end = text + length};
}

void oteli_json_refuse(struct oteli_json *json)
{
    json->failed = true;
    json->at = json->end;
}

static void skip_blanks(struct oteli_json *json)
{
    while (json->at != json->end &&
           (*json->at == ' ' || *json->at == '\t' || *json->at == '\n' || *json->at == '\r'))
        json->at++;
}

char oteli_json_next(struct oteli_json *json)
{
    skip_blanks(json);
    return json->at != json->end ? *json->at : '\0';
}

static bool take(struct oteli_json *json, char wanted)
{
    if (oteli_json_next(json) != wanted)
        return false;
    json->at++;
    return true;
}

bool oteli_json_end(struct oteli_json *json)
{
    skip_blanks(json);
    return !json->failed && json->depth == 0 && json->at == json->end;
}

static bool enter(struct oteli_json *json, char mark)
{
    if (json->failed || json->depth == OTELI_JSON_DEPTH || !take(json, mark)) {
        oteli_json_refuse(json);
        return false;
    }
    json->depth++;
    return true;
}

bool oteli_json_object(struct oteli_json *json)
{
    return enter(json, '{');
}

bool oteli_json_array(struct oteli_json *json)
{
    return enter(json, '[');
}

/* Go over the comma to what comes next. False: there is the end, or something wrong. */
static bool go_on(struct oteli_json *json, bool *first, char end)
{
    if (json->failed)
        return false;
    const bool is_first = *first;
    *first = false;
    if (take(json, end)) {
        json->depth--;
        return false;
    }
    if (is_first || take(json, ','))
        return true;
    oteli_json_refuse(json);
    return false;
}

bool oteli_json_member(struct oteli_json *json, bool *first, otel_slice *key)
{
    if (!go_on(json, first, '}') || !oteli_json_string(json, key))
        return false;
    if (take(json, ':'))
        return true;
    oteli_json_refuse(json);
    return false;
}

bool oteli_json_element(struct oteli_json *json, bool *first)
{
    return go_on(json, first, ']');
}

bool oteli_json_is(otel_slice key, const char *name)
{
    return oteli_is_text(key, name);
}

static bool take_word(struct oteli_json *json, const char *word)
{
    const size_t length = strlen(word);
    skip_blanks(json);
    if ((size_t)(json->end - json->at) < length || memcmp(json->at, word, length) != 0)
        return false;
    json->at += length;
    return true;
}

bool oteli_json_null(struct oteli_json *json)
{
    return !json->failed && take_word(json, "null");
}

static size_t take_digits(struct oteli_json *json)
{
    const char *const start = json->at;
    while (json->at != json->end && *json->at >= '0' && *json->at <= '9')
        json->at++;
    return (size_t)(json->at - start);
}

static bool take_one_of(struct oteli_json *json, char one, char other)
{
    if (json->at == json->end || (*json->at != one && *json->at != other))
        return false;
    json->at++;
    return true;
}

/* Behind a zero at the beginning no other digit can stand, and none is taken. */
static bool scan_number(struct oteli_json *json)
{
    (void)take_one_of(json, '-', '-');
    if (!take_one_of(json, '0', '0') && take_digits(json) == 0)
        return false;
    if (take_one_of(json, '.', '.') && take_digits(json) == 0)
        return false;
    if (!take_one_of(json, 'e', 'E'))
        return true;
    (void)take_one_of(json, '+', '-');
    return take_digits(json) != 0;
}

bool oteli_json_number(struct oteli_json *json, otel_slice *number)
{
    skip_blanks(json);
    number->data = json->at;
    if (json->failed || !scan_number(json)) {
        oteli_json_refuse(json);
        return false;
    }
    number->length = (size_t)(json->at - number->data);
    return true;
}

/* One character or escape of a string. */
static bool scan_character(struct oteli_json *json)
{
    if ((unsigned char)*json->at < 0x20)
        return false;
    if (*json->at++ != '\\')
        return true;
    if (json->at == json->end)
        return false;
    const char escape = *json->at++;
    if (escape != 'u')
        return escape != '\0' && strchr("\"\\/bfnrt", escape) != NULL;
    for (unsigned i = 0; i < 4; i++, json->at++)
        if (json->at == json->end || oteli_hex_digit(*json->at) < 0)
            return false;
    return true;
}

bool oteli_json_string(struct oteli_json *json, otel_slice *string)
{
    if (json->failed || !take(json, '"')) {
        oteli_json_refuse(json);
        return false;
    }
    string->data = json->at;
    bool is_good = true;
    while (is_good && json->at != json->end && *json->at != '"')
        is_good = scan_character(json);
    string->length = (size_t)(json->at - string->data);
    if (is_good && take_one_of(json, '"', '"') && oteli_utf8_is_valid(string->data, string->length))
        return true;
    oteli_json_refuse(json);
    return false;
}

static uint32_t parse_unit(const char *digits)
{
    uint32_t unit = 0;
    for (unsigned i = 0; i < 4; i++)
        unit = unit << 4 | (uint32_t)oteli_hex_digit(digits[i]);
    return unit;
}

/* Read the code point whose escape stands at `at`, behind the backslash; 0: it is none that can
 * stand in a text. */
static uint32_t take_unit(const char **at, const char *end)
{
    uint32_t code = parse_unit(*at + 1);
    *at += 5;
    if (code < 0xd800 || code > 0xdfff)
        return code;
    if (code > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return 0;
    const uint32_t low = parse_unit(*at + 2);
    *at += 6;
    return low >= 0xdc00 && low <= 0xdfff ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0;
}

/* Write a code point as UTF-8: a first byte that says how many follow, and six bits in each. */
static char *put_code(char *out, uint32_t code)
{
    const unsigned more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char marks[] = {0x00, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(marks[more] | code >> 6 * more);
    for (unsigned left = more; left-- > 0;)
        *out++ = (char)(0x80 | (code >> 6 * left & 0x3f));
    return out;
}

/* Take one character or escape of a string that was scanned, as UTF-8; gives how many bytes of it
 * there are in `piece`, 0: it cannot stand in a text. */
static size_t take_character(const char **at, const char *end, char piece[4])
{
    static const char letters[] = "bfnrt";
    static const char meanings[] = "\b\f\n\r\t";
    if (**at != '\\') {
        *piece = *(*at)++;
        return 1;
    }
    const char escape = *++*at;
    if (escape == 'u') {
        const uint32_t code = take_unit(at, end);
        return code != 0 ? (size_t)(put_code(piece, code) - piece) : 0;
    }
    ++*at;
    const char *letter = strchr(letters, escape);
    *piece = letter != NULL ? meanings[letter - letters] : escape;
    return 1;
}

/* Unescape until the end, what does not fit, or what is no text; says whether it was the end. */
static bool unescape(otel_slice string, char *out, size_t size, size_t *length)
{
    const char *at = string.data;
    const char *const end = string.data + string.length;
    bool is_whole = true;
    *length = 0;
    while (is_whole && at != end) {
        char piece[4];
        const size_t bytes = take_character(&at, end, piece);
        is_whole = bytes != 0 && bytes < size - *length;
        if (is_whole) {
            memcpy(out + *length, piece, bytes);
            *length += bytes;
        }
    }
    out[*length] = '\0';
    return is_whole;
}

size_t oteli_json_copy(otel_slice string, char *out, size_t size)
{
    size_t length;
    (void)unescape(string, out, size, &length);
    return length;
}

bool oteli_json_text(struct oteli_json *json, char **text)
{
    otel_slice string;
    *text = NULL;
    if (!oteli_json_string(json, &string))
        return false;
    size_t length;
    *text = malloc(string.length + 1);
    if (*text != NULL && unescape(string, *text, string.length + 1, &length))
        return true;
    free(*text);
    *text = NULL;
    oteli_json_refuse(json);
    return false;
}

/* Take a value that holds no others. */
static void skip_plain(struct oteli_json *json)
{
    otel_slice ignored;
    const char next = oteli_json_next(json);
    if (next == '"')
        (void)oteli_json_string(json, &ignored);
    else if (next == '-' || (next >= '0' && next <= '9'))
        (void)oteli_json_number(json, &ignored);
    else if (!take_word(json, "true") && !take_word(json, "false") && !take_word(json, "null"))
        oteli_json_refuse(json);
}

void oteli_json_skip(struct oteli_json *json)
{
    bool is_object[OTELI_JSON_DEPTH];
    const unsigned bottom = json->depth;
    bool first = false;
    bool has_value = true; /* one stands here, to be taken */
    while (!json->failed) {
        otel_slice key;
        const char next = oteli_json_next(json);
        if (has_value && (next == '{' || next == '[')) {
            const unsigned level = json->depth;
            first = next == '{' ? oteli_json_object(json) : oteli_json_array(json);
            if (first)
                is_object[level] = next == '{';
        } else if (has_value) {
            skip_plain(json);
        }
        if (json->depth == bottom)
            return;
        if (json->failed)
            return;
        has_value = is_object[json->depth - 1] ? oteli_json_member(json, &first, &key)
                                               : oteli_json_element(json, &first);
    }
}
