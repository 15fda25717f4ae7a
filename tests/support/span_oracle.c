/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/span_oracle.c - the contracts are in span_oracle.h. */
#include "tests/support/span_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POOL = 512 };

pb_span *oracle_unpack(size_t index)
{
    static uint8_t again[1 << 20];
    const struct recorded_span recorded = recorder_span(index);
    pb_span *span =
        opentelemetry__proto__trace__v1__span__unpack(NULL, recorded.length, recorded.message);
    assert_non_null(span);
    assert_int_equal(protobuf_c_message_get_packed_size(&span->base), recorded.length);
    assert_true(recorded.length <= sizeof again);
    assert_int_equal(protobuf_c_message_pack(&span->base, again), recorded.length);
    assert_memory_equal(again, recorded.message, recorded.length);
    assert_true(protobuf_c_message_check(&span->base));
    return span;
}

void oracle_free(pb_span *span)
{
    opentelemetry__proto__trace__v1__span__free_unpacked(span, NULL);
}

/* Structs of protobuf-c for one value, used up from the front. */
static struct {
    pb_any_value values[POOL];
    pb_any_value *value_pointers[POOL];
    pb_key_value pairs[POOL];
    pb_key_value *pair_pointers[POOL];
    Opentelemetry__Proto__Common__V1__ArrayValue arrays[POOL];
    Opentelemetry__Proto__Common__V1__KeyValueList maps[POOL];
    size_t values_used, pairs_used, arrays_used, maps_used;
} pool;

static otel_value element_of(const otel_value *array, size_t i)
{
    if (array->type == OTEL_VALUE_ARRAY)
        return array->as.values[i];
    if (array->type == OTEL_VALUE_STRING_ARRAY)
        return array->as.strings[i] ? otel_value_string(array->as.strings[i]) : otel_value_empty();
    if (array->type == OTEL_VALUE_BOOL_ARRAY)
        return otel_value_bool(array->as.booleans[i]);
    if (array->type == OTEL_VALUE_INT_ARRAY)
        return otel_value_int(array->as.integers[i]);
    return otel_value_double(array->as.reals[i]);
}

static pb_any_value *tree_of(const otel_value *value);

static void fill_array(pb_any_value *any, const otel_value *value)
{
    assert_true(pool.values_used + value->length <= POOL && pool.arrays_used < POOL);
    pb_any_value **pointers = &pool.value_pointers[pool.values_used];
    Opentelemetry__Proto__Common__V1__ArrayValue *array = &pool.arrays[pool.arrays_used++];
    opentelemetry__proto__common__v1__array_value__init(array);
    array->n_values = value->length;
    array->values = pointers;
    for (size_t i = 0; i < value->length; i++)
        pointers[i] = &pool.values[pool.values_used++];
    for (size_t i = 0; i < value->length; i++) {
        const otel_value one = element_of(value, i);
        *pointers[i] = *tree_of(&one);
    }
    any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE;
    any->array_value = array;
}

static void fill_map(pb_any_value *any, const otel_value *value)
{
    assert_true(pool.pairs_used + value->length <= POOL && pool.maps_used < POOL);
    pb_key_value *pairs = &pool.pairs[pool.pairs_used];
    Opentelemetry__Proto__Common__V1__KeyValueList *map = &pool.maps[pool.maps_used++];
    opentelemetry__proto__common__v1__key_value_list__init(map);
    map->n_values = value->length;
    map->values = &pool.pair_pointers[pool.pairs_used];
    pool.pairs_used += value->length;
    for (size_t i = 0; i < value->length; i++) {
        opentelemetry__proto__common__v1__key_value__init(&pairs[i]);
        pairs[i].key = (char *)(uintptr_t)value->as.entries[i].key;
        pairs[i].value = tree_of(&value->as.entries[i].value);
        map->values[i] = &pairs[i];
    }
    any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_KVLIST_VALUE;
    any->kvlist_value = map;
}

static pb_any_value *tree_of(const otel_value *value)
{
    assert_true(pool.values_used < POOL);
    pb_any_value *any = &pool.values[pool.values_used++];
    opentelemetry__proto__common__v1__any_value__init(any);
    switch (value->type) {
    case OTEL_VALUE_STRING:
        any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE;
        any->string_value = (char *)(uintptr_t)value->as.string;
        break;
    case OTEL_VALUE_BOOL:
        any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BOOL_VALUE;
        any->bool_value = value->as.boolean;
        break;
    case OTEL_VALUE_INT:
        any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_INT_VALUE;
        any->int_value = value->as.integer;
        break;
    case OTEL_VALUE_DOUBLE:
        any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_DOUBLE_VALUE;
        any->double_value = value->as.real;
        break;
    case OTEL_VALUE_BYTES:
        any->value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_BYTES_VALUE;
        any->bytes_value.len = value->length;
        any->bytes_value.data = (uint8_t *)(uintptr_t)value->as.bytes;
        break;
    case OTEL_VALUE_MAP:
        fill_map(any, value);
        break;
    case OTEL_VALUE_EMPTY:
        break;
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
    case OTEL_VALUE_ARRAY:
        fill_array(any, value);
        break;
    }
    return any;
}

size_t oracle_pack_key_value(const char *key, const otel_value *value, uint8_t *out)
{
    pb_key_value pair = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
    memset(&pool, 0, sizeof pool);
    pair.key = (char *)(uintptr_t)key;
    pair.value = tree_of(value);
    return protobuf_c_message_pack(&pair.base, out);
}
