/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/config/config_file_yaml_test.c - specification of config/read/document.c and
 * config/read/node.c: a YAML text as a tree of typed values, and what is refused. */
#include "tests/support/config_file.h"
#include "tests/support/leaks.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parse(const char *text)
{
    config_file_parse(text, strlen(text));
}

/* The text has one fault, and this is its line. */
static void expect_fault(const char *text, const char *line)
{
    parse(text);
    char expected[512];
    snprintf(expected, sizeof expected, "%s\n", line);
    assert_null(config_file.root);
    assert_string_equal(config_file_errors, expected);
    assert_int_equal(config_file.status, OTEL_ERROR_INVALID_ARGUMENT);
}

AROUND_EACH(config_file_begin, config_file_end);

/* spec: D1 configuration/data-model.md#yaml-file-format SHOULD stable */
TEST(D1_plain_scalars_have_the_types_of_the_core_schema)
{
    static const struct {
        enum oteli_node_kind kind;
        const char *texts[20];
    } table[] = {
        {OTELI_NODE_NULL, {"", "~", "null", "Null", "NULL"}},
        {OTELI_NODE_TEXT,
         {"nUll", "yes", "on", "y", "-0x1", "1_000", "0x", "0o8", "1e", ".", "1.2.3", "inf",
          "0x1p3", "12:30", "2026-01-01"}},
        {OTELI_NODE_BOOL, {"true", "True", "FALSE"}},
        {OTELI_NODE_INT,
         {"0", "-19", "+7", "0o17", "0xdeadBEEF", "017", "9223372036854775807",
          "-9223372036854775808"}},
        {OTELI_NODE_FLOAT,
         {"9223372036854775808", "1.5", ".5", "1.", "1e3", "-2.5E-3", ".inf", "-.INF", ".NaN"}},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (size_t k = 0; table[i].texts[k] != NULL; k++) {
            char text[64];
            snprintf(text, sizeof text, "key: %s\n", table[i].texts[k]);
            parse(text);
            const struct oteli_node *value = oteli_node_find(config_file.root, "key");
            assert_non_null(value);
            if (value->kind != table[i].kind)
                fail_msg("%s is of kind %d", table[i].texts[k], (int)value->kind);
        }
}

/* spec: D1 configuration/data-model.md#yaml-file-format SHOULD stable */
TEST(D1_values_are_what_was_written)
{
    parse("hex: 0xdeadbeef\noctal: 0o17\nleast: -9223372036854775808\n"
          "float: -2.5E-3\nyes: TRUE\nquoted: \"12\"\nblock: |\n  a\n  b\n"
          "folded: >-\n  a\n  b\nsingle: 'it''s'\nescape: \"\\u00e9\\t\"\n");
    const struct oteli_node *root = config_file.root;
    assert_non_null(root);
    assert_true(oteli_node_find(root, "hex")->integer == INT64_C(3735928559));
    assert_true(oteli_node_find(root, "octal")->integer == 15);
    assert_true(oteli_node_find(root, "least")->integer == INT64_MIN);
    assert_true(oteli_node_find(root, "float")->real == -0.0025);
    assert_true(oteli_node_find(root, "yes")->boolean);
    assert_int_equal(oteli_node_find(root, "quoted")->kind, OTELI_NODE_TEXT);
    assert_string_equal(oteli_node_find(root, "block")->text, "a\nb\n");
    assert_string_equal(oteli_node_find(root, "folded")->text, "a b");
    assert_string_equal(oteli_node_find(root, "single")->text, "it's");
    assert_string_equal(oteli_node_find(root, "escape")->text, "\xC3\xA9\t");
}

TEST(tags_of_yaml_force_a_type_that_the_text_has)
{
    parse("a: !!str 12\nb: !!float 3\nc: !!null\nd: !!map {e: !!seq [1]}\n");
    assert_non_null(config_file.root);
    assert_int_equal(oteli_node_find(config_file.root, "a")->kind, OTELI_NODE_TEXT);
    assert_int_equal(oteli_node_find(config_file.root, "b")->kind, OTELI_NODE_FLOAT);
    assert_int_equal(oteli_node_find(config_file.root, "c")->kind, OTELI_NODE_NULL);

    expect_fault("a: !!int abc\n",
                 "t.yaml:1:10: this value cannot have the tag tag:yaml.org,2002:int");
    expect_fault("a: !mine abc\n", "t.yaml:1:10: this value cannot have the tag !mine");
    expect_fault("a: !mine {b: 1}\n", "t.yaml:1:10: this tag is not one of YAML's own");
}

/* spec: D3 configuration/sdk.md#parse MUST stable */
TEST(D3_null_is_another_thing_than_missing)
{
    parse("there:\n");

    assert_non_null(oteli_node_find(config_file.root, "there"));
    assert_int_equal(oteli_node_find(config_file.root, "there")->kind, OTELI_NODE_NULL);
    assert_null(oteli_node_value(config_file.root, "there"));
    assert_null(oteli_node_find(config_file.root, "missing"));
}

TEST(values_know_their_place)
{
    parse("# a comment\nfirst: 1\nsecond:\n  - {a: b}\n  -   deep: \"x\"\n");
    const struct oteli_node *list = oteli_node_find(config_file.root, "second");
    const struct oteli_node *last = list->items->next->value;
    const struct oteli_node *deep = oteli_node_find(last, "deep");

    assert_int_equal(oteli_node_find(config_file.root, "first")->place.line, 2);
    assert_int_equal(oteli_node_find(config_file.root, "first")->place.column, 8);
    assert_int_equal(deep->place.line, 5);
    assert_int_equal(deep->place.column, 13);
    assert_int_equal(last->items->key_place.column, 7);
}

TEST(aliases_are_their_anchors_once_more)
{
    parse("a: &x {b: 1}\nc: *x\nd: &x 2\ne: *x\n");
    assert_non_null(config_file.root);
    assert_ptr_equal(oteli_node_find(config_file.root, "c"),
                     oteli_node_find(config_file.root, "a"));
    assert_true(oteli_node_find(config_file.root, "e")->integer == 2);

    expect_fault("a: *nothing\n", "t.yaml:1:5: there is no anchor \"nothing\" before this alias");
    expect_fault("a: &x\n  b: *x\n", "t.yaml:2:7: this alias stands inside of what it stands for");
}

/* spec: D5 configuration/sdk.md#parse SHOULD stable */
TEST(D5_what_is_no_yaml_is_refused_with_its_place)
{
    expect_fault("a: 1\na: 2\n", "t.yaml:2:1: the key \"a\" is there twice");
    expect_fault("{a: b}: c\n", "t.yaml:1:1: a key has to be a text");
    expect_fault("a: 1\n---\nb: 2\n",
                 "t.yaml:2:1: a second document begins here; there can be one");
    expect_fault("- 1\n", "t.yaml:1:1: a configuration is a mapping, with file_format and more as "
                          "its keys");
    expect_fault("", "t.yaml:1:1: a configuration is a mapping, with file_format and more as its "
                     "keys");
    parse("a: 1\nb: [1, 2\nc: 3\n");
    assert_null(config_file.root);
    static const char begin[] = "t.yaml:4:1: this is not YAML: ";
    assert_memory_equal(config_file_errors, begin, sizeof begin - 1);
}

TEST(bytes_that_are_no_text_are_refused_with_their_place)
{
    expect_fault("a: \xC3\xA9 \xFF\n", "t.yaml:1:6: this is not UTF-8");
    expect_fault("a: \"x\\0y\"\n", "t.yaml:1:4: this text has a NUL in it");
    config_file_parse("a: 1\nb\0: 2\n", 11);
    assert_null(config_file.root);
    assert_string_equal(config_file_errors, "t.yaml:2:2: there is a NUL here\n");
}

/* Every fault that does not hide what comes behind it is said. */
TEST(several_faults_are_several_lines)
{
    parse("a: ${1}\nb: !!int x\nb: 2\n");

    assert_null(config_file.root);
    assert_int_equal(config_file.file.faults, 3);
    assert_non_null(strstr(config_file_errors, "t.yaml:1:4: \"${1}\" is no reference"));
    assert_non_null(strstr(config_file_errors, "t.yaml:2:10: "));
    assert_non_null(strstr(config_file_errors, "t.yaml:3:1: "));
}

/* --- Hostile files --- */

TEST(a_few_lines_cannot_stand_for_millions)
{
    char text[1024] = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n";
    for (int i = 1; i < 10; i++) {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof text - length,
                 "a%d: &a%d [*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1,
                 i - 1, i - 1, i - 1, i - 1, i - 1);
    }
    parse(text);

    assert_null(config_file.root);
    assert_non_null(strstr(config_file_errors, "aliases stand for too many"));
}

