/* SPDX-License-Identifier: Apache-2.0 */
/* otel/value.h - attribute values, and keys with values.
 *
 * A value borrows what it points to. Functions that take values copy what they keep. Arrays
 * and maps cost more than single values, with every element and level.
 *
 * Threads:  any thread: these functions only fill in structs.
 * Signals:  a handler may call all of them.
 * Errors:   nothing here fails.
 * Strings:  UTF-8; a string value that is not is exported as bytes, and a key that is not has its
 *           bad bytes replaced by U+FFFD.
 * Source:   OpenTelemetry specification, common/README.md "AnyValue"; OTLP's common.proto. */
#ifndef OTEL_VALUE_H
#define OTEL_VALUE_H

#include <otel/base.h>
#include <string.h>

OTEL_BEGIN_DECLS

/* A piece of text or of memory, which nothing ends but its length. */
typedef struct otel_slice {
    const char *data;
    size_t length;
} otel_slice;

/* A slice of `length` bytes. */
OTEL_INLINE otel_slice otel_slice_n(const char *text, size_t length)
{
    otel_slice slice;
    slice.data = text;
    slice.length = length;
    return slice;
}

/* All of a text with a final NUL; NULL: an empty slice. */
OTEL_INLINE otel_slice otel_slice_of(const char *text)
{
    return otel_slice_n(text, text ? strlen(text) : 0);
}

typedef enum otel_value_type {
    OTEL_VALUE_EMPTY = 0,
    OTEL_VALUE_STRING = 1,
    OTEL_VALUE_BOOL = 2,
    OTEL_VALUE_INT = 3,
    OTEL_VALUE_DOUBLE = 4,
    OTEL_VALUE_BYTES = 5,
    OTEL_VALUE_STRING_ARRAY = 6, /* of const char *; a NULL element stays an empty value */
    OTEL_VALUE_BOOL_ARRAY = 7,   /* of bool */
    OTEL_VALUE_INT_ARRAY = 8,    /* of int64_t */
    OTEL_VALUE_DOUBLE_ARRAY = 9, /* of double */
    OTEL_VALUE_ARRAY = 10,       /* of otel_value, of any types */
    OTEL_VALUE_MAP = 11          /* of otel_attribute: of equal keys the last counts */
} otel_value_type;

struct otel_attribute;

/* One value: `length` counts bytes of a string or of bytes, elements of an array or a map.
 * Values nest as deep as attribute_value_depth_limit (otel/sdk.h) says, the value of an
 * attribute being at depth 1; an array or a map below that is an empty value instead. Those of a
 * resource and of a scope may always be 31 deep, which is what every receiver can read. */
typedef struct otel_value {
    otel_value_type type;
    uint32_t reserved; /* zero */
    size_t length;
    union {
        const char *string;
        const void *bytes;
        bool boolean;
        int64_t integer;
        double real;
        const char *const *strings;
        const bool *booleans;
        const int64_t *integers;
        const double *reals;
        const struct otel_value *values;
        const struct otel_attribute *entries;
    } as;
} otel_value;

typedef struct otel_attribute {
    const char *key;
    otel_value value;
    size_t key_length; /* the key needs no NUL; 0: up to its NUL */
} otel_attribute;

/* Member by member: where memory is cleared first, a copy of the value waits for its parts. */
OTEL_INLINE otel_value otel_value_(otel_value_type type, size_t length)
{
    otel_value value;
    value.type = type;
    value.reserved = 0;
    value.length = length;
    value.as.integer = 0;
    return value;
}

/* The empty value, which is not the empty string. */
OTEL_INLINE otel_value otel_value_empty(void)
{
    return otel_value_(OTEL_VALUE_EMPTY, 0);
}

/* A string of `length` bytes. */
OTEL_INLINE otel_value otel_value_string_n(const char *string, size_t length)
{
    otel_value value = otel_value_(OTEL_VALUE_STRING, length);
    value.as.string = string;
    return value;
}

