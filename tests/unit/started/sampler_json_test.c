/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/started/sampler_json_test.c - specification of exporters/otlp/json_reader.h. */
#include "exporters/otlp/json_reader.h"

#include "common/text.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_json(const char *text)
{
    struct oteli_json json = oteli_json_begin(text, strlen(text));
    oteli_json_skip(&json);
    return oteli_json_end(&json);
}

TEST(json_is_taken_and_nothing_else)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       "null",
                                       "true",
                                       "false",
                                       "0",
                                       "-0.5e+3",
                                       "\"\"",
                                       " { \"a\" : [ 1 , {} ] } ",
                                       "[[[]],[],{\"a\":{\"b\":[]}},1,\"x\",null]",
                                       "\"\\u00e4\\n\\\"\"",
                                       "[1,2,3]",
                                       "{\"a\":1,\"a\":2}"};
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "}",
                                      "[",
                                      "]",
                                      "{]",
                                      "[}",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "[1,]",
                                      "[,1]",
                                      "{,}",
                                      "{a:1}",
                                      "01",
                                      "+1",
                                      ".5",
                                      "5.",
                                      "1e",
                                      "1e+",
                                      "-",
                                      "nul",
                                      "nullx",
                                      "True",
                                      "NaN",
                                      "Infinity",
                                      "\"",
                                      "\"\\\"",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\t\"",
                                      "\"\xff\"",
                                      "1 2",
                                      "{}{}",
                                      "[1 2]",
                                      "{\"a\":1 \"b\":2}",
                                      "'a'",
                                      "// c\n1",
                                      "[1]]"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(is_json(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (is_json(bad[i]))
            fail_msg("taken for JSON: %s", bad[i]);
}

TEST(nesting_has_a_limit)
{
    char text[2 * OTELI_JSON_DEPTH + 3] = "";
    memset(text, '[', OTELI_JSON_DEPTH);
    memset(text + OTELI_JSON_DEPTH, ']', OTELI_JSON_DEPTH);
    assert_true(is_json(text));
    memset(text, '[', OTELI_JSON_DEPTH + 1);
    memset(text + OTELI_JSON_DEPTH + 1, ']', OTELI_JSON_DEPTH + 1);
    assert_false(is_json(text));
}

TEST(members_are_walked_in_order)
{
    const char *text = "{\"a\": 1, \"skipped\": {\"x\": [1, {\"y\": 2}]}, \"list\": [2, null, 3]}";
    struct oteli_json json = oteli_json_begin(text, strlen(text));
    char seen[64] = "";
    otel_slice key;
    otel_slice number;
    for (bool first = oteli_json_object(&json); oteli_json_member(&json, &first, &key);) {
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.*s ", (int)key.length,
                 key.data);
        if (oteli_json_is(key, "a")) {
            assert_true(oteli_json_number(&json, &number));
            assert_memory_equal(number.data, "1", 1);
        } else if (oteli_json_is(key, "list")) {
            size_t elements = 0;
            for (bool one = oteli_json_array(&json); oteli_json_element(&json, &one); elements++)
                if (!oteli_json_null(&json))
                    assert_true(oteli_json_number(&json, &number));
            assert_int_equal(elements, 3);
        } else {
            oteli_json_skip(&json);
        }
    }
    assert_true(oteli_json_end(&json));
    assert_string_equal(seen, "a skipped list ");
}

TEST(texts_are_unescaped)
{
    static const struct {
        const char *json;
        const char *text; /* NULL: none */
    } cases[] = {{"\"plain\"", "plain"},
                 {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
                 {"\"\\u0041\\u00e4\\u20ac\"", "A\xc3\xa4\xe2\x82\xac"},
                 {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
                 {"\"\\uD83D\\uDE00!\"", "\xf0\x9f\x98\x80!"},
                 {"\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf"},
                 {"\"\\u0000\"", NULL},
                 {"\"\\ud83d\"", NULL},
                 {"\"\\ud83dxxxxxx\"", NULL},
                 {"\"\\ud83d\\u0041\"", NULL},
                 {"\"\\ude00\"", NULL},
                 {"1", NULL}};
    oteli_leaks_begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct oteli_json json = oteli_json_begin(cases[i].json, strlen(cases[i].json));
        char *text;
        assert_int_equal(oteli_json_text(&json, &text), cases[i].text != NULL);
        assert_int_equal(oteli_json_end(&json), cases[i].text != NULL);
        if (cases[i].text != NULL)
            assert_string_equal(text, cases[i].text);
        free(text);
    }
    oteli_leaks_check();
}

TEST(after_a_failure_everything_fails)
{
    const char *text = "{\"a\":1}";
    struct oteli_json json = oteli_json_begin(text, strlen(text));
    bool first = true;
    otel_slice slice;
    char *copy;
    oteli_json_refuse(&json);
    assert_false(oteli_json_object(&json));
    assert_false(oteli_json_array(&json));
    assert_false(oteli_json_member(&json, &first, &slice));
    assert_false(oteli_json_element(&json, &first));
    assert_false(oteli_json_null(&json));
    assert_false(oteli_json_number(&json, &slice));
    assert_false(oteli_json_string(&json, &slice));
    assert_false(oteli_json_text(&json, &copy));
    oteli_json_skip(&json);
    assert_false(oteli_json_end(&json));
}
