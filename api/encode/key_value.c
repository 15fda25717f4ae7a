/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/key_value.c - measure and write attributes. Any thread, no state.
 *
 * Source: opentelemetry/proto/common/v1/common.proto (field numbers). */
#include "api/encode/key_value.h"
#include "api/encode/key_index.h"
#include "api/encode/nested_value.h"
#include "common/text/text.h"
#include "common/wire.h"

#include <string.h>

enum { KEY = 1, VALUE = 2 }; /* KeyValue */

bool oteli_key_value_plan(struct oteli_key_value *plan, const char *key, size_t key_length,
                          const otel_value *value, size_t length_limit, uint32_t depth_limit)
{
    if (key_length == 0 || key_length > OTELI_VALUE_LARGEST)
        return false;
    plan->key = key;
    plan->key_length = key_length;
    plan->key_bytes = oteli_text_size(key, key_length);
    plan->length_limit = length_limit;
    plan->depth_limit = depth_limit;
    plan->value = oteli_value_cut(value, length_limit);
    if (oteli_value_has_elements(value) && depth_limit == 0)
        plan->value = otel_value_empty();
    plan->value_bytes = oteli_value_is_nested(&plan->value)
                            ? oteli_nested_size(&plan->value, length_limit, depth_limit)
                            : oteli_leaf_size(&plan->value, length_limit);
    if (plan->value_bytes == SIZE_MAX)
        return false;
    plan->bytes = oteli_bytes_field_size(1, oteli_bytes_field_size(KEY, plan->key_bytes) +
                                                oteli_bytes_field_size(VALUE, plan->value_bytes));
    return true;
}

uint8_t *oteli_key_value_put(uint8_t *at, uint32_t field, const struct oteli_key_value *plan)
{
    at = oteli_put_bytes_head(at, field,
                              oteli_bytes_field_size(KEY, plan->key_bytes) +
                                  oteli_bytes_field_size(VALUE, plan->value_bytes));
    at = oteli_put_bytes_head(at, KEY, plan->key_bytes);
    at = oteli_text_put(at, plan->key, plan->key_length, plan->key_bytes);
    at = oteli_put_bytes_head(at, VALUE, plan->value_bytes);
    if (!oteli_value_is_nested(&plan->value))
        return oteli_leaf_put(at, &plan->value, plan->length_limit);
    at += plan->value_bytes;
    oteli_nested_put(at, &plan->value, plan->length_limit, plan->depth_limit);
    return at;
}

/* A list on the way into bytes. */
struct list {
    const otel_attribute *attributes;
    size_t count;
    const struct oteli_list_limits *limits;
    struct oteli_keys keys; /* if it is long */
};

/* Whether the key of attribute `index` is new; `*last` is where its last value stands. */
static bool is_first(const struct list *list, size_t index, otel_slice key, size_t *last)
{
    const otel_attribute *attributes = list->attributes;
    if (list->keys.last != NULL) {
        *last = list->keys.last[index];
        return list->keys.last[index] != OTELI_KEYS_LEFT_OUT;
    }
    if (key.length == 0)
        return false;
    for (size_t i = 0; i < index; i++)
        if (oteli_key_is_same(oteli_key_of(&attributes[i]), key))
            return false;
    *last = list->count - 1;
    while (*last > index && !oteli_key_is_same(oteli_key_of(&attributes[*last]), key))
        --*last;
    return true;
}

/* Plan attribute `index` of a list, with the last value of its key, unless the key is empty or
 * was there before. */
static bool plan_next(struct oteli_key_value *plan, const struct list *list, size_t index)
{
    const otel_slice key = oteli_key_of(&list->attributes[index]);
    size_t last;
    if (!is_first(list, index, key, &last))
        return false;
    return oteli_key_value_plan(plan, key.data, key.length, &list->attributes[last].value,
                                list->limits->length, list->limits->depth);
}

size_t oteli_list_size(const otel_attribute *attributes, size_t count,
                       const struct oteli_list_limits *limits, uint32_t *dropped)
{
    struct list list = {attributes, count, limits, {NULL}};
    struct oteli_key_value plan;
    size_t size = 0;
    uint32_t kept = 0;
    *dropped = 0;
    oteli_keys_init(&list.keys, attributes, count, false);
    for (size_t i = 0; i < count; i++) {
        if (!plan_next(&plan, &list, i))
            continue;
        if (kept == limits->count) {
            ++*dropped;
            continue;
        }
        kept++;
        size += plan.bytes;
    }
    oteli_keys_fini(&list.keys);
    return size;
}

uint8_t *oteli_list_put(uint8_t *at, uint32_t field, const otel_attribute *attributes, size_t count,
                        const struct oteli_list_limits *limits)
{
    struct list list = {attributes, count, limits, {NULL}};
    struct oteli_key_value plan;
    uint32_t kept = 0;
    oteli_keys_init(&list.keys, attributes, count, false);
    for (size_t i = 0; i < count && kept < limits->count; i++) {
        if (!plan_next(&plan, &list, i))
            continue;
        kept++;
        at = oteli_key_value_put(at, field, &plan);
    }
    oteli_keys_fini(&list.keys);
    return at;
}

size_t oteli_key_values_size(const otel_attribute *attributes, size_t count, uint32_t limit,
                             size_t value_length_limit, uint32_t *dropped)
{
    const struct oteli_list_limits limits = {limit, OTELI_VALUE_DEPTH_MOST, value_length_limit};
    return oteli_list_size(attributes, count, &limits, dropped);
}

uint8_t *oteli_key_values_put(uint8_t *at, uint32_t field, const otel_attribute *attributes,
                              size_t count, uint32_t limit, size_t value_length_limit)
{
    const struct oteli_list_limits limits = {limit, OTELI_VALUE_DEPTH_MOST, value_length_limit};
    return oteli_list_put(at, field, attributes, count, &limits);
}
