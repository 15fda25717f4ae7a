/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/leaf_value.h - values that contain no others, and texts, as OTLP bytes: first their
 * size, then exactly as many bytes.
 *
 * Threads:  any; nothing is kept, and nothing allocates. */
#ifndef OTELI_LEAF_VALUE_H
#define OTELI_LEAF_VALUE_H

#include <otel/value.h>

enum { OTELI_VALUE_LARGEST = 0x7fffffff / 4 };

/* Whether it is an array of values or a map (nested_value.h). */
static inline bool oteli_value_is_nested(const otel_value *value)
{
    return value->type == OTEL_VALUE_ARRAY || value->type == OTEL_VALUE_MAP;
}

/* Whether it consists of elements: an array of one type, an array of values, or a map. */
static inline bool oteli_value_has_elements(const otel_value *value)
{
    return value->type >= OTEL_VALUE_STRING_ARRAY;
}

/* The value with its string or bytes cut to `limit`; a string that is no UTF-8 is bytes. */
otel_value oteli_value_cut(const otel_value *value, size_t limit);

/* The AnyValue message of a cut value: one value, or an array of one type, whose strings are cut
 * to `limit`. Of any other type: an empty message. SIZE_MAX: above 512 MiB. */
size_t oteli_leaf_size(const otel_value *value, size_t limit);
uint8_t *oteli_leaf_put(uint8_t *at, const otel_value *value, size_t limit);

/* A text that must be UTF-8: its size with bad bytes replaced, and the copy. */
size_t oteli_text_size(const char *text, size_t length);
uint8_t *oteli_text_put(uint8_t *at, const char *text, size_t length, size_t size);

/* Copy a text and see meanwhile whether it is UTF-8: NULL: it is not, and what was copied is of no
 * use. */
uint8_t *oteli_text_copy(uint8_t *at, const char *text, size_t length);

#endif