/* A string with a final NUL; NULL is the empty string. */
OTEL_INLINE otel_value otel_value_string(const char *string)
{
    return otel_value_string_n(string, string ? strlen(string) : 0);
}

/* A truth value. */
OTEL_INLINE otel_value otel_value_bool(bool boolean)
{
    otel_value value = otel_value_(OTEL_VALUE_BOOL, 0);
    value.as.boolean = boolean;
    return value;
}

/* An integer. */
OTEL_INLINE otel_value otel_value_int(int64_t integer)
{
    otel_value value = otel_value_(OTEL_VALUE_INT, 0);
    value.as.integer = integer;
    return value;
}

/* A floating-point number. */
OTEL_INLINE otel_value otel_value_double(double real)
{
    otel_value value = otel_value_(OTEL_VALUE_DOUBLE, 0);
    value.as.real = real;
    return value;
}

/* A value of `length` bytes, which need not be text. */
OTEL_INLINE otel_value otel_value_bytes(const void *bytes, size_t length)
{
    otel_value value = otel_value_(OTEL_VALUE_BYTES, length);
    value.as.bytes = bytes;
    return value;
}

/* An array of `count` strings with a final NUL each; NULL is an empty value among them. Of texts
 * without a NUL make an array of values: otel_value_array and otel_value_string_n. */
OTEL_INLINE otel_value otel_value_string_array(const char *const *strings, size_t count)
{
    otel_value value = otel_value_(OTEL_VALUE_STRING_ARRAY, count);
    value.as.strings = strings;
    return value;
}

/* An array of `count` truth values. */
OTEL_INLINE otel_value otel_value_bool_array(const bool *booleans, size_t count)
{
    otel_value value = otel_value_(OTEL_VALUE_BOOL_ARRAY, count);
    value.as.booleans = booleans;
    return value;
}

/* An array of `count` integers. */
OTEL_INLINE otel_value otel_value_int_array(const int64_t *integers, size_t count)
{
    otel_value value = otel_value_(OTEL_VALUE_INT_ARRAY, count);
    value.as.integers = integers;
    return value;
}

/* An array of `count` floating-point numbers. */
OTEL_INLINE otel_value otel_value_double_array(const double *reals, size_t count)
{
    otel_value value = otel_value_(OTEL_VALUE_DOUBLE_ARRAY, count);
    value.as.reals = reals;
    return value;
}

/* An array of `count` values of any types:
 *
 *     otel_value pair[] = {otel_value_int(3), otel_value_string("three")};
 *     otel_span_set_value(span, "pair", otel_value_array(pair, 2)); */
OTEL_INLINE otel_value otel_value_array(const otel_value *values, size_t count)
{
    otel_value value = otel_value_(OTEL_VALUE_ARRAY, count);
    value.as.values = values;
    return value;
}

/* A map of `count` keys with values. Its keys, unlike those of attributes, may be empty. */
OTEL_INLINE otel_value otel_value_map(const otel_attribute *entries, size_t count)
{
    otel_value value = otel_value_(OTEL_VALUE_MAP, count);
    value.as.entries = entries;
    return value;
}

/* A key with a value:
 *
 *     otel_attribute attributes[] = {otel_attribute_of("retries", otel_value_int(3))}; */
OTEL_INLINE otel_attribute otel_attribute_of(const char *key, otel_value value)
{
    otel_attribute attribute;
    attribute.key = key;
    attribute.value = value;
    attribute.key_length = key ? strlen(key) : 0;
    return attribute;
}

/* With a key that needs no NUL; of no bytes: the empty key. */
OTEL_INLINE otel_attribute otel_attribute_n(const char *key, size_t key_length, otel_value value)
{
    otel_attribute attribute;
    attribute.key = key_length ? key : "";
    attribute.value = value;
    attribute.key_length = key_length;
    return attribute;
}

OTEL_END_DECLS
#endif
