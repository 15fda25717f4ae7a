/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/sdk/facts_test.c - specification of sdk/facts.h: how resources are merged. */
#include "sdk/facts.h"
#include "tests/support/unit.h"

#include "tests/support/warnings.h"

#include <string.h>

static struct oteli_facts facts_of(const char *key, const char *value, const char *schema_url)
{
    struct oteli_facts facts = {.schema_url = schema_url};
    oteli_facts_set_text(&facts, key, (otel_slice){value, strlen(value)});
    return facts;
}

static const char *text_of(const struct oteli_facts *facts, const char *key)
{
    const otel_value *value = oteli_facts_get(facts, key);
    return value != NULL ? value->as.string : "-";
}

AROUND_EACH(warnings_begin, warnings_end);

/* spec: R3 resource/sdk.md#merge MUST stable */
TEST(R3_the_result_has_all_keys_and_the_updating_values)
{
    struct oteli_facts old = facts_of("both", "old", NULL);
    oteli_facts_set(&old, "only.old", otel_value_string("a"));
    oteli_facts_set(&old, "emptied", otel_value_string("b"));
    struct oteli_facts updating = facts_of("both", "new", NULL);
    oteli_facts_set(&updating, "emptied", otel_value_string(""));
    oteli_facts_set(&updating, "only.new", otel_value_string("c"));

    oteli_facts_merge(&old, &updating);

    assert_int_equal(old.count, 4);
    assert_string_equal(text_of(&old, "both"), "new");
    assert_string_equal(text_of(&old, "only.old"), "a");
    assert_string_equal(text_of(&old, "emptied"), "");
    assert_string_equal(text_of(&old, "only.new"), "c");
    assert_int_equal(updating.count, 0);
    oteli_facts_fini(&old);
}

/* spec: R4 resource/sdk.md#merge MUST stable */
TEST(R4_the_schema_url_is_that_of_the_only_one_that_has_any)
{
    static const struct {
        const char *old;
        const char *updating;
        const char *result; /* NULL: none, and a warning if two are given */
    } table[] = {
        {NULL, "x", "x"}, {"", "x", "x"},   {"x", NULL, "x"},   {"x", "", "x"},
        {"x", "x", "x"},  {"x", "y", NULL}, {NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        warnings = 0;
        struct oteli_facts old = facts_of("a", "1", table[i].old);
        struct oteli_facts updating = facts_of("b", "2", table[i].updating);

        oteli_facts_merge(&old, &updating);

        if (table[i].result != NULL)
            assert_string_equal(old.schema_url, table[i].result);
        else
            assert_null(old.schema_url);
        assert_int_equal(warnings, table[i].result == NULL && table[i].old != NULL);
        assert_int_equal(old.count, 2);
        oteli_facts_fini(&old);
    }
}

TEST(after_two_schemas_a_third_changes_nothing)
{
    struct oteli_facts all = facts_of("a", "1", "x");
    struct oteli_facts second = facts_of("b", "2", "y");
    struct oteli_facts third = facts_of("c", "3", "y");

    oteli_facts_merge(&all, &second);
    oteli_facts_merge(&all, &third);

    assert_null(all.schema_url);
    assert_int_equal(warnings, 1);
    oteli_facts_fini(&all);
}

TEST(a_file_that_is_not_there_says_nothing)
{
    struct oteli_facts facts = {0};

    assert_int_equal(oteli_facts_read(&facts, "/no/such/file").length, 0);
    assert_true(oteli_facts_read(&facts, "/proc/self/status").length > 0);
    assert_int_equal(oteli_facts_read(&facts, "/proc").length, 0); /* a directory */

    assert_false(facts.failed);
    oteli_facts_fini(&facts);
}

TEST(without_memory_they_have_failed_and_go_on)
{
    for (size_t nth = 1;; nth++) {
        oteli_leaks_begin();
        oteli_leaks_fail_at(nth);
        struct oteli_facts facts = facts_of("a", "1", NULL);
        struct oteli_facts more = facts_of("b", "2", NULL);
        oteli_facts_merge(&facts, &more);
        const bool has_failed = oteli_leaks_failed();
        assert_int_equal(facts.failed, has_failed);
        oteli_facts_fini(&facts);
        oteli_leaks_check();
        if (!has_failed)
            break;
    }
}
