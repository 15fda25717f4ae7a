/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/key_value.h - keys and values as OTLP KeyValue bytes.
 *
 * Measuring and writing are two steps, so that every length is known before its bytes:
 * oteli_key_value_plan looks at a value once (is it UTF-8? how much of it is kept?), and
 * oteli_key_value_put writes exactly as many bytes as the plan says.
 *
 * Any thread; nothing is kept, and nothing allocates but for long lists and maps (key_index.h). */
#ifndef OTELI_KEY_VALUE_H
#define OTELI_KEY_VALUE_H

#include "api/encode/leaf_value.h"
#include "common/base/internal_api.h"

/* Protobuf's parsers refuse a whole request in which a message is more than 100 messages below the
 * outermost one (C++, Java, Python, C#, Rust). The value of an event's attribute is 6 below it, and
 * each map adds 3: KeyValueList, KeyValue, AnyValue. 6 + 31 * 3 = 99. */
enum { OTELI_VALUE_DEPTH_MOST = 31 };

/* One KeyValue field about to be written: tag, length, key, value. */
struct oteli_key_value {
    const char *key;
    size_t key_length; /* as given */
    size_t key_bytes;  /* as written: bad UTF-8 replaced */
    otel_value value;  /* strings and bytes already cut; a string that is no UTF-8 is bytes */
    size_t length_limit;
    uint32_t depth_limit;
    size_t value_bytes; /* of the AnyValue message */
    size_t bytes;       /* of the whole field */
};

/* False: the key is empty, or something is above 512 MiB (64 MiB if it is nested). `field` is the
 * attribute's field number in its message, at most 15. Depths are at most
 * OTELI_VALUE_DEPTH_MOST. */
bool oteli_key_value_plan(struct oteli_key_value *plan, const char *key, size_t key_length,
                          const otel_value *value, size_t length_limit, uint32_t depth_limit);

uint8_t *oteli_key_value_put(uint8_t *at, uint32_t field, const struct oteli_key_value *plan);

/* The same for a whole list, each key once: it is among the first `count` keys of the list or
 * left out, and its last value counts. `*dropped` counts the keys that are left out. */
struct oteli_list_limits {
    uint32_t count;
    uint32_t depth;
    size_t length;
};
size_t oteli_list_size(const otel_attribute *attributes, size_t count,
                       const struct oteli_list_limits *limits, uint32_t *dropped);
uint8_t *oteli_list_put(uint8_t *at, uint32_t field, const otel_attribute *attributes, size_t count,
                        const struct oteli_list_limits *limits);

/* The same for what is exempt from the limit of the depth: resources and scopes. */
OTELI_INTERNAL_API size_t oteli_key_values_size(const otel_attribute *attributes, size_t count,
                                                uint32_t limit, size_t value_length_limit,
                                                uint32_t *dropped);
OTELI_INTERNAL_API uint8_t *oteli_key_values_put(uint8_t *at, uint32_t field,
                                                 const otel_attribute *attributes, size_t count,
                                                 uint32_t limit, size_t value_length_limit);

#endif