TEST(nesting_has_an_end)
{
    static const char *const units[] = {"[", "{a: ", "- "};
    for (size_t unit = 0; unit < sizeof units / sizeof units[0]; unit++) {
        char text[40000] = "a:\n  ";
        size_t length = strlen(text);
        for (size_t i = 0; i < 5000; i++, length += strlen(units[unit]))
            memcpy(text + length, units[unit], strlen(units[unit]));
        config_file_parse(text, length);
        assert_null(config_file.root);
        assert_int_equal(config_file.status, OTEL_ERROR_INVALID_ARGUMENT);
    }
}

TEST(nesting_through_aliases_has_an_end_too)
{
    char text[4096] = "a0: &a0 [[[[[[[[x]]]]]]]]\n";
    for (int i = 1; i < 10; i++) {
        const size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "a%d: &a%d [[[[[[[[*a%d]]]]]]]]\n", i, i,
                 i - 1);
    }
    parse(text);

    assert_null(config_file.root);
    assert_non_null(strstr(config_file_errors, "nested too deeply"));
}

TEST(large_files_are_refused)
{
    char *text = malloc(OTELI_DOCUMENT_BYTES + 1);
    assert_non_null(text);
    memset(text, '#', OTELI_DOCUMENT_BYTES + 1);
    config_file_parse(text, OTELI_DOCUMENT_BYTES + 1);
    assert_null(config_file.root);
    assert_string_equal(config_file_errors, "t.yaml: larger than 262144 bytes\n");

    for (size_t i = 0; i + 4 < OTELI_DOCUMENT_BYTES; i += 4)
        memcpy(text + i, "- x\n", 4);
    config_file_parse(text, OTELI_DOCUMENT_BYTES - 4);
    assert_null(config_file.root);
    assert_non_null(strstr(config_file_errors, "there are too many values"));
    free(text);
}

TEST(every_allocation_may_fail)
{
    static const char text[] = "a: &x [1, '${HOME}', b]\nc: *x\nd: {e: f}\n";
    for (size_t nth = 1;; nth++) {
        config_file_begin(NULL);
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        parse(text);
        const bool has_failed = oteli_leaks_failed();
        assert_true(has_failed == (config_file.status == OTEL_ERROR_NO_MEMORY));
        assert_true(has_failed == (config_file.root == NULL));
        config_file_free();
        oteli_leaks_check();
        if (!has_failed)
            break;
    }
}
