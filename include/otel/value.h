/* SPDX-License-Identifier: Apache-2.0 */
/* otel/value.h - attribute values, and keys with values.
 *
 * A value borrows what it points to. Functions that take values copy what they keep.
 * Strings are UTF-8; a string value that is not is exported as bytes, and a key that
 * is not has its bad bytes replaced by U+FFFD. Source: OpenTelemetry specification,
 * common/README.md "AnyValue", and OTLP's common.proto. */
#ifndef OTEL_VALUE_H
#define OTEL_VALUE_H

#include <otel/base.h>
#include <string.h>

OTEL_BEGIN_DECLS

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
    OTEL_VALUE_DOUBLE_ARRAY = 9  /* of double */
} otel_value_type;

/* One value: `length` counts bytes of a string or of bytes, elements of an array. */
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
    } as;
} otel_value;

typedef struct otel_attribute {
    const char *key;
    otel_value value;
} otel_attribute;

OTEL_INLINE otel_value otel_value_empty(void)
{
    otel_value value;
    memset(&value, 0, sizeof value);
    return value;
}

OTEL_INLINE otel_value otel_value_string_n(const char *string, size_t length)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_STRING;
    value.length = length;
    value.as.string = string;
    return value;
}

OTEL_INLINE otel_value otel_value_string(const char *string)
{
    return otel_value_string_n(string, string ? strlen(string) : 0);
}

OTEL_INLINE otel_value otel_value_bool(bool boolean)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_BOOL;
    value.as.boolean = boolean;
    return value;
}

OTEL_INLINE otel_value otel_value_int(int64_t integer)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_INT;
    value.as.integer = integer;
    return value;
}

OTEL_INLINE otel_value otel_value_double(double real)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_DOUBLE;
    value.as.real = real;
    return value;
}

OTEL_INLINE otel_value otel_value_bytes(const void *bytes, size_t length)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_BYTES;
    value.length = length;
    value.as.bytes = bytes;
    return value;
}

OTEL_INLINE otel_value otel_value_string_array(const char *const *strings, size_t count)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_STRING_ARRAY;
    value.length = count;
    value.as.strings = strings;
    return value;
}

OTEL_INLINE otel_value otel_value_bool_array(const bool *booleans, size_t count)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_BOOL_ARRAY;
    value.length = count;
    value.as.booleans = booleans;
    return value;
}

OTEL_INLINE otel_value otel_value_int_array(const int64_t *integers, size_t count)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_INT_ARRAY;
    value.length = count;
    value.as.integers = integers;
    return value;
}

OTEL_INLINE otel_value otel_value_double_array(const double *reals, size_t count)
{
    otel_value value = otel_value_empty();
    value.type = OTEL_VALUE_DOUBLE_ARRAY;
    value.length = count;
    value.as.reals = reals;
    return value;
}

/* otel_attribute attributes[] = { otel_attribute_of("retries", otel_value_int(3)) }; */
OTEL_INLINE otel_attribute otel_attribute_of(const char *key, otel_value value)
{
    otel_attribute attribute;
    attribute.key = key;
    attribute.value = value;
    return attribute;
}

OTEL_END_DECLS
#endif
