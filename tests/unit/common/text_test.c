/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/text_test.c - specification of common/text/text.h; lists, words and whole
 * numbers are in config_test.c. */
#include "common/text/text.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <stdlib.h>

static void assert_slice(otel_slice slice, const char *text)
{
    assert_int_equal(slice.length, strlen(text));
    assert_memory_equal(slice.data, text, slice.length);
}

TEST(cut_is_at_the_first_mark)
{
    otel_slice key, value;

    assert_true(oteli_cut(oteli_slice_of(" key = a=b "), '=', &key, &value));
    assert_slice(key, "key");
    assert_slice(value, "a=b");

    assert_true(oteli_cut(oteli_slice_of("="), '=', &key, &value));
    assert_int_equal(key.length, 0);
    assert_int_equal(value.length, 0);

    assert_false(oteli_cut(oteli_slice_of("key"), '=', &key, &value));
    assert_false(oteli_cut(oteli_slice_of(NULL), '=', &key, &value));
}

TEST(a_copy_is_terminated_and_the_callers_or_null)
{
    oteli_leaks_begin();
    char *copy = oteli_slice_copy((otel_slice){.data = "spans", .length = 4});
    char *empty = oteli_slice_copy((otel_slice){.data = NULL, .length = 0});
    assert_string_equal(copy, "span");
    assert_string_equal(empty, "");
    free(copy);
    free(empty);
    oteli_leaks_fail_at(1);
    assert_null(oteli_slice_copy(oteli_slice_of("span")));
    oteli_leaks_check();
}

static const struct {
    const char *text;
    const char *bytes; /* NULL: refused */
    size_t length;
} decodeds[] = {
    {"", "", 0},
    {"plain+text", "plain+text", 10},
    {"a%20b%2C%2c", "a b,,", 5},
    {"%C3%A4%e2%82%ac", "\xC3\xA4\xE2\x82\xAC", 5},
    {"%00", "\0", 1},
    {"100%25", "100%", 4},
    {"%2525", "%25", 3},
    {"%", NULL, 0},
    {"a%2", NULL, 0},
    {"%2g", NULL, 0},
    {"%g2", NULL, 0},
    {"%%20", NULL, 0},
    {"% 20", NULL, 0},
    {"%+2", NULL, 0},
    {"%0x", NULL, 0},
};

TEST(percent_decoding_is_strict)
{
    for (size_t i = 0; i < sizeof decodeds / sizeof decodeds[0]; i++) {
        const char *const text = decodeds[i].text;
        char out[32];
        size_t length = 99;
        const bool good = oteli_percent_decode(text, strlen(text), out, &length);
        assert_int_equal(good, decodeds[i].bytes != NULL);
        if (good) {
            assert_int_equal(length, decodeds[i].length);
            assert_memory_equal(out, decodeds[i].bytes, length);
        }
    }
}

TEST(percent_decoding_works_in_place_and_within_its_length)
{
    char text[] = "%41%42%";
    size_t length;

    assert_true(oteli_percent_decode(text, 6, text, &length));

    assert_int_equal(length, 2);
    assert_memory_equal(text, "AB", 2);
    assert_false(oteli_percent_decode("%41", 2, text, &length));
}
