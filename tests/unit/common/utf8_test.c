/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/utf8_test.c - specification of common/text/utf8.h. */
#include "common/text/utf8.h"
#include "tests/support/unit.h"

static size_t encode(uint32_t code_point, char *out)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

TEST(every_code_point_but_surrogates_is_valid)
{
    for (uint32_t code_point = 0; code_point < 0x110000; code_point++) {
        char text[4];
        const size_t size = encode(code_point, text);

        const bool valid = oteli_utf8_is_valid(text, size);

        assert_int_equal(valid, code_point < 0xD800 || code_point > 0xDFFF);
    }
}

TEST(every_cut_code_point_is_invalid)
{
    for (uint32_t code_point = 0x80; code_point < 0x110000; code_point += 61) {
        char text[4];
        const size_t size = encode(code_point, text);

        for (size_t cut = 1; cut < size; cut++)
            assert_int_equal(oteli_utf8_valid_prefix(text, cut), 0);
    }
}

/* Unicode's table 3-7: what the second byte may be after each lead, and how long that is. */
static size_t size_by_table(const uint8_t *text)
{
    static const struct {
        uint8_t first, last, low, high, size;
    } rows[] = {
        {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
        {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
        {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (text[0] < rows[i].first || text[0] > rows[i].last)
            continue;
        bool good = text[1] >= rows[i].low && text[1] <= rows[i].high;
        for (size_t k = 2; k < rows[i].size; k++)
            good = good && text[k] >= 0x80 && text[k] <= 0xBF;
        return good ? rows[i].size : 0;
    }
    return 0;
}

TEST(the_table_of_unicode_says_what_may_follow_each_lead)
{
    static const uint8_t followers[] = {0x7F, 0x80, 0xBF, 0xC0};
    for (unsigned lead = 0x80; lead <= 0xFF; lead++)
        for (unsigned second = 0; second <= 0xFF; second++)
            for (unsigned rest = 0; rest < 16; rest++) {
                const uint8_t text[5] = {(uint8_t)lead, (uint8_t)second, followers[rest / 4],
                                         followers[rest % 4], 0xFF};
                const size_t size = size_by_table(text);

                for (size_t length = 1; length <= sizeof text; length++) {
                    const size_t good = oteli_utf8_valid_prefix((const char *)text, length);

                    assert_int_equal(good != 0, size != 0 && size <= length);
                }
            }
}

static const struct bad_text {
    const char *bytes;
    size_t length;
    size_t valid_prefix;
    const char *replaced;
} bad_texts[] = {
    {"\x80", 1, 0, "\xEF\xBF\xBD"},                                 /* lone continuation */
    {"ab\xFFz", 4, 2, "ab\xEF\xBF\xBDz"},                           /* no lead byte */
    {"\xC0\xAF", 2, 0, "\xEF\xBF\xBD\xEF\xBF\xBD"},                 /* overlong, two */
    {"\xC1\xBF", 2, 0, "\xEF\xBF\xBD\xEF\xBF\xBD"},                 /* overlong, two */
    {"\xE0\x9F\xBF", 3, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* overlong, three */
    {"\xF0\x8F\xBF\xBF", 4, 0,                                      /* overlong, four */
     "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xED\xA0\x80", 3, 0, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* surrogate */
    {"\xF4\x90\x80\x80", 4, 0,                                      /* above U+10FFFF */
     "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    {"\xF5", 1, 0, "\xEF\xBF\xBD"},
    {"\xC3\xA4\xC3", 3, 2, "\xC3\xA4\xEF\xBF\xBD"}, /* cut at the end */
    {"\xC3z", 2, 0, "\xEF\xBF\xBDz"},               /* cut in the middle */
    {"12345678abcdefg\xE2\x82", 17, 15, "12345678abcdefg\xEF\xBF\xBD\xEF\xBF\xBD"},
};

TEST(finds_where_bad_bytes_begin_and_replaces_each)
{
    for (size_t i = 0; i < sizeof bad_texts / sizeof bad_texts[0]; i++) {
        const struct bad_text *bad = &bad_texts[i];
        char out[64];

        const size_t prefix = oteli_utf8_valid_prefix(bad->bytes, bad->length);
        const size_t computed = oteli_utf8_replace(bad->bytes, bad->length, NULL);
        const size_t written = oteli_utf8_replace(bad->bytes, bad->length, out);

        assert_int_equal(prefix, bad->valid_prefix);
        assert_false(oteli_utf8_is_valid(bad->bytes, bad->length));
        assert_int_equal(written, strlen(bad->replaced));
        assert_int_equal(computed, written);
        assert_true(written <= 3 * bad->length);
        assert_memory_equal(out, bad->replaced, written);
    }
}

/* Every length up to three words, so that each remainder and each step of eight is met. */
TEST(ascii_is_recognised_at_every_length_and_place)
{
    char text[24];
    for (size_t length = 0; length <= sizeof text; length++) {
        memset(text, 'x', sizeof text);
        assert_true(oteli_is_ascii(text, length));
        for (size_t bad = 0; bad < length; bad++) {
            text[bad] = (char)0x80;
            assert_false(oteli_is_ascii(text, length));
            assert_int_equal(oteli_utf8_valid_prefix(text, length), bad);
            text[bad] = 'x';
        }
    }
}

TEST(prefix_counts_characters_and_never_cuts_one)
{
    /* sizes 1 2 3 4, then ten ASCII letters, then 2 */
    const char *text = "a\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"
                       "0123456789\xC3\xA4";
    static const size_t ends[] = {0, 1, 3, 6, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22};
    const size_t characters = sizeof ends / sizeof ends[0] - 1;
    const size_t length = strlen(text);

    for (size_t wanted = 0; wanted <= characters; wanted++)
        assert_int_equal(oteli_utf8_prefix_bytes(text, length, wanted), ends[wanted]);

    assert_int_equal(oteli_utf8_prefix_bytes(text, length, characters + 1), length);
    assert_int_equal(oteli_utf8_prefix_bytes(text, length, SIZE_MAX), length);
    assert_int_equal(oteli_utf8_prefix_bytes(text, 0, 3), 0);
}
