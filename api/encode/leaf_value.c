/* SPDX-License-Identifier: Apache-2.0 */
/* api/encode/leaf_value.c - the contracts are in api/encode/leaf_value.h.
 *
 * Source: opentelemetry/proto/common/v1/common.proto (field numbers);
 * OpenTelemetry specification, common/attribute-type-mapping.md (a string that is not
 * UTF-8 becomes bytes). */
#include "api/encode/leaf_value.h"
#include "common/base/atomic.h"
#include "common/base/copy.h"
#include "common/text/utf8.h"
#include "common/wire.h"

#include <string.h>

enum { STRING = 1, BOOL = 2, INT = 3, DOUBLE = 4, ARRAY = 5, BYTES = 7 }; /* AnyValue */
enum { VALUES = 1 };                                                      /* ArrayValue */

size_t oteli_text_size(const char *text, size_t length)
{
    return oteli_utf8_is_valid(text, length) ? length : oteli_utf8_replace(text, length, NULL);
}

uint8_t *oteli_text_put(uint8_t *at, const char *text, size_t length, size_t size)
{
    if (size == length) /* a byte that is replaced makes a text longer */
        return oteli_put_bytes(at, text, length);
    oteli_utf8_replace(text, length, (char *)at);
    return at + size;
}

uint8_t *oteli_text_copy(uint8_t *at, const char *text, size_t length)
{
    const oteli_seen seen = oteli_move(at, text, length);
    if (OTELI_UNLIKELY(!oteli_saw_ascii(seen)) &&
        oteli_utf8_valid_prefix((const char *)at, length) != length)
        return NULL;
    return at + length;
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
    if (oteli_value_has_elements(value) && value->as.bytes == NULL)
        kept.length = 0;
    return kept;
}

/* The AnyValue message of a value that is no array; of an unknown type: an empty one. */
static size_t scalar_size(const otel_value *value)
{
    if (value->type == OTEL_VALUE_STRING || value->type == OTEL_VALUE_BYTES)
        return oteli_bytes_field_size(STRING, value->length);
    if (value->type == OTEL_VALUE_BOOL)
        return 2;
    if (value->type == OTEL_VALUE_INT)
        return oteli_varint_field_size(INT, (uint64_t)value->as.integer);
    return value->type == OTEL_VALUE_DOUBLE ? 9 : 0;
}

static uint8_t *put_scalar(uint8_t *at, const otel_value *value)
{
    if (value->type == OTEL_VALUE_STRING)
        return oteli_put_bytes_field(at, STRING, value->as.string, value->length);
    if (value->type == OTEL_VALUE_BYTES)
        return oteli_put_bytes_field(at, BYTES, value->as.bytes, value->length);
    if (value->type == OTEL_VALUE_BOOL)
        return oteli_put_varint_field(at, BOOL, value->as.boolean);
    if (value->type == OTEL_VALUE_INT)
        return oteli_put_varint_field(at, INT, (uint64_t)value->as.integer);
    if (value->type != OTEL_VALUE_DOUBLE)
        return at;
    uint64_t bits;
    memcpy(&bits, &value->as.real, sizeof bits);
    return oteli_put_fixed64(oteli_put_tag(at, DOUBLE, OTELI_WIRE_FIXED64), bits);
}

static bool is_array(const otel_value *value)
{
    return value->type >= OTEL_VALUE_STRING_ARRAY && value->type <= OTEL_VALUE_DOUBLE_ARRAY;
}

/* Element `index` of an array, as a value of its own. */
static otel_value element(const otel_value *array, size_t index, size_t limit)
{
    if (array->type == OTEL_VALUE_BOOL_ARRAY)
        return otel_value_bool(array->as.booleans[index]);
    if (array->type == OTEL_VALUE_INT_ARRAY)
        return otel_value_int(array->as.integers[index]);
    if (array->type == OTEL_VALUE_DOUBLE_ARRAY)
        return otel_value_double(array->as.reals[index]);
    const char *text = array->as.strings[index];
    return text != NULL ? cut_string(text, strlen(text), limit) : otel_value_empty();
}

/* The ArrayValue message; SIZE_MAX: too large. */
static size_t array_size(const otel_value *array, size_t limit)
{
    size_t size = 0;
    for (size_t i = 0; i < array->length; i++) {
        const otel_value one = element(array, i, limit);
        size += oteli_bytes_field_size(VALUES, scalar_size(&one));
    }
    return size <= OTELI_VALUE_LARGEST ? size : SIZE_MAX;
}

size_t oteli_leaf_size(const otel_value *value, size_t limit)
{
    if (value->length > OTELI_VALUE_LARGEST)
        return SIZE_MAX;
    if (!is_array(value))
        return scalar_size(value);
    const size_t inner = array_size(value, limit);
    return inner != SIZE_MAX ? oteli_bytes_field_size(ARRAY, inner) : SIZE_MAX;
}

uint8_t *oteli_leaf_put(uint8_t *at, const otel_value *value, size_t limit)
{
    if (!is_array(value))
        return put_scalar(at, value);
    at = oteli_put_bytes_head(at, ARRAY, array_size(value, limit));
    for (size_t i = 0; i < value->length; i++) {
        const otel_value one = element(value, i, limit);
        at = oteli_put_bytes_head(at, VALUES, scalar_size(&one));
        at = put_scalar(at, &one);
    }
    return at;
}
