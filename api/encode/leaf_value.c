/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/leaf_value.c - the contracts are in api/encode/leaf_value.h.
 *
 * Source: opentelemetry/proto/common/v1/common.proto (field numbers);
 * OpenTelemetry specification, common/attribute-type-mapping.md (a string that is not
 * UTF-8 becomes bytes). */
#include "api/encode/leaf_value.h"
#include "common/text/utf8.h"
#include "common/wire.h"

#include <string.h>

enum { STRING = 1, BOOL = 2, INT = 3, DOUBLE = 4, BYTES = 7 }; /* AnyValue */

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

otel_value oteli_value_cut(const otel_value *value, size_t limit)
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

otel_value oteli_array_element(const otel_value *array, size_t index)
{
    switch (array->type) {
    case OTEL_VALUE_STRING_ARRAY: {
        const char *text = array->as.strings[index];
        return text != NULL ? otel_value_string(text) : otel_value_empty();
    }
    case OTEL_VALUE_BOOL_ARRAY:
        return otel_value_bool(array->as.booleans[index]);
    case OTEL_VALUE_INT_ARRAY:
        return otel_value_int(array->as.integers[index]);
    case OTEL_VALUE_DOUBLE_ARRAY:
        return otel_value_double(array->as.reals[index]);
    case OTEL_VALUE_ARRAY:
        return array->as.values[index];
    case OTEL_VALUE_MAP:
        return array->as.entries[index].value;
    case OTEL_VALUE_EMPTY:
    case OTEL_VALUE_STRING:
    case OTEL_VALUE_BOOL:
    case OTEL_VALUE_INT:
    case OTEL_VALUE_DOUBLE:
    case OTEL_VALUE_BYTES:
        break;
    }
    return otel_value_empty();
}

size_t oteli_leaf_size(const otel_value *value)
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

uint8_t *oteli_leaf_put(uint8_t *at, const otel_value *value)
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
