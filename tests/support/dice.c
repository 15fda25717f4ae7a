/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/dice.c - splitmix64, and what is thrown with it. One thread a struct. */
#include "tests/support/dice.h"

#include <stdio.h>
#include <stdlib.h>

enum { DICE_MEMORY = 1 << 20, LONG_TEXT = 4096, ELEMENTS = 6, KEYS = 40, DEPTH = 4 };

void dice_init(struct dice *dice, uint64_t seed)
{
    *dice = (struct dice){.state = seed * 0x9E3779B97F4A7C15u + 1, .memory = malloc(DICE_MEMORY)};
    if (dice->memory == NULL)
        abort();
    dice->state = dice_next(dice); /* or the next seed's sequence would be this one, shifted */
}

void dice_fini(struct dice *dice)
{
    free(dice->memory);
}

void dice_forget(struct dice *dice)
{
    dice->used = 0;
}

static void *take(struct dice *dice, size_t size)
{
    size = (size + 15) & ~(size_t)15;
    if (DICE_MEMORY - dice->used < size)
        abort();
    void *memory = dice->memory + dice->used;
    dice->used += size;
    return memory;
}

uint64_t dice_next(struct dice *dice)
{
    uint64_t z = dice->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint32_t dice_below(struct dice *dice, uint32_t limit)
{
    return (uint32_t)((dice_next(dice) >> 32) * limit >> 32);
}

bool dice_one_in(struct dice *dice, uint32_t odds)
{
    return dice_below(dice, odds) == 0;
}

static char *put_character(char *at, uint32_t code)
{
    if (code < 0x80) {
        *at++ = (char)code;
    } else if (code < 0x800) {
        *at++ = (char)(0xC0 | code >> 6);
        *at++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *at++ = (char)(0xE0 | code >> 12);
        *at++ = (char)(0x80 | (code >> 6 & 0x3F));
        *at++ = (char)(0x80 | (code & 0x3F));
    } else {
        *at++ = (char)(0xF0 | code >> 18);
        *at++ = (char)(0x80 | (code >> 12 & 0x3F));
        *at++ = (char)(0x80 | (code >> 6 & 0x3F));
        *at++ = (char)(0x80 | (code & 0x3F));
    }
    return at;
}

/* A character of one to four bytes, never a surrogate. */
static uint32_t some_character(struct dice *dice, uint32_t bytes)
{
    switch (bytes) {
    case 1:
        return 0x20 + dice_below(dice, 0x5F);
    case 2:
        return 0x80 + dice_below(dice, 0x780);
    case 3: {
        const uint32_t code = 0x800 + dice_below(dice, 0xF800 - 0x800);
        return code < 0xD800 ? code : code + 0x800;
    }
    default:
        return 0x10000 + dice_below(dice, 0x100000);
    }
}

/* Whole characters of `bytes` bytes each (0: of any), at most `size` bytes in all. */
static const char *some_characters(struct dice *dice, uint32_t bytes, size_t size)
{
    char *const text = take(dice, size + 5);
    char *at = text;
    while (at + 4 <= text + size)
        at = put_character(at, some_character(dice, bytes ? bytes : 1 + dice_below(dice, 4)));
    *at = '\0';
    return text;
}

static const char *some_bytes(struct dice *dice, size_t size)
{
    char *const text = take(dice, size + 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(1 + dice_below(dice, 255));
    text[size] = '\0';
    return text;
}

/* What is no UTF-8, one kind of mistake each. */
static const char *some_mistake(struct dice *dice)
{
    static const char *const mistakes[] = {
        "\xFF",
        "cut \xE2\x82",
        "\xC0\x80 overlong",
        "half \xED\xA0\x80 a pair",
        "\xF5\x80\x80",
        "\xF4\x90\x80\x80!",
        "lonely \x80",
        "\xF0\x9F\x98",
        "\xE2\x82\xE2",
        "good \xC3\xA9 bad \xC3(",
    };
    return mistakes[dice_below(dice, sizeof mistakes / sizeof *mistakes)];
}

const char *dice_text(struct dice *dice)
{
    const bool is_long = dice_one_in(dice, 60);
    const size_t size = is_long ? LONG_TEXT : 4 + dice_below(dice, 40);
    switch (dice_below(dice, 12)) {
    case 0:
        return "";
    case 1:
        return some_characters(dice, 2, size);
    case 2:
        return some_characters(dice, 3, size);
    case 3:
        return some_characters(dice, 4, size);
    case 4:
        return some_characters(dice, 0, size);
    case 5:
        return some_mistake(dice);
    case 6:
        return some_bytes(dice, size);
    case 7:
        return "\"quoted\" \\ back\tslash \n\r\x01\x7F";
    default:
        return some_characters(dice, 1, size);
    }
}

const char *dice_key(struct dice *dice)
{
    const uint32_t kind = dice_below(dice, 100);
    if (kind == 0)
        return "";
    if (kind < 15)
        return dice_text(dice);
    char *key = take(dice, 16);
    snprintf(key, 16, "key.%u", dice_below(dice, KEYS));
    return key;
}

static int64_t some_integer(struct dice *dice)
{
    static const int64_t edges[] = {0, 1, -1, 127, 128, INT32_MIN, INT64_MAX, INT64_MIN};
    if (dice_one_in(dice, 2))
        return edges[dice_below(dice, sizeof edges / sizeof *edges)];
    return (int64_t)(dice_next(dice) >> dice_below(dice, 64));
}

static double some_real(struct dice *dice)
{
    static const double edges[] = {0.0, -0.0, 0.1, 1.0, -1.5, 5e-324, 1.7976931348623157e308};
    if (dice_one_in(dice, 2))
        return edges[dice_below(dice, sizeof edges / sizeof *edges)];
    const uint64_t bits = dice_next(dice);
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

static otel_value some_array(struct dice *dice, otel_value_type type)
{
    const size_t count = dice_below(dice, ELEMENTS);
    const char **strings = take(dice, ELEMENTS * sizeof *strings);
    bool *booleans = take(dice, ELEMENTS * sizeof *booleans);
    int64_t *integers = take(dice, ELEMENTS * sizeof *integers);
    double *reals = take(dice, ELEMENTS * sizeof *reals);
    for (size_t i = 0; i < count; i++) {
        strings[i] = dice_one_in(dice, 10) ? NULL : dice_text(dice);
        booleans[i] = dice_one_in(dice, 2);
        integers[i] = some_integer(dice);
        reals[i] = some_real(dice);
    }
    if (type == OTEL_VALUE_STRING_ARRAY)
        return otel_value_string_array(strings, count);
    if (type == OTEL_VALUE_BOOL_ARRAY)
        return otel_value_bool_array(booleans, count);
    if (type == OTEL_VALUE_INT_ARRAY)
        return otel_value_int_array(integers, count);
    return otel_value_double_array(reals, count);
}

static otel_value some_value(struct dice *dice, unsigned depth);

static otel_value some_nested(struct dice *dice, otel_value_type type, unsigned depth)
{
    const size_t count = depth < DEPTH ? dice_below(dice, ELEMENTS) : 0;
    otel_value *values = take(dice, ELEMENTS * sizeof *values);
    otel_attribute *entries = take(dice, ELEMENTS * sizeof *entries);
    for (size_t i = 0; i < count; i++) {
        values[i] = some_value(dice, depth + 1);
        entries[i] = otel_attribute_of(dice_key(dice), values[i]);
    }
    return type == OTEL_VALUE_MAP ? otel_value_map(entries, count)
                                  : otel_value_array(values, count);
}

static otel_value some_value(struct dice *dice, unsigned depth)
{
    const otel_value_type type = (otel_value_type)dice_below(dice, OTEL_VALUE_MAP + 1);
    switch (type) {
    case OTEL_VALUE_EMPTY:
        return otel_value_empty();
    case OTEL_VALUE_STRING:
        if (dice_one_in(dice, 20))
            return otel_value_string_n("zero\0inside", 11);
        return otel_value_string(dice_text(dice));
    case OTEL_VALUE_BOOL:
        return otel_value_bool(dice_one_in(dice, 2));
    case OTEL_VALUE_INT:
        return otel_value_int(some_integer(dice));
    case OTEL_VALUE_DOUBLE:
        return otel_value_double(some_real(dice));
    case OTEL_VALUE_BYTES: {
        const size_t size = dice_one_in(dice, 30) ? LONG_TEXT : dice_below(dice, 30);
        return otel_value_bytes(some_bytes(dice, size), size);
    }
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
        break;
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        return some_nested(dice, type, depth);
    }
    return some_array(dice, type);
}

otel_value dice_value(struct dice *dice)
{
    return some_value(dice, 1);
}

const otel_attribute *dice_attributes(struct dice *dice, uint32_t most, size_t *count)
{
    *count = dice_below(dice, most + 1);
    otel_attribute *attributes = take(dice, (most + 1) * sizeof *attributes);
    for (size_t i = 0; i < *count; i++)
        attributes[i] = otel_attribute_of(dice_key(dice), dice_value(dice));
    return attributes;
}
