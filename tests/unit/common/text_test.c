/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/text_test.c - specification of common/text.h. */
#include "common/text.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <stdlib.h>

static void assert_slice(otel_slice slice, const char *text)
{
    assert_int_equal(slice.length, strlen(text));
    assert_memory_equal(slice.data, text, slice.length);
}

TEST(trim_takes_blanks_from_both_ends_only)
{
    assert_slice(oteli_trim(oteli_slice_of(" \t a b\t ")), "a b");
    assert_slice(oteli_trim(oteli_slice_of("a\n")), "a\n");
    assert_int_equal(oteli_trim(oteli_slice_of(" \t ")).length, 0);
    assert_int_equal(oteli_trim(oteli_slice_of("")).length, 0);
    assert_int_equal(oteli_trim(oteli_slice_of(NULL)).length, 0);
}

TEST(list_gives_trimmed_members_in_order)
{
    otel_slice rest = oteli_slice_of(" a=1 ,, b c\t,, ");
    otel_slice member;

    assert_true(oteli_list_next(&rest, &member));
    assert_slice(member, "a=1");
    assert_true(oteli_list_next(&rest, &member));
    assert_slice(member, "b c");
    assert_false(oteli_list_next(&rest, &member));
    assert_false(oteli_list_next(&rest, &member));
}

TEST(list_stops_at_its_length)
{
    otel_slice rest = {.data = "ab,cd", .length = 4};
    otel_slice member;

    assert_true(oteli_list_next(&rest, &member));
    assert_slice(member, "ab");
    assert_true(oteli_list_next(&rest, &member));
    assert_slice(member, "c");
    assert_false(oteli_list_next(&rest, &member));
}

TEST(an_empty_list_has_no_members)
{
    otel_slice rest = oteli_slice_of(NULL);
    otel_slice member;

    assert_false(oteli_list_next(&rest, &member));
    rest = oteli_slice_of(" , ,");
    assert_false(oteli_list_next(&rest, &member));
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

TEST(words_are_compared_without_case)
{
    assert_true(oteli_is_word(oteli_slice_of("TrUe"), "true"));
    assert_false(oteli_is_word(oteli_slice_of("tru"), "true"));
    assert_false(oteli_is_word(oteli_slice_of("true2"), "true"));
    assert_true(oteli_is_word(oteli_slice_of(""), ""));
    assert_true(oteli_is_word((otel_slice){.data = "truely", .length = 4}, "true"));
}

TEST(texts_are_compared_byte_by_byte)
{
    assert_true(oteli_is_text(oteli_slice_of("true"), "true"));
    assert_false(oteli_is_text(oteli_slice_of("True"), "true"));
    assert_false(oteli_is_text(oteli_slice_of("tru"), "true"));
    assert_false(oteli_is_text(oteli_slice_of("true2"), "true"));
    assert_true(oteli_is_text((otel_slice){.data = "truely", .length = 4}, "true"));
}

TEST(a_copy_is_terminated_and_the_callers)
{
    oteli_leaks_begin();

    char *copy = oteli_slice_copy((otel_slice){.data = "spans", .length = 4});
    char *empty = oteli_slice_copy((otel_slice){.data = NULL, .length = 0});

    assert_string_equal(copy, "span");
    assert_string_equal(empty, "");
    free(copy);
    free(empty);
    oteli_leaks_check();
}

TEST(a_copy_without_memory_is_null)
{
    oteli_leaks_begin();
    oteli_leaks_fail_at(1);

    assert_null(oteli_slice_copy(oteli_slice_of("span")));

    oteli_leaks_check();
}

struct decoded {
    const char *text;
    const char *bytes; /* NULL: refused */
    size_t length;
};

static const struct decoded decodeds[] = {
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
        const struct decoded *decoded = &decodeds[i];
        char out[32];
        size_t length = 99;

        const bool good = oteli_percent_decode(decoded->text, strlen(decoded->text), out, &length);

        assert_int_equal(good, decoded->bytes != NULL);
        if (good) {
            assert_int_equal(length, decoded->length);
            assert_memory_equal(out, decoded->bytes, length);
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

struct whole {
    const char *text;
    int64_t number; /* -1: refused */
};

static const struct whole wholes[] = {
    {"0", 0},
    {"007", 7},
    {" \t42 ", 42},
    {"9223372036854775807", INT64_MAX},
    {"9223372036854775808", -1},
    {"18446744073709551617", -1},
    {"99999999999999999999999999", -1},
    {"", -1},
    {"  ", -1},
    {"-1", -1},
    {"-0", -1},
    {"+1", -1},
    {"1.0", -1},
    {"1e3", -1},
    {"0x10", -1},
    {"5s", -1},
    {"5 ms", -1},
    {"1,000", -1},
    {"1 2", -1},
    {"\n5", -1},
};

TEST(whole_numbers_are_digits_only)
{
    for (size_t i = 0; i < sizeof wholes / sizeof wholes[0]; i++) {
        int64_t number = -1;

        const bool good = oteli_parse_whole(oteli_slice_of(wholes[i].text), &number);

        assert_int_equal(good, wholes[i].number >= 0);
        assert_true(number == wholes[i].number);
    }
}

TEST(one_is_and_others_are)
{
    assert_string_equal(oteli_is_or_are(0), "s are");
    assert_string_equal(oteli_is_or_are(1), " is");
    assert_string_equal(oteli_is_or_are(2), "s are");
}
