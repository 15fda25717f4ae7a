/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/exporters/safe_text_test.c - nothing from outside can do anything to a terminal. */
#include "exporters/console/safe_text.h"

#include "common/text.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <math.h>

static void assert_safe(const char *unsafe, size_t columns, const char *expected, size_t used)
{
    oteli_leaks_begin();
    struct oteli_text text = {0};
    assert_int_equal(oteli_text_add_safe(&text, oteli_slice_of(unsafe), columns), used);
    oteli_text_add(&text, "", 1);
    assert_string_equal(text.data, expected);
    oteli_text_fini(&text);
    oteli_leaks_check();
}

TEST(what_is_harmless_stays)
{
    assert_safe("GET /a?b=\\c \"d\"", 80, "GET /a?b=\\c \"d\"", 15);
    assert_safe("größe µ", 80, "größe µ", 7);
    assert_safe("日本語", 80, "日本語", 6);
    assert_safe("e\xcc\x81", 80, "e\xcc\x81", 1);
}

TEST(controls_are_escaped)
{
    assert_safe("a\tb\nc\rd", 80, "a\\tb\\nc\\rd", 10);
    assert_safe("\x1b[2J\x07\x7f", 80, "\\x1b[2J\\x07\\x7f", 15);
    assert_safe("\xc2\x9b", 80, "\\u{9b}", 6);
    assert_safe("\xe2\x80\xae", 80, "\\u{202e}", 8);
    assert_safe("\xef\xbb\xbf", 80, "\\u{feff}", 8);
}

TEST(bytes_that_are_not_utf8_are_escaped_one_by_one)
{
    assert_safe("\xff", 80, "\\xff", 4);
    assert_safe("\xc3(", 80, "\\xc3(", 5);
    assert_safe("\xe2\x82", 80, "\\xe2\\x82", 8);
    assert_safe("\xc0\xaf\xed\xa0\x80", 80, "\\xc0\\xaf\\xed\\xa0\\x80", 20);
}

TEST(every_single_byte_is_harmless)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const char one = (char)byte;
        struct oteli_text text = {0};
        (void)oteli_text_add_safe(&text, (otel_slice){&one, 1}, 80);
        for (size_t i = 0; i < text.length; i++)
            assert_in_range(text.data[i], 0x20, 0x7e);
        oteli_text_fini(&text);
    }
}

TEST(a_cut_never_splits_a_character_or_an_escape)
{
    assert_safe("abcdef", 6, "abcdef", 6);
    assert_safe("abcdef", 5, "abcd…", 5);
    assert_safe("日本語", 5, "日本…", 5);
    assert_safe("日本語", 4, "日…", 3);
    assert_safe("a\x1b", 4, "a…", 2);
    assert_safe("abc", 1, "…", 1);
    assert_safe("abc", 0, "", 0);
}

TEST(values_are_quoted_where_their_end_is_not_clear)
{
    struct oteli_text text = {0};
    oteli_text_add_quoted(&text, oteli_slice_of("plain/text=1"));
    oteli_text_add_quoted(&text, oteli_slice_of("two words"));
    oteli_text_add_quoted(&text, oteli_slice_of(""));
    oteli_text_add_quoted(&text, (otel_slice){"nul\0byte", 8});
    assert_int_equal(text.length, strlen("plain/text=1\"two words\"\"\"nul.byte"));
    assert_memory_equal(text.data, "plain/text=1\"two words\"\"\"nul\0byte", text.length);
    oteli_text_fini(&text);
}

TEST(doubles_are_short)
{
    const double values[] = {0.1, -1e300, 1.0 / 3.0, (double)INFINITY, (double)NAN};
    struct oteli_text text = {0};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        oteli_text_add_double(&text, values[i]);
        oteli_text_add_string(&text, " ");
    }
    oteli_text_add(&text, "", 1);
    assert_string_equal(text.data, "0.1 -1e+300 0.3333333333333333 inf NaN ");
    oteli_text_fini(&text);
}
