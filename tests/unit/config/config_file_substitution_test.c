/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/config/config_file_substitution_test.c - specification of config/read/substitute.c:
 * references to the environment, as the data model of the specification has them. */
#include "tests/support/config_file.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int begin(void **state)
{
    setenv("STRING_VALUE", "value", 1);
    setenv("BOOL_VALUE", "true", 1);
    setenv("INT_VALUE", "1", 1);
    setenv("FLOAT_VALUE", "1.1", 1);
    setenv("HEX_VALUE", "0xdeadbeef", 1);
    setenv("INVALID_MAP_VALUE", "value\nkey:value", 1);
    setenv("DO_NOT_REPLACE_ME", "Never use this value", 1);
    setenv("REPLACE_ME", "${DO_NOT_REPLACE_ME}", 1);
    setenv("VALUE_WITH_ESCAPE", "value$$", 1);
    setenv("EMPTY", "", 1);
    unsetenv("UNDEFINED_KEY");
    return config_file_begin(state);
}

/* The value behind `key: `, and its kind. */
static void expect(const char *written, enum oteli_node_kind kind, const char *expected)
{
    char text[256];
    const int length = snprintf(text, sizeof text, "key: %s\n", written);
    config_file_parse(text, (size_t)length);
    const struct oteli_node *value =
        config_file.root != NULL ? oteli_node_find(config_file.root, "key") : NULL;
    if (value == NULL || value->kind != kind || strcmp(value->text, expected) != 0)
        fail_msg("%s: %s (%d), %s", written, value != NULL ? value->text : "refused",
                 value != NULL ? (int)value->kind : -1, config_file_errors);
}

AROUND_EACH(begin, config_file_end);

/* spec: D2 configuration/data-model.md#environment-variable-substitution MUST stable */
TEST(D2_types_are_those_after_substitution)
{
    expect("${STRING_VALUE}", OTELI_NODE_TEXT, "value");
    expect("${BOOL_VALUE}", OTELI_NODE_BOOL, "true");
    expect("${INT_VALUE}", OTELI_NODE_INT, "1");
    expect("${FLOAT_VALUE}", OTELI_NODE_FLOAT, "1.1");
    expect("${HEX_VALUE}", OTELI_NODE_INT, "0xdeadbeef");
    expect("\"${STRING_VALUE}\"", OTELI_NODE_TEXT, "value");
    expect("\"${BOOL_VALUE}\"", OTELI_NODE_TEXT, "true");
    expect("\"${INT_VALUE}\"", OTELI_NODE_TEXT, "1");
    expect("'${FLOAT_VALUE}'", OTELI_NODE_TEXT, "1.1");
    expect("\"${HEX_VALUE}\"", OTELI_NODE_TEXT, "0xdeadbeef");
    expect("${env:STRING_VALUE}", OTELI_NODE_TEXT, "value");
    expect("foo ${STRING_VALUE} ${FLOAT_VALUE}", OTELI_NODE_TEXT, "foo value 1.1");
}

/* spec: D2 configuration/data-model.md#environment-variable-substitution MUST stable */
TEST(D2_what_is_not_defined_is_its_default_or_null)
{
    expect("${UNDEFINED_KEY}", OTELI_NODE_NULL, "");
    expect("${EMPTY}", OTELI_NODE_NULL, "");
    expect("\"${UNDEFINED_KEY}\"", OTELI_NODE_TEXT, "");
    expect("${UNDEFINED_KEY:-fallback}", OTELI_NODE_TEXT, "fallback");
    expect("${EMPTY:-fallback}", OTELI_NODE_TEXT, "fallback");
    expect("${UNDEFINED_KEY:-4318}", OTELI_NODE_INT, "4318");
    expect("${UNDEFINED_KEY:-}", OTELI_NODE_NULL, "");
    expect("${UNDEFINED_KEY:-a b\tc}", OTELI_NODE_TEXT, "a b\tc");
    expect("${UNDEFINED_KEY:-http://h:1/v1}", OTELI_NODE_TEXT, "http://h:1/v1");
    expect("${env:UNDEFINED_KEY:-fallback}", OTELI_NODE_TEXT, "fallback");
    expect("${STRING_VALUE:-fallback}", OTELI_NODE_TEXT, "value");
}

