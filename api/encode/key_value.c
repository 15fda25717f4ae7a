/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/key_value.c - measure and write attribute values. Any thread, no state.
 *
 * Source: opentelemetry/proto/common/v1/common.proto (field numbers);
 * OpenTelemetry specification, common/attribute-type-mapping.md (a string that is not
 * UTF-8 becomes bytes). */
#include "api/encode/key_value.h"
#include "api/encode/key_index.h"
#include "api/encode/nested_value.h"
#include "common/text/utf8.h"
#include "common/wire.h"

#include <string.h>

enum { KEY = 1, VALUE = 2 };                                              /* KeyValue */
enum { STRING = 1, BOOL = 2, INT = 3, DOUBLE = 4, ARRAY = 5, BYTES = 7 }; /* AnyValue */
enum { VALUES = 1 };                                                      /* ArrayValue */

size_t oteli_text_size(const char *text, size_t length)
{
    return oteli_utf8_is_valid(text, length) ? length : oteli_utf8_replace(text, length, NULL);
}

uint8_t *oteli_text_put(uint8_t *at, const char *text, size_t length, size_t size)
{
    if (size == length && oteli_utf8_is_valid(text, length))
        return oteli_put_bytes(at, text, length);
    oteli_utf8_replace(text, length, (char *)at);
    return at + size;
}

/* What is kept of a string under the limit, and as what. */
static otel_value cut_string(const char *text, size_t length, size_t limit)
{
    if (text == NULL)
        length = 0;
    if (!oteli_utf8_is_valid(text, length))
        return otel_value_bytes(text, length < limit ? length : limit);
    if (length > limit)
        length = oteli_utf8_prefix_bytes(text, length, limit);
    return otel_value_string_n(text, length);
}

static otel_value cut(const otel_value *value, size_t limit)
{
    otel_value kept = *value;
    if (value->type == OTEL_VALUE_STRING)
        return cut_string(value->as.string, value->length, limit);
    if (value->type == OTEL_VALUE_BYTES && value->as.bytes == NULL)
        kept.length = 0;
    if (value->type == OTEL_VALUE_BYTES && kept.length > limit)
        kept.length = limit;
    if (value->type >= OTEL_VALUE_STRING_ARRAY && value->as.bytes == NULL)
        kept.length = 0;
    return kept;
}

/* Element `index` of an array, as a value of its own. */
static otel_value element(const otel_value *array, size_t index, size_t limit)
{
    switch (array->type) {
    case OTEL_VALUE_STRING_ARRAY: {
        const char *text = array->as.strings[index];
        return text != NULL ? cut_string(text, strlen(text), limit) : otel_value_empty();
    }
    case OTEL_VALUE_BOOL_ARRAY:
        return otel_value_bool(array->as.booleans[index]);
    case OTEL_VALUE_INT_ARRAY:
        return otel_value_int(array->as.integers[index]);
    case OTEL_VALUE_DOUBLE_ARRAY:
        return otel_value_double(array->as.reals[index]);
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_STRING:
    case OTEL_VALUE_BOOL:
    case OTEL_VALUE_INT:
    case OTEL_VALUE_DOUBLE:
    case OTEL_VALUE_BYTES:
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        break;
    }
    return otel_value_empty();
}

/* The AnyValue message of a value that is no array. */
static size_t scalar_size(const otel_value *value)
{
    switch (value->type) {
    case OTEL_VALUE_STRING:
    case OTEL_VALUE_BYTES:
        return oteli_bytes_field_size(STRING, value->length);
    case OTEL_VALUE_BOOL:
        return 2;
    case OTEL_VALUE_INT:
        return oteli_varint_field_size(INT, (uint64_t)value->as.integer);
    case OTEL_VALUE_DOUBLE:
        return 9;
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        break;
    }
    return 0;
}

static uint8_t *put_scalar(uint8_t *at, const otel_value *value)
{
    switch (value->type) {
    case OTEL_VALUE_STRING:
        return oteli_put_bytes_field(at, STRING, value->as.string, value->length);
    case OTEL_VALUE_BYTES:
        return oteli_put_bytes_field(at, BYTES, value->as.bytes, value->length);
    case OTEL_VALUE_BOOL:
        return oteli_put_varint_field(at, BOOL, value->as.boolean);
    case OTEL_VALUE_INT:
        return oteli_put_varint_field(at, INT, (uint64_t)value->as.integer);
    case OTEL_VALUE_DOUBLE: {
        uint64_t bits;
        memcpy(&bits, &value->as.real, sizeof bits);
        return oteli_put_fixed64(oteli_put_tag(at, DOUBLE, OTELI_WIRE_FIXED64), bits);
    }
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
    case OTEL_VALUE_ARRAY:
    case OTEL_VALUE_MAP:
        break;
    }
    return at;
}

static bool is_flat_array(const otel_value *value)
{
    return value->type >= OTEL_VALUE_STRING_ARRAY && value->type <= OTEL_VALUE_DOUBLE_ARRAY;
}

/* The ArrayValue message of an array of one type; SIZE_MAX: too large. */
static size_t flat_array_size(const otel_value *array, size_t length_limit)
{
    size_t size = 0;
    if (array->length > OTELI_VALUE_LARGEST)
        return SIZE_MAX;
    for (size_t i = 0; i < array->length; i++) {
        const otel_value one = element(array, i, length_limit);
        size += oteli_bytes_field_size(VALUES, scalar_size(&one));
    }
    return size <= OTELI_VALUE_LARGEST ? size : SIZE_MAX;
}

