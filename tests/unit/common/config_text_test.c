/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/common/config_text_test.c - specification of common/config_text.h, and of
 * oteli_parse_ratio. What whole variables do is in config_test.c. */
#include "common/config_text.h"

#include "tests/support/leaks.h"
#include "tests/support/unit.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct oteli_config_row list_row = {.type = OTELI_TYPE_LIST,
                                                 .words = "one two none -three !four"};
static const struct oteli_config_row word_row = {.type = OTELI_TYPE_ENUM,
                                                 .words = "on one -three !four"};

struct parsed {
    const char *text;
    bool in_code;
    otel_status status;
    const char *result;  /* NULL: no text */
    const char *culprit; /* where status is not OTEL_OK */
};

static void check(const struct oteli_config_row *row, const struct parsed *expected)
{
    struct oteli_setting setting;
    otel_slice culprit = oteli_slice_of("");
    oteli_leaks_begin();

    const otel_status status = oteli_setting_parse(row, oteli_slice_of(expected->text),
                                                   expected->in_code, &setting, &culprit);

    assert_int_equal(status, expected->status);
    if (expected->culprit != NULL) {
        assert_int_equal(culprit.length, strlen(expected->culprit));
        assert_memory_equal(culprit.data, expected->culprit, culprit.length);
    }
    if (expected->result != NULL)
        assert_string_equal(setting.text, expected->result);
    else
        assert_null(setting.text);
    free(setting.text);
    oteli_leaks_check();
}

TEST(a_list_keeps_its_good_words_once_and_in_order)
{
    static const struct parsed lists[] = {
        {"two,one", false, OTEL_OK, "two,one", NULL},
        {" ONE , ,one,Two,", false, OTEL_OK, "one,two", NULL},
        {"none", false, OTEL_OK, "none", NULL},
        {" None,none", false, OTEL_OK, "none", NULL},
        {", ,", false, OTEL_OK, NULL, NULL},
        {"one,four", true, OTEL_OK, "one,four", NULL},
        {"one,four", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "four"},
        {"Six,one", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "Six"},
        {"o,on,ones,one", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "o"},
        {"three,six,two", false, OTEL_ERROR_UNSUPPORTED, "two", "three"},
        {"-three", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "-three"},
        {"one two", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "one two"},
        {"six", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "six"},
        {"one,NONE", false, OTEL_ERROR_INVALID_ARGUMENT, "one", "NONE"},
        {"none,two", false, OTEL_ERROR_INVALID_ARGUMENT, "two", "none"},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        check(&list_row, &lists[i]);
}

TEST(a_word_is_whole_and_in_any_case)
{
    static const struct parsed words[] = {
        {"on", false, OTEL_OK, "on", NULL},
        {"\tONE ", false, OTEL_OK, "one", NULL},
        {"four", true, OTEL_OK, "four", NULL},
        {"four", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "four"},
        {"!four", true, OTEL_ERROR_INVALID_ARGUMENT, NULL, "!four"},
        {"three", true, OTEL_ERROR_UNSUPPORTED, NULL, "three"},
        {"o", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "o"},
        {"on one", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "on one"},
        {"on,one", false, OTEL_ERROR_INVALID_ARGUMENT, NULL, "on,one"},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        check(&word_row, &words[i]);
}

TEST(a_number_is_within_its_row)
{
    static const struct oteli_config_row count = {.type = OTELI_TYPE_COUNT, .min = 0, .max = 9};
    static const struct oteli_config_row timeout = {.type = OTELI_TYPE_TIMEOUT, .max = 9};
    struct oteli_setting setting;

    assert_true(oteli_setting_take(&count, 0, &setting));
    assert_true(setting.number == 0);
    assert_true(oteli_setting_take(&count, 9, &setting));
    assert_true(setting.number == 9);
    assert_false(oteli_setting_take(&count, 10, &setting));
    assert_false(oteli_setting_take(&count, -1, &setting));
    assert_true(oteli_setting_take(&timeout, 0, &setting));
    assert_true(setting.number == OTELI_UNLIMITED);
}

struct ratio {
    const char *text;
    double value; /* -1: refused */
};

static const struct ratio ratios[] = {
    {"0", 0},
    {"1", 1},
    {"0.5", 0.5},
    {".5", 0.5},
    {"1.", 1},
    {" 0.25\t", 0.25},
    {"0.1", 0.1},
    {"0.0001", 0.0001},
    {"1e-4", 0.0001},
    {"2.5E-1", 0.25},
    {"0.01e+2", 1},
    {"100e-2", 1},
    {"0e999999999999", 0},
    {"1e-999999999999", 0},
    {"0.333333333333333333333333333", 1.0 / 3},
    {"1.00000000000000000000000000", 1},
    {"000000000000000000000000.5", 0.5},
    {"1000000000000000000000000e-24", 1},
    {"", -1},
    {" ", -1},
    {".", -1},
    {"e5", -1},
    {".e1", -1},
    {"1.5", -1},
    {"1.0000001", -1},
    {"10", -1},
    {"1e1", -1},
    {"1e999999999999", -1},
    {"99999999999999999999999999", -1},
    {"-0.1", -1},
    {"-0", -1},
    {"+0.5", -1},
    {"0,5", -1},
    {"0.5x", -1},
    {"0.5 0.5", -1},
    {"0.5.5", -1},
    {"0.5e", -1},
    {"0.5e-", -1},
    {"0.5e1.0", -1},
    {"0x1", -1},
    {"0x1p-1", -1},
    {"nan", -1},
    {"NaN", -1},
    {"inf", -1},
    {"infinity", -1},
    {"abc", -1},
    {"50%", -1},
};

TEST(a_ratio_is_a_decimal_number_from_zero_to_one)
{
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {
        double value = -1;

        const bool good = oteli_parse_ratio(ratios[i].text, &value);

        if (good != (ratios[i].value >= 0) || value < ratios[i].value - 1e-16 ||
            value > ratios[i].value + 1e-16)
            fail_msg("\"%s\" gave %d, %.17g", ratios[i].text, good, value);
    }
    double untouched = 7;
    assert_false(oteli_parse_ratio(NULL, &untouched));
    assert_true(untouched > 6);
}

/* What people write has at most 15 digits and comes out exactly as a compiler reads it. */
TEST(short_ratios_are_exact)
{
    for (int i = 0; i < 10000; i++) {
        char text[32];
        snprintf(text, sizeof text, "0.%0*" PRIu32, 1 + i % 9, (uint32_t)i * UINT32_C(2654435761));
        double value;

        assert_true(oteli_parse_ratio(text, &value));

        const double expected = strtod(text, NULL);
        assert_memory_equal(&value, &expected, sizeof value);
    }
}
