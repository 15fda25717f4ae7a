/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/nested_value.h - values in values: OTEL_VALUE_ARRAY and OTEL_VALUE_MAP as AnyValue
 * bytes.
 *
 * `depth_limit` is at least 1 and at most OTELI_VALUE_DEPTH_MOST (key_value.h); an array or a map
 * that is deeper is an empty value. Any thread; nothing is kept, and nothing allocates but for
 * long maps (key_index.h). */
#ifndef OTELI_NESTED_VALUE_H
#define OTELI_NESTED_VALUE_H

#include <otel/value.h>

/* The size of the AnyValue message; SIZE_MAX: above 64 MiB. */
size_t oteli_nested_size(const otel_value *value, size_t length_limit, uint32_t depth_limit);

/* Write as many bytes, the last of them in front of `end`. */
void oteli_nested_put(uint8_t *end, const otel_value *value, size_t length_limit,
                      uint32_t depth_limit);

#endif
