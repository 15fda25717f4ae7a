/* SPDX-License-Identifier: Apache-2.0 */
/* What was compressed is what comes out again, and costs no allocation once a compressor has seen
 * a request of the size. */
#include "exporters/otlp/compress.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_BEFORE = 5, MEBIBYTE = 1024 * 1024 };

static const otel_otlp_compression compressions[] = {OTEL_OTLP_COMPRESSION_GZIP,
                                                     OTEL_OTLP_COMPRESSION_ZSTD};

/* Bytes that can be compressed a little (of 16 values each), or not at all. */
static uint8_t *make_bytes(size_t length, bool is_noise)
{
    uint8_t *bytes = malloc(length + 1);
    uint64_t random = 88172645463325252u;
    for (size_t i = 0; i < length; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        bytes[i] = (uint8_t)(is_noise ? random : random & 15);
    }
    return bytes;
}

static void assert_comes_back(struct oteli_compressor *compressor, const uint8_t *bytes,
                              size_t length)
{
    size_t compressed_length;
    bool is_whole;
    uint8_t *compressed =
        oteli_compress(compressor, bytes, length, ROOM_BEFORE, &compressed_length);
    assert_non_null(compressed);
    memset(compressed - ROOM_BEFORE, 0xff, ROOM_BEFORE);
    uint8_t *out = malloc(length + 1);
    assert_int_equal(oteli_decompress(compressed, compressed_length, out, length + 1, &is_whole),
                     length);
    assert_true(is_whole);
    assert_memory_equal(out, bytes, length);
    free(out);
}

/* spec: X6 protocol/exporter.md#configuration-options MUST stable */
TEST(what_was_compressed_comes_back)
{
    static const size_t lengths[] = {0, 1, 100, 8191, 65536, 300000, 3 * MEBIBYTE};
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        oteli_leaks_begin();
        struct oteli_compressor *compressor = oteli_compressor_new(compressions[c]);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            for (int is_noise = 0; is_noise < 2; is_noise++) {
                uint8_t *bytes = make_bytes(lengths[i], is_noise != 0);
                assert_comes_back(compressor, bytes, lengths[i]);
                free(bytes);
            }
        }
        oteli_compressor_free(compressor);
        oteli_leaks_check();
    }
}

TEST(gzip_is_always_there)
{
    assert_true(oteli_compression_is_known(OTEL_OTLP_COMPRESSION_NONE));
    assert_true(oteli_compression_is_known(OTEL_OTLP_COMPRESSION_GZIP));
    assert_false(oteli_compression_is_known((otel_otlp_compression)3));
}

TEST(bytes_begin_as_their_format_says)
{
    static const char *const marks[] = {"\x1f\x8b\x08", "\x28\xb5\x2f\xfd"};
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        struct oteli_compressor *compressor = oteli_compressor_new(compressions[c]);
        size_t length;
        const uint8_t *bytes = oteli_compress(compressor, "spans", 5, 0, &length);
        assert_true(length > 4);
        assert_memory_equal(bytes, marks[c], strlen(marks[c]));
        oteli_compressor_free(compressor);
    }
}

TEST(the_same_bytes_give_the_same_bytes)
{
    uint8_t *bytes = make_bytes(50000, false);
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        struct oteli_compressor *used = oteli_compressor_new(compressions[c]);
        struct oteli_compressor *fresh = oteli_compressor_new(compressions[c]);
        size_t length, expected_length;
        (void)oteli_compress(used, bytes + 100, 20000, 0, &length);
        const uint8_t *compressed = oteli_compress(used, bytes, 50000, 0, &length);
        const uint8_t *expected = oteli_compress(fresh, bytes, 50000, 0, &expected_length);
        assert_int_equal(length, expected_length);
        assert_memory_equal(compressed, expected, length);
        oteli_compressor_free(used);
        oteli_compressor_free(fresh);
    }
    free(bytes);
}

TEST(the_steady_state_allocates_nothing)
{
    uint8_t *bytes = make_bytes(200000, false);
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        struct oteli_compressor *compressor = oteli_compressor_new(compressions[c]);
        size_t length;
        assert_non_null(oteli_compress(compressor, bytes, 200000, 5, &length));

        oteli_leaks_begin();
        for (size_t i = 0; i < 100; i++)
            assert_non_null(oteli_compress(compressor, bytes, 200000 - i, 5, &length));

        assert_int_equal(oteli_leaks_count(), 0);
        oteli_leaks_check();
        oteli_compressor_free(compressor);
    }
    free(bytes);
}

TEST(no_memory_is_an_answer)
{
    uint8_t *bytes = make_bytes(MEBIBYTE, true);
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        for (size_t nth = 1;; nth++) {
            size_t length = 1;
            oteli_leaks_begin();
            oteli_leaks_fail_at(nth);
            struct oteli_compressor *compressor = oteli_compressor_new(compressions[c]);
            const uint8_t *compressed =
                compressor != NULL ? oteli_compress(compressor, bytes, MEBIBYTE, 5, &length) : NULL;
            const bool all_tried = !oteli_leaks_failed();
            assert_int_equal(compressed != NULL, all_tried);
            oteli_compressor_free(compressor);
            oteli_leaks_check();
            if (all_tried)
                break;
            assert_true(compressor == NULL || length == 0);
        }
    }
    free(bytes);
}

TEST(broken_bytes_end_where_they_break)
{
    uint8_t *bytes = make_bytes(20000, false);
    uint8_t out[20000];
    for (size_t c = 0; c < sizeof compressions / sizeof *compressions; c++) {
        if (!oteli_compression_is_known(compressions[c]))
            continue;
        struct oteli_compressor *compressor = oteli_compressor_new(compressions[c]);
        size_t length;
        bool is_whole = true;
        const uint8_t *compressed = oteli_compress(compressor, bytes, 20000, 0, &length);
        for (size_t cut = 0; cut < length; cut += 97) {
            uint8_t *copy = malloc(cut + 1);
            memcpy(copy, compressed, cut);
            const size_t got = oteli_decompress(copy, cut, out, sizeof out, &is_whole);
            assert_false(is_whole);
            assert_true(got <= sizeof out);
            assert_memory_equal(out, bytes, got);
            free(copy);
        }
        assert_int_equal(oteli_decompress(compressed, length, out, 100, &is_whole), 100);
        assert_false(is_whole);
        assert_memory_equal(out, bytes, 100);
        oteli_compressor_free(compressor);
    }
    bool is_whole = true;
    assert_int_equal(oteli_decompress("spans", 5, out, sizeof out, &is_whole), 0);
    assert_false(is_whole);
    free(bytes);
}
