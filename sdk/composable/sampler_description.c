/* SPDX-License-Identifier: Apache-2.0 */
/* sdk/composable/sampler_description.c - the contracts are in sampler_description.h. Any thread;
 * owns nothing. */
#include "sdk/composable/sampler_description.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_PLACES = 6, DIGITS_MAX = 17 };

struct oteli_words oteli_words_begin(char *text, size_t size)
{
    if (size != 0)
        text[0] = '\0';
    return (struct oteli_words){.text = text, .size = size};
}

void oteli_words_put_n(struct oteli_words *words, const char *piece, size_t length)
{
    if (words->length + 1 < words->size) {
        const size_t room = words->size - words->length - 1;
        const size_t copied = length < room ? length : room;
        memcpy(words->text + words->length, piece, copied);
        words->text[words->length + copied] = '\0';
    }
    words->length += length;
}

void oteli_words_put(struct oteli_words *words, const char *piece)
{
    oteli_words_put_n(words, piece, strlen(piece));
}

/* digits[0].digits[1]digits[2]... * 10^exponent */
struct decimal {
    char digits[DIGITS_MAX + 1];
    size_t count;
    int exponent;
};

/* The fewest digits that are read back as the same number. Only digits and exponent are taken
 * from what the C library writes: between them stands the decimal point of the locale. */
static struct decimal decimal_of(double positive)
{
    char text[64];
    struct decimal decimal = {.count = 0};
    for (int places = 0; places < DIGITS_MAX; places++) {
        snprintf(text, sizeof text, "%.*e", places, positive);
        if (strtod(text, NULL) == positive)
            break;
    }
    const char *at = text;
    for (; *at != '\0' && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9' && decimal.count < DIGITS_MAX)
            decimal.digits[decimal.count++] = *at;
    if (*at == 'e')
        decimal.exponent = (int)strtol(at + 1, NULL, 10);
    while (decimal.count > 1 && decimal.digits[decimal.count - 1] == '0')
        decimal.count--;
    return decimal;
}

static void put_zeros(struct oteli_words *words, int count)
{
    for (; count > 0; count--)
        oteli_words_put_n(words, "0", 1);
}

/* Without an exponent, and with so many places behind the point at least. */
static void put_plain(struct oteli_words *words, const struct decimal *decimal, int least_places)
{
    const int count = (int)decimal->count;
    const int whole = decimal->exponent >= 0 ? decimal->exponent + 1 : 0;
    const int whole_digits = whole < count ? whole : count;
    oteli_words_put_n(words, decimal->digits, (size_t)whole_digits);
    put_zeros(words, whole - whole_digits);
    if (whole == 0)
        put_zeros(words, 1);
    const int zeros = decimal->exponent < 0 ? -decimal->exponent - 1 : 0;
    const int places = count - whole_digits != 0 ? zeros + count - whole_digits : 0;
    if (places == 0 && least_places == 0)
        return;
    oteli_words_put_n(words, ".", 1);
    if (places != 0) {
        put_zeros(words, zeros);
        oteli_words_put_n(words, decimal->digits + whole_digits, (size_t)(count - whole_digits));
    }
    put_zeros(words, least_places - places);
}

void oteli_words_put_ratio(struct oteli_words *words, double ratio)
{
    const struct decimal decimal = decimal_of(ratio);
    put_plain(words, &decimal, LEAST_PLACES);
}

static void put_scientific(struct oteli_words *words, const struct decimal *decimal)
{
    char exponent[16];
    oteli_words_put_n(words, decimal->digits, 1);
    if (decimal->count > 1) {
        oteli_words_put_n(words, ".", 1);
        oteli_words_put_n(words, decimal->digits + 1, decimal->count - 1);
    }
    snprintf(exponent, sizeof exponent, "e%+d", decimal->exponent);
    oteli_words_put(words, exponent);
}

void oteli_words_put_double(struct oteli_words *words, double number)
{
    enum { SMALLEST_PLAIN = -7, LARGEST_PLAIN = 20 }; /* powers of ten, as in JSON's customs */
    if (isnan(number)) {
        oteli_words_put(words, "NaN");
        return;
    }
    if (number < 0)
        oteli_words_put_n(words, "-", 1);
    if (isinf(number)) {
        oteli_words_put(words, "Infinity");
        return;
    }
    const struct decimal decimal = decimal_of(fabs(number));
    if (decimal.exponent > SMALLEST_PLAIN && decimal.exponent <= LARGEST_PLAIN)
        put_plain(words, &decimal, 0);
    else
        put_scientific(words, &decimal);
}

void oteli_words_put_int(struct oteli_words *words, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    oteli_words_put(words, text);
}

/* Let a describe function write behind what there is. */
static void put_described(struct oteli_words *words,
                          size_t (*describe)(const void *, char *, size_t), const void *state)
{
    if (describe == NULL) {
        oteli_words_put(words, "custom");
        return;
    }
    const bool fits = words->length < words->size;
    words->length += describe(state, fits ? words->text + words->length : NULL,
                              fits ? words->size - words->length : 0);
}

void oteli_words_put_sampler(struct oteli_words *words, const otel_sampler *sampler)
{
    put_described(words, sampler->describe, sampler->state);
}

void oteli_words_put_composable(struct oteli_words *words, const otel_composable *composable)
{
    put_described(words, composable->describe, composable->state);
}