/* spec: D2 configuration/data-model.md#environment-variable-substitution MUST stable */
TEST(D2_neither_structure_nor_references_come_in_with_a_value)
{
    expect("${INVALID_MAP_VALUE}", OTELI_NODE_TEXT, "value\nkey:value");
    expect("${REPLACE_ME}", OTELI_NODE_TEXT, "${DO_NOT_REPLACE_ME}");
    expect("${UNDEFINED_KEY:-${STRING_VALUE}}", OTELI_NODE_TEXT, "${STRING_VALUE}");
    expect("${VALUE_WITH_ESCAPE}", OTELI_NODE_TEXT, "value$$");
}

/* spec: D2 configuration/data-model.md#environment-variable-substitution MUST stable */
TEST(D2_two_dollars_are_one_that_is_no_reference)
{
    expect("$${STRING_VALUE}", OTELI_NODE_TEXT, "${STRING_VALUE}");
    expect("$$${STRING_VALUE}", OTELI_NODE_TEXT, "$value");
    expect("$$$${STRING_VALUE}", OTELI_NODE_TEXT, "$${STRING_VALUE}");
    expect("$${STRING_VALUE:-fallback}", OTELI_NODE_TEXT, "${STRING_VALUE:-fallback}");
    expect("$${STRING_VALUE:-${STRING_VALUE}}", OTELI_NODE_TEXT, "${STRING_VALUE:-value}");
    expect("${UNDEFINED_KEY:-$${UNDEFINED_KEY}}", OTELI_NODE_TEXT,
           "${UNDEFINED_KEY:-${UNDEFINED_KEY}}");
    expect("$${STRING_VALUE} ${INT_VALUE} $${FLOAT_VALUE}", OTELI_NODE_TEXT,
           "${STRING_VALUE} 1 ${FLOAT_VALUE}");
    expect("a $$ b", OTELI_NODE_TEXT, "a $ b");
    expect("a $ b", OTELI_NODE_TEXT, "a $ b");
    expect("a ${ b", OTELI_NODE_TEXT, "a ${ b");
    expect("a ${} b", OTELI_NODE_TEXT, "a ${} b");
    expect("a $ ${INT_VALUE} $", OTELI_NODE_TEXT, "a $ 1 $");
}

/* spec: D2 configuration/data-model.md#environment-variable-substitution MUST stable */
TEST(D2_keys_are_not_touched)
{
    static const char text[] = "${STRING_VALUE}: value\n\"$$\": 1\n";
    config_file_parse(text, sizeof text - 1);

    assert_non_null(oteli_node_find(config_file.root, "${STRING_VALUE}"));
    assert_non_null(oteli_node_find(config_file.root, "$$"));
}

/* spec: D2 configuration/data-model.md#environment-variable-substitution MUST stable */
TEST(D2_a_reference_that_is_none_refuses_the_file)
{
    static const char *const bad[] = {
        "${STRING_VALUE:?error}",
        "${1API_KEY}",
        "${API_$KEY}",
        "${API-KEY}",
        "${ X}",
        "${X }",
        "${sys:home}",
        "${env:1}",
        "${env:}",
        "${:-x}",
        "${X:}",
        "${X:default}",
        "${env:env:X}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        char line[192];
        const int length = snprintf(text, sizeof text, "key: 'a %s'\n", bad[i]);
        snprintf(line, sizeof line, "t.yaml:1:6: \"%s\" is no reference to a variable", bad[i]);
        config_file_parse(text, (size_t)length);
        if (config_file.root != NULL || strncmp(config_file_errors, line, strlen(line)) != 0)
            fail_msg("%s: %s", bad[i], config_file_errors);
    }
}

TEST(a_variable_may_be_called_like_the_prefix)
{
    setenv("env", "named env", 1);
    expect("${env}", OTELI_NODE_TEXT, "named env");
    expect("${env:-x}", OTELI_NODE_TEXT, "named env");
    expect("${env:env}", OTELI_NODE_TEXT, "named env");
    unsetenv("env");
    expect("${env:-x}", OTELI_NODE_TEXT, "x");
}

TEST(many_references_to_a_long_variable_have_an_end)
{
    static char large[100001];
    static char text[1024] = "key: '";
    memset(large, 'x', sizeof large - 1);
    setenv("LARGE", large, 1);
    for (int i = 0; i < 20; i++)
        strncat(text, "${LARGE}", sizeof text - strlen(text) - 4);
    strncat(text, "'\n", 3);

    config_file_parse(text, strlen(text));

    assert_null(config_file.root);
    assert_non_null(strstr(config_file_errors, "variables that this file refers to are too long"));
    unsetenv("LARGE");
}
