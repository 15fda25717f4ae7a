/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/wire_test.c - specification of common/wire.h. What is read of a message is
 * compared with protobuf-c in tests/unit/started/record_oracle_test.c. */
#include "common/wire.h"

#include "tests/support/unit.h"

enum { GUARD = 0xA5 };

/* Both sides of each power of two, where sizes change. */
static size_t interesting_numbers(uint64_t out[200])
{
    size_t count = 0;
    out[count++] = 0;
    for (unsigned bit = 0; bit < 64; bit++) {
        const uint64_t power = UINT64_C(1) << bit;
        out[count++] = power - 1;
        out[count++] = power;
        out[count++] = power + 1;
    }
    out[count++] = UINT64_MAX;
    return count;
}

static size_t slow_varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

TEST(a_varint_has_its_size_and_comes_back)
{
    uint64_t numbers[200];
    const size_t count = interesting_numbers(numbers);
    for (size_t i = 0; i < count; i++) {
        uint8_t bytes[OTELI_VARINT_MAX + 1];
        memset(bytes, GUARD, sizeof bytes);

        const uint8_t *behind = oteli_put_varint(bytes, numbers[i]);
        const uint8_t *at = bytes;
        const uint64_t back = oteli_get_varint(&at);

        assert_int_equal(behind - bytes, slow_varint_size(numbers[i]));
        assert_int_equal(oteli_varint_size(numbers[i]), behind - bytes);
        assert_int_equal(*behind, GUARD);
        assert_true(back == numbers[i]);
        assert_ptr_equal(at, behind);
    }
}

TEST(bytes_are_as_specified)
{
    uint8_t bytes[OTELI_VARINT_MAX] = {GUARD, GUARD, GUARD, GUARD};

    assert_ptr_equal(oteli_put_bytes(bytes, NULL, 0), bytes);
    assert_ptr_equal(oteli_put_bytes(bytes, "ab", 2), bytes + 2);
    assert_memory_equal(bytes, "ab\xA5\xA5", 4);

    assert_ptr_equal(oteli_put_varint(bytes, 150), bytes + 2);
    assert_memory_equal(bytes, "\x96\x01", 2);
    assert_ptr_equal(oteli_put_varint(bytes, (uint64_t)INT64_C(-2)), bytes + OTELI_VARINT_MAX);
    assert_memory_equal(bytes, "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", OTELI_VARINT_MAX);

    assert_ptr_equal(oteli_put_fixed64(bytes, UINT64_C(0x0102030405060708)), bytes + 8);
    assert_memory_equal(bytes, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    assert_true(oteli_get_fixed64(bytes) == UINT64_C(0x0102030405060708));
    assert_ptr_equal(oteli_put_fixed32(bytes, UINT32_C(0x81020304)), bytes + 4);
    assert_memory_equal(bytes, "\x04\x03\x02\x81", 4);
    assert_int_equal(oteli_get_fixed32(bytes), UINT32_C(0x81020304));

    assert_ptr_equal(oteli_put_tag(bytes, 1, OTELI_WIRE_BYTES), bytes + 1);
    assert_int_equal(bytes[0], 0x0A);
    assert_ptr_equal(oteli_put_tag(bytes, 16, OTELI_WIRE_FIXED32), bytes + 2);
    assert_memory_equal(bytes, "\x85\x01", 2);
    assert_int_equal(OTELI_TAG(15, OTELI_WIRE_BYTES), 0x7A);
}

TEST(the_size_of_a_field_is_what_is_written)
{
    static const uint32_t fields[] = {1, 15, 16, 2047, 2048, 536870911};
    static uint8_t payload[20000], bytes[20016];
    uint64_t numbers[200];
    const size_t count = interesting_numbers(numbers);
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        for (size_t i = 0; i < count; i++) {
            const uint8_t *behind = oteli_put_varint_field(bytes, fields[f], numbers[i]);
            assert_int_equal(oteli_varint_field_size(fields[f], numbers[i]), behind - bytes);
        }
        static const size_t lengths[] = {0, 1, 127, 128, 16383, 16384, sizeof payload};
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            const uint8_t *behind = oteli_put_bytes_field(bytes, fields[f], payload, lengths[i]);
            const uint8_t *head = oteli_put_bytes_head(bytes, fields[f], lengths[i]);
            assert_int_equal(oteli_bytes_field_size(fields[f], lengths[i]), behind - bytes);
            assert_int_equal(behind - head, lengths[i]);
        }
    }
}
