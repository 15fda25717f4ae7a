/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/leaf_value.h - texts and single values (no arrays, no maps) as AnyValue bytes.
 *
 * Any thread; nothing is kept, and nothing allocates. */
#ifndef OTELI_LEAF_VALUE_H
#define OTELI_LEAF_VALUE_H

#include <otel/value.h>

/* A text that must be UTF-8: its size with bad bytes replaced, and the copy. */
size_t oteli_text_size(const char *text, size_t length);
uint8_t *oteli_text_put(uint8_t *at, const char *text, size_t length, size_t size);

/* What is kept of a value under a limit of the length of strings and bytes; a string that is no
 * UTF-8 becomes bytes. */
otel_value oteli_value_cut(const otel_value *value, size_t limit);

/* Whether a value is an array of any kind, or a map. */
static inline bool oteli_value_is_nested(const otel_value *value)
{
    return value->type >= OTEL_VALUE_STRING_ARRAY && value->type <= OTEL_VALUE_MAP;
}

/* Element `index` of one, as a value of its own. */
otel_value oteli_array_element(const otel_value *array, size_t index);

/* The AnyValue message of a value that was cut, and is not nested. */
size_t oteli_leaf_size(const otel_value *value);
uint8_t *oteli_leaf_put(uint8_t *at, const otel_value *value);

#endif
