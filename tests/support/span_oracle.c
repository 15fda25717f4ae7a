/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/span_oracle.c - the contracts are in span_oracle.h. */
#include "tests/support/span_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ELEMENTS = 64 };

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

/* One value that is no array. */
static void fill(pb_any_value *any, const otel_value *value)
{
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
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_STRING_ARRAY:
    case OTEL_VALUE_BOOL_ARRAY:
    case OTEL_VALUE_INT_ARRAY:
    case OTEL_VALUE_DOUBLE_ARRAY:
        break;
    }
}

static otel_value element_of(const otel_value *array, size_t i)
{
    if (array->type == OTEL_VALUE_STRING_ARRAY)
        return array->as.strings[i] ? otel_value_string(array->as.strings[i]) : otel_value_empty();
    if (array->type == OTEL_VALUE_BOOL_ARRAY)
        return otel_value_bool(array->as.booleans[i]);
    if (array->type == OTEL_VALUE_INT_ARRAY)
        return otel_value_int(array->as.integers[i]);
    return otel_value_double(array->as.reals[i]);
}

size_t oracle_pack_key_value(const char *key, const otel_value *value, uint8_t *out)
{
    pb_any_value any = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__INIT;
    Opentelemetry__Proto__Common__V1__ArrayValue array =
        OPENTELEMETRY__PROTO__COMMON__V1__ARRAY_VALUE__INIT;
    pb_any_value elements[ELEMENTS];
    pb_any_value *pointers[ELEMENTS];
    if (value->type >= OTEL_VALUE_STRING_ARRAY) {
        assert_true(value->length <= ELEMENTS);
        for (size_t i = 0; i < value->length; i++) {
            const otel_value one = element_of(value, i);
            opentelemetry__proto__common__v1__any_value__init(&elements[i]);
            fill(&elements[i], &one);
            pointers[i] = &elements[i];
        }
        array.n_values = value->length;
        array.values = pointers;
        any.value_case = OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_ARRAY_VALUE;
        any.array_value = &array;
    } else {
        fill(&any, value);
    }
    pb_key_value pair = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
    pair.key = (char *)(uintptr_t)key;
    pair.value = &any;
    return protobuf_c_message_pack(&pair.base, out);
}
