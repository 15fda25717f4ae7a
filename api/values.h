/* SPDX-License-Identifier: Apache-2.0 */
/* api/values.h - keys and values as OTLP KeyValue bytes.
 *
 * Measuring and writing are two steps, so that every length is known before its bytes:
 * oteli_key_value_plan looks at a value once (is it UTF-8? how much of it is kept?), and
 * oteli_key_value_put writes exactly as many bytes as the plan says.
 *
 * Any thread; nothing is kept, nothing allocates. */
#ifndef OTELI_VALUES_H
#define OTELI_VALUES_H

#include "common/lent.h"
#include "api/sdk_link.h"

/* One KeyValue field about to be written: tag, length, key, value. */
struct oteli_key_value {
    const char *key;
    size_t key_length; /* as given */
    size_t key_bytes;  /* as written: bad UTF-8 replaced */
    otel_value value;  /* strings and bytes already cut; a string that is no UTF-8 is bytes */
    size_t value_length_limit;
    size_t value_bytes; /* of the AnyValue message */
    size_t inner_bytes; /* of the ArrayValue message in it */
    size_t bytes;       /* of the whole field */
};

/* False: the key is empty, or something is above 2 GiB. `field` is the attribute's field
 * number in its message, at most 15. */
bool oteli_key_value_plan(struct oteli_key_value *plan, const char *key, size_t key_length,
                          const otel_value *value, size_t value_length_limit);

uint8_t *oteli_key_value_put(uint8_t *at, uint32_t field, const struct oteli_key_value *plan);

/* The same for a whole list, each key once (the last one counts), at most `limit` of
 * them; `*dropped` counts those above. Lists are short: quadratic in `count`. */
OTELI_LENT size_t oteli_key_values_size(const otel_attribute *attributes, size_t count,
                                        uint32_t limit, size_t value_length_limit,
                                        uint32_t *dropped);
OTELI_LENT uint8_t *oteli_key_values_put(uint8_t *at, uint32_t field,
                                         const otel_attribute *attributes, size_t count,
                                         uint32_t limit, size_t value_length_limit);

/* A text that must be UTF-8: its size with bad bytes replaced, and the copy. */
size_t oteli_text_size(const char *text, size_t length);
uint8_t *oteli_text_put(uint8_t *at, const char *text, size_t length, size_t size);

#endif
