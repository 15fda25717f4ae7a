/* SPDX-License-Identifier: Apache-2.0 */
/* tests/support/span_oracle.c - the contracts are in span_oracle.h. */
#include "tests/support/span_oracle.h"

#include "tests/support/strict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DEPTH = 500 };

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

size_t oracle_pack_key_value(const char *key, const otel_value *value, uint8_t *out)
{
    pb_key_value pair = OPENTELEMETRY__PROTO__COMMON__V1__KEY_VALUE__INIT;
    const struct strict_bytes any = strict_value(value, SIZE_MAX, DEPTH);
    pair.key = (char *)(uintptr_t)key;
    pair.value = opentelemetry__proto__common__v1__any_value__unpack(NULL, any.length, any.data);
    assert_non_null(pair.value);
    const size_t size = protobuf_c_message_pack(&pair.base, out);
    opentelemetry__proto__common__v1__any_value__free_unpacked(pair.value, NULL);
    free(any.data);
    return size;
}
