/* SPDX-License-Identifier: Apache-2.0 */
/* common/text/text.c - the contracts are in common/text/text.h. Any thread; owns nothing. */
#include "common/text/text.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

otel_slice oteli_trim(otel_slice text)
{
    while (text.length != 0 && is_blank(text.data[0])) {
        text.data++;
        text.length--;
    }
    while (text.length != 0 && is_blank(text.data[text.length - 1]))
        text.length--;
    return text;
}

bool oteli_piece_next(otel_slice *rest, char mark, otel_slice *piece)
{
    if (rest->length == 0)
        return false;
    const char *end = memchr(rest->data, mark, rest->length);
    const size_t length = end != NULL ? (size_t)(end - rest->data) : rest->length;
    const size_t step = end != NULL ? length + 1 : length;
    *piece = (otel_slice){rest->data, length};
    *rest = (otel_slice){rest->data + step, rest->length - step};
    return true;
}

bool oteli_list_next(otel_slice *rest, otel_slice *member)
{
    while (oteli_piece_next(rest, ',', member)) {
        *member = oteli_trim(*member);
        if (member->length != 0)
            return true;
    }
    return false;
}

bool oteli_cut(otel_slice text, char mark, otel_slice *before, otel_slice *behind)
{
    const char *at = text.length != 0 ? memchr(text.data, mark, text.length) : NULL;
    if (at == NULL)
        return false;
    const size_t length = (size_t)(at - text.data);
    *before = oteli_trim((otel_slice){.data = text.data, .length = length});
    *behind = oteli_trim((otel_slice){.data = at + 1, .length = text.length - length - 1});
    return true;
}

bool oteli_is_word(otel_slice text, const char *word)
{
    for (size_t i = 0; i < text.length; i++) {
        if (word[i] == '\0' || oteli_to_lower(text.data[i]) != oteli_to_lower(word[i]))
            return false;
    }
    return word[text.length] == '\0';
}

char *oteli_slice_copy(otel_slice text)
{
    char *copy = malloc(text.length + 1);
    return copy != NULL ? oteli_slice_put(copy, text) : NULL;
}

bool oteli_is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const char c = oteli_to_lower(text[i]);
        const bool is_alphanumeric = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_alphanumeric && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
            return false;
    }
    return length != 0;
}

int oteli_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = oteli_to_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool oteli_percent_decode(const char *text, size_t length, char *out, size_t *out_length)
{
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%') {
            if (length - i < 3)
                return false;
            const int high = oteli_hex_digit(text[i + 1]);
            const int low = oteli_hex_digit(text[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        out[written++] = c;
    }
    *out_length = written;
    return true;
}

bool oteli_parse_whole(otel_slice text, int64_t *number)
{
    text = oteli_trim(text);
    if (text.length == 0)
        return false;
    int64_t sum = 0;
    for (size_t i = 0; i < text.length; i++) {
        const int digit = text.data[i] - '0';
        if (digit < 0 || digit > 9 || sum > (INT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *number = sum;
    return true;
}

static void skip_digits(otel_slice *text, size_t *count)
{
    for (; text->length != 0 && text->data[0] >= '0' && text->data[0] <= '9'; text->length--) {
        text->data++;
        (*count)++;
    }
}

static void skip_one(otel_slice *text, char one, char other)
{
    if (text->length != 0 && (text->data[0] == one || text->data[0] == other)) {
        text->data++;
        text->length--;
    }
}

/* strtod also takes hexadecimal and words. */
static bool is_decimal(otel_slice text)
{
    size_t digits = 0;
    size_t exponent_digits = 0;
    skip_one(&text, '-', '+');
    skip_digits(&text, &digits);
    skip_one(&text, '.', '.');
    skip_digits(&text, &digits);
    if (text.length == 0 || digits == 0)
        return digits != 0;
    const bool has_exponent = oteli_to_lower(text.data[0]) == 'e';
    skip_one(&text, 'e', 'E');
    skip_one(&text, '-', '+');
    skip_digits(&text, &exponent_digits);
    return has_exponent && exponent_digits != 0 && text.length == 0;
}

bool oteli_parse_decimal(otel_slice text, double *number)
{
    if (!is_decimal(text))
        return false;
    const locale_t plain = newlocale(LC_ALL_MASK, "C", NULL);
    if (plain == NULL)
        return false;
    const locale_t before = uselocale(plain);
    const int saved_errno = errno;
    *number = strtod(text.data, NULL);
    errno = saved_errno;
    uselocale(before);
    freelocale(plain);
    return true;
}

/* A decimal number of at most DBL_DIG digits that was read into a double, and is not subnormal, is
 * printed as it was written: with DBL_DIG digits, and without zeros at the end. */
const char *oteli_decimal_text(double number, char text[OTELI_DECIMAL_SIZE])
{
    int digits = fabs(number) < DBL_MIN ? 1 : DBL_DIG;
    do {
        snprintf(text, OTELI_DECIMAL_SIZE, "%.*g", digits, number);
    } while (digits++ < DBL_DECIMAL_DIG && strtod(text, NULL) != number);
    /* Between the digits stands the point of the locale, of one byte or more. */
    char *point = text + strspn(text, "0123456789-");
    const size_t bytes = strcspn(point, "0123456789+-e");
    if (bytes != 0) {
        *point = '.';
        memmove(point + 1, point + bytes, strlen(point + bytes) + 1);
    }
    return text;
}

void oteli_build(struct oteli_text_builder *builder, const char *format, ...)
{
    const size_t room = builder->length < builder->size ? builder->size - builder->length : 0;
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(room != 0 ? builder->text + builder->length : NULL, room, format, arguments);
    va_end(arguments);
    if (length > 0)
        builder->length += (size_t)length;
}