static uint8_t *put_flat_array(uint8_t *at, const otel_value *array, size_t length_limit,
                               size_t inner_bytes)
{
    at = oteli_put_bytes_head(at, ARRAY, inner_bytes);
    for (size_t i = 0; i < array->length; i++) {
        const otel_value one = element(array, i, length_limit);
        at = oteli_put_bytes_head(at, VALUES, scalar_size(&one));
        at = put_scalar(at, &one);
    }
    return at;
}

size_t oteli_leaf_size(const otel_value *value, size_t length_limit)
{
    const otel_value kept = cut(value, length_limit);
    if (kept.length > OTELI_VALUE_LARGEST)
        return SIZE_MAX;
    if (!is_flat_array(&kept))
        return scalar_size(&kept);
    const size_t inner = flat_array_size(&kept, length_limit);
    return inner != SIZE_MAX ? oteli_bytes_field_size(ARRAY, inner) : SIZE_MAX;
}

uint8_t *oteli_leaf_put(uint8_t *at, const otel_value *value, size_t length_limit)
{
    const otel_value kept = cut(value, length_limit);
    if (!is_flat_array(&kept))
        return put_scalar(at, &kept);
    return put_flat_array(at, &kept, length_limit, flat_array_size(&kept, length_limit));
}

/* A value that is an array or a map, or of no type that there is. */
static OTELI_COLD bool plan_composite(struct oteli_key_value *plan)
{
    otel_value *value = &plan->value;
    if (value->type <= OTEL_VALUE_MAP && plan->depth_limit == 0)
        *value = otel_value_empty();
    if (value->type == OTEL_VALUE_ARRAY || value->type == OTEL_VALUE_MAP) {
        plan->value_bytes = oteli_nested_size(value, plan->length_limit, plan->depth_limit);
        return plan->value_bytes != SIZE_MAX;
    }
    plan->value_bytes = 0;
    if (!is_flat_array(value))
        return true;
    plan->inner_bytes = flat_array_size(value, plan->length_limit);
    if (plan->inner_bytes == SIZE_MAX)
        return false;
    plan->value_bytes = oteli_bytes_field_size(ARRAY, plan->inner_bytes);
    return true;
}

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
    plan->value = cut(value, length_limit);
    if (plan->value.length > OTELI_VALUE_LARGEST)
        return false;
    if (OTELI_LIKELY(value->type < OTEL_VALUE_STRING_ARRAY))
        plan->value_bytes = scalar_size(&plan->value);
    else if (!plan_composite(plan))
        return false;
    plan->bytes = oteli_bytes_field_size(1, oteli_bytes_field_size(KEY, plan->key_bytes) +
                                                oteli_bytes_field_size(VALUE, plan->value_bytes));
    return true;
}

static OTELI_COLD uint8_t *put_composite(uint8_t *at, const struct oteli_key_value *plan)
{
    const otel_value *value = &plan->value;
    if (is_flat_array(value))
        return put_flat_array(at, value, plan->length_limit, plan->inner_bytes);
    if (value->type != OTEL_VALUE_ARRAY && value->type != OTEL_VALUE_MAP)
        return at;
    oteli_nested_put(at + plan->value_bytes, value, plan->length_limit, plan->depth_limit);
    return at + plan->value_bytes;
}

uint8_t *oteli_key_value_put(uint8_t *at, uint32_t field, const struct oteli_key_value *plan)
{
    at = oteli_put_bytes_head(at, field,
                              oteli_bytes_field_size(KEY, plan->key_bytes) +
                                  oteli_bytes_field_size(VALUE, plan->value_bytes));
    at = oteli_put_bytes_head(at, KEY, plan->key_bytes);
    at = oteli_text_put(at, plan->key, plan->key_length, plan->key_bytes);
    at = oteli_put_bytes_head(at, VALUE, plan->value_bytes);
    if (OTELI_LIKELY(plan->value.type < OTEL_VALUE_STRING_ARRAY))
        return put_scalar(at, &plan->value);
    return put_composite(at, plan);
}

static bool has_key(const otel_attribute *attribute)
{
    return attribute->key != NULL && attribute->key[0] != '\0';
}

/* A list on the way into bytes. */
struct list {
    const otel_attribute *attributes;
    size_t count;
    const struct oteli_list_limits *limits;
    struct oteli_keys keys; /* if it is long */
};

/* Whether the key of attribute `index` is new; `*last` is where its last value stands. */
static bool is_first(const struct list *list, size_t index, size_t *last)
{
    const otel_attribute *attributes = list->attributes;
    const char *key = attributes[index].key;
    if (list->keys.last != NULL) {
        *last = list->keys.last[index];
        return list->keys.last[index] != OTELI_KEYS_LEFT_OUT;
    }
    if (!has_key(&attributes[index]))
        return false;
    for (size_t i = 0; i < index; i++)
        if (has_key(&attributes[i]) && oteli_key_is_same(attributes[i].key, key))
            return false;
    *last = list->count - 1;
    while (*last > index &&
           !(has_key(&attributes[*last]) && oteli_key_is_same(attributes[*last].key, key)))
        --*last;
    return true;
}

/* Plan attribute `index` of a list, with the last value of its key, unless the key is empty or
 * was there before. */
static bool plan_next(struct oteli_key_value *plan, const struct list *list, size_t index)
{
    size_t last;
    if (!is_first(list, index, &last))
        return false;
    const char *key = list->attributes[index].key;
    return oteli_key_value_plan(plan, key, strlen(key), &list->attributes[last].value,
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
