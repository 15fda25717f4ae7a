/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/nested_value.h - arrays and maps as AnyValue bytes.
 *
 * `depth_limit` is at least 1 and at most OTELI_VALUE_DEPTH_MOST; an array or a map
 * that is deeper is an empty value. Any thread; nothing is kept, and nothing allocates but for
 * long maps (key_index.h). */
#ifndef OTELI_NESTED_VALUE_H
#define OTELI_NESTED_VALUE_H

#include <otel/value.h>

/* Protobuf's parsers refuse a whole request in which a message is more than 100 messages below the
 * outermost one (C++, Java, Python, C#, Rust). The value of an event's attribute is 6 below it, and
 * each map adds 3: KeyValueList, KeyValue, AnyValue. 6 + 31 * 3 = 99. */
enum { OTELI_VALUE_DEPTH_MOST = 31 };

/* The size of the AnyValue message; SIZE_MAX: above 64 MiB. */
size_t oteli_nested_size(const otel_value *value, size_t length_limit, uint32_t depth_limit);

/* Write as many bytes, the last of them in front of `end`. */
void oteli_nested_put(uint8_t *end, const otel_value *value, size_t length_limit,
                      uint32_t depth_limit);

#endif
